//! What varies between steps, in one buffer, so that one write brings all of it.
//!
//! First the step itself, then the table of each way to rotate: cosine and sine of each pair of columns, row by row.
//! Where a table begins depends on the rows that a plan is made for: what a step of one row needs lies close together.

use rullama_graph::{Graph, Op, Rope};

use crate::{
    Gpu, GpuError,
    kernel::{Pipelines, params::Step},
    lower::RopeKey,
    weights::Manifest,
};

/// Where parts may begin: what every device allows.
const ALIGN: u64 = 256;

/// The buffer of a conversation, with what fills it.
pub(crate) struct StepBlock {
    buffer: wgpu::Buffer,
    /// Binds the step for all kernels.
    pub(crate) group: wgpu::BindGroup,
    turns: Vec<Turns>,
}

/// One way to rotate.
struct Turns {
    key: RopeKey,
    /// Pairs of a head, of which those without a frequency stay as they are.
    half: usize,
    frequencies: Vec<f64>,
}

impl StepBlock {
    /// The block for steps of up to `most_rows` rows.
    pub(crate) fn new(
        gpu: &Gpu,
        pipelines: &Pipelines,
        graph: &Graph,
        manifest: &Manifest,
        most_rows: u32,
    ) -> Result<Self, GpuError> {
        let mut turns: Vec<Turns> = Vec::new();
        for node in graph.nodes() {
            let Op::Rope { rope, .. } = node.op else { continue };
            if turns.iter().all(|turns| turns.key != rope.into()) {
                let factors = rope.factors.map(|factors| {
                    let name = &graph.weight(factors).tensor;
                    manifest.rope_factors[name].as_slice()
                });
                turns.push(Turns::new(rope, factors));
            }
        }
        let bytes = starts(&turns, most_rows).last().copied().unwrap_or(ALIGN);
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        let limit = gpu.largest_binding();
        if bytes > limit {
            return Err(GpuError::TooLarge { what: "the tables of a step".to_owned(), bytes, limit });
        }
        let buffer = gpu.buffer("step", bytes, usage);
        let group = pipelines.step_group(gpu, &buffer);
        Ok(Self { buffer, group, turns })
    }

    /// The table of one way to rotate, in a plan for steps of up to so many rows.
    pub(crate) fn turns(&self, key: RopeKey, plan_rows: u32) -> wgpu::BindingResource<'_> {
        let index = self.turns.iter().position(|turns| turns.key == key);
        let index = index.expect("every rope of the graph has its turns");
        let starts = starts(&self.turns, plan_rows);
        let (offset, size) = (starts[index], wgpu::BufferSize::new(starts[index + 1] - starts[index]));
        wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer: &self.buffer, offset, size })
    }

    /// Writes what a step needs that takes the plan for up to so many rows.
    pub(crate) fn write(&self, gpu: &Gpu, size: Step, plan_rows: u32) {
        let starts = starts(&self.turns, plan_rows);
        let mut block = vec![0u8; starts[0] as usize];
        block[..size_of::<Step>()].copy_from_slice(bytemuck::bytes_of(&size));
        for (turns, &start) in self.turns.iter().zip(&starts) {
            block.resize(start as usize, 0);
            block.extend_from_slice(bytemuck::cast_slice(&turns.table(size)));
        }
        gpu.queue.write_buffer(&self.buffer, 0, &block);
    }
}

/// Where each table begins, and in the end where they all end.
fn starts(turns: &[Turns], rows: u32) -> Vec<u64> {
    let mut at = ALIGN;
    let mut starts = vec![at];
    for turns in turns {
        at += (8 * turns.half as u64 * u64::from(rows)).next_multiple_of(ALIGN);
        starts.push(at);
    }
    starts
}

impl Turns {
    fn new(rope: Rope, factors: Option<&[f32]>) -> Self {
        let frequency = |pair: u32| {
            let factor = factors.map_or(1.0, |factors| f64::from(factors[pair as usize]));
            let exponent = -2.0 * f64::from(pair) / f64::from(rope.head_width);
            f64::from(rope.base).powf(exponent) / factor
        };
        let frequencies = (0..rope.pairs).map(frequency).collect();
        Self { key: rope.into(), half: rope.head_width as usize / 2, frequencies }
    }

    /// Cosine and sine of each pair for the rows of a step. In double precision: at long positions f32 has no digits left
    /// for an angle's fraction. Each row turns the one before it on, which is quicker than to begin anew and loses nothing
    /// that f32 would show.
    fn table(&self, size: Step) -> Vec<[f32; 2]> {
        let mut table = vec![[1.0, 0.0]; self.half * size.rows as usize];
        for (pair, frequency) in self.frequencies.iter().enumerate() {
            let (mut sin, mut cos) = (f64::from(size.position) * frequency).sin_cos();
            let (step_sin, step_cos) = frequency.sin_cos();
            for row in table.chunks_exact_mut(self.half) {
                row[pair] = [cos as f32, sin as f32];
                (sin, cos) = (sin * step_cos + cos * step_sin, cos * step_cos - sin * step_sin);
            }
        }
        table
    }
}
