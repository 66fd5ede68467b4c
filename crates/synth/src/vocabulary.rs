//! A vocabulary without a real one at hand: the layout of Gemma 4's, with made-up pieces.
//!
//! The order is that of the real one: special tokens, runs of newlines and spaces, bytes, pieces that merges
//! build, single characters, runs of tabs, and the special tokens of media. With room for it, special tokens,
//! runs and bytes have their real ids; else the same order is kept without gaps.
//!
//! Pieces begin with English words, so that prose does not fall apart into letters. Then come all pairs of
//! letters, and pairs of those for as long as places are left. Each piece is the result of one merge of two
//! earlier tokens.

use std::collections::HashSet;

use crate::{SynthError, words::WORDS};

/// The size of Gemma 4's vocabulary.
pub const REAL_VOCABULARY: u32 = 262_144;
/// The fewest tokens that a vocabulary can have: all special tokens, bytes and ASCII, and some pieces.
pub const SMALLEST_VOCABULARY: u32 = 512;
/// The most tokens that a vocabulary can have, before it runs out of pieces.
pub const LARGEST_VOCABULARY: u32 = 400_000;

pub(crate) const TINY_VOCABULARY: u32 = 2048;

/// From this size on, special tokens have their real ids.
const REAL_LAYOUT: u32 = 258_885;
/// Where, in the real layout, the special tokens for text end and those for media begin.
const TEXT_SPECIALS_END: u32 = 107;
const MEDIA_SPECIALS: u32 = 255_999;
/// Between runs of spaces and bytes the real vocabulary has tags, among them one that is easily mistaken for
/// the end of a text.
const TAGS: u32 = 70;
const MISLEADING_TAG: (u32, &str) = (44, "</s>");

const SPACE: char = '▁';

/// The special tokens with their ids and types in the real layout.
const SPECIALS: [(u32, &str, Type); 24] = [
    (0, "<pad>", Type::Control),
    (1, "<eos>", Type::Control),
    (2, "<bos>", Type::Control),
    (3, "<unk>", Type::Control),
    (4, "<mask>", Type::Control),
    (46, "<|tool>", Type::Control),
    (47, "<tool|>", Type::Control),
    (48, "<|tool_call>", Type::UserDefined),
    (49, "<tool_call|>", Type::UserDefined),
    (50, "<|tool_response>", Type::UserDefined),
    (51, "<tool_response|>", Type::UserDefined),
    (52, "<|\"|>", Type::UserDefined),
    (98, "<|think|>", Type::Control),
    (100, "<|channel>", Type::UserDefined),
    (101, "<channel|>", Type::UserDefined),
    (105, "<|turn>", Type::Control),
    (106, "<turn|>", Type::Control),
    (255_999, "<|image>", Type::Control),
    (256_000, "<|audio>", Type::Control),
    (258_880, "<|image|>", Type::Control),
    (258_881, "<|audio|>", Type::Control),
    (258_882, "<image|>", Type::Control),
    (258_883, "<audio|>", Type::Control),
    (258_884, "<|video|>", Type::Control),
];

/// Characters with a token of their own, after the space and ASCII: letters of several scripts, punctuation,
/// arrows, mathematical signs, and then as many ideographs as there is room for.
const CHARACTERS: [(char, char); 17] = [
    ('¡', '¬'),
    ('®', 'ſ'),
    ('Α', 'Ρ'),
    ('Σ', 'ώ'),
    ('А', 'я'),
    ('א', 'ת'),
    ('ا', 'غ'),
    ('ف', 'ي'),
    ('अ', 'ह'),
    ('‐', '‧'),
    ('←', '⇿'),
    ('∀', '⋿'),
    ('ぁ', 'ゖ'),
    ('ァ', 'ヺ'),
    ('가', '각'),
    ('一', '鿿'),
    ('갂', '힣'),
];

/// Characters in the real vocabulary.
const REAL_CHARACTERS: usize = 19_225;
/// The space and the printable part of ASCII, which no vocabulary goes without.
const LEAST_CHARACTERS: usize = 95;

/// Letters, the common ones first.
const LETTERS: &[u8; 26] = b"etaoinsrhldcumfpgwybvkxjqz";

/// The types that files give tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Normal = 1,
    Control = 3,
    UserDefined = 4,
    Byte = 6,
}

/// Tokens and merges, as a file lists them.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    pub(crate) tokens: Vec<String>,
    pub(crate) types: Vec<i32>,
    pub(crate) merges: Vec<String>,
    /// How many tokens without a meaning there are so far.
    unused: u32,
}

