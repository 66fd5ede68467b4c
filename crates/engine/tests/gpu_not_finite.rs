//! Models whose weights or activations are infinite or NaN are refused with the same error on the GPU as on the CPU,
//! wherever in the model the number is, and however tokens are chosen.

#![cfg(all(feature = "gpu", not(target_family = "wasm")))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use rullama_engine::{
    CacheFormat, Engine, EngineError, GenerateOptions, LoadOptions, SamplingOptions, Session,
};
use rullama_gguf::{Format, MemorySource, Model, Writer};
use rullama_gpu::{Gpu, GpuOptions};
use rullama_tokenizer::SpecialOutput;

const PROMPT: [u32; 6] = [2, 610, 483, 700, 701, 702];

const NAN: u16 = 0x7e00;
const INFINITY: u16 = 0x7c00;
const NEGATIVE_INFINITY: u16 = 0xfc00;

fn gpu() -> Gpu {
    pollster::block_on(Gpu::open(&GpuOptions::default().without_self_test()))
        .expect("these tests need an adapter; a software one such as lavapipe will do")
}

/// The bytes of a model of the test data, of which some can be changed.
struct Damaged {
    bytes: Vec<u8>,
    model: Model,
}

impl Damaged {
    fn new(name: &str) -> Self {
        let path = format!("{}/../../testdata/gguf/{name}.gguf", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(path).unwrap();
        let model = open(bytes.clone());
        Self { bytes, model }
    }

    /// The same model without an entry of its metadata.
    fn without(self, removed: &str) -> Self {
        let mut writer = Writer::new();
        for (key, value) in self.model.header().entries().filter(|(key, _)| *key != removed) {
            writer.set(key, value).unwrap();
        }
        for tensor in self.model.tensors() {
            writer.add_tensor(tensor.name, tensor.shape.dims(), tensor.format).unwrap();
        }
        let mut body = writer.begin(Vec::new()).unwrap();
        for tensor in self.model.tensors() {
            body.write_tensor(&pollster::block_on(self.model.read(tensor.range())).unwrap()).unwrap();
        }
        let bytes = body.finish().unwrap();
        assert!(bytes.len() < self.bytes.len(), "{removed} was not there");
        let model = open(bytes.clone());
        Self { bytes, model }
    }

    /// Replaces the scale of the first block of a row, or its first value where the format has no blocks.
    fn set(&mut self, tensor: &str, row: u64, half: u16) {
        let tensor = self.model.tensor(tensor).unwrap();
        let start = tensor.rows_range(row..row + 1).start as usize;
        let at = start + if tensor.format == Format::Q6_K { 208 } else { 0 };
        match tensor.format {
            Format::F32 => {
                let value = if half == NAN { f32::NAN } else { f32::INFINITY };
                self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
            _ => self.bytes[at..at + 2].copy_from_slice(&half.to_le_bytes()),
        }
    }

    /// Replaces all values of a vector.
    fn fill(&mut self, tensor: &str, value: f32) {
        let tensor = self.model.tensor(tensor).unwrap();
        assert_eq!(tensor.format, Format::F32);
        let range = tensor.range();
        for bytes in self.bytes[range.start as usize..range.end as usize].as_chunks_mut().0 {
            *bytes = value.to_le_bytes();
        }
    }

    fn on_gpu(&self, gpu: &Gpu, options: &LoadOptions) -> Engine {
        let model = open(self.bytes.clone());
        pollster::block_on(Engine::load_on(gpu.clone(), model, options, &mut |_, _| {})).unwrap()
    }

    fn on_cpu(&self, options: &LoadOptions) -> Engine {
        Engine::load(open(self.bytes.clone()), options).unwrap()
    }
}

fn open(bytes: Vec<u8>) -> Model {
    pollster::block_on(Model::open(Box::new(MemorySource::new(bytes)))).unwrap()
}

fn options() -> LoadOptions {
    LoadOptions::default().context(64)
}

fn by_host() -> SamplingOptions {
    SamplingOptions { top_logprobs: Some(1), ..SamplingOptions::GREEDY }
}

/// Tokens that are generated before an error, and the error.
fn generate(session: &mut Session, sampling: SamplingOptions, count: u32) -> (Vec<u32>, Option<EngineError>) {
    let options =
        GenerateOptions { sampling, max_tokens: Some(count), ignore_end: true, ..GenerateOptions::default() };
    let mut generation = session.generate(&PROMPT, &options, SpecialOutput::Hidden).unwrap();
    let mut ids = Vec::new();
    while let Some(token) = pollster::block_on(generation.next()) {
        match token {
            Ok(token) => ids.push(token.sampled.id),
            Err(error) => return (ids, Some(error)),
        }
    }
    (ids, None)
}

/// The error is the one for numbers that are not finite; how many tokens had been read.
fn not_finite(error: Option<EngineError>, what: &str) -> usize {
    let error = error.unwrap_or_else(|| panic!("{what}: accepted"));
    assert_eq!(error.code(), "model.not_finite", "{what}: {error:?}");
    assert!(error.to_string().contains("is not finite"), "{what}: {error}");
    let EngineError::NotFinite { tokens, .. } = error else { panic!("{what}: {error:?}") };
    tokens
}

/// Both backends refuse the model, when tokens are chosen and when logits are asked for.
fn is_refused(damaged: &Damaged, gpu: &Gpu, options: &LoadOptions, what: &str) {
    let engines = [("GPU", damaged.on_gpu(gpu, options)), ("CPU", damaged.on_cpu(options))];
    for (backend, engine) in engines {
        let mut session = engine.session().unwrap();
        let what = format!("{what}, {backend}");
        not_finite(generate(&mut session, SamplingOptions::GREEDY, 2).1, &what);
        not_finite(pollster::block_on(session.logits(&PROMPT, false)).err(), &format!("{what}, logits"));
    }
}

#[test]
fn damaged_weights_are_refused_as_on_the_cpu() {
    let gpu = gpu();
    let cases = [
        ("micro-e2b-Q8_0", "blk.0.attn_q.weight", 3, NAN),
        ("micro-e2b-Q8_0", "per_layer_token_embd.weight", 702, INFINITY),
        ("tiny-moe-Q4_K_M", "blk.0.ffn_gate_inp.weight", 1, NAN),
        ("tiny-moe-Q4_K_M", "output_norm.weight", 0, INFINITY),
    ];
    for (name, tensor, row, half) in cases {
        let mut damaged = Damaged::new(name);
        damaged.set(tensor, row, half);
        is_refused(&damaged, &gpu, &options(), &format!("{name}, {tensor}"));
    }
}

#[test]
fn experts_and_rounded_caches_hide_nothing() {
    let gpu = gpu();
    let mut damaged = Damaged::new("tiny-moe-Q4_K_M");
    let rows = damaged.model.tensor("blk.1.ffn_down_exps.weight").unwrap().shape.rows();
    (0..rows).for_each(|row| damaged.set("blk.1.ffn_down_exps.weight", row, NAN));
    is_refused(&damaged, &gpu, &options(), "experts");
    let mut damaged = Damaged::new("micro-e2b-Q8_0");
    damaged.set("blk.1.attn_v.weight", 3, INFINITY);
    is_refused(&damaged, &gpu, &options().kv(CacheFormat::Q8), "a cache of Q8");
}

#[test]
fn activations_that_overflow_are_refused_as_on_the_cpu() {
    let gpu = gpu();
    // The sum stays finite; its squares do not.
    let mut damaged = Damaged::new("micro-e2b-Q8_0");
    damaged.fill("blk.1.post_attention_norm.weight", 1e30);
    is_refused(&damaged, &gpu, &options(), "a large norm");
}

/// Without a soft cap nothing turns an infinite logit into NaN. It is refused all the same, whatever its sign, however
/// tokens are chosen, and even if its token is suppressed.
#[test]
fn an_infinite_logit_without_a_soft_cap_is_refused() {
    const ROW: u32 = 900;
    let gpu = gpu();
    let drawn = SamplingOptions { top_k: 40, temperature: 1.0, ..SamplingOptions::GREEDY };
    let from_all = SamplingOptions { top_k: 0, ..drawn.clone() };
    let suppressed =
        SamplingOptions { logit_bias: [(ROW, f32::NEG_INFINITY)].into(), ..SamplingOptions::GREEDY };
    for half in [INFINITY, NEGATIVE_INFINITY] {
        let mut damaged = Damaged::new("micro-e2b-Q8_0").without("gemma4.final_logit_softcapping");
        // The table of embeddings is the head, too.
        assert!(damaged.model.tensor("output.weight").is_none());
        damaged.set("token_embd.weight", ROW.into(), half);
        for (backend, engine) in
            [("GPU", damaged.on_gpu(&gpu, &options())), ("CPU", damaged.on_cpu(&options()))]
        {
            let mut session = engine.session().unwrap();
            for sampling in
                [SamplingOptions::GREEDY, drawn.clone(), from_all.clone(), suppressed.clone(), by_host()]
            {
                let what = format!("{half:x}, {backend}, {sampling:?}");
                let (ids, error) = generate(&mut session, sampling, 2);
                assert!(ids.is_empty(), "{what}: {ids:?}");
                not_finite(error, &what);
            }
        }
    }
}

/// The embeddings of one token are damaged. It is refused where it is read, in a prompt of several steps and after it was
/// chosen, by whichever sampler; and the conversation can go on without it.
#[test]
fn one_damaged_token_is_refused_where_it_is_read() {
    const COUNT: u32 = 6;
    let gpu = gpu();
    let mut damaged = Damaged::new("micro-e2b-Q8_0");
    let sound = damaged.on_gpu(&gpu, &options());
    let (ids, error) = generate(&mut sound.session().unwrap(), SamplingOptions::GREEDY, COUNT);
    assert!(error.is_none(), "{error:?}");
    // One that was not there before.
    let at = (1..ids.len()).find(|&at| !ids[..at].contains(&ids[at]) && !PROMPT.contains(&ids[at])).unwrap();
    damaged.set("per_layer_token_embd.weight", ids[at].into(), NAN);

    let drawn = SamplingOptions { top_k: 40, ..SamplingOptions::GREEDY };
    let mut in_small_steps = options();
    in_small_steps.rows = Some(4);
    let engine = damaged.on_gpu(&gpu, &in_small_steps);
    let mut session = engine.session().unwrap();
    for sampling in [SamplingOptions::GREEDY, drawn, by_host()] {
        let (found, error) = generate(&mut session, sampling, COUNT);
        assert_eq!(found, ids[..=at]);
        assert_eq!(not_finite(error, "a reply"), PROMPT.len() + at + 1);
    }
    // The token in the first step of a prompt, then a prompt without it.
    let mut prompt = PROMPT.to_vec();
    prompt[1] = ids[at];
    let options = GenerateOptions { max_tokens: Some(1), ..GenerateOptions::default() };
    let mut generation = session.generate(&prompt, &options, SpecialOutput::Hidden).unwrap();
    // Of this prompt, the first token had been read before.
    assert_eq!(not_finite(pollster::block_on(generation.read_prompt()).err(), "a prompt"), 1 + 4);
    drop(generation);
    let (found, error) = generate(&mut session, SamplingOptions::GREEDY, at as u32 + 1);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(found, ids[..=at]);

    let (found, error) = generate(&mut damaged.on_cpu(&self::options()).session().unwrap(), by_host(), COUNT);
    assert_eq!(found, ids[..=at]);
    assert_eq!(not_finite(error, "on the CPU"), PROMPT.len() + at + 1);
}
