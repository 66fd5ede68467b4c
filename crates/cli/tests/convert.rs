//! `rullama convert` as its users run it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{fs, path::Path, process::Command};

use common::{names, program};
use serde_json::Value;

const CHECKPOINT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/convert/nano-e2b");

fn success(arguments: &[&str], folder: &Path) -> String {
    common::success(program(arguments).current_dir(folder), "")
}

fn failure(arguments: &[&str], folder: &Path) -> (i32, String) {
    common::failure(program(arguments).current_dir(folder))
}

/// A copy of the checkpoint without some of its files.
fn checkpoint(without: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(CHECKPOINT).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !without.contains(&name) {
            fs::copy(&path, folder.path().join(name)).unwrap();
        }
    }
    folder
}

#[test]
fn a_model_is_written_that_other_commands_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let arguments =
        ["convert", CHECKPOINT, "m.gguf", "--format", "q8_0", "--tensor", "v.*=Q8_0", "--name", "Nano"];
    let printed = success(&arguments, folder);
    assert!(printed.contains("182 tensors") && printed.contains("m.gguf"), "{printed}");
    assert_eq!(names(folder), ["m.gguf"]);

    let report = success(&["inspect", "m.gguf", "--json", "--tensors", "--metadata"], folder);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["metadata"]["general.name"], "Nano");
    assert_eq!(report["metadata"]["gemma4.vision.block_count"], 1);
    let tensors = report["tensors"].as_array().unwrap();
    let format = |name: &str| {
        let tensor = tensors.iter().find(|tensor| tensor["name"] == name).unwrap();
        tensor["format"].as_str().unwrap().to_owned()
    };
    assert_eq!(format("v.blk.0.attn_q.weight"), "Q8_0");
    assert_eq!(format("a.blk.0.attn_q.weight"), "BF16");

    let reply = success(
        &[
            "generate",
            "m.gguf",
            "--raw",
            "--prompt",
            "the",
            "--max-tokens",
            "4",
            "--backend",
            "cpu",
            "--json",
        ],
        folder,
    );
    assert!(serde_json::from_str::<Value>(&reply).unwrap()["ids"].as_array().is_some(), "{reply}");
}

#[test]
fn what_is_there_is_only_replaced_by_force() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("m.gguf"), "precious").unwrap();
    let (status, said) = failure(&["convert", CHECKPOINT, "m.gguf"], folder);
    assert_eq!(status, 1);
    assert!(said.contains("`m.gguf` already exists") && said.contains("hint: use --force"), "{said}");
    assert_eq!(fs::read(folder.join("m.gguf")).unwrap(), b"precious");
    success(&["convert", CHECKPOINT, "m.gguf", "--force", "--text-only"], folder);
    assert!(fs::read(folder.join("m.gguf")).unwrap().starts_with(b"GGUF"));
    assert_eq!(names(folder), ["m.gguf"]);
}

#[test]
fn what_cannot_be_converted_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = |checkpoint: &tempfile::TempDir| checkpoint.path().to_str().unwrap().to_owned();

    for missing in ["config.json", "tokenizer.json", "model-00002-of-00003.safetensors"] {
        let checkpoint = checkpoint(&[missing]);
        let (status, said) = failure(&["convert", &text(&checkpoint), "m.gguf"], folder);
        assert_eq!(status, 1);
        assert!(said.contains(missing) && said.contains("is missing") && said.contains("\nhint: "), "{said}");
    }

    let damaged = checkpoint(&[]);
    let path = damaged.path().join("model-00001-of-00003.safetensors");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let (_, said) = failure(&["convert", &text(&damaged), "m.gguf"], folder);
    assert!(said.contains("its header describes") && said.contains("download it again"), "{said}");

    let (_, said) = failure(&["convert", CHECKPOINT, "m.gguf", "--tensor", "x.*=q8_0"], folder);
    assert!(said.contains("no tensor matches `x.*`"), "{said}");
    for wrong in [&["--tensor", "v.*"][..], &["--tensor", "v.*=q3_k"], &["--format", "q3_k"], &["--nothing"]]
    {
        let (status, _) = failure(&[&["convert", CHECKPOINT, "m.gguf"], wrong].concat(), folder);
        assert_eq!(status, 2, "{wrong:?}");
    }
    let (_, said) = failure(&["convert", CHECKPOINT, "no/such/folder/m.gguf"], folder);
    assert!(said.contains("hint: check that the folder exists"), "{said}");
    assert!(names(folder).is_empty());
}

/// Files may have 16 KiB, as on a disk with no more room.
#[cfg(unix)]
#[test]
fn nothing_is_left_on_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_rullama");
    let limited = format!("trap '' XFSZ; ulimit -f 32; exec '{program}' convert '{CHECKPOINT}' m.gguf");
    let output = Command::new("sh").args(["-c", &limited]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("can't be written") && said.contains("the incomplete file was deleted"), "{said}");
    assert!(names(folder.path()).is_empty());
}
