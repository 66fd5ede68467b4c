//! Which models are accepted, how they are described, and what is said of those that are not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use rullama_gemma::{Config, GemmaError, KvSource, Outputs, Warning, text, warnings};
use rullama_gguf::{Format, MemorySource, Model, Writer};
use rullama_graph::{Op, Rows, StepExtent};

fn open(bytes: Vec<u8>) -> Model {
    pollster::block_on(Model::open(Box::new(MemorySource::new(bytes)))).unwrap()
}

fn testdata(name: &str) -> Model {
    let path = format!("{}/../../testdata/{name}.gguf", env!("CARGO_MANIFEST_DIR"));
    open(std::fs::read(path).unwrap())
}

/// A model's file written again, with some entries and tensors changed, added or left out.
#[derive(Default)]
struct Change<'a> {
    remove: &'a [&'a str],
    set: Option<&'a dyn Fn(&mut Writer)>,
    reshape: &'a [(&'a str, &'a [u64])],
    rename: &'a [(&'a str, &'a str)],
}

fn changed(model: &Model, change: &Change<'_>) -> Model {
    let mut writer = Writer::new();
    if let Some(set) = change.set {
        set(&mut writer);
    }
    for (key, value) in model.header().entries() {
        if !change.remove.contains(&key) {
            // What was set before stays.
            let _ = writer.set(key, value);
        }
    }
    let mut data = Vec::new();
    for tensor in model.tensors().filter(|tensor| !change.remove.contains(&tensor.name)) {
        let name = change.rename.iter().find(|(from, _)| tensor.name.ends_with(from));
        let name = name.map_or(tensor.name.to_owned(), |(from, to)| tensor.name.replace(from, to));
        match change.reshape.iter().find(|(reshaped, _)| *reshaped == tensor.name) {
            Some((_, dims)) => {
                writer.add_tensor(&name, dims, Format::F32).unwrap();
                data.push(vec![0; 4 * dims.iter().product::<u64>() as usize]);
            }
            None => {
                writer.add_tensor(&name, tensor.shape.dims(), tensor.format).unwrap();
                data.push(pollster::block_on(model.read(tensor.range())).unwrap());
            }
        }
    }
    let mut body = writer.begin(Vec::new()).unwrap();
    data.iter().for_each(|bytes| body.write_tensor(bytes).unwrap());
    open(body.finish().unwrap())
}

fn describe(model: &Model) -> Result<rullama_graph::Graph, GemmaError> {
    text(model, &Config::read(model)?, Outputs::Last)
}

#[test]
fn configurations_are_read() {
    let config = Config::read(&testdata("gguf/tiny-e2b-Q4_K_M")).unwrap();
    assert_eq!((config.width, config.vocabulary, config.layers.len()), (256, 2048, 8));
    assert_eq!((config.per_layer_width, config.soft_cap, config.experts), (Some(256), Some(30.0), None));
    let kv: Vec<KvSource> = config.layers.iter().map(|layer| layer.kv).collect();
    let (own, sliding, global) = (KvSource::Own, KvSource::Donor(2), KvSource::Donor(3));
    assert_eq!(kv, [own, own, own, own, sliding, sliding, sliding, global]);
    assert_eq!(config.last_owner(), 3);
    assert_eq!(config.layers[4].feed_forward_width, 1024);
    assert_eq!((config.layers[3].window, config.layers[3].head_width), (None, 512));
    assert_eq!((config.layers[4].window, config.layers[4].head_width), (Some(32), 256));

    let config = Config::read(&testdata("gguf/tiny-moe-Q4_K_M")).unwrap();
    let experts = config.experts.unwrap();
    assert_eq!((experts.count, experts.used, experts.width), (8, 2, 96));
    let kv_heads: Vec<u32> = config.layers.iter().map(|layer| layer.kv_heads).collect();
    assert_eq!(kv_heads, [2, 2, 1, 2, 2, 1]);
}

