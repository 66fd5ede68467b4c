// store_kv: appends the step's keys and values to a cache.
//
// Work split   one invocation stores UNIT columns (x) of one row (y).
// Reads        k, v [rows, units · UNIT]        Writes   keys, values [slots, capacity, units] of units
// Slots        cache: store_key, store_value
// Constants    LANES, UNIT (columns that are stored together); in q8 also HEAD_VECTORS

struct Params { units: u32, capacity: u32 }

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> k: array<f32>;
@group(1) @binding(2) var<storage, read> v: array<f32>;
@group(1) @binding(3) var<storage, read_write> keys: array<u32>;
@group(1) @binding(4) var<storage, read_write> values: array<u32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let unit = workgroup.x * LANES + lane;
    if unit >= params.units { return; }
    let source = UNIT * (workgroup.y * params.units + unit);
    let row = workgroup.y;
    let cache_row = slot_base(row, params.capacity) + step.row[row].position % params.capacity;
    let target_unit = cache_row * params.units + unit;
    store_key(source, target_unit);
    store_value(source, target_unit);
}
