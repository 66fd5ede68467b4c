//! Programs of the released models at their real sizes, for device profiles: without weights and without a GPU.

use std::collections::BTreeMap;

use rullama_gemma::{Config, Outputs, VisionConfig, text, vision};
use rullama_gguf::{Mix, Model};
use rullama_graph::{Graph, Op};
use rullama_synth::{Preset, SynthOptions};

use super::{Program, StepShape, lower};
use crate::{
    DeviceProfile, Dialect, Kernel, KernelSpec, ModelOptions, Residency,
    encoder::lower_encoder,
    fitting::lowering_target,
    kernel::Access,
    options::capacities,
    rows::StepSize,
    self_test::KernelSet,
    tuning::{FEW_ROWS, MOST_ROWS, SMALL_CHUNK},
    weights::{Manifest, ManifestOptions, Numbers},
};

const MODELS: [&str; 5] = ["e2b", "e4b", "12b", "26b-a4b", "31b"];

/// Rows of every plan.
const ROWS: [u32; 5] = [1, 2, FEW_ROWS, SMALL_CHUNK, MOST_ROWS];

/// The workgroups that WebGPU guarantees along each axis of a grid.
const MOST_WORKGROUPS: u32 = 65_535;

/// A large GPU with matrix units, the same in a browser, and the minimum that WebGPU guarantees.
fn profiles() -> [DeviceProfile; 3] {
    let profile = |name: &str, workgroup_memory, subgroups, matrices, largest_binding| DeviceProfile {
        name: name.to_owned(),
        backend: "none".to_owned(),
        software: false,
        largest_binding,
        largest_buffer: largest_binding,
        workgroup_memory,
        subgroups,
        half_precision: matrices,
        timestamps: false,
        matrices,
    };
    [
        profile("matrix units", 48 << 10, Some([32, 32]), true, u64::from(u32::MAX) & !3),
        profile("subgroups", 32 << 10, Some([32, 32]), false, 2 << 30),
        profile("floor", 16 << 10, None, false, 128 << 20),
    ]
}

/// A model of real size, without its weights.
struct RealSize {
    model: Model,
    graph: Graph,
    layers: usize,
    /// The context that the model was trained for.
    context: u32,
}

impl RealSize {
    fn new(name: &str) -> Self {
        let preset: Preset = name.parse().unwrap();
        let options = SynthOptions { mix: Mix::Q4_K_M, ..SynthOptions::default() };
        let file = rullama_synth::plan(preset, &options).unwrap().blank().unwrap();
        let model = pollster::block_on(Model::open(Box::new(file))).unwrap();
        let graph = text(&model, &Config::read(&model).unwrap(), Outputs::Last).unwrap();
        let number = |key: &str| model.metadata().u32(key).unwrap();
        let (layers, context) = (number("gemma4.block_count") as usize, number("gemma4.context_length"));
        Self { model, graph, layers, context }
    }

    fn on<'a>(&'a self, profile: &'a DeviceProfile) -> OnGpu<'a> {
        let settings = ManifestOptions {
            largest_shard: profile.largest_binding,
            residency: Residency::Gpu,
            most_rows: MOST_ROWS,
            pages: 0,
        };
        let manifest = Manifest::read(&self.model, &self.graph, settings, Numbers::Read, &[]);
        let manifest = pollster::block_on(manifest).unwrap();
        OnGpu { real: self, profile, manifest }
    }
}

/// The same with its manifest for a device.
struct OnGpu<'a> {
    real: &'a RealSize,
    profile: &'a DeviceProfile,
    manifest: Manifest,
}

impl OnGpu<'_> {
    fn program(&self, rows: u32) -> Program {
        let RealSize { graph, context, .. } = self.real;
        let options = ModelOptions::default().context(*context);
        let capacities = capacities(graph, *context, MOST_ROWS);
        let kernels = KernelSet::best(self.profile);
        lower(
            lowering_target(self.profile, graph, &self.manifest, &options, &capacities, kernels),
            StepShape::prompt(rows),
        )
        .unwrap()
    }
}

