//! The order of tokens by logit, and its first so many in time linear in the size of the vocabulary.

use std::fmt;

use super::weight::any;

/// A place in an order: larger keys first, and of equal keys the one at the lower position.
///
/// Key and position in one integer compare in one instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u64);

impl Rank {
    const SIGN: u32 = 1 << 31;

    /// The rank of a key that is a number.
    #[inline]
    pub(super) fn new(key: f32, position: u32) -> Self {
        // Adding zero makes the two zeros equal, as they are when compared.
        let bits = (key + 0.0).to_bits();
        // For numbers below zero the order of the bits is already the descending one.
        let descending = if bits & Self::SIGN == 0 { !(bits | Self::SIGN) } else { bits };
        Self(u64::from(descending) << 32 | u64::from(position))
    }

    #[inline]
    pub(super) fn position(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(super) fn key(self) -> f32 {
        let descending = (self.0 >> 32) as u32;
        f32::from_bits(if descending & Self::SIGN == 0 { !descending ^ Self::SIGN } else { descending })
    }
}

impl fmt::Debug for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.key(), self.position())
    }
}

/// Finds the first of many keys, with a buffer that it keeps.
#[derive(Debug, Clone, Default)]
pub(super) struct Select {
    ranks: Vec<Rank>,
}

impl Select {
    /// Keys looked at together: most hold nothing of interest, and one test tells.
    const CHUNK: usize = 32;

    /// The first `count` of the keys that come after `after`, in order. Keys of −∞ do not count.
    ///
    /// Keys are collected until there are twice as many as needed, then the worse half is dropped, and
    /// from there on only keys better than all dropped ones are looked at. So every key costs a comparison,
    /// and every collected one a constant more, whatever order they come in.
    pub(super) fn first(&mut self, keys: &[f32], after: Option<Rank>, count: usize) -> &[Rank] {
        let ranks = &mut self.ranks;
        ranks.clear();
        if count == 0 {
            return ranks;
        }
        let room = count.saturating_mul(2).max(2 * Self::CHUNK).min(keys.len());
        ranks.reserve(room);
        let mut floor = f32::NEG_INFINITY;
        for (index, chunk) in keys.chunks(Self::CHUNK).enumerate() {
            if !any(chunk, |key| key > floor) {
                continue;
            }
            for (position, &key) in (index * Self::CHUNK..).zip(chunk) {
                // A later key that equals the floor comes after it.
                if key <= floor {
                    continue;
                }
                let rank = Rank::new(key, position as u32);
                if after.is_some_and(|after| rank <= after) {
                    continue;
                }
                if ranks.len() == room {
                    let (_, last, _) = ranks.select_nth_unstable(count - 1);
                    floor = last.key();
                    ranks.truncate(count);
                    if key <= floor {
                        continue;
                    }
                }
                ranks.push(rank);
            }
        }
        if ranks.len() > count {
            ranks.select_nth_unstable(count - 1);
            ranks.truncate(count);
        }
        ranks.sort_unstable();
        ranks
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranks_keep_their_parts_and_their_order() {
        let keys = [f32::INFINITY, f32::MAX, 1.5, 1.0, f32::MIN_POSITIVE, 1e-45, 0.0, -1e-45, -1.0, f32::MIN];
        for (i, &key) in keys.iter().enumerate() {
            let rank = Rank::new(key, 7);
            assert_eq!((rank.key(), rank.position()), (key, 7));
            assert!(keys[..i].iter().all(|&larger| Rank::new(larger, 9) < rank), "{key}");
            assert!(Rank::new(key, 6) < rank);
        }
        assert_eq!(Rank::new(0.0, 1), Rank::new(-0.0, 1));
        assert!(Rank::new(f32::MIN, 0) < Rank::new(f32::NEG_INFINITY, 0));
    }

    /// Few different keys, so that there are ties, or many.
    fn keys() -> impl Strategy<Value = Vec<f32>> {
        let coarse = prop_oneof![8 => (-4_i8..4).prop_map(f32::from), 1 => Just(f32::NEG_INFINITY)];
        prop_oneof![
            prop::collection::vec(coarse, 0..300),
            prop::collection::vec(-30.0_f32..30.0, 0..300),
            prop::collection::vec(-30.0_f32..30.0, 0..300).prop_map(|mut keys| {
                keys.sort_unstable_by(f32::total_cmp);
                keys
            }),
        ]
    }

    proptest! {
        /// Block by block, the selection gives what sorting gives.
        #[test]
        fn selection_agrees_with_sorting(keys in keys(), count in 1..120_usize) {
            let mut sorted: Vec<_> = (0..keys.len() as u32)
                .filter(|&position| keys[position as usize] > f32::NEG_INFINITY)
                .map(|position| Rank::new(keys[position as usize], position))
                .collect();
            sorted.sort_unstable();
            let mut select = Select::default();
            let mut after = None;
            for expected in sorted.chunks(count).chain([&[][..]]) {
                let found = select.first(&keys, after, count);
                prop_assert_eq!(found, expected);
                after = found.last().copied().or(after);
            }
            prop_assert!(select.first(&keys, None, 0).is_empty());
        }
    }
}
