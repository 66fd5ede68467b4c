//! Q4_K: eight sub-blocks of 32 quants from 0 to 15, each with a six-bit scale and a six-bit minimum.
//!
//! `x ≈ d · scale · q − dmin · min`. First each sub-block finds the step and minimum it would like, then the
//! largest of each become 63 and fix `d` and `dmin`, and last each sub-block looks for the pair of six-bit
//! numbers near its wish that leaves the least error, since rounding the two separately is not the best.

use super::search::{LANES, Lanes, Sums, best, clamped, in_memory, lanes, sums};
use super::{finite, inverse_or_zero, nearest_byte, round, stored_scale};

const SUB_BLOCK: usize = 32;
const RANGE: [f32; 2] = [0.0, 15.0];
const LARGEST_SIX_BITS: f32 = 63.0;

/// By how many steps the first grids cut into the range of the values, at its lower end and at its upper one.
/// A negative cut leaves room instead.
const CUTS: [Lanes; 2] =
    [[-0.3, 0.3, 0.0, -0.3, 0.3, 0.0, 0.3, 0.9], [-0.3, -0.3, 0.0, 0.3, 0.3, 0.6, 0.9, 0.3]];

/// Which six-bit scales and minimums to try, relative to those nearest to the wish: eight of the nine within a
/// step, one to a lane. A larger scale raises the values and a larger minimum lowers them, so the pairs that
/// matter are those that move together; of the two that do not, one is left out.
const NEIGHBOURS: [Lanes; 2] =
    [[0.0, 1.0, -1.0, 0.0, 0.0, 1.0, -1.0, 1.0], [0.0, 0.0, 0.0, 1.0, -1.0, 1.0, -1.0, -1.0]];

/// What a sub-block would like: `x ≈ step · q − min`, with neither below zero.
#[derive(Clone, Copy, Default)]
struct Wish {
    step: f32,
    min: f32,
    /// The sum of the values, for later.
    sum: f32,
}

#[inline(always)]
pub(in super::super) fn q4_k(values: &[f32; 256], out: &mut [u8; 144]) {
    let values = finite(values);
    let sub_blocks = values.as_chunks::<SUB_BLOCK>().0;

    let mut wishes = [Wish::default(); 8];
    let (mut largest_step, mut largest_min) = (0.0f32, 0.0f32);
    for (wish, values) in wishes.iter_mut().zip(sub_blocks) {
        *wish = wish_of(values);
        largest_step = largest_step.max(wish.step);
        largest_min = largest_min.max(wish.min);
    }
    let (d, d_bits) = stored_scale(largest_step / LARGEST_SIX_BITS);
    let (dmin, dmin_bits) = stored_scale(largest_min / LARGEST_SIX_BITS);
    out[..2].copy_from_slice(&d_bits.to_le_bytes());
    out[2..4].copy_from_slice(&dmin_bits.to_le_bytes());

    let (mut scales, mut mins) = ([0; 8], [0; 8]);
    for (k, values) in sub_blocks.iter().enumerate() {
        let (scale, min) = nearest_pair(values, &wishes[k], d, dmin);
        (scales[k], mins[k]) = (nearest_byte(scale), nearest_byte(min));

        let (step, min) = (d * scale, dmin * min);
        let inverse = inverse_or_zero(step);
        let nibbles = &mut out[16 + 32 * (k / 2)..][..SUB_BLOCK];
        for (nibble, value) in nibbles.iter_mut().zip(values) {
            let q = nearest_byte(clamped((value + min) * inverse, RANGE[0], RANGE[1]));
            // The even sub-block of a pair comes first and leaves the high nibble clear.
            *nibble = if k % 2 == 0 { q } else { *nibble | (q << 4) };
        }
    }
    out[4..16].copy_from_slice(&packed(scales, mins));
}

/// The step and minimum with the least squared error that a short search finds.
///
/// Each grid is improved once: least squares fits step and minimum to the quants it gives, and those in turn
/// make a grid.
#[inline(always)]
fn wish_of(values: &[f32; SUB_BLOCK]) -> Wish {
    let Extent { lowest, highest, sum } = extent(values);
    let range = highest - lowest;
    let mut wish = Wish { step: 0.0, min: -lowest, sum };
    if range > 0.0 {
        let [low_cuts, high_cuts] = CUTS;
        let inverse = lanes(|lane| (RANGE[1] - low_cuts[lane] - high_cuts[lane]) / range);
        let shift = lanes(|lane| -lowest * inverse[lane] - low_cuts[lane]);
        let first = least_squares(&sums(values, &inverse, &shift, RANGE), sum);

        let inverse = lanes(|lane| 1.0 / first.step[lane]);
        let shift = lanes(|lane| first.min[lane] * inverse[lane]);
        let second = least_squares(&sums(values, &inverse, &shift, RANGE), sum);

        let lane = best(&second.gain);
        if second.gain[lane] > 0.0 {
            wish = Wish { step: second.step[lane], min: second.min[lane], sum };
        }
    }
    wish
}

