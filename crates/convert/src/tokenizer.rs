//! The tokenizer, from Hugging Face's description to the keys that llama.cpp's converter writes.
//!
//! Ids are whatever the vocabulary says, which may be a part of the real one: special tokens are known by their
//! texts and by what the configuration calls them.

use std::collections::{BTreeMap, HashMap};

use rullama_gguf::Writer;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    ConvertError,
    config::{Described, Ids},
    files::Folder,
    metadata::Generation,
};

/// Token types, as files number them.
const NORMAL: i32 = 1;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const UNUSED: i32 = 5;
const BYTE: i32 = 6;

/// Special tokens that parsers of replies must see.
const VISIBLE: [&str; 7] = [
    "<|channel>",
    "<channel|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|tool_response>",
    "<tool_response|>",
    "<|\"|>",
];

/// The end of a turn, at which a reply ends.
const END_OF_TURN: &str = "<turn|>";

/// Unused in this kind of tokenizer, and the same for all in converted files.
const SCORE: f32 = -1000.0;

#[derive(Deserialize)]
struct TokenizerFile {
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    model: Bpe,
}

#[derive(Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct Bpe {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    byte_fallback: bool,
    vocab: HashMap<String, u32>,
    #[serde(default)]
    merges: Vec<Merge>,
}

/// Two texts that become one, written in the newer or in the older way.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Pair(String, String),
    Line(String),
}

/// What files besides the vocabulary call a special token.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenizerConfig {
    bos_token: Option<TokenName>,
    eos_token: Option<TokenName>,
    unk_token: Option<TokenName>,
    pad_token: Option<TokenName>,
    mask_token: Option<TokenName>,
    chat_template: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TokenName {
    Text(String),
    Token { content: String },
}

/// Sets the tokenizer's keys and the chat template.
pub(crate) fn set(
    header: &mut Writer,
    folder: Folder<'_>,
    described: &Described,
    generation: &Generation,
) -> Result<(), ConvertError> {
    let file: TokenizerFile = folder.json("tokenizer.json")?;
    let config: TokenizerConfig = folder.optional_json("tokenizer_config.json")?.unwrap_or_default();
    let vocabulary = Vocabulary::new(&file, described.text.vocabulary)?;
    vocabulary.check(&described.ids)?;
    let merges = merges(&file.model.merges)?;

    header.set("tokenizer.ggml.model", "gemma4")?;
    let texts: Vec<&str> = vocabulary.texts.iter().map(String::as_str).collect();
    header.set("tokenizer.ggml.tokens", &texts[..])?;
    header.set("tokenizer.ggml.scores", &vec![SCORE; texts.len()][..])?;
    header.set("tokenizer.ggml.token_type", &vocabulary.types[..])?;
    let merges: Vec<&str> = merges.iter().map(String::as_str).collect();
    header.set("tokenizer.ggml.merges", &merges[..])?;

    let ids = &described.ids;
    let ends = generation.eos_token_id.as_ref().or(ids.eos_token_id.as_ref());
    let ends: &[u32] = ends.map_or(&[], |ends| ends.ids());
    for (key, name, id) in [
        ("bos_token_id", &config.bos_token, ids.bos_token_id),
        ("eos_token_id", &config.eos_token, ends.first().copied()),
        ("unknown_token_id", &config.unk_token, None),
        ("padding_token_id", &config.pad_token, ids.pad_token_id),
        ("mask_token_id", &config.mask_token, None),
    ] {
        let named = name.as_ref().and_then(|name| vocabulary.id(name.text()));
        if let Some(id) = named.or(id) {
            header.set(&format!("tokenizer.ggml.{key}"), vocabulary.known(key, id)?)?;
        }
    }
    if let Some(id) = vocabulary.id(END_OF_TURN) {
        header.set("tokenizer.ggml.eot_token_id", id)?;
    }
    if ends.len() > 1 {
        let known = ends.iter().map(|&id| vocabulary.known("eos_token_ids", id).map(|id| id as i32));
        header.set("tokenizer.ggml.eos_token_ids", &known.collect::<Result<Vec<_>, _>>()?[..])?;
    }
    if let Some(suppressed) = generation.suppress_tokens.as_ref().filter(|list| !list.is_empty()) {
        header.set("tokenizer.ggml.suppress_tokens", &suppressed[..])?;
    }
    header.set("tokenizer.ggml.add_bos_token", true)?;
    header.set("tokenizer.ggml.add_space_prefix", false)?;
    if let Some(template) = chat_template(folder, config.chat_template)? {
        header.set("tokenizer.chat_template", template.as_str())?;
    }
    Ok(())
}

impl TokenName {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Token { content: text } => text,
        }
    }
}

/// Texts and types by id.
struct Vocabulary {
    texts: Vec<String>,
    types: Vec<i32>,
    /// Special tokens by text; others are not asked for.
    added: BTreeMap<String, u32>,
}

