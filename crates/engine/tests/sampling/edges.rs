//! Odd logits, odd temperatures, and options that mean nothing.

use std::collections::BTreeMap;

use rullama_engine::{OptionError, SampleError, Sampler, SamplingOptions};

use crate::{ids, plain, sampler};

/// Options that take every way through the filters.
fn ways() -> [SamplingOptions; 9] {
    [
        SamplingOptions::GREEDY,
        SamplingOptions::default(),
        plain(),
        SamplingOptions { top_k: 3, ..plain() },
        SamplingOptions { top_p: 0.9, ..plain() },
        SamplingOptions { min_p: 0.1, ..plain() },
        SamplingOptions { typical_p: 0.9, ..plain() },
        SamplingOptions { top_k: 3, typical_p: 0.9, top_p: 0.9, min_p: 0.1, ..plain() },
        SamplingOptions { repeat_penalty: 1.1, top_logprobs: Some(3), ..plain() },
    ]
}

fn failure(options: &SamplingOptions, suppressed: &[u32], logits: &[f32]) -> SampleError {
    let mut sampler = Sampler::new(options, suppressed).unwrap();
    let error = sampler.sample(logits, &[0]).unwrap_err();
    assert_eq!(sampler.distribution(logits, &[0]).unwrap_err().to_string(), error.to_string());
    error
}

#[test]
fn a_vocabulary_of_one_has_one_choice() {
    for options in ways() {
        assert_eq!(sampler(&options).distribution(&[-3.0], &[0]).unwrap(), [(0, 1.0)]);
        assert_eq!(sampler(&options).sample(&[-3.0], &[0]).unwrap().id, 0);
    }
}

#[test]
fn what_is_not_a_number_is_an_error_that_says_where() {
    for options in ways() {
        for at in [0, 5, 63] {
            let mut logits = [0.25; 64];
            logits[at] = f32::NAN;
            logits[63] = f32::NAN;
            let error = failure(&options, &[], &logits);
            assert!(
                matches!(error, SampleError::NotFinite { id, found } if id as usize == at && found.is_nan())
            );
            assert_eq!(error.code(), "sample.not_finite");
            assert_eq!(error.to_string(), format!("the logit of token {at} is NaN, which is not finite"));
            // A logit that is not a number means that the step went wrong, also for a token nobody wants.
            assert!(matches!(failure(&options, &[at as u32], &logits), SampleError::NotFinite { .. }));
        }
        let nothing = [f32::NEG_INFINITY; 5];
        let expected = SampleError::NotFinite { id: 0, found: f32::NEG_INFINITY };
        assert_eq!(failure(&options, &[], &nothing), expected);
        assert_eq!(failure(&options, &[], &[]), SampleError::Empty);
    }
}

#[test]
fn nothing_left_is_an_error() {
    for options in ways() {
        let error = failure(&options, &[0, 1, 2], &[1.0, 2.0, 3.0]);
        assert_eq!(error, SampleError::AllSuppressed { tokens: 3 });
        assert_eq!(error.code(), "sample.all_suppressed");
        let error = failure(&options, &[0], &[1.0, f32::NEG_INFINITY]);
        assert_eq!(error, SampleError::AllSuppressed { tokens: 2 });
    }
}

#[test]
fn an_infinite_logit_is_certain() {
    for options in ways() {
        let options = SamplingOptions { temperature: 2.0 * options.temperature, ..options };
        let logits = [1.0, f32::MAX, f32::INFINITY, -2.0, f32::NEG_INFINITY];
        let mut sampler = sampler(&options);
        assert_eq!(sampler.distribution(&logits, &[2]).unwrap(), [(2, 1.0)], "{options:?}");
        assert_eq!(sampler.sample(&logits, &[2]).unwrap().id, 2);
    }
    let two = [1.0, f32::INFINITY, f32::INFINITY];
    assert_eq!(sampler(&plain()).distribution(&two, &[]).unwrap(), [(1, 0.5), (2, 0.5)]);
    assert_eq!(sampler(&SamplingOptions::GREEDY).sample(&two, &[]).unwrap().id, 1);
}

