//! Known cases that kernels answer before a model is trusted to them.
//!
//! | file | idea |
//! |---|---|
//! | `cases` | a model of a few tensors, and graphs over it that use every family of kernels |
//! | `answers` | what these graphs compute, by the CPU reference |
//!
//! A driver may miscompile a kernel, or a GPU count its lanes otherwise than kernels take for granted. Then replies would
//! be nonsense, silently. Where answers are wrong, the next safer kernels are tried: without matrix units, then without
//! subgroups, then without fusion; and whoever loads a model can tell.

mod answers;
mod cases;

use std::{fmt, ops::RangeInclusive, rc::Rc};

use rullama_gguf::Model;

use crate::{
    CacheFormat, DeviceProfile, Gpu, GpuError, GpuModel, GpuWeights, MatrixTiles, ModelOptions, Sampling,
    matrices::MatrixUse, standalone::LogitChooser, tuning::FEW_ROWS,
};
use cases::Case;

/// How far an answer may be from the known one, relative to the largest value. Wrong answers are wrong by far.
const TOLERANCE: f32 = 0.01;

/// The kernels that a device is trusted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KernelSet {
    /// Threads per subgroup, where kernels use subgroups.
    pub(crate) subgroup: Option<u32>,
    /// Whether matrix units are used.
    pub(crate) matrices: MatrixUse,
    /// Whether operations are fused.
    pub(crate) fused: bool,
}

impl KernelSet {
    /// All kernels that a device's features allow.
    pub(crate) fn best(profile: &DeviceProfile) -> Self {
        let subgroup = profile.subgroup();
        let has = profile.matrices && subgroup == Some(MatrixTiles::SUBGROUP);
        let matrices = if has { MatrixUse::WhereWorth } else { MatrixUse::Never };
        Self { subgroup, matrices, fused: true }
    }

    /// The sets that the self-test runs: what is used only for some shapes is used for all, one set for each choice.
    fn tested(self) -> Vec<Self> {
        let choices = match self.matrices {
            MatrixUse::Never => vec![MatrixUse::Never],
            _ => MatrixTiles::ALL.map(MatrixUse::Always).to_vec(),
        };
        choices.into_iter().map(|matrices| Self { matrices, ..self }).collect()
    }
}

/// What a family of kernels answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelfTestResult {
    /// What was computed.
    pub name: String,
    /// Whether the answer was right.
    pub passed: bool,
    /// How near it was, or what else was found.
    pub detail: String,
}

impl fmt::Display for SelfTestResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.detail)
    }
}

/// Something that is done in a safer way, because the GPU answered wrongly when it was done in the best.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fallback {
    /// Matrix units are left alone.
    NoMatrices {
        /// What went wrong with them.
        failed: Vec<SelfTestResult>,
    },
    /// Lanes of a subgroup do not talk to each other.
    NoSubgroups {
        /// What went wrong when they did.
        failed: Vec<SelfTestResult>,
    },
    /// Every operation is a dispatch of its own.
    Unfused {
        /// What went wrong with fused ones.
        failed: Vec<SelfTestResult>,
    },
    /// Tokens are chosen by the host.
    ChoosingOnHost {
        /// What went wrong on the GPU.
        failed: Vec<SelfTestResult>,
    },
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, failed) = match self {
            Self::NoMatrices { failed } => ("matrix units are not used", failed),
            Self::NoSubgroups { failed } => ("subgroups are not used", failed),
            Self::Unfused { failed } => ("operations are not fused", failed),
            Self::ChoosingOnHost { failed } => ("tokens are chosen on the CPU", failed),
        };
        f.write_str(what)?;
        failed.iter().enumerate().try_for_each(|(index, result)| {
            f.write_str(if index == 0 { ": " } else { "; " })?;
            result.fmt(f)
        })
    }
}

/// What a self-test decided.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// What the kernels answered that the GPU's features select.
    results: Vec<SelfTestResult>,
    /// The kernels that the GPU can be trusted with; or where even the plainest answered wrongly, what they did.
    trusted: Result<KernelSet, Vec<SelfTestResult>>,
    pub(crate) fallbacks: Vec<Fallback>,
}

/// What every family of kernels answers to a known case, in the form that the GPU's features select. Where some answer
/// wrongly, [`Gpu::fallbacks`] then tells what is done instead.
///
/// # Errors
///
/// If the GPU is lost or has no memory for a few hundred kilobytes. Wrong answers are results.
pub async fn self_test(gpu: &Gpu) -> Result<Vec<SelfTestResult>, GpuError> {
    gpu.check()?;
    Ok(verdict(gpu).await?.results.clone())
}

