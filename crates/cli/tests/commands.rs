//! The program as its users run it: what it prints, and how it ends.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use common::program;
use serde_json::{Value, json};

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/");

fn testdata(path: &str) -> String {
    format!("{TESTDATA}{path}")
}

/// A small model, in the dialect of llama.cpp.
fn micro() -> String {
    testdata("gguf/micro-e2b-Q8_0.gguf")
}

/// The real vocabulary, without weights.
fn vocabulary() -> String {
    testdata("tokenizer/gemma4-vocab.gguf")
}

fn rullama(arguments: &[&str], input: &[u8], store: Option<&Path>) -> Output {
    common::run(&mut in_store(arguments, store), input)
}

fn json_of(arguments: &[&str], input: &[u8]) -> Value {
    common::json_of(&mut program(arguments), input)
}

fn failure_of(arguments: &[&str], store: Option<&Path>) -> (i32, String) {
    common::failure(&mut in_store(arguments, store))
}

fn in_store(arguments: &[&str], store: Option<&Path>) -> Command {
    let mut command = program(arguments);
    if let Some(store) = store {
        command.env("OLLAMA_MODELS", store);
    }
    command
}

#[test]
fn inspect_describes_a_model() {
    let report = json_of(&["inspect", &micro(), "--tensors", "--metadata", "--json"], b"");
    assert_eq!(report["architecture"], "gemma4");
    assert_eq!(report["variant"], "custom");
    assert_eq!(report["layers"], 5);
    assert_eq!(report["towers"], json!([]));
    assert_eq!(report["bytes"], fs::metadata(micro()).unwrap().len());
    let tensors = report["tensors"].as_array().unwrap();
    let values: u64 = tensors
        .iter()
        .map(|tensor| {
            tensor["shape"].as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap()).product::<u64>()
        })
        .sum();
    assert_eq!(report["parameters"], values);
    let counted: u64 =
        report["formats"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(counted, tensors.len() as u64);
    let embedding = tensors.iter().find(|tensor| tensor["name"] == "token_embd.weight").unwrap();
    assert_eq!(embedding["shape"], json!([128, 2048]));
    assert_eq!(embedding["format"], "Q8_0");
    assert_eq!(embedding["bytes"], 2048 * 128 / 32 * 34);
    assert_eq!(report["metadata"]["gemma4.block_count"], 5);
    assert_eq!(report["metadata"]["gemma4.attention.layer_norm_rms_epsilon"], 1e-6);
    assert_eq!(report["metadata"]["tokenizer.ggml.tokens"], json!({"array_of": "string", "length": 2048}));

    let plain = rullama(&["inspect", &micro()], b"", None);
    let plain = String::from_utf8(plain.stdout).unwrap();
    assert!(plain.contains("architecture  gemma4\n"), "{plain}");
}

#[test]
fn inspect_recognises_released_models_by_their_measures() {
    let report = json_of(&["inspect", &vocabulary(), "--json"], b"");
    assert_eq!((&report["variant"], &report["layers"]), (&json!("26b-a4b"), &json!(30)));
    assert_eq!((&report["parameters"], &report["formats"]), (&json!(0), &json!({})));
    assert_eq!(report["context_length"], 262_144);
}

#[test]
fn tokenize_takes_text_from_anywhere() {
    let expected = json!({ "ids": [9259, 236764, 1902, 236888], "pieces": ["Hello", ",", " world", "!"] });
    assert_eq!(json_of(&["tokenize", &vocabulary(), "Hello, world!", "--json"], b""), expected);
    assert_eq!(json_of(&["tokenize", &vocabulary(), "--json"], b"Hello, world!"), expected);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text");
    fs::write(&file, "Hello, world!").unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(json_of(&["tokenize", &vocabulary(), "--file", file, "--json"], b""), expected);
}

#[test]
fn tokenize_keeps_every_byte_of_its_input() {
    let ids = |input: &[u8]| json_of(&["tokenize", &vocabulary(), "--json"], input)["ids"].clone();
    assert_eq!(ids(b"hello\n"), json!([23391, 107]));
    assert_eq!(ids(b""), json!([]));
    assert_eq!(ids(b"\xff\r\n"), json!([238 + 255, 251, 107]));
}

#[test]
fn tokenize_treats_special_tokens_as_told() {
    let model = vocabulary();
    let ids = |flags: &[&str]| {
        let arguments = [&["tokenize", &model, "<|turn>user", "--json"], flags].concat();
        json_of(&arguments, b"")["ids"].clone()
    };
    assert_eq!(ids(&[]), json!([105, 2364]));
    assert_eq!(ids(&["--bos"]), json!([2, 105, 2364]));
    assert!(!ids(&["--plain"]).as_array().unwrap().contains(&json!(105)));
}