/// What the values of a sub-block span, together with zero: a minimum cannot be negative, so zero is always in
/// reach of the grid's lower end.
struct Extent {
    lowest: f32,
    highest: f32,
    sum: f32,
}

#[inline(always)]
fn extent(values: &[f32; SUB_BLOCK]) -> Extent {
    let (mut lowest, mut highest, mut sum) = ([0.0f32; LANES], [f32::MIN; LANES], [0.0; LANES]);
    for values in values.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            lowest[lane] = if values[lane] < lowest[lane] { values[lane] } else { lowest[lane] };
            highest[lane] = if values[lane] > highest[lane] { values[lane] } else { highest[lane] };
            sum[lane] += values[lane];
        }
    }
    Extent {
        lowest: lowest.into_iter().fold(0.0, f32::min),
        highest: highest.into_iter().fold(f32::MIN, f32::max),
        sum: sum.into_iter().sum(),
    }
}

/// The best step and minimum for given quants, and by how much they lower the squared error from that of all
/// zeros.
struct Fit {
    step: Lanes,
    min: Lanes,
    gain: Lanes,
}

#[inline(always)]
fn least_squares(sums: &Sums, sum: f32) -> Fit {
    const COUNT: f32 = SUB_BLOCK as f32;
    let mut fit = Fit { step: [0.0; LANES], min: [0.0; LANES], gain: [0.0; LANES] };
    for lane in 0..LANES {
        let (q, qq, qx) = (sums.q[lane], sums.qq[lane], sums.qx[lane]);
        // The line through the points (q, x). If it passes above the origin, then the line through the
        // origin is the best that a minimum of zero or more allows; likewise if all quants are equal.
        let (rise, run) = (COUNT * qx - q * sum, COUNT * qq - q * q);
        let below_zero = (run > 0.0) & (sum * run < rise * q);
        let step = if below_zero { rise } else { qx } / if below_zero { run } else { qq };
        let min = if below_zero { (step * q - sum) * (1.0 / COUNT) } else { 0.0 };
        fit.step[lane] = step;
        fit.min[lane] = min;
        fit.gain[lane] = step * qx - min * sum;
    }
    in_memory(fit)
}

/// The six-bit scale and minimum that serve the values best, among those near the wish.
#[inline(always)]
fn nearest_pair(values: &[f32; SUB_BLOCK], wish: &Wish, d: f32, dmin: f32) -> (f32, f32) {
    let nearest = |wish: f32, unit: f32| round(clamped(wish * inverse_or_zero(unit), 0.0, LARGEST_SIX_BITS));
    let (scale, min) = (nearest(wish.step, d), nearest(wish.min, dmin));
    let scales = lanes(|lane| clamped(scale + NEIGHBOURS[0][lane], 0.0, LARGEST_SIX_BITS));
    let mins = lanes(|lane| clamped(min + NEIGHBOURS[1][lane], 0.0, LARGEST_SIX_BITS));

    let inverse = lanes(|lane| inverse_or_zero(d * scales[lane]));
    let shift = lanes(|lane| dmin * mins[lane] * inverse[lane]);
    let sums = sums(values, &inverse, &shift, RANGE);
    // By how much each pair lowers the squared error Σ(x − step · q + min)² from that of all zeros.
    let gain = in_memory(lanes(|lane| {
        let (step, min) = (d * scales[lane], dmin * mins[lane]);
        let from_step = step * (2.0 * sums.qx[lane] - step * sums.qq[lane]);
        let from_min = min * (2.0 * (step * sums.q[lane] - wish.sum) - SUB_BLOCK as f32 * min);
        from_step + from_min
    }));
    let lane = best(&gain);
    (scales[lane], mins[lane])
}

/// Sixteen six-bit numbers in twelve bytes, in the order that the decoder in `k_quants` describes.
#[inline(always)]
fn packed(scales: [u8; 8], mins: [u8; 8]) -> [u8; 12] {
    let mut packed = [0; 12];
    for k in 0..4 {
        packed[k] = scales[k] | ((scales[k + 4] >> 4) << 6);
        packed[k + 4] = mins[k] | ((mins[k + 4] >> 4) << 6);
        packed[k + 8] = (scales[k + 4] & 15) | ((mins[k + 4] & 15) << 4);
    }
    packed
}