/// The kernels that a GPU can be trusted with. The first time, they are tested, unless it was opened without that.
pub(crate) async fn trusted(gpu: &Gpu) -> Result<KernelSet, GpuError> {
    if !gpu.options().self_test && gpu.verdict().get().is_none() {
        return expected(gpu);
    }
    let trusted = verdict(gpu).await?.trusted.clone();
    trusted.map_err(|failed| GpuError::Unreliable { failed })
}

impl Gpu {
    /// Runs the self-test, unless it was run or the GPU was opened without it. Fails if even the simplest kernels are wrong, as
    /// every load would.
    pub async fn check_kernels(&self) -> Result<(), GpuError> {
        trusted(self).await.map(|_| ())
    }
}

/// The kernels that a load will use, unless a self-test that has not been run yet finds them to be wrong.
pub(crate) fn expected(gpu: &Gpu) -> Result<KernelSet, GpuError> {
    match gpu.verdict().get() {
        None => Ok(KernelSet::best(gpu.profile())),
        Some(verdict) => verdict.trusted.clone().map_err(|failed| GpuError::Unreliable { failed }),
    }
}

/// What is known of a GPU. The first time, it is found out.
async fn verdict(gpu: &Gpu) -> Result<&Verdict, GpuError> {
    if let Some(verdict) = gpu.verdict().get() {
        return Ok(verdict);
    }
    let verdict = judge(gpu).await?;
    // Somebody else may have been faster; the answers are the same.
    Ok(gpu.verdict().get_or_init(|| verdict))
}

async fn judge(gpu: &Gpu) -> Result<Verdict, GpuError> {
    let mut kernels = KernelSet::best(gpu.profile());
    let mut results: Option<Vec<SelfTestResult>> = None;
    let mut fallbacks = Vec::new();
    let trusted = loop {
        let mut failed = computed(gpu, kernels).await?;
        results.get_or_insert_with(|| failed.clone());
        failed.retain(|result| !result.passed);
        if failed.is_empty() {
            break Ok(kernels);
        }
        if kernels.matrices != MatrixUse::Never {
            kernels.matrices = MatrixUse::Never;
            fallbacks.push(Fallback::NoMatrices { failed });
        } else if kernels.subgroup.is_some() {
            kernels.subgroup = None;
            fallbacks.push(Fallback::NoSubgroups { failed });
        } else if kernels.fused {
            kernels.fused = false;
            fallbacks.push(Fallback::Unfused { failed });
        } else {
            break Err(failed);
        }
    };
    let mut failed = chosen(gpu).await?;
    let mut results = results.unwrap_or_default();
    results.extend(failed.iter().cloned());
    failed.retain(|result| !result.passed);
    if !failed.is_empty() {
        fallbacks.push(Fallback::ChoosingOnHost { failed });
    }
    Ok(Verdict { results, trusted, fallbacks })
}

/// What plans compute.
async fn computed(gpu: &Gpu, kernels: KernelSet) -> Result<Vec<SelfTestResult>, GpuError> {
    let model = Rc::new(cases::model().await);
    let mut results = Vec::new();
    for kernels in kernels.tested() {
        let on_matrix_units = matches!(kernels.matrices, MatrixUse::Always(_)).then(cases::on_matrix_units);
        for case in cases::all().into_iter().chain(on_matrix_units) {
            let name = match kernels.matrices {
                MatrixUse::Always(tiles) => {
                    format!("{} on matrix units by {} × {}", case.name, tiles.rows(), tiles.outputs(false))
                }
                _ => case.name.to_owned(),
            };
            match steps(&case, kernels, gpu, &model).await {
                Ok(found) => results.extend(case.compare(&name, &found)),
                Err(error) if is_wrong_answer(&error) => {
                    results.push(SelfTestResult { name, passed: false, detail: error.to_string() });
                }
                Err(error) => return Err(error),
            }
        }
    }
    if kernels.fused && gpu.options().distrust_fused {
        for result in &mut results {
            (result.passed, result.detail) = (false, "distrusted".to_owned());
        }
    }
    Ok(results)
}

/// True if an error is the kernels' fault. A kernel that does not compile, or computes NaN, has failed the test as surely
/// as one that computes a wrong number; only a lost GPU or a lack of memory says nothing about the kernels.
fn is_wrong_answer(error: &GpuError) -> bool {
    matches!(
        error,
        GpuError::Refused { .. }
            | GpuError::Unsupported { .. }
            | GpuError::NotFinite { .. }
            | GpuError::NothingLeft { .. }
    )
}

