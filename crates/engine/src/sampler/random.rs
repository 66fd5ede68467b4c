//! Random numbers that are the same everywhere.
//!
//! xoshiro128++ by Blackman and Vigna, its state filled by SplitMix64 as its authors advise. Both are
//! written out here because a seed is a promise: a library's generator may change between versions. The
//! generator works on 32-bit words, so that a shader can run it too.

/// A source of random numbers.
#[derive(Debug, Clone)]
pub(super) struct Random {
    state: [u32; 4],
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        let mut counter = seed;
        let [low, high] = [split_mix(&mut counter), split_mix(&mut counter)];
        // Never all zero, which would be the one state without a way out: successive words differ.
        Self { state: [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32] }
    }

    /// The whole state, with which a shader continues.
    #[cfg(feature = "gpu")]
    pub(super) fn state(&self) -> [u32; 4] {
        self.state
    }

    /// A number from 0 to just below 1, in steps of 2⁻⁵³.
    pub(super) fn next_unit(&mut self) -> f64 {
        let high = u64::from(self.next_word());
        let low = u64::from(self.next_word());
        ((high << 32 | low) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn next_word(&mut self) -> u32 {
        let [a, b, c, d] = &mut self.state;
        let word = a.wrapping_add(*d).rotate_left(7).wrapping_add(*a);
        let shifted = *b << 9;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(11);
        word
    }
}

fn split_mix(counter: &mut u64) -> u64 {
    *counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *counter;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_published_generators() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let expected =
            [641, 1_573_767, 3_222_811_527, 3_517_856_514, 836_907_274, 4_247_214_768, 3_867_114_732];
        assert_eq!([(); 7].map(|()| random.next_word()), expected);

        let mut counter = 0;
        assert_eq!(split_mix(&mut counter), 0xe220_a839_7b1d_cdaf);
        assert_eq!(split_mix(&mut counter), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn units_fill_their_range_evenly() {
        let mut random = Random::new(7);
        let mut tenths = [0; 10];
        for _ in 0..100_000 {
            let unit = random.next_unit();
            assert!((0.0..1.0).contains(&unit));
            tenths[(unit * 10.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (9_700..10_300).contains(count)), "{tenths:?}");
    }
}
