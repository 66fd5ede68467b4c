//! A small Ollama store on disk: what is found, and what is said of what is not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![cfg(not(target_family = "wasm"))]

use std::{
    fs,
    path::{Path, PathBuf},
};

use rullama_gguf::ollama::{Digest, Name, Store, StoreError};
use serde_json::{Value, json};

/// A store under construction.
struct Shelf {
    folder: tempfile::TempDir,
}

impl Shelf {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("blobs")).unwrap();
        Self { folder }
    }

    fn store(&self) -> Store {
        Store::new(self.folder.path())
    }

    fn blob_path(&self, content: &[u8]) -> PathBuf {
        self.folder.path().join("blobs").join(Digest::of(content).blob_name())
    }

    /// Writes a blob and describes it as a manifest would.
    fn blob(&self, kind: &str, content: &[u8]) -> Value {
        fs::write(self.blob_path(content), content).unwrap();
        json!({
            "mediaType": format!("application/vnd.ollama.image.{kind}"),
            "digest": Digest::of(content).to_string(),
            "size": content.len(),
        })
    }

    fn manifest(&self, path: &str, config: Value, layers: Vec<Value>) -> PathBuf {
        let config = self.blob("config", config.to_string().as_bytes());
        let manifest = json!({ "schemaVersion": 2, "config": config, "layers": layers });
        let path = self.folder.path().join("manifests").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, manifest.to_string()).unwrap();
        path
    }

    fn gemma(&self) -> PathBuf {
        let layers = vec![
            self.blob("model", b"old weights"),
            self.blob("model", b"weights"),
            self.blob("projector", b"towers"),
            self.blob("adapter", b"lora 1"),
            self.blob("adapter", b"lora 2"),
            self.blob("template", b"{{ .Prompt }}"),
            self.blob("system", b"Be kind."),
            self.blob("params", br#"{"temperature":1,"stop":["<turn|>"]}"#),
            self.blob("messages", br#"[{"role":"user","content":"Hi"}]"#),
            self.blob("license", b"licence 1"),
            self.blob("license", b"licence 2"),
            self.blob("something.new", b"?"),
        ];
        let config = json!({
            "model_format": "gguf", "model_family": "gemma4", "model_families": ["gemma4"],
            "model_type": "5.1B", "file_type": "Q4_K_M", "unknown_field": {"a": [1]},
        });
        self.manifest("registry.ollama.ai/library/gemma4/e2b", config, layers)
    }
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

#[test]
fn a_model_is_found_with_all_its_layers() {
    let shelf = Shelf::new();
    let manifest = shelf.gemma();
    let model = shelf.store().model(&name("gemma4:e2b")).unwrap();
    assert_eq!(model.weights.path, shelf.blob_path(b"weights"), "the last model layer counts");
    assert_eq!(model.weights.size, 7);
    assert_eq!(model.projector.unwrap().path, shelf.blob_path(b"towers"));
    assert_eq!(model.draft, None);
    assert_eq!(model.adapters.len(), 2);
    assert_eq!(model.template.as_deref(), Some("{{ .Prompt }}"));
    assert_eq!(model.system.as_deref(), Some("Be kind."));
    assert_eq!(model.params["temperature"], 1);
    assert_eq!(model.messages[0]["content"], "Hi");
    assert_eq!(model.licences, ["licence 1", "licence 2"]);
    assert_eq!(model.config.model_type, "5.1B");
    assert_eq!(model.digest, Digest::of(&fs::read(manifest).unwrap()));
}

#[test]
fn names_are_found_whatever_their_case() {
    let shelf = Shelf::new();
    shelf.gemma();
    shelf.manifest("hf.co/User/Repo-GGUF/Q4_K_M", json!({}), vec![shelf.blob("model", b"other")]);
    assert_eq!(shelf.store().model(&name("Gemma4:E2B")).unwrap().name, name("gemma4:e2b"));
    let found = shelf.store().model(&name("HF.co/user/repo-gguf:q4_k_m")).unwrap();
    assert_eq!(found.name.to_string(), "hf.co/User/Repo-GGUF:Q4_K_M");
}

#[test]
fn listing_shows_models_and_what_is_broken() {
    let shelf = Shelf::new();
    let old = shelf.gemma();
    let new = shelf.manifest(
        "hf.co/me/repo/tag",
        json!({"model_format": "gguf"}),
        vec![shelf.blob("model", b"weights")],
    );
    let set_age = |path: &Path, seconds| {
        let time = std::time::SystemTime::now() - std::time::Duration::from_secs(seconds);
        fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    };
    set_age(&old, 1000);
    set_age(&new, 10);
    let broken = shelf.manifest("registry.ollama.ai/library/broken/latest", json!({}), vec![]);
    fs::write(broken, "{").unwrap();
    // Neither of these is a manifest.
    fs::create_dir_all(shelf.folder.path().join("manifests/registry.ollama.ai/library/a/b/c")).unwrap();
    fs::write(shelf.folder.path().join("manifests/stray"), "?").unwrap();

    let listing = shelf.store().list().unwrap();
    let names: Vec<String> = listing.models.iter().map(|model| model.name.to_string()).collect();
    assert_eq!(names, ["hf.co/me/repo:tag", "gemma4:e2b"], "newest first");
    assert_eq!(listing.models[1].config.file_type, "Q4_K_M");
    assert_eq!(listing.models[0].size, 7 + 23);
    assert_eq!(listing.broken.len(), 1);
    assert_eq!(listing.broken[0].name, name("broken"));
    assert!(matches!(listing.broken[0].error, StoreError::Damaged { .. }));
}

#[test]
fn what_is_missing_is_named() {
    let shelf = Shelf::new();
    shelf.gemma();
    let store = shelf.store();
    let absent = store.model(&name("gemma4:31b")).unwrap_err();
    assert!(matches!(absent, StoreError::ModelNotFound { .. }));
    assert!(absent.to_string().contains("gemma4:31b"), "{absent}");
    assert!(absent.to_string().contains("31b` does not exist"), "{absent}");

    fs::remove_file(shelf.blob_path(b"Be kind.")).unwrap();
    let missing = store.model(&name("gemma4:e2b")).unwrap_err();
    assert!(matches!(&missing, StoreError::MissingBlob { layer, path, .. }
        if layer == "system" && *path == shelf.blob_path(b"Be kind.")));

    let nowhere = Store::new(shelf.folder.path().join("nowhere"));
    assert!(matches!(nowhere.model(&name("gemma4")), Err(StoreError::NoStore { .. })));
    assert!(matches!(nowhere.list(), Err(StoreError::NoStore { .. })));
}

#[test]
fn a_truncated_blob_is_noticed_at_once_and_a_changed_one_when_asked() {
    let shelf = Shelf::new();
    shelf.gemma();
    let store = shelf.store();
    let weights = shelf.blob_path(b"weights");
    let model = store.model(&name("gemma4:e2b")).unwrap();
    let mut done = 0;
    store.verify(&model.weights, |bytes| done = bytes).unwrap();
    assert_eq!(done, 7);

    fs::write(&weights, "WEIGHTS").unwrap();
    let changed = store.verify(&model.weights, |_| {}).unwrap_err();
    assert!(matches!(changed, StoreError::WrongDigest { .. }));

    fs::write(&weights, "weig").unwrap();
    let short = store.model(&name("gemma4:e2b")).unwrap_err();
    assert!(matches!(short, StoreError::WrongSize { found: 4, expected: 7, .. }), "{short:?}");
}

#[test]
fn models_without_local_gguf_weights_are_named_as_such() {
    let shelf = Shelf::new();
    shelf.manifest(
        "registry.ollama.ai/library/mlx/latest",
        json!({"model_format": "safetensors"}),
        vec![shelf.blob("tensor", b"t")],
    );
    shelf.manifest("registry.ollama.ai/library/far/cloud", json!({"remote_host": "far.example"}), vec![]);
    let mlx = shelf.store().model(&name("mlx")).unwrap_err();
    assert!(matches!(mlx, StoreError::NoWeights { format, .. } if format == "safetensors"));
    let far = shelf.store().model(&name("far:cloud")).unwrap_err();
    assert!(matches!(far, StoreError::Remote { host, .. } if host == "far.example"));
}

#[test]
fn blobs_that_are_not_what_they_should_be() {
    let shelf = Shelf::new();
    let weights = shelf.blob("model", b"weights");
    let with = |layer: Value| {
        shelf.manifest("registry.ollama.ai/library/m/latest", json!({}), vec![weights.clone(), layer]);
        shelf.store().model(&name("m")).unwrap_err()
    };
    assert!(matches!(with(shelf.blob("params", b"[1]")), StoreError::Damaged { .. }));
    assert!(matches!(with(shelf.blob("system", b"\xff\xfe")), StoreError::Damaged { .. }));
    let outside = json!({ "mediaType": "x", "digest": "sha256:../../../etc/passwd", "size": 1 });
    assert!(matches!(with(outside), StoreError::Damaged { .. }));
}

#[test]
fn old_stores_wrote_a_colon_in_blob_names() {
    let shelf = Shelf::new();
    shelf.gemma();
    let new = shelf.blob_path(b"weights");
    let old = new.with_file_name(Digest::of(b"weights").to_string());
    fs::rename(new, &old).unwrap();
    assert_eq!(shelf.store().model(&name("gemma4:e2b")).unwrap().weights.path, old);
}

#[test]
fn the_store_is_looked_for_where_ollama_keeps_it() {
    let root = |models: Option<&str>, home: &str| {
        Store::locate(models.map(Path::new), Some(Path::new(home))).root().to_owned()
    };
    assert_eq!(root(Some("/data/models"), "/home/me"), Path::new("/data/models"));
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let own = folder.path().join(".ollama").join("models");
    fs::create_dir_all(&own).unwrap();
    assert_eq!(root(None, home), own);
    assert_eq!(root(Some(""), home), own);
}
