//! Where the rows of images and sound stand in a prompt: between two tokens that mark their beginning and end.

use rullama_chat::{Message, Piece, Prompt};
use rullama_gemma::Medium;
use rullama_tokenizer::{EncodeOptions, Tokenizer};

use super::Media;
use crate::{EngineError, MediaSpan, PromptRows};

/// Tokens around the rows of a medium, and the placeholder of each row.
struct Marks {
    begin: &'static str,
    row: &'static str,
    end: &'static str,
}

fn marks(medium: Medium) -> Marks {
    match medium {
        Medium::Vision => Marks { begin: "<|image>", row: "<|image|>", end: "<image|>" },
        Medium::Audio => Marks { begin: "<|audio>", row: "<|audio|>", end: "<audio|>" },
    }
}

/// The rows of a prompt. Text between media is tokenized by itself, as Ollama does it.
pub(crate) fn placed(
    prompt: &Prompt,
    messages: &[Message],
    media: &Media,
    tokenizer: &Tokenizer,
) -> Result<PromptRows, EngineError> {
    let mut rows = PromptRows::default();
    let id = |token: &'static str| tokenizer.token_id(token).ok_or(EngineError::MissingToken { token });
    for piece in &prompt.pieces {
        match piece {
            Piece::Text(text) => {
                let options = EncodeOptions { bos: rows.ids.is_empty(), ..EncodeOptions::PART };
                rows.ids.extend(tokenizer.encode(text, options));
            }
            Piece::Media { index } => {
                let source = prompt.media[*index];
                let name = messages[source.message].media().nth(source.medium).unwrap_or_default();
                let attachment = media.get(name).ok_or_else(|| {
                    let name = name.chars().take(SHOWN).collect();
                    EngineError::UnknownMedia { message: source.message, name }
                })?;
                let marks = marks(attachment.medium);
                rows.ids.push(id(marks.begin)?);
                let at = rows.ids.len();
                rows.ids.resize(at + attachment.rows.len(), id(marks.row)?);
                rows.media.push(MediaSpan { at, rows: attachment.rows.clone() });
                rows.ids.push(id(marks.end)?);
            }
        }
    }
    Ok(rows)
}

/// Characters of a name that an error shows: some names are whole files in base64.
const SHOWN: usize = 40;
