// f32, written: nothing is rounded.

fn prepare(lane: u32) {}

fn packed(row: u32, vector: u32) -> vec4<u32> { return bitcast<vec4<u32>>(fresh(row, vector)); }

fn fresh8(row: u32, eighth: u32) -> Eight { return Eight(packed(row, 2u * eighth), packed(row, 2u * eighth + 1u)); }
