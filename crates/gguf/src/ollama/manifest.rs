//! The JSON files of a store: manifests and configurations.

use serde::Deserialize;

use super::Digest;

/// What a model is made of.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The blob that holds the model's [`Config`].
    pub config: Layer,
    /// Everything else.
    #[serde(default)]
    pub layers: Vec<Layer>,
}

/// One blob of a model.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Layer {
    /// What the blob holds, as a media type.
    #[serde(default)]
    pub media_type: String,
    /// The sha256 of its content, which is also its name.
    #[serde(deserialize_with = "digest")]
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// What a blob holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LayerKind {
    /// The weights, as GGUF.
    Model,
    /// Vision and audio towers in a GGUF of their own.
    Projector,
    /// A drafter, as GGUF.
    Draft,
    /// A LoRA adapter, as GGUF.
    Adapter,
    /// A prompt template.
    Template,
    /// The default system prompt.
    System,
    /// Default options, as JSON.
    Params,
    /// Messages that precede every chat, as JSON.
    Messages,
    /// A licence.
    License,
    /// Something this crate has no use for.
    Other,
}

impl Manifest {
    /// The size Ollama shows: all layers and the configuration.
    pub fn size(&self) -> u64 {
        self.layers.iter().fold(self.config.size, |size, layer| size.saturating_add(layer.size))
    }

    /// The layers of one kind, in order.
    pub fn layers_of(&self, kind: LayerKind) -> impl DoubleEndedIterator<Item = &Layer> {
        self.layers.iter().filter(move |layer| layer.kind() == kind)
    }
}

impl Layer {
    /// What the blob holds.
    pub fn kind(&self) -> LayerKind {
        match self.media_type.strip_prefix("application/vnd.ollama.image.") {
            Some("model") => LayerKind::Model,
            Some("projector") => LayerKind::Projector,
            Some("draft") => LayerKind::Draft,
            Some("adapter") => LayerKind::Adapter,
            Some("template" | "prompt") => LayerKind::Template,
            Some("system") => LayerKind::System,
            Some("params") => LayerKind::Params,
            Some("messages") => LayerKind::Messages,
            Some("license") => LayerKind::License,
            _ => LayerKind::Other,
        }
    }
}

impl std::fmt::Display for LayerKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Model => "model",
            Self::Projector => "projector",
            Self::Draft => "draft",
            Self::Adapter => "adapter",
            Self::Template => "template",
            Self::System => "system",
            Self::Params => "params",
            Self::Messages => "messages",
            Self::License => "licence",
            Self::Other => "other",
        })
    }
}

/// What Ollama knows of a model without opening its weights. Every field may be empty.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// `gguf` or `safetensors`.
    pub model_format: String,
    /// The architecture.
    pub model_family: String,
    /// All architectures, where there are several.
    pub model_families: Option<Vec<String>>,
    /// The number of parameters as text, such as `5.1B`.
    pub model_type: String,
    /// The mix of formats, such as `Q4_K_M`.
    pub file_type: String,
    /// The prompt renderer.
    pub renderer: String,
    /// The reply parser.
    pub parser: String,
    /// For models that run elsewhere: where.
    pub remote_host: String,
    /// For models that run elsewhere: which.
    pub remote_model: String,
}

fn digest<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Digest, D::Error> {
    let text = String::deserialize(input)?;
    text.parse().map_err(|()| serde::de::Error::custom(format!("`{text}` is not a sha256 digest")))
}
