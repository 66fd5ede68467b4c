//! Weights that live on the GPU, read and packed piece by piece.

use std::{ops::Range, thread};

use rullama_gguf::{Model, ModelTensor};

use super::{
    Manifest, Packed,
    manifest::{decode, decoded, find},
    pack::Packing,
};
use crate::{Gpu, GpuError};

/// Rows are read and packed in pieces of about this many bytes, so that host memory stays small.
const PIECE: u64 = 16 << 20;

/// Bytes on their way to the GPU: a piece that is being written, and one that is being copied.
pub(crate) const STAGING: u64 = 2 * PIECE;

/// The weights of a manifest on the GPU.
#[derive(Debug)]
pub(crate) struct Resident {
    /// For each packed tensor, a buffer for each shard.
    pub(crate) shards: Vec<Vec<wgpu::Buffer>>,
    /// All vectors.
    pub(crate) vectors: wgpu::Buffer,
}

impl Resident {
    /// Reads, packs and uploads everything, telling `progress` how many bytes of how many are done.
    pub(crate) async fn upload(
        gpu: &Gpu,
        model: &Model,
        manifest: &Manifest,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, GpuError> {
        let all = manifest.bytes();
        let mut done = 0;
        progress(done, all);
        let (vectors, shards) = allocate(gpu, manifest).await?;
        for (name, at) in manifest.vectors() {
            let values = decoded(model, &find(model, name)?).await?;
            gpu.queue.write_buffer(&vectors, 4 * u64::from(at), bytemuck::cast_slice(&values));
        }
        for (packed, buffers) in manifest.packed.iter().zip(&shards) {
            let mut first = 0;
            for part in &packed.parts {
                let tensor = find(model, &part.tensor)?;
                let at_once = (PIECE / tensor.row_bytes().max(1)).max(1);
                let mut row = 0;
                while row < part.rows {
                    let rows = row..(row + at_once).min(part.rows);
                    upload_rows(gpu, model, &tensor, packed, buffers, first, rows.clone()).await?;
                    row = rows.end;
                    done += (rows.end - rows.start) * 4 * u64::from(packed.packing.row_words());
                    progress(done.min(all), all);
                }
                first += part.rows;
            }
        }
        gpu.poll(wgpu::PollType::Poll)?;
        gpu.check()?;
        // Vectors, and what fills shards up, are not counted one by one.
        progress(all, all);
        Ok(Self { shards, vectors })
    }
}

/// Sets all memory aside before the first byte is read, so that what does not fit costs no reading. What was set aside
/// before the memory ran out is given back.
async fn allocate(
    gpu: &Gpu,
    manifest: &Manifest,
) -> Result<(wgpu::Buffer, Vec<Vec<wgpu::Buffer>>), GpuError> {
    let bytes = 4 * u64::from(manifest.vector_floats);
    let (vectors, outcome) = gpu.allocate("vectors", bytes, || gpu.storage("vectors", bytes));
    let (vectors, mut unknown) = (vectors?, Vec::from_iter(outcome.now()?));
    let mut all = Vec::new();
    for packed in &manifest.packed {
        let name = &packed.parts[0].tensor;
        let mut buffers = Vec::new();
        for shard in &packed.shards {
            let what = format!("`{name}`");
            let (buffer, outcome) = gpu.allocate(what, shard.bytes, || gpu.storage(name, shard.bytes));
            buffers.push(buffer?);
            unknown.extend(outcome.now()?);
        }
        all.push(buffers);
    }
    for outcome in unknown {
        outcome.known().await?;
    }
    Ok((vectors, all))
}

/// Uploads some rows of a tensor whose first row is `first` in the packed one.
async fn upload_rows(
    gpu: &Gpu,
    model: &Model,
    tensor: &ModelTensor<'_>,
    packed: &Packed,
    buffers: &[wgpu::Buffer],
    first: u64,
    rows: Range<u64>,
) -> Result<(), GpuError> {
    let packing = &packed.packing;
    let blocks = model.read(tensor.rows_range(rows.clone())).await?;
    let count = (rows.end - rows.start) as usize;
    let mut planes = packing.plane_words.map(|words| vec![0u32; count * words as usize]);
    pack(tensor, packing, &blocks, count, planes.each_mut().map(Vec::as_mut_slice))?;
    let rows = first + rows.start..first + rows.end;
    for (shard, buffer) in packed.shards.iter().zip(buffers) {
        let (from, to) = (rows.start.max(shard.rows.start), rows.end.min(shard.rows.end));
        if from >= to {
            continue;
        }
        for (plane, &words) in packing.plane_words.iter().enumerate().filter(|(_, words)| **words > 0) {
            let words = u64::from(words);
            let part =
                &planes[plane][((from - rows.start) * words) as usize..((to - rows.start) * words) as usize];
            let at = u64::from(shard.plane_at[plane]) + (from - shard.rows.start) * words;
            gpu.queue.write_buffer(buffer, 4 * at, bytemuck::cast_slice(part));
        }
    }
    // Sends what was written on its way, so that it does not pile up in memory.
    gpu.queue.submit([]);
    gpu.check()
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
    packing.pack_rows(&converted, planes);
    Ok(())
}
