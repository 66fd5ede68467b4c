//! Which weights go to the GPU, in which format and in which shards. Decided before weights are read.
//!
//! Weights that are multiplied with the same input are *stacked*: their rows are adjacent in one packed tensor, so that one
//! dispatch computes all their products.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use futures_util::future::try_join_all;
use rullama_gguf::{Format, Model, ModelTensor};
use rullama_graph::{Graph, Op, Value, Weight, WeightInfo};

use super::{
    Residency,
    pack::{Packing, resident_format},
    stacks::{multiplied, stacks},
};
use crate::GpuError;

/// Some rows of a packed tensor, in a buffer of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) rows: Range<u64>,
    /// Where each plane begins, in words: multiples of four, because kernels load four words at once.
    pub(crate) plane_at: [u32; 3],
    pub(crate) bytes: u64,
}

/// A tensor of the file as part of a packed tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) tensor: String,
    pub(crate) rows: u64,
    /// Its format in the file.
    pub(crate) format: Format,
}

/// One or more tensors of the file that are packed in the same format.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    pub(crate) parts: Vec<Part>,
    pub(crate) packing: Packing,
    /// Where it lives. For rows and pages, the shards have room for what one step needs.
    pub(crate) residency: Residency,
    pub(crate) shards: Vec<Shard>,
}

impl Packed {
    /// True if the buffers of one packed tensor can be used for the other.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.parts == other.parts
            && self.packing == other.packing
            && self.residency == other.residency
            && self.shards == other.shards
    }

    fn contains(&self, tensor: &str) -> bool {
        self.parts.iter().any(|part| part.tensor == tensor)
    }

    /// Bytes of all shards.
    pub(crate) fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.bytes).sum()
    }
}

/// What decides where weights live and how they are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ManifestOptions {
    /// The most bytes of a shard.
    pub(crate) largest_shard: u64,
    pub(crate) residency: Residency,
    /// The most rows of a step, for tables that stay in the file.
    pub(crate) most_rows: u32,
    /// Experts of a layer that have a page, if experts are paged.
    pub(crate) pages: u32,
}

/// Experts that share pages: those of one layer, whose tensors are paged together.
#[derive(Debug)]
pub(crate) struct ExpertPool {
    /// The routing that names the experts of each row.
    pub(crate) routing: Value,
    /// The packed tensors with a matrix for each expert.
    pub(crate) packed: Vec<usize>,
    /// Experts in the file.
    pub(crate) experts: u32,
    /// Experts that have a page.
    pub(crate) pages: u32,
}

/// A tensor whose format on the GPU is not that of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conversion {
    /// The tensor.
    pub tensor: String,
    /// Its format in the file.
    pub from: Format,
    /// Its format on the GPU.
    pub to: Format,
}

/// Where a manifest gets the few values that the host computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// They are read from the file.
    Read,
    /// All are assumed to be 1. Sizes do not depend on them, so this is enough to find out whether a model fits.
    Assumed,
}

/// The plan for all weights of a graph.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) packed: Vec<Packed>,
    /// For each tensor with matrices: the index of its packed tensor, and its first row there.
    places: HashMap<String, (usize, u32)>,
    /// Where each vector begins in the buffer of vectors.
    vectors: HashMap<String, u32>,
    pub(crate) vector_floats: u32,
    /// Single numbers that kernels take as parameters.
    factors: HashMap<String, f32>,
    /// Divisors of rotary frequencies, which the host needs.
    pub(crate) rope_factors: HashMap<String, Vec<f32>>,
    /// Experts that are paged.
    pub(crate) pools: Vec<ExpertPool>,
}

