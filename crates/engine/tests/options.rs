//! Options as requests and models write them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use rullama_engine::{GenerateOptions, OptionError, OptionWarning, SamplingOptions};
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
    let options = read(json!({"seed": -1, "num_predict": -1, "num_ctx": 0, "top_k": -1})).unwrap();
    assert_eq!(
        options,
        GenerateOptions {
            sampling: SamplingOptions { top_k: 0, ..SamplingOptions::default() },
            ..GenerateOptions::default()
        }
    );
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
        (json!({"temperature": "hot"}), "option `temperature`: found a string; expected a number"),
        (json!({"top_k": [1]}), "option `top_k`: found a list; expected a whole number"),
        (json!({"seed": true}), "option `seed`: found true or false; expected a whole number"),
        (json!({"stop": 3}), "option `stop`: found a number; expected a list of strings"),
        (json!({"stop": ["a", 3]}), "option `stop[1]`: found a number; expected a string"),
        (json!({"ignore_eos": 1}), "option `ignore_eos`: found a number; expected true or false"),
        (
            json!({"logit_bias": []}),
            "option `logit_bias`: found a list; expected an object from token ids to numbers",
        ),
        (
            json!({"logit_bias": {"1": true}}),
            "option `logit_bias[1]`: found true or false; expected a number or false",
        ),
    ] {
        let error = read(request).unwrap_err();
        assert!(matches!(error, OptionError::WrongType { .. }), "{error}");
        assert_eq!(error.code(), "option.wrong_type");
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn numbers_out_of_range_are_errors_that_name_the_option() {
    for (request, message) in [
        (json!({"temperature": 1e300}), "option `temperature`: found inf; expected a finite number"),
        (json!({"top_p": 1.5}), "option `top_p`: found 1.5; expected a number from 0 to 1"),
        (json!({"top_k": 1.5}), "option `top_k`: found 1.5; expected a whole number below 2³²"),
        (json!({"top_k": 1e30}), "option `top_k`: found 1e+30; expected a whole number below 2³²"),
        (json!({"seed": 1e30}), "option `seed`: found 1e+30; expected a whole number below 2⁶⁴"),
        (json!({"repeat_last_n": -2}), "option `repeat_last_n`: found -2; expected −1 or above"),
        (json!({"repeat_penalty": 0}), "option `repeat_penalty`: found 0; expected a finite number above 0"),
        (json!({"num_ctx": -5}), "option `num_ctx`: found -5; expected a whole number, 0 or above"),
        (json!({"top_logprobs": 21}), "option `top_logprobs`: found 21; expected 0 to 20"),
        (
            json!({"logit_bias": {"x": 1}}),
            "option `logit_bias`: found the id `x`; expected a whole number below 2³²",
        ),
    ] {
        let error = read(request).unwrap_err();
        assert!(matches!(error, OptionError::OutOfRange { .. }), "{error}");
        assert_eq!(error.to_string(), message);
    }
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