/// The whole description of the smallest model, for people to read in a review.
/// What is written is what was read, key for key.
#[test]
fn configurations_are_written_as_they_were_read() {
    for name in
        ["micro-e2b-F16", "micro-e2b-Q8_0-ollama", "tiny-e2b-Q4_K_M", "tiny-moe-Q4_K_M", "tiny-dense-Q4_K_M"]
    {
        let model = testdata(&format!("gguf/{name}"));
        let config = Config::read(&model).unwrap();
        let keys: Vec<&str> =
            model.header().entries().map(|(key, _)| key).filter(|key| key.starts_with("gemma4.")).collect();
        let set = |writer: &mut Writer| config.write(writer).unwrap();
        let written = changed(&model, &Change { remove: &keys, set: Some(&set), ..Change::default() });
        assert_eq!(Config::read(&written).unwrap(), config, "{name}");
        for key in keys {
            assert_eq!(written.header().get(key), model.header().get(key), "{name}: {key}");
        }
    }
}

#[test]
fn descriptions_are_as_recorded() {
    for name in ["micro-e2b-Q8_0", "tiny-moe-Q4_K_M"] {
        let found = describe(&testdata(&format!("gguf/{name}"))).unwrap().to_string();
        let path = format!("{}/tests/graphs/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == expected, "the graph of {name} is not the one in {path}; it now reads:\n{found}");
    }
}

#[test]
fn one_row_is_enough_after_the_last_keys_and_values() {
    let model = testdata("gguf/tiny-e2b-Q4_K_M");
    let config = Config::read(&model).unwrap();
    let last = text(&model, &config, Outputs::Last).unwrap();
    let stored = last.nodes().iter().rposition(|node| matches!(node.op, Op::StoreKv { .. })).unwrap();
    assert!(last.nodes()[stored + 1..].iter().all(|node| node.shape.rows == Rows::Last));
    let all = text(&model, &config, Outputs::All).unwrap();
    assert_eq!(last.caches(), all.caches(), "both can work on one cache");
    let step = &StepExtent::tokens(512, 512);
    let (few, many) = (last.total_cost(step).flops, all.total_cost(step).flops);
    assert!(3 * few < 2 * many, "{few} of {many} operations");
}

#[test]
fn both_converters_names_are_known() {
    let moe = testdata("gguf/tiny-moe-Q4_K_M");
    let expected = describe(&moe).unwrap();
    let rename: &[(&str, &str)] = &[
        (".post_attention_norm.weight", ".attn_post_norm.weight"),
        (".post_ffw_norm.weight", ".ffn_post_norm.weight"),
        (".pre_ffw_norm_2.weight", ".ffn_pre_norm_2.weight"),
        (".post_ffw_norm_1.weight", ".ffn_post_norm_1.weight"),
        (".post_ffw_norm_2.weight", ".ffn_post_norm_2.weight"),
        (".ffn_down_exps.scale", ".ffn_gate_inp.per_expert_scale"),
        (".layer_output_scale.weight", ".layer_scalar"),
    ];
    let aliased = describe(&changed(&moe, &Change { rename, ..Change::default() })).unwrap().to_string();
    assert_ne!(aliased, expected.to_string());
    let back = rename.iter().fold(aliased, |text, (name, alias)| text.replace(alias, name));
    assert_eq!(back, expected.to_string(), "nothing but names differs");
}

#[test]
fn tensors_of_borrowing_layers_are_ignored() {
    let ollama = describe(&testdata("gguf/micro-e2b-Q8_0-ollama")).unwrap();
    let llama = describe(&testdata("gguf/micro-e2b-Q8_0")).unwrap();
    assert_eq!(ollama.to_string(), llama.to_string());
}

#[test]
fn a_file_without_rotary_divisors_turns_a_quarter() {
    let model = changed(
        &testdata("gguf/tiny-dense-Q4_K_M"),
        &Change { remove: &["rope_freqs.weight"], ..Change::default() },
    );
    let graph = describe(&model).unwrap().to_string();
    assert!(graph.contains("base 1000000 head 128 pairs 16\n"), "{graph}");
}

#[test]
fn what_is_no_gemma_4_is_refused() {
    assert_eq!(describe(&testdata("tokenizer/gemma4-vocab")).unwrap_err(), GemmaError::NoWeights);
    let micro = testdata("gguf/micro-e2b-Q8_0");
    let set = |set: &dyn Fn(&mut Writer)| {
        describe(&changed(&micro, &Change { set: Some(set), ..Change::default() })).unwrap_err()
    };
    let other = set(&|writer| writer.set("general.architecture", "llama").unwrap());
    assert_eq!(other, GemmaError::Architecture { found: "llama".into() });

    let without = |name: &str| {
        describe(&changed(&micro, &Change { remove: &[name], ..Change::default() })).unwrap_err()
    };
    for name in
        ["token_embd.weight", "blk.0.attn_k.weight", "blk.4.ffn_down.weight", "per_layer_proj_norm.weight"]
    {
        assert_eq!(without(name), GemmaError::MissingTensor { name: name.to_owned() });
    }
    for key in ["gemma4.block_count", "gemma4.attention.sliding_window_pattern", "gemma4.rope.freq_base"] {
        assert!(matches!(without(key), GemmaError::Metadata(_)), "{key}");
    }
}

#[test]
fn numbers_that_no_model_has_are_refused() {
    let micro = testdata("gguf/micro-e2b-Q8_0");
    let refuse = |set: &dyn Fn(&mut Writer)| {
        describe(&changed(&micro, &Change { set: Some(set), ..Change::default() })).unwrap_err()
    };
    let number = |key: &'static str, value: u32| refuse(&move |writer| writer.set(key, value).unwrap());
    for (key, value) in [
        ("gemma4.block_count", 0),
        ("gemma4.block_count", 2000),
        ("gemma4.embedding_length", 0),
        ("gemma4.embedding_length", 1 << 20),
        ("gemma4.attention.head_count", 0),
        ("gemma4.attention.head_count_kv", 0),
        ("gemma4.feed_forward_length", 0),
        ("gemma4.attention.sliding_window", 0),
        ("gemma4.attention.key_length", 0),
        ("gemma4.attention.shared_kv_layers", 5),
        ("gemma4.context_length", 0),
    ] {
        assert!(matches!(number(key, value), GemmaError::OutOfRange { .. }), "{key} = {value}");
    }
    for eps in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let error = refuse(&|writer| writer.set("gemma4.attention.layer_norm_rms_epsilon", eps).unwrap());
        assert!(matches!(error, GemmaError::OutOfRange { .. }), "{eps}");
    }
    assert!(matches!(number("gemma4.attention.value_length", 32), GemmaError::HeadWidths { .. }));
    assert!(matches!(number("gemma4.attention.head_count_kv", 3), GemmaError::HeadCounts { .. }));
    let wide = refuse(&|writer| {
        // Wraps around to a small number in 32 bits.
        writer.set("gemma4.attention.head_count", 524_289u32).unwrap();
        writer.set("gemma4.attention.head_count_kv", 1u32).unwrap();
        writer.set("gemma4.attention.key_length_swa", 8192u32).unwrap();
        writer.set("gemma4.attention.value_length_swa", 8192u32).unwrap();
    });
    assert!(matches!(wide, GemmaError::TooWide { heads: 524_289, .. }), "{wide}");
    let pattern = refuse(&|writer| {
        writer.set("gemma4.attention.sliding_window_pattern", [true; 4].as_slice()).unwrap();
    });
    assert!(matches!(pattern, GemmaError::Metadata(_)));
    let no_donor = refuse(&|writer| {
        let pattern = [false, false, false, false, true];
        writer.set("gemma4.attention.sliding_window_pattern", pattern.as_slice()).unwrap();
        writer.set("gemma4.attention.shared_kv_layers", 1u32).unwrap();
    });
    assert_eq!(no_donor, GemmaError::NoDonor { layer: 4, kind: "sliding" });
    let vocabulary = refuse(&|writer| writer.set("tokenizer.ggml.tokens", ["a"].as_slice()).unwrap());
    assert!(matches!(vocabulary, GemmaError::OutOfRange { key: "tokenizer.ggml.tokens", .. }));
}

