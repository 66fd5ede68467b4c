//! The GPU: found once, opened once, described once.

use std::sync::{Arc, OnceLock};

use crate::{Fallback, GpuError, health::Health, kernel::Pipelines, matrices::SIDE, self_test::Verdict};

/// What devices are called. In a browser, whoever grants features that wgpu does not know tells ours by it.
const LABEL: &str = "rullama";

/// Which GPU, and how much of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GpuOptions {
    /// Uses no more than WebGPU guarantees everywhere, whatever the GPU offers. For tests.
    pub floor: bool,
    /// Whether kernels answer known cases before the first model is loaded, and those that fail are not used.
    pub self_test: bool,
    /// Takes subgroups to have so many lanes, whatever the GPU says: how a test makes kernels fail.
    #[doc(hidden)]
    pub pretended_subgroup: Option<u32>,
    /// Takes the answers of fused kernels to be wrong. For tests.
    #[doc(hidden)]
    pub distrust_fused: bool,
    /// Lets lanes talk to each other through workgroup memory alone. For tests.
    pub without_subgroups: bool,
    /// Leaves matrix units alone, which compute in half precision.
    pub without_matrices: bool,
    /// The most bytes of weights in one buffer, where a binding may have more. For tests.
    pub largest_shard: Option<u64>,
}

impl Default for GpuOptions {
    fn default() -> Self {
        Self {
            floor: false,
            self_test: true,
            pretended_subgroup: None,
            distrust_fused: false,
            without_subgroups: false,
            without_matrices: false,
            largest_shard: None,
        }
    }
}

impl GpuOptions {
    /// No more than WebGPU guarantees everywhere.
    #[must_use]
    pub fn floor(mut self) -> Self {
        self.floor = true;
        self
    }

    /// Trusts all kernels: for whoever opens a GPU that was tested before, or tests it by other means.
    #[must_use]
    pub fn without_self_test(mut self) -> Self {
        self.self_test = false;
        self
    }

    /// Leaves subgroups alone.
    #[must_use]
    pub fn without_subgroups(mut self) -> Self {
        self.without_subgroups = true;
        self
    }

    /// Leaves matrix units alone.
    #[must_use]
    pub fn without_matrices(mut self) -> Self {
        self.without_matrices = true;
        self
    }

    /// Splits weights into shards of no more bytes than this.
    #[must_use]
    pub fn largest_shard(mut self, bytes: u64) -> Self {
        self.largest_shard = Some(bytes);
        self
    }
}

/// Units that multiply matrices.
const MATRICES: wgpu::Features = wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX;

/// Whether an adapter multiplies the matrices that our kernel has, and has what else that kernel needs.
fn has_matrices(adapter: &wgpu::Adapter) -> bool {
    let needed = wgpu::Features::SUBGROUP | wgpu::Features::SHADER_F16;
    let fits = |found: &wgpu::CooperativeMatrixProperties| {
        [found.m_size, found.n_size, found.k_size] == [SIDE; 3]
            && found.ab_type == wgpu::CooperativeScalarType::F16
            && found.cr_type == wgpu::CooperativeScalarType::F32
    };
    adapter.features().contains(needed) && adapter.cooperative_matrix_properties().iter().any(fits)
}

/// What a GPU is and allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceProfile {
    /// What it calls itself.
    pub name: String,
    /// Through what it is reached: Vulkan, Metal, DX12 or WebGPU.
    pub backend: String,
    /// Whether it is a program on the CPU that acts as one.
    pub software: bool,
    /// The largest part of a buffer that a kernel can see.
    pub largest_binding: u64,
    /// The largest buffer.
    pub largest_buffer: u64,
    /// Bytes of memory that the lanes of a workgroup can share.
    pub workgroup_memory: u32,
    /// Lanes of the smallest and of the largest subgroup, where lanes of a subgroup can talk to each other.
    pub subgroups: Option<[u32; 2]>,
    /// Whether kernels can compute in half precision.
    pub half_precision: bool,
    /// Whether single kernels can be timed.
    pub timestamps: bool,
    /// Whether it has units that multiply matrices in half precision.
    pub matrices: bool,
}

impl DeviceProfile {
    /// Lanes of a subgroup, where all have the same number and that is a power of two.
    pub fn subgroup(&self) -> Option<u32> {
        let [smallest, largest] = self.subgroups?;
        (smallest == largest && smallest.is_power_of_two() && (4..=128).contains(&smallest))
            .then_some(smallest)
    }
}

/// An opened GPU. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    profile: DeviceProfile,
    options: GpuOptions,
    health: Arc<Health>,
    verdict: Arc<OnceLock<Verdict>>,
    /// Compiled once for all models, and for the self-test.
    pipelines: Pipelines,
    largest_shard: u64,
}

