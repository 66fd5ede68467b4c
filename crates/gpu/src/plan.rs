//! A plan: everything about a step that can be decided beforehand.

use rullama_graph::Rows;

/// One dispatch.
#[derive(Debug)]
pub(crate) struct Dispatch {
    pub(crate) label: String,
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) bind_group: wgpu::BindGroup,
    pub(crate) x: u32,
    pub(crate) rows: Rows,
    pub(crate) z: u32,
}

/// A graph lowered for steps of up to so many rows.
#[derive(Debug)]
pub struct Plan {
    pub(crate) dispatches: Vec<Dispatch>,
    pub(crate) output: wgpu::Buffer,
    pub(crate) output_width: u64,
    pub(crate) output_rows: Rows,
    pub(crate) most_rows: usize,
}

impl Plan {
    /// Writes one step of `rows` rows into `pass`. Everything else was decided when the plan was lowered.
    pub(crate) fn record(&self, pass: &mut wgpu::ComputePass<'_>, step: &wgpu::BindGroup, rows: usize) {
        pass.set_bind_group(0, step, &[]);
        for dispatch in &self.dispatches {
            pass.set_pipeline(&dispatch.pipeline);
            pass.set_bind_group(1, &dispatch.bind_group, &[]);
            pass.dispatch_workgroups(dispatch.x, dispatch.rows.count(rows) as u32, dispatch.z);
        }
    }

    /// The kernel of each dispatch, in order.
    pub fn kernels(&self) -> impl ExactSizeIterator<Item = &str> {
        self.dispatches.iter().map(|dispatch| dispatch.label.as_str())
    }

    /// The most rows of a step.
    pub fn most_rows(&self) -> usize {
        self.most_rows
    }
}
