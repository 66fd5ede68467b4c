//! Random numbers without a state: each is a function of a key and a position.
//!
//! Threads can therefore make any part of a tensor in any order. The function is that of SplitMix64, whose
//! numbers for consecutive positions pass the usual tests of randomness and take about a nanosecond each.

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The random numbers of one tensor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    key: u64,
}

impl Stream {
    /// The stream for a tensor's name. Tensors added to a file leave the others as they were.
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        let hash = name.bytes().fold(mix(seed.wrapping_add(STEP)), |hash, byte| {
            // FNV-1a: enough to tell names apart; the last step spreads the result over all bits.
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        Self { key: mix(hash) }
    }

    #[inline]
    fn bits(self, position: u64) -> u64 {
        mix(self.key.wrapping_add(position.wrapping_mul(STEP)))
    }

    /// Nearly normal with mean 0 and standard deviation 1: the sum of four even deviates of 16 bits each.
    ///
    /// It ends at ±3.46, which suits weights: no outliers, and every format can hold all of it.
    #[inline]
    pub(crate) fn normal(self, position: u64) -> f32 {
        /// Half of the largest sum.
        const MEAN: f32 = 2.0 * 65_535.0;
        /// The square root of 4 · (65536² − 1) / 12.
        const DEVIATION: f32 = 37_837.227;
        let bits = self.bits(position);
        // Two sums of two side by side, in fields of 32 bits, and then their sum.
        let pairs = (bits & 0x0000_FFFF_0000_FFFF) + ((bits >> 16) & 0x0000_FFFF_0000_FFFF);
        let sum = (pairs as u32) + (pairs >> 32) as u32;
        (sum as i32 as f32 - MEAN) * (1.0 / DEVIATION)
    }

    /// Evenly from 0 to 1, both ends included.
    #[inline]
    pub(crate) fn even(self, position: u64) -> f32 {
        const LARGEST: f32 = ((1 << 24) - 1) as f32;
        (self.bits(position) >> 40) as f32 / LARGEST
    }
}

#[inline]
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: u64 = 1 << 18;

    /// Mean and standard deviation.
    fn moments(values: impl Iterator<Item = f32> + Clone) -> (f64, f64) {
        let mean = values.clone().map(f64::from).sum::<f64>() / COUNT as f64;
        let variance = values.map(|value| (f64::from(value) - mean).powi(2)).sum::<f64>() / COUNT as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn deviates_have_the_promised_moments() {
        let stream = Stream::new(7, "blk.0.attn_q.weight");
        let (mean, deviation) = moments((0..COUNT).map(|i| stream.normal(i)));
        assert!(mean.abs() < 0.01 && (deviation - 1.0).abs() < 0.01, "{mean} {deviation}");
        let (mean, deviation) = moments((0..COUNT).map(|i| stream.even(i)));
        assert!((mean - 0.5).abs() < 0.01 && (deviation - 12f64.powf(-0.5)).abs() < 0.01);
    }

    /// Files made today and tomorrow, here and elsewhere, are the same.
    #[test]
    fn numbers_never_change() {
        let stream = Stream::new(1, "token_embd.weight");
        for (position, bits) in
            [(0, 0x2A96_3BF3_44A2_CABF), (1, 0x0ED4_424B_06BB_2EF2), (1 << 40, 0x4E94_92BB_B35E_83AB)]
        {
            assert_eq!(stream.bits(position), bits, "at {position}");
        }
    }

    #[test]
    fn streams_are_not_related() {
        let streams = [(0, "a"), (1, "a"), (0, "b")].map(|(seed, name)| Stream::new(seed, name));
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            let products = (0..COUNT).map(|i| streams[a].normal(i) * streams[b].normal(i));
            let (correlation, _) = moments(products);
            assert!(correlation.abs() < 0.01, "{correlation}");
        }
        let neighbours = (0..COUNT).map(|i| streams[0].normal(i) * streams[0].normal(i + 1));
        assert!(moments(neighbours).0.abs() < 0.01);
    }
}
