//! Weights that live on the GPU, packed into planes and split where they are larger than a binding.

use std::{collections::HashMap, ops::Range};

use rullama_gguf::{Format, Model, ModelTensor};
use rullama_graph::{Graph, Op, Weight};

use super::pack::{Packing, resident_format};
use crate::{Gpu, GpuError};

/// Rows are read and packed in pieces of about this many bytes, so that host memory stays small.
const PIECE: u64 = 16 << 20;

/// Some rows of a packed tensor, in a buffer of their own.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) buffer: wgpu::Buffer,
    pub(crate) rows: Range<u64>,
    /// Where each plane starts, in words.
    pub(crate) plane_at: [u32; 3],
}

/// A tensor that matrices are read from.
#[derive(Debug)]
pub(crate) struct PackedTensor {
    pub(crate) packing: Packing,
    pub(crate) shards: Vec<Shard>,
}

/// The weights of a graph on the GPU.
#[derive(Debug)]
pub(crate) struct Resident {
    matrices: HashMap<String, PackedTensor>,
    vectors: HashMap<String, wgpu::Buffer>,
    /// Single numbers that kernels take as parameters.
    factors: HashMap<String, f32>,
    /// Divisors of rotary frequencies, which the host needs.
    pub(crate) rope_factors: HashMap<String, Vec<f32>>,
}

impl Resident {
    /// Reads, packs and uploads every weight that the graph names, tensor by tensor.
    pub(crate) async fn upload(gpu: &Gpu, model: &Model, graph: &Graph) -> Result<Self, GpuError> {
        let mut resident = Self {
            matrices: HashMap::new(),
            vectors: HashMap::new(),
            factors: HashMap::new(),
            rope_factors: HashMap::new(),
        };
        for node in graph.nodes() {
            let Some(weight) = node.op.weight() else { continue };
            let name = graph.weight(weight).tensor.as_str();
            let tensor = find(model, name)?;
            match node.op {
                Op::Embed { .. } | Op::Linear { .. } | Op::ExpertLinear { .. } => {
                    if !resident.matrices.contains_key(name) {
                        let packed = upload_matrix(gpu, model, &tensor).await?;
                        resident.matrices.insert(name.to_owned(), packed);
                    }
                    if let Some(scale) = graph.weight(weight).scale {
                        let name = graph.weight(scale).tensor.as_str();
                        let value = decoded(model, &find(model, name)?).await?[0];
                        resident.factors.insert(name.to_owned(), value);
                    }
                }
                Op::Rope { .. } => {
                    resident.rope_factors.insert(name.to_owned(), decoded(model, &tensor).await?);
                }
                _ => {
                    if !resident.vectors.contains_key(name) {
                        let values = decoded(model, &tensor).await?;
                        let buffer = gpu.storage(name, 4 * values.len() as u64)?;
                        gpu.queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&values));
                        resident.vectors.insert(name.to_owned(), buffer);
                    }
                }
            }
        }
        Ok(resident)
    }

    pub(crate) fn matrix(&self, graph: &Graph, weight: Weight) -> &PackedTensor {
        &self.matrices[&graph.weight(weight).tensor]
    }

    pub(crate) fn vector(&self, graph: &Graph, weight: Weight) -> &wgpu::Buffer {
        &self.vectors[&graph.weight(weight).tensor]
    }

    /// What all values of a weight are multiplied with.
    pub(crate) fn factor(&self, graph: &Graph, weight: Weight) -> f32 {
        graph.weight(weight).scale.map_or(1.0, |scale| self.factors[&graph.weight(scale).tensor])
    }
}

fn find<'m>(model: &'m Model, name: &str) -> Result<ModelTensor<'m>, GpuError> {
    model.tensor(name).ok_or_else(|| GpuError::MissingTensor { tensor: name.to_owned() })
}

