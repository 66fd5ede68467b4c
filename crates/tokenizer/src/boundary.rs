//! Where text can be cut before merging without changing the result.
//!
//! A merge joins the last character of its left part to the first character of its right part. Two
//! neighbouring characters that no merge joins therefore stay in different tokens whatever surrounds
//! them, and the text can be cut between them. In Gemma 4 that is before nearly every space, around
//! digits and around most punctuation, so prose falls into words.

use crate::character::{BROKEN, character_at, last_character};

const NEWLINE: u32 = b'\n' as u32;

/// Bits of the filter for pairs beyond ASCII, as a power of two. Gemma 4 sets 30,000 of the million.
const FILTER_BITS: u32 = 20;

/// The pairs of neighbouring characters that may end up in one token.
pub(crate) struct Boundaries {
    /// For each left character in ASCII, a bit for each right one: exact.
    ascii: Box<[[u64; 2]; 128]>,
    /// All other pairs, by hash. A pair that shares its bit with another is kept together for nothing,
    /// which costs a little time and changes no result.
    filter: Vec<u64>,
}

impl Boundaries {
    /// Cuts everywhere except inside a run of newlines, which is always considered whole.
    pub(crate) fn new() -> Self {
        let mut this = Self { ascii: Box::new([[0; 2]; 128]), filter: vec![0; 1 << (FILTER_BITS - 6)] };
        this.set(NEWLINE, NEWLINE);
        this
    }

    /// Notes that the end of one text may be merged to the beginning of another.
    ///
    /// Newlines and other characters are never merged, even if a merge says so: encoding takes runs of
    /// newlines by themselves.
    pub(crate) fn join(&mut self, left: &[u8], right: &[u8]) {
        let left = last_character(left);
        let (right, _) = character_at(right, 0);
        if (left == NEWLINE) == (right == NEWLINE) {
            self.set(left, right);
        }
    }

    fn set(&mut self, left: u32, right: u32) {
        if left < 128 && right < 128 {
            self.ascii[left as usize][right as usize >> 6] |= 1 << (right & 63);
        } else {
            let (word, bit) = filter_place(left, right);
            self.filter[word] |= bit;
        }
    }

    #[inline]
    fn joined(&self, left: u32, right: u32) -> bool {
        if left < 128 && right < 128 {
            self.ascii[left as usize][right as usize >> 6] >> (right & 63) & 1 == 1
        } else {
            let (word, bit) = filter_place(left, right);
            // A shared bit must not hide the end of a run of newlines, nor keep a broken character.
            self.filter[word] & bit != 0 && left != NEWLINE && right != NEWLINE && right != BROKEN
        }
    }

    /// The end of the piece that starts at `start`, which must be inside `text`.
    #[inline]
    pub(crate) fn piece_end(&self, text: &[u8], start: usize) -> usize {
        let (mut left, length) = character_at(text, start);
        let mut at = start + length;
        if left == BROKEN {
            return at;
        }
        while at < text.len() {
            let (right, length) = character_at(text, at);
            if !self.joined(left, right) {
                return at;
            }
            left = right;
            at += length;
        }
        at
    }

    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.ascii) + 8 * self.filter.capacity()
    }
}

#[inline]
fn filter_place(left: u32, right: u32) -> (usize, u64) {
    let pair = u64::from(left) << 32 | u64::from(right);
    let hash = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - FILTER_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces<'t>(boundaries: &Boundaries, text: &'t str) -> Vec<&'t str> {
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let end = boundaries.piece_end(text.as_bytes(), at);
            pieces.push(&text[at..end]);
            at = end;
        }
        pieces
    }

    #[test]
    fn text_is_cut_where_no_merge_joins() {
        let mut boundaries = Boundaries::new();
        for (left, right) in [("▁", "a"), ("ca", "bb"), ("é", "a"), ("a", "\n"), ("\n", "é")] {
            boundaries.join(left.as_bytes(), right.as_bytes());
        }
        assert_eq!(pieces(&boundaries, " ab b"), [" ab", " ", "b"]);
        assert_eq!(pieces(&boundaries, "▁ab"), ["▁ab"]);
        assert_eq!(pieces(&boundaries, "éaé"), ["éa", "é"]);
        assert_eq!(pieces(&boundaries, "a\n\n\né"), ["a", "\n\n\n", "é"]);
    }
}
