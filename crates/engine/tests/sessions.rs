//! Conversations on a real, small model: what is generated, what is computed, and what ends a reply.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::pin,
    rc::Rc,
    sync::atomic::{AtomicU64, Ordering},
    task::Context,
};

use rullama_chat::{Delta, Message};
use rullama_engine::{
    Backend, ChatOptions, Choosing, Engine, EngineError, Entropy, FinishReason, GenerateOptions, LoadOptions,
    LogitRows, Logits, MediaRows, MediaSpan, Pending, PromptRows, Recovery, SamplingOptions, Session, State,
    StepRows, Watcher,
};
use rullama_gguf::{MemorySource, Model};
use rullama_tokenizer::{EncodeOptions, SpecialOutput};

const MODEL: &str = "tiny-e2b-Q4_K_M";

fn load(options: &LoadOptions) -> Result<Engine, EngineError> {
    let path = format!("{}/../../testdata/gguf/{MODEL}.gguf", env!("CARGO_MANIFEST_DIR"));
    let source = MemorySource::new(std::fs::read(path).unwrap());
    let model = pollster::block_on(Model::open(Box::new(source))).unwrap();
    Engine::load(model, options)
}

fn engine(options: &LoadOptions) -> Engine {
    load(options).unwrap()
}

fn greedy() -> GenerateOptions {
    GenerateOptions { sampling: SamplingOptions::GREEDY, ..GenerateOptions::default() }
}

fn ids(engine: &Engine, text: &str) -> Vec<u32> {
    engine.tokenizer().encode(text, EncodeOptions::PROMPT)
}

/// The reference's prompt and its continuation by Hugging Face.
fn reference(name: &str) -> (Vec<u32>, Vec<u32>) {
    let path = format!("{}/../../testdata/text/{MODEL}.refs.json", env!("CARGO_MANIFEST_DIR"));
    let file: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let prompts = file["prompts"].as_array().unwrap();
    let prompt = prompts.iter().find(|prompt| prompt["name"] == name).unwrap();
    let list = |key: &str| serde_json::from_value(prompt[key].clone()).unwrap();
    (list("ids"), list("hf_greedy"))
}

struct Generated {
    ids: Vec<u32>,
    text: String,
    reason: FinishReason,
    reused: usize,
    seed: u64,
}

fn generate(session: &mut Session, ids: &[u32], options: &GenerateOptions) -> Generated {
    pollster::block_on(async {
        let mut generation = session.generate(ids, options, SpecialOutput::Hidden).unwrap();
        let (mut ids, mut text) = (Vec::new(), String::new());
        while let Some(token) = generation.next().await {
            let token = token.unwrap();
            ids.push(token.sampled.id);
            text.push_str(&token.text);
        }
        let reason = generation.finish_reason().unwrap();
        assert_eq!(generation.usage().generated_tokens, ids.len());
        let (reused, seed) = (generation.usage().reused_tokens, generation.seed());
        Generated { ids, text, reason, reused, seed }
    })
}

#[test]
fn greedy_continuations_are_the_references() {
    let engine = engine(&LoadOptions::default());
    for name in ["mixed", "chat", "short", "long"] {
        let (prompt, expected) = reference(name);
        let options = GenerateOptions { ignore_end: true, max_tokens: Some(12), ..greedy() };
        let found = generate(&mut engine.session().unwrap(), &prompt, &options);
        assert_eq!((found.ids.as_slice(), found.reason), (&expected[..12], FinishReason::Length), "{name}");
    }
}

#[test]
fn the_model_ends_its_reply() {
    let engine = engine(&LoadOptions::default());
    let (prompt, expected) = reference("mixed");
    let end = expected.iter().position(|&id| engine.tokenizer().is_end(id)).unwrap();
    let found = generate(&mut engine.session().unwrap(), &prompt, &greedy());
    assert_eq!((found.ids.as_slice(), found.reason), (&expected[..=end], FinishReason::Stop));
    assert_eq!(found.text, "# end of the first sample, thank you for reading it to the end.");
}

