//! Every way in which a checkpoint can be wrong, by name.

use std::{fs, io};

use rullama_convert::{ConvertError, ConvertOptions, plan};
use rullama_gguf::WriteError;
use safetensors::Dtype;
use serde_json::{Value, json};

use crate::checkpoint::Checkpoint;

const Q: &str = "model.language_model.layers.1.self_attn.q_proj.weight";

/// The code and text of what is wrong with a checkpoint.
fn refused(checkpoint: &Checkpoint) -> (&'static str, String) {
    let error = checkpoint.plan().unwrap_err();
    (error.code(), error.to_string())
}

fn config(change: impl FnOnce(&mut Value)) -> (&'static str, String) {
    refused(&Checkpoint::new().json("config.json", change))
}

#[test]
fn files_that_are_missing() {
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        let checkpoint = Checkpoint::new();
        fs::remove_file(checkpoint.path().join(name)).unwrap();
        let (code, text) = refused(&checkpoint);
        assert_eq!(code, "convert.file.missing");
        assert!(text.contains(name), "{text}");
    }
    for name in
        ["tokenizer_config.json", "generation_config.json", "chat_template.jinja", "preprocessor_config.json"]
    {
        let checkpoint = Checkpoint::new();
        fs::remove_file(checkpoint.path().join(name)).unwrap();
        checkpoint.plan().unwrap_or_else(|error| panic!("without {name}: {error}"));
    }
}

#[test]
fn files_that_are_something_else() {
    for name in ["config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"] {
        for text in ["", "{", "7", "[[]]"] {
            let checkpoint = Checkpoint::new();
            fs::write(checkpoint.path().join(name), text).unwrap();
            let (code, found) = refused(&checkpoint);
            assert!(
                ["convert.file.invalid", "convert.architecture"].contains(&code),
                "{name} {text}: {found}"
            );
        }
    }
}

#[test]
fn models_of_other_kinds() {
    let (code, text) = config(|config| config["architectures"] = json!(["LlamaForCausalLM"]));
    assert_eq!(code, "convert.architecture");
    assert!(text.contains("LlamaForCausalLM") && text.contains("Gemma4ForConditionalGeneration"), "{text}");
    let (code, text) =
        config(|config| config["quantization_config"] = json!({"quant_method": "bitsandbytes"}));
    assert!(code == "convert.quantised" && text.contains("bitsandbytes"), "{text}");
}

#[test]
fn values_that_no_model_has() {
    for (key, value) in [
        ("num_hidden_layers", json!(0)),
        ("hidden_size", json!(4_000_000_000u32)),
        ("num_attention_heads", json!(0)),
        ("num_key_value_heads", json!(3)),
        ("num_kv_shared_layers", json!(3)),
        ("num_kv_shared_layers", json!(4)),
        ("layer_types", json!(["full_attention"])),
        ("layer_types", json!(["a", "b", "c", "d"])),
        ("rms_norm_eps", json!(0.0)),
        ("hidden_activation", json!("relu")),
        ("sliding_window", json!(0)),
        ("rope_parameters", json!({"full_attention": {"rope_type": "yarn"}})),
        ("rope_parameters", json!({"sliding_attention": {"rope_type": "linear"}})),
        ("rope_parameters", json!({"full_attention": {"partial_rotary_factor": 7}})),
        ("enable_moe_block", json!(true)),
    ] {
        let (code, text) = config(|config| config["text_config"][key] = value.clone());
        assert_eq!(code, "convert.config", "{key} {value}: {text}");
    }
    for (part, key, value) in [
        ("vision_config", "head_dim", json!(5)),
        ("vision_config", "patch_size", json!(0)),
        ("vision_config", "hidden_activation", json!("relu")),
        ("audio_config", "num_attention_heads", json!(0)),
        ("audio_config", "attention_chunk_size", json!(5)),
    ] {
        let (code, text) = config(|config| config[part][key] = value);
        assert_eq!(code, "convert.config", "{part} {key}: {text}");
    }
    let changed =
        Checkpoint::new().json("preprocessor_config.json", |file| file["image_mean"] = json!([0.5]));
    assert_eq!(refused(&changed).0, "convert.config");
}

