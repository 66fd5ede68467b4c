//! Writes every kernel to a file, as JSON, for tests that compile them elsewhere:
//! `cargo run --package rullama-gpu --example kernels -- FILE` gives `[{"label": …, "wgsl": …}, …]`.

use std::{error::Error, fs};

use rullama_gpu::KernelSpec;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("the file to write is missing")?;
    let kernels: Vec<Value> = KernelSpec::every()
        .iter()
        .map(|spec| json!({ "label": spec.to_string(), "wgsl": spec.compose() }))
        .collect();
    fs::write(file, serde_json::to_string(&kernels)?)?;
    Ok(())
}