#[test]
fn a_stop_string_ends_it_across_tokens() {
    let engine = engine(&LoadOptions::default());
    let (prompt, _) = reference("mixed");
    let options = GenerateOptions { stop: vec!["ank you for re".into()], ..greedy() };
    let found = generate(&mut engine.session().unwrap(), &prompt, &options);
    assert_eq!((found.text.as_str(), found.reason), ("# end of the first sample, th", FinishReason::Stop));

    // A beginning of a stop string at the end is text.
    let options = GenerateOptions { stop: vec!["the end.X".into()], ..greedy() };
    let found = generate(&mut engine.session().unwrap(), &prompt, &options);
    assert!(found.text.ends_with("to the end."), "{}", found.text);
}

#[test]
fn the_same_seed_says_the_same() {
    let engine = engine(&LoadOptions::default());
    let (prompt, _) = reference("chat");
    let say = |seed: u64| {
        let sampling = SamplingOptions {
            seed: Some(seed),
            temperature: 3.0,
            top_k: 0,
            top_p: 1.0,
            ..SamplingOptions::default()
        };
        let options =
            GenerateOptions { sampling, max_tokens: Some(8), ignore_end: true, ..GenerateOptions::default() };
        generate(&mut engine.session().unwrap(), &prompt, &options).ids
    };
    assert_eq!(say(7), say(7));
    assert_ne!(say(7), say(8));
}

/// Where the options name no seed, every reply has another one, in one session and in several; and each reply can be
/// repeated with the seed it tells.
#[test]
fn replies_without_a_seed_have_another_each_and_can_be_repeated() {
    let engine = engine(&LoadOptions::default());
    let (prompt, _) = reference("chat");
    let say = |session: &mut Session, seed: Option<u64>| {
        let sampling =
            SamplingOptions { seed, temperature: 3.0, top_k: 0, top_p: 1.0, ..SamplingOptions::default() };
        let options =
            GenerateOptions { sampling, max_tokens: Some(8), ignore_end: true, ..GenerateOptions::default() };
        generate(session, &prompt, &options)
    };
    let [mut one, mut other] = [(); 2].map(|()| engine.session().unwrap());
    let replies = [say(&mut one, None), say(&mut one, None), say(&mut other, None)];
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        // Different seeds may still draw the same few tokens, so tokens are not compared.
        assert_ne!(replies[a].seed, replies[b].seed);
    }
    for reply in &replies {
        assert!((0..1 << 53).contains(&reply.seed), "JavaScript can name it: {}", reply.seed);
        let again = say(&mut other, Some(reply.seed));
        assert_eq!((again.seed, &again.ids), (reply.seed, &reply.ids));
    }
}

/// The given source of entropy is the only source of seeds: the engine takes one number for each reply without a seed.
#[test]
fn replies_without_a_seed_take_one_from_the_given_source() {
    static NEXT: AtomicU64 = AtomicU64::new(5);
    let entropy = Entropy::new(|| NEXT.fetch_add(1, Ordering::Relaxed));
    let engine = engine(&LoadOptions::default().entropy(entropy));
    let (prompt, _) = reference("chat");
    let seed = |session: &mut Session, seed: Option<u64>| {
        let sampling = SamplingOptions { seed, ..SamplingOptions::default() };
        let options = GenerateOptions { sampling, ..GenerateOptions::default() };
        session.generate(&prompt, &options, SpecialOutput::Hidden).unwrap().seed()
    };
    let [mut one, mut other] = [(); 2].map(|()| engine.session().unwrap());
    let seeds =
        [seed(&mut one, None), seed(&mut one, Some(90)), seed(&mut other, None), seed(&mut one, None)];
    assert_eq!(seeds, [5, 90, 6, 7]);
    NEXT.store(u64::MAX, Ordering::Relaxed);
    assert_eq!(seed(&mut one, None), (1 << 53) - 1, "JavaScript can name every seed");
}

