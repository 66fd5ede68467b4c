// store_kv: appends the step's keys and values to a cache.
//
// Work split   one invocation stores two columns (x) of one row (y).
// Reads        k, v [rows, width]        Writes   keys, values [capacity, width]
// Slots        cache: store_key, store_value
// Constants    LANES

struct Params { pairs: u32, capacity: u32 }

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> k: array<f32>;
@group(1) @binding(2) var<storage, read> v: array<f32>;
@group(1) @binding(3) var<storage, read_write> keys: array<u32>;
@group(1) @binding(4) var<storage, read_write> values: array<u32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let pair = workgroup.x * LANES + lane;
    if pair >= params.pairs { return; }
    let source = 2u * (workgroup.y * params.pairs + pair);
    let target_pair = (step.position + workgroup.y) % params.capacity * params.pairs + pair;
    store_key(target_pair, vec2<f32>(k[source], k[source + 1u]));
    store_value(target_pair, vec2<f32>(v[source], v[source + 1u]));
}
