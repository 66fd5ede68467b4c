//! Passes over logits: the largest, and e to the power of each.
//!
//! The exponential is written out in additions and multiplications, which are exact to the bit everywhere,
//! where that of the platform is not: a seed gives the same tokens on every one. Loops go over lanes in
//! a fixed order, so that they are fast and their sums are the same everywhere too.

/// Numbers treated side by side.
const LANES: usize = 16;

/// What one look at all logits tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scan {
    /// The largest logit that is a number, −∞ if there is none.
    pub(super) max: f32,
    pub(super) has_nan: bool,
}

pub(super) fn scan(logits: &[f32]) -> Scan {
    let mut max = [f32::NEG_INFINITY; LANES];
    let mut nan = [false; LANES];
    let (chunks, rest) = logits.as_chunks::<LANES>();
    let mut look = |chunk: &[f32]| {
        for (lane, &logit) in chunk.iter().enumerate() {
            max[lane] = if logit > max[lane] { logit } else { max[lane] };
            nan[lane] |= logit.is_nan();
        }
    };
    for chunk in chunks {
        look(chunk);
    }
    look(rest);
    Scan { max: max.into_iter().fold(f32::NEG_INFINITY, f32::max), has_nan: nan.contains(&true) }
}

/// The first position that holds `max`, which is there.
pub(super) fn first_of(logits: &[f32], max: f32) -> usize {
    let chunk = logits.chunks(LANES).position(|chunk| any(chunk, |logit| logit == max)).unwrap_or(0) * LANES;
    chunk + logits[chunk..].iter().position(|&logit| logit == max).unwrap_or(0)
}

/// Whether any of a few numbers is asked for, decided without a branch for each.
#[inline(always)]
pub(super) fn any(chunk: &[f32], wanted: impl Fn(f32) -> bool) -> bool {
    chunk.iter().fold(false, |found, &number| found | wanted(number))
}

/// How far a logit is below the largest: at most 0, and 0 for the largest even if it is infinite.
#[inline(always)]
pub(super) fn below(logit: f32, max: f32) -> f32 {
    if logit == max { 0.0 } else { logit - max }
}

/// e to the power of `x`, which is at most 0.
///
/// Within 2 units in the last place, but 0 below −87, where the result could not be normal.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // Adding and subtracting this rounds to a whole number, and leaves it in the low bits on the way.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts; multiples of the first are exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    const LOWEST: f32 = -87.0;

    let power = if x < LOWEST { LOWEST } else { x };
    let rounded = power * std::f32::consts::LOG2_E + ROUND;
    let twos = rounded - ROUND;
    let rest = power - twos * LN2_HIGH - twos * LN2_LOW;
    // The polynomial of Moshier's Cephes library for |rest| ≤ ln 2 / 2.
    let mut sum = 1.987_569_2e-4;
    sum = sum * rest + 1.398_2e-3;
    sum = sum * rest + 8.333_452e-3;
    sum = sum * rest + 4.166_579_6e-2;
    sum = sum * rest + 1.666_666_5e-1;
    sum = sum * rest + 0.5;
    sum = sum * (rest * rest) + rest + 1.0;
    let scale = f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0_f32.to_bits()));
    if x < LOWEST { 0.0 } else { sum * scale }
}

/// The sum of the weights of all tokens, where the largest logit has weight 1.
pub(super) fn total_weight(logits: &[f32], max: f32) -> f64 {
    // Weights go through a small buffer: the loop that makes them and the loop that adds them are each
    // simple enough for the compiler to use vector instructions.
    let mut weights = [0.0; 16 * LANES];
    let mut sums = [0.0; LANES];
    for block in logits.chunks(weights.len()) {
        let weights = &mut weights[..block.len()];
        for (weight, &logit) in weights.iter_mut().zip(block) {
            *weight = exp(below(logit, max));
        }
        for chunk in weights.chunks(LANES) {
            for (sum, &weight) in sums.iter_mut().zip(chunk) {
                *sum += f64::from(weight);
            }
        }
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_exact_to_two_units_in_the_last_place() {
        let mut worst = 0.0_f64;
        for step in 0..=870_000 {
            let x = -(step as f32) / 10_000.0;
            let exact = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) / exact - 1.0).abs() / f64::from(f32::EPSILON));
        }
        assert!(worst < 2.0, "{worst} units");
    }

    #[test]
    fn the_exponential_has_its_ends() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-0.0), 1.0);
        assert!(exp(-87.0).is_normal());
        for x in [-87.1, -88.0, -1000.0, f32::MIN, f32::NEG_INFINITY] {
            assert_eq!(exp(x), 0.0, "{x}");
        }
    }

    #[test]
    fn scans_and_sums_agree_with_plain_loops_at_every_length() {
        for length in 1..70_usize {
            let logits: Vec<f32> = (0..length).map(|i| ((i * 37 + length) % 23) as f32 - 11.0).collect();
            let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let scan = scan(&logits);
            assert_eq!((scan.max, scan.has_nan), (max, false));
            assert_eq!(Some(first_of(&logits, max)), logits.iter().position(|&logit| logit == max));
            let sum: f64 = logits.iter().map(|&logit| f64::from(logit - max).exp()).sum();
            assert!((total_weight(&logits, max) / sum - 1.0).abs() < 1e-6, "{length}");
        }
    }

    #[test]
    fn one_nan_is_seen_wherever_it_is() {
        for at in 0..40 {
            let mut logits = [1.0; 40];
            logits[at] = f32::NAN;
            let scan = scan(&logits);
            assert_eq!((scan.max, scan.has_nan), (1.0, true), "{at}");
        }
    }
}
