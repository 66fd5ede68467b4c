//! `rullama doctor`: whether rullama can use this machine's GPU. The first line is the verdict.

use std::collections::BTreeMap;

use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::{MemorySource, Model};
use rullama_gpu::{Gpu, GpuError, GpuModel, GpuOptions, ModelOptions, measure_bandwidth};
use rullama_synth::{Mix, SynthOptions};
use serde_json::{Value, json};

use crate::{arguments::DoctorArguments, engine, failure::Failure, output};

/// The steps whose kernels are listed, with their number of tokens.
const STEPS: [(&str, u32); 2] = [("decode", 1), ("prompt", 512)];

pub(super) async fn run(arguments: &DoctorArguments) -> Result<(), Failure> {
    let gpu = match Gpu::open(&GpuOptions::default()).await {
        Ok(gpu) => gpu,
        Err(error) => return no_gpu(error, arguments.json),
    };
    let examination = Examination {
        // Kernels that fail are not used afterwards, so the tests come first.
        tests: self_tests(&gpu).await?,
        kernels: kernels(&gpu).await?,
        bandwidth: measure_bandwidth(&gpu, &engine::clock()).await?,
        gpu,
    };
    if arguments.json {
        output::json(&examination.json())?;
    } else {
        examination.print(arguments.verbose)?;
    }
    match examination.failed() {
        0 => Ok(()),
        count => {
            Err(Failure::new(format!("{count} of {} self-tests failed on this GPU", examination.tests.len()))
                .hint("update the GPU driver; until then rullama avoids the kernels that failed"))
        }
    }
}

fn no_gpu(error: GpuError, json: bool) -> Result<(), Failure> {
    if json {
        let problem = json!({ "code": error.code(), "message": error.to_string() });
        output::json(&json!({ "ok": false, "adapter": null, "problem": problem }))?;
    } else if matches!(error, GpuError::NoAdapter { .. }) {
        output::line("No GPU found; rullama will use the CPU")?;
    } else {
        output::line("rullama can't use this GPU")?;
    }
    Err(error.into())
}

/// Runs each kind of kernel on a case whose result is known.
async fn self_tests(gpu: &Gpu) -> Result<Vec<(String, Result<(), String>)>, Failure> {
    let results = rullama_gpu::self_test(gpu).await?;
    let outcome = |passed: bool, detail| if passed { Ok(()) } else { Err(detail) };
    Ok(results.into_iter().map(|test| (test.name, outcome(test.passed, test.detail))).collect())
}

/// A kernel that a step uses, and how often.
struct Chosen {
    step: &'static str,
    kernel: String,
    count: usize,
}

/// The kernels for a small model with the structure of E2B; none if the GPU is too unreliable for any model. No weights
/// are uploaded.
async fn kernels(gpu: &Gpu) -> Result<Vec<Chosen>, Failure> {
    let failed = |error| Failure::new("the test model can't be made").caused_by(error);
    let options = SynthOptions { mix: Mix::Q4_K_M, vocabulary: Some(512), ..SynthOptions::default() };
    let file = rullama_synth::tiny("tiny-e2b", &options).map_err(failed)?;
    let model = Model::open(Box::new(MemorySource::new(file))).await?;
    let graph = text(&model, &Config::read(&model)?, Outputs::Last)?;
    let mut chosen = Vec::new();
    for (step, rows) in STEPS {
        let plan = match GpuModel::plan(gpu, &model, &graph, &ModelOptions::default(), rows, 0).await {
            Err(GpuError::Unreliable { .. }) => return Ok(Vec::new()),
            plan => plan?,
        };
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for dispatch in plan.dispatches {
            *counts.entry(dispatch.kernel).or_default() += 1;
        }
        chosen.extend(counts.into_iter().map(|(kernel, count)| Chosen { step, kernel, count }));
    }
    Ok(chosen)
}

/// The results.
struct Examination {
    gpu: Gpu,
    kernels: Vec<Chosen>,
    tests: Vec<(String, Result<(), String>)>,
    bandwidth: f64,
}

impl Examination {
    fn failed(&self) -> usize {
        self.tests.iter().filter(|(_, result)| result.is_err()).count()
    }

