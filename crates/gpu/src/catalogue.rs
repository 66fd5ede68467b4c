//! The kernels that lowering chooses for a model on a device, without the device: so that tests can compile all of them, in
//! naga and in browsers, whose rules are stricter.

use rullama_gguf::{Format, Model};
use rullama_graph::Graph;

use crate::{
    DeviceProfile, Fragment, GpuError, Kernel, KernelSpec, ModelOptions, Residency,
    encoder::lower_encoder,
    fitting::lowering_target,
    lower::{StepShape, lower},
    options::{capacities, decode_shape},
    sample,
    self_test::KernelSet,
    weights::{Manifest, ManifestOptions, Numbers, pack::Packing},
};

/// A model whose plans are wanted for a device that is known by its profile alone. Reads no weights.
#[doc(hidden)]
pub struct Catalogue<'a> {
    graph: &'a Graph,
    profile: &'a DeviceProfile,
    manifest: Manifest,
}

impl<'a> Catalogue<'a> {
    /// Reads the header of a model.
    pub async fn new(model: &Model, graph: &'a Graph, profile: &'a DeviceProfile) -> Result<Self, GpuError> {
        let settings = ManifestOptions {
            largest_shard: profile.largest_binding,
            residency: Residency::Gpu,
            most_rows: ModelOptions::default().most_rows(),
            pages: 0,
        };
        Ok(Self {
            graph,
            profile,
            manifest: Manifest::read(model, graph, settings, Numbers::Read, &[]).await?,
        })
    }

    /// Pretends that all matrices are in this format, apart from those whose width is no multiple of its block.
    pub fn set_format(&mut self, format: Format) {
        for packed in &mut self.manifest.packed {
            if let Some(packing) = Packing::new(format, packed.packing.width) {
                packed.packing = packing;
            }
        }
    }

    /// The kernels of steps of `rows` rows of one conversation.
    pub fn kernels(&self, options: &ModelOptions, rows: u32) -> Result<Vec<KernelSpec>, GpuError> {
        self.kernels_of(options, StepShape::prompt(rows))
    }

    /// The kernels of steps that decode so many conversations together.
    pub fn decode_kernels(
        &self,
        options: &ModelOptions,
        conversations: u32,
    ) -> Result<Vec<KernelSpec>, GpuError> {
        self.kernels_of(options, decode_shape(conversations))
    }

    /// The kernels of a graph without tokens whose inputs have so many rows.
    pub fn encoder_kernels(&self, rows: u32, fused: bool) -> Result<Vec<KernelSpec>, GpuError> {
        let kernels = KernelSet { fused, ..KernelSet::best(self.profile) };
        let domains = self.graph.row_counts(0, 0, |_| rows as usize).domains;
        let domains: Vec<u32> = domains.into_iter().map(|rows| rows as u32).collect();
        let program = lower_encoder(self.profile, self.graph, &self.manifest, kernels, &domains)?;
        Ok(program.dispatches.into_iter().map(|dispatch| dispatch.spec).collect())
    }

    fn kernels_of(&self, options: &ModelOptions, shape: StepShape) -> Result<Vec<KernelSpec>, GpuError> {
        let capacities = capacities(self.graph, options.context, options.most_rows());
        let best = KernelSet::best(self.profile);
        let kernels = KernelSet { fused: options.fused, ..best };
        let target = lowering_target(self.profile, self.graph, &self.manifest, options, &capacities, kernels);
        let program = lower(target, shape)?;
        Ok(program.dispatches.into_iter().map(|dispatch| dispatch.spec).collect())
    }

    /// The kernels that sample from a vocabulary of this size.
    pub fn sampling_kernels(vocabulary: u32) -> Vec<KernelSpec> {
        sample::kernels_for(vocabulary)
    }

    /// The kernels that are part of no plan: the measurement of bandwidth.
    pub fn kernels_without_a_graph() -> Vec<KernelSpec> {
        vec![KernelSpec::new(Kernel::Read).constant("LANES", 256).constant("PASSES", 1)]
    }

    /// The fragment of each packed format.
    pub fn formats() -> Vec<(Format, Fragment)> {
        let formats = crate::weights::pack::PACKED_FORMATS.into_iter();
        formats.filter_map(|format| Some((format, Fragment::format(format)?))).collect()
    }
}
