//! What the program prints, word for word: every help text, and the messages that users meet first.
//!
//! The texts are files in `tests/snapshots`. After a change, `RULLAMA_WRITE_SNAPSHOTS=1 cargo test -p rullama --test
//! snapshots` rewrites them; read the difference before you commit it.

// Paths and the system's messages look different on Windows.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{fs, path::Path};

use common::{program, store};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots");
const MICRO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-Q8_0.gguf");

const COMMANDS: [&str; 18] = [
    "run",
    "generate",
    "serve",
    "list",
    "show",
    "ps",
    "rm",
    "inspect",
    "tokenize",
    "detokenize",
    "render",
    "logits",
    "encode",
    "bench",
    "parity",
    "doctor",
    "convert",
    "synth",
];

/// Compares a text with its snapshot, or rewrites the snapshot.
fn check(name: &str, text: &str) {
    let path = Path::new(FOLDER).join(name);
    if std::env::var_os("RULLAMA_WRITE_SNAPSHOTS").is_some() {
        fs::create_dir_all(FOLDER).unwrap();
        fs::write(&path, text).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == text,
        "{} differs; RULLAMA_WRITE_SNAPSHOTS=1 rewrites it. Now:\n{text}",
        path.display()
    );
}

#[test]
fn help_reads_as_it_should() {
    let help = |arguments: &[&str]| common::success(&mut program(arguments), "");
    check("help.txt", &help(&["--help"]));
    for command in COMMANDS {
        check(&format!("help-{command}.txt"), &help(&[command, "--help"]));
    }
    // No command is left out above.
    let listed = help(&["--help"]);
    let listed = listed.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let listed = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, [&COMMANDS[..], &["help"]].concat());
}

/// Runs the program in a folder and describes what it did, with the names of folders replaced.
fn transcript(folder: &Path, arguments: &[&str], input: &str) -> String {
    let mut command = program(arguments);
    command.current_dir(folder).env("OLLAMA_MODELS", folder.join("store"));
    let output = common::run(&mut command, input);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let shown: Vec<String> = arguments
        .iter()
        .map(
            |word| {
                if word.contains(' ') || word.is_empty() { format!("{word:?}") } else { (*word).to_owned() }
            },
        )
        .collect();
    let mut said = format!("$ rullama {}\n{}", shown.join(" "), text(&output.stdout));
    said += &text(&output.stderr);
    if let Some(status) = output.status.code().filter(|status| *status != 0) {
        said += &format!("[exit status {status}]\n");
    }
    said = said.replace(folder.to_str().unwrap(), "FOLDER");
    // Without the usage lines that the parser adds, which the help snapshots have.
    said.replace("\n\nFor more information, try '--help'.", "") + "\n"
}

fn transcripts(folder: &Path, runs: &[(&[&str], &str)]) -> String {
    runs.iter().map(|(arguments, input)| transcript(folder, arguments, input)).collect()
}

#[test]
fn mistakes_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    fs::write(folder.join("notes.gguf"), "%PDF-1.7").unwrap();
    let whole = fs::read(MICRO).unwrap();
    fs::write(folder.join("cut.gguf"), &whole[..whole.len() / 2]).unwrap();
    fs::write(folder.join("model.gguf"), &whole).unwrap();
    fs::write(folder.join("broken.json"), "[{").unwrap();
    fs::write(folder.join("message.json"), "{\"role\": \"user\"}").unwrap();
    fs::write(folder.join("exists.gguf"), "").unwrap();
    let cpu = ["--backend", "cpu"];
    let text = transcripts(
        &folder,
        &[
            (&["run", "missing.gguf"], ""),
            (&["run", "gemma4:e2b"], ""),
            (&["run", "What is rullama?"], ""),
            (&["inspect", "not a name"], ""),
            (&["show", "notes.gguf"], ""),
            (&["inspect", "cut.gguf"], ""),
            (&["generate", "model.gguf"], ""),
            (&["generate", "-m", "model.gguf", "model.gguf", "-p", "Hello"], ""),
            (&["generate", "model.gguf", "Hello", "-p", "Hello"], ""),
            (&["generate", "-p", "Hello", "--temperature", "-1"], ""),
            (&[&["generate", "model.gguf", "Hello", "--context", "9999999"], &cpu[..]].concat(), ""),
            (&[&["generate", "model.gguf", "Hello there", "--context", "8"], &cpu[..]].concat(), ""),
            (&[&["generate", "model.gguf", "--ids", "99999"], &cpu[..]].concat(), ""),
            (&["generate", "model.gguf", "--messages", "missing.json"], ""),
            (&["generate", "model.gguf", "--messages", "broken.json"], ""),
            (&["generate", "model.gguf", "--messages", "message.json"], ""),
            (&["bench", "model.gguf", "--prompt", "0", "--generate", "0"], ""),
            (&["logits", "model.gguf", "--ids", "2", "--out", "missing/l.npy"], ""),
            (&["logits", "model.gguf", "--ids", "2", "--out", "."], ""),
            (&["convert", "checkpoint", "out.gguf"], ""),
            (&["convert", "checkpoint", "exists.gguf"], ""),
            (&["serve", "--app", "missing"], ""),
            (&["serve", "--model", "notes.gguf"], ""),
            (&["rm", "gemma4:e2b"], ""),
            (&["rm", "demo"], ""),
            (&["frobnicate"], ""),
        ],
    );
    // What the system says differs between systems.
    let text = text.replace("No such file or directory (os error 2)", "SYSTEM ERROR");
    check("mistakes.txt", &text);
}

#[test]
fn a_machine_without_models_is_helped() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let mut text = transcripts(
        &folder,
        &[
            (&["list"], ""),
            (&["list", "--json"], ""),
            (&["list", "gemma4:e2b"], ""),
            (&["show", "demo"], ""),
            (&["generate", "What is 7 + 5?", "--think", "off", "--temperature", "0", "--backend", "cpu"], ""),
        ],
    );
    fs::create_dir(folder.join("store")).unwrap();
    text += &transcripts(&folder, &[(&["ls"], "")]);
    check("first-steps.txt", &text);
}

#[test]
fn a_store_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    store(&folder.join("store"));
    let text = transcripts(
        &folder,
        &[
            (&["list", "--verify"], ""),
            (&["show", "gemma4"], ""),
            (&["show", "gemma4", "--system"], ""),
            (&["show", "gemma4", "--parameters"], ""),
            (&["show", "gemma4", "--license"], ""),
            (&["show", "gemma4", "--template"], ""),
            (&["rm", "gemma4"], ""),
            (&["rm", "gemma4", "--yes"], ""),
            (&["list"], ""),
        ],
    );
    check("store.txt", &text);
}
