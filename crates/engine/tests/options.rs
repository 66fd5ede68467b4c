//! Options as requests and models write them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use rullama_engine::{GenerateOptions, OptionError, OptionRange, OptionWarning, SamplingOptions};
use serde_json::{Map, Value, json};

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn read(request: Value) -> Result<GenerateOptions, OptionError> {
    let (options, warnings) = GenerateOptions::from_layers(&Map::new(), &map(request))?;
    assert_eq!(warnings, []);
    Ok(options)
}

#[test]
fn defaults_are_those_of_ollama_for_gemma_4() {
    let expected = SamplingOptions {
        temperature: 1.0,
        logit_bias: BTreeMap::new(),
        repeat_last_n: 64,
        repeat_penalty: 1.0,
        frequency_penalty: 0.0,
        presence_penalty: 0.0,
        top_k: 64,
        typical_p: 1.0,
        top_p: 0.95,
        min_p: 0.0,
        seed: None,
        top_logprobs: None,
    };
    assert_eq!(SamplingOptions::default(), expected);
    assert_eq!(read(json!({})).unwrap(), GenerateOptions::default());
    assert_eq!(GenerateOptions::default().sampling, expected);
    assert_eq!(SamplingOptions::GREEDY, SamplingOptions { temperature: 0.0, ..expected });
    assert_eq!(SamplingOptions::GREEDY.validate(), Ok(()));
}

#[test]
fn every_option_is_read() {
    let options = read(json!({
        "temperature": 0.5, "top_k": 10, "top_p": 0.5, "min_p": 0.25, "typical_p": 0.75,
        "repeat_last_n": -1, "repeat_penalty": 1.5, "presence_penalty": 0.5, "frequency_penalty": -0.5,
        "seed": 18_446_744_073_709_551_615_u64, "logit_bias": {"7": -2.5, "9": false}, "top_logprobs": 3,
        "num_predict": 100, "stop": ["a", "b"], "ignore_eos": true, "num_ctx": 8192,
    }))
    .unwrap();
    let sampling = SamplingOptions {
        temperature: 0.5,
        logit_bias: BTreeMap::from([(7, -2.5), (9, f32::NEG_INFINITY)]),
        repeat_last_n: -1,
        repeat_penalty: 1.5,
        frequency_penalty: -0.5,
        presence_penalty: 0.5,
        top_k: 10,
        typical_p: 0.75,
        top_p: 0.5,
        min_p: 0.25,
        seed: Some(u64::MAX),
        top_logprobs: Some(3),
    };
    let expected = GenerateOptions {
        sampling,
        max_tokens: Some(100),
        stop: vec!["a".into(), "b".into()],
        ignore_end: true,
        context: Some(8192),
    };
    assert_eq!(options, expected);
}

#[test]
fn the_request_overrules_the_model_and_the_model_the_defaults() {
    let model = map(json!({"temperature": 0.5, "top_k": 20, "stop": ["x"], "seed": 1}));
    let request = map(json!({"temperature": 0.25, "stop": ["y", "z"], "seed": null}));
    let (options, _) = GenerateOptions::from_layers(&model, &request).unwrap();
    assert_eq!(options.sampling.temperature, 0.25);
    assert_eq!(options.sampling.top_k, 20);
    assert_eq!(options.sampling.top_p, 0.95);
    assert_eq!(options.sampling.seed, Some(1), "null is as good as nothing");
    assert_eq!(options.stop, ["y", "z"]);
}

#[test]
fn numbers_that_mean_nothing_special_or_no_limit() {
    let options = read(json!({"seed": -1, "num_predict": -1, "top_k": -1})).unwrap();
    assert_eq!(
        options,
        GenerateOptions {
            sampling: SamplingOptions { top_k: 0, ..SamplingOptions::default() },
            ..GenerateOptions::default()
        }
    );
    assert_eq!(read(json!({"num_predict": -2})).unwrap(), GenerateOptions::default());
    // As in llama.cpp, only -1 is random; other negative seeds are seeds.
    assert_eq!(read(json!({"seed": -5})).unwrap().sampling.seed, Some(u64::MAX - 4));
    assert_eq!(read(json!({"seed": i64::MIN})).unwrap().sampling.seed, Some(1 << 63));
    // Whole numbers may come as floats, and a single stop string without its list.
    let options =
        read(json!({"top_k": 40.0, "seed": 7.0, "max_tokens": 0, "stop": "\n", "temperature": 1})).unwrap();
    assert_eq!(options.sampling.top_k, 40);
    assert_eq!(options.sampling.seed, Some(7));
    assert_eq!(options.max_tokens, Some(0));
    assert_eq!(options.stop, ["\n"]);
}

