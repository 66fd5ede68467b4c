//! From a plan to bytes, with all threads and little memory.
//!
//! Tensors are cut into chunks. A batch of chunks is made by all threads while the batch before it is
//! written, in order; so memory is bounded by two batches, and the bytes do not depend on the threads.

use std::io;

use rayon::prelude::*;
use rullama_gguf::{TensorWriter, Writer};

use crate::{PlannedTensor, SynthError};

/// Values in a chunk: a few milliseconds of work, at most a mebibyte.
const CHUNK: u64 = 1 << 18;

/// Values made and encoded at a time, so that they never leave the nearest cache. A multiple of every block.
const PIECE: usize = 1 << 12;

/// Chunks for each thread in a batch: enough that threads rarely wait for the last one.
const CHUNKS_PER_THREAD: u64 = 4;

/// Consecutive values of a tensor.
#[derive(Clone, Copy)]
struct Chunk<'p> {
    tensor: &'p PlannedTensor,
    first: u64,
    len: u64,
}

/// Writes a file. `total` is what progress is counted towards.
pub(crate) fn write<W: io::Write + Send>(
    header: Writer,
    tensors: &[PlannedTensor],
    total: u64,
    output: W,
    mut progress: impl FnMut(u64, u64) + Send,
) -> Result<(), SynthError> {
    let mut body = header.begin(output)?;
    let limit = CHUNK * CHUNKS_PER_THREAD * rayon::current_num_threads() as u64;
    let mut made: Vec<Vec<u8>> = Vec::new();
    let mut done = 0;
    progress(done, total);
    for batch in batches(tensors, limit) {
        let before = made;
        let (next, written) = rayon::join(
            || make(&batch),
            || {
                write_all(&mut body, &before, |bytes| {
                    done += bytes;
                    progress(done, total);
                })
            },
        );
        written?;
        made = next?;
    }
    write_all(&mut body, &made, |bytes| {
        done += bytes;
        progress(done, total);
    })?;
    body.finish()?;
    Ok(())
}

fn write_all<W: io::Write>(
    body: &mut TensorWriter<W>,
    made: &[Vec<u8>],
    mut written: impl FnMut(u64),
) -> Result<(), SynthError> {
    for bytes in made {
        body.write_some(bytes)?;
        written(bytes.len() as u64);
    }
    Ok(())
}

/// The chunks of all tensors in order, in batches of at least `limit` values, except the last.
fn batches(tensors: &[PlannedTensor], limit: u64) -> impl Iterator<Item = Vec<Chunk<'_>>> {
    let mut chunks = tensors.iter().flat_map(|tensor| {
        let starts = (0..tensor.values()).step_by(CHUNK as usize);
        starts.map(move |first| Chunk { tensor, first, len: CHUNK.min(tensor.values() - first) })
    });
    std::iter::from_fn(move || {
        let mut batch = Vec::new();
        let mut values = 0;
        while values < limit {
            let Some(chunk) = chunks.next() else { break };
            values += chunk.len;
            batch.push(chunk);
        }
        (!batch.is_empty()).then_some(batch)
    })
}

/// The bytes of each chunk.
fn make(batch: &[Chunk<'_>]) -> Result<Vec<Vec<u8>>, SynthError> {
    batch.par_iter().map(Chunk::encode).collect()
}

impl Chunk<'_> {
    fn encode(&self) -> Result<Vec<u8>, SynthError> {
        let format = self.tensor.format();
        let bytes_of = |values: usize| values / format.block_len() * format.block_bytes();
        let len = self.len as usize;
        let mut bytes = vec![0; bytes_of(len)];
        let mut values = [0.0; PIECE];
        let mut position = self.first;
        let mut left = len;
        for out in bytes.chunks_mut(bytes_of(PIECE)) {
            let values = &mut values[..left.min(PIECE)];
            self.tensor.fill.write(self.tensor.stream, position, values);
            format.encode(values, out)?;
            position += values.len() as u64;
            left -= values.len();
        }
        Ok(bytes)
    }
}