#[test]
fn loading_refuses_numbers_out_of_range() {
    let expected = "(expected a whole number from 1 to";
    assert_eq!(
        load(&LoadOptions::default().context(0)).unwrap_err().to_string(),
        format!("option `context` is 0 {expected} 4294967295)")
    );
    assert_eq!(
        load(&LoadOptions::default().gpu_memory(0)).unwrap_err().to_string(),
        format!("option `memory` is 0 {expected} 18446744073709551615)")
    );
}

#[test]
fn only_what_changed_is_read() {
    let engine = engine(&LoadOptions::default());
    let mut session = engine.session().unwrap();
    let (prompt, _) = reference("long");
    let options = GenerateOptions { max_tokens: Some(4), ignore_end: true, ..greedy() };
    let fresh = generate(&mut session, &prompt, &options);
    assert_eq!((fresh.reused, session.rows()), (0, prompt.len() as u64 + 3), "the last token is not read");

    // The same beginning, then something else.
    let rows = session.rows();
    let mut other = prompt[..300].to_vec();
    other.extend_from_slice(&prompt[..20]);
    let reused = generate(&mut session, &other, &options);
    assert_eq!((reused.reused, session.rows() - rows), (300, 20 + 3));
    assert_eq!(
        reused.ids,
        generate(&mut engine.session().unwrap(), &other, &options).ids,
        "as if it were read anew"
    );

    // The same prompt again: only its last token, for the logits.
    let rows = session.rows();
    let again = generate(&mut session, &other, &options);
    assert_eq!((again.reused, session.rows() - rows), (other.len() - 1, 1 + 3));
    assert_eq!(again.ids, reused.ids);
}

#[test]
fn logits_of_growing_texts_read_each_token_once() {
    let engine = engine(&LoadOptions::default().context(64));
    let text = ids(&engine, "Hello there, how are you?");
    let (mut growing, mut whole) = (engine.session().unwrap(), engine.session().unwrap());
    pollster::block_on(async {
        let all = whole.logits(&text, true).await.unwrap();
        for end in 2..=text.len() {
            let next = growing.next_logits(&text[..end]).await.unwrap();
            let row = &all.values[(end - 1) * all.vocabulary..end * all.vocabulary];
            let distance = next.values.iter().zip(row).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(distance < 1e-3, "after {end} tokens: {distance}");
        }
    });
    assert_eq!(growing.rows(), text.len() as u64);
}

#[test]
fn a_conversation_prefills_only_what_is_new() {
    let engine = engine(&LoadOptions::default());
    let mut session = engine.session().unwrap();
    let options = ChatOptions {
        generate: GenerateOptions { max_tokens: Some(12), ..greedy() },
        think: false,
        ..ChatOptions::default()
    };
    let mut turn = |text: &str| {
        pollster::block_on(async {
            let mut reply = session.send(Message::user(text), &options).unwrap();
            while let Some(delta) = reply.next().await {
                delta.unwrap();
            }
            let (answer, usage) = (reply.parts().answer.clone(), reply.usage());
            drop(reply);
            (answer, usage, session.messages().len())
        })
    };
    let (answer, first, messages) = turn("What is the capital of France? Answer in one word.");
    assert_eq!((answer.as_str(), first.reused_tokens, messages), ("Paris", 0, 2));
    let (_, second, messages) = turn("And of Italy?");
    assert_eq!(messages, 4);
    assert!(second.reused_tokens >= first.prompt_tokens, "{second:?} after {first:?}");
}

