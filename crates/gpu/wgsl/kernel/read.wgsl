// read: reads x as fast as the memory gives it, and keeps next to nothing of it.
//
// Work split   a workgroup reads PASSES runs of 8 × LANES groups of four words; neighbouring lanes read neighbouring
//              groups, and each lane has eight loads under way at once.
// Reads        x [workgroups × PASSES × 8 × LANES] groups of four words
// Writes       y [1], only if the words of x add up to something that no zeros do: so that nobody can leave the reading
//              out as useless
// Constants    LANES, PASSES

@group(1) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(1) @binding(1) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    var sum = vec4<u32>();
    for (var pass_index = 0u; pass_index < PASSES; pass_index++) {
        let at = (workgroup.x * PASSES + pass_index) * 8u * LANES + lane;
        let a = x[at];
        let b = x[at + LANES];
        let c = x[at + 2u * LANES];
        let d = x[at + 3u * LANES];
        let e = x[at + 4u * LANES];
        let f = x[at + 5u * LANES];
        let g = x[at + 6u * LANES];
        let h = x[at + 7u * LANES];
        sum += ((a + b) + (c + d)) + ((e + f) + (g + h));
    }
    if any(sum != vec4<u32>()) {
        y[0] = sum.x + sum.y + sum.z + sum.w;
    }
}