impl Manifest {
    /// Plans all weights of `graph`. Tensors that other graphs hold are reused as they are. Reads only the values that the host
    /// needs.
    pub(crate) async fn read(
        model: &Model,
        graph: &Graph,
        options: ManifestOptions,
        numbers: Numbers,
        held: &[Packed],
    ) -> Result<Self, GpuError> {
        let mut manifest = Self {
            packed: Vec::new(),
            pools: Vec::new(),
            places: HashMap::new(),
            vectors: HashMap::new(),
            vector_floats: 0,
            factors: HashMap::new(),
            rope_factors: HashMap::new(),
        };
        manifest.adopt(graph, held);
        for stack in stacks(graph) {
            manifest.stack(model, graph, &stack, options)?;
        }
        let multiplied = multiplied(graph);
        let mut known = host_values(model, graph, numbers).await?;
        for node in graph.nodes() {
            let Some(weight) = node.op.weight() else { continue };
            let info = graph.weight(weight);
            let name = info.tensor.as_str();
            match node.op {
                Op::Embed { .. } | Op::Linear { .. } | Op::ExpertLinear { .. } => {
                    let residency = match node.op {
                        // A table that is also the matrix of a product must be on the GPU as a whole.
                        Op::Embed { .. } if !multiplied.contains(name) => Residency::Rows,
                        Op::ExpertLinear { .. } if options.pages < info.matrices => Residency::Paged,
                        _ => Residency::Gpu,
                    };
                    let residency = if residency <= options.residency { residency } else { Residency::Gpu };
                    let residency = manifest.residency_of(name).unwrap_or(residency);
                    if !manifest.places.contains_key(name) {
                        manifest.pack(vec![matrix(model, info)?], residency, options)?;
                    }
                    if let (Op::ExpertLinear { routing, .. }, Residency::Paged) = (node.op, residency) {
                        manifest.pool(routing, name, info);
                    }
                    if let Some(scale) = info.scale {
                        let name = graph.weight(scale).tensor.as_str();
                        manifest.factors.insert(name.to_owned(), known[name][0]);
                    }
                }
                Op::Rope { .. } => {
                    let factors = known.remove(name).unwrap_or_default();
                    manifest.rope_factors.entry(name.to_owned()).or_insert(factors);
                }
                _ => {
                    if !manifest.vectors.contains_key(name) {
                        manifest.vectors.insert(name.to_owned(), manifest.vector_floats);
                        let values = find(model, name)?.shape.values() as u32;
                        // Four floats are read at once.
                        manifest.vector_floats += values.next_multiple_of(4);
                    }
                }
            }
        }
        Ok(manifest)
    }

    /// The packed tensor that holds a weight, and the weight's first row there.
    pub(crate) fn place(&self, graph: &Graph, weight: Weight) -> (usize, u32) {
        let info = graph.weight(weight);
        let (packed, first_row) = self.places[&info.tensor];
        (packed, first_row + info.first_row)
    }

    /// The packed tensor that holds a weight.
    pub(crate) fn packed(&self, graph: &Graph, weight: Weight) -> &Packed {
        &self.packed[self.place(graph, weight).0]
    }

    /// True if the rows of `next` follow those of `weight` in the same packed tensor.
    pub(crate) fn follows(&self, graph: &Graph, weight: Weight, next: Weight) -> bool {
        let ((packed, first), (other, other_first)) = (self.place(graph, weight), self.place(graph, next));
        let (info, other_info) = (graph.weight(weight), graph.weight(next));
        packed == other
            && first + info.rows == other_first
            && info.matrices == other_info.matrices
            && info.scale.is_none()
            && other_info.scale.is_none()
    }

    /// True if every shard of a weight's tensor holds whole matrices, so that no matrix is split.
    pub(crate) fn whole_matrices(&self, graph: &Graph, weight: Weight) -> bool {
        let packed = self.packed(graph, weight);
        let matrix = u64::from(graph.weight(weight).tensor_rows);
        let mut starts = packed.shards.iter().map(|shard| shard.rows.start);
        packed.shards.len() == 1
            || (packed.parts.len() == 1 && starts.all(|start| start.is_multiple_of(matrix)))
    }

    /// Where a vector begins in the buffer of vectors.
    pub(crate) fn vector(&self, graph: &Graph, weight: Weight) -> u32 {
        self.vectors[&graph.weight(weight).tensor]
    }

    pub(crate) fn vectors(&self) -> impl Iterator<Item = (&str, u32)> {
        self.vectors.iter().map(|(name, &at)| (name.as_str(), at))
    }

    /// The number by which all values of a weight are multiplied.
    pub(crate) fn factor(&self, graph: &Graph, weight: Weight) -> f32 {
        graph.weight(weight).scale.map_or(1.0, |scale| self.factors[&graph.weight(scale).tensor])
    }

    /// Bytes of all weights on the GPU, including those that other graphs hold, and of the pages of experts.
    pub(crate) fn bytes(&self) -> u64 {
        let on_gpu = self.packed.iter().filter(|packed| packed.residency != Residency::Rows);
        on_gpu.map(Packed::bytes).sum::<u64>() + 4 * u64::from(self.vector_floats)
    }

