//! Microseconds of the attention kernels for the shapes of E2B, on whatever GPU there is.
//!
//! ```console
//! $ cargo run --release -p rullama-gpu-lab --example lab_attention
//! ```
//!
//! A kernel runs many times in one submission, each run waiting for the one before it, over as many different caches
//! as a few hundred megabytes allow: as in a model, where a layer's cache is rarely still near.

#![expect(clippy::print_stdout, reason = "it prints its findings")]

use rullama_gpu::{
    CacheFormat, CacheLayout as _, Gpu, GpuError, GpuOptions,
    attention::{RowAttention, attend_tile, attend_tile_grid, cache_heads, query_heads, query_heads_grid},
    params::{AttendRowParams, AttendTileParams, CacheHeadsParams, MergeParams, QueryHeadsParams},
};
use rullama_gpu_lab::{Lab, Prepared, Step};
use rullama_graph::{AttendShape, Mask};

/// What norms add to the mean of squares.
const EPS: f32 = 1e-6;

const COPIES: u32 = 64;
const ROUNDS: u32 = 20;
const ROWS: u32 = 512;

fn main() -> Result<(), GpuError> {
    let gpu = pollster::block_on(Gpu::open(&GpuOptions::default()))?;
    println!("{} ({})", gpu.profile().name, gpu.profile().backend);
    // `quick` on a software adapter, only to see that it runs.
    let quick = std::env::args().any(|argument| argument == "quick");
    // `rows` also measures the kernels of steps of many rows.
    let many = std::env::args().any(|argument| argument == "rows");
    let (copies, rounds) = if quick { (2, 1) } else { (COPIES, ROUNDS) };
    let bench = Bench { lab: Lab::new(&gpu), copies, rounds };
    let sliding = AttendShape { heads: 8, kv_heads: 1, head_width: 256, mask: Mask::sliding(512) };
    let global = AttendShape { heads: 8, kv_heads: 1, head_width: 512, mask: Mask::GLOBAL };
    let contexts: &[u32] = if quick { &[1, 512] } else { &[1, 64, 512, 4096, 32768] };
    let subgroup = gpu.profile().subgroup();
    for (name, shape) in [("sliding 8/1×256, window 512", sliding), ("global 8/1×512", global)] {
        for layout in [CacheFormat::F16, CacheFormat::Q8] {
            println!("\none row, {name}, {layout:?}");
            let defaults = |stores_kv| RowAttention::new(shape, layout, stores_kv, subgroup);
            let RowAttention { parts, split_keys, most_splits, .. } = defaults(true);
            let mut choices = vec![(parts, split_keys, most_splits)];
            if !quick && layout == CacheFormat::F16 {
                choices.push((parts / 2, split_keys, most_splits));
                choices.extend(match shape.mask.window {
                    Some(_) => vec![(parts, 32, 16), (parts, 128, 4)],
                    None => vec![(parts, 32, 16), (parts, 64, 32), (parts, 64, 8)],
                });
            }
            for (parts, split_keys, most_splits) in choices {
                for &context in contexts {
                    let tuned =
                        |stores_kv| RowAttention { parts, split_keys, most_splits, ..defaults(stores_kv) };
                    bench.row(&tuned(true), &tuned(false), context)?;
                }
            }
        }
        if many {
            println!("\n{ROWS} rows, {name}");
            for context in if quick { &[ROWS][..] } else { &[ROWS, 4096] } {
                bench.tile(shape, CacheFormat::F16, *context)?;
            }
        }
    }
    Ok(())
}

struct Bench<'g> {
    lab: Lab<'g>,
    copies: u32,
    rounds: u32,
}

