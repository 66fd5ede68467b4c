//! `rullama logits`: the logits for a prompt, in a NumPy file.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use rullama_engine::Logits;
use rullama_gguf::WriteError;
use serde_json::json;

use super::written;
use crate::{
    arguments::LogitsArguments,
    engine,
    failure::Failure,
    model, output, signals,
    whole_file::{self, Readers},
};

pub(super) async fn run(arguments: &LogitsArguments) -> Result<(), Failure> {
    let opened = model::open(&arguments.model).await?;
    let out = &arguments.out;
    // Checked before the logits are computed, which takes time.
    let target = whole_file::target(out)?;
    let engine = engine::load(opened, arguments.backend, &arguments.load, None).await?;
    let logits = engine::session(&engine)?.logits(&arguments.ids.0, arguments.all).await?;
    let logits = Arc::new(logits);
    keep(out, target, Arc::clone(&logits)).await?;
    if arguments.json {
        let (rows, vocabulary) = (logits.rows(), logits.vocabulary);
        return Ok(output::json(&json!({ "rows": rows, "vocabulary": vocabulary, "path": out }))?);
    }
    let shape = format!("wrote {} × {} logits to {}", logits.rows(), logits.vocabulary, out.display());
    Ok(output::line(&shape)?)
}

/// Writes the file completely or not at all.
async fn keep(path: &Path, target: PathBuf, logits: Arc<Logits>) -> Result<(), Failure> {
    let needed = 4 * logits.values.len() as u64;
    let stop = signals::stop_flag()?;
    let in_writer = Arc::clone(&stop);
    // On another thread, so that this one can handle signals.
    let writing = tokio::task::spawn_blocking(move || {
        let write = |output: &mut whole_file::Output<'_>| Ok(write(output, &logits)?);
        whole_file::create(&target, Readers::Usual, &in_writer, write, |_| Ok(()))
    });
    match writing.await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) if stop.load(Ordering::Relaxed) => Err(written::stopped(path)),
        Ok(Err(WriteError::Io(error))) => Err(written::refused(path, error, needed)),
        Ok(Err(error)) => Err(Failure::new("the logits can't be written").caused_by(error)),
        Err(error) => Err(Failure::new("the logits can't be written").caused_by(error)),
    }
}

/// Writes a NumPy file of version 1: a line of Python that describes the array, padded so that the data
/// begins at a multiple of 64 bytes.
fn write(file: &mut impl Write, logits: &Logits) -> io::Result<()> {
    let (rows, columns) = (logits.rows(), logits.vocabulary);
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.extend(std::iter::repeat_n(' ', length - header.len() - 1));
    header.push('\n');
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&(length as u16).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    for value in &logits.values {
        file.write_all(&value.to_le_bytes())?;
    }
    Ok(())
}
