//! The demo model among the others: listed, served in parts, and left out where it is not wanted.

use std::{fs, path::Path, process::Stdio};

use rullama_gguf::ollama::Digest;
use serde_json::{Value, json};

use crate::server::{PROGRAM, Server, Store, command_of, install};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/demo.gguf");
const OTHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-Q8_0.gguf");
const URL: &str = "/models/demo.gguf";

/// A server as users start it.
fn start(arguments: &[&str]) -> Server {
    let folder = tempfile::tempdir().unwrap();
    Server::start_program(Path::new(PROGRAM), folder.path(), &[&["--port", "0"], arguments].concat())
}

fn models(server: &Server) -> Vec<Value> {
    server.get("/api/models").json()["models"].as_array().unwrap().clone()
}

/// A machine without Ollama has it, with its digest, so that a download that broke off can go on.
#[test]
fn it_is_listed_and_served_in_parts() {
    let server = start(&[]);
    let bytes = fs::read(DEMO).unwrap();
    let digest = Digest::of(&bytes);
    let listed = models(&server);
    assert_eq!(listed.len(), 1);
    for (name, expected) in [
        ("name", json!("demo.gguf")),
        ("url", json!(URL)),
        ("bytes", json!(bytes.len())),
        ("sha256", json!(digest.hex())),
        ("family", json!("gemma4")),
    ] {
        assert_eq!(listed[0][name], expected, "{name}");
    }

    let tag = format!("\"{digest}\"");
    let whole = server.get(URL);
    assert_eq!((whole.status, whole.header("etag")), (200, tag.as_str()));
    assert!(whole.body == bytes);
    let part = server.get_with(URL, &[("range", "bytes=1000000-1999999"), ("if-range", &tag)]);
    assert_eq!(part.status, 206);
    assert_eq!(part.header("content-range"), format!("bytes 1000000-1999999/{}", bytes.len()));
    assert!(part.body == bytes[1_000_000..2_000_000]);
    assert_eq!(server.get("/projectors/demo.gguf").status, 404);
}

#[test]
fn it_stands_beside_a_store_unless_it_is_not_wanted() {
    let store = Store::new();
    let names = |arguments: &[&str]| {
        let listed = models(&start(&[&["--models", store.argument()], arguments].concat()));
        listed.iter().map(|model| model["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["demo.gguf", "gemma4:e2b", "hf.co/user/repo.v1:Q4_K_M"]);
    assert_eq!(names(&["--no-demo"]), ["gemma4:e2b", "hf.co/user/repo.v1:Q4_K_M"]);
    assert_eq!(start(&["--no-demo"]).get(URL).status, 404);
}

/// A file that was named is the one that is meant.
#[test]
fn a_file_of_its_name_takes_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("demo.gguf");
    fs::copy(OTHER, &file).unwrap();
    let server = start(&["--model", file.to_str().unwrap()]);
    let listed = models(&server);
    assert_eq!((listed.len(), &listed[0]["name"]), (1, &json!("demo.gguf")));
    assert_eq!(listed[0]["sha256"], Value::Null);
    assert!(server.get(URL).body == fs::read(OTHER).unwrap());
}

/// A newer one that takes its place while it is served has its own digest.
#[test]
fn one_that_was_replaced_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (program, own) = (folder.path().join("rullama"), folder.path().join("models/demo.gguf"));
    install(&program);
    fs::create_dir(folder.path().join("models")).unwrap();
    fs::copy(OTHER, &own).unwrap();
    let server = Server::start_program(&program, folder.path(), &["--port", "0"]);
    for expected in [OTHER, DEMO] {
        fs::copy(expected, &own).unwrap();
        let digest = Digest::of(&fs::read(expected).unwrap());
        assert_eq!(models(&server)[0]["sha256"], digest.hex());
        assert_eq!(server.ask("HEAD", URL, &[], b"").header("etag"), format!("\"{digest}\""));
    }
}

/// A file that is no model is told before anything is served, with the way around it.
#[test]
fn a_damaged_one_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("rullama");
    install(&program);
    fs::create_dir(folder.path().join("models")).unwrap();
    fs::write(folder.path().join("models/demo.gguf"), "no model").unwrap();
    let output = command_of(&program, &["--port", "0"]).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains("isn't a GGUF file") && said.contains("; --no-demo serves without it"), "{said}");
    let server = Server::start_program(&program, folder.path(), &["--port", "0", "--no-demo"]);
    assert_eq!(models(&server), Vec::<Value>::new());
}
