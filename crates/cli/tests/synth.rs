//! `rullama synth` as its users run it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{fs, path::Path};

use common::{names, program};
use serde_json::{Value, json};

fn success(arguments: &[&str], folder: &Path) -> String {
    common::success(program(arguments).current_dir(folder), "")
}

fn failure(arguments: &[&str], folder: &Path) -> (i32, String) {
    common::failure(program(arguments).current_dir(folder))
}

#[test]
fn a_model_is_written_that_other_commands_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let printed = success(
        &["synth", "tiny-26b-a4b", "m.gguf", "--format", "Q4_K_M", "--seed", "7", "--vocab", "600"],
        folder,
    );
    assert!(printed.contains("m.gguf") && printed.contains("265 tensors"), "{printed}");
    assert_eq!(names(folder), ["m.gguf"]);

    let report = success(&["inspect", "m.gguf", "--json", "--tensors", "--metadata"], folder);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["architecture"], "gemma4");
    assert_eq!(report["layers"], 12);
    assert_eq!(report["metadata"]["general.file_type"], 15);
    assert_eq!(report["metadata"]["gemma4.expert_count"], 8);
    assert_eq!(report["tensors"].as_array().unwrap().len(), 265);

    let tokens = success(&["tokenize", "m.gguf", "the way of all things", "--json"], folder);
    let tokens: Value = serde_json::from_str(&tokens).unwrap();
    let pieces = tokens["pieces"].as_array().unwrap().iter().map(|piece| piece.as_str().unwrap());
    assert_eq!(pieces.collect::<String>(), "the way of all things");
}

#[test]
fn the_same_arguments_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let small = ["--format", "q8_0", "--vocab", "512"];
    let write = |name: &str, more: &[&str]| {
        success(&[&["synth", "tiny-12b", name], &small[..], more].concat(), folder);
        fs::read(folder.join(name)).unwrap()
    };
    // What is there is replaced.
    fs::write(folder.join("a.gguf"), "something else").unwrap();
    let first = write("a.gguf", &["--seed", "3"]);
    assert!(first == write("b.gguf", &["--seed", "3"]));
    assert!(first != write("c.gguf", &["--seed", "4"]));
    assert!(write("d.gguf", &["--seed", "3", "--towers"]).len() > first.len());
    assert_eq!(names(folder), ["a.gguf", "b.gguf", "c.gguf", "d.gguf"]);
}

#[test]
fn what_cannot_be_made_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (arguments, expected) in [
        (&["synth", "tiny-e2b", "m.gguf", "--format", "q3_k"][..], "q4_k_m"),
        (&["synth", "9b", "m.gguf"], "26b-a4b"),
        (&["synth", "tiny-e2b", "m.gguf", "--vocab", "10"], "512"),
        (&["synth", "tiny-e2b"], "OUT.gguf"),
    ] {
        let (status, message) = failure(arguments, folder);
        assert_eq!(status, 2, "{message}");
        assert!(message.contains(expected), "{message}");
    }
    assert!(names(folder).is_empty());
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("models")).unwrap();
    let (status, message) = failure(&["synth", "tiny-e2b", "models"], folder);
    assert_eq!(status, 1);
    assert!(message.contains("`models` is a folder"), "{message}");

    let (status, message) = failure(&["synth", "tiny-e2b", "missing/m.gguf"], folder);
    assert_eq!(status, 1);
    assert!(message.contains("`missing/m.gguf` can't be written") && message.contains("hint"), "{message}");
    assert_eq!(names(folder), ["models"]);

    #[cfg(unix)]
    {
        let (status, message) = failure(&["synth", "tiny-e2b", "/dev/null"], folder);
        assert_eq!(status, 1);
        assert!(message.contains("not a regular file"), "{message}");

        // A link stays, and what it leads to is replaced.
        fs::write(folder.join("models/real.gguf"), "").unwrap();
        std::os::unix::fs::symlink("models/real.gguf", folder.join("link.gguf")).unwrap();
        success(&["synth", "tiny-12b", "link.gguf", "--format", "q8_0", "--vocab", "512"], folder);
        assert!(folder.join("link.gguf").is_symlink());
        assert!(fs::metadata(folder.join("models/real.gguf")).unwrap().len() > 1_000_000);
    }
}

/// 12B has no towers: it projects images and sound directly. 31B does not hear.
#[test]
fn inspect_tells_what_a_model_takes_besides_text() {
    let folder = tempfile::tempdir().unwrap();
    for (preset, expected) in [
        ("tiny-e2b", json!(["vision", "audio"])),
        ("tiny-12b", json!(["vision", "audio"])),
        ("tiny-31b", json!(["vision"])),
    ] {
        let file = format!("{preset}.gguf");
        success(&["synth", preset, &file, "--towers", "--vocab", "512"], folder.path());
        let report: Value =
            serde_json::from_str(&success(&["inspect", &file, "--json"], folder.path())).unwrap();
        assert_eq!(report["towers"], expected, "{preset}");
    }
}
