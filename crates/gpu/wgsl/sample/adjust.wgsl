// adjust: suppression, bias and penalties, applied to the logits in place before anything else looks at them.
//
// Work split   a workgroup changes its own RANGE of logits. All workgroups read all of the list of biases and all recent
//              tokens, which are few beside the logits.
// Constants    LANES, RANGE

@group(1) @binding(1) var<storage, read_write> logits: array<u32>;
@group(1) @binding(2) var<storage, read> bias: array<vec2<u32>>;      // id, bits
@group(1) @binding(8) var<storage, read> state: State;
@group(1) @binding(10) var<storage, read> recent: array<u32>;
@group(1) @binding(11) var<storage, read> seen: array<vec2<u32>>;     // how often, and the slot it was last seen in

fn adjust(first: u32, lane: u32) {
    let row = first_logit();
    for (var at = lane; at < params.biases; at += LANES) {
        let id = bias[at].x;
        // Ids below the first wrap around.
        if id - first < RANGE { logits[row + id] = biased(logits[row + id], bias[at].y); }
    }
    storageBarrier();
    let slots = min(state.length, params.window);
    for (var slot = lane; slot < slots; slot += LANES) {
        let id = recent[slot];
        if id - first < RANGE && id < params.vocabulary {
            // Of the slots of a token one speaks for all.
            if seen[id].y == slot { logits[row + id] = penalised(logits[row + id], seen[id].x); }
        }
    }
    storageBarrier();
}

fn biased(logit: u32, bias: u32) -> u32 {
    // A logit that is not finite must be found, even that of a suppressed token.
    if (logit & 0x7f800000u) == 0x7f800000u { return logit; }
    if bias == 0xff800000u { return SUPPRESSED; }
    return within_range(bitcast<u32>(bitcast<f32>(logit) + bitcast<f32>(bias)));
}

fn penalised(bits: u32, count: u32) -> u32 {
    if (bits & 0x7f800000u) == 0x7f800000u { return bits; }
    let logit = bitcast<f32>(bits);
    var repeated = logit / params.repeat;
    // Dividing a number below zero would make the token more likely.
    if logit <= 0.0 { repeated = logit * params.repeat; }
    return within_range(bitcast<u32>(repeated - (f32(count) * params.frequency + params.presence)));
}

/// A finite logit that a bias or a penalty took beyond all numbers becomes the largest of its sign: the model is sound.
fn within_range(bits: u32) -> u32 {
    return select(bits, bits - 1u, (bits & 0x7fffffffu) == 0x7f800000u);
}
