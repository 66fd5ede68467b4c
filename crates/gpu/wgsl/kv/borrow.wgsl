// borrow: the layer reads its donor's keys and values, in which the row that attends already is.

@group(1) @binding(6) var<storage, read> keys: array<vec4<u32>>;
@group(1) @binding(7) var<storage, read> values: array<vec4<u32>>;

const OWN_ROWS: u32 = 0u;

fn own_input(step_row: u32, row: u32, kv_head: u32, quad: u32) -> vec4<f32> { return vec4<f32>(); }

fn store_own(stores: bool, head_at: u32, lane: u32) {}

fn with_own(row: u32, part: u32, held: Held) -> Held { return held; }