#[test]
fn a_dropped_reply_leaves_the_session_valid() {
    let engine = engine(&LoadOptions::default());
    let (prompt, expected) = reference("long");
    let options = GenerateOptions { max_tokens: Some(6), ignore_end: true, ..greedy() };
    let mut session = engine.session().unwrap();
    let finished = Rc::new(Cell::new(0));
    let count = finished.clone();
    session.watch(move |step| count.set(count.get() + usize::from(step.done == step.all)));
    {
        // Dropped in the middle of reading the prompt: polled during two steps and into the third, then forgotten.
        let mut generation = session.generate(&prompt, &options, SpecialOutput::Hidden).unwrap();
        let mut step = pin!(generation.next());
        let mut context = Context::from_waker(std::task::Waker::noop());
        while finished.get() < 2 {
            assert!(step.as_mut().poll(&mut context).is_pending(), "a step pauses between operations");
        }
        assert!(step.as_mut().poll(&mut context).is_pending(), "and so does the next");
    }
    assert!(session.rows() > 0 && session.rows() < prompt.len() as u64, "some steps were finished");
    let kept = session.rows() as usize;
    let found = generate(&mut session, &prompt, &options);
    assert_eq!((found.ids.as_slice(), found.reused), (&expected[..6], kept), "what was read is not lost");

    let mut reply = session.send(Message::user("Hello"), &ChatOptions::default()).unwrap();
    pollster::block_on(reply.next());
    drop(reply);
    assert_eq!(session.messages().len(), 2, "the reply so far is part of the conversation");
    session.clear();
    assert_eq!((session.messages().len(), session.history().len()), (0, 0));
}

#[test]
fn the_context_is_a_limit() {
    let engine = engine(&LoadOptions::default().context(64));
    let mut session = engine.session().unwrap();
    let long: Vec<u32> = (0..64).map(|index| 300 + index).collect();
    let error = session.generate(&long, &greedy(), SpecialOutput::Hidden).err().unwrap();
    assert!(matches!(error, EngineError::ContextOverflow { tokens: 64, fits: 63, context: 64 }), "{error}");
    let error = session.send(Message::user("word ".repeat(100)), &ChatOptions::default()).err().unwrap();
    assert!(matches!(error, EngineError::ContextOverflow { .. }), "{error}");
    assert!(session.messages().is_empty(), "what does not fit is no part of the conversation");

    let options = GenerateOptions { ignore_end: true, ..greedy() };
    let found = generate(&mut session, &long[..60], &options);
    assert_eq!((found.ids.len(), found.reason), (4, FinishReason::Length));
    assert!(matches!(session.generate(&[], &options, SpecialOutput::Hidden), Err(EngineError::EmptyPrompt)));

    let path = format!("{}/../../testdata/gguf/{MODEL}.gguf", env!("CARGO_MANIFEST_DIR"));
    let source = MemorySource::new(std::fs::read(path).unwrap());
    let model = pollster::block_on(Model::open(Box::new(source))).unwrap();
    let error = Engine::load(model, &LoadOptions::default().context(1_000_000)).unwrap_err();
    assert!(matches!(error, EngineError::ContextTooLarge { asked: 1_000_000, most: 131_072 }));
}

#[test]
fn log_probabilities_come_with_tokens() {
    let engine = engine(&LoadOptions::default());
    let (prompt, expected) = reference("chat");
    let sampling = SamplingOptions { top_logprobs: Some(3), ..SamplingOptions::GREEDY };
    let options = GenerateOptions { sampling, max_tokens: Some(1), ..GenerateOptions::default() };
    let mut session = engine.session().unwrap();
    let mut generation = session.generate(&prompt, &options, SpecialOutput::Hidden).unwrap();
    let token = pollster::block_on(generation.next()).unwrap().unwrap();
    assert_eq!((token.sampled.id, token.sampled.top.len()), (expected[0], 3));
    assert_eq!(token.sampled.logprob, Some(token.sampled.top[0].logprob));
    assert!(token.sampled.logprob.unwrap() <= 0.0);
}

#[test]
fn no_tokens_asked_for_are_none() {
    let engine = engine(&LoadOptions::default());
    let prompt = ids(&engine, "Hello");
    let found = generate(
        &mut engine.session().unwrap(),
        &prompt,
        &GenerateOptions { max_tokens: Some(0), ..greedy() },
    );
    assert_eq!((found.ids.len(), found.reason), (0, FinishReason::Length));
}