#[test]
fn tokenize_splits_emoji_into_bytes_with_their_names() {
    let report = json_of(&["tokenize", &vocabulary(), "🦙", "--json"], b"");
    assert_eq!(
        report,
        json!({ "ids": [478, 397, 404, 391], "pieces": ["<0xF0>", "<0x9F>", "<0xA6>", "<0x99>"] })
    );
}

#[test]
fn detokenize_undoes_tokenize() {
    let text = "<bos><|turn>user\n  Grüße, 🦙!\t<turn|>";
    let ids = json_of(&["tokenize", &vocabulary(), text, "--json"], b"")["ids"].clone();
    let ids: Vec<String> = ids.as_array().unwrap().iter().map(Value::to_string).collect();
    let ids = ids.join(",");
    assert_eq!(
        json_of(&["detokenize", &vocabulary(), "--ids", &ids, "--json"], b""),
        json!({ "text": text })
    );
    let output = rullama(&["detokenize", &vocabulary(), "--ids", "478,397"], b"", None);
    assert_eq!(output.stdout, [0xf0, 0x9f], "bytes as they are, and nothing after them");
}

#[test]
fn render_shows_the_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let messages = folder.path().join("messages.json");
    fs::write(&messages, r#"[{"role": "user", "content": "Hello"}]"#).unwrap();
    let messages = messages.to_str().unwrap();
    let prompt = |model: &str, flags: &[&str]| {
        let arguments = [&["render", model, "--messages", messages, "--json"], flags].concat();
        json_of(&arguments, b"")["prompt"].as_str().unwrap().to_owned()
    };
    assert_eq!(prompt(&micro(), &["--think", "off"]), "<bos><|turn>user\nHello<turn|>\n<|turn>model\n");
    assert_eq!(
        prompt(&vocabulary(), &["--think", "off"]),
        "<bos><|turn>user\nHello<turn|>\n<|turn>model\n<|channel>thought\n<channel|>",
        "a 26B model is a large one"
    );
    let thinking = "<bos><|turn>system\n<|think|>\n<turn|>\n<|turn>user\nHello<turn|>\n<|turn>model\n";
    assert_eq!(prompt(&micro(), &["--think", "on"]), thinking);
    assert_eq!(prompt(&micro(), &[]), thinking, "as Ollama, which lets a model think unless told");

    let tools = folder.path().join("tools.json");
    fs::write(&tools, r#"[{"type": "function", "function": {"name": "now", "description": "Time"}}]"#)
        .unwrap();
    let with_tool = prompt(&micro(), &["--think", "off", "--tools", tools.to_str().unwrap()]);
    assert!(with_tool.contains("<|tool>declaration:now{description:<|\"|>Time<|\"|>}<tool|>"), "{with_tool}");

    let request = br#"{"model": "x", "messages": [{"role": "user", "content": "Hello"}], "think": false}"#;
    let whole = json_of(&["render", &micro(), "--messages", "-", "--json"], request);
    assert_eq!(whole["prompt"], "<bos><|turn>user\nHello<turn|>\n<|turn>model\n");
}

/// The terminal renders a file as the engine does, and so as a tab does, whatever the file is called.
#[test]
fn render_and_the_engine_agree_on_the_prompt_style() {
    use rullama_chat::{Conversation, Message};
    use rullama_engine::{Engine, LoadOptions};

    let folder = tempfile::tempdir().unwrap();
    let conversation = [Message::user("Hello")];
    for (file, name, ending) in [
        ("tiny-e2b-Q4_K_M", "tiny-e2b-Q4_K_M", "<|turn>model\n"),
        ("tiny-dense-Q4_K_M", "tiny-dense-Q4_K_M", "<channel|>"),
        ("tiny-moe-Q4_K_M", "tiny-moe-Q4_K_M", "<channel|>"),
        ("micro-e2b-Q8_0", "gemma-4-31b", "<|turn>model\n"),
        ("tiny-dense-Q4_K_M", "gemma-4-e2b", "<channel|>"),
    ] {
        let path = folder.path().join(format!("{name}.gguf"));
        fs::copy(testdata(&format!("gguf/{file}.gguf")), &path).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let model = runtime.block_on(rullama_gguf::open_path(&path)).unwrap();
        let engine = Engine::load(model, &LoadOptions::default()).unwrap();
        let conversation = Conversation { messages: &conversation, tools: &[], think: false };
        let expected = rullama_chat::render(&conversation, engine.prompts()).unwrap().to_string();

        let messages = br#"[{"role": "user", "content": "Hello"}]"#;
        let arguments = ["render", path.to_str().unwrap(), "--messages", "-", "--think", "off", "--json"];
        assert_eq!(json_of(&arguments, messages)["prompt"], expected, "{file} as {name}");
        assert!(expected.ends_with(ending), "{file} as {name}: {expected}");
    }
}

fn store() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    common::store(folder.path());
    folder
}

