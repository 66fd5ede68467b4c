//! How fast a kernel can read memory: what the speed of decoding is measured by, because each token reads the weights
//! once.

use crate::{
    Gpu, GpuError, Kernel, KernelSpec,
    standalone::{self, Prepared, Step},
};

/// Lanes of a workgroup: the most that WebGPU guarantees.
const LANES: u32 = 256;

/// Runs of loads of a workgroup.
const PASSES: u32 = 1;

/// Bytes that a workgroup reads.
const WORKGROUP_BYTES: u64 = 16 * 8 * LANES as u64 * PASSES as u64;

/// The most workgroups along an axis that WebGPU guarantees.
const MOST_WORKGROUPS: u64 = 65_535;

/// What is read first. Adapters made of software, for which this takes long, are not asked for more.
const SMALL: u64 = 64 << 20;

/// What is read of a GPU: far more than its caches hold.
const LARGE: u64 = 1 << 30;

/// An adapter that takes longer for the small buffer, in seconds, is measured well enough by that.
const LONG: f64 = 0.008;

/// Seconds that a round should take, so that submitting it does not count.
const ROUND: f64 = 0.02;

/// The most times that a round reads the buffer.
const MOST_TIMES: usize = 64;

/// Rounds of which the best counts: other work may slow some down, nothing speeds one up.
const ROUNDS: u32 = 5;

/// Bytes a second that a kernel reads from a large buffer, the best of several rounds.
///
/// The buffer has up to 1 GiB, within the limits of the adapter, and is given back at the end. It takes a fraction of a
/// second. `clock` tells seconds since some moment, which in a browser the standard library cannot.
pub async fn measure_bandwidth(gpu: &Gpu, clock: &dyn Fn() -> f64) -> Result<f64, GpuError> {
    let small = Reading::new(gpu, clock, SMALL).await?.ok_or_else(|| GpuError::TooLarge {
        what: "the buffer that is read to measure bandwidth".to_owned(),
        bytes: SMALL,
        limit: gpu.largest_binding(),
    })?;
    if small.once().await? > LONG {
        return small.best().await;
    }
    // Half of what the adapter allows leaves room for whatever else is there.
    let bytes = LARGE.min(gpu.profile().largest_buffer / 2).max(SMALL);
    match Reading::new(gpu, clock, bytes).await? {
        Some(large) => large.best().await,
        None => small.best().await,
    }
}

/// A buffer and the kernel that reads it.
struct Reading<'g> {
    clock: &'g dyn Fn() -> f64,
    gpu: &'g Gpu,
    /// What the kernel writes: it is there when all has been read.
    result: wgpu::Buffer,
    /// The same kernel, as often as a round may run it.
    kernels: Vec<Prepared>,
    bytes: u64,
}

impl<'g> Reading<'g> {
    /// A buffer of up to so many bytes; nothing if there is no memory for it.
    async fn new(gpu: &'g Gpu, clock: &'g dyn Fn() -> f64, bytes: u64) -> Result<Option<Self>, GpuError> {
        let most = gpu.largest_binding().min(MOST_WORKGROUPS * WORKGROUP_BYTES);
        let workgroups = bytes.min(most) / WORKGROUP_BYTES;
        let bytes = workgroups * WORKGROUP_BYTES;
        let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let (x, result) = (gpu.storage("bytes to read", bytes)?, gpu.storage("result of reading", 16)?);
        if scope.pop().await.is_some() {
            return Ok(None);
        }
        let spec = KernelSpec::new(Kernel::Read).constant("LANES", LANES).constant("PASSES", PASSES);
        let workgroups = [workgroups as u32, 1, 1];
        let kernel = |_| standalone::prepare(gpu, &spec, &[], &[("x", &x), ("y", &result)], workgroups);
        let kernels = (0..MOST_TIMES).map(kernel).collect();
        Ok(Some(Self { clock, gpu, result, kernels, bytes }))
    }

    /// Seconds that reading it `times` times takes.
    async fn seconds(&self, times: usize) -> Result<f64, GpuError> {
        let started = (self.clock)();
        standalone::run(self.gpu, &self.kernels[..times], &Step::new(1, 0));
        standalone::read(self.gpu, &self.result).await?;
        Ok((self.clock)() - started)
    }

    /// Seconds that reading it takes, after a first time in which the buffer is cleared.
    async fn once(&self) -> Result<f64, GpuError> {
        self.seconds(1).await?;
        self.seconds(1).await
    }

    /// Bytes a second, in the best of several rounds.
    async fn best(&self) -> Result<f64, GpuError> {
        let times = ((ROUND / self.once().await?).ceil() as usize).clamp(1, MOST_TIMES);
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            best = best.min(self.seconds(times).await? / times as f64);
        }
        Ok(self.bytes as f64 / best)
    }
}
