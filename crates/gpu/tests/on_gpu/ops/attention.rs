//! Heads, caches and masks.

use rullama_gguf::Format;
use rullama_gpu::CacheFormat;
use rullama_graph::{AttendShape, CacheInfo, Mask, Rope, Tensor};

use super::case::{Case, Gpus, Maker};

const EPS: f32 = 1e-6;

/// One attention layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layer {
    pub(crate) heads: u32,
    pub(crate) kv_heads: u32,
    pub(crate) head_width: u32,
    pub(crate) window: Option<u32>,
    pub(crate) keys_are_values: bool,
    /// Of queries, keys, values and output.
    pub(crate) formats: [Format; 4],
    /// Only from the last row.
    pub(crate) last: bool,
}

impl Layer {
    pub(crate) const fn new(heads: u32, kv_heads: u32, head_width: u32, window: Option<u32>) -> Self {
        let formats = [Format::Q8_0; 4];
        Self { heads, kv_heads, head_width, window, keys_are_values: false, formats, last: false }
    }

    fn shape(&self) -> AttendShape {
        let mask = self.window.map_or(Mask::GLOBAL, Mask::sliding);
        AttendShape { heads: self.heads, kv_heads: self.kv_heads, head_width: self.head_width, mask }
    }

    fn rope(&self) -> Rope {
        Rope { pairs: self.head_width / 4, ..Rope::new(self.head_width, 1e4) }
    }

    /// From a normed input to what is added to the stream; what is attended to is a donor's, or its own.
    pub(crate) fn forward<'g>(
        &self,
        make: &'g Maker,
        x: Tensor<'g>,
        donor: Option<Tensor<'g>>,
    ) -> (Tensor<'g>, Tensor<'g>) {
        let Self { heads, kv_heads, head_width, window, formats, .. } = *self;
        let width = x.width();
        let stored = donor.unwrap_or_else(|| {
            let cache = make.builder.cache(CacheInfo { layer: 0, kv_heads, head_width, window });
            let k = x.linear(make.matrix(formats[1], width, kv_heads * head_width));
            let v = match self.keys_are_values {
                true => k,
                false => x.linear(make.matrix(formats[2], width, kv_heads * head_width)),
            };
            let k = k.rms_norm(make.vector(head_width), EPS).rope(self.rope());
            k.store_kv(v.rms_norm_unweighted(head_width, EPS), cache)
        });
        let x = if self.last { x.last_row() } else { x };
        let q = x.linear(make.matrix(formats[0], width, heads * head_width));
        let q = q.rms_norm(make.vector(head_width), EPS).rope(self.rope());
        let out = q.attend(stored, self.shape()).linear(make.matrix(formats[3], heads * head_width, width));
        (out, stored)
    }
}

fn width(layer: &Layer) -> u32 {
    if layer.head_width.is_multiple_of(32) { 96 } else { 100 }
}

const SHAPES: [[u32; 3]; 8] =
    [[4, 2, 32], [4, 1, 64], [8, 8, 32], [3, 1, 256], [6, 2, 96], [2, 1, 512], [8, 1, 24], [5, 1, 40]];

/// Steps that are short, long, and of one row, within a window and beyond.
const STEPS: [usize; 6] = [5, 1, 40, 1, 9, 1];

/// The same without a step of a few rows, which would be kernels of its own for each width of a product.
const OTHER_STEPS: [usize; 5] = [9, 1, 40, 1, 15];

fn check(gpus: &Gpus, layer: Layer, cache: CacheFormat) {
    let steps = if layer.head_width == 32 { &STEPS[..] } else { &OTHER_STEPS };
    let formats = if layer.head_width.is_multiple_of(32) { layer.formats } else { [Format::F16; 4] };
    let layer = Layer { formats, ..layer };
    // Values near the middle between two steps of a rounded cache are rounded either way.
    let tolerance = match cache {
        CacheFormat::F32 => 1e-4,
        CacheFormat::F16 => 3e-3,
        CacheFormat::Q8 => 3e-2,
    };
    Case::new(format!("{layer:?}, cache {cache:?}"), 31, |make| {
        layer.forward(make, make.input(width(&layer)), None).0
    })
    .steps(steps)
    .cache(cache)
    .within(tolerance)
    .check(gpus);
}

#[test]
fn global_and_sliding() {
    let gpus = Gpus::one();
    for (index, [heads, kv_heads, head_width]) in SHAPES.into_iter().enumerate() {
        check(&gpus, Layer::new(heads, kv_heads, head_width, None), CacheFormat::F32);
        // A window changes no kernel but those of attention, which have shapes enough in `crate::attention`.
        if index % 2 == 0 {
            let window = Some([16, 1, 50, 20][index / 2]);
            check(&gpus, Layer::new(heads, kv_heads, head_width, window), CacheFormat::F32);
        }
    }
}

