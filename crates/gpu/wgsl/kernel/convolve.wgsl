// convolve: every second row and band of a convolution of three by three over time and bands; beyond the edges is zero.
//
// Work split   one invocation computes one channel of one band (x) of one row (y). Neighbours compute channels of the same
//              band, so that all of them read the same inputs.
// Reads        x [rows, bands, channels], vectors: outputs × channels × 3 × 3        Writes   y [rows / 2, bands / 2, outputs]
// Constants    LANES

struct Params {
    rows: u32,
    bands: u32,
    channels: u32,
    outputs: u32,
    width: u32,    // of y: half of the bands, times outputs
    weight_at: u32,
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> vectors: array<f32>;
@group(1) @binding(2) var<storage, read> x: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let column = workgroup.x * LANES + lane;
    if column >= params.width { return; }
    let band = column / params.outputs;
    let kernel_at = params.weight_at + (column % params.outputs) * params.channels * 9u;
    var sum = 0.0;
    for (var across = 0u; across < 9u; across++) {
        // One more than the row and the band, so that none is negative.
        let time = 2u * workgroup.y + across / 3u;
        let beside = 2u * band + across % 3u;
        if time == 0u || time > params.rows || beside == 0u || beside > params.bands { continue; }
        let at = ((time - 1u) * params.bands + beside - 1u) * params.channels;
        for (var channel = 0u; channel < params.channels; channel++) {
            sum += vectors[kernel_at + channel * 9u + across] * x[at + channel];
        }
    }
    y[workgroup.y * params.width + column] = sum;
}
