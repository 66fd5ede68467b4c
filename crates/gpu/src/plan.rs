//! A plan: a program bound to pipelines and buffers. Recording it is all that a step still has to do.

use std::ops::Range;

use crate::{
    Gpu, GpuError,
    kernel::Access,
    lower::{BufferRef, Count, Pause, Program, Scratch},
    rows::StepSize,
    step_block::StepBlock,
    weights::{Resident, RowTables},
};

/// The buffers that plans share.
pub(crate) struct PlanBuffers<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) weights: &'a Resident,
    /// None for graphs without tokens.
    pub(crate) conversations: Option<ConversationBuffers<'a>>,
    /// The graph's inputs, in order.
    pub(crate) inputs: &'a [wgpu::Buffer],
    /// The graph's outputs, in order. All plans of a model write the same.
    pub(crate) outputs: &'a [wgpu::Buffer],
    pub(crate) step: &'a StepBlock,
    /// For each domain, the block that takes the place of the step's.
    pub(crate) domains: &'a [StepBlock],
    /// The most rows of a step.
    pub(crate) rows: u32,
}

/// The buffers of steps with tokens.
#[derive(Clone, Copy)]
pub(crate) struct ConversationBuffers<'a> {
    /// Keys and values of each cache.
    pub(crate) caches: &'a [(wgpu::Buffer, wgpu::Buffer)],
    pub(crate) tokens: &'a wgpu::Buffer,
    /// Rows that towers have computed.
    pub(crate) soft_rows: &'a wgpu::Buffer,
    /// Rows of tables that stay in the file.
    pub(crate) row_tables: Option<&'a RowTables>,
    /// A routing with page indices in place of expert indices, if experts are paged.
    pub(crate) pages: Option<&'a wgpu::Buffer>,
}

/// A dispatch with its pipeline and bind groups.
#[derive(Debug)]
struct BoundDispatch {
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
    workgroups: [Count; 3],
    /// The step's bind group for the domain whose rows it computes; none if these are the step's own rows.
    domain: Option<wgpu::BindGroup>,
}

impl BoundDispatch {
    fn record(&self, pass: &mut wgpu::ComputePass<'_>, size: StepSize) {
        let [x, y, z] = self.workgroups.map(|count| count.at(size));
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(1, &self.bind_group, &[]);
        pass.dispatch_workgroups(x, y, z);
    }
}

/// A program bound to pipelines and buffers.
#[derive(Debug)]
pub(crate) struct Plan {
    dispatches: Vec<BoundDispatch>,
    /// Its pauses, in order, each with the routing that the host reads.
    pauses: Vec<(Pause, wgpu::Buffer)>,
    /// The buffers that only this plan uses.
    own: Vec<wgpu::Buffer>,
}

/// Browsers free buffers late, so large ones are destroyed here.
impl Drop for Plan {
    fn drop(&mut self) {
        self.own.iter().for_each(wgpu::Buffer::destroy);
    }
}

