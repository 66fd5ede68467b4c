//! What a new user tries first: prompts from pipes, words that are not models, stores that can't be read.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{fs, os::unix::fs::PermissionsExt as _, process::Stdio};

use common::program;

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/tiny-e2b-Q4_K_M.gguf");
const CPU: [&str; 4] = ["--backend", "cpu", "--temperature", "0"];

/// Runs the program without piped input, and returns its exit status, output and messages.
fn unpiped(arguments: &[&str]) -> (i32, String, String) {
    let output = program(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Runs the program with piped input.
fn piped(arguments: &[&str], input: &str) -> (i32, String, String) {
    let output = common::run(&mut program(arguments), input);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_pipe_gets_the_answer_without_the_thought() {
    let question = [&["generate", "-p", "What is 7 + 5?"], &CPU[..]].concat();
    let (status, printed, _) = unpiped(&question);
    let (_, json, _) = unpiped(&[&question[..], &["--json"]].concat());
    let reply: serde_json::Value = serde_json::from_str(&json).unwrap();
    let (thought, answer) = (reply["thinking"].as_str().unwrap(), reply["text"].as_str().unwrap());
    assert!(status == 0 && !thought.is_empty() && answer.contains("12"), "{json}");
    assert_eq!(printed, format!("{answer}\n"));
    let (_, printed, _) = unpiped(&[&["run", "demo", "What is 7 + 5?"], &CPU[..]].concat());
    assert_eq!(printed, format!("{answer}\n"));
}

/// `script` runs a command on a terminal of its own.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_marks_thoughts_and_obeys_no_color() {
    let shown = |variable: &str, value: &str| {
        let command = format!(
            "'{}' run demo 'What is 7 + 5?' {} </dev/null",
            env!("CARGO_BIN_EXE_rullama"),
            CPU.join(" ")
        );
        let mut script = std::process::Command::new("script");
        script
            .args(["-qec", &command, "/dev/null"])
            .env("OLLAMA_MODELS", "/nonexistent")
            .env("TERM", "xterm");
        common::success(script.env_remove("NO_COLOR").env(variable, value), "").replace('\r', "")
    };
    let coloured = shown("TERM", "xterm");
    assert!(
        coloured.contains("\x1b[2mThinking…\n") && coloured.contains("\n…done thinking.\x1b[0m\n\n"),
        "{coloured}"
    );
    for plain in [shown("NO_COLOR", "1"), shown("TERM", "dumb")] {
        assert!(plain.contains("Thinking…\n") && plain.contains("\n…done thinking.\n\n"), "{plain}");
        assert!(!plain.contains("\x1b[2m"), "{plain}");
    }
}

#[test]
fn piped_text_follows_the_prompt() {
    let expected = unpiped(&[&["generate", "demo", "What is\n7 + 5?"], &CPU[..]].concat());
    for arguments in [["generate", "demo", "What is"], ["run", "demo", "What is"]] {
        let found = piped(&[&arguments[..], &CPU[..]].concat(), "7 + 5?\n");
        assert_eq!((found.0, found.1), (0, expected.1.clone()));
    }
    let (status, printed, said) = piped(&["generate", "gemma4"], "Hello\n");
    assert!(status == 1 && printed.is_empty() && said.contains("no Ollama models found"), "{said}");
}

#[test]
fn empty_prompts_are_refused() {
    for arguments in
        [["run", "demo", " "], ["generate", "demo", ""], ["run", "demo", "-"], ["generate", "demo", "-"]]
    {
        let (status, printed, said) = piped(&arguments, "");
        assert!(status == 2 && printed.is_empty() && said.contains("prompt"), "{arguments:?}: {said}");
    }
    for command in ["run", "generate"] {
        let (status, printed, said) = piped(&[command, "demo", "--backend", "cpu"], "\n \n");
        assert!(
            status == 2 && printed.is_empty() && said.contains("standard input is empty"),
            "{command}: {said}"
        );
    }
}

#[test]
fn a_word_that_is_no_model_is_named() {
    let (status, _, said) = unpiped(&[&["generate", "missing", "--max-tokens", "4"], &CPU[..]].concat());
    assert_eq!(status, 0, "{said}");
    assert!(
        said.contains("`missing` is not a model, so it was used as the prompt; the demo model answers"),
        "{said}"
    );
    assert!(said.contains("note: stopped after 4 tokens (--max-tokens)"), "{said}");

    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("weights")).unwrap();
    for arguments in [["generate", "weights"], ["run", "weights"], ["show", "./weights"]] {
        let output = program(&arguments).current_dir(folder.path()).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains("is a folder, not a model"), "{said}");
    }
}

