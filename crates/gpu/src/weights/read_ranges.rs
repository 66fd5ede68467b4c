//! Reads weights in file order, merges neighbouring ranges, and prefetches the next range while the last is packed.
//!
//! Between matrices of megabytes lie vectors of kilobytes. A request to a server for each vector would cost a round trip; as
//! part of a larger range they cost nothing.

use std::{
    future::{Future, poll_fn},
    ops::Range,
    pin::Pin,
    task::Poll,
};

use futures_util::future::{MaybeDone, maybe_done};
use rullama_gguf::{Model, ModelTensor, SourceError};

use crate::tuning::{READ_BYTES, READ_GAP};

/// Some rows of a tensor, and where they are uploaded.
#[derive(Debug, Clone)]
pub(super) struct Piece<'m> {
    pub(super) tensor: ModelTensor<'m>,
    pub(super) rows: Range<u64>,
    pub(super) destination: Destination,
}

/// Where rows are uploaded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Destination {
    /// To the buffer of vectors, from this element on.
    Vector { at: u32 },
    /// To this packed tensor, from this row on.
    Packed { index: usize, row: u64 },
}

impl<'m> Piece<'m> {
    /// A whole vector.
    pub(super) fn vector(tensor: ModelTensor<'m>, at: u32) -> Self {
        let rows = 0..tensor.shape.rows();
        Self { tensor, rows, destination: Destination::Vector { at } }
    }

    /// The rows of a tensor, which are uploaded from row `first` of a packed tensor on, in pieces of at most [`READ_BYTES`].
    pub(super) fn rows(tensor: ModelTensor<'m>, index: usize, first: u64) -> impl Iterator<Item = Self> {
        let all = tensor.shape.rows();
        let at_once = (READ_BYTES / tensor.row_bytes().max(1)).max(1);
        (0..all).step_by(at_once as usize).map(move |row| Self {
            tensor,
            rows: row..(row + at_once).min(all),
            destination: Destination::Packed { index, row: first + row },
        })
    }

    fn range(&self) -> Range<u64> {
        self.tensor.rows_range(self.rows.clone())
    }
}

/// A part of the file that is read with one request.
#[derive(Debug)]
pub(super) struct ReadRange<'m> {
    range: Range<u64>,
    pieces: Vec<Piece<'m>>,
}

impl<'m> ReadRange<'m> {
    /// The pieces, each with its bytes.
    pub(super) fn pieces<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = (&Piece<'m>, &'b [u8])> {
        let start = self.range.start;
        self.pieces.iter().map(move |piece| {
            let Range { start: from, end: to } = piece.range();
            (piece, &bytes[(from - start) as usize..(to - start) as usize])
        })
    }
}

/// Sorts pieces by their place in the file and merges neighbours.
pub(super) fn read_ranges(mut pieces: Vec<Piece<'_>>) -> Vec<ReadRange<'_>> {
    pieces.sort_by_key(|piece| piece.range().start);
    let mut merged: Vec<ReadRange<'_>> = Vec::new();
    for piece in pieces {
        let range = piece.range();
        match merged.last_mut() {
            Some(last)
                if range.start <= last.range.end + READ_GAP && range.end <= last.range.start + READ_BYTES =>
            {
                last.range.end = last.range.end.max(range.end);
                last.pieces.push(piece);
            }
            _ => merged.push(ReadRange { range, pieces: vec![piece] }),
        }
    }
    merged
}

type Reading<'m> = Pin<Box<MaybeDone<Pin<Box<dyn Future<Output = Result<Vec<u8>, SourceError>> + 'm>>>>>;

/// Reads ranges one after another. Each request is sent when the previous one was answered.
pub(super) struct Reader<'m> {
    model: &'m Model,
    rest: std::vec::IntoIter<ReadRange<'m>>,
    in_flight: Option<(ReadRange<'m>, Reading<'m>)>,
}

impl<'m> Reader<'m> {
    pub(super) fn new(model: &'m Model, ranges: Vec<ReadRange<'m>>) -> Self {
        Self { model, rest: ranges.into_iter(), in_flight: None }
    }

    /// The next range with its bytes, or none after the last.
    pub(super) async fn next(&mut self) -> Result<Option<(ReadRange<'m>, Vec<u8>)>, SourceError> {
        let Some((range, mut reading)) = self.in_flight.take().or_else(|| self.begin()) else {
            return Ok(None);
        };
        reading.as_mut().await;
        let bytes = reading.as_mut().take_output().expect("the read has finished")?;
        self.in_flight = self.begin();
        if let Some((_, reading)) = &mut self.in_flight {
            // A future does nothing until it is polled. The first poll sends the request.
            poll_fn(|context| {
                let _ = reading.as_mut().poll(context);
                Poll::Ready(())
            })
            .await;
        }
        Ok(Some((range, bytes)))
    }

