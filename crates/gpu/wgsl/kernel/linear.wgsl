// linear: y = W · x for rows of x, and for each expert that a row is routed to.
//
// Work split   one workgroup computes OUTPUTS outputs of one row (y) and one expert slot (z); lanes walk along x in
//              steps of four values.
// Reads        x [rows, slots · width], weight as packed planes        Writes   y [rows, slots · outputs]
// Slots        format: GROUP, group_scale, group_quants     select: matrix
// Constants    LANES, OUTPUTS

struct Params {
    plane_at: vec4<u32>,
    plane_words: vec4<u32>,
    width: u32,          // values in a row of W
    outputs: u32,        // rows of the weight in each matrix
    first_row: u32,      // of the weight, in each matrix of its tensor
    matrix_rows: u32,    // rows of each matrix of the tensor
    shard_first: u32,    // first row of the tensor that this buffer holds
    shard_rows: u32,     // how many it holds
    x_width: u32,        // values in a row of x
    x_slot: u32,         // how far one expert's input is from the next: zero where they share it
    y_width: u32,        // values in a row of y
    routing_width: u32,
    factor: f32,
}

@group(0) @binding(0) var<storage, read> weight: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;
@group(0) @binding(4) var<uniform> step: Step;

fn input(at: u32, column: u32) -> f32 {
    if column < params.width { return x[at + column]; }
    return 0.0;
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first_output = workgroup.x * OUTPUTS;
    let row = workgroup.y;
    let slot = workgroup.z;
    let x_at = row * params.x_width + slot * params.x_slot;
    let tensor_row = matrix(row, slot) * params.matrix_rows + params.first_row + first_output;
    let words_in_group = GROUP / 4u;
    let words = (params.width + GROUP - 1u) / GROUP * words_in_group;

    var sums: array<f32, OUTPUTS>;
    for (var word = lane; word < words; word += LANES) {
        let group = word / words_in_group;
        let at = 4u * word;
        let four = vec4<f32>(input(x_at, at), input(x_at, at + 1u), input(x_at, at + 2u), input(x_at, at + 3u));
        for (var o = 0u; o < OUTPUTS; o++) {
            let weight_row = tensor_row + o - params.shard_first;
            if first_output + o < params.outputs && weight_row < params.shard_rows {
                let scale = group_scale(weight_row, group);
                sums[o] += scale.x * dot(group_quants(weight_row, group, word % words_in_group), four);
                if HAS_OFFSET { sums[o] += scale.y * (four.x + four.y + four.z + four.w); }
            }
        }
    }

    let y_at = row * params.y_width + slot * params.outputs + first_output;
    for (var o = 0u; o < OUTPUTS; o++) {
        let total = workgroup_sum(sums[o], lane);
        // Rows before the shard wrap around to large numbers, so one comparison covers both ends.
        let held = tensor_row + o - params.shard_first < params.shard_rows;
        if lane == 0u && first_output + o < params.outputs && held {
            y[y_at + o] = total * params.factor;
        }
    }
}
