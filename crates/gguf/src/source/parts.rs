//! Several sources laid end to end, so that a model in several files reads as one.

use std::ops::Range;

use super::{ByteSource, ReadFuture, span};

/// A source made of other sources, one after another.
pub struct PartsSource {
    name: String,
    /// Each part with the position at which it begins.
    parts: Vec<(u64, Box<dyn ByteSource>)>,
    len: u64,
}

impl PartsSource {
    /// Lays `parts` end to end. The first one gives the whole its name.
    pub fn new(parts: Vec<Box<dyn ByteSource>>) -> Self {
        let name = parts.first().map(|part| part.name().to_owned()).unwrap_or_default();
        let mut len = 0u64;
        let parts = parts
            .into_iter()
            .map(|part| {
                let start = len;
                len = len.saturating_add(part.len());
                (start, part)
            })
            .collect();
        Self { name, parts, len }
    }

    /// The parts, each with the position at which it begins.
    pub fn parts(&self) -> impl Iterator<Item = (u64, &dyn ByteSource)> {
        self.parts.iter().map(|(start, part)| (*start, part.as_ref()))
    }
}

impl ByteSource for PartsSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> ReadFuture<'_> {
        Box::pin(async move {
            span(&self.name, &range, self.len)?;
            // A tensor lies in one part, so one part is nearly always the answer.
            let mut bytes = Vec::new();
            for (start, part) in &self.parts {
                let end = start + part.len();
                let wanted = range.start.max(*start)..range.end.min(end);
                if wanted.start >= wanted.end {
                    continue;
                }
                let read = part.read(wanted.start - start..wanted.end - start).await?;
                if bytes.is_empty() {
                    bytes = read;
                } else {
                    bytes.extend_from_slice(&read);
                }
            }
            Ok(bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySource;

    fn parts() -> PartsSource {
        let part = |bytes: &[u8]| Box::new(MemorySource::new(bytes)) as Box<dyn ByteSource>;
        PartsSource::new(vec![part(b"abc"), part(b""), part(b"defgh"), part(b"i")])
    }

    #[test]
    fn every_range_reads_as_if_the_parts_were_one() {
        let whole = b"abcdefghi";
        let source = parts();
        assert_eq!(source.len(), 9);
        for start in 0..=9usize {
            for end in start..=9usize {
                let read = pollster::block_on(source.read(start as u64..end as u64)).unwrap();
                assert_eq!(read, &whole[start..end], "{start}..{end}");
            }
        }
    }

    #[test]
    fn a_range_past_the_last_part_is_refused() {
        assert!(pollster::block_on(parts().read(8..10)).is_err());
    }
}
