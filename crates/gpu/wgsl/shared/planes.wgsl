// planes: reads a packed weight, whose planes lie one after another in one buffer.
//
// Planes start at whole quads of four words, 16 bytes, the most that a lane can load at once. Rows of plane 0 are
// whole quads in every format; a fragment reads quads or pairs of another plane only where its rows are whole
// quads or pairs too.
//
// On top of these a format fragment has two ways to read, where every value is scale · quant + offset:
//
// group_scale(row, group)          scale and offset of a group of GROUP values
// group_quants(row, group, word)   quants 4 · word to 4 · word + 3 of a group
//
// chunk_scales(row, chunk)         scale and offset of the first 16 values of a chunk of 32, then of the other 16
// chunk_quants(row, chunk)         the quants of a chunk, four in each
//
// chunk_bytes(row, chunk)          the same as bytes, in formats whose quants are whole numbers; WIDE_BYTES says that they
//                                  go beyond 127 and are not signed
//
// Chunks serve kernels that read whole rows: they take the fewest loads, and every index is a constant, so that
// quants stay in registers.

fn plane0_at(row: u32) -> u32 { return params.plane_at.x + row * params.plane_words.x; }
fn plane1_at(row: u32) -> u32 { return params.plane_at.y + row * params.plane_words.y; }
fn plane2_at(row: u32) -> u32 { return params.plane_at.z + row * params.plane_words.z; }

fn word_at(at: u32) -> u32 { return weight[at >> 2u][at & 3u]; }

fn plane0(row: u32, word: u32) -> u32 { return word_at(plane0_at(row) + word); }
fn plane1(row: u32, word: u32) -> u32 { return word_at(plane1_at(row) + word); }
fn plane2(row: u32, word: u32) -> u32 { return word_at(plane2_at(row) + word); }

// Words 4 · quad to 4 · quad + 3 of a row, in one load.
fn plane0_quad(row: u32, quad: u32) -> vec4<u32> { return weight[(plane0_at(row) >> 2u) + quad]; }
fn plane1_quad(row: u32, quad: u32) -> vec4<u32> { return weight[(plane1_at(row) >> 2u) + quad]; }

// The two words from an even one on. One load of the quad around them, because two would touch the same bytes.
fn pair_at(at: u32) -> vec2<u32> {
    let quad = weight[at >> 2u];
    return select(quad.xy, quad.zw, (at & 2u) != 0u);
}

// Words 2 · pair and 2 · pair + 1 of a row.
fn plane0_pair(row: u32, pair: u32) -> vec2<u32> { return pair_at(plane0_at(row) + 2u * pair); }
fn plane1_pair(row: u32, pair: u32) -> vec2<u32> { return pair_at(plane1_at(row) + 2u * pair); }
fn plane2_pair(row: u32, pair: u32) -> vec2<u32> { return pair_at(plane2_at(row) + 2u * pair); }

// A chunk as bytes: words 0, 2, 4 and 6 of it, and words 1, 3, 5 and 7, which is how the low and the high nibbles of a
// quad come.
struct Bytes { even: vec4<u32>, odd: vec4<u32> }

// A chunk of unsigned bytes: words 0, 2, 4 and 6 of it, and words 1, 3, 5 and 7, which is how the low and the high
// nibbles of a quad come.
fn unsigned_bytes(even: vec4<u32>, odd: vec4<u32>) -> array<vec4<f32>, 8> {
    return array<vec4<f32>, 8>(
        vec4<f32>(unpack4xU8(even.x)), vec4<f32>(unpack4xU8(odd.x)),
        vec4<f32>(unpack4xU8(even.y)), vec4<f32>(unpack4xU8(odd.y)),
        vec4<f32>(unpack4xU8(even.z)), vec4<f32>(unpack4xU8(odd.z)),
        vec4<f32>(unpack4xU8(even.w)), vec4<f32>(unpack4xU8(odd.w)));
}

// A chunk of signed bytes, likewise.
fn signed_bytes(even: vec4<u32>, odd: vec4<u32>) -> array<vec4<f32>, 8> {
    return array<vec4<f32>, 8>(
        vec4<f32>(unpack4xI8(even.x)), vec4<f32>(unpack4xI8(odd.x)),
        vec4<f32>(unpack4xI8(even.y)), vec4<f32>(unpack4xI8(odd.y)),
        vec4<f32>(unpack4xI8(even.z)), vec4<f32>(unpack4xI8(odd.z)),
        vec4<f32>(unpack4xI8(even.w)), vec4<f32>(unpack4xI8(odd.w)));
}

// A word of four-bit codes of a group whose plane 0 has them in nibbles, and a whole chunk of them.
fn nibble_word(row: u32, group: u32, word: u32) -> u32 {
    return (plane0(row, 4u * group + (word >> 1u)) >> (4u * (word & 1u))) & 0x0f0f0f0fu;
}

fn nibble_bytes(row: u32, chunk: u32) -> Bytes {
    let quad = plane0_quad(row, chunk);
    let lower = vec4<u32>(0x0f0f0f0fu);
    return Bytes(quad & lower, (quad >> vec4<u32>(4u)) & lower);
}

// The same of five-bit quants, whose fifth bits are in plane 2: each is the upper five bits of its byte.
fn five_bit_word(row: u32, group: u32, word: u32) -> u32 {
    return (nibble_word(row, group, word) << 3u) | ((plane2(row, group) << word) & 0x80808080u);
}

fn five_bit_bytes(row: u32, chunk: u32) -> Bytes {
    let quad = plane0_quad(row, chunk);
    let fifth = vec4<u32>(plane2(row, chunk));
    let low = vec4<u32>(0x78787878u);
    let top = vec4<u32>(0x80808080u);
    return Bytes(
        ((quad << vec4<u32>(3u)) & low) | ((fifth << vec4<u32>(0u, 2u, 4u, 6u)) & top),
        ((quad >> vec4<u32>(1u)) & low) | ((fifth << vec4<u32>(1u, 3u, 5u, 7u)) & top));
}

// What four-bit codes name on a fixed curve, whose levels are −127 −104 −83 −65 −49 −35 −22 −10 1 13 25 38 53 69 89 113:
// this quartic passes within 0.44 of every one of them, so rounding gives them exactly. Arithmetic, because every lane
// would index a table at another place.
fn curve_level(code: vec4<f32>) -> vec4<f32> {
    return round((((0.001586043 * code + 0.03108644) * code - 1.371927) * code + 24.17383) * code - 126.567);
}

fn curve_levels(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let bytes = nibble_bytes(row, chunk);
    let codes = unsigned_bytes(bytes.even, bytes.odd);
    return array<vec4<f32>, 8>(
        curve_level(codes[0]), curve_level(codes[1]), curve_level(codes[2]), curve_level(codes[3]),
        curve_level(codes[4]), curve_level(codes[5]), curve_level(codes[6]), curve_level(codes[7]));
}