#[test]
fn what_is_passed_over_is_reported_once() {
    let model = map(json!({"mirostat": 1, "num_gpu": 99}));
    let request = map(json!({"mirostat": 2, "Temperature": 0.1, "num_thread": 4, "top_k": 3, "tfs_z": null}));
    let (options, warnings) = GenerateOptions::from_layers(&model, &request).unwrap();
    assert_eq!(options.sampling.top_k, 3);
    assert_eq!(
        warnings,
        [
            OptionWarning::Unknown { option: "mirostat".into() },
            OptionWarning::NotUsed { option: "num_gpu".into() },
            OptionWarning::Unknown { option: "Temperature".into() },
            OptionWarning::NotUsed { option: "num_thread".into() },
        ]
    );
    assert_eq!(warnings[0].to_string(), "option `mirostat` does not exist; it is ignored");
    assert_eq!(warnings[1].option(), "num_gpu");
}

#[test]
fn wrong_types_are_errors_that_name_the_option() {
    for (request, message) in [
        (json!({"temperature": "hot"}), "option `temperature` is a string (expected a number)"),
        (json!({"top_k": [1]}), "option `top_k` is a list (expected a whole number)"),
        (json!({"seed": true}), "option `seed` is true or false (expected a whole number)"),
        (json!({"stop": 3}), "option `stop` is a number (expected a list of strings)"),
        (json!({"stop": ["a", 3]}), "option `stop[1]` is a number (expected a string)"),
        (json!({"ignore_eos": 1}), "option `ignore_eos` is a number (expected true or false)"),
        (
            json!({"logit_bias": []}),
            "option `logit_bias` is a list (expected an object from token ids to numbers)",
        ),
        (
            json!({"logit_bias": {"1": true}}),
            "option `logit_bias[1]` is true or false (expected a number or false)",
        ),
    ] {
        let error = read(request).unwrap_err();
        assert!(matches!(error, OptionError::WrongType { .. }), "{error}");
        assert_eq!(error.code(), "option.wrong_type");
        assert_eq!(error.to_string(), message);
    }
}

/// Each row: a request, what its error says was found, and what was expected.
#[test]
fn numbers_out_of_range_are_errors_that_name_the_option() {
    let from = |least: i64, most: u64| format!("a whole number from {least} to {most}");
    let (u32_most, finite) = (u64::from(u32::MAX), "a finite number".to_owned());
    for (option, value, expected) in [
        ("temperature", json!(1e300), format!("{finite}, 0 or above")),
        ("temperature", json!(-0.5), format!("{finite}, 0 or above")),
        ("top_p", json!(2), "a number from 0 to 1".to_owned()),
        ("min_p", json!(-0.1), "a number from 0 to 1".to_owned()),
        ("typical_p", json!(1.5), "a number from 0 to 1".to_owned()),
        ("repeat_penalty", json!(0), format!("{finite} above 0")),
        ("repeat_penalty", json!(-1.5), format!("{finite} above 0")),
        ("frequency_penalty", json!(1e300), finite.clone()),
        ("presence_penalty", json!(-1e300), finite),
        ("top_k", json!(1.5), from(-1, u32_most)),
        ("top_k", json!(1e30), from(-1, u32_most)),
        ("top_k", json!(-2), from(-1, u32_most)),
        ("repeat_last_n", json!(-2), from(-1, 2_147_483_647)),
        ("seed", json!(1e30), from(i64::MIN, u64::MAX)),
        ("seed", json!(0.5), from(i64::MIN, u64::MAX)),
        ("num_predict", json!(-3), from(-2, u32_most)),
        ("max_tokens", json!(1_u64 << 32), from(-2, u32_most)),
        ("num_ctx", json!(-5), from(1, u32_most)),
        ("num_ctx", json!(0), from(1, u32_most)),
        ("top_logprobs", json!(21), from(0, 20)),
    ] {
        let error = read(json!({ option: value })).unwrap_err();
        assert_eq!(error.code(), "option.out_of_range", "{error}");
        assert_eq!(error.to_string(), format!("option `{option}` is {value} (expected {expected})"));
    }
    for (bias, message) in [
        (json!({"x": 1}), "option `logit_bias` is the id `x` (expected a whole number from 0 to 4294967295)"),
        (json!({"7": 1e300}), "option `logit_bias[7]` is 1e+300 (expected a finite number)"),
    ] {
        assert_eq!(read(json!({ "logit_bias": bias })).unwrap_err().to_string(), message);
    }
}