impl Bench<'_> {
    /// As many caches as 256 MiB allow, keys and values.
    fn caches(&self, layout: CacheFormat, shape: AttendShape, capacity: u32) -> Vec<[wgpu::Buffer; 2]> {
        let bytes = u64::from(capacity) * layout.row_bytes(shape.kv_heads, shape.head_width);
        let count = ((256 << 20) / (2 * bytes)).clamp(1, u64::from(self.copies));
        (0..count).map(|_| [self.lab.zeros(bytes), self.lab.zeros(bytes)]).collect()
    }

    /// Microseconds of one run.
    fn time(&self, step: &Step, prepare: impl Fn(usize) -> Vec<Prepared>) -> Result<f64, GpuError> {
        let kernels: Vec<Prepared> = (0..self.copies as usize).flat_map(prepare).collect();
        let seconds = self.lab.time(&kernels, step, self.rounds)?;
        Ok(1e6 * seconds / f64::from(self.copies))
    }

    fn row(&self, owning: &RowAttention, borrowing: &RowAttention, context: u32) -> Result<(), GpuError> {
        let (lab, shape) = (&self.lab, owning.shape);
        let position = context - 1;
        let capacity = shape.mask.window.map_or(context, |window| window + ROWS);
        let caches = self.caches(owning.layout, shape, capacity);
        let columns = (shape.heads + 2 * shape.kv_heads) * shape.head_width;
        let (q_columns, kv_columns) = (shape.heads * shape.head_width, shape.kv_heads * shape.head_width);
        let x = lab.floats(&vec![0.5; columns as usize]);
        let vectors = lab.floats(&vec![1.0; 2 * shape.head_width as usize]);
        let turns = lab.floats(&[0.8, 0.6].repeat(shape.head_width as usize / 2));
        let [sums, peaks] = owning.scratch_bytes().map(|bytes| lab.zeros(bytes));
        let y = lab.zeros(4 * u64::from(q_columns));
        let window = shape.mask.window.unwrap_or(0);
        let params = AttendRowParams {
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            window,
            capacity,
            last: 0,
            q_at: 0,
            q_stride: 0,
            k_at: q_columns,
            v_at: q_columns + kv_columns,
            v_stride: 0,
            q_weight: 0,
            k_weight: shape.head_width,
            eps: EPS,
        };
        let attend = |attention: &RowAttention, copy: usize| {
            let [keys, values] = &caches[copy % caches.len()];
            let buffers = [
                ("q", &x),
                ("v", &x),
                ("vectors", &vectors),
                ("angles", &turns),
                ("keys", keys),
                ("values", values),
                ("sums", &sums),
                ("peaks", &peaks),
            ];
            lab.prepare(&attention.attend(), &[params.into()], &buffers, attention.attend_grid(position))
        };
        let merge = || {
            let buffers = [("sums", &sums), ("peaks", &peaks), ("y", &y)];
            let params = MergeParams { heads: shape.heads, window, last: 0 };
            lab.prepare(&owning.merge(), &[params.into()], &buffers, owning.merge_grid())
        };
        let step = Step::new(1, position);
        let own = self.time(&step, |copy| vec![attend(owning, copy)])?;
        let borrow = self.time(&step, |copy| vec![attend(borrowing, copy)])?;
        let both = self.time(&step, |copy| vec![attend(owning, copy), merge()])?;
        println!(
            "  keys by {:2}, splits of {:3} ({:2}), context {context:5}: own {own:6.2} µs, borrowed {borrow:6.2} µs, own and merge {both:6.2} µs",
            owning.parts,
            owning.split_keys,
            owning.splits(position),
        );
        Ok(())
    }

    fn tile(&self, shape: AttendShape, layout: CacheFormat, context: u32) -> Result<(), GpuError> {
        let lab = &self.lab;
        let position = context - ROWS;
        let window = shape.mask.window.unwrap_or(0);
        let capacity = shape.mask.window.map_or(context, |window| window + ROWS);
        let caches = self.caches(layout, shape, capacity);
        let (q_columns, kv_columns) = (shape.heads * shape.head_width, shape.kv_heads * shape.head_width);
        let stride = q_columns + 2 * kv_columns;
        let x = lab.floats(&vec![0.5; (ROWS * stride) as usize]);
        let vectors = lab.floats(&vec![1.0; 2 * shape.head_width as usize]);
        let turns = lab.floats(&[0.8, 0.6].repeat((ROWS * shape.head_width / 2) as usize));
        let bytes = 4 * u64::from(ROWS * q_columns);
        let (queries, y) = (lab.zeros(bytes), lab.zeros(bytes));
        let step = Step::new(ROWS, position);
        let query = self.time(&step, |_| {
            let buffers = [("q", &x), ("vectors", &vectors), ("angles", &turns), ("y", &queries)];
            let params = QueryHeadsParams {
                heads: shape.heads,
                q_at: 0,
                q_stride: stride,
                q_weight: 0,
                last: 0,
                eps: EPS,
            };
            let grid = query_heads_grid(shape.heads, ROWS);
            vec![lab.prepare(&query_heads(shape.head_width), &[params.into()], &buffers, grid)]
        })?;
        let cache = self.time(&step, |copy| {
            let [keys, values] = &caches[copy % caches.len()];
            let buffers = [
                ("k", &x),
                ("v", &x),
                ("vectors", &vectors),
                ("angles", &turns),
                ("keys", keys),
                ("values", values),
            ];
            let params = CacheHeadsParams {
                kv_heads: shape.kv_heads,
                capacity,
                k_at: q_columns,
                k_stride: stride,
                v_at: q_columns + kv_columns,
                v_stride: stride,
                k_weight: shape.head_width,
                eps: EPS,
            };
            let grid = [shape.kv_heads, ROWS, 1];
            vec![lab.prepare(&cache_heads(layout, shape.head_width), &[params.into()], &buffers, grid)]
        })?;
        let attend = self.time(&step, |copy| {
            let [keys, values] = &caches[copy % caches.len()];
            let buffers = [("q", &queries), ("keys", keys), ("values", values), ("y", &y)];
            let params =
                AttendTileParams { heads: shape.heads, kv_heads: shape.kv_heads, window, capacity, last: 0 };
            let spec = attend_tile(layout, shape.head_width);
            vec![lab.prepare(&spec, &[params.into()], &buffers, attend_tile_grid(&shape, ROWS))]
        })?;
        let seen: u64 =
            (position..context).map(|row| u64::from(row + 1) - shape.mask.first(row as usize) as u64).sum();
        let operations = 4 * seen * u64::from(shape.heads * shape.head_width);
        println!(
            "  context {context:5}: query_heads {query:6.2} µs, cache_heads {cache:6.2} µs, attend_tile {attend:8.2} µs = {:5.2} TFLOP/s",
            operations as f64 / attend / 1e6,
        );
        Ok(())
    }
}
