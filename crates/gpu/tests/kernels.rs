//! Every kernel that a plan can hold is valid WGSL, told without a GPU.

use naga::valid::{Capabilities, ValidationFlags, Validator};
use rullama_gpu::{Dialect, Fragment, Kernel, KernelSpec, weights::pack::PACKED_FORMATS};

/// Core WGSL only, of which naga holds `unpack2x16float` to be a capability.
fn validate(spec: &KernelSpec) {
    let source = spec.compose(Dialect::Naga);
    let module = naga::front::wgsl::parse_str(&source)
        .unwrap_or_else(|error| panic!("{spec}: {}", error.emit_to_string(&source)));
    Validator::new(ValidationFlags::all(), Capabilities::SHADER_FLOAT16_IN_FLOAT32)
        .validate(&module)
        .unwrap_or_else(|error| panic!("{spec}: {}", error.emit_to_string(&source)));
}

fn simple(kernel: Kernel) -> KernelSpec {
    KernelSpec::new(kernel).with(Fragment::Reduce).constant("LANES", 256).constant("PARTS", 32)
}

#[test]
fn kernels_are_valid() {
    for kernel in [Kernel::RmsNorm, Kernel::Rope, Kernel::Copy, Kernel::Route, Kernel::Combine] {
        validate(&simple(kernel));
    }
    for op in [Fragment::Add, Fragment::Mul, Fragment::Scale, Fragment::SoftCap, Fragment::GeluMul] {
        validate(&simple(Kernel::Elementwise).with(Fragment::Gelu).with(op));
    }
    for (store, load) in [(Fragment::StoreF32, Fragment::LoadF32), (Fragment::StoreF16, Fragment::LoadF16)] {
        validate(&simple(Kernel::StoreKv).with(store));
        for pairs in [1, 2, 4] {
            validate(&simple(Kernel::Attend).with(load).constant("PAIRS", pairs));
        }
    }
    for format in PACKED_FORMATS {
        let format = Fragment::format(format).unwrap();
        validate(&simple(Kernel::Embed).with(Fragment::Planes).with(format));
        for select in [Fragment::Dense, Fragment::Routed] {
            validate(&simple(Kernel::Linear).with(Fragment::Planes).with(format).with(select));
        }
    }
}

#[test]
fn a_recipe_names_what_it_is_made_of() {
    let spec = simple(Kernel::Linear).with(Fragment::Planes).with(Fragment::Q4K).with(Fragment::Dense);
    assert_eq!(spec.to_string(), "linear+q4_k+dense lanes=256 parts=32");
}