/// Whatever number stands at whatever key, there is an answer.
#[test]
fn numbers_of_all_sizes() {
    let config: Value =
        serde_json::from_slice(&fs::read(Checkpoint::new().path().join("config.json")).unwrap()).unwrap();
    let checkpoint = Checkpoint::new();
    for part in ["text_config", "vision_config", "audio_config"] {
        for key in config[part].as_object().unwrap().keys() {
            for value in
                [json!(0), json!(1), json!(-1), json!(u32::MAX), json!(1e300), json!(null), json!("x")]
            {
                let mut changed = config.clone();
                changed[part][key] = value;
                fs::write(checkpoint.path().join("config.json"), changed.to_string()).unwrap();
                let _ = checkpoint.plan();
            }
        }
    }
}

#[test]
fn tensors_that_do_not_fit() {
    let missing = Checkpoint::new().tensors(|tensors| assert!(tensors.remove(Q).is_some()));
    assert!(matches!(missing.plan(), Err(ConvertError::MissingTensor { name }) if name == Q));

    let unknown = Checkpoint::new().tensors(|tensors| {
        for name in ["model.language_model.layers.9.self_attn.q_proj.weight", "z"] {
            tensors.insert(name.to_owned(), tensors[Q].clone());
        }
    });
    let (code, text) = refused(&unknown);
    assert_eq!(code, "convert.tensor.unknown");
    assert!(text.contains("layers.9") && text.contains("and one other"), "{text}");

    let wrong = Checkpoint::new().tensors(|tensors| tensors.get_mut(Q).unwrap().1.reverse());
    let (code, text) = refused(&wrong);
    assert_eq!(code, "convert.tensor.shape");
    assert!(text.contains("[32, 64]") && text.contains("[64, 32]"), "{text}");

    let integers = Checkpoint::new().tensors(|tensors| tensors.get_mut(Q).unwrap().0 = Dtype::I16);
    let (code, text) = refused(&integers);
    assert!(code == "convert.tensor.type" && text.contains("I16"), "{text}");
}

/// A checkpoint without towers that still describes them converts as text.
#[test]
fn towers_that_are_missing() {
    let checkpoint =
        Checkpoint::new().tensors(|tensors| tensors.retain(|name, _| name.contains("language_model")));
    assert_eq!(refused(&checkpoint).0, "convert.tensor.missing");
    plan(checkpoint.path(), &ConvertOptions { towers: false, ..ConvertOptions::default() }).unwrap();
}

/// A head of its own, and a decoder alone, named as such checkpoints name it.
#[test]
fn other_checkpoints_that_fit() {
    let head = Checkpoint::new()
        .json("config.json", |config| config["tie_word_embeddings"] = json!(false))
        .tensors(|tensors| {
            let table = tensors["model.language_model.embed_tokens.weight"].clone();
            tensors.insert("lm_head.weight".to_owned(), table);
        });
    let planned = plan(head.path(), &ConvertOptions::default()).unwrap();
    assert!(planned.tensors().iter().any(|tensor| tensor.name() == "output.weight"));

    let alone = Checkpoint::new()
        .json("config.json", |config| {
            let mut text = config["text_config"].take();
            text["architectures"] = json!(["Gemma4ForCausalLM"]);
            *config = text;
        })
        .tensors(|tensors| {
            *tensors = std::mem::take(tensors)
                .into_iter()
                .filter_map(|(name, tensor)| {
                    let rest = name.strip_prefix("model.language_model.")?;
                    Some((format!("model.{rest}"), tensor))
                })
                .collect();
        });
    assert_eq!(plan(alone.path(), &ConvertOptions::default()).unwrap().tensors().len(), 68);
}