#[test]
fn tensors_of_the_wrong_shape_are_refused() {
    let micro = testdata("gguf/micro-e2b-Q8_0");
    for name in
        ["blk.0.attn_q.weight", "blk.1.attn_norm.weight", "per_layer_model_proj.weight", "blk.2.proj.weight"]
    {
        let model = changed(&micro, &Change { reshape: &[(name, &[64, 3])], ..Change::default() });
        let error = describe(&model).unwrap_err();
        assert!(
            matches!(&error, GemmaError::WrongShape { name: found, .. } if found == name),
            "{name}: {error}"
        );
    }
    let swapped = changed(
        &testdata("gguf/tiny-moe-Q4_K_M"),
        &Change { reshape: &[("blk.0.ffn_gate_up_exps.weight", &[256, 8, 192])], ..Change::default() },
    );
    assert!(matches!(describe(&swapped), Err(GemmaError::WrongShape { .. })));
}

/// Every file that is known to be a good one, of each converter, with towers and without.
#[test]
fn good_files_have_no_warnings() {
    let names = [
        "testdata/gguf/micro-e2b-F16",
        "testdata/gguf/micro-e2b-Q4_0",
        "testdata/gguf/micro-e2b-Q8_0",
        "testdata/gguf/micro-e2b-Q8_0-ollama",
        "testdata/gguf/tiny-dense-Q4_K_M",
        "testdata/gguf/tiny-e2b-Q4_K_M",
        "testdata/gguf/tiny-moe-Q4_K_M",
        "models/demo",
    ];
    for name in names {
        let model = testdata(&format!("../{name}"));
        describe(&model).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(warnings(&model, &Config::read(&model).unwrap()), [], "{name}");
    }
}

