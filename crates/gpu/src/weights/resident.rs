//! The weights of one graph on the GPU: allocated, then read, packed and uploaded piece by piece.

use std::{ops::Range, rc::Rc, thread};

use rullama_gguf::{Format, Model, ModelTensor};

use super::{
    GpuWeights, Manifest, Packed, Residency, ResidentTensor,
    manifest::{decode, find, rows_of},
    pack::Packing,
    pages::Pages,
    read_ranges::{Destination, Piece, Reader, read_ranges},
};
use crate::{
    Gpu, GpuError,
    tuning::{PACKING_THREADS, READ_BYTES, ROOM_BYTES},
};

/// Bytes in flight to the GPU: being written, and being copied.
pub(crate) const STAGING: u64 = 2 * READ_BYTES;

/// The weights of a manifest on the GPU.
pub(crate) struct Resident {
    /// Each packed tensor, which other graphs may hold too.
    pub(crate) tensors: Vec<Rc<ResidentTensor>>,
    /// The pages of each pool of experts.
    pub(crate) pages: Vec<Pages>,
    /// All vectors. They are small, and kernels read them from one buffer, so every graph has a copy of its own.
    pub(crate) vectors: wgpu::Buffer,
}

impl Drop for Resident {
    fn drop(&mut self) {
        self.vectors.destroy();
    }
}

