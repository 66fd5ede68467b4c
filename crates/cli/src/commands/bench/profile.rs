//! Time per kernel.

use std::collections::HashMap;

use rullama_gpu::GpuState;
use serde_json::{Value, json};

use crate::{failure::Failure, output};

/// The kernels of a step, those that take longest first.
pub(super) struct Profile {
    depth: u32,
    rows: u32,
    kernels: Vec<KernelTime>,
}

/// The total time of one kernel's dispatches.
struct KernelTime {
    kernel: String,
    count: u32,
    seconds: f64,
    weight_bytes: u64,
}

impl Profile {
    /// Times a step of `rows` rows: the mean of `repeat` runs, after one warm-up.
    pub(super) async fn measure(
        state: &mut GpuState,
        depth: u32,
        rows: u32,
        repeat: u32,
    ) -> Result<Self, Failure> {
        let mut report = state.profile(rows).await?;
        let mut seconds = vec![0.0; report.dispatches.len()];
        for _ in 0..repeat {
            report = state.profile(rows).await?;
            for (sum, dispatch) in seconds.iter_mut().zip(&report.dispatches) {
                *sum += dispatch.seconds.unwrap_or(0.0) / f64::from(repeat);
            }
        }
        let mut kernels: HashMap<String, KernelTime> = HashMap::new();
        for (dispatch, seconds) in report.dispatches.into_iter().zip(seconds) {
            let kernel = kernels.entry(dispatch.kernel.clone()).or_insert_with(|| KernelTime {
                kernel: dispatch.kernel,
                count: 0,
                seconds: 0.0,
                weight_bytes: 0,
            });
            kernel.count += 1;
            kernel.seconds += seconds;
            kernel.weight_bytes += dispatch.weight_bytes;
        }
        let mut kernels: Vec<KernelTime> = kernels.into_values().collect();
        kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.kernel.cmp(&b.kernel)));
        Ok(Self { depth, rows, kernels })
    }

    fn seconds(&self) -> f64 {
        self.kernels.iter().map(|kernel| kernel.seconds).sum()
    }

    pub(super) fn json(&self) -> Value {
        let kernel = |kernel: &KernelTime| {
            json!({
                "kernel": kernel.kernel,
                "count": kernel.count,
                "seconds": kernel.seconds,
                "weight_bytes": kernel.weight_bytes,
            })
        };
        json!({
            "depth": self.depth,
            "rows": self.rows,
            "seconds": self.seconds(),
            "kernels": self.kernels.iter().map(kernel).collect::<Vec<_>>(),
        })
    }

    pub(super) fn print(&self) -> Result<(), Failure> {
        let (all, count) = (self.seconds(), self.kernels.iter().map(|kernel| kernel.count).sum::<u32>());
        output::line("")?;
        output::line(&format!(
            "a step of {} tokens at depth {}: {count} dispatches, {:.1} µs of GPU time",
            self.rows,
            self.depth,
            1e6 * all
        ))?;
        let mut rows = vec![["TIME", "SHARE", "COUNT", "EACH", "GB/S", "KERNEL"].map(String::from).to_vec()];
        for kernel in &self.kernels {
            let rate = match kernel.weight_bytes {
                0 => "–".to_owned(),
                bytes => format!("{:.1}", bytes as f64 / kernel.seconds / 1e9),
            };
            rows.push(vec![
                format!("{:.1} µs", 1e6 * kernel.seconds),
                format!("{:.1} %", 100.0 * kernel.seconds / all),
                kernel.count.to_string(),
                format!("{:.2} µs", 1e6 * kernel.seconds / f64::from(kernel.count)),
                rate,
                kernel.kernel.clone(),
            ]);
        }
        Ok(output::table(&rows)?)
    }
}