impl Vocabulary {
    /// A vocabulary of exactly this many tokens.
    pub(crate) fn new(size: u32) -> Result<Self, SynthError> {
        if !(SMALLEST_VOCABULARY..=LARGEST_VOCABULARY).contains(&size) {
            return Err(SynthError::Vocabulary {
                found: size,
                smallest: SMALLEST_VOCABULARY,
                largest: LARGEST_VOCABULARY,
            });
        }
        let real = size >= REAL_LAYOUT;
        let longest_run = if real { 31 } else { 8 };
        let mut this = Self::default();
        this.specials(real, 0..TEXT_SPECIALS_END);
        this.runs('\n', 1, longest_run);
        this.runs(SPACE, 2, longest_run);
        if real {
            for tag in 0..TAGS {
                match MISLEADING_TAG {
                    (place, text) if place == tag => this.push(text.to_owned(), Type::Normal),
                    _ => this.push_unused(),
                }
            }
        }
        for byte in 0..=u8::MAX {
            this.push(format!("<0x{byte:02X}>"), Type::Byte);
        }

        // What follows the pieces has a known length, and the pieces fill the places before it.
        let media = if real { MEDIA_SPECIALS..size } else { MEDIA_SPECIALS..REAL_LAYOUT };
        let media_len = if real { media.len() } else { specials_in(&media).count() };
        let characters = if real {
            REAL_CHARACTERS
        } else {
            (LEAST_CHARACTERS + (size - SMALLEST_VOCABULARY) as usize / 8).min(REAL_CHARACTERS)
        };
        let rest = characters + longest_run + media_len;
        let pieces = pieces(size as usize - this.tokens.len() - rest);
        for (left, right) in &pieces {
            this.push(format!("{left}{right}"), Type::Normal);
        }
        for character in all_characters().take(characters) {
            this.push(character.to_string(), Type::Normal);
        }
        this.runs('\t', 1, longest_run);
        this.specials(real, media);

        this.merges = run_merges(longest_run);
        this.merges.extend(pieces.iter().map(|(left, right)| format!("{left} {right}")));
        Ok(this)
    }

    /// The id of a special token, which every vocabulary has.
    pub(crate) fn special(&self, text: &str) -> u32 {
        self.tokens.iter().position(|token| token == text).unwrap_or_default() as u32
    }

    fn push(&mut self, text: String, kind: Type) {
        self.tokens.push(text);
        self.types.push(kind as i32);
    }

    fn push_unused(&mut self) {
        self.push(format!("<unused{}>", self.unused), Type::Normal);
        self.unused += 1;
    }

    /// The special tokens in a range of real ids, and, if ids are to be real, what fills the gaps.
    fn specials(&mut self, real: bool, ids: std::ops::Range<u32>) {
        let mut next = ids.start;
        for (id, text, kind) in specials_in(&ids) {
            if real {
                (next..id).for_each(|_| self.push_unused());
            }
            self.push(text.to_owned(), kind);
            next = id + 1;
        }
        if real {
            (next..ids.end).for_each(|_| self.push_unused());
        }
    }

    /// Runs of a character, from the shortest to the longest.
    fn runs(&mut self, character: char, shortest: usize, longest: usize) {
        for length in shortest..=longest {
            self.push(run(character, length), Type::Normal);
        }
    }
}

fn specials_in(ids: &std::ops::Range<u32>) -> impl Iterator<Item = (u32, &'static str, Type)> {
    SPECIALS.into_iter().filter(move |(id, ..)| ids.contains(id))
}

fn run(character: char, length: usize) -> String {
    std::iter::repeat_n(character, length).collect()
}

/// Every way to make a run of two others, the longest left part first.
fn run_merges(longest: usize) -> Vec<String> {
    let mut merges = Vec::new();
    for left in (1..longest).rev() {
        for right in (1..=longest - left).rev() {
            for character in ['\n', SPACE, '\t'] {
                merges.push(format!("{} {}", run(character, left), run(character, right)));
            }
        }
    }
    merges
}

fn all_characters() -> impl Iterator<Item = char> {
    let more = CHARACTERS.into_iter().flat_map(|(first, last)| first..=last);
    std::iter::once(SPACE).chain('!'..='~').chain(more)
}

/// The first `count` pieces, as the two tokens that each is merged from.
fn pieces(count: usize) -> Vec<(String, String)> {
    let all = word_pieces().into_iter().chain(letter_pairs()).chain(paired_pairs());
    all.take(count).collect()
}