#[test]
fn tokenizers_that_do_not_fit() {
    let changed = |change: fn(&mut Value)| refused(&Checkpoint::new().json("tokenizer.json", change));
    for (text, change) in [
        ("both have id 20", (|file| file["model"]["vocab"]["new"] = json!(20)) as fn(&mut Value)),
        ("has id 99999", |file| file["model"]["vocab"]["new"] = json!(99_999)),
        ("has id 99999", |file| file["added_tokens"][0]["id"] = json!(99_999)),
        ("not a merge", |file| file["model"]["merges"] = json!([["a b", "c"]])),
        ("not a merge", |file| file["model"]["merges"] = json!(["abc"])),
        ("not a BPE", |file| file["model"]["type"] = json!("Unigram")),
        ("not a BPE", |file| file["model"]["byte_fallback"] = json!(false)),
    ] {
        let (code, found) = changed(change);
        assert!(code == "convert.tokenizer" && found.contains(text), "{found}");
    }
    // Merges are also written in the older way, and ids may be left out.
    Checkpoint::new().json("tokenizer.json", |file| file["model"]["merges"] = json!(["t h"])).plan().unwrap();
    let gap =
        |file: &mut Value| assert!(file["model"]["vocab"].as_object_mut().unwrap().remove("é").is_some());
    Checkpoint::new().json("tokenizer.json", gap).plan().unwrap();

    let (code, text) = config(|config| config["image_token_id"] = json!(20));
    assert!(code == "convert.tokenizer" && text.contains("<|image|>") && text.contains("<0x03>"), "{text}");
    let (code, _) = config(|config| config["image_token_id"] = json!(99_999));
    assert_eq!(code, "convert.tokenizer");
}

#[test]
fn an_index_that_leads_elsewhere() {
    let checkpoint = Checkpoint::new();
    fs::rename(checkpoint.weights(), checkpoint.path().join("part.safetensors")).unwrap();
    let index = checkpoint.path().join("model.safetensors.index.json");
    for (file, expected) in [
        ("../part.safetensors", "convert.weights"),
        ("/etc/passwd", "convert.weights"),
        ("..", "convert.weights"),
        ("other.safetensors", "convert.file.missing"),
    ] {
        fs::write(&index, json!({"weight_map": {Q: file}}).to_string()).unwrap();
        assert_eq!(refused(&checkpoint).0, expected, "{file}");
    }
    fs::write(&index, json!({"weight_map": {"not there": "part.safetensors"}}).to_string()).unwrap();
    assert_eq!(refused(&checkpoint).0, "convert.tensor.missing");
    fs::write(&index, json!({"weight_map": {Q: "part.safetensors"}}).to_string()).unwrap();
    checkpoint.plan().unwrap();
    fs::copy(checkpoint.path().join("part.safetensors"), checkpoint.path().join("again.safetensors"))
        .unwrap();
    let both = json!({"weight_map": {Q: "part.safetensors", "lm_head.weight": "again.safetensors"}});
    fs::write(&index, both.to_string()).unwrap();
    assert!(matches!(checkpoint.plan(), Err(ConvertError::RepeatedTensor { .. })));
}

/// An output that takes some bytes and then no more.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told() {
    let checkpoint = Checkpoint::new();
    for room in [0, 100, 50_000, 100_000] {
        let plan = plan(checkpoint.path(), &ConvertOptions::default()).unwrap();
        match plan.write(Full(room), |_, _| ()) {
            Err(ConvertError::Write(WriteError::Io(error))) => {
                assert_eq!(error.kind(), io::ErrorKind::StorageFull)
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The checkpoint changes between planning and writing.
#[test]
fn weights_that_go_away_are_told() {
    let checkpoint = Checkpoint::new();
    let plan = plan(checkpoint.path(), &ConvertOptions::default()).unwrap();
    fs::OpenOptions::new().write(true).open(checkpoint.weights()).unwrap().set_len(20_000).unwrap();
    assert!(matches!(plan.write(io::sink(), |_, _| ()), Err(ConvertError::Read { .. })));
}
