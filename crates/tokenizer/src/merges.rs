//! The merges: which two tokens may become one, and in which order of precedence.
//!
//! Gemma 4 lists 514,906 of them, about two for each token: every way to cut a token into two others.
//! Merging spends its time waiting for memory here, mostly to learn that two tokens do not merge. A bitmap
//! small enough for the processor's cache says that nearly nine times out of ten. Behind it is an
//! open-addressing table with one word for each merge: left part, right part and rank. What a merge makes
//! is found by rank. Together they take 10.5 MiB.
//!
//! Ids can stand for texts because both parts and the result of every merge are required to be tokens.

use crate::{
    TokenizerError,
    boundary::Boundaries,
    character::{CharacterTable, NONE},
    vocabulary::{ID_BITS, Vocabulary, check_crowding},
};

const RANK_BITS: u32 = 64 - 2 * ID_BITS;
const RANK_MASK: u64 = (1 << RANK_BITS) - 1;
const EMPTY: u64 = u64::MAX;

/// Twice what Gemma 4 has, and a size of table that any machine can hold.
const MAX_MERGES: usize = 1 << 20;

/// Merges read at a time.
const BATCH: usize = 256;

/// The rank of two tokens that do not merge; above every rank.
pub(crate) const NO_RANK: u32 = u32::MAX;

/// All merges of a vocabulary.
pub(crate) struct Merges {
    /// Open addressing: the parts of a merge above its rank.
    table: Vec<u64>,
    /// A bit for each pair that merges, by hash; shared with pairs that do not.
    filter: Vec<u64>,
    /// The token that each merge makes, by rank.
    results: Vec<u32>,
    /// The ranks of pairs of ASCII characters, row by row, which most merging begins with.
    ascii: Vec<u32>,
    /// Places that were taken on the way to those of all entries.
    steps: usize,
}

