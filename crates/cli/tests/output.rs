//! What reaches a terminal: nothing of a stranger's file that could command it, and no panic where nothing can be written.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{
    fs::{self, OpenOptions},
    path::Path,
    process::Stdio,
};

use common::program;
use rullama_gguf::{Format, Writer, ollama::Digest};
use serde_json::{Value, json};

const VOCABULARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/tokenizer/gemma4-vocab.gguf");

/// Clears the screen, renames the window, rings, deletes, begins a command in one character, and draws a false line.
const HOSTILE: &str = "a\x1b[2J\x1b]0;b\x07\x7f\u{9b}2J\r\nhint: zap";

/// A model whose every text is hostile.
fn hostile_model(path: &Path) {
    let mut writer = Writer::new();
    for key in ["general.name", "general.architecture", &format!("key.{HOSTILE}")] {
        writer.set(key, HOSTILE).unwrap();
    }
    writer.add_tensor(HOSTILE, &[32], Format::F32).unwrap();
    let mut body = writer.begin(fs::File::create(path).unwrap()).unwrap();
    body.write_tensor(&[0; 128]).unwrap();
    body.finish().unwrap();
}

/// A store with a model whose description is hostile.
fn hostile_store(folder: &Path) {
    fs::create_dir_all(folder.join("blobs")).unwrap();
    let blob = |content: &[u8]| {
        let digest = Digest::of(content);
        fs::write(folder.join("blobs").join(digest.blob_name()), content).unwrap();
        (digest.to_string(), content.len())
    };
    let described = json!({ "model_format": "gguf", "model_family": HOSTILE, "model_type": HOSTILE,
                            "file_type": HOSTILE });
    let (config, config_size) = blob(described.to_string().as_bytes());
    let (weights, size) = blob(b"GGUF");
    let manifest = |media: &str| {
        json!({ "schemaVersion": 2, "config": { "mediaType": "", "digest": config, "size": config_size },
                "layers": [{ "mediaType": media, "digest": weights, "size": size }] })
        .to_string()
    };
    let names = folder.join("manifests/registry.ollama.ai/library");
    for (name, text) in
        [("whole", manifest("application/vnd.ollama.image.model")), ("broken", HOSTILE.to_owned())]
    {
        fs::create_dir_all(names.join(name)).unwrap();
        fs::write(names.join(name).join("latest"), text).unwrap();
    }
}

fn assert_harmless(what: &str, text: &[u8]) {
    let text = str::from_utf8(text).unwrap();
    let strange = |c: char| c.is_control() && c != '\n';
    assert!(!text.contains(strange), "{what}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("hint: zap")), "{what}: {text}");
}

#[test]
fn what_files_hold_is_shown_and_not_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let model = folder.join("m.gguf");
    hostile_model(&model);
    hostile_store(folder);
    let model = model.to_str().unwrap();
    for arguments in [
        &["inspect", model][..],
        &["inspect", model, "--tensors", "--metadata"],
        &["inspect", model, "--tensors", "--metadata", "--json"],
        &["models"],
        &["models", "--json"],
    ] {
        let output = common::run(program(arguments).env("OLLAMA_MODELS", folder), "");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert_harmless(&format!("{arguments:?}"), &output.stdout);
        if arguments.contains(&"--json") {
            let value: Value = serde_json::from_slice(&output.stdout).unwrap();
            let name = if arguments[0] == "models" {
                &value["models"][0]["details"]["family"]
            } else {
                &value["tensors"][0]["name"]
            };
            assert_eq!(name, HOSTILE);
        } else {
            assert!(str::from_utf8(&output.stdout).unwrap().contains("a␛[2J␛]0;b␇␡\u{fffd}2J␍␊hint: zap"));
        }
    }
}

#[test]
fn errors_quote_what_is_hostile_harmlessly() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("m.gguf");
    hostile_model(&model);
    let missing = format!("./{}.gguf", HOSTILE.replace('/', ""));
    for (arguments, status) in [
        (&["inspect", &missing][..], 1),
        (&["tokenize", model.to_str().unwrap(), "a"], 1),
        (&["render", model.to_str().unwrap(), "--messages", "-"], 1),
        (&["inspect", &format!("--{HOSTILE}")], 2),
        (&[HOSTILE], 2),
    ] {
        let output = common::run(&mut program(arguments), "[]");
        assert_eq!(output.status.code(), Some(status), "{arguments:?}");
        let said = str::from_utf8(&output.stderr).unwrap();
        assert!(said.starts_with("error: "), "{said:?}");
        let strange = |c: char| c.is_control() && c != '\n';
        assert!(!said.contains(strange), "{said:?}");
        if status == 1 {
            assert_harmless(&format!("{arguments:?}"), &output.stderr);
        }
    }
}

/// Text that is the product of a command comes out of a pipe as it is. Id 238 + N is the byte N.
#[test]
fn a_pipe_gets_exact_text_and_a_terminal_does_not() {
    let arguments = ["detokenize", VOCABULARY, "--ids", "265,329"];
    assert_eq!(common::run(&mut program(&arguments), "").stdout, b"\x1b[");

    #[cfg(target_os = "linux")]
    {
        // `script` runs a command on a terminal of its own.
        let command = format!("'{}' {}", env!("CARGO_BIN_EXE_rullama"), arguments.join(" "));
        let mut script = std::process::Command::new("script");
        let output = script.args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), "␛[");
    }
}

/// Where nothing can be written the exit status is what it would be otherwise, and 1 where the output was the point.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_no_reason_to_panic() {
    let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap());
    for (arguments, status) in [
        (&["inspect", "/nonexistent.gguf"][..], 1),
        (&["inspect", "--nothing"], 2),
        (&["generate", "--temperature", "x", "--prompt", "a"], 2),
        (&["serve", "--app", "/nonexistent"], 1),
    ] {
        let mut command = program(arguments);
        let ended = command.stdin(Stdio::null()).stdout(full()).stderr(full()).status().unwrap();
        assert_eq!(ended.code(), Some(status), "{arguments:?}");
    }
    for arguments in [
        &["inspect", VOCABULARY][..],
        &["inspect", VOCABULARY, "--json"],
        &["tokenize", VOCABULARY, "a"],
        &["detokenize", VOCABULARY, "--ids", "300"],
        &["--help"],
        &["--version"],
    ] {
        for stderr in [Stdio::null(), full()] {
            let mut command = program(arguments);
            let ended = command.stdin(Stdio::null()).stdout(full()).stderr(stderr).status().unwrap();
            assert_eq!(ended.code(), Some(1), "{arguments:?}");
        }
    }
}

#[test]
fn a_seed_too_large_is_refused() {
    for seed in ["18446744073709551616", "-9223372036854775809", "1e3", "x"] {
        let (status, said) = common::failure(&mut program(&["generate", "--prompt", "a", "--seed", seed]));
        assert_eq!(status, 2, "{said}");
        assert!(said.contains("--seed") && said.contains("18446744073709551615"), "{said}");
    }
}
