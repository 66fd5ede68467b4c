//! What a file takes besides text, and where it says so.

use rullama_gguf::{Metadata, Model};
use rullama_graph::Graph;

use crate::{
    GemmaError,
    config::within,
    names::{AUDIO, AUDIO_PROJECTION, BOUNDS, PACKED_BOUNDS, PLACES, VISION, VISION_PROJECTION},
};

/// The architecture of a projector file.
const PROJECTOR: &str = "clip";

/// What a model takes besides text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Images.
    Vision,
    /// Sound.
    Audio,
}

impl Medium {
    /// Those for which a file has weights.
    pub fn of(model: &Model) -> Vec<Self> {
        let has = |medium: &Self| model.tensors().any(|tensor| medium.has(tensor.name));
        [Self::Vision, Self::Audio].into_iter().filter(has).collect()
    }

    /// Columns that a file's projection of this medium gives the text model; `None` without a projection.
    pub fn projected_width(self, model: &Model) -> Option<u64> {
        let projection = match self {
            Self::Vision => VISION_PROJECTION,
            Self::Audio => AUDIO_PROJECTION,
        };
        Some(model.tensor(projection)?.shape.rows())
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vision => "vision",
            Self::Audio => "audio",
        }
    }

    /// Whether a tensor of this name is for this medium.
    fn has(self, name: &str) -> bool {
        let beginnings = match self {
            Self::Vision => VISION,
            Self::Audio => AUDIO,
        };
        beginnings.iter().any(|beginning| name.starts_with(beginning))
    }

    /// The metadata of this medium: of a projector file, if there is one, and of the model itself otherwise.
    pub(crate) fn metadata(self, model: &Model) -> Result<Metadata<'_>, GemmaError> {
        let (beside, inside, types) = match self {
            Self::Vision => ("clip.vision", "gemma4.vision", ["gemma4v", "gemma4uv"]),
            Self::Audio => ("clip.audio", "gemma4.audio", ["gemma4a", "gemma4ua"]),
        };
        for header in model.headers() {
            let metadata = header.metadata();
            let section = metadata.section(beside);
            if metadata.optional_str("general.architecture")? != Some(PROJECTOR)
                || !section.contains("block_count")
            {
                continue;
            }
            // Some files have one type for all media.
            let either = metadata.optional_str("clip.projector_type")?;
            return match section.optional_str("projector_type")?.or(either) {
                Some(found) if !types.contains(&found) => {
                    Err(GemmaError::Projector { found: found.to_owned() })
                }
                _ => Ok(section),
            };
        }
        Ok(model.metadata().section(inside))
    }

    /// Refuses files with a tensor of this medium that its graph does not read.
    pub(crate) fn nothing_left(self, model: &Model, graph: &Graph) -> Result<(), GemmaError> {
        // What the host reads.
        let is_read = |name: &str| {
            name == PLACES || name == PACKED_BOUNDS || BOUNDS.iter().any(|bound| name.ends_with(bound))
        };
        let is_used = |name: &str| graph.weights().iter().any(|weight| weight.tensor == name);
        let mut own = model.tensors().filter(|tensor| self.has(tensor.name));
        match own.find(|tensor| !is_read(tensor.name) && !is_used(tensor.name)) {
            Some(tensor) => Err(GemmaError::UnexpectedTensor { name: tensor.name.to_owned() }),
            None => Ok(()),
        }
    }
}

/// Columns of the text model, which soft rows have: as its own file says, or as the projection does.
pub(crate) fn text_width(model: &Model, projection: &str) -> Result<u32, GemmaError> {
    let meta = model.metadata().section("gemma4");
    if meta.contains("embedding_length") {
        return within(&meta, "embedding_length", 1..=65_536, "1 to 65536 columns");
    }
    let tensor = model.tensor(projection);
    let rows = tensor.and_then(|tensor| u32::try_from(tensor.shape.rows()).ok());
    rows.filter(|rows| (1..=65_536).contains(rows))
        .ok_or_else(|| GemmaError::MissingTensor { name: projection.to_owned() })
}
