//! The program as its users run it.

#![allow(dead_code, clippy::allow_attributes, reason = "no test needs all of it")]

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, UNIX_EPOCH},
};

use rullama_gguf::ollama::Digest;
use serde_json::{Value, json};

/// The program with these arguments, and never with the store of whoever runs the tests.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rullama"));
    // Help is wrapped at the width of the terminal, which this variable may give.
    command.args(arguments).env("OLLAMA_MODELS", "/nonexistent").env_remove("COLUMNS");
    command
}

/// What a command makes of its input.
pub(crate) fn run(command: &mut Command, input: impl AsRef<[u8]>) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that fails before it reads its input closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input.as_ref());
    child.wait_with_output().unwrap()
}

/// What a command prints that must succeed.
pub(crate) fn success(command: &mut Command, input: impl AsRef<[u8]>) -> String {
    let output = run(command, input);
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The same, read as JSON.
pub(crate) fn json_of(command: &mut Command, input: impl AsRef<[u8]>) -> Value {
    serde_json::from_str(&success(command, input)).unwrap()
}

/// The exit status of a command that must fail, and what it says.
pub(crate) fn failure(command: &mut Command) -> (i32, String) {
    let output = run(command, "");
    assert!(!output.status.success(), "{command:?} succeeds");
    assert!(output.stdout.is_empty(), "{command:?} prints although it fails");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// What is in a folder, in order.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Writes a blob into this folder of a store, and gives what a manifest says of it.
pub(crate) fn blob(blobs: &Path, kind: &str, content: &[u8]) -> Value {
    let digest = Digest::of(content);
    fs::write(blobs.join(digest.blob_name()), content).unwrap();
    let media = format!("application/vnd.ollama.image.{kind}");
    json!({ "mediaType": media, "digest": digest.to_string(), "size": content.len() })
}

/// Makes a store with one model, `gemma4:latest`: the small one in Ollama's dialect, with a system prompt, parameters and
/// a licence.
pub(crate) fn store(folder: &Path) {
    let blobs = folder.join("blobs");
    fs::create_dir_all(&blobs).unwrap();
    let blob = |kind: &str, content: &[u8]| blob(&blobs, kind, content);
    let weights = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-Q8_0-ollama.gguf");
    let config = json!({ "model_format": "gguf", "model_family": "gemma4", "model_type": "25.8B", "file_type": "Q8_0",
        "renderer": "gemma4-large" });
    let parameters = json!({ "temperature": 0.5, "stop": ["<turn|>", "User:"] });
    let manifest = json!({
        "schemaVersion": 2,
        "config": blob("config", config.to_string().as_bytes()),
        "layers": [
            blob("model", &fs::read(weights).unwrap()),
            blob("system", b"Be brief."),
            blob("params", parameters.to_string().as_bytes()),
            blob("license", b"Apache License\nVersion 2.0, January 2004\n\nTERMS AND CONDITIONS\n"),
        ],
    });
    let path = folder.join("manifests/registry.ollama.ai/library/gemma4");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("latest"), manifest.to_string()).unwrap();
    // Lists show this date: 2026-08-02.
    let modified = UNIX_EPOCH + Duration::from_secs(1_785_672_000);
    let file = fs::File::options().write(true).open(path.join("latest")).unwrap();
    file.set_modified(modified).unwrap();
}
