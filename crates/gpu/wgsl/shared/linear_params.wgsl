// linear_params: what the bodies of `linear` are told. One dispatch covers the rows of a weight that lie in one shard.

struct Params {
    plane_at: vec4<u32>,       // first word of each plane
    plane_words: vec4<u32>,    // words of a row in each plane
    width: u32,                // values in a row of the weight
    outputs: u32,              // columns of y that the weight makes
    first_row: u32,            // of the weight, in each matrix of its tensor
    matrix_rows: u32,          // rows of each matrix of the tensor
    shard_first: u32,          // first row of the tensor that this buffer holds
    shard_rows: u32,           // how many it holds
    pair: u32,                 // rows from a gate to its up, where these are computed together
    x_at: u32,                 // first float of x
    x_stride: u32,             // floats from a row of x to the next
    expert_stride: u32,        // floats from one expert's input to the next: zero where they share it
    y_at: u32,
    y_stride: u32,
    routing_width: u32,
    other_at: u32,             // what the epilogue multiplies with
    other_stride: u32,
    factor: f32,               // all values of the weight are multiplied with this
    cap: f32,                  // of a soft cap
    low: f32,                  // the least that a clamp leaves
    high: f32,                 // the most
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> weight: array<vec4<u32>>;
