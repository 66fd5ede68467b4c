//! What can go wrong with a model, a conversation or a reply.

use rullama_chat::ChatError;
use rullama_gemma::{GemmaError, Medium, TowerError};
use rullama_media::MediaError;
use rullama_tokenizer::TokenizerError;

use crate::{OptionError, SampleError};

/// Why something could not be loaded or generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The file is not a model that can run.
    #[error(transparent)]
    Model(#[from] GemmaError),

    /// The file's tokenizer cannot be used, or a token does not exist.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),

    /// Messages cannot be rendered.
    #[error(transparent)]
    Chat(#[from] ChatError),

    /// An option is out of its range.
    #[error(transparent)]
    Option(#[from] OptionError),

    /// No token can be chosen.
    #[error(transparent)]
    Sample(#[from] SampleError),

    /// A step gave an infinite number, or none (NaN): the weights are damaged, or the activations overflowed.
    #[error("the model computed a value that is not finite (`{value}`, after {tokens} tokens)")]
    NotFinite {
        /// The value in which the backend found it: the logits, or one before them.
        value: String,
        /// Tokens read when it was found.
        tokens: usize,
    },

    /// The device was lost: its driver crashed, or the system took it away. Its memory is lost with it. The session is
    /// still valid and reads the conversation again on a new device.
    #[error(transparent)]
    DeviceLost(Box<dyn std::error::Error>),

    /// The conversation lost its place in the backend's memory to another one. The session is still valid and reads the
    /// conversation again.
    #[error("the conversation made room for another one and has to be read again")]
    Evicted,

    /// A step failed for a reason that only its backend knows.
    #[error("the model can't continue")]
    Step {
        /// The kind of failure, as [`code`](Self::code) gives it.
        code: &'static str,
        /// The backend's own error.
        source: Box<dyn std::error::Error>,
    },

    /// The prompt has no tokens.
    #[error("the prompt is empty")]
    EmptyPrompt,

    /// The prompt does not fit the context, or leaves no room for a reply.
    #[error("the prompt has {tokens} tokens, but at most {fits} fit in a context of {context}")]
    ContextOverflow {
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens that would fit and leave room for one more.
        fits: usize,
        /// Size of the context.
        context: usize,
    },

    /// A larger context than the model was made for.
    #[error("a context of {asked} tokens is too large for this model, which supports {most}")]
    ContextTooLarge {
        /// What was asked for.
        asked: u32,
        /// The model's own.
        most: u32,
    },

    /// The rows of a picture or sound do not lie inside the prompt, or overlap others.
    #[error("{rows} rows of an image or of audio cannot be at position {at} of the prompt")]
    MediaPlace {
        /// The position of the first.
        at: usize,
        /// Their number.
        rows: usize,
    },

    /// A picture has more rows, which have to be read together, than a step of this backend.
    #[error("an image of {rows} rows is too large: at most {most} rows can be read together")]
    MediaTooLarge {
        /// Its rows.
        rows: usize,
        /// The most rows of a step.
        most: usize,
    },

    /// An image or a sound that cannot be used.
    #[error(transparent)]
    Media(#[from] MediaError),

    /// A tower cannot be used, or does not take this image.
    #[error(transparent)]
    Tower(#[from] TowerError),

    /// The model has no tower for this medium.
    #[error("this model reads no {} (its files have no {} tower; a projector file beside it may have one)", media_name(*.medium), .medium.as_str())]
    NoMedium {
        /// The medium.
        medium: Medium,
    },

    /// The backend has no towers.
    #[error("this backend can't encode images or audio")]
    NoTowers,

    /// The model was loaded for its towers alone.
    #[error("this model was loaded without its text model, so it can only encode images and audio")]
    TowersAlone,

    /// A message attaches something that was not given.
    #[error("message {message} attaches `{name}`, which was not given")]
    UnknownMedia {
        /// Which message.
        message: usize,
        /// The beginning of the name.
        name: String,
    },

    /// A sound without a single frame.
    #[error("the sound is too short (at least 11 milliseconds)")]
    SoundTooShort,

    /// The model's vocabulary lacks a token that marks images or sound.
    #[error("the model's vocabulary has no token `{token}`")]
    MissingToken {
        /// The token.
        token: &'static str,
    },
}

impl EngineError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Model(error) => error.code(),
            Self::Tokenizer(error) => error.code(),
            Self::Chat(error) => error.code(),
            Self::Option(error) => error.code(),
            Self::Sample(error) => error.code(),
            Self::NotFinite { .. } => "model.not_finite",
            Self::DeviceLost(_) => "device.lost",
            Self::Evicted => "conversation.evicted",
            Self::Step { code, .. } => code,
            Self::EmptyPrompt => "input.empty",
            Self::ContextOverflow { .. } => "context.overflow",
            Self::ContextTooLarge { .. } => "context.too_large",
            Self::MediaPlace { .. } => "input.media_place",
            Self::MediaTooLarge { .. } => "input.media_too_large",
            Self::Media(error) => error.code(),
            Self::Tower(error) => error.code(),
            Self::NoMedium { medium: Medium::Vision } => "model.no_images",
            Self::NoMedium { medium: Medium::Audio } => "model.no_audio",
            Self::NoTowers | Self::TowersAlone => "model.unsupported",
            Self::UnknownMedia { .. } => "input.media_unknown",
            Self::SoundTooShort => "media.sound.too_short",
            Self::MissingToken { .. } => "model.missing_token",
        }
    }
}

fn media_name(medium: Medium) -> &'static str {
    match medium {
        Medium::Vision => "images",
        Medium::Audio => "audio",
    }
}
