//! What varies between steps, in one buffer, so that one write uploads all of it.
//!
//! First the row table, then a table for each kind of rotation: cosine and sine of each pair of columns, row by row. Where a
//! table begins depends on the maximum rows of the plan, so that a step of one row writes little. Kernels declare a row table
//! of full length, so its binding overlaps the tables behind it; both are only read.

use rullama_graph::{Graph, Op, Rope};

use crate::{
    Gpu, GpuError,
    kernel::Pipelines,
    lower::RopeKey,
    rows::{RowTable, TABLE_BYTES},
    weights::Manifest,
};

/// Tables begin at multiples of this, which every device allows.
const ALIGN: u64 = 256;

/// The buffer of a step, and the rotations it has tables for.
pub(crate) struct StepBlock {
    buffer: wgpu::Buffer,
    /// The bind group of the row table, for all kernels.
    pub(crate) group: wgpu::BindGroup,
    rotations: Vec<Rotation>,
}

/// One kind of rotation.
struct Rotation {
    key: RopeKey,
    /// Pairs of columns of a head. Those without a frequency are not rotated.
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
        let mut rotations: Vec<Rotation> = Vec::new();
        for node in graph.nodes() {
            let Op::Rope { rope, .. } = node.op else { continue };
            if rotations.iter().all(|rotation| rotation.key != rope.into()) {
                let factors = rope.factors.map(|factors| {
                    let name = &graph.weight(factors).tensor;
                    manifest.rope_factors[name].as_slice()
                });
                rotations.push(Rotation::new(rope, factors));
            }
        }
        let bytes = starts(&rotations, most_rows).last().copied().unwrap_or(0).max(TABLE_BYTES);
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        let limit = gpu.largest_binding();
        if bytes > limit {
            return Err(GpuError::TooLarge { what: "the tables of a step".to_owned(), bytes, limit });
        }
        let buffer = gpu.buffer("step", bytes, usage);
        let group = pipelines.step_group(gpu, &buffer);
        Ok(Self { buffer, group, rotations })
    }

    /// The table of one kind of rotation, in a plan for steps of up to `plan_rows` rows.
    pub(crate) fn rope_table(&self, key: RopeKey, plan_rows: u32) -> wgpu::BindingResource<'_> {
        let index = self.rotations.iter().position(|rotation| rotation.key == key);
        let index = index.expect("every rope of the graph has a table");
        let starts = starts(&self.rotations, plan_rows);
        let (offset, size) = (starts[index], wgpu::BufferSize::new(starts[index + 1] - starts[index]));
        wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer: &self.buffer, offset, size })
    }

    /// Writes the tables of a step that runs the plan for up to `plan_rows` rows.
    pub(crate) fn write(&self, gpu: &Gpu, table: &RowTable, plan_rows: u32) {
        let mut block = table.bytes();
        for (rotation, &start) in self.rotations.iter().zip(&starts(&self.rotations, plan_rows)) {
            block.resize(start as usize, 0);
            block.extend_from_slice(bytemuck::cast_slice(&rotation.table(table)));
        }
        gpu.queue.write_buffer(&self.buffer, 0, &block);
    }
}

/// Where each table of angles begins, and after these where the last one ends.
fn starts(rotations: &[Rotation], rows: u32) -> Vec<u64> {
    let mut at = RowTable::bytes_of(rows).next_multiple_of(ALIGN);
    let mut starts = vec![at];
    for rotation in rotations {
        at += (8 * rotation.half as u64 * u64::from(rows)).next_multiple_of(ALIGN);
        starts.push(at);
    }
    starts
}

impl Rotation {
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
    /// for an angle's fraction. A row whose position is one more than the previous row's adds one angle to it, which is
    /// faster than computing both functions again and loses nothing that f32 would show.
    fn table(&self, rows: &RowTable) -> Vec<[f32; 2]> {
        let positions: Vec<u32> = rows.positions().collect();
        let mut table = vec![[1.0, 0.0]; self.half * positions.len()];
        for (pair, frequency) in self.frequencies.iter().enumerate() {
            let (step_sin, step_cos) = frequency.sin_cos();
            let (mut sin, mut cos) = (0.0, 1.0);
            for (index, &position) in positions.iter().enumerate() {
                let follows = index > 0 && position == positions[index - 1] + 1;
                (sin, cos) = match follows {
                    true => (sin * step_cos + cos * step_sin, cos * step_cos - sin * step_sin),
                    false => (f64::from(position) * frequency).sin_cos(),
                };
                table[index * self.half + pair] = [cos as f32, sin as f32];
            }
        }
        table
    }
}