/// Bytes of workgroup memory that a kernel declares.
pub(super) fn workgroup_bytes(spec: &KernelSpec) -> u32 {
    let module = naga::front::wgsl::parse_str(&spec.compose(Dialect::Naga)).unwrap();
    let mut layouter = naga::proc::Layouter::default();
    layouter.update(module.to_ctx()).unwrap();
    let shared = module
        .global_variables
        .iter()
        .filter(|(_, variable)| variable.space == naga::AddressSpace::WorkGroup);
    shared.map(|(_, variable)| layouter[variable.ty].size.next_multiple_of(16)).sum()
}

/// Every dispatch has all the buffers that its kernel declares, enough workgroup memory, and a grid that WebGPU allows.
#[test]
fn plans_of_real_sizes_keep_within_limits() {
    let (profiles, mut seen) = (profiles(), BTreeMap::new());
    for name in MODELS {
        let real = RealSize::new(name);
        for profile in &profiles {
            let model = real.on(profile);
            for rows in ROWS {
                for dispatch in model.program(rows).dispatches {
                    let place = format!(
                        "{}, {name}, {rows} rows, {}: {}",
                        profile.name, dispatch.label, dispatch.spec
                    );
                    for position in [0, real.context - rows] {
                        let grid =
                            dispatch.workgroups.map(|count| count.at(StepSize::of_one(rows, position)));
                        assert!(grid.iter().all(|&count| count <= MOST_WORKGROUPS), "{place}: {grid:?}");
                    }
                    for binding in dispatch.spec.bindings() {
                        let given = match binding.access {
                            Access::Uniform => dispatch.uniforms.iter().any(|u| binding.is_for(u.layout())),
                            _ => dispatch.buffers.iter().any(|(name, _)| *name == binding.name),
                        };
                        assert!(given, "{place}: `{}` is missing", binding.name);
                    }
                    let key = (profile.workgroup_memory, dispatch.spec.to_string());
                    seen.entry(key).or_insert((dispatch.spec, place));
                }
            }
        }
    }
    for ((memory, _), (spec, place)) in &seen {
        let bytes = workgroup_bytes(spec);
        assert!(bytes <= *memory, "{place}: {bytes} bytes of workgroup memory");
    }
}

/// A token takes eight dispatches per layer and a few more, thirteen with experts; each further shard of a weight takes one
/// per consumer, of which embedding tables have two.
#[test]
fn a_token_takes_few_dispatches() {
    for name in MODELS {
        let real = RealSize::new(name);
        for profile in &profiles() {
            let model = real.on(profile);
            let shards: usize = model.manifest.packed.iter().map(|packed| packed.shards.len() - 1).sum();
            let a_layer = match name {
                "26b-a4b" => 13,
                // Wide rows do not fit into the smallest workgroup memory, so residual sums are dispatches of their own.
                "12b" | "31b" if profile.subgroups.is_none() => 9,
                _ => 8,
            };
            let dispatches = model.program(1).dispatches.len();
            let most = a_layer * real.layers + 3 + 2 * shards;
            assert!(dispatches <= most, "{}: {name} takes {dispatches} of {most}", profile.name);
        }
    }
}

