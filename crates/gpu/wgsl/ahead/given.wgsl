// given: the last position that each row of the step sees is told, as within a picture or on a canvas.

@group(1) @binding(5) var<storage, read> ends: array<u32>;

fn end_of(row: u32) -> u32 { return ends[row] + 1u; }

fn end_of_rows(first: u32, last: u32) -> u32 {
    var end = 0u;
    for (var row = first; row <= last; row++) { end = max(end, end_of(row)); }
    return end;
}
