// nothing: a row sees no row after itself.

fn end_of(row: u32) -> u32 { return step.position + row + 1u; }

fn end_of_rows(first: u32, last: u32) -> u32 { return end_of(last); }
