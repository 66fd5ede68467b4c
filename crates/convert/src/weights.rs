//! The files of weights: one, or several with an index. Headers are read, values only when asked for.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    sync::Mutex,
};

use rullama_gguf::Format;
use safetensors::{Dtype, tensor::Metadata};
use serde::Deserialize;

use crate::{ConvertError, files::Folder};

/// The one file of a small checkpoint.
const WHOLE: &str = "model.safetensors";
/// What says which tensor is in which file of a large one.
const INDEX: &str = "model.safetensors.index.json";

/// The longest header that safetensors files may have.
const LONGEST_HEADER: u64 = 100_000_000;
/// The length of the header, in front of it.
const LENGTH_BYTES: u64 = 8;

/// All tensors of a checkpoint, by name.
#[derive(Debug)]
pub(crate) struct Weights {
    parts: Vec<Part>,
    tensors: BTreeMap<String, Stored>,
}

/// One file of weights.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    /// Behind a lock, because a read moves the file's position; the work is in what follows a read.
    file: Mutex<File>,
}

/// Where a tensor's values are.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    part: usize,
    /// Of the first value, from the beginning of the file.
    offset: u64,
    dtype: Dtype,
    pub(crate) shape: Vec<u64>,
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Weights {
    pub(crate) fn open(folder: Folder<'_>) -> Result<Self, ConvertError> {
        let mut weights = Self { parts: Vec::new(), tensors: BTreeMap::new() };
        let whole = folder.path(WHOLE);
        if whole.exists() {
            weights.add(whole)?;
            return Ok(weights);
        }
        let Some(Index { weight_map }) = folder.optional_json(INDEX)? else {
            return Err(ConvertError::MissingFile { path: whole });
        };
        let mut names: Vec<&String> = weight_map.values().collect();
        names.sort();
        names.dedup();
        for name in names {
            let path = folder.path(name);
            // An index from a stranger must not lead to files elsewhere.
            if Path::new(name).file_name() != Some(name.as_ref()) {
                let reason = "the index names a file outside the folder".to_owned();
                return Err(ConvertError::Safetensors { path, reason });
            }
            weights.add(path)?;
        }
        match weight_map.into_keys().find(|name| !weights.tensors.contains_key(name)) {
            Some(name) => Err(ConvertError::MissingTensor { name }),
            None => Ok(weights),
        }
    }

    /// Reads the header of a file.
    fn add(&mut self, path: PathBuf) -> Result<(), ConvertError> {
        let (metadata, start, file) = header(&path)?;
        let part = self.parts.len();
        for (name, info) in metadata.tensors() {
            let stored = Stored {
                part,
                offset: start + info.data_offsets.0 as u64,
                dtype: info.dtype,
                shape: info.shape.iter().map(|&extent| extent as u64).collect(),
            };
            if let Some(other) = self.tensors.insert(name.clone(), stored) {
                let file_name =
                    |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let (first, second) = (file_name(&self.parts[other.part].path), file_name(&path));
                return Err(ConvertError::RepeatedTensor { name, first, second });
            }
        }
        self.parts.push(Part { path, file: Mutex::new(file) });
        Ok(())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Stored> {
        self.tensors.get(name)
    }

    /// A tensor, with its name as it is kept here.
    pub(crate) fn get_key_value(&self, name: &str) -> Option<(&str, &Stored)> {
        self.tensors.get_key_value(name).map(|(name, stored)| (name.as_str(), stored))
    }

    /// Reads values from the one at `first` on.
    pub(crate) fn read(&self, tensor: &Stored, first: u64, out: &mut [f32]) -> Result<(), ConvertError> {
        let part = &self.parts[tensor.part];
        let read = |source| ConvertError::Read { path: part.path.clone(), source };
        let Some(format) = tensor.format() else {
            unreachable!("tensors of other types are refused when a file is planned")
        };
        let size = format.block_bytes();
        let mut bytes = vec![0; out.len() * size];
        {
            // A thread that panicked while it held the lock left nothing behind but a position.
            let mut file = part.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            file.seek(SeekFrom::Start(tensor.offset + first * size as u64)).map_err(read)?;
            file.read_exact(&mut bytes).map_err(read)?;
        }
        Ok(format.decode(&bytes, out)?)
    }
}

impl Stored {
    /// How values are stored, if they are floating point of a usual width.
    pub(crate) fn format(&self) -> Option<Format> {
        match self.dtype {
            Dtype::F32 => Some(Format::F32),
            Dtype::F16 => Some(Format::F16),
            Dtype::BF16 => Some(Format::BF16),
            _ => None,
        }
    }

    pub(crate) fn type_name(&self) -> String {
        self.dtype.to_string()
    }
}

/// What the header of a file says, where its data starts, and the file.
fn header(path: &Path) -> Result<(Metadata, u64, File), ConvertError> {
    let refuse = |reason: String| ConvertError::Safetensors { path: path.to_owned(), reason };
    let read = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => ConvertError::MissingFile { path: path.to_owned() },
        _ => ConvertError::Read { path: path.to_owned(), source },
    };
    let mut file = File::open(path).map_err(read)?;
    let found = file.metadata().map_err(read)?.len();
    let wrong_length = |expected| ConvertError::WrongLength { path: path.to_owned(), found, expected };
    if found < LENGTH_BYTES {
        return Err(wrong_length(LENGTH_BYTES));
    }
    let mut length = [0; LENGTH_BYTES as usize];
    file.read_exact(&mut length).map_err(read)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER {
        return Err(refuse(format!("its header claims {length} bytes (expected at most {LONGEST_HEADER})")));
    }
    let start = LENGTH_BYTES + length;
    if start > found {
        return Err(wrong_length(start));
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header).map_err(read)?;
    // This also checks that tensors follow each other without a gap and are as long as their shapes say.
    let metadata: Metadata =
        serde_json::from_slice(&header).map_err(|error| refuse(format!("its header is damaged: {error}")))?;
    match start.checked_add(metadata.data_len() as u64) {
        Some(expected) if expected == found => Ok((metadata, start, file)),
        Some(expected) => Err(wrong_length(expected)),
        None => Err(refuse("its header is damaged: tensors are too long".to_owned())),
    }
}
