//! Metadata and tensors are those of llama.cpp's converter, and logits those of Hugging Face.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    rc::Rc,
};

use rullama_convert::{ConvertOptions, Mix};
use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::{Array, Format, Value, ValueType};
use rullama_reference::{CacheFormat, Caches, Step, Weights, run};
use rullama_tokenizer::{EncodeOptions, Tokenizer};
use safetensors::SafeTensors;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::checkpoint::{Checkpoint, FOLDER, beside, convert, open};

#[derive(Deserialize)]
struct Expected {
    ids: Vec<u32>,
    text: String,
    text_ids: Vec<u32>,
    metadata: BTreeMap<String, Entry>,
    tensors: BTreeMap<String, ExpectedTensor>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    value: serde_json::Value,
}

#[derive(Deserialize)]
struct ExpectedTensor {
    dims: Vec<u64>,
    sha256: String,
}

fn expected() -> Expected {
    serde_json::from_slice(&beside("nano-e2b.expected.json")).unwrap()
}

/// Values of a tensor beside the checkpoint.
fn values(name: &str) -> Vec<f32> {
    let bytes = beside("nano-e2b.expected.safetensors");
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut values = vec![0.0; file.tensor(name).unwrap().data().len() / 4];
    Format::F32.decode(file.tensor(name).unwrap().data(), &mut values).unwrap();
    values
}

fn exact() -> ConvertOptions {
    ConvertOptions { mix: Mix::F32, ..ConvertOptions::default() }
}

/// Every tensor of the decoder and of both towers, bit for bit.
#[test]
fn tensors_are_those_of_llama_cpp() {
    let model = open(convert(Path::new(FOLDER), &exact()).unwrap());
    let expected = expected().tensors;
    let names: BTreeSet<String> = model.tensors().map(|tensor| tensor.name.to_owned()).collect();
    assert_eq!(names, expected.keys().cloned().collect());
    for (name, expected) in expected {
        let tensor = model.tensor(&name).unwrap();
        assert_eq!((tensor.shape.dims(), tensor.format), (&expected.dims[..], Format::F32), "{name}");
        let bytes = pollster::block_on(model.read(tensor.range())).unwrap();
        if name.ends_with("per_dim_scale.weight") {
            // The one that is computed; a last bit depends on whose logarithm it is.
            let mut ours = vec![0.0; bytes.len() / 4];
            Format::F32.decode(&bytes, &mut ours).unwrap();
            for (ours, theirs) in ours.iter().zip(values(&name)) {
                assert!((ours - theirs).abs() <= 2.0 * f32::EPSILON * theirs, "{name}: {ours} {theirs}");
            }
        } else {
            let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(digest, expected.sha256, "{name}");
        }
    }
}

/// Every key with its type and value; what we have besides is for towers, or helps readers that know no texts.
#[test]
fn metadata_is_that_of_llama_cpp() {
    let model = open(convert(Path::new(FOLDER), &exact()).unwrap());
    let ours: BTreeMap<&str, Value<'_>> = model.header().entries().collect();
    let expected = expected().metadata;
    for (key, Entry { kind, value }) in &expected {
        let found = ours.get(key.as_str()).unwrap_or_else(|| panic!("{key} is missing"));
        assert_eq!((&type_name(found), &as_json(found)), (kind, value), "{key}");
    }
    let more: Vec<&str> = ours
        .into_keys()
        .filter(|key| !expected.contains_key(*key) && !key.contains(".vision.") && !key.contains(".audio."))
        .collect();
    assert_eq!(
        more,
        [
            "general.name",
            "general.quantization_version",
            "general.type",
            "tokenizer.ggml.eos_token_ids",
            "tokenizer.ggml.eot_token_id"
        ]
    );
    let metadata = model.metadata();
    for (key, value) in [
        ("vision.block_count", 1),
        ("vision.embedding_length", 32),
        ("vision.attention.head_count", 2),
        ("vision.feed_forward_length", 48),
        ("vision.patch_size", 4),
        ("vision.num_channels", 3),
        ("vision.projector.scale_factor", 3),
        ("audio.block_count", 1),
        ("audio.embedding_length", 16),
        ("audio.feed_forward_length", 64),
        ("audio.attention.head_count", 2),
        ("audio.conv_kernel_size", 5),
    ] {
        assert_eq!(metadata.section("gemma4").u32(key).unwrap(), value, "{key}");
    }
}

