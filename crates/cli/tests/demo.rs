//! The demo model: it answers where no model is named, and to its own name unless that is taken.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use rullama_gguf::ollama::Digest;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rullama");
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/demo.gguf");
/// A model that cannot do sums.
const OTHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-Q8_0.gguf");

const QUESTION: &str = "What is 7 + 5?";
const ANSWER: &str = "7 + 5 = 12.";
const NOTE: &str = "note: no model given, so this is the demo model";

/// Runs a program in a folder, with the store that is in it, and never with that of whoever runs the tests.
fn run(program: &Path, folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("OLLAMA_MODELS", folder.join("store"));
    let output = common::run(&mut command, input);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// What it prints, and what it says on standard error.
fn rullama(arguments: &[&str], input: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let output = run(Path::new(PROGRAM), folder.path(), arguments, input);
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Whether it is the demo model that answers.
fn is_demo(program: &Path, folder: &Path, named: &[&str]) -> bool {
    let question = ["--prompt", QUESTION, "--think", "off", "--temperature", "0", "--max-tokens", "16"];
    let arguments = [&["generate", "--backend", "cpu"], named, &question].concat();
    String::from_utf8_lossy(&run(program, folder, &arguments, "").stdout).trim_end() == ANSWER
}

#[test]
fn its_towers_are_told() {
    let (printed, _) = rullama(&["inspect", "demo"], "");
    assert!(
        printed.lines().any(|line| line.split_whitespace().eq(["towers", "vision,", "audio"])),
        "{printed}"
    );
}

#[test]
fn it_answers_where_no_model_is_named() {
    let question = ["generate", "--prompt", QUESTION, "--backend", "cpu", "--temperature", "0"];
    let (printed, said) = rullama(&[&question[..], &["--think", "off"]].concat(), "");
    assert_eq!(printed, format!("{ANSWER}\n"));
    assert!(said.starts_with(NOTE) && said.lines().count() == 1, "{said}");

    // By its name it is what was asked for, so that there is nothing to note.
    let named = ["generate", "demo", "--prompt", QUESTION, "--backend", "cpu", "--temperature", "0"];
    let (printed, said) = rullama(&[&named[..], &["--think", "off"]].concat(), "");
    assert_eq!((printed, said), (format!("{ANSWER}\n"), String::new()));

    let (printed, _) = rullama(&[&question[..], &["--json"]].concat(), "");
    let reply: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&reply["text"], &reply["finish_reason"]), (&json!(ANSWER), &json!("stop")));
    assert_ne!(reply["thinking"], Value::Null, "it thinks unless told not to");
}

/// What the app offers to ask, as `packages/app/src/model/demo.ts` has it, is answered to the point.
#[test]
fn it_answers_what_the_app_offers_to_ask() {
    let questions = [
        ("What is rullama?", "Gemma 4"),
        (QUESTION, ANSWER),
        ("How do I load a model of my own?", "On the Models page press \"Choose a file\""),
    ];
    let app =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packages/app/src/model/demo.ts"));
    let offered =
        format!("DEMO_QUESTIONS: readonly string[] = {:?};", questions.map(|(question, _)| question));
    assert!(app.unwrap().contains(&offered), "the app offers other questions than {offered}");
    for (question, expected) in questions {
        for think in ["on", "off"] {
            let asked = ["generate", "--prompt", question, "--backend", "cpu", "--temperature", "0"];
            let (printed, _) = rullama(&[&asked[..], &["--think", think]].concat(), "");
            assert!(printed.contains(expected), "{question} {printed}");
        }
    }
}

/// Drivers are found by these variables, of which older loaders know the second only.
#[cfg(target_os = "linux")]
#[test]
fn it_answers_where_there_is_no_gpu() {
    let hidden = |arguments: &[&str]| {
        let places =
            ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "OLLAMA_MODELS"].map(|name| (name, "/nonexistent"));
        Command::new(PROGRAM).args(arguments).envs(places).output().unwrap()
    };
    for named in [&[][..], &["demo"]] {
        let question = ["--prompt", QUESTION, "--think", "off", "--temperature", "0"];
        let output = hidden(&[&["generate"], named, &question].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{ANSWER}\n"), "{said}");
        assert!(said.contains("note: no GPU found, so rullama uses the CPU"), "{said}");
    }
    let measured =
        hidden(&["bench", "--prompt", "4", "--generate", "2", "--depth", "0", "--repeat", "1", "--json"]);
    let report: Value = serde_json::from_slice(&measured.stdout).unwrap();
    assert_eq!((&report["model"], &report["backend"]), (&json!("demo"), &json!("cpu")));
    // What was asked for is not done otherwise.
    let refused = hidden(&["generate", "--prompt", QUESTION, "--backend", "gpu"]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("error: no GPU found"), "{said}");
}

