//! From a plan to bytes: tensors are cut into chunks, which all threads make.

use std::io;

use rullama_gguf::{PIECE_VALUES, Writer, write_pieces};

use crate::{PlannedTensor, SynthError};

/// Values made and encoded at a time, so that they never leave the nearest cache. A multiple of every block.
const PIECE: usize = 1 << 12;

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
    let mut done = 0;
    progress(done, total);
    let written = |bytes| {
        done += bytes;
        progress(done, total);
    };
    write_pieces(&mut body, chunks(tensors), |chunk| chunk.len, Chunk::encode, written)?;
    body.finish()?;
    Ok(())
}

/// The chunks of all tensors, in order.
fn chunks(tensors: &[PlannedTensor]) -> impl Iterator<Item = Chunk<'_>> {
    tensors.iter().flat_map(|tensor| {
        let starts = (0..tensor.values()).step_by(PIECE_VALUES as usize);
        starts.map(move |first| Chunk { tensor, first, len: PIECE_VALUES.min(tensor.values() - first) })
    })
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
