//! Writes every kernel to a file, as JSON, for tests that compile them elsewhere:
//! `cargo run --package rullama-gpu --example kernels -- FILE` gives `[{"label": …, "wgsl": …, "pipeline": …}, …]`.
//!
//! Whether a text is valid is known in milliseconds, but a pipeline takes seconds where the GPU is a program. `pipeline`
//! marks as many as are needed to see every file and every choice with each body, formats aside: what a pipeline needs of a
//! device does not depend on them.

#![expect(clippy::unwrap_used, reason = "a list that cannot be made is a failure")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::{collections::HashSet, error::Error, fs};

use common::catalogue;
use rullama_gpu::{Catalogue, Dialect, Fragment};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("the file to write is missing")?;
    let formats: HashSet<_> =
        Catalogue::formats().into_iter().map(|(_, fragment)| Fragment::name(fragment)).collect();
    let mut seen = HashSet::new();
    // Browsers have no word for matrix units yet.
    let kernels: Vec<Value> = catalogue::kernels()
        .iter()
        .filter(|spec| !spec.uses_matrices())
        .map(|spec| {
            let label = spec.to_string();
            let choices = catalogue::key(spec).into_iter().filter(|word| !formats.contains(word.as_str()));
            let pipeline = choices.filter(|word| seen.insert((spec.body(), word.clone()))).count() > 0;
            json!({ "label": label, "wgsl": spec.compose(Dialect::Browser), "pipeline": pipeline })
        })
        .collect();
    fs::write(file, serde_json::to_string(&kernels)?)?;
    Ok(())
}
