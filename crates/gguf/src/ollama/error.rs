//! What can be wrong with a store.

use std::path::PathBuf;

/// Why a model could not be found in an Ollama store, or not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Not a model name.
    #[error("`{name}` is not a valid model name{}", which_part(name, part, found))]
    InvalidName {
        /// The name as given.
        name: String,
        /// Which part is wrong.
        part: &'static str,
        /// That part.
        found: String,
    },

    /// There is no store at all.
    #[error("no Ollama models found: `{}` does not exist", root.display())]
    NoStore {
        /// Where it was looked for.
        root: PathBuf,
    },

    /// The store's path is that of a file.
    #[error("no Ollama models found: `{}` is not a folder", root.display())]
    NotAFolder {
        /// Where the store was looked for.
        root: PathBuf,
    },

    /// The store has no such model.
    #[error("model `{name}` not found: `{}` does not exist", manifest.display())]
    ModelNotFound {
        /// The model.
        name: String,
        /// Where its manifest would be.
        manifest: PathBuf,
    },

    /// The operating system could not read a file.
    #[error("`{}` can't be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },

    /// The operating system could not delete a file.
    #[error("`{}` can't be deleted", path.display())]
    Delete {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },

    /// A manifest, or a blob that should be JSON or text, holds something else.
    #[error("`{}` is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// A blob that the manifest names is missing.
    #[error("model `{name}` is incomplete: its {layer} file `{}` does not exist", path.display())]
    MissingBlob {
        /// The model.
        name: String,
        /// What the blob holds.
        layer: String,
        /// Where it should be.
        path: PathBuf,
    },

    /// A blob has another size than its manifest says: most often a download that was cut off.
    #[error("model `{name}` is incomplete: `{}` has {found} of {expected} bytes", path.display())]
    WrongSize {
        /// The model.
        name: String,
        /// The blob.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// The size it should have.
        expected: u64,
    },

    /// A blob's content is not what its name promises.
    #[error("`{}` is damaged: its digest is {found}", path.display())]
    WrongDigest {
        /// The blob.
        path: PathBuf,
        /// The digest of its content.
        found: super::Digest,
    },

    /// A model without a GGUF layer.
    #[error("model `{name}` has no GGUF file: its format is `{format}`")]
    NoWeights {
        /// The model.
        name: String,
        /// The format that its configuration names.
        format: String,
    },

    /// A model that runs on someone else's machine.
    #[error("model `{name}` runs on `{host}` and has no files on this machine")]
    Remote {
        /// The model.
        name: String,
        /// Where it runs.
        host: String,
    },
}

/// The invalid part of a name, unless it is the whole name.
fn which_part(name: &str, part: &str, found: &str) -> String {
    if name == found { String::new() } else { format!(": its {part} can't be `{found}`") }
}

impl StoreError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidName { .. } => "store.name",
            Self::NoStore { .. } | Self::NotAFolder { .. } => "store.missing",
            Self::ModelNotFound { .. } => "model.not_found",
            Self::Io { .. } | Self::Delete { .. } => "store.io",
            Self::Damaged { .. } | Self::WrongDigest { .. } => "store.damaged",
            Self::MissingBlob { .. } => "store.missing_blob",
            Self::WrongSize { .. } => "store.wrong_size",
            Self::NoWeights { .. } | Self::Remote { .. } => "model.unsupported",
        }
    }
}
