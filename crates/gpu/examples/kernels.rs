//! Writes every kernel to a file, as JSON, for tests that compile them elsewhere:
//! `cargo run --package rullama-gpu --example kernels -- FILE` gives `[{"label": …, "wgsl": …, "pipeline": …}, …]`.
//!
//! Whether a text is valid is known in milliseconds, but a pipeline takes seconds where the GPU is a program. `pipeline`
//! marks as many as are needed to see every file and every constant with each body, formats aside: what a pipeline needs
//! of a device does not depend on them.

use std::{collections::HashSet, error::Error, fs};

use rullama_gpu::{Dialect, Fragment, KernelSpec, weights::pack::PACKED_FORMATS};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("the file to write is missing")?;
    let formats: HashSet<_> =
        PACKED_FORMATS.into_iter().filter_map(Fragment::format).map(Fragment::name).collect();
    let mut seen = HashSet::new();
    // Browsers have no word for matrix units yet.
    let kernels: Vec<Value> = KernelSpec::every()
        .iter()
        .filter(|spec| !spec.uses_matrices())
        .map(|spec| {
            let label = spec.to_string();
            let words = label.split(['+', ' ']).filter(|word| !formats.contains(word));
            let pipeline = words.filter(|word| seen.insert((spec.body(), (*word).to_owned()))).count() > 0;
            json!({ "label": label, "wgsl": spec.compose(Dialect::Browser), "pipeline": pipeline })
        })
        .collect();
    fs::write(file, serde_json::to_string(&kernels)?)?;
    Ok(())
}
