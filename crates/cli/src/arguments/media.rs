//! Arguments for images and sound.

use std::{ffi::OsString, path::PathBuf};

use clap::Args;
use rullama_media::Budget;

use super::{
    MODEL_HELP,
    replies::BACKEND_HELP,
    values::{BackendChoice, budget},
};

/// Images and sounds that go with a prompt.
#[derive(Debug, Args)]
#[command(next_help_heading = "Images and sound")]
pub(crate) struct AttachArguments {
    /// Attach an image to the prompt: PNG, JPEG, WebP, GIF or BMP; can be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// Attach a sound to the prompt: WAV, MP3, FLAC, Ogg Vorbis or M4A; can be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) audio: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) towers: TowerArguments,
}

/// How images and sounds are encoded.
#[derive(Debug, Args)]
#[command(next_help_heading = "Images and sound")]
pub(crate) struct TowerArguments {
    /// File or URL with the vision and audio towers, if the model's own file has none; often named mmproj. A model of the
    /// Ollama store brings its own
    #[arg(long, value_name = "FILE")]
    pub(crate) projector: Option<OsString>,
    /// The most tokens of an image: 70, 140, 280, 560 or 1120. More show more detail and take more time [default: 280]
    #[arg(long, value_name = "N", value_parser = budget, allow_negative_numbers = true)]
    pub(crate) budget: Option<Budget>,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("medium").args(["image", "audio"]).required(true)))]
pub(crate) struct EncodeArguments {
    #[arg(help = MODEL_HELP)]
    pub(crate) model: OsString,
    /// Encode this image: PNG, JPEG, WebP, GIF or BMP
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Option<PathBuf>,
    /// Encode this sound: WAV, MP3, FLAC, Ogg Vorbis or M4A
    #[arg(long, value_name = "FILE", conflicts_with = "budget")]
    pub(crate) audio: Option<PathBuf>,
    /// File to write: f32, shape [rows, width]
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) out: PathBuf,
    #[arg(long, value_enum, default_value_t = BackendChoice::Cpu, help = BACKEND_HELP)]
    pub(crate) backend: BackendChoice,
    /// Print JSON: {"rows": n, "width": n, "path": "..."}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) towers: TowerArguments,
}
