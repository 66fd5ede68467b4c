//! Tests of the sampler through its public face.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod definition;
mod edges;
mod filters;
mod frequencies;
mod logprobs;
mod penalties;
mod seeds;

use rullama_engine::{Sampler, SamplingOptions};

/// Every filter and penalty off, at temperature 1.
fn plain() -> SamplingOptions {
    SamplingOptions { top_k: 0, top_p: 1.0, seed: Some(1), ..SamplingOptions::default() }
}

fn sampler(options: &SamplingOptions) -> Sampler {
    Sampler::new(options, &[]).unwrap()
}

/// The ids that options leave in question, the most probable first.
fn ids(options: &SamplingOptions, logits: &[f32]) -> Vec<u32> {
    sampler(options).distribution(logits, &[]).unwrap().into_iter().map(|(id, _)| id).collect()
}

/// Logits of which these are the probabilities.
fn logits_of(probabilities: &[f32]) -> Vec<f32> {
    probabilities.iter().map(|probability| probability.ln()).collect()
}
