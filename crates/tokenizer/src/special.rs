//! Finding special tokens in text.
//!
//! The rule: take the special tokens longest first, and cut every occurrence out of the text that is still
//! uncut, from left to right. Searching the text once for each of them would read it two dozen times. Here
//! all occurrences are found in one pass; where some overlap, which Gemma 4's cannot, the rule picks among
//! them.

use std::collections::BTreeMap;

/// A special token found in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) id: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    text: Vec<u8>,
    id: u32,
    /// Position in the order of the rule.
    precedence: usize,
}

#[derive(Debug, Clone, Copy)]
struct Occurrence {
    found: Found,
    precedence: usize,
}

/// A set of special tokens to look for.
pub(crate) struct SpecialTokens {
    /// In order of text, so that the tokens that continue a prefix are neighbours.
    entries: Vec<Entry>,
    /// The distinct first bytes.
    first_bytes: Vec<u8>,
    /// A bit for every two bytes that begin a token. A text full of `<` is passed over with this.
    openings: Vec<u64>,
}

impl SpecialTokens {
    /// The tokens to look for, in order of id.
    pub(crate) fn new<'a>(tokens: impl Iterator<Item = (&'a [u8], u32)>) -> Self {
        let mut entries: Vec<Entry> = tokens
            .filter(|(text, _)| !text.is_empty())
            .map(|(text, id)| Entry { text: text.to_vec(), id, precedence: 0 })
            .collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.text.len()));
        for (precedence, entry) in entries.iter_mut().enumerate() {
            entry.precedence = precedence;
        }
        // The sort is stable: of two tokens with one text, the first in order stays.
        entries.sort_by(|a, b| a.text.cmp(&b.text));
        entries.dedup_by(|a, b| a.text == b.text);

        let mut first_bytes: Vec<u8> = entries.iter().map(|entry| entry.text[0]).collect();
        first_bytes.dedup();
        let mut openings = vec![0_u64; 1 << 10];
        for entry in &entries {
            let second = match entry.text.get(1) {
                Some(&second) => second..=second,
                None => 0..=u8::MAX,
            };
            for second in second {
                let opening = usize::from(entry.text[0]) << 8 | usize::from(second);
                openings[opening >> 6] |= 1 << (opening & 63);
            }
        }
        Self { entries, first_bytes, openings }
    }

    pub(crate) fn memory(&self) -> usize {
        let texts: usize = self.entries.iter().map(|entry| entry.text.capacity()).sum();
        texts + self.entries.capacity() * size_of::<Entry>() + 8 * self.openings.capacity()
    }

    /// The special tokens to cut out of `text`, from left to right.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<Found> {
        let mut chosen = Vec::new();
        // Occurrences that overlap one another, directly or through others.
        let mut cluster: Vec<Occurrence> = Vec::new();
        let mut cluster_end = 0;
        let mut at = 0;
        while let Some(start) = self.next_start(text, at) {
            at = start + 1;
            if start >= cluster_end {
                choose(&mut cluster, &mut chosen);
            }
            self.occurrences_at(text, start, |occurrence| {
                cluster_end = cluster_end.max(occurrence.found.end);
                cluster.push(occurrence);
            });
        }
        choose(&mut cluster, &mut chosen);
        chosen
    }

    /// The next place, from `at` on, where a token might start.
    #[inline]
    fn next_start(&self, text: &[u8], mut at: usize) -> Option<usize> {
        loop {
            let rest = text.get(at..)?;
            at += match *self.first_bytes {
                [] => return None,
                [a] => memchr::memchr(a, rest)?,
                [a, b] => memchr::memchr2(a, b, rest)?,
                [a, b, c] => memchr::memchr3(a, b, c, rest)?,
                _ => rest.iter().position(|byte| self.first_bytes.binary_search(byte).is_ok())?,
            };
            // At the end of the text any second byte will do; the comparison decides.
            while self.first_bytes.contains(&text[at]) {
                let Some(&second) = text.get(at + 1) else { return Some(at) };
                let opening = usize::from(text[at]) << 8 | usize::from(second);
                if self.openings[opening >> 6] >> (opening & 63) & 1 == 1 {
                    return Some(at);
                }
                at += 1;
            }
        }
    }

    /// Reports every token that starts at `start`, shortest first.
    fn occurrences_at(&self, text: &[u8], start: usize, mut report: impl FnMut(Occurrence)) {
        let mut entries = &self.entries[..];
        for (depth, &byte) in text[start..].iter().enumerate() {
            // Entries shorter than the prefix are gone by now, all others have a byte here.
            let from = entries.partition_point(|entry| entry.text[depth] < byte);
            let to = entries.partition_point(|entry| entry.text[depth] <= byte);
            entries = &entries[from..to];
            let end = start + depth + 1;
            while let Some((entry, longer)) = entries.split_first()
                && entry.text.len() == depth + 1
            {
                let found = Found { start, end, id: entry.id };
                report(Occurrence { found, precedence: entry.precedence });
                entries = longer;
            }
            if entries.is_empty() {
                return;
            }
        }
    }
}

