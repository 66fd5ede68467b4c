//! What users of Ollama and llama.cpp type: prompts as arguments, options and pipes, `ps` and `rm`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
};

use common::{program, store};
use rullama_gguf::ollama::Digest;
use serde_json::{Value, json};

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/tiny-e2b-Q4_K_M.gguf");
const QUESTION: &str = "What is the capital of France? Answer in one word.";
const DEMO_QUESTION: &str = "What is 7 + 5?";
const SETTINGS: [&str; 6] = ["--think", "off", "--temperature", "0", "--backend", "cpu"];

fn answer(arguments: &[&str], input: &str) -> String {
    common::success(&mut program(&[arguments, &SETTINGS].concat()), input)
}

#[test]
fn a_prompt_can_be_given_in_every_usual_way() {
    for (arguments, input) in [
        (&["generate", TINY, QUESTION][..], ""),
        (&["generate", TINY, "-p", QUESTION], ""),
        (&["generate", TINY, "--prompt", QUESTION], ""),
        (&["generate", "-m", TINY, "-p", QUESTION], ""),
        (&["generate", "-m", TINY, QUESTION], ""),
        (&["generate", "--model", TINY, "-"], QUESTION),
        (&["generate", TINY, "-"], QUESTION),
        (&["generate", TINY, "-p", "-"], QUESTION),
        (&["generate", TINY], &format!("{QUESTION}\n")),
        (&["run", TINY, QUESTION], ""),
        (&["run", TINY, "-p", QUESTION], ""),
        (&["run", "-m", TINY, QUESTION], ""),
        (&["run", "-m", TINY, "-p", QUESTION], ""),
        (&["run", TINY, "-"], QUESTION),
    ] {
        assert_eq!(answer(arguments, input), "Paris\n", "{arguments:?}");
    }
    // Words need no quotes after the model's name.
    let words: Vec<&str> = QUESTION.split(' ').collect();
    assert_eq!(answer(&[&["run", TINY], &words[..]].concat(), ""), "Paris\n");
}

#[test]
fn a_single_argument_is_a_model_or_a_prompt() {
    // The demo model answers a prompt, whether it is named or not.
    for arguments in [
        &["generate", DEMO_QUESTION][..],
        &["generate", "demo", DEMO_QUESTION],
        &["generate", "-m", "demo", DEMO_QUESTION],
        &["run", "demo", DEMO_QUESTION],
    ] {
        assert_eq!(answer(arguments, ""), "7 + 5 = 12.\n", "{arguments:?}");
    }
    // A model alone takes the prompt from the pipe.
    assert_eq!(answer(&["generate", "demo"], DEMO_QUESTION), "7 + 5 = 12.\n");
    // What is written like a model's name or path, and is none, is not answered as a prompt.
    for name in ["gemma4:e2b", "missing.gguf", "./missing", "/missing/model"] {
        let (status, said) = common::failure(&mut program(&["generate", name]));
        assert_eq!(status, 1, "{said}");
        assert!(said.contains("missing") || said.contains("no Ollama models found"), "{name}: {said}");
    }
    // With --model the argument is the prompt even if it looks like a name.
    let named = ["generate", "-m", TINY, "gemma4:e2b", "--max-tokens", "1", "--backend", "cpu", "--json"];
    let reply = common::json_of(&mut program(&named), "");
    let plain = ["generate", TINY, "-p", "gemma4:e2b", "--max-tokens", "1", "--backend", "cpu", "--json"];
    assert_eq!(reply["prompt_tokens"], common::json_of(&mut program(&plain), "")["prompt_tokens"]);
}

#[test]
fn a_question_that_fails_ends_with_an_error() {
    let (status, said) =
        common::failure(&mut program(&[&["run", TINY, QUESTION, "--context", "4"], &SETTINGS[..]].concat()));
    assert!(status == 1 && said.contains("fit in a context of 4"), "{said}");
}