    fn begin(&mut self) -> Option<(ReadRange<'m>, Reading<'m>)> {
        let next = self.rest.next()?;
        let (model, range) = (self.model, next.range.clone());
        let read: Pin<Box<dyn Future<Output = _> + 'm>> = Box::pin(async move { model.read(range).await });
        Some((next, Box::pin(maybe_done(read))))
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use rullama_gguf::{ByteSource, Format, MemorySource, ReadFuture, Writer};

    use super::*;

    /// A file in memory that records what is read of it.
    struct Recording {
        file: MemorySource,
        reads: Rc<RefCell<Vec<Range<u64>>>>,
    }

    impl ByteSource for Recording {
        fn name(&self) -> &str {
            "recording"
        }

        fn len(&self) -> u64 {
            self.file.len()
        }

        fn read(&self, range: Range<u64>) -> ReadFuture<'_> {
            self.reads.borrow_mut().push(range.clone());
            self.file.read(range)
        }
    }

    /// A model whose tensors have these numbers of rows of 1024 floats, and what is read of it. The bytes of a tensor are its
    /// index.
    fn model(rows: &[u64]) -> (Model, Rc<RefCell<Vec<Range<u64>>>>) {
        let mut writer = Writer::new();
        for (index, &rows) in rows.iter().enumerate() {
            writer.add_tensor(&format!("t{index}"), &[1024, rows], Format::F32).unwrap();
        }
        let mut tensors = writer.begin(Vec::new()).unwrap();
        for (index, &rows) in rows.iter().enumerate() {
            tensors.write_tensor(&vec![index as u8; 4096 * rows as usize]).unwrap();
        }
        let file = MemorySource::new(tensors.finish().unwrap());
        let reads = Rc::new(RefCell::new(Vec::new()));
        let model =
            pollster::block_on(Model::open(Box::new(Recording { file, reads: reads.clone() }))).unwrap();
        reads.borrow_mut().clear();
        (model, reads)
    }

    #[test]
    fn neighbours_are_read_together_and_everything_arrives() {
        // 40 MiB between two vectors, then a gap: a tensor that is not read.
        let (model, reads) = model(&[1, 10 * 1024, 1, 100, 3]);
        let tensor = |name: &str| model.tensor(name).unwrap();
        let mut pieces = vec![Piece::vector(tensor("t4"), 8), Piece::vector(tensor("t2"), 4)];
        pieces.extend(Piece::rows(tensor("t1"), 7, 50));
        pieces.push(Piece::vector(tensor("t0"), 0));
        let mut reader = Reader::new(&model, read_ranges(pieces));
        let mut seen = Vec::new();
        while let Some((range, bytes)) = pollster::block_on(reader.next()).unwrap() {
            for (piece, bytes) in range.pieces(&bytes) {
                let value: u8 = piece.tensor.name[1..].parse().unwrap();
                assert_eq!(bytes.len() as u64, 4096 * (piece.rows.end - piece.rows.start));
                assert!(bytes.iter().all(|&byte| byte == value), "{}", piece.tensor.name);
                let to = match piece.destination {
                    Destination::Vector { at } => u64::from(at),
                    Destination::Packed { index, row } => 1000 * index as u64 + row,
                };
                seen.push((piece.tensor.name, piece.rows.clone(), to));
            }
        }
        let expected = [
            ("t0", 0..1, 0),
            ("t1", 0..4096, 7050),
            ("t1", 4096..8192, 7050 + 4096),
            ("t1", 8192..10_240, 7050 + 8192),
            ("t2", 0..1, 4),
            ("t4", 0..3, 8),
        ];
        assert_eq!(seen, expected);
        let sizes: Vec<_> = reads.borrow().iter().map(|read| (read.end - read.start) / 4096).collect();
        assert_eq!(sizes, [1, 4096, 4096, 2049, 3]);
    }

    #[test]
    fn the_next_range_is_prefetched_while_the_last_is_used() {
        let (model, reads) = model(&[8192]);
        let pieces = Piece::rows(model.tensor("t0").unwrap(), 0, 0).collect();
        let mut reader = Reader::new(&model, read_ranges(pieces));
        assert!(pollster::block_on(reader.next()).unwrap().is_some());
        assert_eq!(reads.borrow().len(), 2);
        assert!(pollster::block_on(reader.next()).unwrap().is_some());
        assert!(pollster::block_on(reader.next()).unwrap().is_none());
    }
}
