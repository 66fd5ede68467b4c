//! Conversations on a GPU: side by side, set back, and after the GPU was lost.

#![cfg(all(feature = "gpu", not(target_family = "wasm")))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{rc::Rc, thread, time::Duration};

use rullama_chat::{Delta, Message};
use rullama_engine::{
    ChatOptions, Engine, EngineError, GenerateOptions, LoadOptions, MediaRows, MediaSpan, PromptRows,
    SamplingOptions, Session,
};
use rullama_gguf::{MemorySource, Model};
use rullama_gpu::{Gpu, GpuOptions, Residency};
use rullama_tokenizer::SpecialOutput;

fn model() -> Model {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-F16.gguf");
    let source = MemorySource::new(std::fs::read(path).unwrap());
    pollster::block_on(Model::open(Box::new(source))).unwrap()
}

fn engine(context: u32) -> Engine {
    engine_with(&LoadOptions::default().context(context))
}

fn engine_with(options: &LoadOptions) -> Engine {
    let gpu = pollster::block_on(Gpu::open(&GpuOptions::default().without_self_test()))
        .expect("these tests need an adapter; a software one such as lavapipe will do");
    pollster::block_on(Engine::load_on(gpu, model(), options, &mut |_, _| {})).unwrap()
}

fn lose(engine: &Engine) {
    engine.gpu_model().unwrap().gpu().destroy();
}

fn options(sampling: SamplingOptions, max_tokens: u32) -> GenerateOptions {
    GenerateOptions { sampling, max_tokens: Some(max_tokens), ignore_end: true, ..GenerateOptions::default() }
}

fn greedy(max_tokens: u32) -> GenerateOptions {
    options(SamplingOptions::GREEDY, max_tokens)
}

/// Every way to choose: the likeliest; by chance, with penalties; by the host.
fn ways() -> [SamplingOptions; 3] {
    let drawn = SamplingOptions {
        temperature: 1.5,
        repeat_penalty: 1.1,
        frequency_penalty: 0.2,
        seed: Some(11),
        ..SamplingOptions::default()
    };
    let by_host = SamplingOptions { top_logprobs: Some(1), ..drawn.clone() };
    [SamplingOptions::GREEDY, drawn, by_host]
}

fn prompt(tokens: u32) -> Vec<u32> {
    std::iter::once(2).chain((1..tokens).map(|index| 300 + index * 37 % 1500)).collect()
}

struct Replied {
    ids: Vec<u32>,
    text: String,
}

/// A reply to a message, with `meanwhile` being called after each of its parts.
fn reply(
    session: &mut Session,
    message: &str,
    sampling: &SamplingOptions,
    mut meanwhile: impl FnMut(usize),
) -> Replied {
    let options =
        ChatOptions { generate: options(sampling.clone(), 16), think: false, ..ChatOptions::default() };
    let mut reply = session.send(Message::user(message), &options).unwrap();
    let mut text = String::new();
    pollster::block_on(async {
        while let Some(delta) = reply.next().await {
            if let Delta::Answer(part) = delta.unwrap() {
                text.push_str(&part);
            }
            meanwhile(reply.ids().len());
        }
    });
    Replied { ids: reply.ids(), text }
}

fn generate(
    session: &mut Session,
    prompt: impl Into<PromptRows>,
    options: &GenerateOptions,
) -> (Vec<u32>, usize) {
    let mut generation = session.generate(prompt, options, SpecialOutput::Hidden).unwrap();
    let mut found = Vec::new();
    pollster::block_on(async {
        while let Some(token) = generation.next().await {
            found.push(token.unwrap().sampled.id);
        }
    });
    let reused = generation.usage().reused_tokens;
    (found, reused)
}

const FIRST: &str = "What is the capital of France? Answer in one word.";
const SECOND: &str = "And what is there to be seen?";

#[test]
fn a_reply_survives_the_loss_of_the_gpu() {
    let engine = engine(512);
    for sampling in ways() {
        let expected = reply(&mut engine.session().unwrap(), FIRST, &sampling, |_| {});
        assert_eq!(expected.ids.len(), 16);
        let before = engine.gpu_model().unwrap();
        let mut session = engine.session().unwrap();
        let mut lost = false;
        let found = reply(&mut session, FIRST, &sampling, |tokens| {
            if tokens >= 5 && !lost {
                lose(&engine);
                lost = true;
            }
        });
        assert_eq!((found.ids, found.text), (expected.ids, expected.text), "{sampling:?}");
        assert!(lost && !Rc::ptr_eq(&before, &engine.gpu_model().unwrap()), "the model was loaded again");
        assert_eq!(session.messages().len(), 2);
    }
}