    /// Bytes of the buffers for rows of tables that stay in the file.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.resident(Residency::Rows).map(|(_, packed)| packed.bytes()).sum()
    }

    /// The packed tensors with this residency.
    pub(crate) fn resident(&self, residency: Residency) -> impl Iterator<Item = (usize, &Packed)> {
        self.packed.iter().enumerate().filter(move |(_, packed)| packed.residency == residency)
    }

    /// The most frugal residency of any weight.
    pub(crate) fn residency(&self) -> Residency {
        self.packed.iter().map(|packed| packed.residency).max().unwrap_or_default()
    }

    /// The pool of the experts that `routing` names.
    pub(crate) fn pool_of(&self, routing: Value) -> Option<usize> {
        self.pools.iter().position(|pool| pool.routing == routing)
    }

    /// Bytes of the largest routing of paged experts.
    pub(crate) fn routing_bytes(&self, graph: &Graph, most_rows: u32) -> u64 {
        let widths = self.pools.iter().map(|pool| graph.value(pool.routing).shape.width);
        4 * u64::from(most_rows) * u64::from(widths.max().unwrap_or(0))
    }

    /// Reuses the tensors that other graphs hold and this one reads.
    fn adopt(&mut self, graph: &Graph, held: &[Packed]) {
        let tables: HashSet<&str> = graph
            .nodes()
            .iter()
            .filter_map(|node| match node.op {
                Op::Embed { table, .. } => Some(graph.weight(table).tensor.as_str()),
                _ => None,
            })
            .collect();
        let multiplied = multiplied(graph);
        let mut names: Vec<&str> = tables.union(&multiplied).copied().collect();
        // The order of a set varies between runs.
        names.sort_unstable();
        for name in names {
            // Embedding kernels count rows from the beginning of a packed tensor.
            let begins = |packed: &Packed| packed.parts[0].tensor == name || !tables.contains(name);
            let found = held.iter().find(|packed| packed.contains(name) && begins(packed));
            let Some(found) = found.filter(|_| !self.places.contains_key(name)) else { continue };
            let mut row = 0;
            for part in &found.parts {
                self.places.insert(part.tensor.clone(), (self.packed.len(), row as u32));
                row += part.rows;
            }
            self.packed.push(found.clone());
        }
    }

    /// The residency of a tensor that is planned already.
    fn residency_of(&self, tensor: &str) -> Option<Residency> {
        self.places.get(tensor).map(|&(packed, _)| self.packed[packed].residency)
    }

    /// Adds a tensor to the pool of its routing.
    fn pool(&mut self, routing: Value, tensor: &str, info: &WeightInfo) {
        let (packed, _) = self.places[tensor];
        let (experts, rows) = (info.matrices, u64::from(info.tensor_rows));
        let pages = self.packed[packed].shards.last().map_or(0, |shard| shard.rows.end / rows) as u32;
        let index = self.pool_of(routing).unwrap_or_else(|| {
            self.pools.push(ExpertPool { routing, packed: Vec::new(), experts, pages });
            self.pools.len() - 1
        });
        if !self.pools[index].packed.contains(&packed) {
            self.pools[index].packed.push(packed);
        }
    }

    /// Tensors whose format has no kernel.
    pub(crate) fn conversions(&self) -> Vec<Conversion> {
        let mut conversions = Vec::new();
        for packed in &self.packed {
            let to = packed.packing.format;
            for part in packed.parts.iter().filter(|part| part.format != to) {
                conversions.push(Conversion { tensor: part.tensor.clone(), from: part.format, to });
            }
        }
        conversions
    }

    /// Stacks weights of the same format, as long as they fit into one shard.
    fn stack(
        &mut self,
        model: &Model,
        graph: &Graph,
        weights: &[Weight],
        options: ManifestOptions,
    ) -> Result<(), GpuError> {
        let mut runs: Vec<(Packing, Vec<ModelTensor<'_>>)> = Vec::new();
        for &weight in weights {
            let info = graph.weight(weight);
            let tensor = matrix(model, info)?;
            let whole = info.matrices == 1 && info.rows == info.tensor_rows && info.scale.is_none();
            if !whole || self.places.contains_key(tensor.name) {
                continue;
            }
            let packing = packing(&tensor)?;
            let fits = |run: &[ModelTensor<'_>]| {
                let rows: u64 = run.iter().chain([&tensor]).map(|tensor| tensor.shape.rows()).sum();
                rows <= packing.rows_within(options.largest_shard)
            };
            match runs.iter_mut().find(|(other, run)| *other == packing && fits(run)) {
                Some((_, run)) => run.push(tensor),
                None => runs.push((packing, vec![tensor])),
            }
        }
        runs.into_iter().try_for_each(|(_, run)| self.pack(run, Residency::Gpu, options))
    }

    /// Plans one packed tensor.
    fn pack(
        &mut self,
        tensors: Vec<ModelTensor<'_>>,
        residency: Residency,
        options: ManifestOptions,
    ) -> Result<(), GpuError> {
        let packing = packing(&tensors[0])?;
        // A tensor of experts has several matrices, whose rows should stay together.
        let matrix_rows = tensors[0].shape.dims().get(1).copied().unwrap_or(1);
        let index = self.packed.len();
        let mut rows = 0;
        let mut parts = Vec::new();
        for tensor in tensors {
            self.places.insert(tensor.name.to_owned(), (index, rows as u32));
            rows += tensor.shape.rows();
            let (name, format) = (tensor.name.to_owned(), tensor.format);
            parts.push(Part { tensor: name, rows: tensor.shape.rows(), format });
        }
        // The rows of a table are independent of each other.
        let (rows, matrix_rows) = match residency {
            Residency::Gpu => (rows, matrix_rows),
            Residency::Rows => (options.most_rows.into(), 1),
            Residency::Paged => (u64::from(options.pages) * matrix_rows, matrix_rows),
        };
        let shards = shards(&parts[0].tensor, &packing, rows, matrix_rows, options.largest_shard)?;
        self.packed.push(Packed { parts, packing, residency, shards });
        Ok(())
    }
}

