//! The `Range` header: which bytes of a file a request asks for.

use std::ops::Range;

/// What a `Range` header asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Everything: there is no range, several, or an invalid one, which a server ignores.
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// Bytes that the file does not have.
    Nothing,
}

/// Reads a `Range` header for a file of `size` bytes, as RFC 9110 has it.
pub(super) fn asked(header: &str, size: u64) -> Asked {
    parse(header, size).unwrap_or(Asked::Whole)
}

fn parse(header: &str, size: u64) -> Option<Asked> {
    let (unit, set) = header.split_once('=')?;
    // A comma separates ranges. An answer with several ranges has a format of its own, which no client of ours needs.
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
        return None;
    }
    let (first, last) = set.trim().split_once('-')?;
    if first.is_empty() {
        let length = number(last)?.min(size);
        return Some(if length == 0 { Asked::Nothing } else { Asked::Part(size - length..size) });
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    if last < first {
        return None;
    }
    // The header names the last byte; a range in Rust ends behind it.
    let end = last.saturating_add(1).min(size);
    Some(if first < end { Asked::Part(first..end) } else { Asked::Nothing })
}

/// Parses digits. A number that is too large counts as the largest possible.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_file() {
        for (header, expected) in [
            ("bytes=0-0", 0..1),
            ("bytes=0-", 0..10),
            ("bytes=3-5", 3..6),
            ("bytes=9-9", 9..10),
            ("bytes=9-99999999999999999999999", 9..10),
            ("bytes=5-18446744073709551615", 5..10),
            ("bytes=-1", 9..10),
            ("bytes=-10", 0..10),
            ("bytes=-11", 0..10),
            ("Bytes = 1-2", 1..3),
        ] {
            assert_eq!(asked(header, 10), Asked::Part(expected), "{header}");
        }
    }

    #[test]
    fn bytes_past_the_end_are_nothing() {
        for header in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999-"] {
            assert_eq!(asked(header, 10), Asked::Nothing, "{header}");
        }
        assert_eq!(asked("bytes=0-", 0), Asked::Nothing);
        assert_eq!(asked("bytes=-5", 0), Asked::Nothing);
    }

    #[test]
    fn what_is_not_understood_is_ignored() {
        for header in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=5-3",
            "bytes=+1-2",
            "bytes=1-2,4-5",
            "bytes=--1",
            "lines=0-1",
            "bytes=1 -2",
            "bytes=0x1-2",
            "bytes=0-1-2",
        ] {
            assert_eq!(asked(header, 10), Asked::Whole, "{header}");
        }
    }
}
