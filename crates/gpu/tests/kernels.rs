//! Every kernel that a plan can hold is valid WGSL, told without a GPU.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{collections::BTreeSet, fs};

use naga::valid::{Capabilities, ValidationFlags, Validator};
use rullama_gpu::{CacheFormat, Dialect, Fragment, GpuModel, GpuOptions, Kernel, KernelSpec, ModelOptions};

/// Core WGSL only, of which naga holds `unpack2x16float` to be a capability, and subgroups where they are named.
fn validate(spec: &KernelSpec) {
    let source = spec.compose(Dialect::Naga);
    let module = naga::front::wgsl::parse_str(&source)
        .unwrap_or_else(|error| panic!("{spec}: {}", error.emit_to_string(&source)));
    let mut capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    if spec.uses_subgroups() {
        capabilities |= Capabilities::SUBGROUP;
    }
    if spec.uses_matrices() {
        capabilities |= Capabilities::SHADER_FLOAT16 | Capabilities::COOPERATIVE_MATRIX;
    }
    let mut validator = Validator::new(ValidationFlags::all(), capabilities);
    validator.subgroup_stages(naga::valid::ShaderStages::COMPUTE);
    validator.subgroup_operations(naga::valid::SubgroupOperationSet::all());
    validator.validate(&module).unwrap_or_else(|error| panic!("{spec}: {}", error.emit_to_string(&source)));
}

#[test]
fn kernels_are_valid() {
    KernelSpec::every().iter().for_each(validate);
}

/// A file that no listed kernel is made of is either dead, or part of a kernel that nobody checks.
#[test]
fn every_file_is_part_of_a_kernel() {
    let kernels: Vec<String> =
        KernelSpec::every().iter().map(|spec| spec.compose(Dialect::Browser)).collect();
    for folder in fs::read_dir(common::source("wgsl")).unwrap().map(Result::unwrap) {
        for file in fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
            let source = fs::read_to_string(file.path()).unwrap();
            assert!(kernels.iter().any(|kernel| kernel.contains(&source)), "{}", file.path().display());
        }
    }
}

/// Firefox and Safari refuse a directive that they do not know, needed or not.
#[test]
fn only_what_uses_subgroups_enables_them() {
    for spec in KernelSpec::every() {
        let enables = spec.compose(Dialect::Browser).contains("enable subgroups;");
        assert_eq!(enables, files(&spec.to_string()).iter().any(|file| file.contains("subgroup")), "{spec}");
    }
}

/// Body and fragments, in no order, from the text of a recipe.
fn files(kernel: &str) -> BTreeSet<String> {
    let files = kernel.split(' ').next().unwrap_or_default();
    files.split('+').map(str::to_owned).collect()
}

/// No plan of any test model holds a kernel that is not listed, up to its numbers.
#[test]
fn plans_hold_listed_kernels_alone() {
    let listed: BTreeSet<_> = KernelSpec::every().iter().map(|spec| files(&spec.to_string())).collect();
    let mut used = BTreeSet::new();
    for options in [GpuOptions::default(), GpuOptions::default().floor()] {
        let gpu = common::gpu(&options);
        for name in common::MODELS {
            let model = common::open(name);
            for outputs in common::OUTPUTS {
                let graph = common::graph(&model, outputs);
                for cache in CacheFormat::ALL {
                    let options = ModelOptions::default().context(512).cache(cache);
                    for options in [options.clone(), options.unfused()] {
                        for rows in [1, 2, 8, 9, 64, 512] {
                            let plan = GpuModel::plan(&gpu, &model, &graph, &options, rows, 0);
                            for dispatch in pollster::block_on(plan).unwrap().dispatches {
                                let files = files(&dispatch.kernel);
                                assert!(listed.contains(&files), "{name}, {rows} rows: {}", dispatch.kernel);
                                used.insert(files);
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(used.len() > 40, "only {} kernels were seen", used.len());
}

#[test]
fn a_recipe_names_what_it_is_made_of() {
    let spec =
        KernelSpec::new(Kernel::Linear).with(Fragment::Planes).with(Fragment::Q4K).with(Fragment::Dense);
    assert_eq!(spec.constant("LANES", 256).to_string(), "linear+q4_k+dense lanes=256");
}
