//! Byte-pair merging: symbols in, tokens out.
//!
//! The rule: while any two neighbouring symbols merge, merge the pair of lowest rank, and of several with
//! that rank the leftmost. Three ways to the same result:
//!
//! * `short`  up to `WINDOW` symbols: the lowest rank is found by looking at all of them.
//! * `queue`  any number of symbols: a priority queue, O(n log n).
//! * `long`   any number of symbols: `short` on overlapping windows, joined where that is proven right.
//!
//! # Why windows can be joined
//!
//! Call two tokens *compatible* if merging their symbols, with nothing around them, gives back these two
//! tokens. A sequence of tokens is the result for its text exactly if all neighbours are compatible:
//!
//! * Suppose all neighbours are compatible and yet, in merging the whole text, some merge crosses the
//!   border between two of the tokens. Take the first that does. Until then nothing crossed any border,
//!   so both tokens went through the very steps they go through by themselves: the pair of lowest rank,
//!   then leftmost, among all pairs is also the first among the pairs of any part that contains it. So
//!   the two tokens by themselves would merge across the border as well, and they are not compatible.
//! * The other way round, where two tokens stand side by side in a result, nothing crossed the borders
//!   around them, and they went through the steps they go through by themselves.
//!
//! Nothing is assumed about the order of ranks, which in Gemma 4 does not follow the length of tokens: the
//! run of 31 spaces has a lower rank than the run of two.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{
    cache::Cache,
    merges::{Merges, NO_RANK},
    vocabulary::Vocabulary,
};

/// The symbols of a text, and the rank of each with the one after it.
///
/// Ranks come with the symbols because for common characters they are found faster than by looking them
/// up. There is one rank less than there are symbols.
#[derive(Clone, Copy)]
pub(crate) struct Symbols<'s> {
    pub(crate) ids: &'s [u32],
    pub(crate) ranks: &'s [u32],
}

impl Symbols<'_> {
    fn len(&self) -> usize {
        self.ids.len()
    }

    fn part(&self, start: usize, end: usize) -> Self {
        Self { ids: &self.ids[start..end], ranks: &self.ranks[start..end.max(1) - 1] }
    }
}

/// Symbols that `short` takes, at most.
pub(crate) const WINDOW: usize = 64;

/// How `long` goes about its work. No result depends on it.
#[derive(Clone, Copy)]
struct Pace {
    /// Symbols in a window.
    window: usize,
    /// Tokens at the end of a window that are left to the next one, which sees what follows them. Fewer
    /// would often be wrong and be taken back; more would be encoded twice for nothing.
    held_back: usize,
    /// Symbols that may be merged for each symbol there is, before the queue takes over.
    work: usize,
}

const PACE: Pace = Pace { window: WINDOW, held_back: 2, work: 8 };

/// Merges up to `WINDOW` symbols and appends the tokens to `out`.
pub(crate) fn short(merges: &Merges, symbols: Symbols<'_>, out: &mut Vec<u32>) {
    let count = symbols.len();
    debug_assert!(count <= WINDOW);
    if count < 2 {
        out.extend_from_slice(symbols.ids);
        return;
    }
    // Symbols keep their places; a merged one leaves a hole that `next` and `previous` skip.
    let mut ids = [0_u32; WINDOW];
    let mut next = [0_u8; WINDOW];
    let mut previous = [0_u8; WINDOW];
    let mut orders = Orders::new();
    ids[..count].copy_from_slice(symbols.ids);
    for place in 0..count {
        next[place] = place as u8 + 1;
        previous[place] = (place as u8).wrapping_sub(1);
    }
    orders.fill(symbols.ranks);

    while let Some((rank, place)) = orders.lowest() {
        let right = usize::from(next[place]);
        ids[place] = merges.result(rank);
        orders.set(right, NO_RANK);
        next[place] = next[right];
        let after = usize::from(next[place]);
        if after < count {
            previous[after] = place as u8;
            orders.set(place, merges.rank(ids[place], ids[after]));
        } else {
            orders.set(place, NO_RANK);
        }
        if place > 0 {
            let before = usize::from(previous[place]);
            orders.set(before, merges.rank(ids[before], ids[place]));
        }
    }

    let mut place = 0;
    while place < count {
        out.push(ids[place]);
        place = usize::from(next[place]);
    }
}

