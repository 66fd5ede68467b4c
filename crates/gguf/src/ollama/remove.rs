//! Deleting a model: its manifest, and the blobs that no other manifest names.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    Digest, Name, Store, StoreError,
    store::{children, read_small},
};

/// Folders below `manifests` that are searched. Ollama uses four; more could be a loop of links.
const DEEPEST: usize = 8;

/// What deleting a model deletes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The model, spelled as the store spells it.
    pub name: Name,
    /// Its manifest.
    pub manifest: PathBuf,
    /// The blobs that only this model uses, with their sizes.
    pub blobs: Vec<(PathBuf, u64)>,
}

impl Removal {
    /// The bytes that are freed, without the manifest.
    pub fn bytes(&self) -> u64 {
        self.blobs.iter().fold(0, |sum: u64, (_, size)| sum.saturating_add(*size))
    }
}

impl Store {
    /// Finds what deleting a model would delete, and deletes nothing.
    ///
    /// A blob stays if any other file below `manifests` mentions its digest, even a manifest that is damaged. If the
    /// model's own manifest cannot be read, only the manifest is deleted.
    pub fn removal(&self, name: &Name) -> Result<Removal, StoreError> {
        let name = self.spelled(name)?;
        let manifest = self.manifest_path(&name);
        let own = match self.manifest(&name) {
            Ok((manifest, _)) => {
                manifest.layers.iter().chain([&manifest.config]).map(|layer| layer.digest).collect()
            }
            Err(StoreError::Damaged { .. }) => HashSet::new(),
            Err(error) => return Err(error),
        };
        let mut used = HashSet::new();
        self.mentioned(&self.manifests(), &manifest, 0, &mut used)?;
        let mut blobs = Vec::new();
        for digest in own.difference(&used) {
            // Old versions of Ollama wrote a colon.
            for file in [digest.blob_name(), digest.to_string()] {
                let path = self.root().join("blobs").join(file);
                if let Ok(found) = fs::symlink_metadata(&path) {
                    blobs.push((path, found.len()));
                }
            }
        }
        blobs.sort();
        Ok(Removal { name, manifest, blobs })
    }

    /// Deletes a model: first its manifest, so that an interruption never leaves a model without its blobs.
    pub fn remove(&self, name: &Name) -> Result<Removal, StoreError> {
        let removal = self.removal(name)?;
        delete(&removal.manifest)?;
        for (blob, _) in &removal.blobs {
            delete(blob)?;
        }
        // Folders of the model, its namespace and its host, as far as they are empty now.
        for folder in removal.manifest.ancestors().skip(1).take(3) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(removal)
    }

    /// Collects the digests that files below `folder` mention, except for the file `own`.
    fn mentioned(
        &self,
        folder: &Path,
        own: &Path,
        depth: usize,
        found: &mut HashSet<Digest>,
    ) -> Result<(), StoreError> {
        for child in children(folder)? {
            let path = folder.join(child);
            if path == own || depth > DEEPEST {
                continue;
            }
            if path.is_dir() {
                self.mentioned(&path, own, depth + 1, found)?;
            } else if path.is_file() {
                found.extend(digests(&read_small(&path)?));
            }
        }
        Ok(())
    }
}

fn delete(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::Delete { path: path.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}

/// Every digest that is written somewhere in a file.
fn digests(bytes: &[u8]) -> impl Iterator<Item = Digest> {
    const LENGTH: usize = "sha256:".len() + 64;
    let texts = bytes.windows(LENGTH).filter(|window| window.starts_with(b"sha256"));
    texts.filter_map(|window| str::from_utf8(window).ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_found_anywhere_in_a_file() {
        let [one, other] = [Digest::of(b"1"), Digest::of(b"2")];
        let text = format!("{{\"a\": \"{one}\", broken sha256-{} sha256:12", other.hex());
        assert_eq!(digests(text.as_bytes()).collect::<Vec<_>>(), [one, other]);
        assert_eq!(digests(b"sha256").count(), 0);
    }
}
