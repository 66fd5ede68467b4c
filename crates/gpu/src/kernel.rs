//! Kernels, put together from files of plain WGSL.
//!
//! A kernel is a body and a fragment for each of its slots, under a prelude of constants. The recipe,
//! [`KernelSpec`], is the key under which its pipeline is kept, and its text is the pipeline's label.

use std::{cell::RefCell, collections::HashMap, fmt};

use rullama_gguf::Format;

use crate::Gpu;

/// The lanes of most workgroups: rows here are of that order.
pub(crate) const LANES: u32 = 64;

/// The lanes of a linear operation's workgroup, the most that WebGPU guarantees, and how many share an output. A
/// row of weights is a few hundred words, and every barrier costs as much as several of them.
const LINEAR_LANES: u32 = 256;
const LINEAR_PARTS: u32 = 32;

/// The lanes of attention's workgroup: keys that are scored at once.
pub(crate) const ATTEND_LANES: u32 = 256;

/// Outputs of a linear operation's workgroup. Enough that no grid is longer than WebGPU allows: a vocabulary of
/// 262,144 in eights is half of 65,535.
pub(crate) const LINEAR_OUTPUTS: u32 = LINEAR_LANES / LINEAR_PARTS;

/// Declares an enum of WGSL files.
macro_rules! files {
    ($(#[$doc:meta])* $name:ident { $($variant:ident => $file:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each file says what it is")]
        pub enum $name { $($variant,)* }

        impl $name {
            /// Every one there is.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            fn file(self) -> &'static str {
                match self { $(Self::$variant => $file,)* }
            }

            fn source(self) -> &'static str {
                match self { $(Self::$variant => include_str!(concat!("../wgsl/", $file)),)* }
            }
        }
    };
}

files! {
    /// A body: one algorithm.
    Kernel {
        Embed => "kernel/embed.wgsl",
        Linear => "kernel/linear.wgsl",
        RmsNorm => "kernel/rms_norm.wgsl",
        Rope => "kernel/rope.wgsl",
        StoreKv => "kernel/store_kv.wgsl",
        Attend => "kernel/attend.wgsl",
        Elementwise => "kernel/elementwise.wgsl",
        Copy => "kernel/copy.wgsl",
        Route => "kernel/route.wgsl",
        Combine => "kernel/combine.wgsl",
    }
}

files! {
    /// A piece that fits a slot of some body.
    Fragment {
        Step => "shared/step.wgsl",
        Reduce => "shared/reduce.wgsl",
        Planes => "shared/planes.wgsl",
        Dense => "select/dense.wgsl",
        Routed => "select/routed.wgsl",
        StoreF32 => "cache/f32_store.wgsl",
        StoreF16 => "cache/f16_store.wgsl",
        LoadF32 => "cache/f32_load.wgsl",
        LoadF16 => "cache/f16_load.wgsl",
        Add => "op/add.wgsl",
        Mul => "op/mul.wgsl",
        Scale => "op/scale.wgsl",
        SoftCap => "op/soft_cap.wgsl",
        GeluMul => "op/gelu_mul.wgsl",
        F32 => "format/f32.wgsl",
        F16 => "format/f16.wgsl",
        Bf16 => "format/bf16.wgsl",
        Q4_0 => "format/q4_0.wgsl",
        Q4_1 => "format/q4_1.wgsl",
        Q5_0 => "format/q5_0.wgsl",
        Q5_1 => "format/q5_1.wgsl",
        Q8_0 => "format/q8_0.wgsl",
        Q2K => "format/q2_k.wgsl",
        Q3K => "format/q3_k.wgsl",
        Q4K => "format/q4_k.wgsl",
        Q5K => "format/q5_k.wgsl",
        Q6K => "format/q6_k.wgsl",
        Iq4Nl => "format/iq4_nl.wgsl",
        Iq4Xs => "format/iq4_xs.wgsl",
        Mxfp4 => "format/mxfp4.wgsl",
    }
}

impl Fragment {
    /// The fragment that reads weights of this format, if there is one.
    pub fn format(format: Format) -> Option<Self> {
        let file = format!("format/{}.wgsl", format.name().to_lowercase());
        Self::ALL.iter().copied().find(|fragment| fragment.file() == file)
    }
}

/// How a kernel's bindings are used, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Binding {
    Read(u32),
    Write(u32),
    Uniform(u32),
}

/// The recipe of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KernelSpec {
    body: Kernel,
    fragments: Vec<Fragment>,
    constants: Vec<(&'static str, u32)>,
}

