//! Tensors made by all threads and written in order, with little memory.
//!
//! A batch of pieces is made by all threads while the batch before it is written; so memory is bounded by two
//! batches, and the bytes do not depend on the threads.

use std::io;

use rayon::prelude::*;

use crate::{TensorWriter, WriteError};

/// Values in a piece that is worth a thread's while: a few milliseconds of work, at most a mebibyte.
pub const PIECE_VALUES: u64 = 1 << 18;

/// Pieces for each thread in a batch: enough that threads rarely wait for the last one.
const PIECES_PER_THREAD: u64 = 4;

/// Makes and writes pieces of tensors, first to last.
///
/// `values` tells how many values a piece has, `make` gives its bytes, and `written` is told after each how many
/// bytes it had.
///
/// # Errors
///
/// The first of `make`, and those of [`TensorWriter::write_some`].
pub fn write_pieces<W, P, E>(
    body: &mut TensorWriter<W>,
    pieces: impl Iterator<Item = P>,
    values: impl Fn(&P) -> u64,
    make: impl Fn(&P) -> Result<Vec<u8>, E> + Sync,
    mut written: impl FnMut(u64) + Send,
) -> Result<(), E>
where
    W: io::Write + Send,
    P: Send + Sync,
    E: From<WriteError> + Send,
{
    let limit = PIECE_VALUES * PIECES_PER_THREAD * rayon::current_num_threads() as u64;
    let mut made: Vec<Vec<u8>> = Vec::new();
    let mut pieces = pieces.fuse();
    loop {
        let mut batch = Vec::new();
        let mut in_batch = 0;
        while in_batch < limit {
            let Some(piece) = pieces.next() else { break };
            in_batch += values(&piece);
            batch.push(piece);
        }
        let before = std::mem::take(&mut made);
        let mut write = || -> Result<(), WriteError> {
            for bytes in &before {
                body.write_some(bytes)?;
                written(bytes.len() as u64);
            }
            Ok(())
        };
        if batch.is_empty() {
            return write().map_err(E::from);
        }
        let next = || batch.par_iter().map(&make).collect::<Result<Vec<_>, E>>();
        let (next, result) = rayon::join(next, write);
        result?;
        made = next?;
    }
}
