// weight: numbers in proportion to probabilities, as longs. The likeliest token has UNIT · 2³².
//
// Constants    UNIT (so small that the weights of all tokens together are below 2⁶³)

/// How far a logit is below the largest; nothing is further than this says of an impossible token.
fn below(key: u32, largest: u32) -> f32 {
    if key == largest { return 0.0; }
    if largest >= CERTAIN || key <= IMPOSSIBLE { return -3.0e38; }
    return logit_of(key) - logit_of(largest);
}

fn passes_min_p(key: u32, largest: u32) -> bool {
    return (params.filters & MIN_P) == 0u || below(key, largest) >= params.lowest;
}

fn weight(key: u32, largest: u32, temperature: f32) -> vec2<u32> {
    let distance = below(key, largest);
    // The quotient could be infinite, so this is asked before it is formed.
    if distance < -87.0 * temperature { return NOTHING; }
    let scaled = exponential(distance / temperature) * f32(UNIT);
    let whole = floor(scaled);
    return vec2<u32>(u32((scaled - whole) * 4294967296.0), u32(whole));
}

/// e to the power of `x`, from −87 to 0. Written out as on the CPU: that of WGSL may be many units off.
fn exponential(x: f32) -> f32 {
    let twos = floor(x * 1.4426950408889634 + 0.5);
    let rest = (x - twos * 0.693359375) + twos * 2.12194440e-4;
    var sum = 1.9875691500e-4;
    sum = sum * rest + 1.3981999507e-3;
    sum = sum * rest + 8.3334519073e-3;
    sum = sum * rest + 4.1665795894e-2;
    sum = sum * rest + 1.6666665459e-1;
    sum = sum * rest + 5.0000001201e-1;
    sum = sum * (rest * rest) + rest + 1.0;
    return min(sum * bitcast<f32>(u32(i32(twos) + 127) << 23u), 1.0);
}