fn type_name(value: &Value<'_>) -> String {
    let name = |kind: ValueType| match kind {
        ValueType::U32 => "UINT32",
        ValueType::I32 => "INT32",
        ValueType::F32 => "FLOAT32",
        ValueType::Bool => "BOOL",
        ValueType::String => "STRING",
        ValueType::Array => "ARRAY",
        _ => "another",
    };
    match value {
        Value::Array(array) => format!("ARRAY/{}", name(array.element_type())),
        other => name(other.value_type()).to_owned(),
    }
}

fn as_json(value: &Value<'_>) -> serde_json::Value {
    let text = |bytes: &[u8]| json!(std::str::from_utf8(bytes).unwrap());
    match *value {
        Value::U32(value) => json!(value),
        Value::I32(value) => json!(value),
        Value::F32(value) => json!(f64::from(value)),
        Value::Bool(value) => json!(value),
        Value::String(bytes) => text(bytes),
        Value::Array(Array::Strings(strings)) => strings.iter().map(text).collect(),
        Value::Array(array) => array.iter().map(|value| as_json(&value)).collect(),
        ref other => panic!("{other:?}"),
    }
}

fn logits(file: Vec<u8>, ids: &[u32]) -> Vec<f32> {
    let model = Rc::new(open(file));
    let graph = text(&model, &Config::read(&model).unwrap(), Outputs::All).unwrap();
    let weights = Weights::new(model, 1 << 30);
    let mut caches = Caches::new(&graph, CacheFormat::F32);
    pollster::block_on(run(&graph, &weights, &mut caches, &Step::tokens(ids), &mut ())).unwrap().into_values()
}

fn distance(ours: &[f32], theirs: &[f32]) -> f32 {
    assert_eq!(ours.len(), theirs.len());
    ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn logits_are_those_of_hugging_face() {
    let (ids, expected) = (expected().ids, values("logits"));
    for (mix, bound) in [(Mix::F32, 5e-4), (Mix::F16, 0.05), (Mix::BF16, 5e-4), (Mix::Q8_0, 0.5)] {
        let options = ConvertOptions { mix, ..ConvertOptions::default() };
        let file = convert(Path::new(FOLDER), &options).unwrap();
        let found = distance(&logits(file, &ids), &expected);
        // Matrices of the decoder are BF16 in the checkpoint, so BF16 loses nothing.
        assert!(found <= bound, "{mix}: {found}; expected at most {bound}");
    }
}

#[test]
fn the_tokenizer_is_read() {
    let model = open(convert(Path::new(FOLDER), &exact()).unwrap());
    let tokenizer = Tokenizer::from_gguf(model.header()).unwrap();
    assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.padding()), (2, Some(1), Some(0)));
    for end in ["<eos>", "<turn|>", "<|tool_response>"] {
        assert!(tokenizer.is_end(tokenizer.token_id(end).unwrap()), "{end}");
    }
    let Expected { text, text_ids, .. } = expected();
    assert_eq!(tokenizer.encode(&text, EncodeOptions::default()), text_ids);
}

/// In one file or in several, the weights are the same.
#[test]
fn files_of_weights_do_not_matter() {
    let one = Checkpoint::new();
    let options = ConvertOptions { name: Some("the same".to_owned()), ..ConvertOptions::default() };
    assert!(convert(one.path(), &options).unwrap() == convert(Path::new(FOLDER), &options).unwrap());
}
