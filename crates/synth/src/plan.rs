//! What a file will hold, decided before anything is written.

use std::io;

use rullama_gguf::{Format, Role, Writer};

use crate::{
    Blank, Mix, Preset, SynthError, SynthOptions, fill::Fill, metadata, output, random::Stream, text, towers,
    vocabulary::Vocabulary,
};

/// A model that has not been written yet.
#[derive(Debug)]
pub struct Plan {
    tensors: Vec<PlannedTensor>,
    header: Writer,
}

/// One tensor of a plan.
#[derive(Debug, Clone)]
pub struct PlannedTensor {
    name: String,
    dims: Vec<u64>,
    format: Format,
    pub(crate) fill: Fill,
    pub(crate) stream: Stream,
}

impl Plan {
    pub(crate) fn new(preset: Preset, options: &SynthOptions) -> Result<Self, SynthError> {
        let tokens = options.vocabulary.unwrap_or(preset.default_vocabulary());
        let vocabulary = Vocabulary::new(tokens)?;

        let mut list = TensorList { mix: options.mix, seed: options.seed, tensors: Vec::new() };
        text::list(&preset.shape.text, tokens.into(), &mut list);
        if options.towers {
            towers::list(preset.shape, &mut list);
        }

        let mut header = Writer::new();
        metadata::set(&mut header, preset, options, &vocabulary)?;
        for tensor in &list.tensors {
            header.add_tensor(&tensor.name, &tensor.dims, tensor.format)?;
        }
        Ok(Self { tensors: list.tensors, header })
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

    /// The file with zeros for weights, which takes no room.
    ///
    /// # Errors
    ///
    /// If no file can have this header.
    pub fn blank(self) -> Result<Blank, SynthError> {
        Ok(Blank::new(self.header)?)
    }

    /// Writes the file. See [`crate::write`].
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub fn write(
        self,
        output: impl io::Write + Send,
        progress: impl FnMut(u64, u64) + Send,
    ) -> Result<(), SynthError> {
        let total = self.data_bytes();
        output::write(self.header, &self.tensors, total, output, progress)
    }
}

impl PlannedTensor {
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

/// Tensors as they are listed.
pub(crate) struct TensorList {
    mix: Mix,
    seed: u64,
    tensors: Vec<PlannedTensor>,
}

impl TensorList {
    pub(crate) fn add(&mut self, name: String, dims: &[u64], role: Role, fill: Fill) {
        let format = self.mix.format(role, dims[0]);
        let stream = Stream::new(self.seed, &name);
        self.tensors.push(PlannedTensor { name, dims: dims.to_vec(), format, fill, stream });
    }

    /// A matrix that keeps the magnitude of what it is multiplied with: `dims[0]` values go into each sum.
    pub(crate) fn matrix(&mut self, name: String, dims: &[u64], role: Role) {
        let deviation = (dims[0] as f32).sqrt().recip();
        self.add(name, dims, role, Fill::Normal { deviation });
    }

    /// Weights around a mean, all different: a norm or a scale that is left out, or taken from another
    /// place, shows.
    pub(crate) fn norm(&mut self, name: String, width: u64, mean: f32) {
        self.add(name, &[width], Role::Exact, Fill::around(mean));
    }
}