/// Splits rows into shards of at most `limit` bytes: between matrices, if a matrix fits into a shard.
fn shards(
    tensor: &str,
    packing: &Packing,
    rows: u64,
    matrix_rows: u64,
    limit: u64,
) -> Result<Vec<Shard>, GpuError> {
    let mut most = packing.rows_within(limit);
    if most >= matrix_rows {
        most -= most % matrix_rows;
    }
    if most == 0 {
        let what = format!("a row of `{tensor}`");
        let bytes = 4 * u64::from(packing.row_words());
        return Err(GpuError::TooLarge { what, bytes, limit });
    }
    let mut shards = Vec::new();
    let mut first = 0;
    while first < rows {
        let end = (first + most).min(rows);
        let [quants, scales, extra, all] = packing.plane_starts(end - first);
        let plane_at = [quants, scales, extra].map(|at| at as u32);
        shards.push(Shard { rows: first..end, plane_at, bytes: 4 * all });
        first = end;
    }
    Ok(shards)
}

fn packing(tensor: &ModelTensor<'_>) -> Result<Packing, GpuError> {
    let width = tensor.shape.row_len() as u32;
    Packing::new(resident_format(tensor.format, width), width)
        .or_else(|| Packing::new(Format::F32, width))
        .ok_or(GpuError::Unsupported { operation: "linear" })
}

/// The values that the host needs: single numbers, and divisors of rotary frequencies. All are requested at once, because
/// they are scattered over the file and each request to a server costs a round trip.
async fn host_values<'g>(
    model: &Model,
    graph: &'g Graph,
    numbers: Numbers,
) -> Result<HashMap<&'g str, Vec<f32>>, GpuError> {
    let mut names = HashSet::new();
    for node in graph.nodes() {
        let Some(info) = node.op.weight().map(|weight| graph.weight(weight)) else { continue };
        match node.op {
            Op::Rope { .. } => names.insert(info.tensor.as_str()),
            Op::Embed { .. } | Op::Linear { .. } | Op::ExpertLinear { .. } => {
                info.scale.is_some_and(|scale| names.insert(&graph.weight(scale).tensor))
            }
            _ => false,
        };
    }
    let read = async |name: &'g str| -> Result<_, GpuError> {
        let tensor = find(model, name)?;
        let values = match numbers {
            Numbers::Read => decoded(model, &tensor).await?,
            Numbers::Assumed => vec![1.0; tensor.shape.values() as usize],
        };
        Ok((name, values))
    };
    Ok(try_join_all(names.into_iter().map(read)).await?.into_iter().collect())
}

pub(super) fn find<'m>(model: &'m Model, name: &str) -> Result<ModelTensor<'m>, GpuError> {
    model.tensor(name).ok_or_else(|| GpuError::MissingTensor { tensor: name.to_owned() })
}

/// The tensor of a weight in rows of the weight's width, which a kernel of a convolution does not have in the file.
fn matrix<'m>(model: &'m Model, info: &WeightInfo) -> Result<ModelTensor<'m>, GpuError> {
    rows_of(find(model, &info.tensor)?, info.width)
}

/// A tensor in rows of `width` values.
pub(super) fn rows_of(tensor: ModelTensor<'_>, width: u32) -> Result<ModelTensor<'_>, GpuError> {
    let name = tensor.name;
    tensor.as_rows_of(width.into()).ok_or_else(|| GpuError::MissingTensor { tensor: name.to_owned() })
}

pub(super) async fn decoded(model: &Model, tensor: &ModelTensor<'_>) -> Result<Vec<f32>, GpuError> {
    let bytes = model.read(tensor.range()).await?;
    decode(tensor, &bytes, tensor.shape.values() as usize)
}

pub(super) fn decode(tensor: &ModelTensor<'_>, bytes: &[u8], count: usize) -> Result<Vec<f32>, GpuError> {
    let mut values = vec![0.0; count];
    let failed = |source| GpuError::Format { tensor: tensor.name.to_owned(), source };
    tensor.format.decode(bytes, &mut values).map_err(failed)?;
    Ok(values)
}
