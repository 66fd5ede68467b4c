//! Every kernel that a plan can hold is valid WGSL, told without a GPU.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{collections::BTreeSet, fs};

use naga::valid::{Capabilities, ValidationFlags, Validator};
use rullama_gpu::{
    CacheFormat, Dialect, Fragment, GpuModel, GpuOptions, Kernel, KernelSpec, ModelOptions, Uniform as _,
    UniformLayout, params,
};

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
    common::catalogue::kernels().iter().for_each(validate);
}

/// The type of a struct's field, as WGSL writes it.
fn wgsl_type(module: &naga::Module, ty: naga::Handle<naga::Type>) -> String {
    let scalar = |scalar: naga::Scalar| match (scalar.kind, scalar.width) {
        (naga::ScalarKind::Uint, 4) => "u32",
        (naga::ScalarKind::Float, 4) => "f32",
        other => panic!("no uniform has fields of {other:?}"),
    };
    match module.types[ty].inner {
        naga::TypeInner::Scalar(inner) => scalar(inner).to_owned(),
        naga::TypeInner::Vector { size, scalar: inner } => format!("vec{}<{}>", size as u8, scalar(inner)),
        ref other => panic!("no uniform has fields of {other:?}"),
    }
}

/// The alignment of a struct, which its size is a multiple of.
fn alignment(types: &[(String, String, usize)]) -> usize {
    let of = |ty: &str| match &ty[..4.min(ty.len())] {
        "vec4" => 16,
        "vec2" => 8,
        _ => 4,
    };
    types.iter().map(|(_, ty, _)| of(ty)).max().unwrap()
}

/// Compares the uniform variables of a kernel with the Rust structs that are declared for its files.
fn compare_uniforms(source: &str, declared: &[UniformLayout]) -> Result<(), String> {
    let module = naga::front::wgsl::parse_str(source).unwrap();
    let variables = module.global_variables.iter().map(|(_, variable)| variable);
    // The row table has a test of its own beside it.
    let is_uniform = |variable: &&naga::GlobalVariable| {
        variable.space == naga::AddressSpace::Uniform && variable.name.as_deref() != Some("step")
    };
    let uniforms: Vec<_> = variables.filter(is_uniform).collect();
    for variable in &uniforms {
        let name = variable.name.as_deref().unwrap();
        let layouts: Vec<_> = declared.iter().filter(|layout| layout.variable == name).collect();
        let [layout] = layouts[..] else {
            return Err(format!("`{name}` has {} Rust structs", layouts.len()));
        };
        let naga::TypeInner::Struct { ref members, span } = module.types[variable.ty].inner else {
            return Err(format!("`{name}` is no struct"));
        };
        let in_wgsl: Vec<_> = members
            .iter()
            .map(|member| {
                (member.name.clone().unwrap(), wgsl_type(&module, member.ty), member.offset as usize)
            })
            .collect();
        let in_rust: Vec<_> = layout
            .fields
            .iter()
            .map(|field| (field.name.to_owned(), field.wgsl_type.to_owned(), field.offset))
            .collect();
        if in_wgsl != in_rust {
            return Err(format!("{}: `{name}` is {in_wgsl:?} in WGSL and {in_rust:?} in Rust", layout.file));
        }
        if layout.bytes.next_multiple_of(alignment(&in_wgsl)) != span as usize {
            return Err(format!("{}: `{name}` has {span} bytes; {} in Rust", layout.file, layout.bytes));
        }
    }
    if uniforms.len() != declared.len() {
        return Err(format!("{} uniforms; {} Rust structs", uniforms.len(), declared.len()));
    }
    Ok(())
}

/// Every uniform variable of every kernel has a Rust struct with the same fields at the same offsets.
#[test]
fn uniforms_are_the_same_in_rust_and_wgsl() {
    let mut compared = BTreeSet::new();
    for spec in common::catalogue::kernels() {
        let uniforms = spec.uniforms();
        compare_uniforms(&spec.compose(Dialect::Naga), &uniforms)
            .unwrap_or_else(|error| panic!("{spec}: {error}"));
        compared.extend(uniforms.iter().map(|layout| layout.file));
    }
    let declared: BTreeSet<_> = params::LAYOUTS.iter().map(|layout| layout.file).collect();
    assert_eq!(compared, declared, "a Rust struct belongs to no kernel");
}

/// The comparison finds fields in another order, of another name or type, and those that are missing.
#[test]
fn a_uniform_that_differs_is_found() {
    let declared = |fields: &str| {
        let source =
            format!("struct Params {{ {fields} }} @group(1) @binding(0) var<uniform> params: Params;");
        compare_uniforms(&source, &[params::RmsNormParams::LAYOUT])
    };
    assert_eq!(declared("group: u32, groups: u32, weight_at: u32, eps: f32"), Ok(()));
    for wrong in [
        "groups: u32, group: u32, weight_at: u32, eps: f32",
        "group: u32, groups: u32, weight: u32, eps: f32",
        "group: u32, groups: u32, weight_at: f32, eps: f32",
        "group: u32, groups: u32, weight_at: u32",
        "group: u32, groups: u32, weight_at: u32, eps: f32, more: u32",
        "group: u32, groups: u32, weight_at: u32, @align(16) eps: f32",
    ] {
        assert!(declared(wrong).is_err(), "{wrong}");
    }
}

/// A file that no listed kernel is made of is either dead, or part of a kernel that nobody checks.
#[test]
fn every_file_is_part_of_a_kernel() {
    let kernels: Vec<String> =
        common::catalogue::kernels().iter().map(|spec| spec.compose(Dialect::Browser)).collect();
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
    for spec in common::catalogue::kernels() {
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
    let listed: BTreeSet<_> =
        common::catalogue::kernels().iter().map(|spec| files(&spec.to_string())).collect();
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