#[test]
fn it_chats_and_is_measured_where_no_model_is_named() {
    let (printed, said) = rullama(
        &["run", "--backend", "cpu", "--temperature", "0", "--think", "off"],
        &format!("{QUESTION}\n/bye\n"),
    );
    assert_eq!(printed, format!("{ANSWER}\n"));
    assert!(said.starts_with(NOTE), "{said}");

    let small = ["--prompt", "4", "--generate", "2", "--depth", "0", "--repeat", "1", "--json"];
    let (printed, said) = rullama(&[&["bench", "--backend", "cpu"], &small[..]].concat(), "");
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report["model"], "demo");
    assert!(said.starts_with(NOTE), "{said}");
}

#[test]
fn every_command_knows_its_name() {
    for name in ["demo", "Demo"] {
        let report: Value = serde_json::from_str(&rullama(&["inspect", name, "--json"], "").0).unwrap();
        assert_eq!(report["bytes"], fs::metadata(DEMO).unwrap().len());
    }
    let (ids, _) = rullama(&["tokenize", "demo", QUESTION, "--json"], "");
    let ids: Value = serde_json::from_str(&ids).unwrap();
    assert_eq!(
        ids["pieces"].as_array().unwrap().iter().map(|piece| piece.as_str().unwrap()).collect::<String>(),
        QUESTION
    );
    let messages = format!(r#"[{{"role": "user", "content": "{QUESTION}"}}]"#);
    let (prompt, _) = rullama(&["render", "demo", "--messages", "-", "--think", "off"], &messages);
    assert_eq!(prompt.trim_end(), format!("<bos><|turn>user\n{QUESTION}<turn|>\n<|turn>model"));
}

/// A file or a stored model that is called `demo` is meant by that name; where none is named, only the program's own
/// counts, whatever lies in the working folder.
#[test]
fn others_may_have_its_name() {
    let program = Path::new(PROGRAM);
    let folder = tempfile::tempdir().unwrap();
    let inside = |path: &str| folder.path().join(path);
    fs::create_dir_all(inside("models")).unwrap();
    fs::copy(OTHER, inside("models/demo.gguf")).unwrap();
    assert!(is_demo(program, folder.path(), &[]));
    assert!(is_demo(program, folder.path(), &["demo"]));

    store_as_demo(&inside("store"), &fs::read(OTHER).unwrap());
    assert!(is_demo(program, folder.path(), &[]));
    assert!(!is_demo(program, folder.path(), &["demo"]));

    fs::remove_dir_all(inside("store")).unwrap();
    fs::copy(OTHER, inside("demo")).unwrap();
    assert!(is_demo(program, folder.path(), &[]));
    assert!(!is_demo(program, folder.path(), &["demo"]));
}

/// A store with one model, called `demo`.
fn store_as_demo(store: &Path, weights: &[u8]) {
    let blob = |kind: &str, content: &[u8]| {
        let digest = Digest::of(content);
        fs::create_dir_all(store.join("blobs")).unwrap();
        fs::write(store.join("blobs").join(digest.blob_name()), content).unwrap();
        let media = format!("application/vnd.ollama.image.{kind}");
        json!({ "mediaType": media, "digest": digest.to_string(), "size": content.len() })
    };
    let config =
        blob("config", json!({ "model_format": "gguf", "model_family": "gemma4" }).to_string().as_bytes());
    let manifest = json!({ "schemaVersion": 2, "config": config, "layers": [blob("model", weights)] });
    let path = store.join("manifests/registry.ollama.ai/library/demo");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("latest"), manifest.to_string()).unwrap();
}

/// A program that was installed elsewhere has what lies beside it, and else what it was built with. What lies in a folder
/// above it may be anybody's.
#[test]
fn an_installed_program_has_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("bin/rullama");
    fs::create_dir(folder.path().join("bin")).unwrap();
    // It is large; where it can, a second name for it does.
    fs::hard_link(PROGRAM, &program).or_else(|_| fs::copy(PROGRAM, &program).map(drop)).unwrap();
    assert!(is_demo(&program, folder.path(), &[]));
    let place = |place: &str, model| {
        fs::create_dir(folder.path().join(place)).unwrap();
        fs::copy(model, folder.path().join(place).join("demo.gguf")).unwrap();
        is_demo(&program, folder.path(), &[])
    };
    fs::write(folder.path().join("Cargo.toml"), "").unwrap();
    assert!(place("models", OTHER));
    assert!(!place("bin/models", OTHER));
}
