//! The fast kernels of attention against plain loops in double precision, for every way to keep keys and values.
//!
//! Attention's scale is one here, so scores reach hundreds, and a key that is rounded the other way changes a chance by
//! several hundredths. What the kernels stored is therefore compared with what they should have stored, to within one
//! rounding; and what they answered with what follows from the rows that they stored.

use crate::common::{self, Lent};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use rullama_gguf::Format;
use rullama_gpu::{
    CacheFormat, CacheLayout as _, Dialect, GpuOptions, KernelSpec,
    attention::{
        NO_WEIGHT, RowAttention, attend_matrix, attend_tile, attend_tile_grid, cache_heads, query_heads,
        query_heads_grid,
    },
    params::{AttendRowParams, AttendTileParams, CacheHeadsParams, MergeParams, QueryHeadsParams},
};
use rullama_gpu_lab::{Lab, Step};
use rullama_graph::{Ahead, AttendShape, Mask};

const EPS: f32 = 1e-6;

/// Numbers that look normally distributed and are the same in every run.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }

    fn normal(&mut self) -> f32 {
        (0..6).map(|_| self.unit() - 0.5).sum::<f32>() * std::f32::consts::SQRT_2
    }

    fn normals(&mut self, count: usize, scale: f32) -> Vec<f32> {
        (0..count).map(|_| scale * self.normal()).collect()
    }
}

/// One step of one layer.
#[derive(Debug, Clone)]
struct Case {
    layout: CacheFormat,
    heads: u32,
    kv_heads: u32,
    head_width: u32,
    window: Option<u32>,
    capacity: u32,
    position: u32,
    rows: u32,
    /// The layer has no values of its own: raw keys serve.
    keys_are_values: bool,
    /// Only the last row asks.
    last: bool,
    /// Rows that see each other.
    spans: Vec<std::ops::Range<usize>>,
}

impl Case {
    fn new(layout: CacheFormat, [heads, kv_heads, head_width]: [u32; 3]) -> Self {
        let (window, keys_are_values, last, spans) = (None, false, false, Vec::new());
        let (capacity, position, rows) = (64, 0, 1);
        Self {
            layout,
            heads,
            kv_heads,
            head_width,
            window,
            capacity,
            position,
            rows,
            keys_are_values,
            last,
            spans,
        }
    }

    /// A step of a layer that remembers everything.
    fn global(mut self, position: u32, rows: u32) -> Self {
        (self.position, self.rows) = (position, rows);
        self.capacity = position + rows + 3;
        self
    }

    /// A step of a layer whose cache is a ring.
    fn sliding(mut self, window: u32, position: u32, rows: u32) -> Self {
        (self.position, self.rows, self.window) = (position, rows, Some(window));
        self.capacity = window + rows + 5;
        self
    }

    fn shape(&self) -> AttendShape {
        let mask = Mask { window: self.window, ahead: Ahead::Nothing };
        AttendShape { heads: self.heads, kv_heads: self.kv_heads, head_width: self.head_width, mask }
    }

    fn step(&self) -> Step {
        Step { rows: self.rows, position: self.position, spans: self.spans.clone() }
    }

    fn asked_rows(&self) -> u32 {
        if self.last { 1 } else { self.rows }
    }

    fn head_words(&self) -> usize {
        4 * self.layout.head_vectors(self.head_width) as usize
    }

    /// The first word of a head of the row of `position` in the cache.
    fn word(&self, position: u32, kv_head: u32) -> usize {
        (position % self.capacity * self.kv_heads + kv_head) as usize * self.head_words()
    }
}

/// What a step is given.
struct Given {
    /// Queries, keys and values of each row, one after another, behind something else.
    raw: Vec<f32>,
    stride: u32,
    q_at: u32,
    k_at: u32,
    v_at: u32,
    vectors: Vec<f32>,
    turns: Vec<f32>,
    keys: Vec<u32>,
    values: Vec<u32>,
}

const Q_WEIGHT: u32 = 3;

