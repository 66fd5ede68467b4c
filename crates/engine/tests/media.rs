//! Images and sound through the whole engine: files become rows, messages become prompts, and the demo model answers what
//! transformers answers.

#![cfg(all(feature = "cpu", not(target_family = "wasm")))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use rullama_chat::{Delta, Message};
use rullama_engine::{
    Attachment, ChatOptions, EncodeProgress, Engine, EngineError, GenerateOptions, LoadOptions, Media,
    MediaSpan, Medium, PromptRows, SamplingOptions, Session,
};
use rullama_gguf::{MemorySource, Model};
use rullama_media::{Budget, Pixels, Samples, decode_image, decode_sound};
use rullama_tokenizer::SpecialOutput;
use serde::Deserialize;

/// Longer than every prompt with its reply.
const CONTEXT: u32 = 1024;

fn read(path: &str) -> Vec<u8> {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn model(path: &str) -> Model {
    pollster::block_on(Model::open(Box::new(MemorySource::named(path, read(path))))).unwrap()
}

fn options() -> LoadOptions {
    LoadOptions::default().context(CONTEXT)
}

fn demo() -> Engine {
    Engine::load(model("models/demo.gguf"), &options()).unwrap()
}

fn greedy() -> GenerateOptions {
    GenerateOptions { sampling: SamplingOptions::GREEDY, max_tokens: Some(48), ..GenerateOptions::default() }
}

fn see(engine: &Engine, image: &Pixels, budget: u32) -> Result<Attachment, EngineError> {
    pollster::block_on(engine.encode_image(image, Budget::new(budget).unwrap(), &mut |_| {}))
}

fn hear(engine: &Engine, samples: Vec<f32>) -> Result<Attachment, EngineError> {
    pollster::block_on(engine.encode_sound(&Samples::new(samples).unwrap(), &mut |_| {}))
}

/// A question about an image or a recording, and what transformers answers.
#[derive(Deserialize)]
struct Question {
    file: String,
    rows: usize,
    prompt: String,
    ids: Vec<u32>,
    greedy: Vec<u32>,
    text: String,
}

#[derive(Deserialize)]
struct Questions {
    media: Vec<Question>,
}

fn questions() -> Vec<Question> {
    let found = serde_json::from_slice::<Questions>(&read("testdata/demo/demo.media.json")).unwrap().media;
    assert_eq!(found.len(), 8, "questions");
    found
}

impl Question {
    fn attachment(&self, engine: &Engine) -> Attachment {
        let bytes = read(&format!("testdata/demo/{}", self.file));
        // Images of 8 and of 16 tokens a side, which their budgets leave as they are.
        let budget = if self.rows == 64 { 70 } else { 280 };
        match self.file.ends_with(".png") {
            true => see(engine, &decode_image(&bytes).unwrap(), budget),
            false => hear(engine, decode_sound(&bytes).unwrap().as_slice().to_vec()),
        }
        .unwrap()
    }

    fn message(&self) -> Message {
        let name = vec![self.file.clone()];
        match self.file.ends_with(".png") {
            true => Message { images: name, ..Message::user(&self.prompt) },
            false => Message { audio: name, ..Message::user(&self.prompt) },
        }
    }
}

/// The tokens of the prompt are those of transformers, and so are the tokens of the greedy reply.
fn check(engine: &Engine, questions: &[Question]) {
    for question in questions {
        let attachment = question.attachment(engine);
        assert_eq!(attachment.rows().len(), question.rows, "{}", question.file);
        let media = Media::from([(question.file.clone(), attachment)]);
        let options = ChatOptions { generate: greedy(), think: false, media, ..ChatOptions::default() };
        let messages = [question.message()];
        let (_, prompt) = engine.prompt(&messages, &options).unwrap();
        assert_eq!(prompt.ids, question.ids, "{}", question.file);
        let mut session = engine.session().unwrap();
        let mut reply = session.chat(&messages, &options).unwrap();
        pollster::block_on(async {
            while let Some(delta) = reply.next().await {
                delta.unwrap();
            }
        });
        let found: Vec<u32> = reply.tokens().iter().map(|token| token.id).collect();
        assert_eq!(found, question.greedy, "{}: not {:?}", question.file, question.text);
    }
}

#[test]
fn the_demo_model_answers_about_images_and_sound() {
    check(&demo(), &questions());
}

#[test]
fn the_reference_answers_the_same() {
    let engine = Engine::load_reference(model("models/demo.gguf"), &options()).unwrap();
    let chosen = |question: &Question| ["demo-image-2.png", "demo-audio-7.wav"].contains(&&*question.file);
    let questions: Vec<Question> = questions().into_iter().filter(chosen).collect();
    assert_eq!(questions.len(), 2);
    check(&engine, &questions);
}

#[cfg(feature = "gpu")]
mod on_a_gpu {
    use rullama_gpu::{Gpu, GpuOptions};

    use super::*;

    fn load(model: Model, options: &LoadOptions) -> Engine {
        // Matrix units round to half precision, and some goldens have closer calls than that allows.
        let wanted = GpuOptions::default().without_self_test().without_matrices();
        let gpu = pollster::block_on(Gpu::open(&wanted))
            .expect("this test needs an adapter; a software one such as lavapipe will do");
        pollster::block_on(Engine::load_on(gpu, model, options, &mut |_, _| {})).unwrap()
    }

    /// The GPU is lost between an image and a sound; the towers' weights are not kept.
    #[test]
    fn the_demo_model_answers_about_images_and_sound() {
        let mut options = options();
        options.keep_towers = false;
        let engine = load(model("models/demo.gguf"), &options);
        let mut questions = questions();
        questions.retain(|question| ["demo-image-1.png", "demo-audio-5.wav"].contains(&&*question.file));
        assert_eq!(questions.len(), 2);
        check(&engine, &questions[..1]);
        engine.gpu_model().unwrap().gpu().destroy();
        check(&engine, &questions[1..]);
    }

    #[test]
    fn a_tower_that_does_not_fit_beside_the_model_is_refused() {
        let engine = load(model("models/demo.gguf"), &options());
        let needed = engine.gpu_model().unwrap().budget().total();
        let engine = load(model("models/demo.gguf"), &options().gpu_memory(needed + (1 << 20)));
        let error = see(&engine, &grey(48, 48), 70).unwrap_err();
        assert_eq!(error.code(), "memory.too_large");
    }

    #[test]
    fn images_are_read_whole_by_a_model_whose_layers_see_them_so() {
        read_whole(&load(joined(), &LoadOptions::default().context(2048)));
    }
}

/// 12B with its projector file beside it.
fn joined() -> Model {
    let text = model("testdata/gguf/tiny-12b-Q8_0.gguf");
    text.join(model("testdata/gguf/tiny-12b-mmproj-f16.gguf")).unwrap()
}

#[derive(Deserialize)]
struct Prompts {
    prompts: Vec<Prompt>,
}

#[derive(Deserialize)]
struct Prompt {
    name: String,
    ids: Vec<u32>,
    runs: Vec<Run>,
    hf_greedy: Vec<u32>,
    hf_greedy_margins: Vec<f32>,
}

#[derive(Deserialize)]
struct Run {
    start: usize,
}

/// Greedy tokens as long as they are clear, after a prompt with an image and after one with a sound. An image has more rows than
/// a step of the CPU; the largest budget has more than a step of a GPU usually has.
fn read_whole(engine: &Engine) {
    /// By how much the golden token is preferred.
    const SURE: f32 = 2.0;
    let file: Prompts = serde_json::from_slice(&read("testdata/media/tiny-12b.json")).unwrap();
    for prompt in file.prompts {
        let medium = match prompt.name.starts_with("image") {
            true => see(engine, &decode_image(&read("testdata/media/tiny-12b-480x336.png")).unwrap(), 70),
            false => {
                let sound = decode_sound(&read("testdata/media/tiny-12b-rise.wav")).unwrap();
                hear(engine, sound.as_slice().to_vec())
            }
        };
        let media = vec![MediaSpan { at: prompt.runs[0].start, rows: medium.unwrap().rows().clone() }];
        let rows = PromptRows { ids: prompt.ids, media };
        let options = GenerateOptions { ignore_end: true, ..greedy() };
        let mut session = engine.session().unwrap();
        let mut generation = session.generate(rows, &options, SpecialOutput::All).unwrap();
        let clear = prompt.hf_greedy_margins.iter().take_while(|&&margin| margin > SURE).count();
        assert!(clear > 3, "`{}`: only {clear} tokens are clear", prompt.name);
        for (token, &expected) in prompt.hf_greedy[..clear].iter().enumerate() {
            let found = pollster::block_on(generation.next()).unwrap().unwrap().sampled.id;
            assert_eq!(found, expected, "`{}`, token {token}", prompt.name);
        }
    }
    let finest = see(engine, &grey(640, 480), 1120).unwrap();
    assert_eq!((finest.rows().len(), finest.rows().joined), (38 * 28, true));
    let mut ids = vec![2; finest.rows().len() + 2];
    ids.push(3);
    let rows = PromptRows { ids, media: vec![MediaSpan { at: 1, rows: finest.rows().clone() }] };
    let logits = pollster::block_on(engine.session().unwrap().logits(rows, false)).unwrap();
    assert!(logits.last().iter().all(|logit| logit.is_finite()));
}

#[test]
fn images_are_read_whole_by_a_model_whose_layers_see_them_so() {
    read_whole(&Engine::load(joined(), &LoadOptions::default().context(2048)).unwrap());
}

fn grey(width: u32, height: u32) -> Pixels {
    Pixels::from_rgb(width, height, vec![128; (width * height * 3) as usize]).unwrap()
}

fn say(session: &mut Session, message: Message, options: &ChatOptions) -> String {
    let mut reply = session.send(message, options).unwrap();
    let mut text = String::new();
    pollster::block_on(async {
        while let Some(delta) = reply.next().await {
            if let Delta::Answer(answer) = delta.unwrap() {
                text.push_str(&answer);
            }
        }
    });
    text
}

/// Counts what is encoded and what is read in a conversation of two turns with one image.
#[test]
fn a_second_turn_reuses_the_image_of_the_first() {
    let engine = demo();
    let questions = questions();
    let [colour, count] = [&questions[0], &questions[1]];
    let media = Media::from([(colour.file.clone(), colour.attachment(&engine))]);
    let options = ChatOptions { generate: greedy(), think: false, media, ..ChatOptions::default() };
    let mut session = engine.session().unwrap();
    say(&mut session, colour.message(), &options);
    let (first, encoded) = (session.rows(), engine.encoded());
    assert_eq!(encoded, 1);
    // Attached once, and part of the conversation from then on.
    let bare = ChatOptions { media: Media::new(), ..options.clone() };
    say(&mut session, Message::user(&count.prompt), &bare);
    let second = session.rows() - first;
    assert!(second < 40, "{second} rows were read in the second turn");
    assert_eq!(session.history().iter().filter(|&&id| id == 4091).count(), 64, "placeholders");

    // A caller that sends everything again each time, and encodes the image again, reads as little.
    let mut messages = session.messages().to_vec();
    messages.push(Message::user("And which shape is it?"));
    let again = colour.attachment(&engine);
    assert_eq!(engine.encoded(), 1);
    let options = ChatOptions { media: Media::from([(colour.file.clone(), again)]), ..options };
    let before = session.rows();
    let mut reply = session.chat(&messages, &options).unwrap();
    pollster::block_on(reply.read_prompt()).unwrap();
    drop(reply);
    let third = session.rows() - before;
    assert!(third < 40, "{third} rows were read in the third turn");

    // Another image in the same place is another prompt.
    let other = count.attachment(&engine);
    assert_eq!(engine.encoded(), 2);
    let options = ChatOptions { media: Media::from([(colour.file.clone(), other)]), ..options };
    let before = session.rows();
    let mut reply = session.chat(&messages, &options).unwrap();
    pollster::block_on(reply.read_prompt()).unwrap();
    drop(reply);
    assert!(session.rows() - before > 64);
}

#[test]
fn progress_is_told_and_weights_can_be_freed() {
    let engine = demo();
    let mut told = Vec::new();
    let budget = Budget::new(70).unwrap();
    let first = pollster::block_on(engine.encode_image(&grey(100, 80), budget, &mut |progress| {
        told.push(EncodeProgress::fraction(progress));
    }));
    assert!(told.len() > 10 && told.is_sorted(), "{told:?}");
    assert_eq!(told.last(), Some(&1.0));
    engine.release_towers();
    // Of another budget, so that it is encoded again.
    let second = see(&engine, &grey(100, 80), 140).unwrap();
    assert!(second.rows().len() > first.unwrap().rows().len());
    assert_eq!(engine.media(), [Medium::Vision, Medium::Audio]);
}

#[test]
fn odd_images_and_sounds_break_nothing() {
    let engine = demo();
    for (width, height) in [(1, 1), (1, 5000), (5000, 1), (3, 777), (4999, 7)] {
        let rows = see(&engine, &grey(width, height), 70).unwrap();
        assert!((1..=70).contains(&rows.rows().len()), "{width}×{height}: {} rows", rows.rows().len());
    }
    let loud = |samples: usize| (0..samples).map(|at| if at % 2 == 0 { 1.0 } else { -1.0 }).collect();
    for samples in [vec![0.0; 16_000], loud(8000), vec![1e30; 4000], vec![0.1; 161], vec![0.1; 500_000]] {
        let count = samples.len();
        let rows = hear(&engine, samples).unwrap();
        assert!(!rows.rows().is_empty(), "{count} samples");
        assert!(rows.rows().values.iter().all(|value| value.is_finite()), "{count} samples");
    }
    // Ten milliseconds make no frame.
    let error = hear(&engine, vec![0.5; 160]).unwrap_err();
    assert_eq!(error.code(), "media.sound.too_short");
    // 12B takes samples as they are.
    let without_tower = Engine::load(joined(), &options()).unwrap();
    assert_eq!(hear(&without_tower, vec![0.5; 160]).unwrap().rows().len(), 1);
}

#[test]
fn what_cannot_be_attached_is_told() {
    let text = Engine::load(model("testdata/gguf/micro-e2b-Q8_0.gguf"), &options()).unwrap();
    assert_eq!(see(&text, &grey(9, 9), 70).unwrap_err().code(), "model.no_images");
    assert_eq!(hear(&text, vec![0.0; 999]).unwrap_err().code(), "model.no_audio");
    assert_eq!(text.media(), []);
    let message = Message { images: vec!["cat.png".into()], ..Message::user("What is this?") };
    let error = text.prompt(&[message], &ChatOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "message 0 attaches `cat.png`, which was not given");
}