#[test]
fn models_in_the_store_are_listed_and_used_by_name() {
    let store = store();
    let run = |arguments: &[&str], input: &[u8]| {
        let output = rullama(arguments, input, Some(store.path()));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let listing: Value = serde_json::from_slice(&run(&["models", "--json", "--verify"], b"")).unwrap();
    assert_eq!(listing["models"][0]["name"], "gemma4:latest");
    assert_eq!(listing["models"][0]["details"]["quantization_level"], "Q8_0");
    assert_eq!(listing["broken"], json!([]));
    let plain = String::from_utf8(run(&["models"], b"")).unwrap();
    assert!(plain.lines().nth(1).unwrap().starts_with("gemma4:latest  2.1 MiB"), "{plain}");

    let report: Value = serde_json::from_slice(&run(&["inspect", "gemma4", "--json"], b"")).unwrap();
    assert_eq!(report["architecture"], "gemma4");
    // The store states a system prompt and a renderer, which decides the prompt style.
    let messages = br#"[{"role": "user", "content": "Hi"}]"#;
    let prompt = run(&["render", "Gemma4", "--messages", "-", "--think", "off"], messages);
    assert_eq!(
        String::from_utf8(prompt).unwrap(),
        "<bos><|turn>system\nBe brief.<turn|>\n<|turn>user\nHi<turn|>\n<|turn>model\n<|channel>thought\n<channel|>"
    );
}

#[test]
fn a_damaged_store_is_described() {
    let store = store();
    let blobs = fs::read_dir(store.path().join("blobs")).unwrap().map(|entry| entry.unwrap().path());
    let weights = blobs.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&weights).unwrap();
    bytes[1_000_000] ^= 1;
    fs::write(&weights, &bytes).unwrap();
    let output = rullama(&["models", "--verify", "--json"], b"", Some(store.path()));
    assert_eq!(output.status.code(), Some(1));
    let listing: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listing["broken"][0]["code"], "store.damaged");

    fs::write(&weights, &bytes[..1000]).unwrap();
    let (status, said) = failure_of(&["inspect", "gemma4"], Some(store.path()));
    assert_eq!(status, 1);
    assert!(
        said.contains(weights.to_str().unwrap())
            && said.contains("hint: download it again with `ollama pull gemma4:latest`"),
        "{said}"
    );
}

#[test]
fn mistakes_end_with_their_status_and_a_hint() {
    for (arguments, expected) in [
        (&["inspect"][..], 2),
        (&["tokenize", "m", "text", "--file", "f"], 2),
        (&["detokenize", "m", "--ids", "1,x"], 2),
        (&["detokenize", "m", "--ids", "-1"], 2),
        (&["detokenize", "m"], 2),
        (&["render", "m", "--messages", "f", "--think", "maybe"], 2),
        (&["frobnicate"], 2),
        (&["inspect", "no/such/file.gguf"], 1),
        (&["inspect", "not a name"], 1),
        (&["inspect", "gemma4:e2b"], 1),
        (&["models", "gemma4:e2b"], 1),
    ] {
        let (status, said) = failure_of(arguments, None);
        assert_eq!(status, expected, "{arguments:?}: {said}");
        assert!(said.starts_with("error: "), "{said}");
        assert!(expected == 2 || said.contains("\nhint: "), "{arguments:?}: {said}");
    }
    let (_, said) = failure_of(&["detokenize", &micro(), "--ids", "99999"], None);
    assert!(said.contains("99999"), "{said}");
}

#[test]
fn files_that_are_not_models_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refuse = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let (status, said) = failure_of(&["inspect", path.to_str().unwrap()], None);
        assert_eq!(status, 1);
        said
    };
    assert!(refuse("empty.gguf", b"").contains("empty.gguf` is empty"));
    assert!(refuse("other.gguf", b"PK\x03\x04").contains("isn't a GGUF file; it looks like a ZIP archive"));
    let whole = fs::read(micro()).unwrap();
    let cut = refuse("cut.gguf", &whole[..whole.len() / 2]);
    assert!(cut.contains("hint: the file is incomplete"), "{cut}");

    let path = folder.path().join("messages.json");
    for bad in ["{", "{}", "3", r#"[{"content": 7}]"#, "[[]]"] {
        fs::write(&path, bad).unwrap();
        let (status, said) = failure_of(&["render", &micro(), "--messages", path.to_str().unwrap()], None);
        assert_eq!(status, 1, "{bad}: {said}");
        assert!(said.contains("messages.json"), "{bad}: {said}");
    }
}
