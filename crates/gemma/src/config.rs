//! A model's description in numbers, read once into types that cannot be wrong.

use rullama_gguf::{Metadata, Model};
use rullama_graph::Ahead;

use crate::{GemmaError, names};

/// What the metadata says of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Columns of the residual stream.
    pub width: u32,
    /// Tokens in the vocabulary.
    pub vocabulary: u32,
    /// Tokens it was trained to remember.
    pub context_length: u32,
    /// Keeps norms away from zero.
    pub eps: f32,
    /// Columns of each layer's own embedding, if it has such.
    pub per_layer_width: Option<u32>,
    /// The bound of the logits.
    pub soft_cap: Option<f32>,
    /// Experts beside the dense feed-forward.
    pub experts: Option<ExpertConfig>,
    /// The layers, first to last.
    pub layers: Vec<LayerConfig>,
}

/// A mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertConfig {
    /// How many there are.
    pub count: u32,
    /// How many a token is sent to.
    pub used: u32,
    /// Hidden columns of each.
    pub width: u32,
}

/// One layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerConfig {
    /// How far back it looks; without it, to the beginning.
    pub window: Option<u32>,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    pub kv_heads: u32,
    /// Columns of a head.
    pub head_width: u32,
    /// The base of its rotary frequencies.
    pub rope_base: f32,
    /// Hidden columns of the dense feed-forward.
    pub feed_forward_width: u32,
    /// Whose keys and values it reads.
    pub kv: KvSource,
}

/// Whose keys and values a layer reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvSource {
    /// Its own.
    Own,
    /// Those of an earlier layer.
    Donor(u32),
}

impl Config {
    /// Reads and checks the description of a Gemma 4 text model.
    pub fn read(model: &Model) -> Result<Self, GemmaError> {
        let metadata = model.metadata();
        let found = metadata.optional_str("general.architecture")?.unwrap_or_default();
        if found != "gemma4" {
            return Err(GemmaError::Architecture { found: found.to_owned() });
        }
        if model.tensors().next().is_none() {
            return Err(GemmaError::NoWeights);
        }
        let meta = metadata.section("gemma4");
        let layer_count = within(&meta, "block_count", 1..=1024, "1 to 1024 layers")?;
        let width = within(&meta, "embedding_length", 1..=65_536, "1 to 65536 columns")?;
        Ok(Self {
            width,
            vocabulary: vocabulary(model, metadata)?,
            context_length: within(&meta, "context_length", 1..=u32::MAX, "at least 1")?,
            eps: positive(&meta, "attention.layer_norm_rms_epsilon")?,
            per_layer_width: per_layer_width(model)?,
            soft_cap: match meta.optional_f32("final_logit_softcapping")? {
                Some(0.0) | None => None,
                Some(_) => Some(positive(&meta, "final_logit_softcapping")?),
            },
            experts: ExpertConfig::read(&meta)?,
            layers: layers(&meta, layer_count)?,
        })
    }

    /// What sliding layers see of the picture that a row belongs to. No file says it: members with per-layer embeddings read
    /// pictures in order, as they read text and all read sound; the others see a picture as a whole.
    pub fn ahead(&self) -> Ahead {
        if self.per_layer_width.is_some() { Ahead::Nothing } else { Ahead::Span }
    }

    /// The last layer that has keys and values of its own.
    pub fn last_owner(&self) -> usize {
        self.layers.iter().rposition(|layer| layer.kv == KvSource::Own).unwrap_or(0)
    }
}

impl ExpertConfig {
    fn read(meta: &Metadata<'_>) -> Result<Option<Self>, GemmaError> {
        if meta.optional_u32("expert_count")?.unwrap_or(0) == 0 {
            return Ok(None);
        }
        let count = within(meta, "expert_count", 1..=65_536, "1 to 65536 experts")?;
        let used = within(meta, "expert_used_count", 1..=count, "between 1 and `expert_count`")?;
        let width = within(meta, "expert_feed_forward_length", 1..=1 << 20, "1 to 1048576 columns")?;
        Ok(Some(Self { count, used, width }))
    }
}

fn layers(meta: &Metadata<'_>, count: u32) -> Result<Vec<LayerConfig>, GemmaError> {
    let per_layer = |key: &'static str| -> Result<Vec<u32>, GemmaError> {
        let values = meta.per_layer_u32(key, count as usize)?;
        match values.iter().find(|value| !(1..=1 << 20).contains(*value)) {
            Some(found) => {
                Err(GemmaError::OutOfRange { key, found: found.to_string(), expected: "1 to 1048576" })
            }
            None => Ok(values),
        }
    };
    let sliding = meta.per_layer_bool("attention.sliding_window_pattern", count as usize)?;
    let heads = per_layer("attention.head_count")?;
    let kv_heads = per_layer("attention.head_count_kv")?;
    let feed_forward = per_layer("feed_forward_length")?;
    let shared = meta.optional_u32("attention.shared_kv_layers")?.unwrap_or(0);
    if shared >= count {
        let (key, found) = ("attention.shared_kv_layers", shared.to_string());
        return Err(GemmaError::OutOfRange { key, found, expected: "fewer than `block_count`" });
    }
    let owners = (count - shared) as usize;

    // Read only where some layer needs them: a file without sliding layers need not describe any.
    let has = |kind: bool| sliding.contains(&kind);
    let global = has(false).then(|| Kind::global(meta)).transpose()?;
    let local = has(true).then(|| Kind::sliding(meta)).transpose()?;

    let mut layers = Vec::new();
    for index in 0..count as usize {
        let layer = index as u32;
        let kind = if sliding[index] { &local } else { &global };
        let Some(kind) = kind else { unreachable!("read above for every kind that occurs") };
        let (heads, kv_heads) = (heads[index], kv_heads[index]);
        if !heads.is_multiple_of(kv_heads) {
            return Err(GemmaError::HeadCounts { layer, heads, kv_heads });
        }
        if kind.key_width != kind.value_width {
            let (keys, values) = (kind.key_width, kind.value_width);
            return Err(GemmaError::HeadWidths { layer, keys, values });
        }
        // Every later product of heads and columns fits 32 bits; key heads are fewer than query heads.
        let head_width = kind.key_width;
        if u64::from(heads) * u64::from(head_width) > 1 << 24 {
            return Err(GemmaError::TooWide { layer, heads, head_width });
        }
        let kv = if index < owners {
            KvSource::Own
        } else {
            let donor = (0..owners).rev().find(|&donor| sliding[donor] == sliding[index]);
            let kind = if sliding[index] { "sliding" } else { "global" };
            KvSource::Donor(donor.ok_or(GemmaError::NoDonor { layer, kind })? as u32)
        };
        layers.push(LayerConfig {
            window: kind.window,
            heads,
            kv_heads,
            head_width,
            rope_base: kind.rope_base,
            feed_forward_width: feed_forward[index],
            kv,
        });
    }
    borrowers_match_donors(&layers)?;
    Ok(layers)
}