#[test]
fn attachments_have_to_be_given() {
    let engine = engine(&LoadOptions::default());
    let mut session = engine.session().unwrap();
    let picture = Message { images: vec!["aGk=".into()], ..Message::user("What is this?") };
    let error = session.chat(&[picture], &ChatOptions::default()).err().unwrap();
    assert!(matches!(error, EngineError::UnknownMedia { message: 0, ref name } if name == "aGk="));
}

/// A backend that always wants to say the same, whatever it reads.
struct Scripted(Vec<u32>);

struct ScriptedState {
    script: Vec<u32>,
    read: usize,
    said: usize,
}

impl Backend for Scripted {
    fn state(&self) -> Result<Box<dyn State>, EngineError> {
        Ok(Box::new(ScriptedState { script: self.0.clone(), read: 0, said: 0 }))
    }

    fn rows_at_once(&self, _logits: LogitRows) -> usize {
        1000
    }
}

impl State for ScriptedState {
    fn len(&self) -> usize {
        self.read
    }

    fn truncate(&mut self, len: usize) {
        self.read = self.read.min(len);
        self.said = 0;
    }

    fn watch(&mut self, _watcher: Watcher) {}

    fn step<'a>(&'a mut self, rows: StepRows<'a>, _logits: LogitRows) -> Pending<'a, Logits> {
        self.read += rows.len();
        let mut values = vec![0.0; 2048];
        values[self.script[self.said] as usize] = 10.0;
        self.said += 1;
        Box::pin(async { Ok(Logits { values, vocabulary: 2048 }) })
    }
}

/// A session with a model that replies with this text.
fn saying(text: &str) -> rullama_engine::Session {
    let real = engine(&LoadOptions::default());
    let script = real.tokenizer().encode(text, EncodeOptions::PART);
    let path = format!("{}/../../testdata/gguf/{MODEL}.gguf", env!("CARGO_MANIFEST_DIR"));
    let source = MemorySource::new(std::fs::read(path).unwrap());
    let model = pollster::block_on(Model::open(Box::new(source))).unwrap();
    Engine::with_backend(model, &LoadOptions::default(), |_, _| Ok(Box::new(Scripted(script))))
        .unwrap()
        .session()
        .unwrap()
}

#[test]
fn thoughts_calls_and_answers_are_told_apart() {
    let text = "<|channel>thought\nHm.<channel|>Hi.<|tool_call>call:f{a:<|\"|>x<|\"|>}<tool_call|><turn|>";
    let sampling = SamplingOptions { top_logprobs: Some(2), ..SamplingOptions::GREEDY };
    let generate = GenerateOptions { sampling, ..GenerateOptions::default() };
    for think in [true, false] {
        let mut session = saying(text);
        let options = ChatOptions { generate: generate.clone(), think, ..ChatOptions::default() };
        let mut reply = session.send(Message::user("Hello"), &options).unwrap();
        let mut deltas = Vec::new();
        pollster::block_on(async {
            while let Some(delta) = reply.next().await {
                deltas.push(delta.unwrap());
            }
        });
        let parts = reply.parts().clone();
        assert_eq!(parts.thought, if think { "Hm." } else { "" });
        assert_eq!((parts.answer.as_str(), parts.calls.len()), ("Hi.", 1));
        assert_eq!(parts.calls[0].function.arguments["a"], "x");
        assert!(matches!(deltas.last(), Some(Delta::Call(_))));
        assert_eq!(reply.finish_reason(), Some(FinishReason::Stop));
        assert!(reply.tokens().iter().all(|token| token.logprob.is_some() && token.top.len() == 2));
        assert_eq!(reply.ids().len(), reply.usage().generated_tokens);
        drop(reply);
        assert_eq!(session.messages()[1].tool_calls.len(), 1, "the reply is part of the conversation");
    }
}

#[test]
fn a_reply_that_goes_round_in_circles_is_ended() {
    let mut session = saying(&"!".repeat(800));
    let options = ChatOptions { generate: greedy(), ..ChatOptions::default() };
    let mut reply = session.send(Message::user("Hello"), &options).unwrap();
    pollster::block_on(async { while reply.next().await.is_some() {} });
    assert_eq!(reply.finish_reason(), Some(FinishReason::Stop));
    assert!(reply.ids().len() < 40, "{}", reply.ids().len());
}

