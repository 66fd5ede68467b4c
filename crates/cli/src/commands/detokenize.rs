//! `rullama detokenize`.

use rullama_tokenizer::SpecialOutput;
use serde_json::json;

use crate::{arguments::DetokenizeArguments, failure::Failure, model, output};

pub(super) async fn run(arguments: &DetokenizeArguments) -> Result<(), Failure> {
    let tokenizer = model::open(&arguments.model).await?.tokenizer()?;
    if arguments.json {
        let text = tokenizer.decode(&arguments.ids.0, SpecialOutput::All)?;
        return Ok(output::json(&json!({ "text": text }))?);
    }
    // The bytes as they are, so that `tokenize` and `detokenize` undo each other in a pipe.
    let bytes = tokenizer.decode_bytes(&arguments.ids.0, SpecialOutput::All)?;
    Ok(output::verbatim(&bytes)?)
}
