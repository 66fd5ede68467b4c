//! Every kernel that a plan can hold is valid WGSL, told without a GPU.

use std::{fs, path::Path};

use naga::valid::{Capabilities, ValidationFlags, Validator};
use rullama_gpu::{Fragment, Kernel, KernelSpec};

/// Core WGSL only, of which naga holds `unpack2x16float` to be a capability.
fn validate(spec: &KernelSpec) {
    let source = spec.compose();
    let module = naga::front::wgsl::parse_str(&source)
        .unwrap_or_else(|error| panic!("{spec}: {}", error.emit_to_string(&source)));
    Validator::new(ValidationFlags::all(), Capabilities::SHADER_FLOAT16_IN_FLOAT32)
        .validate(&module)
        .unwrap_or_else(|error| panic!("{spec}: {}", error.emit_to_string(&source)));
}

#[test]
fn kernels_are_valid() {
    KernelSpec::every().iter().for_each(validate);
}

/// A file that no listed kernel is made of is either dead, or part of a kernel that nobody checks.
#[test]
fn every_file_is_part_of_a_kernel() {
    let kernels: Vec<String> = KernelSpec::every().iter().map(KernelSpec::compose).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("wgsl");
    for folder in fs::read_dir(root).unwrap().map(Result::unwrap) {
        for file in fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
            let source = fs::read_to_string(file.path()).unwrap();
            assert!(kernels.iter().any(|kernel| kernel.contains(&source)), "{}", file.path().display());
        }
    }
}

#[test]
fn a_recipe_names_what_it_is_made_of() {
    let spec =
        KernelSpec::new(Kernel::Linear).with(Fragment::Planes).with(Fragment::Q4K).with(Fragment::Dense);
    assert_eq!(spec.to_string(), "linear+q4_k+dense lanes=256 parts=32");
}