impl Plan {
    /// Binds a program to pipelines and buffers.
    pub(crate) fn bind(around: &PlanBuffers<'_>, program: &Program) -> Result<Self, GpuError> {
        let gpu = around.gpu;
        let (assigned, sizes) = program.assign();
        let scratch: Vec<wgpu::Buffer> =
            sizes.iter().map(|&bytes| gpu.storage("values", bytes)).collect::<Result<_, _>>()?;

        // The uniforms of all dispatches share one buffer, which is written once.
        let align = gpu.device.limits().min_uniform_buffer_offset_alignment as usize;
        let mut bytes: Vec<u8> = Vec::new();
        let mut ranges = Vec::new();
        for planned in &program.dispatches {
            let mut own = Vec::new();
            for uniform in &planned.uniforms {
                own.push((bytes.len() as u64, uniform.bytes().len() as u64));
                bytes.extend(uniform.bytes());
                bytes.resize(bytes.len().next_multiple_of(align), 0);
            }
            ranges.push(own);
        }
        // Written after creation: a buffer created with contents panics when memory is short or the device is lost.
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        let parameters = gpu.buffer("parameters", bytes.len().max(16) as u64, usage);
        gpu.queue.write_buffer(&parameters, 0, &bytes);

        let conversations = || around.conversations.expect("a graph with tokens has conversations");
        let row_tables =
            || conversations().row_tables.expect("a plan with tables in the file has buffers for their rows");
        let buffer = |slot: BufferRef| match slot {
            BufferRef::Scratch(index) => {
                let index_in = |given: &[Scratch]| given.iter().position(|&other| other == index);
                match (index_in(&program.inputs), index_in(&program.outputs)) {
                    (Some(input), _) => &around.inputs[input],
                    (None, Some(output)) => &around.outputs[output],
                    (None, None) => &scratch[assigned[index.0]],
                }
            }
            BufferRef::Shard { packed, shard } => &around.weights.tensors[packed].buffers[shard],
            BufferRef::Vectors => &around.weights.vectors,
            BufferRef::Keys(cache) => &conversations().caches[cache.index()].0,
            BufferRef::Values(cache) => &conversations().caches[cache.index()].1,
            BufferRef::Tokens => conversations().tokens,
            BufferRef::SoftRows => conversations().soft_rows,
            BufferRef::Rows { packed } => row_tables().table(packed),
            BufferRef::RowNumbers => row_tables().numbers(),
            BufferRef::Pages => conversations().pages.expect("a plan with pages has a buffer for them"),
            BufferRef::RopeTable(_) => unreachable!("rotation angles are a part of the step's buffer"),
        };
        gpu.pipelines().prepare(gpu, program.dispatches.iter().map(|planned| &planned.spec));
        let mut dispatches = Vec::with_capacity(program.dispatches.len());
        for (planned, ranges) in program.dispatches.iter().zip(&ranges) {
            let pipeline = gpu.pipelines().get(gpu, &planned.spec);
            let domain = planned.workgroups.iter().find_map(|count| count.domain());
            let (step, rows) = match domain {
                Some(domain) => (&around.domains[domain.index()], program.domains[domain.index()]),
                None => (around.step, around.rows),
            };
            let bind_group = pipeline.bind_group(gpu, Some(&planned.label), |binding| {
                let missing = || -> ! { panic!("{} needs `{}`", planned.spec, binding.name) };
                if binding.access == Access::Uniform {
                    let found = planned.uniforms.iter().position(|uniform| binding.is_for(uniform.layout()));
                    let Some(found) = found else { missing() };
                    let (offset, size) = ranges[found];
                    let size = wgpu::BufferSize::new(size);
                    let part = wgpu::BufferBinding { buffer: &parameters, offset, size };
                    return wgpu::BindingResource::Buffer(part);
                }
                match planned.buffers.iter().find(|(name, _)| *name == binding.name) {
                    Some(&(_, BufferRef::RopeTable(rope))) => step.rope_table(rope, rows),
                    Some(&(_, slot)) => buffer(slot).as_entire_binding(),
                    None => missing(),
                }
            });
            let (pipeline, mut workgroups) = (pipeline.pipeline, planned.workgroups);
            if domain.is_some() {
                let size = StepSize { rows, last: rows, end: rows };
                workgroups = workgroups.map(|count| Count::Fixed(count.at(size)));
            }
            let domain = domain.map(|_| step.group.clone());
            dispatches.push(BoundDispatch { pipeline, bind_group, workgroups, domain });
        }
        let pauses = program.pauses.iter();
        let pauses =
            pauses.map(|pause| (*pause, buffer(BufferRef::Scratch(pause.routing)).clone())).collect();
        let own = scratch.into_iter().chain([parameters]).collect();
        Ok(Self { dispatches, pauses, own })
    }

    /// Records dispatches of a step, each in a compute pass of its own that writes timestamps before and after it.
    pub(crate) fn record_timed(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        step: &wgpu::BindGroup,
        size: StepSize,
        dispatches: Range<usize>,
        times: &wgpu::QuerySet,
    ) {
        for (index, dispatch) in self.dispatches[dispatches].iter().enumerate() {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: None,
                timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                    query_set: times,
                    beginning_of_pass_write_index: Some(2 * index as u32),
                    end_of_pass_write_index: Some(2 * index as u32 + 1),
                }),
            });
            pass.set_bind_group(0, dispatch.domain.as_ref().unwrap_or(step), &[]);
            dispatch.record(&mut pass, size);
        }
    }

    /// The number of dispatches.
    pub(crate) fn len(&self) -> usize {
        self.dispatches.len()
    }

    /// Its pauses, in order, each with the routing that the host reads.
    pub(crate) fn pauses(&self) -> &[(Pause, wgpu::Buffer)] {
        &self.pauses
    }

    /// Records dispatches of a step. Everything else was decided when the graph was lowered.
    pub(crate) fn record(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        step: &wgpu::BindGroup,
        size: StepSize,
        dispatches: Range<usize>,
    ) {
        pass.set_bind_group(0, step, &[]);
        for dispatch in &self.dispatches[dispatches] {
            if let Some(domain) = &dispatch.domain {
                pass.set_bind_group(0, domain, &[]);
            }
            dispatch.record(pass, size);
            if dispatch.domain.is_some() {
                pass.set_bind_group(0, step, &[]);
            }
        }
    }
}