#[test]
fn a_message_that_cannot_be_answered_is_no_part_of_the_conversation() {
    let mut session = engine(&LoadOptions::default()).session().unwrap();
    let sampling = SamplingOptions { top_p: 7.0, ..SamplingOptions::default() };
    let options =
        ChatOptions { generate: GenerateOptions { sampling, ..greedy() }, ..ChatOptions::default() };
    assert!(matches!(session.send(Message::user("Hello"), &options), Err(EngineError::Option(_))));
    assert!(session.messages().is_empty());
}

/// A backend with steps of four rows that writes down its calls. It chooses tokens by itself if `chooses`, and loses its
/// device once, in the third step.
struct Recording {
    chooses: bool,
    calls: Rc<RefCell<Vec<String>>>,
    lost: Rc<Cell<bool>>,
}

struct RecordingState {
    chooses: bool,
    calls: Rc<RefCell<Vec<String>>>,
    lost: Rc<Cell<bool>>,
    read: usize,
}

impl Backend for Recording {
    fn state(&self) -> Result<Box<dyn State>, EngineError> {
        let (calls, lost) = (self.calls.clone(), self.lost.clone());
        Ok(Box::new(RecordingState { chooses: self.chooses, calls, lost, read: 0 }))
    }

    fn rows_at_once(&self, logits: LogitRows) -> usize {
        if logits == LogitRows::All { 3 } else { 4 }
    }
}

impl State for RecordingState {
    fn len(&self) -> usize {
        self.read
    }

    fn truncate(&mut self, len: usize) {
        self.read = self.read.min(len);
    }

    fn watch(&mut self, _watcher: Watcher) {}

    fn step<'a>(&'a mut self, read: StepRows<'a>, logits: LogitRows) -> Pending<'a, Logits> {
        self.calls.borrow_mut().push(format!("{} {logits:?}", read.len()));
        if self.calls.borrow().len() == 3 && !self.lost.replace(true) {
            return Box::pin(async { Err(EngineError::DeviceLost("it went away".into())) });
        }
        self.read += read.len();
        let rows = match logits {
            LogitRows::None => 0,
            LogitRows::Last => 1,
            LogitRows::All => read.len(),
        };
        Box::pin(async move { Ok(Logits { values: vec![0.0; 2048 * rows], vocabulary: 2048 }) })
    }

    fn begin<'a>(&'a mut self, choosing: Choosing<'a>) -> Pending<'a, bool> {
        let Choosing { unread, tokens, most, .. } = choosing;
        assert!(tokens.ends_with(unread.ids));
        if self.chooses {
            self.calls.borrow_mut().push(format!("{} chosen {most}", unread.len()));
            self.read += unread.len();
        }
        let chooses = self.chooses;
        Box::pin(async move { Ok(chooses) })
    }

    fn next_token(&mut self) -> Pending<'_, u32> {
        Box::pin(async { Ok(700) })
    }

    fn recover(&mut self) -> Pending<'_, Recovery> {
        self.calls.borrow_mut().push("recovered".to_owned());
        self.read = 0;
        Box::pin(async { Ok(Recovery::Again) })
    }
}

