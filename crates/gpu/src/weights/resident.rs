//! Weights that live on the GPU, read and packed piece by piece.

use std::{ops::Range, rc::Rc, thread};

use rullama_gguf::{Format, Model, ModelTensor};

use super::{
    GpuWeights, Manifest, Packed, Residency, ResidentTensor,
    manifest::{decode, find, rows_of},
    pack::Packing,
    pages::Pages,
    stretches::{Destination, Piece, Reader, STRETCH, stretches},
};
use crate::{Gpu, GpuError};

/// Bytes on their way to the GPU: those that are being written, and those that are being copied.
pub(crate) const STAGING: u64 = 2 * STRETCH;

/// The weights of a manifest on the GPU.
pub(crate) struct Resident {
    /// Each packed tensor, which other graphs may hold too.
    pub(crate) tensors: Vec<Rc<ResidentTensor>>,
    /// Who has the pages of each pool of experts.
    pub(crate) pages: Vec<Pages>,
    /// All vectors. They are small and kernels read them from one buffer, so every graph has a copy of its own.
    pub(crate) vectors: wgpu::Buffer,
}

impl Drop for Resident {
    fn drop(&mut self) {
        self.vectors.destroy();
    }
}

impl Resident {
    /// Reads, packs and uploads everything that stays on the GPU and no other graph has brought there, telling `progress` how
    /// many bytes of how many are done. Weights beside which there are no `beside` bytes left are of no use, so they count as
    /// too large.
    pub(crate) async fn upload(
        set: &GpuWeights,
        manifest: &Manifest,
        beside: u64,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, GpuError> {
        let (gpu, model) = (set.gpu(), &**set.source());
        let shared: Vec<_> = manifest.packed.iter().map(|packed| set.find(packed)).collect();
        let new: Vec<usize> = (0..shared.len()).filter(|&index| shared[index].is_none()).collect();
        let staying = new.iter().map(|&index| &manifest.packed[index]);
        let staying = staying.filter(|packed| packed.residency == Residency::Gpu);
        let all: u64 = staying.map(Packed::bytes).sum();
        let mut done = 0;
        progress(done, all);
        let resident = Self::allocate(gpu, manifest, shared).await?;
        find_room(gpu, beside).await?;
        let mut reader = Reader::new(model, stretches(pieces(model, manifest, &new)?));
        while let Some((stretch, bytes)) = reader.next().await? {
            for (piece, bytes) in stretch.pieces(&bytes) {
                done += resident.write(gpu, manifest, piece, bytes)?;
            }
            // Sends what was written on its way, so that it does not pile up in memory.
            gpu.queue.submit([]);
            gpu.check()?;
            progress(done.min(all), all);
        }
        gpu.poll(wgpu::PollType::Poll)?;
        gpu.check()?;
        // Vectors, and what fills shards up, are not counted one by one.
        progress(all, all);
        new.iter().for_each(|&index| set.share(&resident.tensors[index]));
        Ok(resident)
    }

    /// Packs what was read of a piece and writes it to where it belongs. Gives the bytes that this is of packed tensors.
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

    /// Sets all memory aside before the first byte is read, so that what does not fit costs no reading. What was set aside
    /// before the memory ran out is given back.
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

/// Whether there are so many bytes left: takes them and gives them back.
async fn find_room(gpu: &Gpu, bytes: u64) -> Result<(), GpuError> {
    /// No larger than what conversations ask for at once: some GPUs have room for that where they have none for more.
    const PIECE: u64 = 64 << 20;
    let what = "the first conversation";
    let mut left = bytes;
    let (mut room, mut unknown, mut found) = (Vec::new(), Vec::new(), Ok(()));
    while left > 0 && found.is_ok() {
        let piece = left.min(PIECE);
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

/// Everything that is read before the first step: vectors, and those packed tensors that are `new`.
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

/// Writes rows to where they belong in a packed tensor, the first of them at row `at`.
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

/// Packs rows on as many threads as there are cores: at the speed of one, packing would take longer than reading.
fn pack(
    tensor: &ModelTensor<'_>,
    packing: &Packing,
    blocks: &[u8],
    rows: usize,
    planes: [&mut [u32]; 3],
) -> Result<(), GpuError> {
    let threads =
        if cfg!(target_family = "wasm") { 1 } else { thread::available_parallelism().map_or(1, usize::from) };
    let share = rows.div_ceil(threads.min(16)).max(1);
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
    // Blocks of a format without a kernel, in the format that stands in for it.
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

/// Makes the scale NaN of each block of Q8_0 that stands for an infinity or NaN. The format has neither, and encoding
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