fn given(case: &Case, cached_to: u32) -> Given {
    let mut random = Random(u64::from(case.position * 31 + case.head_width + case.rows));
    let width = case.head_width as usize;
    // All keys have much in common, so that scores are large and yet close together.
    let common = random.normals(width, 8.0);
    let (q_columns, kv_columns) = (case.heads * case.head_width, case.kv_heads * case.head_width);
    let [q_at, k_at, v_at] = [8, 8 + q_columns, 8 + q_columns + kv_columns];
    let stride = 8 + q_columns + 2 * kv_columns;
    let mut raw = Vec::new();
    for _ in 0..case.rows {
        raw.extend(random.normals((8 + q_columns) as usize, 3.0));
        for _ in 0..case.kv_heads {
            raw.extend(common.iter().map(|common| common + 0.1 * random.normal()));
        }
        raw.extend(random.normals(kv_columns as usize, 0.7));
    }
    let mut vectors = random.normals(Q_WEIGHT as usize, 1.0);
    vectors.extend((0..2 * width).map(|_| 1.5 + 0.2 * random.normal()));
    let turns = (0..case.rows as usize * width / 2).flat_map(|_| {
        let angle = 0.1 * random.normal();
        [angle.cos(), angle.sin()]
    });
    let turns = turns.collect();
    let words = case.capacity as usize * case.kv_heads as usize * case.head_words();
    let (mut keys, mut values) = (vec![0; words], vec![0; words]);
    for position in cached_to.saturating_sub(case.capacity)..cached_to {
        for kv_head in 0..case.kv_heads {
            let at = case.word(position, kv_head);
            let key: Vec<f32> = common.iter().map(|common| common + 0.1 * random.normal()).collect();
            keys[at..][..case.head_words()].copy_from_slice(&encode(case.layout, &key));
            let value = random.normals(width, 1.0);
            values[at..][..case.head_words()].copy_from_slice(&encode(case.layout, &value));
        }
    }
    let v_at = if case.keys_are_values { k_at } else { v_at };
    Given { raw, stride, q_at, k_at, v_at, vectors, turns, keys, values }
}

/// A head as the cache keeps it.
fn encode(layout: CacheFormat, head: &[f32]) -> Vec<u32> {
    let bytes = match layout {
        CacheFormat::F32 => return head.iter().map(|value| value.to_bits()).collect(),
        CacheFormat::F16 => stored(Format::F16, head),
        CacheFormat::Q8 => {
            let blocks = stored(Format::Q8_0, head);
            let quants = blocks.chunks(34).flat_map(|block| &block[2..]);
            let scales = blocks.chunks(34).flat_map(|block| &block[..2]);
            let mut bytes: Vec<u8> = quants.chain(scales).copied().collect();
            bytes.resize(16 * layout.head_vectors(head.len() as u32) as usize, 0);
            bytes
        }
    };
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn stored(format: Format, values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() / format.block_len() * format.block_bytes()];
    format.encode(values, &mut bytes).unwrap();
    bytes
}

/// What is left of a head in the cache.
fn decode(layout: CacheFormat, words: &[u32], head_width: usize) -> Vec<f32> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut head = vec![0.0; head_width];
    match layout {
        CacheFormat::F32 => head = words.iter().map(|&word| f32::from_bits(word)).collect(),
        CacheFormat::F16 => Format::F16.decode(&bytes, &mut head).unwrap(),
        CacheFormat::Q8 => {
            let (quants, scales) = bytes.split_at(head_width);
            let blocks = quants.chunks(32).zip(scales.chunks(2));
            let blocks: Vec<u8> = blocks.flat_map(|(quants, scale)| [scale, quants].concat()).collect();
            Format::Q8_0.decode(&blocks, &mut head).unwrap();
        }
    }
    head
}

/// A raw head, normed, weighted and turned.
fn head(raw: &[f32], weight: Option<&[f32]>, turns: Option<&[f32]>) -> Vec<f64> {
    let half = raw.len() / 2;
    let mean = raw.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / raw.len() as f64;
    let scale = 1.0 / (mean + f64::from(EPS)).sqrt();
    let weight = |at: usize| weight.map_or(1.0, |weight| f64::from(weight[at]));
    let mut out: Vec<f64> =
        raw.iter().enumerate().map(|(at, &x)| f64::from(x) * scale * weight(at)).collect();
    for (pair, turn) in turns.into_iter().flat_map(|turns| turns.chunks(2)).enumerate() {
        let (a, b) = (out[pair], out[pair + half]);
        let (cos, sin) = (f64::from(turn[0]), f64::from(turn[1]));
        (out[pair], out[pair + half]) = (a * cos - b * sin, a * sin + b * cos);
    }
    out
}

