//! Files with arbitrary descriptions of a model: refused, or described.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::{Format, MemorySource, Model, Writer};

/// Every key that is read, and the tensors that are looked for first.
const KEYS: [&str; 22] = [
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.key_length_swa",
    "attention.value_length_swa",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.shared_kv_layers",
    "embedding_length_per_layer_input",
    "rope.freq_base",
    "rope.freq_base_swa",
    "final_logit_softcapping",
    "expert_count",
    "expert_used_count",
    "expert_feed_forward_length",
    "rope.local.freq_base",
];
const TENSORS: [&str; 8] = [
    "token_embd.weight",
    "output_norm.weight",
    "rope_freqs.weight",
    "per_layer_token_embd.weight",
    "blk.0.attn_norm.weight",
    "blk.0.attn_q.weight",
    "blk.0.attn_k.weight",
    "blk.0.ffn_gate_inp.weight",
];

#[derive(Debug, Arbitrary)]
enum Value {
    Small(u8),
    Number(u32),
    Float(f32),
    Numbers(Vec<u32>),
    Flags(Vec<bool>),
}

libfuzzer_sys::fuzz_target!(|input: (Vec<(u8, Value)>, Vec<(u8, u8, u8)>)| {
    let (entries, tensors) = input;
    let mut writer = Writer::new();
    let _ = writer.set("general.architecture", "gemma4");
    for (key, value) in &entries {
        let key = format!("gemma4.{}", KEYS[*key as usize % KEYS.len()]);
        // A key that was set before stays.
        let _ = match value {
            Value::Small(number) => writer.set(&key, u32::from(*number)),
            Value::Number(number) => writer.set(&key, *number),
            Value::Float(number) => writer.set(&key, *number),
            Value::Numbers(numbers) => writer.set(&key, numbers.as_slice()),
            Value::Flags(flags) => writer.set(&key, flags.as_slice()),
        };
    }
    let mut sizes = Vec::new();
    for (name, width, rows) in tensors {
        let dims = [u64::from(width), u64::from(rows)];
        if writer.add_tensor(TENSORS[name as usize % TENSORS.len()], &dims, Format::I8).is_ok() {
            sizes.push(usize::from(width) * usize::from(rows));
        }
    }
    let mut body = writer.begin(Vec::new()).expect("memory can be written");
    for size in sizes {
        body.write_tensor(&vec![0; size]).expect("the size it was listed with");
    }
    let file = body.finish().expect("all tensors were given");
    let model =
        pollster::block_on(Model::open(Box::new(MemorySource::new(file)))).expect("a file just written");
    if let Ok(config) = Config::read(&model) {
        let _ = text(&model, &config, Outputs::Last);
        let _ = text(&model, &config, Outputs::All);
    }
});