/// The ranks of up to `WINDOW` pairs, each above its place, so that the lowest is also the leftmost of
/// its rank; in groups whose lowest is known, so that finding the lowest of all looks at few of them.
struct Orders {
    all: [[u32; GROUP]; WINDOW / GROUP],
    lowest: [u32; WINDOW / GROUP],
}

const GROUP: usize = 8;

impl Orders {
    fn new() -> Self {
        Self { all: [[NO_RANK; GROUP]; WINDOW / GROUP], lowest: [NO_RANK; WINDOW / GROUP] }
    }

    #[inline]
    fn order(rank: u32, place: usize) -> u32 {
        if rank == NO_RANK { NO_RANK } else { rank << 6 | place as u32 }
    }

    #[inline]
    fn fill(&mut self, ranks: &[u32]) {
        for (place, &rank) in ranks.iter().enumerate() {
            self.all[place / GROUP][place % GROUP] = Self::order(rank, place);
        }
        for group in 0..ranks.len().div_ceil(GROUP) {
            self.lowest[group] = lowest(&self.all[group]);
        }
    }

    #[inline]
    fn set(&mut self, place: usize, rank: u32) {
        let group = place / GROUP % (WINDOW / GROUP);
        self.all[group][place % GROUP] = Self::order(rank, place);
        self.lowest[group] = lowest(&self.all[group]);
    }

    /// The rank and the place of the pair to merge next.
    #[inline]
    fn lowest(&self) -> Option<(u32, usize)> {
        let order = lowest(&self.lowest);
        (order != NO_RANK).then_some((order >> 6, order as usize % WINDOW))
    }
}

#[inline]
fn lowest(orders: &[u32; 8]) -> u32 {
    let [a, b, c, d, e, f, g, h] = *orders;
    a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)))
}

/// Merges any number of symbols with a queue and appends the tokens to `out`.
pub(crate) fn queue(merges: &Merges, symbols: Symbols<'_>, out: &mut Vec<u32>) {
    let count = symbols.len();
    let mut ids = symbols.ids.to_vec();
    let mut next: Vec<usize> = (1..=count).collect();
    let mut previous: Vec<usize> = (0..count).map(|place| place.wrapping_sub(1)).collect();
    // A merged symbol stays in its place as `GONE`, and the queue's entries for it are skipped later.
    const GONE: u32 = u32::MAX;

    let mut pairs = BinaryHeap::new();
    for (place, &rank) in symbols.ranks.iter().enumerate() {
        if rank != NO_RANK {
            pairs.push(Reverse((rank, place)));
        }
    }
    while let Some(Reverse((rank, place))) = pairs.pop() {
        let right = next[place];
        let stale = ids[place] == GONE || right >= count || merges.rank(ids[place], ids[right]) != rank;
        if stale {
            continue;
        }
        ids[place] = merges.result(rank);
        ids[right] = GONE;
        next[place] = next[right];
        let after = next[place];
        if after < count {
            previous[after] = place;
            let rank = merges.rank(ids[place], ids[after]);
            if rank != NO_RANK {
                pairs.push(Reverse((rank, place)));
            }
        }
        if place > 0 {
            let before = previous[place];
            let rank = merges.rank(ids[before], ids[place]);
            if rank != NO_RANK {
                pairs.push(Reverse((rank, before)));
            }
        }
    }
    out.extend(ids.into_iter().filter(|&id| id != GONE));
}

/// What `long` keeps from window to window, and from piece to piece.
pub(crate) struct LongMerger<'t> {
    merges: &'t Merges,
    vocabulary: &'t Vocabulary,
    pace: Pace,
    windows: Cache<u32>,
    window: Vec<u32>,
    pair: Vec<u32>,
}

impl<'t> LongMerger<'t> {
    /// For a text of `length` bytes.
    pub(crate) fn new(merges: &'t Merges, vocabulary: &'t Vocabulary, length: usize) -> Self {
        let (window, pair) = (Vec::new(), Vec::new());
        Self { merges, vocabulary, pace: PACE, windows: Cache::new(length), window, pair }
    }