#[test]
fn conversations_survive_the_loss_of_the_gpu() {
    let engine = engine(512);
    let sampling = SamplingOptions::GREEDY;
    let [mut one, mut other] = [(); 2].map(|()| engine.session().unwrap());
    let mut undisturbed = engine.session().unwrap();
    let first = reply(&mut undisturbed, FIRST, &sampling, |_| {});
    let second = reply(&mut undisturbed, SECOND, &sampling, |_| {});
    for session in [&mut one, &mut other] {
        assert_eq!(reply(session, FIRST, &sampling, |_| {}).ids, first.ids);
    }

    // Between two replies. The first session that goes on has the GPU opened again; the others find it so.
    lose(&engine);
    let found = reply(&mut one, SECOND, &sampling, |_| {});
    assert_eq!((found.ids, &found.text), (second.ids.clone(), &second.text));
    let model = engine.gpu_model().unwrap();
    let found = reply(&mut other, SECOND, &sampling, |_| {});
    assert_eq!((found.ids, &found.text), (second.ids, &second.text));
    assert!(Rc::ptr_eq(&model, &engine.gpu_model().unwrap()), "once is enough");
    for session in [&one, &other] {
        assert_eq!(session.messages(), undisturbed.messages());
        assert_eq!(session.history(), undisturbed.history());
    }
}

#[test]
fn a_prompt_survives_the_loss_of_the_gpu() {
    let engine = engine(2048);
    let prompt = prompt(1700);
    let (expected, _) = generate(&mut engine.session().unwrap(), &prompt, &greedy(8));
    let gpu = engine.gpu_model().unwrap().gpu().clone();
    // Reading takes longer than this; if it ever does not, the reply is what is disturbed.
    let thief = thread::spawn(move || {
        thread::sleep(Duration::from_millis(60));
        gpu.destroy();
    });
    let (found, _) = generate(&mut engine.session().unwrap(), &prompt, &greedy(8));
    thief.join().unwrap();
    assert_eq!(found, expected);

    // A session that begins with a GPU that is gone.
    let mut session = engine.session().unwrap();
    let logits = pollster::block_on(session.logits(&prompt[..20], false)).unwrap();
    lose(&engine);
    let again = pollster::block_on(engine.session().unwrap().logits(&prompt[..20], false)).unwrap();
    assert_eq!(again, logits);
}

#[test]
fn a_gpu_that_is_lost_again_and_again_ends_the_reply() {
    let engine = engine(512);
    let mut session = engine.session().unwrap();
    let prompt = prompt(12);
    let (expected, _) = generate(&mut session, &prompt, &greedy(12));
    let options = greedy(12);
    let mut generation = session.generate(&prompt, &options, SpecialOutput::Hidden).unwrap();
    let mut found = Vec::new();
    let error = pollster::block_on(async {
        loop {
            match generation.next().await.unwrap() {
                Ok(token) => found.push(token.sampled.id),
                Err(error) => break error,
            }
            lose(&engine);
        }
    });
    assert!(matches!(error, EngineError::DeviceLost(_)), "{error:?}");
    assert_eq!(error.code(), "device.lost", "the code is a contract");
    assert!(error.to_string().starts_with("the GPU was lost: "), "{error}");
    assert!((3..12).contains(&found.len()) && expected.starts_with(&found), "{found:?} of {expected:?}");
    drop(generation);
    assert_eq!(generate(&mut session, &prompt, &options).0, expected, "the session is still valid");
}

