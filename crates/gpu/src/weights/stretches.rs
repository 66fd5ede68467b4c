//! In which order weights are read: as they lie in the file, neighbours together, the next while the last are packed.
//!
//! Between matrices of megabytes lie vectors of kilobytes. Each asked for by itself would cost a request to a server and a
//! wait for its answer; as part of a stretch of the file they cost nothing.

use std::{
    future::{Future, poll_fn},
    ops::Range,
    pin::Pin,
    task::Poll,
};

use futures_util::future::{MaybeDone, maybe_done};
use rullama_gguf::{Model, ModelTensor, SourceError};

/// What is read at once has about so many bytes, so that host memory stays small.
pub(super) const STRETCH: u64 = 16 << 20;

/// Bytes between two neighbours that are read for nothing rather than asked for around.
const GAP: u64 = 64 << 10;

/// Some rows of a tensor, and where they go.
#[derive(Debug, Clone)]
pub(super) struct Piece<'m> {
    pub(super) tensor: ModelTensor<'m>,
    pub(super) rows: Range<u64>,
    pub(super) destination: Destination,
}

/// Where rows go.
#[derive(Debug, Clone, Copy)]
pub(super) enum Destination {
    /// Into the buffer of vectors, from this float on.
    Vector { at: u32 },
    /// Into this packed tensor, from this row on.
    Packed { index: usize, row: u64 },
}

impl<'m> Piece<'m> {
    /// A whole vector.
    pub(super) fn vector(tensor: ModelTensor<'m>, at: u32) -> Self {
        let rows = 0..tensor.shape.rows();
        Self { tensor, rows, destination: Destination::Vector { at } }
    }

    /// The rows of a tensor, which go into a packed one from row `first` on, in pieces that can be read at once.
    pub(super) fn rows(tensor: ModelTensor<'m>, index: usize, first: u64) -> impl Iterator<Item = Self> {
        let all = tensor.shape.rows();
        let at_once = (STRETCH / tensor.row_bytes().max(1)).max(1);
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

/// A part of the file that is read at once.
#[derive(Debug)]
pub(super) struct Stretch<'m> {
    range: Range<u64>,
    pieces: Vec<Piece<'m>>,
}

impl<'m> Stretch<'m> {
    /// The pieces, each with its part of the stretch's bytes.
    pub(super) fn pieces<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = (&Piece<'m>, &'b [u8])> {
        let start = self.range.start;
        self.pieces.iter().map(move |piece| {
            let Range { start: from, end: to } = piece.range();
            (piece, &bytes[(from - start) as usize..(to - start) as usize])
        })
    }
}

/// Brings pieces into the file's order, and neighbours together.
pub(super) fn stretches(mut pieces: Vec<Piece<'_>>) -> Vec<Stretch<'_>> {
    pieces.sort_by_key(|piece| piece.range().start);
    let mut stretches: Vec<Stretch<'_>> = Vec::new();
    for piece in pieces {
        let range = piece.range();
        match stretches.last_mut() {
            Some(last) if range.start <= last.range.end + GAP && range.end <= last.range.start + STRETCH => {
                last.range.end = last.range.end.max(range.end);
                last.pieces.push(piece);
            }
            _ => stretches.push(Stretch { range, pieces: vec![piece] }),
        }
    }
    stretches
}

type Reading<'m> = Pin<Box<MaybeDone<Pin<Box<dyn Future<Output = Result<Vec<u8>, SourceError>> + 'm>>>>>;

/// Reads stretches one after another, each begun when the one before it is there.
pub(super) struct Reader<'m> {
    model: &'m Model,
    rest: std::vec::IntoIter<Stretch<'m>>,
    under_way: Option<(Stretch<'m>, Reading<'m>)>,
}

impl<'m> Reader<'m> {
    pub(super) fn new(model: &'m Model, stretches: Vec<Stretch<'m>>) -> Self {
        Self { model, rest: stretches.into_iter(), under_way: None }
    }

    /// The next stretch with its bytes, or nothing after the last.
    pub(super) async fn next(&mut self) -> Result<Option<(Stretch<'m>, Vec<u8>)>, SourceError> {
        let Some((stretch, mut reading)) = self.under_way.take().or_else(|| self.begin()) else {
            return Ok(None);
        };
        reading.as_mut().await;
        let bytes = reading.as_mut().take_output().expect("it is done, and nobody else has it")?;
        self.under_way = self.begin();
        if let Some((_, reading)) = &mut self.under_way {
            // A future does nothing until it is asked; asked once, a request is on its way.
            poll_fn(|context| {
                let _ = reading.as_mut().poll(context);
                Poll::Ready(())
            })
            .await;
        }
        Ok(Some((stretch, bytes)))
    }

    fn begin(&mut self) -> Option<(Stretch<'m>, Reading<'m>)> {
        let stretch = self.rest.next()?;
        let (model, range) = (self.model, stretch.range.clone());
        let read: Pin<Box<dyn Future<Output = _> + 'm>> = Box::pin(async move { model.read(range).await });
        Some((stretch, Box::pin(maybe_done(read))))
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use rullama_gguf::{ByteSource, Format, MemorySource, ReadFuture, Writer};

    use super::*;

    /// A file in memory that notes what is read of it.
    struct Noting {
        file: MemorySource,
        reads: Rc<RefCell<Vec<Range<u64>>>>,
    }

    impl ByteSource for Noting {
        fn name(&self) -> &str {
            "noting"
        }

        fn len(&self) -> u64 {
            self.file.len()
        }

        fn read(&self, range: Range<u64>) -> ReadFuture<'_> {
            self.reads.borrow_mut().push(range.clone());
            self.file.read(range)
        }
    }

    /// A model of tensors of so many rows of 1024 floats, whose bytes count up, and what is read of it.
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
        let model = pollster::block_on(Model::open(Box::new(Noting { file, reads: reads.clone() }))).unwrap();
        reads.borrow_mut().clear();
        (model, reads)
    }

    #[test]
    fn neighbours_are_read_together_and_everything_arrives() {
        // 40 MiB between two vectors, then a gap of a tensor that nobody wants.
        let (model, reads) = model(&[1, 10 * 1024, 1, 100, 3]);
        let tensor = |name: &str| model.tensor(name).unwrap();
        let mut pieces = vec![Piece::vector(tensor("t4"), 8), Piece::vector(tensor("t2"), 4)];
        pieces.extend(Piece::rows(tensor("t1"), 7, 50));
        pieces.push(Piece::vector(tensor("t0"), 0));
        let mut reader = Reader::new(&model, stretches(pieces));
        let mut seen = Vec::new();
        while let Some((stretch, bytes)) = pollster::block_on(reader.next()).unwrap() {
            for (piece, bytes) in stretch.pieces(&bytes) {
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
    fn the_next_stretch_is_asked_for_before_the_last_is_used() {
        let (model, reads) = model(&[8192]);
        let pieces = Piece::rows(model.tensor("t0").unwrap(), 0, 0).collect();
        let mut reader = Reader::new(&model, stretches(pieces));
        assert!(pollster::block_on(reader.next()).unwrap().is_some());
        assert_eq!(reads.borrow().len(), 2);
        assert!(pollster::block_on(reader.next()).unwrap().is_some());
        assert!(pollster::block_on(reader.next()).unwrap().is_none());
    }
}
