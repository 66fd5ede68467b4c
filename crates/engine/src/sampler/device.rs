//! Sampling options as the GPU takes them.

use rullama_gpu::Sampling;

use super::random::Random;
use crate::{OptionError, SamplingOptions};

/// The options for choosing tokens on the GPU, as [`Sampler`](crate::Sampler) would with the same options and seed; or
/// nothing where only the sampler can: the GPU knows neither `typical_p` nor log-probabilities.
///
/// `context` is the most tokens that the penalties could ever look at.
///
/// # Errors
///
/// If an option is out of its range.
pub fn device_sampling(
    options: &SamplingOptions,
    suppressed: &[u32],
    seed_if_random: u64,
    context: usize,
) -> Result<Option<Sampling>, OptionError> {
    options.validate()?;
    // The sampler looks past `typical_p` when the likeliest token is all that is asked for.
    let typical = options.typical_p < 1.0 && options.temperature > 0.0;
    if typical || options.top_logprobs.is_some() {
        return Ok(None);
    }
    let bias = options.logit_bias.iter().map(|(&id, &bias)| (id, bias));
    let suppressed = suppressed.iter().map(|&id| (id, f32::NEG_INFINITY));
    let seed = options.seed.unwrap_or(seed_if_random);
    Ok(Some(Sampling {
        temperature: options.temperature,
        bias: bias.chain(suppressed).collect(),
        repeat_last_n: usize::try_from(options.repeat_last_n).map_or(context, |last| last.min(context)),
        repeat_penalty: options.repeat_penalty,
        frequency_penalty: options.frequency_penalty,
        presence_penalty: options.presence_penalty,
        top_k: options.top_k,
        top_p: options.top_p,
        min_p: options.min_p,
        random: Random::new(seed).state(),
    }))
}

/// Uses up the random numbers of tokens that were chosen before.
pub(crate) fn skip_draws(sampling: &mut Sampling, drawn: usize) {
    let mut random = Random::from_state(sampling.random);
    for _ in 0..drawn {
        random.next_unit();
    }
    sampling.random = random.state();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_gpu_cannot_do_is_left_to_the_sampler() {
        let on_device = |options: &SamplingOptions| device_sampling(options, &[], 0, 512).unwrap().is_some();
        let typical = SamplingOptions { typical_p: 0.9, ..SamplingOptions::default() };
        assert!(on_device(&SamplingOptions::default()));
        assert!(!on_device(&typical));
        assert!(on_device(&SamplingOptions { temperature: 0.0, ..typical }));
        assert!(!on_device(&SamplingOptions { top_logprobs: Some(0), ..SamplingOptions::GREEDY }));
        assert!(
            device_sampling(&SamplingOptions { top_p: 2.0, ..SamplingOptions::default() }, &[], 0, 1)
                .is_err()
        );
    }

    #[test]
    fn the_window_is_never_larger_than_the_context() {
        for (last, expected) in [(-1, 512), (0, 0), (64, 64), (1 << 30, 512)] {
            let options = SamplingOptions { repeat_last_n: last, ..SamplingOptions::default() };
            let sampling = device_sampling(&options, &[7], 0, 512).unwrap().unwrap();
            assert_eq!(sampling.repeat_last_n, expected);
            assert_eq!(sampling.bias, [(7, f32::NEG_INFINITY)]);
        }
    }
}
