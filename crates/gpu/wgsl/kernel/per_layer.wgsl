// per_layer: the embeddings that a token brings for every layer: (rms_norm(projected · before) + row · scale) · by.
//
// Work split   one workgroup computes one layer's group of columns (x) of one row (y); lanes take four values at a time.
// Reads        projected [rows, groups · group], tokens, weight (the table) as packed planes, vectors
// Writes       y, as projected
// Slots        format: GROUP, group_scale, group_quants     reduce: workgroup_sum     entry
// Constants    LANES

struct Params {
    plane_at: vec4<u32>,
    plane_words: vec4<u32>,
    group: u32,
    groups: u32,
    norm_at: u32,
    eps: f32,
    before: f32,
    scale: f32,
    by: f32,
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> weight: array<vec4<u32>>;
@group(1) @binding(2) var<storage, read> projected: array<vec4<f32>>;
@group(1) @binding(3) var<storage, read> tokens: array<u32>;
@group(1) @binding(4) var<storage, read> vectors: array<vec4<f32>>;
@group(1) @binding(5) var<storage, read_write> y: array<vec4<f32>>;

fn kernel(workgroup: vec3<u32>, lane: u32) {
    let fours = params.group / 4u;
    let at = (workgroup.y * params.groups + workgroup.x) * fours;
    let row = workgroup.y;
    let token = tokens[step.row[row].token];
    var squares = 0.0;
    for (var four = lane; four < fours; four += LANES) {
        let value = projected[at + four] * params.before;
        squares += dot(value, value);
    }
    let norm = inverse_root(workgroup_sum(squares, lane) / f32(params.group) + params.eps) * params.before;
    let words_in_group = GROUP / 4u;
    for (var four = lane; four < fours; four += LANES) {
        let word = workgroup.x * fours + four;
        let scale = group_scale(token, word / words_in_group);
        var table_row = scale.x * group_quants(token, word / words_in_group, word % words_in_group);
        if HAS_OFFSET { table_row += vec4<f32>(scale.y); }
        let norm_weight = vectors[params.norm_at / 4u + four];
        y[at + four] = (projected[at + four] * norm * norm_weight + table_row * params.scale) * params.by;
    }
}
