//! The weights of the filter along one axis.

use std::ops::Range;

/// How many pixels of the source the kernel covers when the image is not shrunk.
const SUPPORT: f64 = 4.0;

/// Keys' parameter of the cubic kernel, as Pillow and torchvision choose it for antialiasing.
const A: f64 = -0.5;

/// The weights of all pixels along an axis, as integers: a value times a power of two.
pub(super) struct Filter {
    spans: Vec<Span>,
    weights: Vec<i16>,
    precision: u32,
}

/// The pixels of the source that one pixel is made of.
struct Span {
    first: usize,
    weights: Range<usize>,
}

/// What one pixel is made of: the weights of consecutive pixels of the source.
pub(super) struct Taps<'f> {
    pub(super) first: usize,
    pub(super) weights: &'f [i16],
}

impl Filter {
    /// The filter that makes `to` pixels of `from`.
    pub(super) fn new(from: u32, to: u32) -> Self {
        let scale = f64::from(from) / f64::from(to);
        // When the image shrinks, the kernel is stretched over all pixels that fall together.
        let [stretch, narrowed] = if scale < 1.0 { [1.0, 1.0] } else { [scale, 1.0 / scale] };
        let reach = SUPPORT / 2.0 * stretch;
        let mut spans = Vec::with_capacity(to as usize);
        // A growing table of a long side would be copied again and again.
        let most = to as usize * (2.0 * reach + 2.0).min(f64::from(from)) as usize;
        let mut weights = Vec::with_capacity(most);
        for index in 0..to {
            let centre = scale * (f64::from(index) + 0.5);
            // Casts round towards zero, and negative numbers up to it.
            let first = (centre - reach + 0.5) as usize;
            let end = ((centre + reach + 0.5) as usize).min(from as usize);
            let start = weights.len();
            weights.extend((first..end).map(|at| kernel((at as f64 - centre + 0.5) * narrowed)));
            let total: f64 = weights[start..].iter().sum();
            weights[start..].iter_mut().for_each(|weight| *weight /= total);
            spans.push(Span { first, weights: start..weights.len() });
        }
        let precision = precision(weights.iter().copied().fold(0.0, f64::max));
        let one = f64::from(1_u32 << precision);
        // `round` goes away from zero at one half, as torchvision does.
        let weights = weights.iter().map(|weight| (weight * one).round() as i16).collect();
        Self { spans, weights, precision }
    }

    pub(super) fn taps(&self) -> impl Iterator<Item = Taps<'_>> {
        self.spans.iter().map(|span| Taps { first: span.first, weights: &self.weights[span.weights.clone()] })
    }

    /// What sums start with, so that they are rounded and not cut off.
    pub(super) fn half(&self) -> i32 {
        1 << (self.precision - 1)
    }

    /// The byte that a sum of weighted bytes stands for.
    pub(super) fn byte(&self, sum: i32) -> u8 {
        (sum >> self.precision).clamp(0, 255) as u8
    }
}

/// The most bits after the point with which the largest weight fits into sixteen bits.
fn precision(largest: f64) -> u32 {
    let fits = |bits: &u32| 0.5 + largest * f64::from(1_u32 << bits) < f64::from(1_u32 << 15);
    // At least 13, because the largest weight is hardly more than one.
    (1..=22).take_while(fits).last().unwrap_or(1)
}

/// Keys' cubic kernel.
fn kernel(x: f64) -> f64 {
    let x = x.abs();
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A
    } else {
        0.0
    }
}