/// Every beginning of every word, from its second character on.
///
/// Their merges come first, so that a word after a space is always joined from its beginning.
fn word_pieces() -> Vec<(String, String)> {
    let mut known = HashSet::new();
    let mut pieces = Vec::new();
    for word in WORDS.split_whitespace() {
        let mut beginning = SPACE.to_string();
        for character in word.chars() {
            let piece = format!("{beginning}{character}");
            if known.insert(piece.clone()) {
                pieces.push((beginning, character.to_string()));
            }
            beginning = piece;
        }
    }
    pieces
}

/// All pairs of letters, pairs of common ones first.
fn letter_pairs() -> impl Iterator<Item = (String, String)> {
    pairs_of_letters().map(|[a, b]| (char::from(a).to_string(), char::from(b).to_string()))
}

fn pairs_of_letters() -> impl Iterator<Item = [u8; 2]> {
    let letters = LETTERS.len();
    (0..2 * letters - 1).flat_map(move |sum| {
        let first = sum.saturating_sub(letters - 1)..=sum.min(letters - 1);
        first.map(move |first| [LETTERS[first], LETTERS[sum - first]])
    })
}

/// All pairs of letter pairs, in an order that mixes them.
fn paired_pairs() -> impl Iterator<Item = (String, String)> {
    /// Has no factor in common with the number of pairs of pairs (2⁴ · 13⁴), so that steps of this size
    /// reach every one of them.
    const STRIDE: usize = 282_427;
    let pairs: Vec<String> =
        pairs_of_letters().map(|[a, b]| [char::from(a), char::from(b)].iter().collect()).collect();
    let count = pairs.len();
    (0..count * count).map(move |index| {
        let place = index * STRIDE % (count * count);
        (pairs[place / count].clone(), pairs[place % count].clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(vocabulary: &Vocabulary, text: &str) -> u32 {
        vocabulary.tokens.iter().position(|token| token == text).unwrap() as u32
    }

    #[test]
    fn special_tokens_have_their_real_ids_where_they_fit() {
        for size in [REAL_LAYOUT, REAL_VOCABULARY, LARGEST_VOCABULARY] {
            let vocabulary = Vocabulary::new(size).unwrap();
            for (expected, text, _) in SPECIALS {
                assert_eq!(id(&vocabulary, text), expected, "{text} of {size}");
            }
            for (text, expected) in [
                ("\n", 107),
                ("\n\n", 108),
                ("▁▁", 138),
                ("▁▁▁▁▁▁", 142),
                ("</s>", 212),
                ("<0x00>", 238),
                ("<0xFF>", 493),
                ("▁", 236_743),
                ("\t", 255_968),
                ("\t\t", 255_969),
            ] {
                assert_eq!(id(&vocabulary, text), expected, "{text:?}");
            }
        }
        let small = Vocabulary::new(TINY_VOCABULARY).unwrap();
        for (text, expected) in
            [("<bos>", 2), ("<turn|>", 16), ("\n", 17), ("<0x00>", 32), ("<|video|>", 2047)]
        {
            assert_eq!(id(&small, text), expected, "{text:?}");
        }
    }

    /// As many tokens as asked for, all different, and merges only between and into tokens.
    #[test]
    fn merges_join_tokens_into_tokens() {
        for size in [SMALLEST_VOCABULARY, TINY_VOCABULARY, 32_768, REAL_LAYOUT - 1, LARGEST_VOCABULARY] {
            let vocabulary = Vocabulary::new(size).unwrap();
            assert_eq!(vocabulary.tokens.len(), size as usize);
            assert_eq!(vocabulary.types.len(), size as usize);
            let tokens: HashSet<&str> = vocabulary.tokens.iter().map(String::as_str).collect();
            assert_eq!(tokens.len(), size as usize, "a token of {size} is there twice");
            for merge in &vocabulary.merges {
                let (left, right) = merge.split_once(' ').unwrap();
                for part in [left, right, &format!("{left}{right}")] {
                    assert!(tokens.contains(part), "{part:?} of {merge:?} is not among {size}");
                }
            }
        }
    }

    #[test]
    fn sizes_out_of_range_are_refused() {
        for size in [0, SMALLEST_VOCABULARY - 1, LARGEST_VOCABULARY + 1] {
            assert_eq!(Vocabulary::new(size).unwrap_err().code(), "synth.vocabulary");
        }
    }
}