#[test]
fn an_unreadable_store_is_not_a_missing_one() {
    let folder = tempfile::tempdir().unwrap();
    let list = |path: &std::path::Path| {
        let output = program(&["list"]).env("OLLAMA_MODELS", path).stdin(Stdio::null()).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let (status, said) = list(&file);
    assert!(status == 1 && said.contains("is not a folder") && said.contains("hint: "), "{said}");

    let parent = folder.path().join("parent");
    fs::create_dir_all(parent.join("models/manifests")).unwrap();
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o000)).unwrap();
    let refused = fs::read_dir(&parent).is_err();
    let (status, said) = list(&parent.join("models"));
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o755)).unwrap();
    // The administrator may read every folder.
    if refused {
        assert!(status == 1 && said.contains("can't be read") && said.contains("permission"), "{said}");
    } else {
        assert_eq!(status, 0, "{said}");
    }
}

#[test]
fn ollamas_other_commands_are_explained() {
    for (arguments, expected) in [
        (&["pull", "gemma4:e4b"][..], "run `ollama pull gemma4:e4b`"),
        (&["stop", "gemma4"], "nothing to stop"),
        (&["create", "x", "-f", "Modelfile"], "ollama create"),
        (&["cp", "a", "b"], "run `ollama cp a b`"),
    ] {
        let (status, printed, said) = unpiped(arguments);
        assert!(status == 2 && printed.is_empty() && said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn think_can_be_written_in_several_ways() {
    let prompt = |think: &[&str]| {
        let messages = r#"[{"role": "user", "content": "Hello"}]"#;
        let (status, printed, said) =
            piped(&[&["render", TINY, "--messages", "-"], think].concat(), messages);
        assert_eq!(status, 0, "{said}");
        printed
    };
    for on in [&["--think"][..], &["--think", "true"], &["--think=on"]] {
        assert!(prompt(on).contains("<|think|>"), "{on:?}");
    }
    for off in [&["--think", "false"][..], &["--think=off"]] {
        assert!(!prompt(off).contains("<|think|>"), "{off:?}");
    }
}

#[test]
fn unknown_roles_are_refused() {
    let messages = r#"[{"role": "user", "content": "Hello"}, {"role": "critic", "content": "No"}]"#;
    let (status, _, said) = piped(&["generate", TINY, "--messages", "-", "--backend", "cpu"], messages);
    assert!(status == 1 && said.contains("messages[1]") && said.contains("unknown role `critic`"), "{said}");
}

#[test]
fn a_dash_is_standard_input_for_tokenize() {
    let (_, expected, _) = unpiped(&["tokenize", TINY, "Hello"]);
    assert_eq!(piped(&["tokenize", TINY, "-"], "Hello").1, expected);
}

#[test]
fn other_schemes_and_ports_are_refused() {
    let (status, _, said) = unpiped(&["show", "ftp://example.org/m.gguf"]);
    assert!(status == 1 && said.contains("rullama reads http and https addresses only"), "{said}");
    for command in ["serve", "ps"] {
        let (status, _, said) = unpiped(&[command, "--port", "abc"]);
        assert!(status == 2 && said.contains("expected a whole number from 0 to 65535"), "{said}");
    }
}