/// What all sliding layers, or all global ones, have in common.
struct Kind {
    window: Option<u32>,
    key_width: u32,
    value_width: u32,
    rope_base: f32,
}

impl Kind {
    fn global(meta: &Metadata<'_>) -> Result<Self, GemmaError> {
        Ok(Self {
            window: None,
            key_width: head_width(meta, "attention.key_length")?,
            value_width: head_width(meta, "attention.value_length")?,
            rope_base: positive(meta, "rope.freq_base")?,
        })
    }

    fn sliding(meta: &Metadata<'_>) -> Result<Self, GemmaError> {
        // Some converters used an older name.
        let base =
            if meta.contains("rope.freq_base_swa") { "rope.freq_base_swa" } else { "rope.local.freq_base" };
        Ok(Self {
            window: Some(within(meta, "attention.sliding_window", 1..=1 << 30, "at least 1")?),
            key_width: head_width(meta, "attention.key_length_swa")?,
            value_width: head_width(meta, "attention.value_length_swa")?,
            rope_base: positive(meta, base)?,
        })
    }
}

/// A head is rotated in pairs of columns, so its width is even.
fn head_width(meta: &Metadata<'_>, key: &'static str) -> Result<u32, GemmaError> {
    let width = within(meta, key, 2..=65_536, "2 to 65536 columns")?;
    if width.is_multiple_of(2) {
        Ok(width)
    } else {
        Err(GemmaError::OutOfRange { key, found: width.to_string(), expected: "an even number" })
    }
}

/// A borrowing layer reads its donor's cache, so both must have the same key heads.
fn borrowers_match_donors(layers: &[LayerConfig]) -> Result<(), GemmaError> {
    for (index, layer) in layers.iter().enumerate() {
        if let KvSource::Donor(donor) = layer.kv
            && layer.kv_heads != layers[donor as usize].kv_heads
        {
            let (layer, heads) = (index as u32, layer.heads);
            return Err(GemmaError::HeadCounts { layer, heads, kv_heads: layers[donor as usize].kv_heads });
        }
    }
    Ok(())
}

/// The columns of each layer's own embedding, if the model has such embeddings. Reads metadata alone, so it also serves
/// files without weights.
pub fn per_layer_width(model: &Model) -> Result<Option<u32>, GemmaError> {
    const KEY: &str = "embedding_length_per_layer_input";
    let metadata = model.metadata();
    let meta = metadata.section("gemma4");
    match meta.optional_u32(KEY)? {
        None | Some(0) => Ok(None),
        Some(_) => within(&meta, KEY, 1..=65_536, "1 to 65536 columns").map(Some),
    }
}

/// The vocabulary is as large as the embedding table, and the tokenizer, if there is one, agrees.
fn vocabulary(model: &Model, metadata: Metadata<'_>) -> Result<u32, GemmaError> {
    let name = names::EMBEDDING;
    let table = model.tensor(name).ok_or(GemmaError::MissingTensor { name: name.to_owned() })?;
    let rows = table.shape.rows();
    let key = "tokenizer.ggml.tokens";
    let tokens = metadata.optional_strings(key)?.map(|tokens| tokens.len() as u64);
    if tokens.is_some_and(|tokens| tokens != rows) {
        let found = format!("a list of {}", tokens.unwrap_or_default());
        return Err(GemmaError::OutOfRange { key, found, expected: "a token for each row of the embedding" });
    }
    u32::try_from(rows).ok().filter(|&rows| rows > 0).ok_or(GemmaError::OutOfRange {
        key,
        found: rows.to_string(),
        expected: "at least one token, and fewer than 2^32",
    })
}

pub(crate) fn within(
    meta: &Metadata<'_>,
    key: &'static str,
    range: std::ops::RangeInclusive<u32>,
    expected: &'static str,
) -> Result<u32, GemmaError> {
    let found = meta.u32(key)?;
    if range.contains(&found) {
        Ok(found)
    } else {
        Err(GemmaError::OutOfRange { key, found: found.to_string(), expected })
    }
}

pub(crate) fn positive(meta: &Metadata<'_>, key: &'static str) -> Result<f32, GemmaError> {
    let found = meta.f32(key)?;
    if found.is_finite() && found > 0.0 {
        Ok(found)
    } else {
        Err(GemmaError::OutOfRange { key, found: found.to_string(), expected: "a positive number" })
    }
}