    fn json(&self) -> Value {
        let profile = self.gpu.profile();
        let kernel =
            |chosen: &Chosen| json!({ "step": chosen.step, "kernel": chosen.kernel, "count": chosen.count });
        let test = |(name, result): &(String, Result<(), String>)| json!({ "name": name, "passed": result.is_ok(), "detail": result.as_ref().err() });
        json!({
            "ok": self.failed() == 0,
            "adapter": { "name": profile.name, "backend": profile.backend, "software": profile.software },
            "limits": {
                "largest_binding": profile.largest_binding,
                "largest_buffer": profile.largest_buffer,
                "workgroup_memory": profile.workgroup_memory,
            },
            "features": {
                "subgroups": profile.subgroups,
                "half_precision": profile.half_precision,
                "timestamps": profile.timestamps,
                "matrices": profile.matrices,
            },
            "kernels": self.kernels.iter().map(kernel).collect::<Vec<_>>(),
            "self_tests": self.tests.iter().map(test).collect::<Vec<_>>(),
            "fallbacks": self.gpu.fallbacks().iter().map(ToString::to_string).collect::<Vec<_>>(),
            "bandwidth_bytes_per_s": self.bandwidth,
        })
    }

    /// One line: which GPU, and whether rullama can rely on it.
    fn verdict(&self) -> String {
        let profile = self.gpu.profile();
        let result = match (self.failed(), profile.software) {
            (0, false) => "all kernels pass".to_owned(),
            (0, true) => {
                return format!(
                    "rullama uses the CPU here: there is no GPU, only an emulated one ({})",
                    profile.name
                );
            }
            (failed, _) => format!("{failed} of {} kernel tests fail", self.tests.len()),
        };
        let interface = match profile.backend.as_str() {
            "vulkan" => "Vulkan",
            "metal" => "Metal",
            "dx12" => "DirectX 12",
            other => other,
        };
        format!("{} ({interface}): {result}", profile.name)
    }

    fn print(&self, verbose: bool) -> Result<(), Failure> {
        let profile = self.gpu.profile();
        output::line(&self.verdict())?;
        output::line("")?;
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let subgroups = match profile.subgroups {
            Some([smallest, largest]) if smallest == largest => format!("{smallest} threads"),
            Some([smallest, largest]) => format!("{smallest} to {largest} threads"),
            None => "no".to_owned(),
        };
        let mut rows = vec![
            ("memory bandwidth", format!("{:.1} GB/s", self.bandwidth / 1e9)),
            ("half precision", yes(profile.half_precision)),
            ("subgroups", subgroups),
            ("matrix units", yes(profile.matrices)),
        ];
        if verbose {
            rows.extend([
                ("timestamps", yes(profile.timestamps)),
                ("largest buffer", output::size(profile.largest_buffer)),
                ("largest binding", output::size(profile.largest_binding)),
                ("workgroup memory", output::size(profile.workgroup_memory.into())),
            ]);
        }
        output::table(
            &rows.into_iter().map(|(what, value)| vec![what.to_owned(), value]).collect::<Vec<_>>(),
        )?;
        for fallback in self.gpu.fallbacks() {
            output::line(&format!("\nfallback: {fallback}"))?;
        }
        self.print_tests(verbose)?;
        if verbose {
            self.print_kernels()?;
        } else {
            output::line("\n`rullama doctor --verbose` also lists kernels and self-tests.")?;
        }
        Ok(())
    }

    /// The tests that failed, or all of them.
    fn print_tests(&self, all: bool) -> Result<(), Failure> {
        let mut rows = vec![["SELF-TEST", "RESULT"].map(String::from).to_vec()];
        for (name, result) in self.tests.iter().filter(|(_, result)| all || result.is_err()) {
            let result =
                result.as_ref().map_or_else(|detail| format!("failed: {detail}"), |()| "passed".to_owned());
            rows.push(vec![name.clone(), result]);
        }
        if rows.len() > 1 {
            output::line("")?;
            output::table(&rows)?;
        }
        Ok(())
    }

    fn print_kernels(&self) -> Result<(), Failure> {
        output::line("")?;
        let mut rows = vec![["STEP", "COUNT", "KERNEL"].map(String::from).to_vec()];
        for Chosen { step, kernel, count } in &self.kernels {
            rows.push(vec![(*step).to_owned(), count.to_string(), kernel.clone()]);
        }
        Ok(output::table(&rows)?)
    }
}
