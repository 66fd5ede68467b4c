//! Plans of the released models at their real sizes, for GPUs that are known by their profiles alone: no weights, no GPU.

use std::collections::{BTreeMap, BTreeSet};

use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::{Mix, Model};
use rullama_graph::Graph;
use rullama_synth::{Preset, SynthOptions};

use super::{FEW_ROWS, Program, StepSize, lower};
use crate::{
    CacheFormat, DeviceProfile, Dialect, KernelSpec, ModelOptions, Residency,
    fitting::target,
    options::{MOST_ROWS, SMALL_CHUNK, capacities},
    self_test::Variant,
    weights::{Layout, Manifest},
};

const MODELS: [&str; 5] = ["e2b", "e4b", "12b", "26b-a4b", "31b"];

/// Rows of every plan.
const ROWS: [u32; 5] = [1, 2, FEW_ROWS, SMALL_CHUNK, MOST_ROWS];

/// What WebGPU guarantees along each axis of a grid.
const MOST_WORKGROUPS: u32 = 65_535;

/// A large GPU with matrix units; a browser on it; and what WebGPU guarantees.
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
        profile("matrix units", 48 << 10, Some([32, 32]), true, u64::from(u32::MAX)),
        profile("subgroups", 32 << 10, Some([32, 32]), false, 2 << 30),
        profile("floor", 16 << 10, None, false, 128 << 20),
    ]
}

/// A model of real size, without its weights.
struct Blank {
    graph: Graph,
    manifest: Manifest,
    layers: usize,
}

impl Blank {
    fn new(name: &str, profile: &DeviceProfile, outputs: Outputs) -> Self {
        let preset: Preset = name.parse().unwrap();
        // The head is as large as it really is; a smaller tokenizer would make it smaller.
        let options = SynthOptions { mix: Mix::Q4_K_M, ..SynthOptions::default() };
        let file = rullama_synth::plan(preset, &options).unwrap().blank().unwrap();
        let model = pollster::block_on(Model::open(Box::new(file))).unwrap();
        let config = Config::read(&model).unwrap();
        let graph = text(&model, &config, outputs).unwrap();
        let layout = Layout {
            largest_shard: profile.largest_binding,
            residency: Residency::Gpu,
            most_rows: MOST_ROWS,
            pages: 0,
        };
        let manifest = pollster::block_on(Manifest::read(&model, &graph, layout)).unwrap();
        let layers = model.metadata().u32("gemma4.block_count").unwrap() as usize;
        Self { graph, manifest, layers }
    }

    fn program(&self, profile: &DeviceProfile, rows: u32) -> Program {
        let options = ModelOptions::default().cache(CacheFormat::F16);
        let capacities = capacities(&self.graph, options.context, MOST_ROWS);
        let variant = Variant::best(profile);
        lower(target(profile, &self.graph, &self.manifest, &options, &capacities, variant), rows).unwrap()
    }
}

/// Body and fragments of a kernel, in no order.
fn files(spec: &KernelSpec) -> BTreeSet<String> {
    let text = spec.to_string();
    text.split(' ').next().unwrap_or_default().split('+').map(str::to_owned).collect()
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

/// Every kernel is one that tests compile, has the memory it needs, and no grid is longer than WebGPU allows.
#[test]
fn plans_of_real_sizes_keep_within_limits() {
    let listed: BTreeSet<_> = KernelSpec::every().iter().map(files).collect();
    for profile in profiles() {
        let mut seen = BTreeMap::new();
        for name in MODELS {
            let model = Blank::new(name, &profile, Outputs::Last);
            for rows in ROWS {
                let size = StepSize { rows, position: 0 };
                for draft in model.program(&profile, rows).drafts {
                    let place =
                        format!("{}, {name}, {rows} rows, {}: {}", profile.name, draft.what, draft.spec);
                    let grid = draft.workgroups.map(|count| count.at(size));
                    assert!(grid.iter().all(|&count| count <= MOST_WORKGROUPS), "{place}: {grid:?}");
                    assert!(listed.contains(&files(&draft.spec)), "{place}");
                    seen.entry(draft.spec.to_string()).or_insert((draft.spec, place));
                }
            }
        }
        for (spec, place) in seen.values() {
            let bytes = workgroup_bytes(spec);
            assert!(bytes <= profile.workgroup_memory, "{place}: {bytes} bytes of workgroup memory");
        }
    }
}

/// A token takes eight dispatches a layer and a few more, thirteen with experts; each further shard of a weight takes one for
/// each of its readers, of which embedding tables have two.
#[test]
fn a_token_takes_few_dispatches() {
    for profile in profiles() {
        for name in MODELS {
            let model = Blank::new(name, &profile, Outputs::Last);
            let shards: usize = model.manifest.packed.iter().map(|packed| packed.shards.len() - 1).sum();
            let a_layer = match name {
                "26b-a4b" => 13,
                // Wide rows do not fit into the memory of the smallest workgroups, so that their sums are apart.
                "12b" | "31b" if profile.subgroups.is_none() => 9,
                _ => 8,
            };
            let dispatches = model.program(&profile, 1).drafts.len();
            let most = a_layer * model.layers + 3 + 2 * shards;
            assert!(dispatches <= most, "{}: {name} takes {dispatches} of {most}", profile.name);
            if name == "e2b" && shards == 0 {
                assert!(dispatches <= 263, "{}: {name} takes {dispatches}, more than before", profile.name);
            }
        }
    }
}

/// Prompts are read on matrix units where there are some, and nothing else is.
#[test]
fn prompts_are_read_on_matrix_units() {
    let [with, without, _] = profiles();
    for name in MODELS {
        for (profile, has) in [(&with, true), (&without, false)] {
            let model = Blank::new(name, profile, Outputs::Last);
            for rows in ROWS {
                let program = model.program(profile, rows);
                let used = program.drafts.iter().any(|draft| draft.spec.uses_matrices());
                assert_eq!(used, has && rows == MOST_ROWS, "{name}, {rows} rows, {}", profile.name);
            }
        }
    }
}