impl Vocabulary {
    /// One token for each of `rows` rows of the embedding table.
    fn new(file: &TokenizerFile, rows: u32) -> Result<Self, ConvertError> {
        let refuse = |reason: String| ConvertError::Tokenizer { reason };
        let model = &file.model;
        if model.kind.as_deref() != Some("BPE") || !model.byte_fallback {
            return Err(refuse("it is not a BPE tokenizer with byte fallback".to_owned()));
        }
        let place = |id: u32, text: &str| {
            if id < rows {
                return Ok(id as usize);
            }
            Err(refuse(format!("token `{text}` has id {id}, but the embedding table has {rows} rows")))
        };
        let mut texts: Vec<Option<&str>> = vec![None; rows as usize];
        let mut types = vec![NORMAL; rows as usize];
        for (text, &id) in &model.vocab {
            let entry = &mut texts[place(id, text)?];
            if let Some(other) = entry.replace(text) {
                return Err(refuse(format!("`{other}` and `{text}` both have id {id}")));
            }
            if is_byte(text) {
                types[id as usize] = BYTE;
            }
        }
        let mut added = BTreeMap::new();
        for token in &file.added_tokens {
            let id = place(token.id, &token.content)?;
            let in_model = model.vocab.get(&token.content) == Some(&token.id);
            if let Some(other) = texts[id].replace(&token.content)
                && other != token.content
            {
                return Err(refuse(format!("`{other}` and `{}` both have id {id}", token.content)));
            }
            let visible = VISIBLE.contains(&token.content.as_str());
            types[id] = match (token.special, in_model) {
                _ if visible => USER_DEFINED,
                (true, _) => CONTROL,
                // As llama.cpp has it: what the model knows anyway is text like any other.
                (false, true) => types[id],
                (false, false) => USER_DEFINED,
            };
            added.insert(token.content.clone(), token.id);
        }
        let texts = texts.into_iter().enumerate().map(|(id, text)| match text {
            Some(text) => text.to_owned(),
            None => {
                types[id] = UNUSED;
                format!("[PAD{id}]")
            }
        });
        Ok(Self { texts: texts.collect(), types, added })
    }

    /// The special token with this text.
    fn id(&self, text: &str) -> Option<u32> {
        self.added.get(text).copied()
    }

    /// The id, if there is such a token.
    fn known(&self, key: &str, id: u32) -> Result<u32, ConvertError> {
        if (id as usize) < self.texts.len() {
            return Ok(id);
        }
        let reason = format!("`{key}` is {id}, but there are {} tokens", self.texts.len());
        Err(ConvertError::Tokenizer { reason })
    }

    /// Readers find these by their texts; the configuration must mean the same tokens.
    fn check(&self, ids: &Ids) -> Result<(), ConvertError> {
        for (key, id, expected) in [
            ("image_token_id", ids.image_token_id, "<|image|>"),
            ("boi_token_id", ids.boi_token_id, "<|image>"),
            ("eoi_token_id", ids.eoi_token_id, "<image|>"),
            ("audio_token_id", ids.audio_token_id, "<|audio|>"),
            ("boa_token_id", ids.boa_token_id, "<|audio>"),
            ("eoa_token_index", ids.eoa_token_index, "<audio|>"),
            ("video_token_id", ids.video_token_id, "<|video|>"),
        ] {
            let Some(id) = id else { continue };
            let found = &self.texts[self.known(key, id)? as usize];
            if found != expected {
                return Err(ConvertError::TokenId { key, id, found: found.clone(), expected });
            }
        }
        Ok(())
    }
}

/// Whether a text such as `<0x0A>` stands for a byte.
fn is_byte(text: &str) -> bool {
    let digits = text.strip_prefix("<0x").and_then(|text| text.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Pairs with a space between them. In this tokenizer no text has a space of its own.
fn merges(merges: &[Merge]) -> Result<Vec<String>, ConvertError> {
    let lines = merges.iter().map(|merge| match merge {
        Merge::Pair(left, right) => format!("{left} {right}"),
        Merge::Line(line) => line.clone(),
    });
    lines
        .map(|line| {
            let parts = line.split(' ').filter(|part| !part.is_empty()).count();
            if parts == 2 && line.matches(' ').count() == 1 {
                return Ok(line);
            }
            Err(ConvertError::Tokenizer { reason: format!("{line:?} is not a merge of two texts") })
        })
        .collect()
}

/// The template: a file of its own, or part of another.
fn chat_template(folder: Folder<'_>, in_config: Option<Value>) -> Result<Option<String>, ConvertError> {
    #[derive(Deserialize)]
    struct TemplateFile {
        chat_template: Option<Value>,
    }

    if let Some(text) = folder.optional_text("chat_template.jinja")? {
        return Ok(Some(text));
    }
    let in_file = folder.optional_json::<TemplateFile>("chat_template.json")?;
    let value = in_file.and_then(|file| file.chat_template).or(in_config);
    Ok(match value {
        Some(Value::String(text)) => Some(text),
        // Several by name; the one for chats is the default.
        Some(Value::Array(list)) => {
            let default = list.iter().find(|entry| entry["name"] == "default");
            default.and_then(|entry| entry["template"].as_str()).map(str::to_owned)
        }
        _ => None,
    })
}
