//! `rullama parity` against the CPU, and against servers that answer like Ollama and llama.cpp.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Output,
    sync::Arc,
    thread,
};

use common::program;
use serde_json::{Value, json};

const PROMPT: &str = "The quick";

fn model() -> String {
    format!("{}/../../testdata/gguf/micro-e2b-F16.gguf", env!("CARGO_MANIFEST_DIR"))
}

fn rullama(arguments: &[&str]) -> Output {
    common::run(&mut program(arguments), "")
}

/// What `parity` finds, and its exit status.
fn parity(more: &[&str]) -> (Value, i32) {
    let folder = tempfile::tempdir().unwrap();
    let prompts = folder.path().join("prompts.json");
    fs::write(&prompts, json!([PROMPT]).to_string()).unwrap();
    let arguments =
        ["parity", &model(), "--prompts", prompts.to_str().unwrap(), "--max-tokens", "6", "--json"];
    let output = rullama(&[&arguments[..], more].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let found = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    (found, output.status.code().unwrap())
}

/// What the CPU says after the prompt.
fn expected() -> Value {
    let arguments = ["generate", &model(), "--prompt", PROMPT, "--raw", "--temperature", "0", "--json"];
    let output = rullama(&[&arguments[..], &["--max-tokens", "6", "--backend", "cpu"]].concat());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A server whose answers are made of the path and the body of each request. It ends with the tests.
fn serve(answer: impl Fn(&str, &Value) -> Option<Value> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = answer.clone();
            thread::spawn(move || respond(stream.unwrap(), &*answer));
        }
    });
    address
}

fn respond(stream: TcpStream, answer: &dyn Fn(&str, &Value) -> Option<Value>) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let path = first.split(' ').nth(1).unwrap_or_default();
    let (status, text) = match answer(path, &serde_json::from_slice(&body).unwrap_or_default()) {
        Some(value) if value.get("error").is_some() => ("404 Not Found", value.to_string()),
        Some(value) => ("200 OK", value.to_string()),
        None => ("404 Not Found", "{}".to_owned()),
    };
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
    let mut stream = reader.into_inner();
    stream.write_all((head + &text).as_bytes()).unwrap();
}

#[test]
fn the_gpu_agrees_with_the_cpu() {
    let (found, status) = parity(&[]);
    assert_eq!((status, &found["verdict"], &found["against"]), (0, &json!("equal"), &json!("cpu")));
    assert_eq!((&found["compared"], &found["tolerance"]), (&json!("tokens"), &json!(0.05)));
    let prompt = &found["prompts"][0];
    assert_eq!((&prompt["prompt"], &prompt["verdict"]), (&json!(PROMPT), &json!("equal")));
    assert_eq!(prompt["first_difference"], Value::Null);
    assert_eq!((&prompt["ours"], &prompt["ours"]), (&prompt["reference"], &expected()["text"]));
    assert_eq!((&prompt["tokens"], &prompt["positions"]), (&json!(6), &json!(6)));
    let distance = prompt["logit_distance"].as_f64().unwrap();
    assert!(distance > 0.0 && distance < 0.05, "{distance}");
}

#[test]
fn a_server_of_ollama_is_asked_for_text() {
    let expected = expected();
    let text = expected["text"].as_str().unwrap().to_owned();
    let ollama = |text: String, logprobs: Value| {
        serve(move |path, body| match path {
            "/api/version" => Some(json!({ "version": "0.99.0" })),
            "/api/generate" => {
                assert_eq!((&body["model"], &body["prompt"]), (&json!("micro"), &json!(PROMPT)));
                assert_eq!((&body["raw"], &body["stream"]), (&json!(true), &json!(false)));
                assert_eq!(body["options"]["temperature"], 0);
                assert_eq!(body["options"]["num_predict"], 6);
                // Room for the prompt and what follows it: Ollama would cut the prompt.
                let room = body["options"]["num_ctx"].as_u64().unwrap();
                assert!((8..64).contains(&room), "{room}");
                Some(json!({ "response": text, "done_reason": "length", "logprobs": logprobs }))
            }
            _ => None,
        })
    };
    let (found, status) = parity(&["--against", &ollama(text.clone(), Value::Null), "--model", "micro"]);
    assert_eq!((status, &found["verdict"], &found["compared"]), (0, &json!("equal"), &json!("text")));
    assert!(found["against"].as_str().unwrap().starts_with("Ollama 0.99.0 at http://"), "{found}");
    assert_eq!(found["prompts"][0]["logit_distance"], Value::Null);

    // Another text is different, unless the server was not sure either.
    let other = format!("{}!", text.strip_suffix(|_: char| true).unwrap());
    let (found, status) = parity(&["--against", &ollama(other.clone(), Value::Null), "--model", "micro"]);
    assert_eq!((status, &found["verdict"]), (1, &json!("different")));
    let (found, status) =
        parity(&["--against", &ollama(other.clone(), sure(&other, -0.71)), "--model", "micro"]);
    assert_eq!((status, &found["verdict"]), (0, &json!("equal within margin")));
    let (found, status) =
        parity(&["--against", &ollama(other.clone(), sure(&other, -1.5)), "--model", "micro"]);
    assert_eq!((status, &found["verdict"]), (1, &json!("different")));

    let output = rullama(&["parity", &model(), "--against", &ollama(text, Value::Null)]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("hint: give it with --model"), "{said}");
}