/// Moves the occurrences that the rule picks from `cluster` to `chosen`, and empties `cluster`.
fn choose(cluster: &mut Vec<Occurrence>, chosen: &mut Vec<Found>) {
    if let [only] = **cluster {
        chosen.push(only.found);
        cluster.clear();
        return;
    }
    cluster.sort_by_key(|occurrence| (occurrence.precedence, occurrence.found.start));
    let mut by_start: BTreeMap<usize, Found> = BTreeMap::new();
    for Occurrence { found, .. } in cluster.drain(..) {
        let before = by_start.range(..found.end).next_back();
        if before.is_none_or(|(_, before)| before.end <= found.start) {
            by_start.insert(found.start, found);
        }
    }
    chosen.extend(by_start.into_values());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule, word for word: longest first, each cut out of every fragment still uncut.
    fn obvious(tokens: &[&str], text: &str) -> Vec<Found> {
        let mut order: Vec<usize> = (0..tokens.len()).filter(|&id| !tokens[id].is_empty()).collect();
        order.sort_by_key(|&id| std::cmp::Reverse(tokens[id].len()));
        let mut uncut = vec![(0, text.len())];
        let mut found = Vec::new();
        for id in order {
            let mut rest = Vec::new();
            for (mut start, end) in uncut {
                while let Some(at) = text[start..end].find(tokens[id]) {
                    rest.push((start, start + at));
                    found.push(Found {
                        start: start + at,
                        end: start + at + tokens[id].len(),
                        id: id as u32,
                    });
                    start += at + tokens[id].len();
                }
                rest.push((start, end));
            }
            uncut = rest;
        }
        found.sort_by_key(|found| found.start);
        found
    }

    fn check(tokens: &[&str], text: &str) {
        let special = SpecialTokens::new(tokens.iter().zip(0..).map(|(text, id)| (text.as_bytes(), id)));
        assert_eq!(special.find(text.as_bytes()), obvious(tokens, text), "{tokens:?} in {text:?}");
    }

    #[test]
    fn finds_what_the_rule_finds() {
        check(&["<a>", "<b>"], "x<a><b>y<a");
        check(&["<a>", "<a>"], "<a>");
        check(&["", "a"], "aba");
        check(&["ab", "bcd", "de"], "abcde");
        check(&["aa", "aaa"], "aaaaaaaaaaa");
        check(&["ab", "ba", "aba"], "abababbab");
        check(&["a", "b", "c", "d", "dd"], "abcddd");
        check(&["<|", "|>", "<|>"], "<|><||>|><|");
        check(&[], "<a>");
    }

    proptest::proptest! {
        /// Any tokens over three letters, in any text over them: overlaps, nesting, repetition.
        #[test]
        fn agrees_with_the_rule(
            tokens in proptest::collection::vec("[abc]{0,4}", 0..8),
            text in "[abc]{0,40}",
        ) {
            let mut tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
            tokens.sort();
            tokens.dedup();
            check(&tokens, &text);
        }
    }
}
