//! `rullama encode`: what a model reads of an image or a sound, in a NumPy file.

use rullama_gemma::Medium;
use serde_json::json;

use super::npy::Matrix;
use crate::{
    arguments::EncodeArguments, engine, failure::Failure, media::Decoded, model, output, whole_file,
};

pub(super) async fn run(arguments: &EncodeArguments) -> Result<(), Failure> {
    let EncodeArguments { image, audio, towers, out, .. } = arguments;
    let opened = model::open(&arguments.model).await?.with_towers(towers.projector.as_deref()).await?;
    let target = whole_file::target(out)?;
    let decoded = match (image, audio) {
        (Some(path), _) => Decoded::read(path, Medium::Vision)?,
        (None, Some(path)) => Decoded::read(path, Medium::Audio)?,
        (None, None) => return Err(Failure::new("there is nothing to encode").usage()),
    };
    decoded.check(&opened.model)?;
    let (engine, _) = engine::load_towers(opened, arguments.backend).await?;
    let encoded = decoded.encode(&engine, towers.budget.unwrap_or_default()).await?;
    let matrix = Matrix { values: encoded.rows().values.clone(), columns: encoded.rows().width };
    let (rows, width) = (matrix.rows(), matrix.columns);
    matrix.keep(out, target).await?;
    if arguments.json {
        return Ok(output::json(&json!({ "rows": rows, "width": width, "path": out }))?);
    }
    Ok(output::line(&format!("wrote {rows} rows of {width} values to {}", out.display()))?)
}
