// finish: random numbers, and what happens when a token has been chosen.
//
// Random numbers are those of the CPU: xoshiro128++, two words for a token.

@group(1) @binding(8) var<storage, read_write> state: State;
@group(1) @binding(9) var<storage, read_write> tokens: array<u32>;
@group(1) @binding(10) var<storage, read_write> recent: array<u32>;
@group(1) @binding(11) var<storage, read_write> seen: array<vec2<u32>>;

/// A whole number below `all`, which is a long, each as likely as the others.
fn random_below(all: vec2<u32>) -> vec2<u32> {
    var random = state.random;
    let high = next_word(&random);
    // 53 bits, as f64 has them on the CPU.
    let low = next_word(&random) & 0xfffff800u;
    return long_multiply(all, vec2<u32>(low, high)).zw;
}

fn next_word(random: ptr<function, vec4<u32>>) -> u32 {
    var s = *random;
    let sum = s.x + s.w;
    let word = ((sum << 7u) | (sum >> 25u)) + s.x;
    let shifted = s.y << 9u;
    s.z ^= s.x;
    s.w ^= s.y;
    s.y ^= s.z;
    s.x ^= s.w;
    s.z ^= shifted;
    s.w = (s.w << 11u) | (s.w >> 21u);
    *random = s;
    return word;
}

/// Hands the token to the next step and remembers it. `largest` is the largest key. For one lane alone.
fn finish(token: u32, largest: u32) {
    if largest == NOT_FINITE || largest <= IMPOSSIBLE {
        state.token = 0u;
        state.status = select(2u, 1u, largest == NOT_FINITE);
        tokens[params.slot] = 0u;
        return;
    }
    state.token = token;
    state.status = 0u;
    tokens[params.slot] = token;
    var random = state.random;
    _ = next_word(&random);
    _ = next_word(&random);
    state.random = random;

    if params.window == 0u { return; }
    let slot = state.slot;
    if state.length == params.window {
        let oldest = recent[slot];
        if oldest < params.vocabulary { seen[oldest].x -= 1u; }
    } else {
        state.length += 1u;
    }
    recent[slot] = token;
    seen[token] = vec2<u32>(seen[token].x + 1u, slot);
    state.slot = (slot + 1u) % params.window;
}