/// A tensor that no operation would read, or that is gone from some layers only, gives another model than the file's.
#[test]
fn tensors_without_a_place_are_refused() {
    let refuse = |name: &str, change: &Change<'_>| {
        describe(&changed(&testdata(&format!("gguf/{name}")), change)).unwrap_err()
    };
    let unexpected = |name: &str| GemmaError::UnexpectedTensor { name: name.to_owned() };
    let missing = |name: &str| GemmaError::MissingTensor { name: name.to_owned() };

    // A sliding layer needs its values; a global one may go without, but not with a tensor that is left over.
    let rename: &[(&str, &str)] = &[("blk.0.attn_v.weight", "blk.0.attn_value.weight")];
    let renamed = Change { rename, ..Change::default() };
    assert_eq!(refuse("micro-e2b-Q8_0", &renamed), missing("blk.0.attn_v.weight"));
    let rename: &[(&str, &str)] = &[("attn_v.weight", "attn_value.weight")];
    assert_eq!(
        refuse("tiny-e2b-Q4_K_M", &Change { rename, ..Change::default() }),
        missing("blk.0.attn_v.weight")
    );
    let rename: &[(&str, &str)] = &[("blk.3.attn_v.weight", "blk.3.attn_value.weight")];
    assert_eq!(
        refuse("tiny-e2b-Q4_K_M", &Change { rename, ..Change::default() }),
        unexpected("blk.3.attn_value.weight")
    );
    let rename: &[(&str, &str)] = &[("blk.0.layer_output_scale.weight", "blk.0.layer_scale.weight")];
    assert_eq!(
        refuse("micro-e2b-Q8_0", &Change { rename, ..Change::default() }),
        missing("blk.0.layer_output_scale.weight")
    );
    let rename: &[(&str, &str)] = &[(".layer_output_scale.weight", ".layer_scale.weight")];
    assert_eq!(
        refuse("micro-e2b-Q8_0", &Change { rename, ..Change::default() }),
        unexpected("blk.0.layer_scale.weight")
    );

    // What the metadata and the tensors say of experts, of layers and of per-layer embeddings must agree.
    let set = |key: &'static str, value: u32| move |writer: &mut Writer| writer.set(key, value).unwrap();
    let no_experts = set("gemma4.expert_count", 0);
    let change = Change { set: Some(&no_experts), ..Change::default() };
    assert_eq!(refuse("tiny-moe-Q4_K_M", &change).code(), "model.unexpected_tensor");
    let experts = |writer: &mut Writer| {
        ["gemma4.expert_count", "gemma4.expert_used_count", "gemma4.expert_feed_forward_length"]
            .iter()
            .for_each(|key| writer.set(key, 8u32).unwrap());
    };
    let change = Change { set: Some(&experts), ..Change::default() };
    assert_eq!(refuse("tiny-dense-Q4_K_M", &change), missing("blk.0.ffn_gate_inp.weight"));
    let no_embeddings = set("gemma4.embedding_length_per_layer_input", 0);
    let change = Change { set: Some(&no_embeddings), ..Change::default() };
    assert_eq!(refuse("micro-e2b-Q8_0", &change).code(), "model.unexpected_tensor");
    let rename: &[(&str, &str)] = &[("blk.2.ffn_gate_inp.weight", "blk.2.ffn_router.weight")];
    assert_eq!(
        refuse("tiny-moe-Q4_K_M", &Change { rename, ..Change::default() }),
        missing("blk.2.ffn_gate_inp.weight")
    );
}

