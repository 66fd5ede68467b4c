//! Eight grids tried at once on the values of one sub-block.
//!
//! A grid maps a value to a quant: `q = clamp(round(x · inverse + shift))`. For given quants the best scale
//! (and offset) follow from least squares, and all that needs from the values are three sums. So a candidate
//! costs one pass of a few operations a value, and eight candidates in the lanes of a vector cost the same.

use std::hint::black_box;

use super::{inverse_or_zero, round};

pub(super) const LANES: usize = 8;

/// One number for each grid.
pub(super) type Lanes = [f32; LANES];

/// Sums over the quants `q` that each grid gives the values `x`.
pub(super) struct Sums {
    pub(super) q: Lanes,
    pub(super) qq: Lanes,
    pub(super) qx: Lanes,
}

/// Quantises the values to each of eight grids, with quants from `lowest` to `highest`.
#[inline(always)]
pub(super) fn sums<const LEN: usize>(
    values: &[f32; LEN],
    inverse: &Lanes,
    shift: &Lanes,
    [lowest, highest]: [f32; 2],
) -> Sums {
    let mut sums = Sums { q: [0.0; LANES], qq: [0.0; LANES], qx: [0.0; LANES] };
    for &x in values {
        let q = lanes(|lane| clamped(round(x * inverse[lane] + shift[lane]), lowest, highest));
        for (lane, q) in q.into_iter().enumerate() {
            sums.q[lane] += q;
            sums.qq[lane] += q * q;
            sums.qx[lane] += q * x;
        }
    }
    in_memory(sums)
}

/// Lanes computed one like the other.
#[inline(always)]
pub(super) fn lanes(mut each: impl FnMut(usize) -> f32) -> Lanes {
    let mut lanes = [0.0; LANES];
    for (lane, value) in lanes.iter_mut().enumerate() {
        *value = each(lane);
    }
    lanes
}

/// The same value, as seen through memory.
///
/// Lanes that are picked apart later tempt the optimiser to keep each in a register of its own, and it then
/// gathers and scatters them around every vector operation. Results that must be stored side by side are
/// computed side by side.
#[inline(always)]
pub(super) fn in_memory<T>(value: T) -> T {
    black_box(value)
}

/// As `f32::clamp`, in the form that becomes two vector instructions. NaN becomes `lowest`.
#[inline(always)]
pub(super) fn clamped(value: f32, lowest: f32, highest: f32) -> f32 {
    let value = if value > lowest { value } else { lowest };
    if value < highest { value } else { highest }
}

/// The lane with the largest number; the first of equals.
#[inline(always)]
pub(super) fn best(lanes: &Lanes) -> usize {
    let mut best = 0;
    for lane in 1..LANES {
        if lanes[lane] > lanes[best] {
            best = lane;
        }
    }
    best
}

/// The scale of `x ≈ scale · q` with the least squared error among the grids that `factors` give, which say
/// what quant (before clamping) the value of largest magnitude gets. Zero if all values are.
#[inline(always)]
pub(super) fn symmetric_scale<const LEN: usize>(
    values: &[f32; LEN],
    factors: &[Lanes],
    range: [f32; 2],
) -> f32 {
    let peak = values.iter().fold(0.0f32, |peak, &x| if x.abs() > peak.abs() { x } else { peak });
    let inverse_peak = inverse_or_zero(peak);
    let (mut scale, mut largest_gain) = (0.0, 0.0);
    for factors in factors {
        let inverse = lanes(|lane| factors[lane] * inverse_peak);
        let sums = sums(values, &inverse, &[0.0; LANES], range);
        // By how much the fit lowers the squared error from that of all zeros.
        let gain = in_memory(lanes(|lane| sums.qx[lane] * sums.qx[lane] / sums.qq[lane]));
        let lane = best(&gain);
        if gain[lane] > largest_gain {
            largest_gain = gain[lane];
            scale = sums.qx[lane] / sums.qq[lane];
        }
    }
    scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_clamped_quants() {
        let values = [-3.0, -0.6, 0.2, 9.0];
        let inverse = lanes(|lane| 1.0 + lane as f32);
        let sums = sums(&values, &inverse, &[0.0; LANES], [-2.0, 4.0]);
        // In lane 0 the quants are −2, −1, 0, 4; in lane 1 they are −2, −1, 0, 4 as well.
        assert_eq!((sums.q[0], sums.qq[0]), (1.0, 21.0));
        assert!((sums.qx[0] - 42.6).abs() < 1e-5);
        assert_eq!((sums.q[1], sums.qq[1]), (1.0, 21.0));
        // In lane 4 the inverse is 5: −2, −2, 1, 4.
        assert_eq!((sums.q[4], sums.qq[4]), (1.0, 25.0));
    }

    #[test]
    fn values_on_a_grid_give_back_its_scale() {
        let values = [-8.0, 3.0, 7.0, 0.0].map(|q| 0.25 * q);
        assert_eq!(symmetric_scale(&values, &[[-8.0; LANES]], [-8.0, 7.0]), 0.25);
        assert_eq!(symmetric_scale(&[0.0; 4], &[[-8.0; LANES]], [-8.0, 7.0]), 0.0);
    }
}