/// That the kernels of attention compute the right thing with every way to keep a cache is tested in `crate::attention`,
/// at many more sizes; here, that a plan uses them rightly.
#[test]
fn rounded_caches() {
    let gpus = Gpus::one();
    for cache in [CacheFormat::F16, CacheFormat::Q8] {
        check(&gpus, Layer::new(4, 2, 32, None), cache);
        check(&gpus, Layer::new(4, 2, 32, Some(16)), cache);
    }
    check(&gpus, Layer::new(2, 1, 512, None), CacheFormat::F16);
    check(&gpus, Layer::new(2, 1, 256, Some(16)), CacheFormat::Q8);
    // A head that is no whole number of words in halves, and one too wide for the fast kernels.
    check(&gpus, Layer::new(2, 1, 20, None), CacheFormat::F16);
    check(&gpus, Layer::new(2, 1, 1024, None), CacheFormat::Q8);
}

/// Keys that serve as values, weights that cannot be stacked, and the last row alone.
#[test]
fn variants() {
    let (gpus, both) = (Gpus::one(), Gpus::both());
    let layer = Layer::new(4, 2, 32, Some(16));
    let (a, b) = (Format::Q8_0, Format::Q4_0);
    let stacks = [[a, a, a, b], [a, b, a, a], [b, a, a, a], [a, a, b, b], [Format::F16, a, b, a]];
    for (index, formats) in stacks.into_iter().enumerate() {
        for keys_are_values in [false, true] {
            let last = keys_are_values == (index % 2 == 0);
            let gpus = if index == 0 { &both } else { &gpus };
            check(gpus, Layer { keys_are_values, formats, last, ..layer }, CacheFormat::F32);
        }
    }
}

/// Layers that read the cache of an earlier one.
#[test]
fn borrowed_caches() {
    let gpus = Gpus::one();
    for (window, last) in [(None, true), (Some(16), false), (Some(16), true)] {
        let donor = Layer::new(4, 1, 64, window);
        let borrower = Layer { heads: 2, last, ..donor };
        Case::new(format!("{borrower:?} of {donor:?}"), 33, |make| {
            let x = make.input(96);
            let (a, cache) = donor.forward(make, x, None);
            let x = x + a.rms_norm(make.vector(96), EPS);
            borrower.forward(make, x.rms_norm(make.vector(96), EPS), Some(cache)).0
        })
        .steps(&STEPS)
        .within(2e-4)
        .check(&gpus);
    }
}

/// Heads that are not normed, or not turned, or turned differently, go the general way.
#[test]
fn heads_of_other_kinds() {
    let gpus = Gpus::one();
    for kind in 0..4 {
        Case::new(format!("heads of kind {kind}"), 35, |make| {
            let x = make.input(64);
            let info = CacheInfo { layer: 0, kv_heads: 1, head_width: 32, window: Some(20) };
            let cache = make.builder.cache(info);
            let [q, k, v] = [64, 32, 32].map(|rows| x.linear(make.matrix(Format::Q8_0, 64, rows)));
            let rope = Rope::new(32, 1e4);
            let [q, k] =
                [q, k].map(|heads| if kind == 1 { heads } else { heads.rms_norm(make.vector(32), EPS) });
            let k = k.rope(if kind == 0 { Rope { base: 1e3, ..rope } } else { rope });
            let q = if kind == 2 { q } else { q.rope(rope) };
            let stored = k.store_kv(v.rms_norm_unweighted(if kind == 3 { 16 } else { 32 }, EPS), cache);
            let shape = AttendShape { heads: 2, kv_heads: 1, head_width: 32, mask: Mask::sliding(20) };
            q.attend(stored, shape)
        })
        .steps(&STEPS)
        .within(1e-4)
        .check(&gpus);
    }
}

/// The norms of queries, keys and values need not be the same.
#[test]
fn norms_that_differ() {
    let gpus = Gpus::one();
    Case::new("norms that differ", 36, |make| {
        let x = make.input(64);
        let cache = make.builder.cache(CacheInfo { layer: 0, kv_heads: 1, head_width: 32, window: None });
        let [q, k, v] = [64, 32, 32].map(|rows| x.linear(make.matrix(Format::Q8_0, 64, rows)));
        let rope = Rope::new(32, 1e4);
        let k = k.rms_norm(make.vector(32), 0.3).rope(rope);
        let stored = k.store_kv(v.rms_norm_unweighted(32, 0.5), cache);
        let shape = AttendShape { heads: 2, kv_heads: 1, head_width: 32, mask: Mask::GLOBAL };
        q.rms_norm(make.vector(32), EPS).rope(rope).attend(stored, shape)
    })
    .steps(&STEPS)
    .within(1e-4)
    .check(&gpus);
}

/// A ring that is written around its end, and a context of many splits.
#[test]
fn long_contexts() {
    let gpus = Gpus::one();
    for window in [None, Some(20)] {
        let layer = Layer::new(2, 1, 32, window);
        Case::new(format!("{layer:?}, long"), 37, |make| layer.forward(make, make.input(32), None).0)
            .steps(&[512, 40, 1, 1, 7, 300, 1, 64, 1])
            .context(1000)
            .within(1e-4)
            .check(&gpus);
    }
}