impl Merges {
    /// Reads the merges, lowest rank first, and notes in `boundaries` which characters they join.
    ///
    /// A merge that names a text outside the vocabulary is refused rather than skipped: skipping it would
    /// give other ids than the engine that wrote the file, without a word.
    pub(crate) fn new<'a>(
        merges: impl Iterator<Item = &'a [u8]>,
        vocabulary: &Vocabulary,
        boundaries: &mut Boundaries,
    ) -> Result<Self, TokenizerError> {
        let expected = merges.size_hint().0.min(MAX_MERGES);
        let results = Vec::with_capacity(expected);
        let mut this = Self { table: Vec::new(), filter: Vec::new(), results, ascii: Vec::new(), steps: 0 };
        this.resize(expected);

        let mut index = 0;
        let mut merges = merges.peekable();
        let (mut parts, mut ids, mut joined) = (Vec::new(), Vec::new(), Vec::new());
        while merges.peek().is_some() {
            parts.clear();
            for merge in merges.by_ref().take(BATCH) {
                let (left, right) = split(merge).ok_or_else(|| TokenizerError::MalformedMerge {
                    index: index + parts.len() / 2,
                    found: String::from_utf8_lossy(merge).into_owned(),
                })?;
                parts.extend([left, right]);
            }
            vocabulary.ids(&parts, &mut ids);
            for (texts, ids) in parts.chunks_exact(2).zip(ids.chunks_exact(2)) {
                joined.clear();
                joined.extend_from_slice(texts[0]);
                joined.extend_from_slice(texts[1]);
                let known = |id: Option<u32>, text: &[u8]| {
                    id.ok_or_else(|| TokenizerError::UnknownMergeToken {
                        index,
                        text: String::from_utf8_lossy(text).into_owned(),
                    })
                };
                // The list mostly walks through its results in order of id, several merges to each.
                let before = this.results.last().copied().unwrap_or(0);
                let (left, right) = (known(ids[0], texts[0])?, known(ids[1], texts[1])?);
                let result = known(vocabulary.id_near(before, &joined), &joined)?;
                this.add(left, right, result)?;
                boundaries.join(texts[0], texts[1]);
                index += 1;
            }
        }
        this.results.shrink_to_fit();
        Ok(this)
    }

    /// Makes room for `merges` entries at a load of at most one half.
    fn resize(&mut self, merges: usize) {
        let places = (merges * 2).next_power_of_two().max(32);
        let old = std::mem::replace(&mut self.table, vec![EMPTY; places]);
        self.filter = vec![0; places / 16];
        self.steps = 0;
        for entry in old.into_iter().filter(|&entry| entry != EMPTY) {
            self.enter(entry);
        }
    }

    /// Adds the merge with the next rank.
    fn add(&mut self, left: u32, right: u32, result: u32) -> Result<(), TokenizerError> {
        let rank = self.results.len();
        if rank == MAX_MERGES {
            return Err(TokenizerError::TooLarge { what: "merges", found: rank + 1, limit: MAX_MERGES });
        }
        if (rank + 1) * 2 > self.table.len() {
            self.resize(rank + 1);
        }
        self.enter(key(left, right) << RANK_BITS | rank as u64);
        self.results.push(result);
        check_crowding("merges", self.steps, self.results.len())
    }

    /// Puts an entry in its place. The first of two equal merges counts.
    fn enter(&mut self, entry: u64) {
        let key = entry >> RANK_BITS;
        let (word, bit) = self.filter_place(key);
        self.filter[word] |= bit;
        let place = self.find(key);
        self.steps += place.wrapping_sub(hash(key) as usize) & (self.table.len() - 1);
        if self.table[place] == EMPTY {
            self.table[place] = entry;
        }
    }

    /// The place that holds `key`, or the empty one where it belongs.
    #[inline]
    fn find(&self, key: u64) -> usize {
        let mask = self.table.len() - 1;
        let mut place = hash(key) as usize & mask;
        while self.table[place] != EMPTY && self.table[place] >> RANK_BITS != key {
            place = (place + 1) & mask;
        }
        place
    }

    /// The rank of merging two tokens, or `NO_RANK`.
    #[inline]
    pub(crate) fn rank(&self, left: u32, right: u32) -> u32 {
        let key = key(left, right);
        let (word, bit) = self.filter_place(key);
        if self.filter[word] & bit == 0 {
            return NO_RANK;
        }
        match self.table[self.find(key)] {
            EMPTY => NO_RANK,
            entry => (entry & RANK_MASK) as u32,
        }
    }

    /// Where the filter keeps a pair: left parts are scattered, the right parts of one left part lie as their
    /// ids do.
    ///
    /// Ids that are close belong to characters of one script, or to tokens about as common. Whoever asks
    /// for one pair soon asks for others with the same left part and such a right part, and finds them in
    /// memory just read.
    #[inline]
    fn filter_place(&self, key: u64) -> (usize, u64) {
        let (left, right) = (key >> ID_BITS, key & ((1 << ID_BITS) - 1));
        let bit = hash(left).wrapping_add(right) as usize & (self.filter.len() * 64 - 1);
        (bit >> 6, 1 << (bit & 63))
    }

    /// The token that the merge of this rank makes; `rank` must come from [`Merges::rank`].
    #[inline]
    pub(crate) fn result(&self, rank: u32) -> u32 {
        self.results[rank as usize]
    }

    /// Tabulates the pairs of ASCII characters.
    pub(crate) fn tabulate_ascii(&mut self, characters: &CharacterTable) {
        let tokens: Vec<u32> = (0..128).map(|character| characters.get(character)).collect();
        let rank = |left, right| if left == NONE || right == NONE { NO_RANK } else { self.rank(left, right) };
        self.ascii =
            tokens.iter().flat_map(|&left| tokens.iter().map(move |&right| rank(left, right))).collect();
    }

    /// The rank of merging two ASCII characters, or `NO_RANK`.
    #[inline]
    pub(crate) fn ascii_rank(&self, left: u32, right: u32) -> u32 {
        self.ascii[(left << 7 | right) as usize]
    }

    pub(crate) fn memory(&self) -> usize {
        4 * (self.ascii.capacity() + self.results.capacity())
            + 8 * (self.table.capacity() + self.filter.capacity())
    }
}

#[inline]
fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << ID_BITS | u64::from(right)
}

/// Mixes a key so that all lower bits depend on all of it.
#[inline]
fn hash(key: u64) -> u64 {
    let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 32
}

/// Cuts at the first space after the first byte; neither part may be empty.
fn split(merge: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = 1 + memchr::memchr(b' ', merge.get(1..)?)?;
    let (left, right) = (&merge[..space], &merge[space + 1..]);
    (!right.is_empty()).then_some((left, right))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn merges_split_at_the_first_space_after_the_first_byte() {
        assert_eq!(split(b"a b"), Some((&b"a"[..], &b"b"[..])));
        assert_eq!(split(b"  b"), Some((&b" "[..], &b"b"[..])));
        assert_eq!(split(b"a b c"), Some((&b"a"[..], &b"b c"[..])));
        for malformed in [&b""[..], b" ", b"a", b"ab", b" b", b"a "] {
            assert_eq!(split(malformed), None, "{malformed:?}");
        }
    }
}