/// The engine cuts prompts into the backend's steps, whether the backend or the sampler chooses tokens, and
/// reads them again after a lost device.
#[test]
fn the_engine_cuts_prompts_into_steps() {
    let prompt: Vec<u32> = (300..310).collect();
    let options = GenerateOptions { max_tokens: Some(2), ignore_end: true, ..greedy() };
    let session = |chooses: bool, lost: bool| {
        let calls = Rc::new(RefCell::new(Vec::new()));
        let backend = Recording { chooses, calls: calls.clone(), lost: Rc::new(Cell::new(lost)) };
        let path = format!("{}/../../testdata/gguf/{MODEL}.gguf", env!("CARGO_MANIFEST_DIR"));
        let source = MemorySource::new(std::fs::read(path).unwrap());
        let model = pollster::block_on(Model::open(Box::new(source))).unwrap();
        let engine =
            Engine::with_backend(model, &LoadOptions::default(), |_, _| Ok(Box::new(backend))).unwrap();
        (engine.session().unwrap(), calls)
    };
    let (mut host, calls) = session(false, true);
    assert_eq!(generate(&mut host, &prompt, &options).ids.len(), 2);
    assert_eq!(calls.take(), ["4 None", "4 None", "2 Last", "1 Last"]);
    assert_eq!((host.history().len(), host.rows()), (11, 11), "the last token is not read");

    let (mut device, calls) = session(true, true);
    assert_eq!(generate(&mut device, &prompt, &options).ids, [700, 700]);
    assert_eq!(calls.take(), ["4 None", "4 None", "2 chosen 2"]);
    assert_eq!(device.history().len(), 11);

    let logits = pollster::block_on(device.logits(&prompt, true)).unwrap();
    assert_eq!((logits.rows(), calls.take().join(", ")), (10, "3 All, 3 All, 3 All, 1 All".to_owned()));

    let (mut losing, calls) = session(false, false);
    assert_eq!(generate(&mut losing, &prompt, &options).ids.len(), 2);
    let again = ["recovered", "4 None", "4 None", "2 Last", "1 Last"];
    assert_eq!(calls.take(), [&["4 None", "4 None", "2 Last"][..], &again].concat());
}

/// A prompt of `tokens` placeholders and tokens, with these rows of towers.
fn with_media(ids: &[u32], media: &[(usize, &Rc<MediaRows>)]) -> PromptRows {
    let media = media.iter().map(|&(at, rows)| MediaSpan { at, rows: rows.clone() }).collect();
    PromptRows { ids: ids.to_vec(), media }
}

/// Rows that a tower could have made.
fn tower_rows(count: usize, seed: f32, joined: bool) -> Rc<MediaRows> {
    let width = 256;
    let values = (0..count * width).map(|at| ((at as f32 + seed) * 0.37).sin()).collect();
    Rc::new(MediaRows { values, width, joined })
}

/// A picture that was read before is not read again; another one in its place is, with all that follows it.
#[test]
fn rows_of_towers_are_reused_like_tokens() {
    let engine = engine(&LoadOptions::default());
    let ids: Vec<u32> = (0..20).map(|id| 400 + id).collect();
    let (picture, other) = (tower_rows(6, 0.0, true), tower_rows(6, 1.0, true));
    let anew = |prompt: &PromptRows| {
        let mut session = engine.session().unwrap();
        pollster::block_on(session.next_logits(prompt.clone())).unwrap()
    };
    let mut session = engine.session().unwrap();
    let mut next = |prompt: &PromptRows, computed: u64| {
        let before = session.rows();
        let logits = pollster::block_on(session.next_logits(prompt.clone())).unwrap();
        assert_eq!(session.rows() - before, computed);
        assert_eq!(logits, anew(prompt));
        logits
    };
    let first = next(&with_media(&ids[..16], &[(4, &picture)]), 16);
    next(&with_media(&ids, &[(4, &picture)]), 4);
    let second = next(&with_media(&ids[..16], &[(4, &other)]), 12);
    assert!(first != second && second != anew(&ids[..16].into()));
    // Without the end of a picture, all of it is read again.
    next(&with_media(&ids[..16], &[(4, &other)]), 1);
    next(&ids[..8].into(), 4);

    let mut refused =
        |prompt: PromptRows| pollster::block_on(session.next_logits(prompt)).unwrap_err().code();
    assert_eq!(refused(with_media(&ids[..8], &[(4, &picture)])), "input.media_place");
    assert_eq!(refused(with_media(&ids, &[(4, &picture), (8, &other)])), "input.media_place");
    // A picture of more rows than steps usually have is read in one.
    let large = with_media(&[400; 80], &[(4, &tower_rows(70, 0.0, true))]);
    pollster::block_on(session.next_logits(large)).unwrap();
}