/// What programs set without JSON is checked by the same table, infinities and NaN included.
#[test]
fn values_set_in_a_program_are_checked_too() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let off = SamplingOptions::default;
        for (name, options) in [
            ("temperature", SamplingOptions { temperature: value, ..off() }),
            ("top_p", SamplingOptions { top_p: value, ..off() }),
            ("min_p", SamplingOptions { min_p: value, ..off() }),
            ("typical_p", SamplingOptions { typical_p: value, ..off() }),
            ("repeat_penalty", SamplingOptions { repeat_penalty: value, ..off() }),
            ("frequency_penalty", SamplingOptions { frequency_penalty: value, ..off() }),
            ("presence_penalty", SamplingOptions { presence_penalty: value, ..off() }),
        ] {
            let error = options.validate().unwrap_err().to_string();
            assert!(error.starts_with(&format!("option `{name}` is {value} (expected a ")), "{error}");
        }
    }
    let error = SamplingOptions { temperature: -1.0, ..SamplingOptions::default() }.validate().unwrap_err();
    assert_eq!(error.to_string(), "option `temperature` is -1 (expected a finite number, 0 or above)");
}

/// JavaScript checks options before they reach the engine, by the same ranges.
#[test]
fn javascript_has_the_same_table() {
    let mut lines = String::new();
    for (name, range) in OptionRange::ALL {
        let (whole, least, most) = match range {
            OptionRange::Whole { least, most } => (true, least.to_string(), most.to_string()),
            OptionRange::Number { least, most } => (false, format!("{least:?}"), format!("{most:?}")),
            OptionRange::AboveZero => (false, "Number.MIN_VALUE".to_owned(), format!("{:?}", f32::MAX)),
            _ => unreachable!("no other kind of range"),
        };
        lines +=
            &format!("  {name}: {{ whole: {whole}, least: {least}, most: {most}, words: \"{range}\" }},\n");
    }
    let table = include_str!("../../../packages/npm/src/ranges.ts");
    assert!(
        table.contains(&format!("= {{\n{lines}}}")),
        "packages/npm/src/ranges.ts should have these lines:\n{lines}"
    );
}

#[test]
fn a_layer_that_fails_changes_nothing() {
    let mut options = GenerateOptions::default();
    options.apply(&map(json!({"top_k": 3, "top_p": 7}))).unwrap_err();
    assert_eq!(options, GenerateOptions::default());
}

#[test]
fn json_comes_back_as_it_went() {
    let options = SamplingOptions {
        temperature: 0.3,
        logit_bias: BTreeMap::from([(3, 1.5), (262_143, f32::NEG_INFINITY)]),
        seed: Some(u64::MAX),
        ..SamplingOptions::default()
    };
    let text = serde_json::to_string(&options).unwrap();
    assert!(text.contains(r#""logit_bias":{"3":1.5,"262143":false}"#), "{text}");
    assert_eq!(serde_json::from_str::<SamplingOptions>(&text).unwrap(), options);
    let value = serde_json::to_value(SamplingOptions::default()).unwrap();
    assert_eq!(serde_json::from_value::<SamplingOptions>(value).unwrap(), SamplingOptions::default());
}

/// Where there is nobody to warn, a name that does not exist is an error.
#[test]
fn json_with_unknown_names_is_an_error() {
    let error = serde_json::from_str::<SamplingOptions>(r#"{"temprature": 1}"#).unwrap_err();
    assert_eq!(error.to_string(), "option `temprature` does not exist");
    let error = serde_json::from_str::<GenerateOptions>(r#"{"top_q": 1, "num_predict": 3}"#).unwrap_err();
    assert_eq!(error.to_string(), "option `top_q` does not exist");
    let options: GenerateOptions = serde_json::from_str(r#"{"num_batch": 512, "num_predict": 3}"#).unwrap();
    assert_eq!(options.max_tokens, Some(3));
    assert_eq!(OptionError::Unknown { option: "x".into() }.code(), "option.unknown");
}
