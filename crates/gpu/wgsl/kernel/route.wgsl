// route: the most probable experts of a row, and their weights.
//
// Work split   one invocation serves one row (y): experts are few, and tokens of a step are many.
// Reads        logits [rows, experts]        Writes   y [rows, 2 · used]: numbers, then weights
// Constants    LANES

struct Params { experts: u32, used: u32 }

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> logits: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;

const SMALLEST_SUM: f32 = 6.103515625e-5;

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>) {
    let at = workgroup.y * params.experts;
    let out = workgroup.y * 2u * params.used;
    var most = logits[at];
    for (var e = 1u; e < params.experts; e++) { most = max(most, logits[at + e]); }
    var total = 0.0;
    for (var e = 0u; e < params.experts; e++) { total += exp(logits[at + e] - most); }

    // Each time the best of those that come after the one before: smaller, or as large with a higher number.
    var before = most;
    var before_expert = -1;
    var sum = 0.0;
    for (var slot = 0u; slot < params.used; slot++) {
        var best = -3.0e38;
        var best_expert = 0;
        for (var e = 0; e < i32(params.experts); e++) {
            let logit = logits[at + u32(e)];
            let later = logit < before || (logit == before && e > before_expert);
            if later && logit > best {
                best = logit;
                best_expert = e;
            }
        }
        let chance = exp(best - most) / total;
        y[out + slot] = f32(best_expert);
        y[out + params.used + slot] = chance;
        sum += chance;
        before = best;
        before_expert = best_expert;
    }
    for (var slot = 0u; slot < params.used; slot++) {
        y[out + params.used + slot] /= max(sum, SMALLEST_SUM);
    }
}