impl Given {
    fn row(&self, row: u32, at: u32, head: u32, head_width: u32) -> &[f32] {
        &self.raw[(row * self.stride + at + head * head_width) as usize..][..head_width as usize]
    }

    fn weight(&self, at: u32, head_width: u32) -> &[f32] {
        &self.vectors[at as usize..][..head_width as usize]
    }

    fn turns(&self, row: u32, head_width: u32) -> &[f32] {
        &self.turns[(row * head_width) as usize..][..head_width as usize]
    }
}

/// The rows of a step in the cache are what they should be, and all others what they were.
fn check_stored(case: &Case, given: &Given, keys: &[u32], values: &[u32]) {
    let width = case.head_width;
    let (mut left_keys, mut left_values) = (keys.to_vec(), values.to_vec());
    for row in 0..case.rows {
        for kv_head in 0..case.kv_heads {
            let at = case.word(case.position + row, kv_head);
            let range = at..at + case.head_words();
            let weight = given.weight(Q_WEIGHT + width, width);
            let raw = given.row(row, given.k_at, kv_head, width);
            near(case, "key", &keys[range.clone()], &head(raw, Some(weight), Some(given.turns(row, width))));
            let raw = given.row(row, given.v_at, kv_head, width);
            near(case, "value", &values[range.clone()], &head(raw, None, None));
            left_keys[range.clone()].copy_from_slice(&given.keys[range.clone()]);
            left_values[range.clone()].copy_from_slice(&given.values[range]);
        }
    }
    assert!(left_keys == given.keys && left_values == given.values, "{case:?}: other rows are touched");

    fn near(case: &Case, what: &str, words: &[u32], expected: &[f64]) {
        let found = decode(case.layout, words, case.head_width as usize);
        let largest = expected.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
        for (index, (&found, &expected)) in found.iter().zip(expected).enumerate() {
            let allowed = match case.layout {
                CacheFormat::F32 => 2e-6 * largest,
                CacheFormat::F16 => expected.abs() / 2047.0 + 1e-6,
                CacheFormat::Q8 => largest / 127.0 * 0.51,
            };
            let apart = (f64::from(found) - expected).abs();
            assert!(apart <= allowed, "{case:?}: {what} {index} is {found}, expected {expected}");
        }
    }
}

/// What rows that ask should be answered, from what the cache holds.
fn answers(case: &Case, given: &Given, keys: &[u32], values: &[u32]) -> Vec<f64> {
    let width = case.head_width;
    let served = case.heads / case.kv_heads;
    let mask = case.shape().mask;
    let mut out = Vec::new();
    let skipped = case.rows - case.asked_rows();
    let last_seen = |row: u32| {
        let span = case.spans.iter().find(|span| span.contains(&(row as usize)));
        case.position + span.map_or(row, |span| span.end as u32 - 1)
    };
    let first = mask.first((case.position + skipped) as usize) as u32;
    let end = (skipped..case.rows).map(last_seen).max().unwrap() + 1;
    let decoded = |words: &[u32], kv_head: u32| -> Vec<Vec<f32>> {
        let head = |position| &words[case.word(position, kv_head)..][..case.head_words()];
        (first..end).map(|position| decode(case.layout, head(position), width as usize)).collect()
    };
    let cached: Vec<_> =
        (0..case.kv_heads).map(|head| (decoded(keys, head), decoded(values, head))).collect();
    for row in skipped..case.rows {
        let (from, to) = (mask.first((case.position + row) as usize) as u32, last_seen(row) + 1);
        let seen = (from - first) as usize..(to - first) as usize;
        for head_index in 0..case.heads {
            let raw = given.row(row, given.q_at, head_index, width);
            let weight = given.weight(Q_WEIGHT, width);
            let query = head(raw, Some(weight), Some(given.turns(row, width)));
            let (keys, values) = &cached[(head_index / served) as usize];
            let dot = |key: &Vec<f32>| query.iter().zip(key).map(|(q, &k)| q * f64::from(k)).sum::<f64>();
            let scores: Vec<f64> = keys[seen.clone()].iter().map(dot).collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = scores.iter().map(|score| (score - most).exp()).sum();
            let mut sum = vec![0.0; width as usize];
            for (score, value) in scores.iter().zip(&values[seen.clone()]) {
                let chance = (score - most).exp() / total;
                sum.iter_mut().zip(value).for_each(|(sum, &value)| *sum += chance * f64::from(value));
            }
            out.extend(sum);
        }
    }
    out
}