/// In models with per-layer embeddings, a narrow product adds the partial sums of the feed-forward. Other products add at most
/// two.
#[test]
fn long_products_are_split_k() {
    for name in MODELS {
        let real = RealSize::new(name);
        for profile in &profiles() {
            let dispatches = real.on(profile).program(1).dispatches;
            let texts: Vec<_> = dispatches.iter().map(|dispatch| dispatch.spec.to_string()).collect();
            let partial_sums = |text: &String| {
                let branch = text.split(' ').find_map(|constant| constant.strip_prefix("branch="))?;
                branch.parse::<u32>().ok().filter(|&sums| sums > 1)
            };
            for text in &texts {
                let most = if text.contains("+gelu_other") { 32 } else { 2 };
                assert!(
                    partial_sums(text).is_none_or(|sums| sums <= most),
                    "{}: {name}: {text}",
                    profile.name
                );
            }
            let narrow = || texts.iter().filter(|text| text.contains("+gelu_other"));
            assert_eq!(narrow().count() > 0, name.starts_with('e'), "{name}");
            assert!(narrow().all(|text| partial_sums(text).is_some()), "{}: {name}", profile.name);
            // Every split-K product has a consumer that adds its partial sums.
            let split_k = texts.iter().filter(|text| text.contains("apart=1")).count();
            let consumers = texts.iter().filter(|text| partial_sums(text).is_some()).count();
            assert!(split_k <= consumers && (split_k > 0) == (consumers > 0), "{}: {name}", profile.name);
        }
    }
}

/// Matrix units are used for prompts, if the device has them, and for nothing else.
#[test]
fn prompts_are_read_on_matrix_units() {
    let [with, without, _] = profiles();
    for name in MODELS {
        let real = RealSize::new(name);
        for (profile, has) in [(&with, true), (&without, false)] {
            let model = real.on(profile);
            for rows in ROWS {
                let used =
                    model.program(rows).dispatches.iter().any(|dispatch| dispatch.spec.uses_matrices());
                assert_eq!(used, has && rows == MOST_ROWS, "{name}, {rows} rows, {}", profile.name);
            }
        }
    }
}

/// The products of towers have the kernels for many rows whatever their width, on matrix units where there are any, and clamp
/// what they compute; only inputs are clamped by dispatches of their own.
#[test]
fn towers_have_fast_products() {
    let profiles = profiles();
    for name in ["e2b", "31b"] {
        let preset: Preset = name.parse().unwrap();
        let options = SynthOptions { towers: true, ..SynthOptions::default() };
        let file = rullama_synth::plan(preset, &options).unwrap().blank().unwrap();
        let model = pollster::block_on(Model::open(Box::new(file))).unwrap();
        let config = pollster::block_on(VisionConfig::read(&model)).unwrap().unwrap();
        let graph = vision(&model, &config).unwrap();
        let products = graph.nodes().iter().filter(|node| matches!(node.op, Op::Linear { .. })).count();
        let clamps = graph.nodes().iter().filter(|node| matches!(node.op, Op::Clamp { .. })).count();
        assert_eq!(clamps > 0, name == "e2b");
        for profile in &profiles {
            let settings = ManifestOptions {
                largest_shard: profile.largest_binding,
                residency: Residency::Gpu,
                most_rows: MOST_ROWS,
                pages: 0,
            };
            let manifest = Manifest::read(&model, &graph, settings, Numbers::Read, &[]);
            let manifest = pollster::block_on(manifest).unwrap();
            let domains = graph.row_counts(0, 0, |_| 2520).domains;
            let domains: Vec<u32> = domains.into_iter().map(|rows| rows as u32).collect();
            let kernels = KernelSet::best(profile);
            let program = lower_encoder(profile, &graph, &manifest, kernels, &domains).unwrap();
            let count = |wanted: &dyn Fn(&KernelSpec) -> bool| {
                program.dispatches.iter().filter(|dispatch| wanted(&dispatch.spec)).count()
            };
            let place = format!("{name}, {}", profile.name);
            let fast = if profile.matrices { Kernel::LinearMatrix } else { Kernel::LinearTile };
            let having = |file: &str| count(&|spec| spec.to_string().contains(file));
            assert_eq!(count(&|spec| spec.body() == fast), products - having("+gelu_pair"), "{place}");
            // All products but those of patches and of soft rows are clamped.
            let clamped = if clamps > 0 { products - 2 } else { 0 };
            assert_eq!((having("+clamped"), having("+clamp ")), (clamped, clamps - clamped), "{place}");
        }
    }
}
