//! Reading a tokenizer from the metadata of a GGUF file.
//!
//! Two dialects describe the same tokenizer. llama.cpp's conversion names the model `gemma4`. Ollama's
//! names it `llama`, which elsewhere means a tokenizer of quite another kind; the merges, which that other
//! kind does not have, and the name of the architecture tell them apart.

use rullama_gguf::{Header, Metadata};

use crate::{Parts, Roles, Tokenizer, TokenizerError};

impl Tokenizer {
    /// Reads the tokenizer that `header` describes. Nothing of the header is kept.
    ///
    /// # Errors
    ///
    /// If the header describes another kind of tokenizer, lacks a key or has one of the wrong type, and
    /// for the reasons that [`Tokenizer::from_parts`] has.
    pub fn from_gguf(header: &Header) -> Result<Self, TokenizerError> {
        let metadata = header.metadata();
        check_model(&metadata)?;
        let keys = metadata.section("tokenizer.ggml");
        let tokens = keys.strings("tokens")?;
        let merges = keys.strings("merges")?;
        let types = keys.optional_i32s("token_type")?.unwrap_or_default();
        // Absent types stand for all normal; an empty list is only right for an empty vocabulary.
        if types.is_empty() && keys.contains("token_type") && !tokens.is_empty() {
            return Err(TokenizerError::TypeCount { found: 0, expected: tokens.len() });
        }

        let ids = |key: &'static str| -> Result<Vec<u32>, TokenizerError> {
            let found = keys.optional_i32s(key)?.unwrap_or_default();
            found.into_iter().map(|id| check_id(key, id, tokens.len())).collect()
        };
        let mut ends = ids("eos_token_ids")?;
        if let Some(id) = keys.optional_u32("eot_token_id")? {
            if id as usize >= tokens.len() {
                let (key, tokens) = ("eot_token_id", tokens.len());
                return Err(TokenizerError::RoleOutOfRange { key, id: id.into(), tokens });
            }
            ends.push(id);
        }
        let suppressed = keys.optional_i32s("suppress_tokens")?.unwrap_or_default();
        let roles = Roles {
            bos: keys.optional_u32("bos_token_id")?,
            eos: keys.optional_u32("eos_token_id")?,
            unknown: keys.optional_u32("unknown_token_id")?,
            padding: keys.optional_u32("padding_token_id")?,
            mask: keys.optional_u32("mask_token_id")?,
            ends,
            suppressed: suppressed.into_iter().filter_map(|id| u32::try_from(id).ok()).collect(),
        };
        Self::from_parts(Parts { tokens: tokens.iter(), types: &types, merges: merges.iter(), roles })
    }
}

fn check_model(metadata: &Metadata<'_>) -> Result<(), TokenizerError> {
    let keys = metadata.section("tokenizer.ggml");
    let model = keys.str("model")?;
    let unsupported = |found: String| Err(TokenizerError::Unsupported { found });
    match model {
        "gemma4" => Ok(()),
        "llama" => {
            let architecture = metadata.optional_str("general.architecture")?.unwrap_or("");
            let pre = keys.optional_str("pre")?.unwrap_or("");
            if !architecture.starts_with("gemma4") && pre != "gemma4" {
                return unsupported(format!("the model `llama` for the architecture `{architecture}`"));
            }
            if !keys.contains("merges") {
                return unsupported("the model `llama` without merges".to_owned());
            }
            Ok(())
        }
        other => unsupported(format!("the model `{other}`")),
    }
}

fn check_id(key: &'static str, id: i32, tokens: usize) -> Result<u32, TokenizerError> {
    u32::try_from(id).map_err(|_| TokenizerError::RoleOutOfRange { key, id: id.into(), tokens })
}
