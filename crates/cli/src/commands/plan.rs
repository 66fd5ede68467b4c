//! `rullama inspect --plan`: the dispatches of one step on this machine's GPU.

use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::Model;
use rullama_gpu::{DispatchReport, GpuModel, ModelOptions, PlanReport};
use serde_json::{Value, json};

use crate::{engine, failure::Failure, output};

/// A plan with the device it was made for.
pub(super) struct PlanListing {
    device: String,
    layers: usize,
    /// GPU features that are not used because their test failed.
    fallbacks: Vec<String>,
    report: PlanReport,
}

impl PlanListing {
    /// The plan of a step of `rows` tokens at `position`. No weights are read.
    pub(super) async fn of(model: &Model, rows: u32, position: u32) -> Result<Self, Failure> {
        let config = Config::read(model)?;
        let end = position.saturating_add(rows);
        if end > config.context_length {
            let most = config.context_length;
            let message = format!("the step ends after {end} tokens, but the model supports {most}");
            return Err(Failure::new(message).hint("use a smaller --position"));
        }
        let gpu = engine::open_gpu("--plan needs a GPU").await?;
        let graph = text(model, &config, Outputs::Last)?;
        let options = ModelOptions::default();
        let context = options.context.max(end).min(config.context_length);
        let report = GpuModel::plan(&gpu, model, &graph, &options.context(context), rows, position).await?;
        let device = gpu.profile().name.clone();
        let fallbacks = gpu.fallbacks().iter().map(ToString::to_string).collect();
        Ok(Self { device, layers: config.layers.len(), fallbacks, report })
    }

    /// The mean number of dispatches from the end of one layer to the end of the next. The end of a layer is fused into the
    /// next layer's first dispatch, so there is no other border between layers.
    fn per_layer(&self) -> Option<f64> {
        let last_of = |layer: usize| {
            let name = format!("layer{layer}.");
            self.report.dispatches.iter().rposition(|dispatch| dispatch.what.starts_with(&name))
        };
        let between = self.layers.checked_sub(1).filter(|&layers| layers > 0)?;
        let dispatches = last_of(between)? - last_of(0)?;
        Some((100.0 * dispatches as f64 / between as f64).round() / 100.0)
    }

    pub(super) fn json(&self) -> Value {
        let PlanReport { rows, position, dispatches, scratch_bytes, .. } = &self.report;
        let dispatch = |dispatch: &DispatchReport| {
            json!({
                "what": dispatch.what,
                "kernel": dispatch.kernel,
                "workgroups": dispatch.workgroups,
                "weight_bytes": dispatch.weight_bytes,
            })
        };
        json!({
            "device": self.device,
            "rows": rows,
            "position": position,
            "dispatches": dispatches.iter().map(dispatch).collect::<Vec<_>>(),
            "dispatch_count": dispatches.len(),
            "dispatches_per_layer": self.per_layer(),
            "weight_bytes": self.report.weight_bytes(),
            "scratch_bytes": scratch_bytes,
            "fallbacks": self.fallbacks,
        })
    }

    pub(super) fn print(&self) -> Result<(), Failure> {
        let report = &self.report;
        let mut rows = vec![["WHAT", "WORKGROUPS", "WEIGHTS", "KERNEL"].map(String::from).to_vec()];
        for dispatch in &report.dispatches {
            let [x, y, z] = dispatch.workgroups;
            let weights = match dispatch.weight_bytes {
                0 => String::new(),
                bytes => output::size(bytes),
            };
            let workgroups = format!("{x} × {y} × {z}");
            rows.push(vec![dispatch.what.clone(), workgroups, weights, dispatch.kernel.clone()]);
        }
        output::table(&rows)?;
        output::line("")?;
        let totals = [
            ("device", self.device.clone()),
            ("step", format!("{} tokens at position {}", report.rows, report.position)),
            ("dispatches", report.dispatches.len().to_string()),
            ("per layer", self.per_layer().map_or("unknown".to_owned(), |count| format!("{count:.1}"))),
            ("weights", format!("{} ({} bytes)", output::size(report.weight_bytes()), report.weight_bytes())),
            ("scratch", format!("{} ({} bytes)", output::size(report.scratch_bytes), report.scratch_bytes)),
        ];
        let fallbacks = self.fallbacks.iter().map(|fallback| ("fallback", fallback.clone()));
        let rows: Vec<_> =
            totals.into_iter().chain(fallbacks).map(|(what, value)| vec![what.to_owned(), value]).collect();
        Ok(output::table(&rows)?)
    }
}
