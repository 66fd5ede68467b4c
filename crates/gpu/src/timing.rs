//! A step, or a run of an encoder, with a clock around each dispatch.

use crate::{
    Gpu, GpuError, GpuState, PlanReport, Residency,
    options::decode_shape,
    plan::Plan,
    readback,
    rows::{RowTable, StepSize},
    run::write_table,
    state::{StepInput, WrittenStep},
};

/// Dispatches that share a set of clocks.
const AT_ONCE: usize = 1024;

impl GpuState {
    /// Does what [`step`](Self::step) does, with a clock around each dispatch, and remembers nothing.
    ///
    /// Clocks keep dispatches apart, so that the whole takes longer than a step; the shares are what counts.
    pub async fn profile(&mut self, rows: u32) -> Result<PlanReport, GpuError> {
        self.check_timing()?;
        let report = self.model.report(rows, self.len() as u32)?;
        let (_turn, slot) = self.turn().await?;
        let WrittenStep { plan, size } = self.write(&StepInput::from(&vec![0; rows as usize]), slot).await?;
        let group = &self.shared.borrow().buffers.step.group.clone();
        time(&self.model.gpu, &plan, group, size, report).await
    }

    /// The same for a step that decodes so many conversations together, all of which stand where this one does. What it writes
    /// to the cache is meaningless, and lies after what was read.
    pub async fn profile_together(&mut self, conversations: u32) -> Result<PlanReport, GpuError> {
        self.check_timing()?;
        let shape = decode_shape(conversations);
        let (_turn, slot) = self.turn().await?;
        let table = RowTable::decode(&vec![(slot, self.len() as u32); conversations as usize]);
        let plan = self.model.prepare(&self.shared, shape).await?;
        write_table(&self.model, &self.shared, &table, shape);
        let report = PlanReport::new(&*self.model.program(shape)?, table.size());
        let group = &self.shared.borrow().buffers.step.group.clone();
        time(&self.model.gpu, &plan, group, table.size(), report).await
    }

    fn check_timing(&self) -> Result<(), GpuError> {
        check(&self.model.gpu)?;
        if self.model.residency() == Residency::Paged {
            return Err(GpuError::Unsupported { operation: "timing a step that pauses" });
        }
        Ok(())
    }
}

/// Refuses a GPU without clocks.
pub(crate) fn check(gpu: &Gpu) -> Result<(), GpuError> {
    match gpu.profile().timestamps {
        true => Ok(()),
        false => Err(GpuError::Unsupported { operation: "timing single kernels" }),
    }
}

/// Runs a plan and adds the time of each dispatch to its report.
pub(crate) async fn time(
    gpu: &Gpu,
    plan: &Plan,
    group: &wgpu::BindGroup,
    size: StepSize,
    mut report: PlanReport,
) -> Result<PlanReport, GpuError> {
    let times = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
        label: Some("times"),
        ty: wgpu::QueryType::Timestamp,
        count: 2 * AT_ONCE as u32,
    });
    let bytes = 16 * AT_ONCE as u64;
    let resolved =
        gpu.buffer("times", bytes, wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC);
    let read = gpu.buffer("times", bytes, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    let tick = f64::from(gpu.queue.get_timestamp_period()) * 1e-9;
    for first in (0..plan.len()).step_by(AT_ONCE) {
        let count = AT_ONCE.min(plan.len() - first);
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        plan.record_timed(&mut encoder, group, size, first..first + count, &times);
        encoder.resolve_query_set(&times, 0..2 * count as u32, &resolved, 0);
        encoder.copy_buffer_to_buffer(&resolved, 0, &read, 0, 16 * count as u64);
        let submission = gpu.queue.submit([encoder.finish()]);
        let words = readback::floats(gpu, &read, 16 * count as u64, submission).await?;
        let ticks: &[u64] = &bytemuck::cast_slice::<f32, u32>(&words)
            .chunks(2)
            .map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32)
            .collect::<Vec<_>>();
        for (dispatch, pair) in report.dispatches[first..first + count].iter_mut().zip(ticks.chunks(2)) {
            dispatch.seconds = Some(pair[1].saturating_sub(pair[0]) as f64 * tick);
        }
    }
    Ok(report)
}
