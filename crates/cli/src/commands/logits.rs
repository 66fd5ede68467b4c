//! `rullama logits`.

use std::{fs, io::Write, path::Path};

use rullama_engine::Logits;
use serde_json::json;

use crate::{arguments::LogitsArguments, engine, failure::Failure, model, output};

pub(super) async fn run(arguments: &LogitsArguments) -> Result<(), Failure> {
    let opened = model::open(&arguments.model).await?;
    let engine = engine::load(opened, Some(arguments.backend), &arguments.load, None).await?;
    let logits = engine::session(&engine)?.logits(&arguments.ids.0, arguments.all).await?;
    let out = &arguments.out;
    write(out, &logits)
        .map_err(|error| Failure::new(format!("`{}` cannot be written", out.display())).caused_by(error))
        .map_err(|failure| failure.hint("check that the folder exists, has room and may be written to"))?;
    if arguments.json {
        let (rows, vocabulary) = (logits.rows(), logits.vocabulary);
        return Ok(output::json(&json!({ "rows": rows, "vocabulary": vocabulary, "path": out }))?);
    }
    let shape = format!("{} × {} logits in {}", logits.rows(), logits.vocabulary, out.display());
    Ok(output::line(&shape)?)
}

/// Writes a NumPy file of version 1: a line of Python that describes the array, padded so that the data
/// begins at a multiple of 64 bytes.
fn write(path: &Path, logits: &Logits) -> std::io::Result<()> {
    let (rows, columns) = (logits.rows(), logits.vocabulary);
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.extend(std::iter::repeat_n(' ', length - header.len() - 1));
    header.push('\n');
    let mut file = std::io::BufWriter::new(fs::File::create(path)?);
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&(length as u16).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    for value in &logits.values {
        file.write_all(&value.to_le_bytes())?;
    }
    file.flush()
}