async fn decoded(model: &Model, tensor: &ModelTensor<'_>) -> Result<Vec<f32>, GpuError> {
    let bytes = model.read(tensor.range()).await?;
    decode(tensor, &bytes, tensor.shape.values() as usize)
}

fn decode(tensor: &ModelTensor<'_>, bytes: &[u8], count: usize) -> Result<Vec<f32>, GpuError> {
    let mut values = vec![0.0; count];
    let failed = |source| GpuError::Format { tensor: tensor.name.to_owned(), source };
    tensor.format.decode(bytes, &mut values).map_err(failed)?;
    Ok(values)
}

/// Uploads a tensor in shards of whole rows, each no larger than a binding.
async fn upload_matrix(gpu: &Gpu, model: &Model, tensor: &ModelTensor<'_>) -> Result<PackedTensor, GpuError> {
    let width = tensor.shape.row_len() as u32;
    let format = resident_format(tensor.format, width);
    let packing = Packing::new(format, width)
        .or_else(|| Packing::new(Format::F32, width))
        .ok_or(GpuError::Unsupported { operation: "linear" })?;
    let limit = gpu.largest_binding();
    let rows_in_shard = packing.rows_within(limit);
    if rows_in_shard == 0 {
        let what = format!("a row of `{}`", tensor.name);
        let [.., words] = packing.plane_starts(1);
        return Err(GpuError::TooLarge { what, bytes: 4 * words, limit });
    }
    let mut shards = Vec::new();
    let all = tensor.shape.rows();
    let mut first = 0;
    while first < all {
        let rows = first..(first + rows_in_shard).min(all);
        first = rows.end;
        shards.push(upload_shard(gpu, model, tensor, &packing, rows).await?);
    }
    Ok(PackedTensor { packing, shards })
}

async fn upload_shard(
    gpu: &Gpu,
    model: &Model,
    tensor: &ModelTensor<'_>,
    packing: &Packing,
    rows: Range<u64>,
) -> Result<Shard, GpuError> {
    let [a, b, c, end] = packing.plane_starts(rows.end - rows.start);
    let plane_at = [a, b, c];
    let buffer = gpu.storage(tensor.name, 4 * end)?;
    let at_once = (PIECE / tensor.row_bytes().max(1)).max(1);
    let mut first = rows.start;
    while first < rows.end {
        let piece = first..(first + at_once).min(rows.end);
        let pieces = (piece.end - piece.start) as usize;
        let mut blocks = model.read(tensor.rows_range(piece.clone())).await?;
        if packing.format != tensor.format {
            blocks = converted(tensor, &blocks, packing, pieces)?;
        }
        let mut planes = packing.plane_words.map(|words| vec![0u32; pieces * words as usize]);
        packing.pack_rows(&blocks, planes.each_mut().map(Vec::as_mut_slice));
        for (plane, packed) in planes.iter().enumerate().filter(|(_, packed)| !packed.is_empty()) {
            let at = plane_at[plane] + (piece.start - rows.start) * u64::from(packing.plane_words[plane]);
            gpu.queue.write_buffer(&buffer, 4 * at, bytemuck::cast_slice(packed));
        }
        // Sends what was written on its way, so that it does not pile up in memory.
        gpu.queue.submit([]);
        first = piece.end;
    }
    Ok(Shard { buffer, rows, plane_at: plane_at.map(|at| at as u32) })
}

/// Blocks of a format without a kernel, in the format that stands in for it.
fn converted(
    tensor: &ModelTensor<'_>,
    blocks: &[u8],
    packing: &Packing,
    rows: usize,
) -> Result<Vec<u8>, GpuError> {
    let values = decode(tensor, blocks, rows * packing.width as usize)?;
    let mut converted = vec![0; rows * packing.bytes_per_row()];
    let failed = |source| GpuError::Format { tensor: tensor.name.to_owned(), source };
    packing.format.encode(&values, &mut converted).map_err(failed)?;
    Ok(converted)
}
