// linear: y = W · x for rows of x, and for each expert that a row is routed to.
//
// Work split   one workgroup computes LANES / PARTS outputs (x) of one row (y) and one expert slot (z); PARTS lanes share
//              an output and walk along x in steps of four values.
// Reads        x [rows, slots · width], weight as packed planes        Writes   y [rows, slots · outputs]
// Slots        format: GROUP, group_scale, group_quants     select: matrix
// Constants    LANES, PARTS

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
    expert_stride: u32,  // how far one expert's input is from the next: zero where they share it
    y_width: u32,        // values in a row of y
    routing_width: u32,
    factor: f32,
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> weight: array<vec4<u32>>;
@group(1) @binding(2) var<storage, read> x: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;

var<workgroup> parts: array<f32, LANES>;

// Four values of x from a column on; those beyond its end are zero, as the weight's are.
fn input(at: u32, column: u32) -> vec4<f32> {
    if column + 4u <= params.width {
        let first = at + column;
        return vec4<f32>(x[first], x[first + 1u], x[first + 2u], x[first + 3u]);
    }
    var four = vec4<f32>();
    for (var i = 0u; column + i < params.width; i++) { four[i] = x[at + column + i]; }
    return four;
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let output = workgroup.x * (LANES / PARTS) + lane / PARTS;
    let part = lane % PARTS;
    let row = workgroup.y;
    let slot = workgroup.z;
    let x_at = row * params.x_width + slot * params.expert_stride;
    let tensor_row = matrix(row, slot) * params.matrix_rows + params.first_row + output;
    // Rows before the shard wrap around to large numbers, so one comparison covers both ends.
    let weight_row = tensor_row - params.shard_first;
    let here = output < params.outputs && weight_row < params.shard_rows;
    let words_in_group = GROUP / 4u;
    let words = (params.width + GROUP - 1u) / GROUP * words_in_group;

    var sum = 0.0;
    if here {
        for (var word = part; word < words; word += PARTS) {
            let group = word / words_in_group;
            let four = input(x_at, 4u * word);
            let scale = group_scale(weight_row, group);
            sum += scale.x * dot(group_quants(weight_row, group, word % words_in_group), four);
            if HAS_OFFSET { sum += scale.y * (four.x + four.y + four.z + four.w); }
        }
    }

    // All outputs are summed at once, by halving, each by its own lanes.
    parts[lane] = sum;
    for (var half = PARTS / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if part < half { parts[lane] += parts[lane + half]; }
    }
    if part == 0u && here {
        y[row * params.y_width + slot * params.outputs + output] = parts[lane] * params.factor;
    }
}