impl Resident {
    /// Reads, packs and uploads the resident tensors that no other graph holds. Calls `progress` with bytes done and in total.
    /// Fails with [`GpuError::OutOfMemory`] unless `beside` more bytes are free.
    pub(crate) async fn upload(
        set: &GpuWeights,
        manifest: &Manifest,
        beside: u64,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, GpuError> {
        let (gpu, model) = (set.gpu(), &**set.source());
        let shared: Vec<_> = manifest.packed.iter().map(|packed| set.find(packed)).collect();
        let new: Vec<usize> = (0..shared.len()).filter(|&index| shared[index].is_none()).collect();
        let read_now = new.iter().map(|&index| &manifest.packed[index]);
        let read_now = read_now.filter(|packed| packed.residency == Residency::Gpu);
        let all: u64 = read_now.map(Packed::bytes).sum();
        let mut done = 0;
        progress(done, all);
        let resident = Self::allocate(gpu, manifest, shared).await?;
        check_room(gpu, beside).await?;
        let mut reader = Reader::new(model, read_ranges(pieces(model, manifest, &new)?));
        while let Some((range, bytes)) = reader.next().await? {
            for (piece, bytes) in range.pieces(&bytes) {
                done += resident.write(gpu, manifest, piece, bytes)?;
            }
            // Submits the writes so far, so that they do not accumulate in host memory.
            gpu.queue.submit([]);
            gpu.check()?;
            progress(done.min(all), all);
        }
        gpu.poll(wgpu::PollType::Poll)?;
        gpu.check()?;
        // Vectors and the padding of shards were not counted above.
        progress(all, all);
        new.iter().for_each(|&index| set.share(&resident.tensors[index]));
        Ok(resident)
    }

    /// Packs the bytes of a piece and uploads them. Gives the number of packed bytes; vectors count as none.
    fn write(
        &self,
        gpu: &Gpu,
        manifest: &Manifest,
        piece: &Piece<'_>,
        bytes: &[u8],
    ) -> Result<u64, GpuError> {
        let Piece { tensor, rows, destination } = piece;
        match *destination {
            Destination::Vector { at } => {
                let values = decode(tensor, bytes, tensor.shape.values() as usize)?;
                gpu.queue.write_buffer(&self.vectors, 4 * u64::from(at), bytemuck::cast_slice(&values));
                Ok(0)
            }
            Destination::Packed { index, row } => {
                let packed = &manifest.packed[index];
                let count = rows.end - rows.start;
                let planes = packed_rows(tensor, &packed.packing, bytes, count as usize)?;
                write_rows(gpu, packed, &self.tensors[index].buffers, row, &planes);
                Ok(count * 4 * u64::from(packed.packing.row_words()))
            }
        }
    }

    /// Allocates all memory before the first byte is read, so that weights that do not fit are not read at all. If it fails,
    /// everything is freed again.
    async fn allocate(
        gpu: &Gpu,
        manifest: &Manifest,
        shared: Vec<Option<Rc<ResidentTensor>>>,
    ) -> Result<Self, GpuError> {
        let bytes = 4 * u64::from(manifest.vector_floats);
        let (vectors, outcome) = gpu.allocate("vectors", bytes, || gpu.storage("vectors", bytes));
        let mut unknown = Vec::from_iter(outcome.now()?);
        let pages = manifest.pools.iter().map(|pool| Pages::new(pool.pages)).collect();
        let mut resident = Self { tensors: Vec::new(), pages, vectors: vectors? };
        for (packed, shared) in manifest.packed.iter().zip(shared) {
            if let Some(shared) = shared {
                resident.tensors.push(shared);
                continue;
            }
            let name = &packed.parts[0].tensor;
            let mut tensor = ResidentTensor { packed: packed.clone(), buffers: Vec::new() };
            for shard in packed.shards.iter().filter(|_| packed.residency != Residency::Rows) {
                let what = format!("`{name}`");
                let (buffer, outcome) = gpu.allocate(what, shard.bytes, || gpu.storage(name, shard.bytes));
                tensor.buffers.push(buffer?);
                unknown.extend(outcome.now()?);
            }
            resident.tensors.push(Rc::new(tensor));
        }
        for outcome in unknown {
            outcome.known().await?;
        }
        Ok(resident)
    }
}

/// Checks that this much memory is free: allocates it and frees it again.
async fn check_room(gpu: &Gpu, bytes: u64) -> Result<(), GpuError> {
    let what = "the first conversation";
    let mut left = bytes;
    let (mut room, mut unknown, mut found) = (Vec::new(), Vec::new(), Ok(()));
    while left > 0 && found.is_ok() {
        let piece = left.min(ROOM_BYTES);
        let (buffer, outcome) = gpu.allocate(what, bytes, || gpu.storage(what, piece));
        room.push(buffer.expect("WebGPU guarantees larger bindings"));
        found = outcome.now().map(|outcome| unknown.extend(outcome));
        left -= piece;
    }
    for outcome in unknown {
        found = found.and(outcome.known().await);
    }
    room.iter().for_each(wgpu::Buffer::destroy);
    gpu.poll(wgpu::PollType::Poll)?;
    found
}

/// Everything that is read before the first step: vectors, and the resident tensors among `new`.
fn pieces<'m>(model: &'m Model, manifest: &Manifest, new: &[usize]) -> Result<Vec<Piece<'m>>, GpuError> {
    let mut pieces = Vec::new();
    for (name, at) in manifest.vectors() {
        pieces.push(Piece::vector(find(model, name)?, at));
    }
    for (index, packed) in manifest.resident(Residency::Gpu).filter(|(index, _)| new.contains(index)) {
        let mut first = 0;
        for part in &packed.parts {
            let tensor = rows_of(find(model, &part.tensor)?, packed.packing.width)?;
            pieces.extend(Piece::rows(tensor, index, first));
            first += part.rows;
        }
    }
    Ok(pieces)
}

/// The planes of some rows.
pub(super) type PlaneWords = [Vec<u32>; 3];

/// Reads some rows of a tensor and packs them.
pub(super) async fn read_rows(
    model: &Model,
    tensor: &ModelTensor<'_>,
    packing: &Packing,
    rows: Range<u64>,
) -> Result<PlaneWords, GpuError> {
    let count = (rows.end - rows.start) as usize;
    packed_rows(tensor, packing, &model.read(tensor.rows_range(rows)).await?, count)
}

/// Packs rows that were read.
pub(super) fn packed_rows(
    tensor: &ModelTensor<'_>,
    packing: &Packing,
    blocks: &[u8],
    rows: usize,
) -> Result<PlaneWords, GpuError> {
    let mut planes = packing.plane_words.map(|words| vec![0u32; rows * words as usize]);
    pack(tensor, packing, blocks, rows, planes.each_mut().map(Vec::as_mut_slice))?;
    Ok(planes)
}

