//! Which of the two prompt styles a model was trained with.

use rullama_chat::PromptStyle;
use rullama_gemma::per_layer_width;
use rullama_gguf::Model;

use crate::EngineError;

/// The style of prompts that a model was trained with. The file's metadata decides, never its name, so that every
/// program renders a file in the same way.
///
/// The small members of the family, E2B and E4B, are those with per-layer embeddings. 12B, 26B and 31B have none.
///
/// # Errors
///
/// If the metadata gives the width of per-layer embeddings, and not as a number.
pub fn prompt_style(model: &Model) -> Result<PromptStyle, EngineError> {
    Ok(match per_layer_width(model)? {
        Some(_) => PromptStyle::Small,
        None => PromptStyle::Large,
    })
}
