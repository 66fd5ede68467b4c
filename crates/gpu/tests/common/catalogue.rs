//! Every kernel that a plan may hold, from lowering models for several devices: the released models at their real sizes,
//! and the test models in all weight and cache formats, and towers, fused and unfused.
//!
//! Two kernels that differ in widths and other numbers only are listed once. Those numbers that choose between branches of
//! a kernel ([`CHOICES`]) make a kernel of its own.

use std::{collections::HashSet, sync::OnceLock};

use rullama_gemma::{AudioConfig, Config, Gelu, Outputs, VisionConfig, audio, text, vision};
use rullama_gguf::{ByteSource, MemorySource, Mix, Model};
use rullama_gpu::{CacheFormat, Catalogue, DeviceProfile, KernelSpec, ModelOptions};
use rullama_graph::Mask;
use rullama_synth::SynthOptions;

use super::tower;

/// The released models.
const RELEASED: [&str; 5] = ["e2b", "e4b", "12b", "26b-a4b", "31b"];

/// Test models that together have every operation, with matrices as wide as the largest blocks.
const SMALL: [&str; 3] = ["tiny-e2b-Q4_K_M", "tiny-dense-Q4_K_M", "tiny-moe-Q4_K_M"];

/// Rows of steps: one, a few, and the chunks of prompts.
const ROWS: [u32; 5] = [1, 2, 8, 64, 512];

/// Conversations that are decoded together.
const CONVERSATIONS: [u32; 3] = [2, 8, 16];

/// Constants that choose between branches or sizes of arrays, by their lower-case names.
const CHOICES: [&str; 10] = [
    "apart",
    "scaled",
    "normed",
    "weighted",
    "tile_rows",
    "tile_outputs",
    "grid_rows",
    "head_width",
    "ragged",
    "each",
];

/// Devices: matrix units; subgroups of 32 without them; small subgroups; and what WebGPU guarantees.
pub(crate) fn profiles() -> [DeviceProfile; 5] {
    let profile =
        |name: &str, workgroup_memory, subgroup: Option<u32>, matrices, largest_binding| DeviceProfile {
            name: name.to_owned(),
            backend: "none".to_owned(),
            software: false,
            largest_binding,
            largest_buffer: largest_binding,
            workgroup_memory,
            subgroups: subgroup.map(|threads| [threads, threads]),
            half_precision: matrices,
            timestamps: false,
            matrices,
        };
    [
        profile("floor", 16 << 10, None, false, 128 << 20),
        profile("subgroups of 32", 32 << 10, Some(32), false, 2 << 30),
        profile("subgroups of 8", 32 << 10, Some(8), false, 2 << 30),
        profile("subgroups of 4", 32 << 10, Some(4), false, 2 << 30),
        profile("matrix units", 48 << 10, Some(32), true, u64::from(u32::MAX) & !3),
    ]
}

/// The list, each kernel once.
pub(crate) fn kernels() -> &'static [KernelSpec] {
    static KERNELS: OnceLock<Vec<KernelSpec>> = OnceLock::new();
    KERNELS.get_or_init(listed)
}

fn listed() -> Vec<KernelSpec> {
    let mut list = List { seen: HashSet::new(), kernels: Vec::new() };
    let profiles = profiles();
    let options = ModelOptions::default().context(4096);
    for name in SMALL {
        let model = test_model(name);
        for outputs in [Outputs::All, Outputs::Last] {
            let graph = text(&model, &Config::read(&model).unwrap(), outputs).unwrap();
            for profile in &profiles {
                let mut catalogue = pollster::block_on(Catalogue::new(&model, &graph, profile)).unwrap();
                for cache in CacheFormat::ALL {
                    let options = options.clone().cache(cache);
                    for options in [options.clone(), options.unfused()] {
                        list.extend(&catalogue, &options);
                    }
                }
                for (format, _) in Catalogue::formats() {
                    catalogue.set_format(format);
                    for options in [options.clone(), options.clone().unfused()] {
                        list.extend(&catalogue, &options);
                    }
                }
            }
        }
    }
    let model = test_model(tower::MODEL);
    // Heads of the general kernel, and of the fast one.
    for head_width in [4, 64] {
        let graph = tower::tower(head_width, Mask::ALL);
        for profile in &profiles {
            let catalogue = pollster::block_on(Catalogue::new(&model, &graph, profile)).unwrap();
            for (rows, fused) in ROWS.into_iter().flat_map(|rows| [(rows, true), (rows, false)]) {
                let specs = catalogue.encoder_kernels(rows, fused).unwrap();
                specs.into_iter().for_each(|spec| list.add(spec));
            }
        }
    }
    for name in RELEASED {
        let preset = name.parse().unwrap();
        let planned = rullama_synth::plan(preset, &SynthOptions { mix: Mix::Q4_K_M, ..Default::default() });
        let file = planned.unwrap().blank().unwrap();
        let model = pollster::block_on(Model::open(Box::new(file))).unwrap();
        let graph = text(&model, &Config::read(&model).unwrap(), Outputs::Last).unwrap();
        for profile in &profiles {
            let mut catalogue = pollster::block_on(Catalogue::new(&model, &graph, profile)).unwrap();
            list.extend(&catalogue, &options);
            // The test models are too small for matrix units.
            if profile.matrices && name == "e2b" {
                for (format, _) in Catalogue::formats() {
                    catalogue.set_format(format);
                    list.extend(&catalogue, &options);
                }
            }
        }
    }
    list.towers(&profiles);
    for vocabulary in [2048, 262_144] {
        Catalogue::sampling_kernels(vocabulary).into_iter().for_each(|spec| list.add(spec));
    }
    Catalogue::kernels_without_a_graph().into_iter().for_each(|spec| list.add(spec));
    list.kernels
}