/// Uploads rows to the shards of a packed tensor, the first row to row `at`.
pub(super) fn write_rows(gpu: &Gpu, packed: &Packed, buffers: &[wgpu::Buffer], at: u64, planes: &PlaneWords) {
    let all_words = packed.packing.plane_words.map(u64::from);
    // Every format has words in plane 0.
    let rows = at..at + planes[0].len() as u64 / all_words[0];
    for (shard, buffer) in packed.shards.iter().zip(buffers) {
        let (from, to) = (rows.start.max(shard.rows.start), rows.end.min(shard.rows.end));
        if from >= to {
            continue;
        }
        for (plane, words) in all_words.into_iter().enumerate().filter(|&(_, words)| words > 0) {
            let part = ((from - rows.start) * words) as usize..((to - rows.start) * words) as usize;
            let at = u64::from(shard.plane_at[plane]) + (from - shard.rows.start) * words;
            gpu.queue.write_buffer(buffer, 4 * at, bytemuck::cast_slice(&planes[plane][part]));
        }
    }
}

/// Packs rows on several threads, one per core: with one thread, packing would take longer than reading.
fn pack(
    tensor: &ModelTensor<'_>,
    packing: &Packing,
    blocks: &[u8],
    rows: usize,
    planes: [&mut [u32]; 3],
) -> Result<(), GpuError> {
    let threads =
        if cfg!(target_family = "wasm") { 1 } else { thread::available_parallelism().map_or(1, usize::from) };
    let share = rows.div_ceil(threads.min(PACKING_THREADS)).max(1);
    let row_bytes = blocks.len() / rows;
    let words = packing.plane_words.map(|words| words as usize);
    let [quants, scales, extra] = planes;
    let mut rests = [quants, scales, extra];
    let mut jobs = Vec::new();
    for blocks in blocks.chunks(share * row_bytes) {
        let rows = blocks.len() / row_bytes;
        let mut index = 0;
        let planes = rests.each_mut().map(|rest| {
            let (part, others) = std::mem::take(rest).split_at_mut(rows * words[index]);
            *rest = others;
            index += 1;
            part
        });
        jobs.push((blocks, rows, planes));
    }
    if jobs.len() == 1 {
        return jobs
            .into_iter()
            .try_for_each(|(blocks, rows, planes)| pack_share(tensor, packing, blocks, rows, planes));
    }
    thread::scope(|scope| {
        let workers: Vec<_> = jobs
            .into_iter()
            .map(|(blocks, rows, planes)| {
                scope.spawn(move || pack_share(tensor, packing, blocks, rows, planes))
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("packing does not panic"))
    })
}

fn pack_share(
    tensor: &ModelTensor<'_>,
    packing: &Packing,
    blocks: &[u8],
    rows: usize,
    planes: [&mut [u32]; 3],
) -> Result<(), GpuError> {
    if packing.format == tensor.format {
        packing.pack_rows(blocks, planes);
        return Ok(());
    }
    // The format has no kernel: convert the blocks to the one that replaces it.
    let values = decode(tensor, blocks, rows * packing.width as usize)?;
    let mut converted = vec![0; rows * packing.bytes_per_row()];
    let failed = |source| GpuError::Format { tensor: tensor.name.to_owned(), source };
    packing.format.encode(&values, &mut converted).map_err(failed)?;
    if packing.format == Format::Q8_0 {
        keep_not_finite(&values, &mut converted);
    }
    packing.pack_rows(&converted, planes);
    Ok(())
}

/// Sets the scale of each block of Q8_0 to NaN if its values include an infinity or NaN. Q8_0 has neither, and encoding
/// replaces them with ordinary numbers, which would hide that the weights are damaged.
fn keep_not_finite(values: &[f32], blocks: &mut [u8]) {
    const NAN: [u8; 2] = 0x7e00u16.to_le_bytes();
    let (len, bytes) = (Format::Q8_0.block_len(), Format::Q8_0.block_bytes());
    for (values, block) in values.chunks(len).zip(blocks.chunks_mut(bytes)) {
        if values.iter().any(|value| !value.is_finite()) {
            block[..2].copy_from_slice(&NAN);
        }
    }
}