    /// Merges any number of symbols and appends the tokens to `out`.
    ///
    /// Linear for every text met so far; should a vocabulary be made so that windows rarely fit together,
    /// the queue takes over after a bounded amount of work.
    pub(crate) fn merge(&mut self, symbols: Symbols<'_>, out: &mut Vec<u32>) {
        let first = out.len();
        if self.merge_windows(symbols, out).is_none() {
            out.truncate(first);
            queue(self.merges, symbols, out);
        }
    }

    /// `None` if windows took too much work.
    fn merge_windows(&mut self, symbols: Symbols<'_>, out: &mut Vec<u32>) -> Option<()> {
        let first = out.len();
        let pace = self.pace;
        let mut work_left = symbols.len().saturating_mul(pace.work).saturating_add(pace.window);
        let mut at = 0;
        let mut size = pace.window;
        // The token after the last one in `out`, in a result that had both.
        let mut follower = None;
        loop {
            let end = symbols.len().min(at + size);
            work_left = work_left.checked_sub(end - at)?;
            self.merge_window(symbols.part(at, end));

            let fits = match (out[first..].last(), self.window.first()) {
                (Some(&left), Some(&right)) if follower != Some(right) => {
                    let start = at - self.vocabulary.characters(left);
                    let end = at + self.vocabulary.characters(right);
                    work_left = work_left.checked_sub(end - start)?;
                    self.compatible(symbols.part(start, end), left, right)
                }
                _ => true,
            };
            if !fits {
                // Take tokens back, twice as much text each time, until what stays is not touched.
                let mut taken = 0;
                while taken < size
                    && out.len() > first
                    && let Some(token) = out.pop()
                {
                    taken += self.vocabulary.characters(token);
                }
                at -= taken;
                size = size.saturating_add(taken);
                follower = None;
                continue;
            }
            if end == symbols.len() {
                out.extend_from_slice(&self.window);
                return Some(());
            }
            let kept = self.window.len().saturating_sub(pace.held_back);
            if kept == 0 {
                size = size.saturating_mul(2);
                continue;
            }
            out.extend_from_slice(&self.window[..kept]);
            at += self.window[..kept].iter().map(|&id| self.vocabulary.characters(id)).sum::<usize>();
            follower = self.window.get(kept).copied();
            size = pace.window;
        }
    }

    /// Leaves the tokens of `symbols` in `self.window`.
    fn merge_window(&mut self, symbols: Symbols<'_>) {
        self.window.clear();
        if symbols.len() > WINDOW {
            return queue(self.merges, symbols, &mut self.window);
        }
        match self.windows.get(symbols.ids) {
            Ok(tokens) => self.window.extend_from_slice(tokens),
            Err(slot) => {
                short(self.merges, symbols, &mut self.window);
                if let Some(slot) = slot {
                    self.windows.put(slot, symbols.ids, &self.window);
                }
            }
        }
    }