fn opened(source: Box<dyn ByteSource>) -> Model {
    pollster::block_on(Model::open(source)).unwrap()
}

fn test_model(name: &str) -> Model {
    let path = super::testdata(&format!("gguf/{name}.gguf"));
    let file = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    pollster::block_on(Model::open(Box::new(MemorySource::named(name, file)))).unwrap()
}

struct List {
    seen: HashSet<Vec<String>>,
    kernels: Vec<KernelSpec>,
}

impl List {
    fn extend(&mut self, catalogue: &Catalogue<'_>, options: &ModelOptions) {
        for rows in ROWS {
            catalogue.kernels(options, rows).unwrap().into_iter().for_each(|spec| self.add(spec));
        }
        for conversations in CONVERSATIONS {
            let specs = catalogue.decode_kernels(options, conversations).unwrap();
            specs.into_iter().for_each(|spec| self.add(spec));
        }
    }

    /// The towers of the demo model, whose linear layers clamp, and of the released models: those that clamp and hear too,
    /// with standardised rows, heads of 72 columns and an odd feed-forward, and without a tower.
    fn towers(&mut self, profiles: &[DeviceProfile]) {
        let demo = std::fs::read(super::testdata("../models/demo.gguf")).unwrap();
        let mut models = vec![opened(Box::new(MemorySource::named("demo", demo)))];
        for name in ["e2b", "12b", "31b"] {
            let options = SynthOptions { towers: true, ..Default::default() };
            let planned = rullama_synth::plan(name.parse().unwrap(), &options);
            models.push(opened(Box::new(planned.unwrap().blank().unwrap())));
        }
        for model in &models {
            let mut graphs = Vec::new();
            if let Some(mut config) = pollster::block_on(VisionConfig::read(model)).unwrap() {
                graphs.push(vision(model, &config).unwrap());
                if let Some(tower) = &mut config.tower {
                    tower.gelu = Gelu::Quick;
                    graphs.push(vision(model, &config).unwrap());
                }
            }
            if let Some(config) = pollster::block_on(AudioConfig::read(model)).unwrap() {
                graphs.push(audio(model, &config).unwrap());
            }
            for (graph, profile) in graphs.iter().flat_map(|graph| profiles.iter().map(move |at| (graph, at)))
            {
                let catalogue = pollster::block_on(Catalogue::new(model, graph, profile)).unwrap();
                for (rows, fused) in ROWS[3..].iter().flat_map(|&rows| [(rows, true), (rows, false)]) {
                    let specs = catalogue.encoder_kernels(rows, fused).unwrap();
                    specs.into_iter().for_each(|spec| self.add(spec));
                }
            }
        }
    }

    fn add(&mut self, spec: KernelSpec) {
        if self.seen.insert(key(&spec)) {
            self.kernels.push(spec);
        }
    }
}

/// The files of a kernel, its choices, and whether it has several rows or adds several partial sums.
pub(crate) fn key(spec: &KernelSpec) -> Vec<String> {
    let text = spec.to_string();
    let mut words = text.split(' ');
    let mut key: Vec<String> = words.next().unwrap_or_default().split('+').map(str::to_owned).collect();
    for (name, value) in words.filter_map(|word| word.split_once('=')) {
        if CHOICES.contains(&name) {
            key.push(format!("{name}={value}"));
        } else if ["rows", "branch"].contains(&name) {
            key.push(format!("{name}={}", value.parse::<u32>().unwrap().min(2)));
        }
    }
    key
}
