//! The store itself: a folder of manifests and a folder of blobs.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::de::DeserializeOwned;

use super::{Config, Digest, Layer, LayerKind, Manifest, Name, StoreError};

/// Larger manifests, configurations, templates and licences are not believed.
const LARGEST_TEXT: u64 = 16 << 20;

/// An Ollama store on disk.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

/// A blob that is there and has the size its manifest says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// What its name promises of its content.
    pub digest: Digest,
}

/// A model whose blobs were all found.
#[derive(Debug, Clone)]
pub struct StoredModel {
    /// Its name, spelled as the store spells it.
    pub name: Name,
    /// The digest of its manifest, which Ollama shows as the model's.
    pub digest: Digest,
    /// What Ollama knows of it.
    pub config: Config,
    /// The weights.
    pub weights: Blob,
    /// Vision and audio towers, where they are apart from the weights.
    pub projector: Option<Blob>,
    /// A drafter.
    pub draft: Option<Blob>,
    /// LoRA adapters.
    pub adapters: Vec<Blob>,
    /// The prompt template.
    pub template: Option<String>,
    /// The default system prompt.
    pub system: Option<String>,
    /// Default options, such as `temperature`.
    pub params: serde_json::Map<String, serde_json::Value>,
    /// Messages that precede every chat.
    pub messages: Vec<serde_json::Value>,
    /// Licence texts.
    pub licences: Vec<String>,
}

/// A line of the list of models.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The model.
    pub name: Name,
    /// The digest of its manifest.
    pub digest: Digest,
    /// Its size on disk.
    pub size: u64,
    /// When its manifest was last written.
    pub modified: Option<SystemTime>,
    /// What Ollama knows of it.
    pub config: Config,
}

/// A model that cannot be listed, and why.
#[derive(Debug)]
pub struct BrokenModel {
    /// The model.
    pub name: Name,
    /// What is wrong with it.
    pub error: StoreError,
}

/// Everything a store holds.
#[derive(Debug, Default)]
pub struct Listing {
    /// The models, newest first.
    pub models: Vec<Summary>,
    /// Those whose manifest or configuration cannot be read, or whose blobs are missing or of the wrong size.
    pub broken: Vec<BrokenModel>,
}

impl Store {
    /// The store at `root`, the folder that holds `manifests` and `blobs`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The store that Ollama would use: at `models` (the value of `OLLAMA_MODELS`) if that is set,
    /// else below the home folder, else where system services keep it.
    pub fn locate(models: Option<&Path>, home: Option<&Path>) -> Self {
        if let Some(models) = models.filter(|path| !path.as_os_str().is_empty()) {
            return Self::new(models);
        }
        let own = home.unwrap_or(Path::new("")).join(".ollama").join("models");
        let service = Path::new("/usr/share/ollama/.ollama/models");
        if cfg!(target_os = "linux") && !may_exist(&own) && may_exist(service) {
            return Self::new(service);
        }
        Self::new(own)
    }

    /// Tells a folder that does not exist from a file and from a folder that this user may not read.
    fn check_root(&self) -> Result<(), StoreError> {
        let root = || self.root.clone();
        match fs::metadata(&self.root) {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => Err(StoreError::NotAFolder { root: root() }),
            Err(_) if !may_exist(&self.root) => Err(StoreError::NoStore { root: root() }),
            Err(source) => Err(StoreError::Io { path: root(), source }),
        }
    }

