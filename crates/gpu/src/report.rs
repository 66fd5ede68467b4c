//! What a plan does, for people: each dispatch with its kernel, workgroups and bytes, and its time if asked for.

use crate::{lower::Program, rows::StepSize};

/// One dispatch of a plan.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DispatchReport {
    /// What it computes, in the words of the model.
    pub what: String,
    /// Its kernel: body, fragments and constants.
    pub kernel: String,
    /// Workgroups along each axis.
    pub workgroups: [u32; 3],
    /// Bytes of weights that it reads.
    pub weight_bytes: u64,
    /// Seconds it took, where it was timed.
    pub seconds: Option<f64>,
}

/// What a plan does.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PlanReport {
    /// Rows of the step.
    pub rows: u32,
    /// Position of the first of them.
    pub position: u32,
    /// Each dispatch, in order.
    pub dispatches: Vec<DispatchReport>,
    /// Bytes of values between dispatches.
    pub scratch_bytes: u64,
}

impl PlanReport {
    pub(crate) fn new(program: &Program, size: StepSize) -> Self {
        let dispatches = program
            .dispatches
            .iter()
            .map(|dispatch| DispatchReport {
                what: dispatch.label.clone(),
                kernel: dispatch.spec.to_string(),
                workgroups: dispatch.workgroups.map(|count| count.at(size)),
                weight_bytes: dispatch.weight_bytes,
                seconds: None,
            })
            .collect();
        let scratch_bytes = program.assign().1.iter().sum();
        Self { rows: size.rows, position: size.end - size.rows, dispatches, scratch_bytes }
    }

    /// Bytes of weights that the step reads.
    pub fn weight_bytes(&self) -> u64 {
        self.dispatches.iter().map(|dispatch| dispatch.weight_bytes).sum()
    }
}