/// The rows of a case.
async fn steps(case: &Case, kernels: KernelSet, gpu: &Gpu, model: &Rc<Model>) -> Result<Vec<f32>, GpuError> {
    let options = ModelOptions::default().context(case.tokens()).cache(CacheFormat::F16);
    let (gpu, graph) = (gpu.clone(), (case.graph)());
    let weights = GpuWeights::new(gpu, model.clone());
    let loaded = GpuModel::load_as(kernels, &weights, graph, options, &mut |_, _| {}).await?;
    let mut state = Rc::new(loaded).state()?;
    let mut found = Vec::new();
    let mut position = 0;
    for &rows in case.steps {
        let ids: Vec<u32> = (position..position + rows).map(cases::token).collect();
        found.extend(state.step(&ids).await?);
        position += rows;
    }
    Ok(found)
}

/// Steps by how many rows they have: what tells kernels apart.
const SIZES: [(&str, RangeInclusive<u32>); 3] =
    [("many rows", FEW_ROWS + 1..=u32::MAX), ("few rows", 2..=FEW_ROWS), ("one row", 1..=1)];

impl Case {
    /// Compares what was found with what is known, apart for each size of steps.
    fn compare(&self, name: &str, found: &[f32]) -> Vec<SelfTestResult> {
        let sizes = SIZES.into_iter().filter(|(_, rows)| self.steps.iter().any(|step| rows.contains(step)));
        sizes
            .map(|(size, rows)| {
                let answers =
                    self.answers.iter().filter(|(position, _)| rows.contains(&self.step_of(*position)));
                let (mut worst, mut largest) = ((0.0, String::new()), f32::MIN_POSITIVE);
                for &(position, expected) in answers {
                    let row = &found[position as usize * expected.len()..];
                    for (column, (&found, expected)) in row.iter().zip(expected).enumerate() {
                        largest = expected.abs().max(largest);
                        // Nothing is as far away as what is not a number.
                        let apart = (found - expected).abs();
                        let apart = if apart.is_nan() { f32::INFINITY } else { apart };
                        if apart > worst.0 {
                            let place = format!("{found} at {position}, {column}; {expected} was expected");
                            worst = (apart, place);
                        }
                    }
                }
                let error = worst.0 / largest;
                let passed = error <= TOLERANCE;
                let mut detail = format!("normalised error {error:.1e}, allowed {TOLERANCE:.0e}");
                if !passed {
                    detail = format!("{detail}: {}", worst.1);
                }
                SelfTestResult { name: format!("{name}, {size}"), passed, detail }
            })
            .collect()
    }
}

/// What sampling chooses.
async fn chosen(gpu: &Gpu) -> Result<Vec<SelfTestResult>, GpuError> {
    let logits = cases::logits();
    let mut chooser = LogitChooser::new(gpu, logits.len() as u32)?;
    let mut results = Vec::new();
    for (name, sampling, expected) in choices() {
        chooser.begin(&sampling, &[])?;
        let (passed, detail) = match chooser.choose(&logits, expected.len()).await {
            Ok(chosen) => {
                let tokens: Vec<u32> = chosen.iter().map(|chosen| chosen.token).collect();
                (tokens == expected, format!("tokens {tokens:?}; {expected:?} were expected"))
            }
            Err(error) if is_wrong_answer(&error) => (false, error.to_string()),
            Err(error) => return Err(error),
        };
        results.push(SelfTestResult { name: name.to_owned(), passed, detail });
    }
    Ok(results)
}

fn choices() -> [(&'static str, Sampling, &'static [u32]); 2] {
    let drawn = Sampling { temperature: 0.7, top_k: 20, ..Sampling::GREEDY };
    [("greedy sampling", Sampling::GREEDY, &answers::GREEDY), ("random sampling", drawn, &answers::DRAWN)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws from the likeliest twenty, as the definition says.
    #[test]
    fn choices_are_those_of_the_definition() {
        let logits = cases::logits();
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        assert_eq!(answers::GREEDY, [order[0] as u32]);
        let weight = |id: usize| f64::from((logits[id] - logits[order[0]]) / 0.7).exp();
        let all: f64 = order[..20].iter().map(|&id| weight(id)).sum();
        let [mut a, mut b, mut c, mut d] = [1_u32, 2, 3, 4];
        let mut word = || {
            let word = a.wrapping_add(d).rotate_left(7).wrapping_add(a);
            let shifted = b << 9;
            (c, d) = (c ^ a, d ^ b);
            (b, a) = (b ^ c, a ^ d);
            (c, d) = (c ^ shifted, d.rotate_left(11));
            u64::from(word)
        };
        let drawn = answers::DRAWN.map(|_| {
            let (high, low) = (word(), word());
            let mut rest = all * ((high << 32 | low) >> 11) as f64 / (1_u64 << 53) as f64;
            let found = order[..20].iter().find(|&&id| {
                rest -= weight(id);
                rest < 0.0
            });
            *found.unwrap() as u32
        });
        assert_eq!(answers::DRAWN, drawn);
    }
}