    /// Whether two tokens are compatible; `symbols` are those of both.
    fn compatible(&mut self, symbols: Symbols<'_>, left: u32, right: u32) -> bool {
        self.pair.clear();
        if symbols.len() > WINDOW {
            queue(self.merges, symbols, &mut self.pair);
        } else {
            short(self.merges, symbols, &mut self.pair);
        }
        self.pair == [left, right]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::boundary::Boundaries;

    /// The rule, word for word.
    fn obvious(merges: &Merges, symbols: &[u32]) -> Vec<u32> {
        let mut symbols = symbols.to_vec();
        loop {
            let ranks = symbols.windows(2).map(|pair| merges.rank(pair[0], pair[1]));
            let Some((rank, place)) = ranks.zip(0..).filter(|&(rank, _)| rank != NO_RANK).min() else {
                return symbols;
            };
            symbols.splice(place..place + 2, [merges.result(rank)]);
        }
    }

    /// All strings of up to `longest` letters `a` to `c` as tokens, and some of the possible merges in any
    /// order: chains with falling ranks, results that several merges make, results that nothing reaches.
    fn vocabulary_and_merges(longest: usize, picks: &[usize]) -> (Vocabulary, Merges) {
        let mut tokens = vec![String::new()];
        let mut start = 0;
        for _ in 0..longest {
            let end = tokens.len();
            for token in start..end {
                for letter in ["a", "b", "c"] {
                    tokens.push(format!("{}{letter}", tokens[token]));
                }
            }
            start = end;
        }
        tokens.remove(0);
        let mut possible = Vec::new();
        for token in &tokens {
            for cut in 1..token.len() {
                possible.push(format!("{} {}", &token[..cut], &token[cut..]));
            }
        }
        let mut merges = Vec::new();
        for pick in picks {
            merges.push(possible.swap_remove(pick % possible.len()));
        }
        let vocabulary = Vocabulary::new(tokens.iter().map(|token| token.as_bytes()), &[]).unwrap();
        let lines = merges.iter().map(|merge| merge.as_bytes());
        let merges = Merges::new(lines, &vocabulary, &mut Boundaries::new()).unwrap();
        (vocabulary, merges)
    }

    fn check(vocabulary: &Vocabulary, merges: &Merges, text: &str) {
        let symbols: Vec<u32> =
            text.bytes().map(|letter| vocabulary.id(&[letter]).expect("letters are tokens")).collect();
        let expected = obvious(merges, &symbols);
        let pairs = symbols.windows(2).map(|pair| merges.rank(pair[0], pair[1]));
        let ranks: Vec<u32> = pairs.collect();
        let symbols = Symbols { ids: &symbols, ranks: &ranks };
        let mut out = Vec::new();
        queue(merges, symbols, &mut out);
        assert_eq!(out, expected, "queue on {text}");
        if symbols.len() <= WINDOW {
            out.clear();
            short(merges, symbols, &mut out);
            assert_eq!(out, expected, "short on {text}");
        }
        // Small windows with nothing held back rarely fit together, and little work is soon used up.
        let mut long = LongMerger::new(merges, vocabulary, 1024);
        for window in [WINDOW, 16, 7, 2] {
            for (held_back, work) in [(2, 8), (1, 100), (0, 100), (0, 1)] {
                long.pace = Pace { window, held_back, work };
                out.clear();
                out.push(7); // what is in `out` already stays
                long.merge(symbols, &mut out);
                assert_eq!(out[0], 7);
                assert_eq!(out[1..], expected, "windows of {window}, {held_back} held back, on {text}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// All ways to merge agree with the rule, for merges in any order and texts that repeat themselves
        /// or do not.
        #[test]
        fn all_ways_agree(
            picks in prop::collection::vec(any::<usize>(), 0..300),
            period in "[abc]{1,9}",
            repeats in 1_usize..40,
            text in "[abc]{0,200}",
        ) {
            let (vocabulary, merges) = vocabulary_and_merges(5, &picks);
            check(&vocabulary, &merges, &text);
            check(&vocabulary, &merges, &period.repeat(repeats));
            check(&vocabulary, &merges, &(period.repeat(repeats) + &text));
            check(&vocabulary, &merges, &(text + &period.repeat(repeats)));
        }
    }

    /// Tokens longer than a window, which make windows grow.
    #[test]
    fn tokens_may_be_longer_than_a_window() {
        let mut tokens = vec!["a".to_owned(), "b".to_owned()];
        let mut merges = Vec::new();
        for power in 0..10 {
            let half = "a".repeat(1 << power);
            merges.push(format!("{half} {half}"));
            tokens.push(half.repeat(2));
        }
        let vocabulary = Vocabulary::new(tokens.iter().map(|token| token.as_bytes()), &[]).unwrap();
        let lines = merges.iter().map(|merge| merge.as_bytes());
        let merges = Merges::new(lines, &vocabulary, &mut Boundaries::new()).unwrap();
        for length in [63, 64, 65, 200, 1000, 3000] {
            check(&vocabulary, &merges, &"a".repeat(length));
            check(&vocabulary, &merges, &("a".repeat(length) + "b" + &"a".repeat(length)));
        }
    }
}