impl Gpu {
    /// Opens the GPU that the system prefers for heavy work.
    pub async fn open(options: &GpuOptions) -> Result<Self, GpuError> {
        let adapter = wgpu::Instance::default()
            .request_adapter(&wgpu::RequestAdapterOptions {
                power_preference: wgpu::PowerPreference::HighPerformance,
                ..Default::default()
            })
            .await
            .map_err(|error| GpuError::NoAdapter { reason: error.to_string() })?;
        let info = adapter.get_info();
        let limits = if options.floor { wgpu::Limits::default() } else { adapter.limits() };
        let mut useful =
            wgpu::Features::SUBGROUP | wgpu::Features::SHADER_F16 | wgpu::Features::TIMESTAMP_QUERY;
        useful.set(wgpu::Features::SUBGROUP, !options.without_subgroups);
        useful.set(MATRICES, !options.without_matrices && has_matrices(&adapter));
        let required_features =
            if options.floor { wgpu::Features::empty() } else { adapter.features() & useful };
        let mut experimental_features = wgpu::ExperimentalFeatures::disabled();
        if required_features.contains(MATRICES) {
            #[expect(unsafe_code, reason = "wgpu wants to hear that experiments may go wrong")]
            // SAFETY: the one experiment is matrices, whose kernel is our own and answers known cases before it is used.
            let enabled = unsafe { wgpu::ExperimentalFeatures::enabled() };
            experimental_features = enabled;
        }
        let descriptor = wgpu::DeviceDescriptor {
            label: Some(LABEL),
            required_limits: limits,
            required_features,
            experimental_features,
            ..Default::default()
        };
        let (device, queue) = adapter
            .request_device(&descriptor)
            .await
            .map_err(|error| GpuError::NoDevice { name: info.name.clone(), reason: error.to_string() })?;
        let health = Arc::new(Health::default());
        health.watch(&device);
        let limits = device.limits();
        let wanted = !options.floor && !options.without_subgroups;
        let has_subgroups = required_features.contains(wgpu::Features::SUBGROUP)
            || (wanted && has_browser_subgroups(&device));
        let subgroups = match options.pretended_subgroup {
            Some(lanes) => [lanes, lanes],
            None => [info.subgroup_min_size, info.subgroup_max_size],
        };
        let profile = DeviceProfile {
            name: info.name,
            backend: info.backend.to_string(),
            software: info.device_type == wgpu::DeviceType::Cpu,
            largest_binding: limits.max_storage_buffer_binding_size,
            largest_buffer: limits.max_buffer_size,
            workgroup_memory: limits.max_compute_workgroup_storage_size,
            subgroups: has_subgroups.then_some(subgroups),
            half_precision: required_features.contains(wgpu::Features::SHADER_F16),
            timestamps: required_features.contains(wgpu::Features::TIMESTAMP_QUERY),
            matrices: required_features.contains(MATRICES),
        };
        let (options, verdict) = (options.clone(), Arc::default());
        let largest_shard = options.largest_shard.unwrap_or(u64::MAX);
        let pipelines = Pipelines::new(&device);
        Ok(Self { device, queue, profile, options, health, verdict, pipelines, largest_shard })
    }

    /// Opens the same GPU again, after it was lost.
    pub async fn reopen(&self) -> Result<Self, GpuError> {
        self.release();
        let mut gpu = Self::open(&self.options).await?;
        // What is the same GPU would give the same answers.
        if gpu.profile == self.profile {
            gpu.verdict = self.verdict.clone();
        }
        Ok(gpu)
    }

    /// The same GPU, with weights in shards of no more bytes than this: for tests that share a device.
    #[doc(hidden)]
    #[must_use]
    pub fn with_largest_shard(mut self, bytes: u64) -> Self {
        self.options.largest_shard = Some(bytes);
        self.largest_shard = bytes;
        self
    }

    /// What it is and allows.
    pub fn profile(&self) -> &DeviceProfile {
        &self.profile
    }

    /// Makes the GPU go away and gives its memory back at once, whoever still holds something of it. What is under way
    /// fails with the code `device.lost`, as it would if the driver crashed.
    pub fn destroy(&self) {
        self.device.destroy();
    }

    pub(crate) fn options(&self) -> &GpuOptions {
        &self.options
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    pub(crate) fn pipelines(&self) -> &Pipelines {
        &self.pipelines
    }

    pub(crate) fn verdict(&self) -> &OnceLock<Verdict> {
        &self.verdict
    }

    /// What its features allow and its answers in the self-test forbid. Empty until a model was loaded or planned.
    pub fn fallbacks(&self) -> &[Fallback] {
        self.verdict.get().map_or(&[], |verdict| &verdict.fallbacks)
    }

    /// The most bytes that one binding may have.
    pub(crate) fn largest_binding(&self) -> u64 {
        self.profile.largest_binding.min(self.profile.largest_buffer)
    }

    /// The most bytes of weights in one buffer.
    pub(crate) fn largest_shard(&self) -> u64 {
        self.largest_binding().min(self.largest_shard)
    }

    /// A buffer for kernels, refused where no kernel could see all of it.
    pub(crate) fn storage(&self, what: &str, bytes: u64) -> Result<wgpu::Buffer, GpuError> {
        let limit = self.largest_binding();
        // A binding is at least this long, also for what has no values.
        let bytes = bytes.max(16).next_multiple_of(4);
        if bytes > limit {
            return Err(GpuError::TooLarge { what: what.to_owned(), bytes, limit });
        }
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        Ok(self.buffer(what, bytes, usage))
    }

    pub(crate) fn buffer(&self, label: &str, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
        let label = Some(label);
        self.device.create_buffer(&wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: false })
    }
}

/// Whether a browser's device has subgroups. wgpu does not map this feature, so that it can neither ask for it nor tell;
/// see docs/decisions/0010-subgroups-in-browsers.md.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
fn has_browser_subgroups(device: &wgpu::Device) -> bool {
    device.as_webgpu().is_some_and(|device| device.features().has("subgroups"))
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
fn has_browser_subgroups(_device: &wgpu::Device) -> bool {
    false
}