/// Published models have a soft cap. A file without the key gets none, with a warning; a cap of zero says that there is none.
#[test]
fn a_missing_soft_cap_is_said() {
    let original = testdata("gguf/tiny-dense-Q4_K_M");
    assert!(warnings(&original, &Config::read(&original).unwrap()).is_empty());
    let key = "gemma4.final_logit_softcapping";
    let without = changed(&original, &Change { remove: &[key], ..Change::default() });
    let config = Config::read(&without).unwrap();
    assert_eq!(config.soft_cap, None);
    let found = warnings(&without, &config);
    let codes: Vec<&str> = found.iter().map(Warning::code).collect();
    assert_eq!(codes, ["model.assumed_key"]);
    assert!(
        found[0].to_string().starts_with("key `gemma4.final_logit_softcapping` is missing"),
        "{}",
        found[0]
    );
    let set = |writer: &mut Writer| writer.set(key, 0.0f32).unwrap();
    let zero = changed(&original, &Change { set: Some(&set), ..Change::default() });
    assert!(warnings(&zero, &Config::read(&zero).unwrap()).is_empty());
}

/// What is merely unused, or can be done without, is said.
#[test]
fn what_is_not_as_expected_is_said() {
    let rename: &[(&str, &str)] = &[("rope_freqs.weight", "rope_frequencies.weight")];
    let set = |writer: &mut Writer| writer.set("gemma4.attention.temperature", 2.0f32).unwrap();
    let layers: Vec<String> = (0..6).map(|layer| format!("blk.{layer}.layer_output_scale.weight")).collect();
    let remove: Vec<&str> = layers.iter().map(String::as_str).collect();
    let change = Change { rename, set: Some(&set), remove: &remove, ..Change::default() };
    let model = changed(&testdata("gguf/tiny-dense-Q4_K_M"), &change);
    describe(&model).unwrap();
    let found = warnings(&model, &Config::read(&model).unwrap());
    let codes: Vec<&str> = found.iter().map(Warning::code).collect();
    let expected =
        ["model.assumed_tensor", "model.assumed_tensor", "model.unused_tensor", "model.unused_key"];
    assert_eq!(codes, expected, "{found:?}");
    let text: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(text[0].starts_with("tensor `rope_freqs.weight` is missing"), "{text:?}");
    assert!(
        text[2].contains("`rope_frequencies.weight`") && text[3].contains("`gemma4.attention.temperature`")
    );
}
