// embed: the rows of a table that the step's tokens name, times a factor. Soft rows are
// taken as they are, or have a token like all others.
//
// Work split   one workgroup copies one row; lanes walk along it in steps of four values.
// Reads        tokens, soft_rows [soft rows, width], weight as packed planes        Writes   y [rows, width]
// Slots        format: GROUP, group_scale, group_quants
// Constants    LANES

struct Params {
    plane_at: vec4<u32>,
    plane_words: vec4<u32>,
    width: u32,
    shard_first: u32,    // first row of the table that this buffer holds
    shard_rows: u32,     // how many it holds
    factor: f32,
    takes_soft: u32,     // one: soft rows are taken as they are
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> weight: array<vec4<u32>>;
@group(1) @binding(2) var<storage, read> tokens: array<u32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;
@group(1) @binding(4) var<storage, read> soft_rows: array<f32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = workgroup.y;
    if row >= step.rows { return; }
    let soft = step.row[row].soft;
    if soft > 0u && params.takes_soft == 1u {
        for (var column = lane; column < params.width; column += LANES) {
            y[row * params.width + column] = soft_rows[(soft - 1u) * params.width + column];
        }
        return;
    }
    let table_row = tokens[step.row[row].token] - params.shard_first;
    // Tokens before the shard wrap around to large numbers. Another dispatch copies those.
    if table_row >= params.shard_rows { return; }
    let words_in_group = GROUP / 4u;
    for (var word = lane; 4u * word < params.width; word += LANES) {
        let group = word / words_in_group;
        let scale = group_scale(table_row, group);
        var four = scale.x * group_quants(table_row, group, word % words_in_group);
        if HAS_OFFSET { four += vec4<f32>(scale.y); }
        for (var i = 0u; i < 4u; i++) {
            let column = 4u * word + i;
            if column < params.width { y[row * params.width + column] = four[i] * params.factor; }
        }
    }
}