#[cfg(feature = "cpu")]
#[test]
fn a_gpu_that_is_lost_twice_within_a_minute_hands_over_to_the_cpu() {
    use std::sync::atomic::{AtomicU32, Ordering};

    use rullama_engine::Unsteady;

    static TOLD: AtomicU32 = AtomicU32::new(0);
    let told = |error: &EngineError| {
        assert_eq!(error.to_string(), "the GPU was lost: twice within a minute");
        TOLD.fetch_add(1, Ordering::Relaxed);
    };
    let mut asked = LoadOptions::default().context(512);
    asked.unsteady = Unsteady::Cpu { seconds: || 1.0, told };
    let engine = engine_with(&asked);
    let on_cpu = Engine::load(model(), &LoadOptions::default().context(512)).unwrap();
    let expected = reply(&mut on_cpu.session().unwrap(), FIRST, &SamplingOptions::GREEDY, |_| {});
    let [mut session, mut other] = [(); 2].map(|()| engine.session().unwrap());
    assert_eq!(reply(&mut other, FIRST, &SamplingOptions::GREEDY, |_| {}).ids, expected.ids);

    let mut lost = 0;
    let found = reply(&mut session, FIRST, &SamplingOptions::GREEDY, |tokens| {
        if lost < 2 && tokens >= [4, 9][lost] {
            lose(&engine);
            lost += 1;
        }
    });
    assert_eq!((found.ids, found.text), (expected.ids.clone(), expected.text));
    assert_eq!(TOLD.load(Ordering::Relaxed), 1, "the move to the CPU is reported once");
    assert!(engine.gpu_model().is_none(), "the model has left the GPU");
    // Conversations that were there, and new ones.
    let second = |session: &mut Session| reply(session, SECOND, &SamplingOptions::GREEDY, |_| {}).ids;
    let after = second(&mut session);
    assert_eq!(second(&mut other), after);
    assert_eq!(
        reply(&mut engine.session().unwrap(), FIRST, &SamplingOptions::GREEDY, |_| {}).ids,
        expected.ids
    );
    assert_eq!(TOLD.load(Ordering::Relaxed), 1);
}

#[test]
fn a_gpu_that_is_given_up_ends_the_reply_and_another_engine_resumes_it() {
    use rullama_engine::Unsteady;

    let mut asked = LoadOptions::default().context(512);
    asked.unsteady = Unsteady::GiveUp { seconds: || 1.0 };
    let [first, second] = [(); 2].map(|()| engine_with(&asked));
    let prompt = prompt(12);
    let options = options(SamplingOptions { seed: Some(3), ..SamplingOptions::default() }, 12);
    let (expected, _) = generate(&mut first.session().unwrap(), &prompt, &options);
    let mut session = first.session().unwrap();
    let mut generation = session.generate(&prompt, &options, SpecialOutput::Hidden).unwrap();
    let error = pollster::block_on(async {
        loop {
            match generation.next().await.unwrap() {
                Ok(_) => lose(&first),
                Err(error) => break error,
            }
        }
    });
    assert_eq!(error.code(), "device.lost");
    let begun = generation.ids();
    assert!((1..12).contains(&begun.len()) && expected.starts_with(&begun), "{begun:?} of {expected:?}");

    let mut session = second.session().unwrap();
    let mut generation = session.generate(&prompt, &options, SpecialOutput::Hidden).unwrap();
    generation.resume(&begun);
    let found = pollster::block_on(async {
        generation.read_prompt().await.unwrap();
        while let Some(token) = generation.next().await {
            token.unwrap();
        }
        generation.ids()
    });
    assert_eq!(found, expected, "the random numbers go on where they were");
    assert_eq!(generation.usage().generated_tokens, expected.len());
}

#[test]
fn sessions_share_weights_and_nothing_else() {
    let engine = engine(512);
    let prompts = [prompt(40), prompt(9), prompt(23).into_iter().rev().collect::<Vec<_>>()];
    let options = greedy(12);
    let alone = prompts.each_ref().map(|ids| generate(&mut engine.session().unwrap(), ids, &options).0);
    assert!(alone[0] != alone[1] && alone[1] != alone[2], "{alone:?}");

    let mut sessions = prompts.each_ref().map(|_| engine.session().unwrap());
    let mut generations: Vec<_> = sessions
        .iter_mut()
        .zip(&prompts)
        .map(|(session, ids)| session.generate(ids, &options, SpecialOutput::Hidden).unwrap())
        .collect();
    let mut found = prompts.each_ref().map(|_| Vec::new());
    pollster::block_on(async {
        for _ in 0..12 {
            for (generation, found) in generations.iter_mut().zip(&mut found) {
                found.push(generation.next().await.unwrap().unwrap().sampled.id);
            }
        }
    });
    assert_eq!(found, alone);
}