/// A text as one token, with the log-probability of another that might have been.
fn sure(text: &str, other: f64) -> Value {
    let top = json!([{ "token": text, "logprob": -0.69 }, { "token": "?", "logprob": other }]);
    json!([{ "token": text, "logprob": -0.69, "top_logprobs": top }])
}

#[test]
fn a_server_of_llama_cpp_is_asked_for_tokens() {
    let ids: Vec<u64> = expected()["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
    // The last token is another one in some answers, with the right one just behind it or far behind.
    let llama = |ids: Vec<u64>, right: u64, behind: f64| {
        serve(move |path, body| match path {
            "/props" => Some(json!({ "total_slots": 1 })),
            "/completion" => {
                assert!(body["prompt"].as_array().unwrap().len() > 1, "tokens: {body}");
                assert_eq!((&body["temperature"], &body["n_predict"]), (&json!(0), &json!(6)));
                assert!(body["n_probs"].as_u64().unwrap() >= 2);
                let probabilities = |&id: &u64| {
                    let top =
                        json!([{ "id": id, "logprob": -0.1 }, { "id": right, "logprob": -0.1 - behind }]);
                    json!({ "id": id, "token": "", "logprob": -0.1, "top_logprobs": top })
                };
                Some(json!({
                    "content": "what it says",
                    "tokens": ids,
                    "stop_type": "limit",
                    "completion_probabilities": ids.iter().map(probabilities).collect::<Vec<_>>(),
                }))
            }
            _ => None,
        })
    };
    let right = *ids.last().unwrap();
    let (found, status) = parity(&["--against", &llama(ids.clone(), 0, 5.0)]);
    assert_eq!((status, &found["verdict"], &found["compared"]), (0, &json!("equal"), &json!("tokens")));
    assert!(found["against"].as_str().unwrap().starts_with("llama.cpp at http://"), "{found}");
    let prompt = &found["prompts"][0];
    assert!(prompt["logit_distance"].is_null() && prompt["logprob_distance"].as_f64().unwrap() > 0.0);
    assert_eq!((&prompt["positions"], &prompt["positions_different"]), (&json!(6), &json!(0)));

    let mut other = ids.clone();
    other[5] = 700;
    for (behind, verdict, expected_status) in [(0.01, "equal within margin", 0), (3.0, "different", 1)] {
        let (found, status) = parity(&["--against", &llama(other.clone(), right, behind)]);
        assert_eq!((status, &found["verdict"]), (expected_status, &json!(verdict)), "{found}");
        let difference = &found["prompts"][0]["first_difference"];
        assert_eq!((&difference["index"], &difference["ours"]["id"]), (&json!(5), &json!(right)));
        assert_eq!(difference["reference"]["id"], 700);
        assert!((difference["margin"].as_f64().unwrap() - behind).abs() < 1e-3);
    }
}

#[test]
fn who_is_no_such_server_is_refused() {
    let stranger = serve(|_, _| None);
    let refuse = |arguments: &[&str], status: i32, said: &str| {
        let output = rullama(&[&["parity", &model()], arguments].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty() && error.contains(said), "{arguments:?}: {error}");
    };
    refuse(&["--against", &stranger], 1, "neither an Ollama nor a llama.cpp server: HTTP status 404");
    let without_model = serve(|path, _| match path {
        "/api/version" => Some(json!({ "version": "0.99.0" })),
        _ => Some(json!({ "error": "model 'nope' not found" })),
    });
    refuse(
        &["--against", &without_model, "--model", "nope"],
        1,
        "/api/generate` returned HTTP status 404: model 'nope' not found",
    );
    refuse(&["--against", "http://127.0.0.1:9"], 1, "can't be reached");
    refuse(&["--against", "gpu"], 2, "expected `cpu` or a URL");
    refuse(&["--prompts", "/nonexistent"], 1, "/nonexistent");
    refuse(&["--max-tokens", "0"], 2, "0");
    refuse(&["--max-tokens", "4294967295"], 1, "a context of 4294967295");
    refuse(&["--max-tokens", "4294967295"], 1, "hint: use a smaller --max-tokens, or shorter --prompts");
}
