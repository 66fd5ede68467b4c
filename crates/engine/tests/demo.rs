//! The demo model writes what transformers and llama.cpp write with the same file: on the CPU, and on a GPU.
//!
//! With f32 activations and an f32 cache there is nothing to allow for: all replies are the same, token by token. All fifty
//! on the reference, and all but two on the CPU backend, which rounds activations; on a GPU, which tests have as a program, the first of each task. Browsers are held to the same in
//! `packages/npm/test/browser`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{collections::HashSet, fmt::Write as _};

use rullama_engine::{Engine, FinishReason, GenerateOptions, LoadOptions, SamplingOptions};
use rullama_gguf::{MemorySource, Model};
use rullama_tokenizer::{EncodeOptions, SpecialOutput};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// Longer than every prompt with its reply.
const CONTEXT: u32 = 1024;

#[derive(Deserialize)]
struct References {
    sha256: String,
    greedy_steps: usize,
    prompts: Vec<Prompt>,
}

#[derive(Deserialize)]
struct Prompt {
    task: String,
    prompt: String,
    ids: Vec<u32>,
    /// What transformers writes: tokens, with the end if it came, and their text.
    greedy: Vec<u32>,
    text: String,
    /// What llama.cpp writes.
    llama_cpp: Vec<u32>,
}

fn read(path: &str) -> Vec<u8> {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The model, and what was written with this very file.
fn demo() -> (Model, References) {
    let bytes = read("models/demo.gguf");
    let references: References = serde_json::from_slice(&read("testdata/demo/demo.refs.json")).unwrap();
    let sha256 = Sha256::digest(&bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    });
    assert_eq!(
        sha256, references.sha256,
        "models/demo.gguf is not the file that testdata/demo was made with; `cargo xtask goldens --make` makes it anew"
    );
    let distinct: HashSet<&str> = references.prompts.iter().map(|prompt| prompt.prompt.as_str()).collect();
    assert_eq!((references.prompts.len(), distinct.len()), (50, 50), "prompts, and those that differ");
    let model = pollster::block_on(Model::open(Box::new(MemorySource::named("demo.gguf", bytes)))).unwrap();
    (model, references)
}

/// Every reply is that of transformers and that of llama.cpp.
fn check(engine: &Engine, references: &References) {
    for (number, expected) in references.prompts.iter().enumerate() {
        let place = format!("prompt {number}, {}", expected.task);
        let (found, text, reason) = reply(engine, expected, references, &place);
        assert_eq!(found, expected.greedy, "{place}: {text:?}, transformers has {:?}", expected.text);
        assert_eq!(found, expected.llama_cpp, "{place}: llama.cpp");
        let ended = expected.greedy.last().is_some_and(|&id| engine.tokenizer().is_end(id));
        let expected = if ended { FinishReason::Stop } else { FinishReason::Length };
        assert_eq!(reason, Some(expected), "{place}");
    }
}

/// The tokens of a greedy reply, its text, and why it ended.
fn reply(
    engine: &Engine,
    prompt: &Prompt,
    references: &References,
    place: &str,
) -> (Vec<u32>, String, Option<FinishReason>) {
    let ids = engine.tokenizer().encode(&prompt.prompt, EncodeOptions::PROMPT);
    assert_eq!(ids, prompt.ids, "{place}: tokens of the prompt");
    let options = GenerateOptions {
        sampling: SamplingOptions::GREEDY,
        max_tokens: Some(references.greedy_steps as u32),
        ..GenerateOptions::default()
    };
    let mut session = engine.session().unwrap();
    let mut generation = session.generate(&ids, &options, SpecialOutput::All).unwrap();
    let (mut found, mut text) = (Vec::new(), String::new());
    pollster::block_on(async {
        while let Some(token) = generation.next().await {
            let token = token.unwrap();
            found.push(token.sampled.id);
            text.push_str(&token.text);
        }
    });
    (found, text, generation.finish_reason())
}

#[cfg(feature = "cpu")]
#[test]
fn on_the_reference() {
    let (model, references) = demo();
    let engine = Engine::load_reference(model, &LoadOptions::default().context(CONTEXT)).unwrap();
    check(&engine, &references);
}

/// The CPU backend rounds activations to eight bits, which decides calls that are closer than that the other way.
#[cfg(feature = "cpu")]
#[test]
fn on_the_cpu() {
    let (model, references) = demo();
    let engine = Engine::load(model, &LoadOptions::default().context(CONTEXT)).unwrap();
    let mut different = Vec::new();
    for (number, expected) in references.prompts.iter().enumerate() {
        let place = format!("prompt {number}, {}", expected.task);
        let (found, text, _) = reply(&engine, expected, &references, &place);
        if found != expected.greedy {
            different.push(format!("{place}: {text:?}, transformers has {:?}", expected.text));
        }
    }
    assert!(different.len() <= 2, "{} of 50 replies differ:\n{}", different.len(), different.join("\n"));
}

#[cfg(all(feature = "gpu", not(target_family = "wasm")))]
#[test]
fn on_a_gpu() {
    use rullama_gpu::{Gpu, GpuOptions};

    let (model, mut references) = demo();
    let mut tasks = HashSet::new();
    references.prompts.retain(|prompt| tasks.insert(prompt.task.clone()));
    assert!(references.prompts.len() > 10, "tasks");
    // Matrix units round to half precision, and some goldens have closer calls than that allows.
    let options = GpuOptions::default().without_self_test().without_matrices();
    let gpu = pollster::block_on(Gpu::open(&options))
        .expect("this test needs an adapter; a software one such as lavapipe will do");
    let options = LoadOptions::default().context(CONTEXT);
    let engine = pollster::block_on(Engine::load_on(gpu, model, &options, &mut |_, _| {})).unwrap();
    check(&engine, &references);
}