    /// The folder that holds `manifests` and `blobs`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every model in the store.
    pub fn list(&self) -> Result<Listing, StoreError> {
        self.check_root()?;
        let mut listing = Listing::default();
        for name in self.names()? {
            match self.summary(&name) {
                Ok(summary) => listing.models.push(summary),
                Err(error) => listing.broken.push(BrokenModel { name, error }),
            }
        }
        listing.models.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.name.cmp(&b.name)));
        Ok(listing)
    }

    /// Finds a model and checks that its blobs are there and have their sizes.
    pub fn model(&self, name: &Name) -> Result<StoredModel, StoreError> {
        let name = self.spelled(name)?;
        let (manifest, digest) = self.manifest(&name)?;
        let config: Config = self.json(&name, &manifest.config, "configuration")?;
        if !config.remote_host.is_empty() {
            return Err(StoreError::Remote { name: name.to_string(), host: config.remote_host });
        }
        let last = |kind| manifest.layers_of(kind).next_back();
        let blob = |layer: &Layer| self.blob(&name, layer, &layer.kind().to_string());
        let text = |layer: &Layer| self.text(&name, layer, &layer.kind().to_string());
        let weights = match last(LayerKind::Model) {
            Some(layer) => blob(layer)?,
            None => {
                return Err(StoreError::NoWeights { name: name.to_string(), format: config.model_format });
            }
        };
        Ok(StoredModel {
            digest,
            config,
            weights,
            projector: last(LayerKind::Projector).map(blob).transpose()?,
            draft: last(LayerKind::Draft).map(blob).transpose()?,
            adapters: manifest.layers_of(LayerKind::Adapter).map(blob).collect::<Result<_, _>>()?,
            template: last(LayerKind::Template).map(text).transpose()?,
            system: last(LayerKind::System).map(text).transpose()?,
            params: match last(LayerKind::Params) {
                Some(layer) => self.json(&name, layer, "params")?,
                None => serde_json::Map::new(),
            },
            messages: match last(LayerKind::Messages) {
                Some(layer) => self.json(&name, layer, "messages")?,
                None => Vec::new(),
            },
            licences: manifest.layers_of(LayerKind::License).map(text).collect::<Result<_, _>>()?,
            name,
        })
    }

    /// Compares a blob's content with its name, telling `progress` the bytes done so far.
    pub fn verify(&self, blob: &Blob, progress: impl FnMut(u64)) -> Result<(), StoreError> {
        let io = |source| StoreError::Io { path: blob.path.clone(), source };
        let file = fs::File::open(&blob.path).map_err(io)?;
        let found = Digest::of_reader(file, progress).map_err(io)?;
        if found == blob.digest {
            Ok(())
        } else {
            Err(StoreError::WrongDigest { path: blob.path.clone(), found })
        }
    }

    fn summary(&self, name: &Name) -> Result<Summary, StoreError> {
        let (manifest, digest) = self.manifest(name)?;
        let modified = fs::metadata(self.manifest_path(name)).and_then(|file| file.modified()).ok();
        let config = self.json(name, &manifest.config, "configuration")?;
        for layer in &manifest.layers {
            self.blob(name, layer, &layer.kind().to_string())?;
        }
        Ok(Summary { name: name.clone(), digest, size: manifest.size(), modified, config })
    }

    /// The names of all manifests: files exactly four folders deep with valid names.
    fn names(&self) -> Result<Vec<Name>, StoreError> {
        let mut names = Vec::new();
        let manifests = self.manifests();
        for host in children(&manifests)? {
            for namespace in children(&manifests.join(&host))? {
                for model in children(&manifests.join(&host).join(&namespace))? {
                    let folder = manifests.join(&host).join(&namespace).join(&model);
                    for tag in children(&folder)? {
                        if folder.join(&tag).is_file()
                            && let Ok(name) = Name::new(&host, &namespace, &model, &tag)
                        {
                            names.push(name);
                        }
                    }
                }
            }
        }
        Ok(names)
    }

    /// The name as the store spells it: case does not count when a model is looked up.
    pub(super) fn spelled(&self, name: &Name) -> Result<Name, StoreError> {
        self.check_root()?;
        if self.manifest_path(name).is_file() {
            return Ok(name.clone());
        }
        let same = |other: &Name| {
            name.parts().iter().zip(other.parts()).all(|(ours, theirs)| ours.eq_ignore_ascii_case(theirs))
        };
        self.names()?.into_iter().find(same).ok_or_else(|| StoreError::ModelNotFound {
            name: name.to_string(),
            manifest: self.manifest_path(name),
        })
    }

    pub(super) fn manifests(&self) -> PathBuf {
        self.root.join("manifests")
    }

    pub(super) fn manifest_path(&self, name: &Name) -> PathBuf {
        self.manifests().join(name.manifest_path())
    }

    pub(super) fn manifest(&self, name: &Name) -> Result<(Manifest, Digest), StoreError> {
        let path = self.manifest_path(name);
        let bytes = read_small(&path)?;
        Ok((parse(&path, &bytes)?, Digest::of(&bytes)))
    }

    fn blob(&self, name: &Name, layer: &Layer, what: &str) -> Result<Blob, StoreError> {
        let blobs = self.root.join("blobs");
        let path = blobs.join(layer.digest.blob_name());
        // Old versions of Ollama wrote a colon.
        let old = blobs.join(layer.digest.to_string());
        let path = if !path.exists() && old.exists() { old } else { path };
        let found = match fs::metadata(&path) {
            Ok(file) => file.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (name, layer) = (name.to_string(), what.to_owned());
                return Err(StoreError::MissingBlob { name, layer, path });
            }
            Err(source) => return Err(StoreError::Io { path, source }),
        };
        if found != layer.size {
            let (name, expected) = (name.to_string(), layer.size);
            return Err(StoreError::WrongSize { name, path, found, expected });
        }
        Ok(Blob { path, size: found, digest: layer.digest })
    }

    fn text(&self, name: &Name, layer: &Layer, what: &str) -> Result<String, StoreError> {
        let path = self.blob(name, layer, what)?.path;
        String::from_utf8(read_small(&path)?)
            .map_err(|_| StoreError::Damaged { path, reason: "it is not UTF-8 text".to_owned() })
    }

    fn json<T: DeserializeOwned>(&self, name: &Name, layer: &Layer, what: &str) -> Result<T, StoreError> {
        let path = self.blob(name, layer, what)?.path;
        parse(&path, &read_small(&path)?)
    }
}

/// Whether there is a file or folder at `path`, or this user may not look.
fn may_exist(path: &Path) -> bool {
    let missing =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    !fs::metadata(path).is_err_and(|error| missing(&error))
}

/// The names of what is in a folder, sorted; none if there is no such folder.
pub(super) fn children(folder: &Path) -> Result<Vec<String>, StoreError> {
    let io = |source| StoreError::Io { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(source) => return Err(io(source)),
    };
    let mut names = Vec::new();
    for entry in entries {
        // A name that is not UTF-8 cannot be a model's.
        if let Ok(name) = entry.map_err(io)?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Reads a file that has no reason to be large.
pub(super) fn read_small(path: &Path) -> Result<Vec<u8>, StoreError> {
    let io = |source| StoreError::Io { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    fs::File::open(path).map_err(io)?.take(LARGEST_TEXT + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > LARGEST_TEXT {
        let reason = format!("it is larger than {LARGEST_TEXT} bytes");
        return Err(StoreError::Damaged { path: path.to_owned(), reason });
    }
    Ok(bytes)
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(bytes)
        .map_err(|error| StoreError::Damaged { path: path.to_owned(), reason: error.to_string() })
}