/// Layers that slide keep a ring of their window and one step. What lies further back is read again.
#[test]
fn a_conversation_can_be_set_back_further_than_rings_reach() {
    let engine = engine(1024);
    let window = engine.config().layers.iter().filter_map(|layer| layer.window).max().unwrap() as usize;
    let prompt = prompt(512 + window as u32 + 150);
    let options = greedy(6);
    let mut session = engine.session().unwrap();
    generate(&mut session, &prompt, &options);

    let near = prompt.len() - 20;
    for (kept, reused) in [(near, near), (100, 0)] {
        let mut other = prompt[..kept].to_vec();
        other.extend([700, 701, 702]);
        let found = generate(&mut session, &other, &options);
        assert_eq!(found.1, reused, "set back to {kept}");
        let (expected, _) = generate(&mut engine.session().unwrap(), &other, &options);
        assert_eq!(found.0, expected, "set back to {kept}");
    }
}

#[test]
fn a_model_that_does_not_fit_is_refused() {
    let gpu = pollster::block_on(Gpu::open(&GpuOptions::default().without_self_test())).unwrap();
    let load = |options: &LoadOptions| {
        pollster::block_on(Engine::load_on(gpu.clone(), model(), options, &mut |_, _| {}))
    };
    let all = LoadOptions::default().context(1024).residency(Residency::Gpu);
    let budget = *load(&all).unwrap().gpu_model().unwrap().budget();
    let error = load(&all.clone().gpu_memory(budget.total() - 1)).unwrap_err();
    assert_eq!(error.code(), "memory.too_large");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("a context of 1023 fits"), "{source}");
    load(&all.clone().gpu_memory(budget.total())).unwrap();

    // Where nothing is said of residency, what does not fit stays in the file, as far as it can.
    let mut any = all.gpu_memory(budget.total() - 1);
    any.residency = None;
    let engine = load(&any).unwrap();
    assert_eq!(engine.gpu_model().unwrap().residency(), Residency::Rows);
    assert_eq!(load(&any.gpu_memory(1 << 10)).unwrap_err().code(), "memory.too_large");
}

/// Three conversations written at the same time on a GPU that keeps one, or two: those without room are read again, and each
/// gets the tokens that it gets alone.
#[test]
fn conversations_that_have_to_make_room_get_their_tokens() {
    use futures_util::future::join_all;

    let gpu = pollster::block_on(Gpu::open(&GpuOptions::default().without_self_test())).unwrap();
    for kept in [1, 2] {
        let mut options = LoadOptions::default().context(96);
        options.conversations = Some(kept);
        let progress = &mut |_, _| {};
        let load = Engine::load_on(gpu.clone(), model(), &options, progress);
        let engine = pollster::block_on(load).unwrap();
        for sampling in ways() {
            let prompts = [prompt(5), prompt(40), prompt(9)];
            let written = |prompt: Vec<u32>| {
                let (engine, sampling) = (engine.clone(), sampling.clone());
                async move {
                    let mut session = engine.session().unwrap();
                    let options = self::options(sampling, 8);
                    let mut generation = session.generate(&prompt, &options, SpecialOutput::Hidden).unwrap();
                    let mut ids = Vec::new();
                    while let Some(token) = generation.next().await {
                        ids.push(token.unwrap().sampled.id);
                    }
                    ids
                }
            };
            let alone: Vec<_> =
                prompts.iter().map(|prompt| pollster::block_on(written(prompt.clone()))).collect();
            let together = pollster::block_on(join_all(prompts.clone().map(written)));
            assert_eq!(together, alone, "{kept} kept, {sampling:?}");
        }
    }
}

/// Rows that a tower made go through every kind of step: those before a prompt's end, and the one that a reply begins with.
#[test]
fn rows_of_towers_are_read_as_by_the_reference() {
    let values = (0..9 * 128).map(|at| (at as f32 * 0.37).sin()).collect();
    let rows = Rc::new(MediaRows { values, width: 128, joined: false });
    let reference = Engine::load_reference(model(), &LoadOptions::default()).unwrap();
    let engine = engine(128);
    let plain = generate(&mut reference.session().unwrap(), prompt(40), &greedy(4)).0;
    for at in [3, 31] {
        let prompt = PromptRows { ids: prompt(40), media: vec![MediaSpan { at, rows: rows.clone() }] };
        let expected = generate(&mut reference.session().unwrap(), prompt.clone(), &greedy(4)).0;
        let mut session = engine.session().unwrap();
        assert_eq!(generate(&mut session, prompt.clone(), &greedy(4)), (expected.clone(), 0));
        assert_eq!(generate(&mut session, prompt, &greedy(4)), (expected.clone(), 39));
        assert!(at == 3 || expected != plain, "the rows make a difference");
    }
}
