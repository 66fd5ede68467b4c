//! Our quantisers lose no more than ggml's, whatever they are given.

use proptest::prelude::*;
use rullama_gguf::format::Format;
use safetensors::SafeTensors;

const BLOCK_FORMATS: [Format; 5] = [Format::Q8_0, Format::Q5_0, Format::Q4_0, Format::Q4_K, Format::Q6_K];

/// The columns of the rows in `quantiser.safetensors`, and of our own samples.
const ROW: usize = 1024;

fn decode(format: Format, blocks: &[u8]) -> Vec<f32> {
    let mut out = vec![0.0; blocks.len() / format.block_bytes() * format.block_len()];
    format.decode(blocks, &mut out).expect("the sizes fit");
    out
}

fn encode(format: Format, values: &[f32]) -> Vec<u8> {
    let mut out = vec![0; values.len() / format.block_len() * format.block_bytes()];
    format.encode(values, &mut out).expect("the sizes fit");
    out
}

fn round_trip(format: Format, values: &[f32]) -> Vec<f32> {
    decode(format, &encode(format, values))
}

/// The root mean square of the differences, relative to that of the values; `None` where all are zero.
fn relative_error(values: &[f32], decoded: &[f32]) -> Option<f64> {
    let power: f64 = values.iter().map(|&value| f64::from(value).powi(2)).sum();
    let error: f64 = values.iter().zip(decoded).map(|(&a, &b)| f64::from(a - b).powi(2)).sum();
    (power > 0.0).then(|| (error / power).sqrt())
}

/// The error of each row that is not all zeros.
fn errors_by_row(values: &[f32], decoded: &[f32]) -> Vec<f64> {
    let rows = values.chunks_exact(ROW).zip(decoded.chunks_exact(ROW));
    rows.filter_map(|(values, decoded)| relative_error(values, decoded)).collect()
}

fn mean(errors: &[f64]) -> f64 {
    errors.iter().sum::<f64>() / errors.len() as f64
}

/// Normally distributed values with a scale of their own for each row, as weights have: from 0.001 to 1.
/// Much below, the half-float scales of any of these formats become coarse.
fn normal_rows(rows: usize) -> Vec<f32> {
    let mut state = 1u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f64 + 0.5) / f64::from(1 << 24)
    };
    (0..rows * ROW)
        .map(|i| {
            let scale = 10f64.powi((i / ROW % 4) as i32 - 3);
            let (radius, angle) = ((-2.0 * uniform().ln()).sqrt(), std::f64::consts::TAU * uniform());
            (scale * radius * angle.cos()) as f32
        })
        .collect()
}

/// On ggml's own sample, our mean error is at most ggml's, and no row is much worse.
///
/// The contract is 5 % above ggml's; the bounds here are what the encoders achieve, so that a change which
/// costs quality is seen.
#[test]
fn loses_no_more_than_ggml() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/quantiser.safetensors");
    let file = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let file = SafeTensors::deserialize(&file).unwrap();
    let values = decode(Format::F32, file.tensor("input").unwrap().data());
    assert_eq!(values.len(), 64 * ROW);

    for (format, bound) in [
        (Format::Q8_0, 1.0),
        (Format::Q5_0, 0.97),
        (Format::Q4_0, 0.95),
        (Format::Q4_K, 0.985),
        (Format::Q6_K, 0.96),
    ] {
        let golden = decode(format, file.tensor(format.name()).unwrap().data());
        let ggml = errors_by_row(&values, &golden);
        let ours = errors_by_row(&values, &round_trip(format, &values));
        assert_eq!((ggml.len(), ours.len()), (63, 63), "one row of the sample is zeros");
        let ratio = mean(&ours) / mean(&ggml);
        assert!(ratio <= bound, "{format}: {ratio:.4} of ggml's mean error; expected at most {bound}");
        for (row, (ours, ggml)) in ours.iter().zip(&ggml).enumerate() {
            assert!(ours <= &(1.02 * ggml), "{format}: {ours:.5} in row {row}; ggml has {ggml:.5}");
        }
    }
}

/// A larger sample keeps the mean error that ggml has on normal rows of this width.
#[test]
fn normal_rows_keep_their_precision() {
    let values = normal_rows(500);
    for (format, ggml) in
        [(Format::Q8_0, 0.00540), (Format::Q4_0, 0.08594), (Format::Q4_K, 0.07113), (Format::Q6_K, 0.01796)]
    {
        let errors = errors_by_row(&values, &round_trip(format, &values));
        assert_eq!(errors.len(), 500);
        assert!(mean(&errors) <= 1.05 * ggml, "{format}: {:.5}; ggml's is {ggml}", mean(&errors));
        let worst = errors.iter().copied().fold(0.0, f64::max);
        assert!(worst <= 1.2 * ggml, "{format}: {worst:.5} in the worst row");
    }
}

#[test]
fn zeros_stay_zeros() {
    for format in BLOCK_FORMATS {
        assert_eq!(round_trip(format, &[0.0; 512]), [0.0; 512], "{format}");
        assert_eq!(round_trip(format, &[-0.0; 512]), [0.0; 512], "{format}");
    }
}

