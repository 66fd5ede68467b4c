//! The checkpoint in testdata, and copies of it that differ.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use rullama_convert::{ConvertError, ConvertOptions, plan};
use rullama_gguf::{MemorySource, Model};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/convert/nano-e2b");

/// A file beside the checkpoint in testdata.
pub(crate) fn beside(name: &str) -> Vec<u8> {
    let path = Path::new(FOLDER).with_file_name(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Converts a checkpoint in memory.
pub(crate) fn convert(folder: &Path, options: &ConvertOptions) -> Result<Vec<u8>, ConvertError> {
    let mut file = Vec::new();
    plan(folder, options)?.write(&mut file, |done, of| assert!(done <= of))?;
    Ok(file)
}

pub(crate) fn open(file: Vec<u8>) -> Model {
    pollster::block_on(Model::open(Box::new(MemorySource::new(file)))).unwrap()
}

/// Values and shape of a tensor, with the type of its values.
pub(crate) type Tensor = (Dtype, Vec<usize>, Vec<u8>);

/// A copy of the checkpoint that may be changed.
pub(crate) struct Checkpoint {
    folder: TempDir,
}

impl Checkpoint {
    /// A copy with all weights in one file.
    pub(crate) fn new() -> Self {
        let checkpoint = Self { folder: tempfile::tempdir().unwrap() };
        let mut tensors = BTreeMap::new();
        for entry in fs::read_dir(FOLDER).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if name.ends_with(".safetensors") {
                let bytes = fs::read(&path).unwrap();
                let file = SafeTensors::deserialize(&bytes).unwrap();
                for (name, view) in file.tensors() {
                    tensors.insert(name, (view.dtype(), view.shape().to_vec(), view.data().to_vec()));
                }
            } else if !name.contains("index") {
                fs::copy(&path, checkpoint.path().join(name)).unwrap();
            }
        }
        checkpoint.save(&tensors);
        checkpoint
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn weights(&self) -> PathBuf {
        self.path().join("model.safetensors")
    }

    fn save(&self, tensors: &BTreeMap<String, Tensor>) {
        let views = tensors.iter().map(|(name, (dtype, shape, bytes))| {
            (name, TensorView::new(*dtype, shape.clone(), bytes).unwrap())
        });
        fs::write(self.weights(), safetensors::serialize(views, None).unwrap()).unwrap();
    }

    /// Changes the weights.
    pub(crate) fn tensors(self, change: impl FnOnce(&mut BTreeMap<String, Tensor>)) -> Self {
        let bytes = fs::read(self.weights()).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let mut tensors = file
            .tensors()
            .into_iter()
            .map(|(name, view)| (name, (view.dtype(), view.shape().to_vec(), view.data().to_vec())))
            .collect();
        change(&mut tensors);
        self.save(&tensors);
        self
    }

    /// Changes a JSON file.
    pub(crate) fn json(self, name: &str, change: impl FnOnce(&mut Value)) -> Self {
        let path = self.path().join(name);
        let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        fs::write(path, serde_json::to_vec(&value).unwrap()).unwrap();
        self
    }

    pub(crate) fn plan(&self) -> Result<(), ConvertError> {
        plan(self.path(), &ConvertOptions::default()).map(|_| ())
    }
}