#[test]
fn ties_go_to_the_lowest_id() {
    let mut logits = vec![-1.0; 500];
    for id in [77, 300, 301, 499] {
        logits[id] = 2.0;
    }
    assert_eq!(ids(&SamplingOptions::GREEDY, &logits), [77]);
    assert_eq!(ids(&SamplingOptions { top_k: 1, ..plain() }, &logits), [77]);
    assert_eq!(ids(&SamplingOptions { top_k: 3, ..plain() }, &logits), [77, 300, 301]);
    assert_eq!(ids(&SamplingOptions { top_k: 6, ..plain() }, &logits), [77, 300, 301, 499, 0, 1]);
    assert_eq!(ids(&SamplingOptions { top_p: 0.0, ..plain() }, &logits), [77]);
    assert_eq!(ids(&SamplingOptions { min_p: 1.0, ..plain() }, &logits), [77, 300, 301, 499]);
    // The two zeros are equal.
    assert_eq!(ids(&SamplingOptions::GREEDY, &[-1.0, -0.0, 0.0]), [1]);
    assert_eq!(ids(&SamplingOptions { top_k: 1, ..plain() }, &[-1.0, -0.0, 0.0]), [1]);
}

#[test]
fn extreme_temperatures_have_their_limits() {
    let logits = [1.0, 5.0, 3.0, 4.999];
    for temperature in [1e30, f32::MAX] {
        let distribution =
            sampler(&SamplingOptions { temperature, ..plain() }).distribution(&logits, &[]).unwrap();
        assert_eq!(distribution, [(0, 0.25), (1, 0.25), (2, 0.25), (3, 0.25)]);
    }
    for temperature in [1e-5, f32::MIN_POSITIVE, 1e-45] {
        for top_k in [0, 3] {
            let options = SamplingOptions { temperature, top_k, ..plain() };
            assert_eq!(sampler(&options).distribution(&logits, &[]).unwrap(), [(1, 1.0)]);
            assert_eq!(sampler(&options).sample(&logits, &[]).unwrap().id, 1);
        }
    }
}

/// Weights go by the largest logit that is left, or at a low temperature all of them would vanish.
#[test]
fn a_low_temperature_finds_the_likeliest_that_typical_p_left() {
    let logits = crate::logits_of(&[0.05, 0.4, 0.1, 0.25, 0.2]);
    for top_k in [0, 4] {
        let options = SamplingOptions { typical_p: 0.3, temperature: 1e-6, top_k, ..plain() };
        assert_eq!(sampler(&options).distribution(&logits, &[]).unwrap(), [(3, 1.0)]);
        assert_eq!(sampler(&options).sample(&logits, &[]).unwrap().id, 3);
    }
}

#[test]
fn min_p_of_one_keeps_the_largest_only_however_near_the_next_is() {
    let logits = [0.0, 1e-9, -1e-9];
    for top_k in [0, 2] {
        assert_eq!(ids(&SamplingOptions { min_p: 1.0, top_k, ..plain() }, &logits), [1]);
    }
}

#[test]
fn options_out_of_range_make_no_sampler() {
    let off = plain();
    let (nan, infinity) = (f32::NAN, f32::INFINITY);
    for (name, options) in [
        ("temperature", SamplingOptions { temperature: f32::INFINITY, ..off.clone() }),
        ("temperature", SamplingOptions { temperature: nan, ..off.clone() }),
        ("temperature", SamplingOptions { temperature: infinity, ..off.clone() }),
        ("top_p", SamplingOptions { top_p: 1.01, ..off.clone() }),
        ("top_p", SamplingOptions { top_p: -0.01, ..off.clone() }),
        ("top_p", SamplingOptions { top_p: nan, ..off.clone() }),
        ("min_p", SamplingOptions { min_p: 2.0, ..off.clone() }),
        ("typical_p", SamplingOptions { typical_p: nan, ..off.clone() }),
        ("repeat_penalty", SamplingOptions { repeat_penalty: 0.0, ..off.clone() }),
        ("repeat_penalty", SamplingOptions { repeat_penalty: infinity, ..off.clone() }),
        ("repeat_last_n", SamplingOptions { repeat_last_n: -2, ..off.clone() }),
        ("frequency_penalty", SamplingOptions { frequency_penalty: nan, ..off.clone() }),
        ("presence_penalty", SamplingOptions { presence_penalty: infinity, ..off.clone() }),
        ("top_logprobs", SamplingOptions { top_logprobs: Some(21), ..off.clone() }),
        ("logit_bias[3]", SamplingOptions { logit_bias: BTreeMap::from([(3, nan)]), ..off.clone() }),
        ("logit_bias[4]", SamplingOptions { logit_bias: BTreeMap::from([(4, infinity)]), ..off }),
    ] {
        let error = Sampler::new(&options, &[]).unwrap_err();
        assert!(matches!(&error, OptionError::OutOfRange { option, .. } if option == name), "{error}");
        assert_eq!(error.code(), "option.out_of_range");
    }
}