/// A block of one value, of either sign, comes back to within the rounding of its scales: a small scale of
/// scales is below the normal half floats and has fewer digits.
#[test]
fn constants_survive() {
    for format in BLOCK_FORMATS {
        for (constant, bound) in [(1.0, 1e-3), (-1.0, 1e-3), (0.37, 1e-3), (-0.0123, 1e-2), (250.0, 1e-3)] {
            let decoded = round_trip(format, &[constant; 256]);
            let error = relative_error(&[constant; 256], &decoded).unwrap();
            assert!(error < bound, "{format}: {constant} became {}", decoded[0]);
        }
    }
}

/// Values that are not numbers leave their neighbours alone.
#[test]
fn unusual_values_are_contained() {
    for format in BLOCK_FORMATS {
        let clean: Vec<f32> = (0..256).map(|i| (i as f32 * 0.7).sin()).collect();
        let mut values = clean.clone();
        values[3] = f32::NAN;
        values[40] = f32::INFINITY;
        values[41] = f32::NEG_INFINITY;
        let decoded = round_trip(format, &values);
        assert!(decoded.iter().all(|value| value.is_finite()), "{format}");
        assert!(decoded[3].abs() < 0.1, "{format}: NaN became {}", decoded[3]);
        assert!((decoded[40] - 1.0).abs() < 0.1, "{format}: infinity became {}", decoded[40]);
        assert!((decoded[41] + 1.0).abs() < 0.15, "{format}: minus infinity became {}", decoded[41]);
        for (at, (clean, decoded)) in clean.iter().zip(decoded).enumerate() {
            assert!([3, 40, 41].contains(&at) || (clean - decoded).abs() < 0.15, "{format}: value {at}");
        }

        for odd in [f32::NAN, f32::INFINITY, f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1)] {
            assert!(
                round_trip(format, &[odd; 256]).iter().all(|value| value.is_finite()),
                "{format}: {odd:e}"
            );
        }
    }
    assert_eq!(
        round_trip(Format::F16, &[f32::INFINITY, 1e6, -1e6]),
        [f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY]
    );
    assert_eq!(round_trip(Format::BF16, &[f32::NEG_INFINITY, f32::MAX]), [f32::NEG_INFINITY, f32::INFINITY]);
    assert!(round_trip(Format::F32, &[f32::NAN])[0].is_nan());
}

/// One value far from the others is kept, at their cost.
#[test]
fn outliers_are_kept() {
    for format in BLOCK_FORMATS {
        let mut values = vec![0.01; 256];
        values[100] = -12.0;
        let decoded = round_trip(format, &values);
        assert!((decoded[100] + 12.0).abs() < 0.15, "{format}: {}", decoded[100]);
    }
}

/// Values on a format's own grid come back exactly when the grid is one the encoder starts from.
#[test]
fn quantised_weights_quantise_to_themselves() {
    let steps: Vec<f32> = (0..32).map(|i| 0.0625 * ((i * 7 % 16) as f32 - 8.0)).collect();
    assert_eq!(round_trip(Format::Q4_0, &steps), steps);
}

/// Numbers of very different size, with every kind that a float has.
fn values(len: usize) -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(prop_oneof![8 => -1.0f32..1.0, 1 => any::<f32>()], len)
}

proptest! {
    /// No values panic, and none turn into something that is not a number.
    #[test]
    fn any_values_encode(format in prop::sample::select(&BLOCK_FORMATS), values in values(512)) {
        prop_assert!(round_trip(format, &values).iter().all(|value| value.is_finite()));
    }

    /// Values of ordinary size come back within about one step of a grid over the block's range.
    #[test]
    fn error_is_bounded(
        format in prop::sample::select(&BLOCK_FORMATS),
        scale in 1e-3f32..1e3,
        values in prop::collection::vec(-1.0f32..1.0, 256),
    ) {
        let values: Vec<f32> = values.iter().map(|value| scale * value).collect();
        // Steps over the whole range, the clipping that the search may choose, and the rounding of scales.
        let bound = match format {
            Format::Q8_0 => 0.5 / 127.0 + 1e-3,
            Format::Q4_0 => 1.3 / 8.0,
            Format::Q4_K => 2.2 / 15.0,
            _ => 3.0 / 32.0,
        };
        for (block, decoded) in values.chunks(format.block_len()).zip(
            round_trip(format, &values).chunks(format.block_len())
        ) {
            let largest = block.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
            for (value, decoded) in block.iter().zip(decoded) {
                prop_assert!(
                    (value - decoded).abs() <= bound * largest,
                    "{}: {} became {} in a block up to {}", format, value, decoded, largest
                );
            }
        }
    }

    /// What Q8_0 has written once, it writes again byte for byte.
    #[test]
    fn q8_0_is_stable(scale in 1e-3f32..1e3, values in prop::collection::vec(-1.0f32..1.0, 64)) {
        let values: Vec<f32> = values.iter().map(|value| scale * value).collect();
        let once = encode(Format::Q8_0, &values);
        prop_assert_eq!(encode(Format::Q8_0, &decode(Format::Q8_0, &once)), once);
    }

    /// Half-sized floats are within half a unit of their last place.
    #[test]
    fn sixteen_bit_floats_round_to_the_nearest(value in -6e4f32..6e4) {
        let half = round_trip(Format::F16, &[value])[0];
        prop_assert!((value - half).abs() <= value.abs() / 2048.0 + 2f32.powi(-25));
        let bfloat = round_trip(Format::BF16, &[value])[0];
        prop_assert!((value - bfloat).abs() <= value.abs() / 256.0);
    }
}
