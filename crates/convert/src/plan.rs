//! What a file will hold, decided before anything is written.

use std::{io, path::Path};

use rullama_gguf::{Format, Role, Writer, is_favoured, write_pieces};

use crate::{
    ConvertError, ConvertOptions, TensorRule,
    collect::{Found, collect},
    config::Described,
    files::Folder,
    metadata,
    table::Kind,
    values::Values,
    weights::Weights,
};

/// Pairs with this factor turn by an angle of practically zero.
const NOT_ROTATED: f32 = 1e30;

/// A file that has not been written yet.
#[derive(Debug)]
pub struct Plan {
    weights: Weights,
    tensors: Vec<PlannedTensor>,
    header: Writer,
}

/// One tensor of a plan.
#[derive(Debug)]
pub struct PlannedTensor {
    name: String,
    dims: Vec<u64>,
    format: Format,
    values: Values,
}

impl Plan {
    pub(crate) fn new(folder: &Path, options: &ConvertOptions) -> Result<Self, ConvertError> {
        let files = Folder(folder);
        let mut described = Described::read(files)?;
        if !options.towers {
            (described.vision, described.audio) = (None, None);
        }
        let weights = Weights::open(files)?;
        let found = collect(&weights, &described, options.towers)?;
        let tensors = choose(found, &described, options)?;

        let mut header = Writer::new();
        metadata::set(&mut header, files, &described, options)?;
        for tensor in &tensors {
            header.add_tensor(&tensor.name, &tensor.dims, tensor.format)?;
        }
        Ok(Self { weights, tensors, header })
    }

    /// The tensors, in the order of the file.
    pub fn tensors(&self) -> &[PlannedTensor] {
        &self.tensors
    }

    /// Bytes that the tensors take; the file is larger by its header and by padding.
    pub fn data_bytes(&self) -> u64 {
        self.tensors.iter().map(PlannedTensor::bytes).sum()
    }

    /// How many weights there are.
    pub fn parameters(&self) -> u64 {
        self.tensors.iter().map(PlannedTensor::values).sum()
    }

    /// Writes the file, using all threads of the current rayon pool and bounded memory.
    ///
    /// `progress` is told how many bytes of weights were written, and of how many.
    ///
    /// # Errors
    ///
    /// If the checkpoint cannot be read, or the output cannot be written.
    pub fn write(
        self,
        output: impl io::Write + Send,
        mut progress: impl FnMut(u64, u64) + Send,
    ) -> Result<(), ConvertError> {
        let total = self.data_bytes();
        let Self { weights, tensors, header } = self;
        let mut body = header.begin(output)?;
        let mut done = 0;
        progress(done, total);
        let pieces = tensors.iter().flat_map(|tensor| {
            let (count, step) = (tensor.values(), tensor.values.piece());
            (0..count).step_by(step as usize).map(move |first| (tensor, first, step.min(count - first)))
        });
        write_pieces(
            &mut body,
            pieces,
            |&(_, _, len)| len,
            |&(tensor, first, len)| tensor.values.encode(&weights, tensor.format, first, len),
            |bytes| {
                done += bytes;
                progress(done, total);
            },
        )?;
        body.finish()?;
        Ok(())
    }
}

impl PlannedTensor {
    fn new(name: String, values: Values, role: Role, options: &ConvertOptions) -> Self {
        let dims = values.dims();
        let mut format = options.mix.format(role, dims[0]);
        // The last one that is about this tensor.
        let applies = |rule: &&TensorRule| rule.is_like(&name) && (rule.is_exact() || role != Role::Exact);
        if let Some(rule) = options.rules.iter().rfind(applies) {
            format = rule.format().fitting(dims[0]);
        }
        Self { name, dims, format, values }
    }

    /// The name in the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The extents, fastest varying first.
    pub fn dims(&self) -> &[u64] {
        &self.dims
    }

    /// How its values are stored.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How many values it has.
    pub fn values(&self) -> u64 {
        self.dims.iter().product()
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> u64 {
        self.values() / self.format.block_len() as u64 * self.format.block_bytes() as u64
    }
}

/// Gives each tensor its format, and adds the one that no checkpoint has.
fn choose(
    found: Vec<Found>,
    described: &Described,
    options: &ConvertOptions,
) -> Result<Vec<PlannedTensor>, ConvertError> {
    let layers = described.text.layers.len() as u32;
    let value_matrices = found.iter().filter(|found| found.kind == Kind::Value).count() as u32;
    let mut values_before = 0;
    let mut tensors = Vec::with_capacity(found.len() + 1);
    for Found { name, stored, kind, transform, layer } in found {
        let favoured = |index, count| if is_favoured(index, count) { Role::Favoured } else { Role::Matrix };
        let role = match kind {
            Kind::Exact => Role::Exact,
            Kind::Matrix => Role::Matrix,
            Kind::Value => {
                values_before += 1;
                favoured(values_before - 1, value_matrices)
            }
            Kind::Down => favoured(layer.unwrap_or(0) as u32, layers),
            Kind::Table => Role::Table,
            Kind::PerLayerProjection => Role::PerLayerProjection,
            Kind::Vision => Role::Vision,
            Kind::Audio => Role::Audio,
        };
        tensors.push(PlannedTensor::new(name, Values::Stored(stored, transform), role, options));
    }
    let (rotated, others) = described.rotated;
    if rotated + others > 0 {
        let mut factors = vec![1.0; rotated as usize];
        factors.resize((rotated + others) as usize, NOT_ROTATED);
        let values = Values::Given(factors);
        tensors.push(PlannedTensor::new("rope_freqs.weight".to_owned(), values, Role::Exact, options));
    }
    let unused = |rule: &&TensorRule| !tensors.iter().any(|tensor| rule.is_like(&tensor.name));
    match options.rules.iter().find(unused) {
        Some(rule) => Err(ConvertError::UnusedRule { pattern: rule.pattern().to_owned() }),
        None => Ok(tensors),
    }
}
