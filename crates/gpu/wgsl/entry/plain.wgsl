// plain: an entry that needs nothing optional.

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    kernel(workgroup, lane);
}
