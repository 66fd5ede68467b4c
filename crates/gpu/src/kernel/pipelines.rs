//! The pipelines of a device, compiled when they are first used.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
#[cfg(not(target_family = "wasm"))]
use std::{collections::HashSet, thread};

use super::{Access, Binding, Dialect, KernelSpec};
#[cfg(not(target_family = "wasm"))]
use crate::tuning::COMPILING_THREADS;
use crate::{Gpu, rows::TABLE_BYTES};

/// A pipeline with the bindings of its dispatches.
#[derive(Debug, Clone)]
pub(crate) struct Pipeline {
    pub(crate) pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
    bindings: Vec<Binding>,
}

impl Pipeline {
    /// The bind group of a dispatch. `resource` gives the resource of each binding of the kernel.
    pub(crate) fn bind_group<'r>(
        &self,
        gpu: &Gpu,
        label: Option<&str>,
        resource: impl Fn(&Binding) -> wgpu::BindingResource<'r>,
    ) -> wgpu::BindGroup {
        let entry =
            |binding: &Binding| wgpu::BindGroupEntry { binding: binding.number, resource: resource(binding) };
        let entries: Vec<_> = self.bindings.iter().map(entry).collect();
        let layout = &self.layout;
        gpu.device.create_bind_group(&wgpu::BindGroupDescriptor { label, layout, entries: &entries })
    }
}

/// A device's compiled pipelines, and the layout of the step, which all of them share. The self-test and all models on the
/// device use the same pipelines; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Pipelines {
    step: wgpu::BindGroupLayout,
    made: Arc<Mutex<HashMap<KernelSpec, Pipeline>>>,
}

impl Pipelines {
    pub(crate) fn new(device: &wgpu::Device) -> Self {
        let entries = [entry(0, Access::Uniform)];
        let label = Some("step");
        let descriptor = wgpu::BindGroupLayoutDescriptor { label, entries: &entries };
        let step = device.create_bind_group_layout(&descriptor);
        Self { step, made: Arc::default() }
    }

    fn made(&self) -> MutexGuard<'_, HashMap<KernelSpec, Pipeline>> {
        // An entry is complete even if a thread panicked while it held the lock.
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many pipelines were compiled.
    pub(crate) fn len(&self) -> usize {
        self.made().len()
    }

    /// The bind group of a step, bound once for all dispatches.
    pub(crate) fn step_group(&self, gpu: &Gpu, step: &wgpu::Buffer) -> wgpu::BindGroup {
        gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("step"),
            layout: &self.step,
            entries: &[wgpu::BindGroupEntry {
                binding: 0,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer: step,
                    offset: 0,
                    size: wgpu::BufferSize::new(TABLE_BYTES),
                }),
            }],
        })
    }

    /// The pipeline of a recipe, compiled when it is first used.
    pub(crate) fn get(&self, gpu: &Gpu, spec: &KernelSpec) -> Pipeline {
        let mut made = self.made();
        made.entry(spec.clone()).or_insert_with(|| make(&gpu.device, &self.step, spec)).clone()
    }

    /// Browsers compile pipelines on threads of their own, and give us none.
    #[cfg(target_family = "wasm")]
    pub(crate) fn prepare<'s>(&self, _gpu: &Gpu, _specs: impl Iterator<Item = &'s KernelSpec>) {}

    /// Compiles the pipelines of recipes that will be used, on several threads.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn prepare<'s>(&self, gpu: &Gpu, specs: impl Iterator<Item = &'s KernelSpec>) {
        let mut made = self.made();
        let missing: HashSet<&KernelSpec> = specs.filter(|spec| !made.contains_key(*spec)).collect();
        let missing: Vec<&KernelSpec> = missing.into_iter().collect();
        let threads = thread::available_parallelism().map_or(1, usize::from).min(COMPILING_THREADS);
        let (device, step) = (&gpu.device, &self.step);
        thread::scope(|scope| {
            let share = missing.len().div_ceil(threads).max(1);
            let workers: Vec<_> = missing
                .chunks(share)
                .map(|specs| {
                    let make = |&spec: &&KernelSpec| (spec.clone(), make(device, step, spec));
                    scope.spawn(move || specs.iter().map(make).collect::<Vec<_>>())
                })
                .collect();
            for worker in workers {
                made.extend(worker.join().expect("errors of compilation are reported without a panic"));
            }
        });
    }
}

fn make(device: &wgpu::Device, step: &wgpu::BindGroupLayout, spec: &KernelSpec) -> Pipeline {
    let label = spec.to_string();
    let label = Some(label.as_str());
    let source = wgpu::ShaderSource::Wgsl(spec.compose(Dialect::HERE).into());
    let descriptor = wgpu::ShaderModuleDescriptor { label, source };
    // Kernels bound their own indices, and buffers are robust besides; checks around every access and every loop
    // would cost more than the arithmetic.
    let checks = wgpu::ShaderRuntimeChecks::unchecked();
    #[expect(unsafe_code, reason = "kernels are our own, and tested at awkward sizes")]
    // SAFETY: every index is bounded by the kernel itself, and every loop ends.
    let module = unsafe { device.create_shader_module_trusted(descriptor, checks) };
    let bindings = spec.bindings();
    let entries: Vec<_> = bindings.iter().map(|binding| entry(binding.number, binding.access)).collect();
    let descriptor = wgpu::BindGroupLayoutDescriptor { label, entries: &entries };
    let layout = device.create_bind_group_layout(&descriptor);
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label,
        bind_group_layouts: &[Some(step), Some(&layout)],
        ..Default::default()
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label,
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions {
            // Kernels write before they read; clearing would cost a pass over workgroup memory.
            zero_initialize_workgroup_memory: false,
            ..Default::default()
        },
        cache: None,
    });
    Pipeline { pipeline, layout, bindings }
}

fn entry(binding: u32, access: Access) -> wgpu::BindGroupLayoutEntry {
    let ty = match access {
        Access::Read => wgpu::BufferBindingType::Storage { read_only: true },
        Access::Write => wgpu::BufferBindingType::Storage { read_only: false },
        Access::Uniform => wgpu::BufferBindingType::Uniform,
    };
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    }
}
