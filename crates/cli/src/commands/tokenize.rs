//! `rullama tokenize`.

use rullama_tokenizer::{EncodeOptions, SpecialInput, SpecialOutput, Tokenizer};
use serde_json::json;

use super::{read_input, read_standard_input};
use crate::{arguments::TokenizeArguments, failure::Failure, model, output};

pub(super) async fn run(arguments: &TokenizeArguments) -> Result<(), Failure> {
    let tokenizer = model::open(&arguments.model).await?.tokenizer()?;
    let text = match (&arguments.text, &arguments.file) {
        (Some(text), _) if text == "-" => read_standard_input()?,
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(file)) => read_input(file)?,
        (None, None) => read_standard_input()?,
    };
    let special = if arguments.plain { SpecialInput::Text } else { SpecialInput::Parse };
    let ids = tokenizer.encode_bytes(&text, EncodeOptions { special, bos: arguments.bos });
    let pieces = ids.iter().map(|&id| piece(&tokenizer, id)).collect::<Result<Vec<_>, _>>()?;
    if arguments.json {
        return Ok(output::json(&json!({ "ids": ids, "pieces": pieces }))?);
    }
    let lines: Vec<String> =
        ids.iter().zip(&pieces).map(|(id, piece)| format!("{id:>6}  {piece:?}\n")).collect();
    Ok(output::text(&lines.concat())?)
}

/// The text a token stands for; for a byte that is no text by itself, the token's own name.
fn piece(tokenizer: &Tokenizer, id: u32) -> Result<String, Failure> {
    let bytes = tokenizer.piece(id, SpecialOutput::All)?;
    Ok(match String::from_utf8(bytes.into_owned()) {
        Ok(text) => text,
        Err(_) => String::from_utf8_lossy(tokenizer.token_text(id).unwrap_or_default()).into_owned(),
    })
}