impl KernelSpec {
    /// A body alone. Every kernel knows its step and has lanes that can be summed over.
    pub fn new(body: Kernel) -> Self {
        let constants = match body {
            Kernel::Linear => vec![("LANES", LINEAR_LANES), ("PARTS", LINEAR_PARTS)],
            Kernel::Attend => vec![("LANES", ATTEND_LANES)],
            _ => vec![("LANES", LANES)],
        };
        Self { body, fragments: vec![Fragment::Step, Fragment::Reduce], constants }
    }

    /// With a fragment in one of the body's slots.
    #[must_use]
    pub fn with(mut self, fragment: Fragment) -> Self {
        self.fragments.push(fragment);
        self
    }

    /// With a constant.
    #[must_use]
    pub fn constant(mut self, name: &'static str, value: u32) -> Self {
        self.constants.push((name, value));
        self
    }

    /// The kernel's text.
    pub fn compose(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.constants {
            text += &format!("const {name}: u32 = {value}u;\n");
        }
        let fragments = self.fragments.iter().map(|fragment| (fragment.file(), fragment.source()));
        for (file, source) in fragments.chain([(self.body.file(), self.body.source())]) {
            text += &format!("\n// ---- {file}\n{source}");
        }
        text
    }

    /// Bindings 3 and 4 are parameters and step everywhere; 2 is what is written.
    pub(crate) fn bindings(&self) -> &'static [Binding] {
        use Binding::{Read, Uniform, Write};
        match self.body {
            Kernel::Embed | Kernel::RmsNorm | Kernel::Rope | Kernel::Elementwise => {
                &[Read(0), Read(1), Write(2), Uniform(3), Uniform(4)]
            }
            Kernel::Linear if self.fragments.contains(&Fragment::Dense) => {
                &[Read(0), Read(1), Write(2), Uniform(3), Uniform(4)]
            }
            Kernel::Linear | Kernel::Attend | Kernel::Combine => {
                &[Read(0), Read(1), Write(2), Uniform(3), Uniform(4), Read(5)]
            }
            Kernel::StoreKv => &[Read(0), Read(1), Write(2), Uniform(3), Uniform(4), Write(5)],
            Kernel::Copy | Kernel::Route => &[Read(0), Write(2), Uniform(3), Uniform(4)],
        }
    }
}

impl fmt::Display for KernelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stem = |file: &str| file.rsplit('/').next().unwrap_or(file).trim_end_matches(".wgsl").to_owned();
        f.write_str(&stem(self.body.file()))?;
        let shared = [Fragment::Step, Fragment::Reduce, Fragment::Planes];
        for fragment in self.fragments.iter().filter(|fragment| !shared.contains(fragment)) {
            write!(f, "+{}", stem(fragment.file()))?;
        }
        self.constants.iter().try_for_each(|(name, value)| write!(f, " {}={value}", name.to_lowercase()))
    }
}

/// A pipeline with the layout of its bindings.
#[derive(Debug, Clone)]
pub(crate) struct Pipeline {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
}

/// The pipelines made so far.
#[derive(Debug, Default)]
pub(crate) struct Pipelines {
    made: RefCell<HashMap<KernelSpec, Pipeline>>,
}

impl Pipelines {
    /// The pipeline of a recipe, made when it is first asked for.
    pub(crate) fn get(&self, gpu: &Gpu, spec: &KernelSpec) -> Pipeline {
        self.made.borrow_mut().entry(spec.clone()).or_insert_with(|| make(gpu, spec)).clone()
    }
}

fn make(gpu: &Gpu, spec: &KernelSpec) -> Pipeline {
    let label = spec.to_string();
    let label = Some(label.as_str());
    let source = wgpu::ShaderSource::Wgsl(spec.compose().into());
    let module = gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor { label, source });
    let entries: Vec<wgpu::BindGroupLayoutEntry> = spec.bindings().iter().map(layout_entry).collect();
    let layout =
        gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
    let pipeline_layout = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label,
        bind_group_layouts: &[Some(&layout)],
        ..Default::default()
    });
    let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label,
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some("main"),
        compilation_options: Default::default(),
        cache: None,
    });
    Pipeline { pipeline, layout }
}

fn layout_entry(binding: &Binding) -> wgpu::BindGroupLayoutEntry {
    let (binding, ty) = match *binding {
        Binding::Read(number) => (number, wgpu::BufferBindingType::Storage { read_only: true }),
        Binding::Write(number) => (number, wgpu::BufferBindingType::Storage { read_only: false }),
        Binding::Uniform(number) => (number, wgpu::BufferBindingType::Uniform),
    };
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    }
}
