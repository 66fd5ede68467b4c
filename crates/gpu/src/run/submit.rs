//! Makes, records and submits the plans of steps.

use std::{collections::BTreeSet, ops::Range, rc::Rc};

use rullama_graph::Rows;

use super::{BufferCopy, Ending, SharedRun};
use crate::{
    GpuError, GpuModel,
    lower::{Pause, StepShape},
    plan::{ConversationBuffers, Plan, PlanBuffers},
    readback,
    rows::{RowTable, StepSize},
};

impl GpuModel {
    /// The plan for a shape, made on first use. The caller holds the turn.
    pub(crate) async fn prepare(&self, shared: &SharedRun, shape: StepShape) -> Result<Rc<Plan>, GpuError> {
        loop {
            let Some(outcome) = shared.borrow().allocated.pop() else { break };
            let known = outcome.known().await;
            shared.borrow().incomplete |= known.is_err();
            known?;
        }
        if shared.borrow().incomplete {
            return Err(GpuError::OutOfMemory { what: "the conversation".to_owned(), bytes: None });
        }
        self.gpu.check()?;
        if let Some(plan) = shared.borrow().plans.get(&shape) {
            return Ok(plan.clone());
        }
        let program = self.program(shape)?;
        let bytes = program.assign().1.iter().sum();
        let what = format!("the values of a step of {} rows", shape.rows);
        let (plan, outcome) = {
            let run = shared.borrow();
            let conversations = ConversationBuffers {
                caches: run.pool.buffers(),
                tokens: &run.buffers.tokens,
                soft_rows: &run.buffers.soft_rows,
                row_tables: run.buffers.row_tables.as_deref(),
                pages: run.buffers.paging.as_ref().map(|paging| &paging.pages),
            };
            let around = PlanBuffers {
                gpu: &self.gpu,
                weights: &self.resident,
                conversations: Some(conversations),
                inputs: &[],
                outputs: &run.buffers.outputs,
                step: &run.buffers.step,
                domains: &[],
                rows: shape.rows,
            };
            self.gpu.allocate(what, bytes, || Plan::bind(&around, &program))
        };
        outcome.known().await?;
        let plan = Rc::new(plan?);
        // An error while binding would repeat in every step.
        self.gpu.check()?;
        shared.borrow().plans.insert(shape, plan.clone());
        Ok(plan)
    }

    /// Records and submits a step whose table was written. Waits only for paged experts. The caller holds the turn.
    pub(crate) async fn submit(
        &self,
        shared: &SharedRun,
        plan: &Plan,
        size: StepSize,
        ending: Ending,
    ) -> Result<wgpu::SubmissionIndex, GpuError> {
        let mut first = 0;
        for (pause, routing) in plan.pauses() {
            let paging = shared.borrow().buffers.paging.clone().expect("paged plans have paging buffers");
            let rows = if pause.rows == Rows::Last { size.last } else { size.rows };
            let bytes = 4 * u64::from(rows) * u64::from(pause.width);
            let copy = BufferCopy { from: routing.clone(), to: paging.read.clone(), to_offset: 0, bytes };
            let ending = Ending { choosers: Vec::new(), copies: vec![copy] };
            let submission = self.submit_part(shared, plan, size, first..pause.before, &ending);
            let routing = readback::floats(&self.gpu, &paging.read, bytes, submission).await?;
            self.bring(pause, routing, &paging.pages).await?;
            first = pause.before;
        }
        Ok(self.submit_part(shared, plan, size, first..plan.len(), &ending))
    }

    /// Records and submits some dispatches of a step.
    fn submit_part(
        &self,
        shared: &SharedRun,
        plan: &Plan,
        size: StepSize,
        dispatches: Range<usize>,
        ending: &Ending,
    ) -> wgpu::SubmissionIndex {
        let run = shared.borrow();
        let mut encoder = self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            plan.record(&mut pass, &run.buffers.step.group, size, dispatches);
            let choosers = || ending.choosers.iter().map(|&slot| &run.choosers[slot as usize]);
            for index in 0..choosers().map(|chooser| chooser.dispatches()).max().unwrap_or(0) {
                choosers().for_each(|chooser| chooser.record(&mut pass, index));
            }
        }
        for BufferCopy { from, to, to_offset, bytes } in &ending.copies {
            encoder.copy_buffer_to_buffer(from, 0, to, *to_offset, *bytes);
        }
        self.gpu.queue.submit([encoder.finish()])
    }

    /// Uploads the experts of a routing and writes the routing with page indices.
    async fn bring(&self, pause: &Pause, routing: Vec<f32>, pages: &wgpu::Buffer) -> Result<(), GpuError> {
        let Self { gpu, set, manifest, resident, .. } = self;
        let pool = &manifest.pools[pause.pool];
        let mut routing = routing;
        let used = pause.width as usize / 2;
        let named = || routing.chunks(pause.width as usize).flat_map(|row| &row[..used]);
        let wanted: BTreeSet<u32> = named().map(|&expert| expert as u32).collect();
        if let Some(&expert) = wanted.iter().find(|&&expert| expert >= pool.experts) {
            let reason = format!("a row was routed to expert {expert} of {}", pool.experts);
            return Err(GpuError::Refused { reason });
        }
        let held = &resident.pages[pause.pool];
        held.upload(set, manifest, pool, &resident.tensors, &wanted).await?;
        for row in routing.chunks_mut(pause.width as usize) {
            for expert in &mut row[..used] {
                *expert = held.page(*expert as u32).expect("it was brought") as f32;
            }
        }
        gpu.queue.write_buffer(pages, 0, bytemuck::cast_slice(&routing));
        Ok(())
    }
}

/// Writes what a step of a table reads, for the plan of a shape.
pub(crate) fn write_table(model: &GpuModel, shared: &SharedRun, table: &RowTable, shape: StepShape) {
    shared.borrow().buffers.step.write(&model.gpu, table, shape.rows);
}
