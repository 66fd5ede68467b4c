//! The sampler's options as the GPU takes them.

use rullama_gpu::Sampling;

use super::Sampler;

impl Sampler {
    /// The options with which the GPU chooses the tokens that this sampler would choose next; or nothing where only the
    /// sampler can: the GPU supports neither `typical_p` nor log-probabilities.
    ///
    /// `context` is the most tokens that the penalties could ever look at.
    #[must_use]
    pub fn on_device(&self, context: usize) -> Option<Sampling> {
        let options = &self.options;
        // The sampler ignores `typical_p` when it takes the likeliest token.
        let typical = options.typical_p < 1.0 && options.temperature > 0.0;
        if typical || options.top_logprobs.is_some() {
            return None;
        }
        Some(Sampling {
            temperature: options.temperature,
            bias: self.adjust.bias().to_vec(),
            repeat_last_n: usize::try_from(options.repeat_last_n).map_or(context, |last| last.min(context)),
            repeat_penalty: options.repeat_penalty,
            frequency_penalty: options.frequency_penalty,
            presence_penalty: options.presence_penalty,
            top_k: options.top_k,
            top_p: options.top_p,
            min_p: options.min_p,
            random: self.random.state(),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Sampler, SamplingOptions};

    #[test]
    fn only_the_sampler_supports_typical_p_and_log_probabilities() {
        let on_device =
            |options: &SamplingOptions| Sampler::new(options, &[]).unwrap().on_device(512).is_some();
        let typical = SamplingOptions { typical_p: 0.9, ..SamplingOptions::default() };
        assert!(on_device(&SamplingOptions::default()));
        assert!(!on_device(&typical));
        assert!(on_device(&SamplingOptions { temperature: 0.0, ..typical }));
        assert!(!on_device(&SamplingOptions { top_logprobs: Some(0), ..SamplingOptions::GREEDY }));
    }

    #[test]
    fn the_window_is_never_larger_than_the_context() {
        for (last, expected) in [(-1, 512), (0, 0), (64, 64), (1 << 30, 512)] {
            let options = SamplingOptions { repeat_last_n: last, ..SamplingOptions::default() };
            let sampling = Sampler::new(&options, &[7]).unwrap().on_device(512).unwrap();
            assert_eq!(sampling.repeat_last_n, expected);
            assert_eq!(sampling.bias, [(7, f32::NEG_INFINITY)]);
        }
    }

    /// A device that takes over in the middle of a reply continues with the sampler's random numbers.
    #[test]
    fn the_device_continues_where_the_sampler_is() {
        let options = SamplingOptions { seed: Some(3), ..SamplingOptions::default() };
        let [mut sampled, mut skipped] = [(); 2].map(|()| Sampler::new(&options, &[]).unwrap());
        let start = sampled.on_device(512).unwrap().random;
        for _ in 0..5 {
            sampled.sample(&[1.0, 2.0, 3.0], &[]).unwrap();
            skipped.skip();
        }
        let random = sampled.on_device(512).unwrap().random;
        assert_eq!(skipped.on_device(512).unwrap().random, random);
        assert_ne!(random, start);
    }
}