/// `rullama serve` on a free port, ended with the test.
struct Server(Child, String);

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = program(&[&["serve", "--port", "0"], arguments].concat());
        command.env("XDG_DATA_HOME", folder.path()).env("HOME", folder.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
        assert!(port.parse::<u16>().is_ok(), "{line}");
        Self(child, port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn running_servers_are_found() {
    for (arguments, scheme) in [(&[][..], "http"), (&["--https"], "https")] {
        let server = Server::start(arguments);
        let found = common::json_of(&mut program(&["ps", "--port", &server.1, "--json"]), "");
        let expected = json!([{
            "url": format!("{scheme}://127.0.0.1:{}/", server.1),
            "version": env!("CARGO_PKG_VERSION"),
            "models": 1,
        }]);
        assert_eq!(found["servers"], expected);
        let said = common::success(&mut program(&["ps", "--port", &server.1]), "");
        assert!(said.starts_with("ADDRESS") && said.contains(&server.1), "{said}");
    }
}

/// A closed port, and one where something else listens and says nothing of rullama.
#[test]
fn without_a_server_ps_explains_itself() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    drop(listener);
    let said = common::success(&mut program(&["ps", "--port", &port]), "");
    let expected = format!("No rullama server is running on port {port}. ");
    assert!(said.starts_with(&expected) && said.contains("rullama serve"), "{said}");
    let found = common::json_of(&mut program(&["ps", "--port", &port, "--json"]), "");
    assert_eq!(found, json!({ "servers": [] }));

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ =
                std::io::Write::write_all(&mut { stream }, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
        }
    });
    let found = common::json_of(&mut program(&["ps", "--port", &port, "--json"]), "");
    assert_eq!(found, json!({ "servers": [] }));
}

fn rm(store: &Path, arguments: &[&str]) -> std::process::Output {
    let arguments = [&["rm"], arguments].concat();
    common::run(program(&arguments).env("OLLAMA_MODELS", store), "")
}

#[test]
fn a_deleted_model_takes_only_its_own_files_along() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    store(folder);
    let names = folder.join("manifests/registry.ollama.ai/library");
    let manifest = fs::read_to_string(names.join("gemma4/latest")).unwrap();
    let value: Value = serde_json::from_str(&manifest).unwrap();
    let blob = |layer: &Value| folder.join("blobs").join(layer["digest"].as_str().unwrap().replace(':', "-"));
    // Another model shares the weights; a damaged manifest mentions the system prompt.
    let mut other = value.clone();
    other["layers"] = json!([value["layers"][0]]);
    fs::create_dir_all(names.join("other")).unwrap();
    fs::write(names.join("other/latest"), other.to_string()).unwrap();
    let damaged = format!("{{\"layers\": [{}", value["layers"][1]["digest"]);
    fs::create_dir_all(names.join("damaged")).unwrap();
    fs::write(names.join("damaged/latest"), damaged).unwrap();
    let stray = folder.join("blobs").join(Digest::of(b"stray").blob_name());
    fs::write(&stray, "stray").unwrap();

    let refused = rm(folder, &["gemma4"]);
    assert_eq!(refused.status.code(), Some(2), "without a terminal and --yes nothing is deleted");
    let refused = rm(folder, &["gemma4", "missing", "--yes"]);
    assert_eq!(refused.status.code(), Some(1), "all names are checked first");
    assert!(names.join("gemma4/latest").exists());

    let done = rm(folder, &["Gemma4", "-y"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(!names.join("gemma4").exists() && names.join("other/latest").exists());
    for (layer, stays) in [(0, true), (1, true), (2, false), (3, false)] {
        assert_eq!(blob(&value["layers"][layer]).exists(), stays, "layer {layer}");
    }
    assert!(blob(&value["config"]).exists() && stray.exists());

    // The other model still runs, and takes the rest along.
    let done = rm(folder, &["other", "damaged", "--yes"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(!blob(&value["layers"][0]).exists() && !blob(&value["config"]).exists());
    assert!(blob(&value["layers"][1]).exists(), "a damaged manifest does not say what belongs to it");
    assert!(stray.exists() && !names.exists());
}

/// On a terminal the user is asked, and anything but yes keeps the model.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_is_asked_before_a_model_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    store(folder);
    let manifest = folder.join("manifests/registry.ollama.ai/library/gemma4/latest");
    for (typed, stays) in [("\n", true), ("n\n", true), ("y\n", false)] {
        // `script` runs a command on a terminal of its own.
        let command = format!("'{}' rm gemma4", env!("CARGO_BIN_EXE_rullama"));
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]).env("OLLAMA_MODELS", folder);
        let said = common::success(&mut script, typed);
        assert!(said.contains("Delete gemma4:latest? This frees 2.1 MiB. [y/N]"), "{said}");
        assert_eq!(manifest.exists(), stays, "{typed:?}: {said}");
    }
}

/// A driver's library complains on standard error if the variable is not set, in words that look like ours.
#[cfg(target_os = "linux")]
#[test]
fn drivers_print_no_errors_without_a_runtime_folder() {
    for value in [None, Some("")] {
        let mut command = program(&["inspect", TINY, "--plan"]);
        command.env_remove("XDG_RUNTIME_DIR");
        if let Some(value) = value {
            command.env("XDG_RUNTIME_DIR", value);
        }
        let output = common::run(&mut command, "");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !said.contains("XDG_RUNTIME_DIR"), "{said}");
    }
}