fn compare(case: &Case, what: &str, found: &[f32], expected: &[f64]) {
    let largest = expected.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let apart = |(&found, &expected): (&f32, &f64)| (f64::from(found) - expected).abs();
    let worst =
        found.iter().zip(expected).map(apart).fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a });
    assert!(worst <= 1e-4 * largest, "{case:?}: {what} is {:.1e} of {largest} apart", worst / largest);
}

fn gpu() -> Lent {
    common::gpu(&GpuOptions::default().floor())
}

/// Runs a test on what WebGPU guarantees, and with subgroups where the GPU has them.
fn with_and_without_subgroups(test: impl Fn(&Lab<'_>, Option<u32>)) {
    test(&Lab::new(&gpu()), None);
    let gpu = common::gpu(&GpuOptions::default());
    if let Some(lanes) = gpu.profile().subgroup() {
        test(&Lab::new(&gpu), Some(lanes));
    }
}

fn words(lab: &Lab<'_>, buffer: &wgpu::Buffer) -> Vec<u32> {
    pollster::block_on(lab.read(buffer)).unwrap().iter().map(|value| value.to_bits()).collect()
}

/// One row, through `attend_row` and `merge`.
fn check_row(
    (lab, subgroup): (&Lab<'_>, Option<u32>),
    case: &Case,
    stores_kv: bool,
    tune: impl Fn(&mut RowAttention),
) {
    let mut attention = RowAttention::new(case.shape(), case.layout, stores_kv, subgroup);
    tune(&mut attention);
    let position = case.position + case.rows - 1;
    let given = given(case, position + u32::from(!stores_kv));
    let (keys, values) = (lab.words(&given.keys), lab.words(&given.values));
    let (x, vectors, turns) = (lab.floats(&given.raw), lab.floats(&given.vectors), lab.floats(&given.turns));
    let [sums, peaks] = attention.scratch_bytes().map(|bytes| lab.zeros(bytes));
    let y = lab.zeros(4 * u64::from(case.heads * case.head_width));
    let window = case.window.unwrap_or(0);
    // The row that asks is the last one; its products lie where it does.
    let row_at = (case.rows - 1) * given.stride;
    let params = AttendRowParams {
        heads: case.heads,
        kv_heads: case.kv_heads,
        window,
        capacity: case.capacity,
        last: 1,
        q_at: row_at + given.q_at,
        q_stride: 0,
        k_at: row_at + given.k_at,
        v_at: row_at + given.v_at,
        v_stride: 0,
        q_weight: Q_WEIGHT,
        k_weight: Q_WEIGHT + case.head_width,
        eps: EPS,
    };
    let buffers = [
        ("q", &x),
        ("v", &x),
        ("vectors", &vectors),
        ("angles", &turns),
        ("keys", &keys),
        ("values", &values),
        ("sums", &sums),
        ("peaks", &peaks),
        ("y", &y),
    ];
    let grid = attention.attend_grid(position);
    let attend = lab.prepare(&attention.attend(), &[params.into()], &buffers, grid);
    let params = MergeParams { heads: case.heads, window, last: 1 };
    let merge = lab.prepare(&attention.merge(), &[params.into()], &buffers, attention.merge_grid());
    lab.run(&[attend, merge], &case.step());
    let found = pollster::block_on(lab.read(&y)).unwrap();
    let (keys, values) = (words(lab, &keys), words(lab, &values));
    if stores_kv {
        check_stored(case, &given, &keys, &values);
    } else {
        assert!(keys == given.keys && values == given.values, "{case:?}: a borrowed cache is written to");
    }
    let asked = Case { last: true, ..case.clone() };
    compare(case, "attend_row", &found, &answers(&asked, &given, &keys, &values));
}

/// Several rows, through `query_heads`, `cache_heads` and `attend_tile`.
fn check_tile(lab: &Lab<'_>, case: &Case) {
    let width = case.head_width;
    let given = given(case, case.position);
    let (keys, values) = (lab.words(&given.keys), lab.words(&given.values));
    let (x, vectors, turns) = (lab.floats(&given.raw), lab.floats(&given.vectors), lab.floats(&given.turns));
    let rows = case.asked_rows();
    let bytes = 4 * u64::from(rows * case.heads * width);
    let (queries, y) = (lab.zeros(bytes), lab.zeros(bytes));
    let q_at = given.q_at + (case.rows - rows) * given.stride;
    let last = u32::from(case.last);
    let params = QueryHeadsParams {
        heads: case.heads,
        q_at,
        q_stride: given.stride,
        q_weight: Q_WEIGHT,
        last,
        eps: EPS,
    };
    let query = lab.prepare(
        &query_heads(width),
        &[params.into()],
        &[("q", &x), ("vectors", &vectors), ("angles", &turns), ("y", &queries)],
        query_heads_grid(case.heads, rows),
    );
    let params = CacheHeadsParams {
        kv_heads: case.kv_heads,
        capacity: case.capacity,
        k_at: given.k_at,
        k_stride: given.stride,
        v_at: given.v_at,
        v_stride: given.stride,
        k_weight: Q_WEIGHT + width,
        eps: EPS,
    };
    let cache = lab.prepare(
        &cache_heads(case.layout, width),
        &[params.into()],
        &[
            ("k", &x),
            ("v", &x),
            ("vectors", &vectors),
            ("angles", &turns),
            ("keys", &keys),
            ("values", &values),
        ],
        [case.kv_heads, case.rows, 1],
    );
    let params = AttendTileParams {
        heads: case.heads,
        kv_heads: case.kv_heads,
        window: case.window.unwrap_or(0),
        capacity: case.capacity,
        last,
    };
    let attend = lab.prepare(
        &attend_tile(case.layout, width),
        &[params.into()],
        &[("q", &queries), ("keys", &keys), ("values", &values), ("y", &y)],
        attend_tile_grid(&case.shape(), rows),
    );
    lab.run(&[query, cache, attend], &case.step());
    let found = pollster::block_on(lab.read(&y)).unwrap();
    let (keys, values) = (words(lab, &keys), words(lab, &values));
    check_stored(case, &given, &keys, &values);
    compare(case, "attend_tile", &found, &answers(case, &given, &keys, &values));
}

/// The kernels that tests and plans can ask for are valid WGSL.
#[test]
fn kernels_are_valid() {
    for head_width in [8, 64, 72, 80] {
        validate(&attend_matrix(head_width, 48 << 10).unwrap());
    }
    assert_eq!(attend_matrix(256, 48 << 10), None);
    for layout in CacheFormat::ALL {
        for head_width in [32, 40, 256, 512].into_iter().filter(|&width| layout.fits(width)) {
            validate(&cache_heads(layout, head_width));
            validate(&query_heads(head_width));
            validate(&attend_tile(layout, head_width));
            for subgroup in [None, Some(8), Some(16), Some(32), Some(64), Some(128)] {
                let shape = AttendShape { heads: 12, kv_heads: 1, head_width, mask: Mask::GLOBAL };
                for stores_kv in [true, false] {
                    let attention = RowAttention::new(shape, layout, stores_kv, subgroup);
                    validate(&attention.attend());
                    validate(&attention.merge());
                }
            }
        }
    }
}

/// Core WGSL and, where a recipe asks for them, subgroups. naga holds `unpack2x16float` to be a capability.
fn validate(spec: &KernelSpec) {
    let source = spec.compose(Dialect::Naga);
    let module = naga::front::wgsl::parse_str(&source)
        .unwrap_or_else(|error| panic!("{spec}: {}", error.emit_to_string(&source)));
    let mut capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    capabilities.set(Capabilities::SUBGROUP, spec.uses_subgroups());
    let on_matrices = Capabilities::SHADER_FLOAT16 | Capabilities::COOPERATIVE_MATRIX;
    capabilities.set(on_matrices, spec.uses_matrices());
    Validator::new(ValidationFlags::all(), capabilities)
        .validate(&module)
        .unwrap_or_else(|error| panic!("{spec}: {}", error.emit_to_string(&source)));
}

#[test]
fn a_row_of_a_global_layer() {
    with_and_without_subgroups(|lab, subgroup| {
        // Each width is a kernel, which a software adapter takes long to compile: the small one is compiled for every way to
        // keep a cache.
        for layout in CacheFormat::ALL {
            for position in [0, 1, 63, 64, 700] {
                let case = Case::new(layout, [16, 8, 64]).global(position, 1);
                check_row((lab, subgroup), &case, true, |_| {});
            }
        }
        for position in [0, 299] {
            let case = Case::new(CacheFormat::F16, [8, 1, 512]).global(position, 1);
            check_row((lab, subgroup), &case, true, |_| {});
        }
        let case = Case::new(CacheFormat::F16, [8, 4, 128]).global(130, 1);
        check_row((lab, subgroup), &case, true, |_| {});
    });
}

#[test]
fn a_row_of_a_sliding_layer() {
    with_and_without_subgroups(|lab, subgroup| {
        // Each case but for its window and position is a kernel. Every way to keep a cache; without keys and values of its
        // own; and other shapes, with subgroups or without.
        for layout in CacheFormat::ALL {
            let case = Case::new(layout, [8, 1, 256]).sliding(512, 600, 1);
            check_row((lab, subgroup), &case, true, |_| {});
        }
        let case = Case::new(CacheFormat::F16, [8, 1, 256]).sliding(512, 600, 1);
        check_row((lab, subgroup), &case, false, |_| {});
        let others = match subgroup {
            None => [(CacheFormat::Q8, [8, 2, 256], 100, 99), (CacheFormat::F16, [4, 2, 256], 33, 1000)],
            Some(_) => [(CacheFormat::F32, [32, 16, 256], 20, 7), (CacheFormat::Q8, [4, 1, 256], 128, 129)],
        };
        for (layout, shape, window, position) in others {
            let case = Case::new(layout, shape).sliding(window, position, 1);
            check_row((lab, subgroup), &case, position != 129, |_| {});
        }
    });
}

/// Widths that are multiples of eight and of nothing else.
#[test]
fn an_odd_width() {
    with_and_without_subgroups(|lab, subgroup| {
        check_row((lab, subgroup), &Case::new(CacheFormat::F16, [4, 2, 40]).global(200, 1), true, |_| {});
        let (layout, width) = subgroup.map_or((CacheFormat::F32, 200), |_| (CacheFormat::F16, 328));
        let case = Case::new(layout, [3, 1, width]).sliding(50, 333, 1);
        check_row((lab, subgroup), &case, subgroup.is_none(), |_| {});
    });
    let gpu = gpu();
    let lab = Lab::new(&gpu);
    check_tile(&lab, &Case::new(CacheFormat::F32, [4, 2, 40]).global(20, 33));
    check_tile(&lab, &Case::new(CacheFormat::F16, [3, 1, 328]).sliding(50, 60, 7));
}

/// However the work is shared, the answer is the same.
#[test]
fn a_row_in_other_shares() {
    with_and_without_subgroups(|lab, subgroup| {
        let shares = subgroup.map_or([(64, 1, 16), (7, 16, 32)], |_| [(7, 16, 8), (1, 5, 8)]);
        for (split_keys, most_splits, parts) in shares {
            for position in [2, 410] {
                let case = Case::new(CacheFormat::F16, [8, 2, 64]).global(position, 1);
                check_row((lab, subgroup), &case, true, |attention| {
                    attention.parts = parts.min(attention.subgroup.unwrap_or(parts));
                    (attention.split_keys, attention.most_splits) = (split_keys, most_splits);
                });
            }
        }
    });
}

/// A borrowing layer can also ask for the last row of a step of several; a layer may have no values of its own.
#[test]
fn a_row_after_others_and_keys_for_values() {
    with_and_without_subgroups(|lab, subgroup| {
        let case = Case::new(CacheFormat::F16, [8, 1, 256]).sliding(40, 120, 7);
        check_row((lab, subgroup), &case, false, |_| {});
        let case = Case::new(CacheFormat::F16, [8, 4, 64]).global(77, 1);
        check_row((lab, subgroup), &Case { keys_are_values: true, ..case }, true, |_| {});
    });
    let gpu = gpu();
    let lab = Lab::new(&gpu);
    let case = Case::new(CacheFormat::F16, [8, 2, 64]).global(77, 5);
    check_tile(&lab, &Case { keys_are_values: true, ..case });
}

/// The widths that are compiled for rows: the small one for every way to keep a cache.
fn tile_cases() -> impl Iterator<Item = (CacheFormat, u32)> {
    let wide = [(CacheFormat::F16, 256), (CacheFormat::Q8, 256), (CacheFormat::F16, 512)];
    CacheFormat::ALL.into_iter().map(|layout| (layout, 64)).chain(wide)
}

#[test]
fn rows_of_a_global_layer() {
    let gpu = gpu();
    let lab = Lab::new(&gpu);
    for (layout, width) in tile_cases() {
        let cases: &[([u32; 2], u32, u32)] = match width {
            64 => &[([4, 2], 3, 130), ([16, 8], 61, 33)],
            256 => &[([8, 1], 0, 64), ([2, 1], 300, 2)],
            _ => &[([8, 1], 100, 7)],
        };
        for &([heads, kv_heads], position, rows) in cases {
            check_tile(&lab, &Case::new(layout, [heads, kv_heads, width]).global(position, rows));
        }
    }
}

#[test]
fn rows_of_a_sliding_layer() {
    let gpu = gpu();
    let lab = Lab::new(&gpu);
    for (layout, width) in tile_cases() {
        let cases: &[([u32; 2], u32, u32, u32)] = match width {
            64 => &[([4, 1], 33, 90, 130), ([4, 4], 64, 0, 64), ([2, 1], 3, 1000, 7)],
            256 => &[([8, 1], 100, 333, 33)],
            _ => &[([2, 2], 70, 200, 2)],
        };
        for &([heads, kv_heads], window, position, rows) in cases {
            let case = Case::new(layout, [heads, kv_heads, width]).sliding(window, position, rows);
            check_tile(&lab, &case);
        }
    }
}

/// Pictures see themselves whole, and a canvas sees all of itself.
#[test]
fn rows_that_see_ahead() {
    let gpu = gpu();
    let lab = Lab::new(&gpu);
    for layout in CacheFormat::ALL {
        let case = Case::new(layout, [4, 1, 64]).global(17, 130);
        check_tile(&lab, &Case { spans: vec![3..60, 60..64, 90..130], ..case });
        let case = Case::new(layout, [2, 1, 64]).sliding(20, 100, 40);
        #[expect(clippy::single_range_in_vec_init, reason = "one span of 40 rows")]
        let spans = vec![0..40];
        check_tile(&lab, &Case { spans, ..case });
    }
}

#[test]
fn the_last_of_several_rows() {
    let gpu = gpu();
    let lab = Lab::new(&gpu);
    let case = Case::new(CacheFormat::Q8, [8, 2, 256]).sliding(50, 120, 33);
    check_tile(&lab, &Case { last: true, ..case });
    for layout in CacheFormat::ALL {
        let case = Case::new(layout, [4, 1, 64]).global(9, 64);
        check_tile(&lab, &Case { last: true, ..case });
    }
}

/// Weights of norms are optional.
#[test]
fn a_norm_without_a_weight() {
    let gpu = gpu();
    let lab = Lab::new(&gpu);
    let x = Random(1).normals(64, 5.0);
    let turns: Vec<f32> = [1.0, 0.0].repeat(32);
    let (q, turns, y) = (lab.floats(&x), lab.floats(&turns), lab.zeros(256));
    let params = QueryHeadsParams { heads: 1, q_at: 0, q_stride: 64, q_weight: NO_WEIGHT, last: 0, eps: EPS };
    let kernel = lab.prepare(
        &query_heads(64),
        &[params.into()],
        &[("q", &q), ("vectors", &turns), ("angles", &turns), ("y", &y)],
        query_heads_grid(1, 1),
    );
    lab.run(&[kernel], &Step::new(1, 0));
    let found = pollster::block_on(lab.read(&y)).unwrap();
    for (found, expected) in found.iter().zip(head(&x, None, None)) {
        assert!((f64::from(*found) - expected).abs() < 1e-5);
    }
}
