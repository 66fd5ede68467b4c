//! The sampler again, written as its options are described: everything sorted, everything in f64.

use std::collections::BTreeMap;

use rullama_engine::SamplingOptions;

/// Two numbers nearer than this are not told apart, so that rounding is not taken for an error.
const NEAR: f64 = 2e-5;

/// Every token that can be drawn with its probability, the most probable first.
///
/// `None` if a filter's decision is too close to be asked of f32.
pub(crate) fn distribution(
    options: &SamplingOptions,
    suppressed: &[u32],
    logits: &[f32],
    recent: &[u32],
) -> Option<Vec<(u32, f64)>> {
    let logits = adjusted(options, suppressed, logits, recent);
    let mut tokens: Vec<(u32, f64)> = (0..)
        .zip(logits.into_iter().map(f64::from))
        .filter(|&(_, logit)| logit > f64::NEG_INFINITY)
        .collect();
    sort(&mut tokens);
    if options.temperature == 0.0 {
        return Some(vec![(tokens[0].0, 1.0)]);
    }
    if options.top_k > 0 {
        tokens.truncate(options.top_k as usize);
    }
    if options.typical_p < 1.0 {
        tokens = typical(&tokens, options.typical_p.into())?;
    }
    if options.top_p < 1.0 {
        let probabilities = softmax(&tokens, 1.0);
        let kept = until(&probabilities, options.top_p.into())?;
        tokens.truncate(kept);
    }
    if options.min_p > 0.0 {
        let probabilities = softmax(&tokens, 1.0);
        let ratio = |probability: f64| probability / probabilities[0] - f64::from(options.min_p);
        if probabilities
            .iter()
            .any(|&probability| ratio(probability) != 0.0 && ratio(probability).abs() < NEAR)
        {
            return None;
        }
        tokens.truncate(probabilities.iter().filter(|&&probability| ratio(probability) >= 0.0).count());
    }
    let probabilities = softmax(&tokens, options.temperature.into());
    Some(tokens.iter().map(|&(id, _)| id).zip(probabilities).collect())
}

/// In f32, as the sampler does it: this is arithmetic on a few numbers, not a decision.
fn adjusted(options: &SamplingOptions, suppressed: &[u32], logits: &[f32], recent: &[u32]) -> Vec<f32> {
    let mut logits = logits.to_vec();
    for (&id, &bias) in &options.logit_bias {
        logits[id as usize] += bias;
    }
    for &id in suppressed {
        logits[id as usize] = f32::NEG_INFINITY;
    }
    let mut seen = BTreeMap::new();
    let last = usize::try_from(options.repeat_last_n).unwrap_or(recent.len());
    for &id in recent.iter().rev().take(last) {
        *seen.entry(id).or_insert(0_u16) += 1;
    }
    for (id, count) in seen {
        let logit = &mut logits[id as usize];
        if *logit > 0.0 {
            *logit /= options.repeat_penalty;
        } else {
            *logit *= options.repeat_penalty;
        }
        *logit -= f32::from(count) * options.frequency_penalty + options.presence_penalty;
    }
    logits
}

/// The largest logit first; of equal ones, the lowest id.
fn sort(tokens: &mut [(u32, f64)]) {
    tokens.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
}

fn softmax(tokens: &[(u32, f64)], temperature: f64) -> Vec<f64> {
    let weights: Vec<f64> =
        tokens.iter().map(|token| ((token.1 - tokens[0].1) / temperature).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

/// How many probabilities, from the first on, add up to `p`.
fn until(probabilities: &[f64], p: f64) -> Option<usize> {
    let mut sum = 0.0;
    let mut kept = None;
    for (index, probability) in probabilities.iter().enumerate() {
        sum += probability;
        if (sum - p).abs() < NEAR {
            return None;
        }
        if sum >= p && kept.is_none() {
            kept = Some(index + 1);
        }
    }
    Some(kept.unwrap_or(probabilities.len()))
}

fn typical(tokens: &[(u32, f64)], p: f64) -> Option<Vec<(u32, f64)>> {
    let probabilities = softmax(tokens, 1.0);
    let information = |at: usize| -probabilities[at].ln();
    let entropy: f64 = (0..tokens.len())
        .filter(|&at| probabilities[at] > 0.0)
        .map(|at| probabilities[at] * information(at))
        .sum();
    let distance = |at: usize| (information(at) - entropy).abs();
    let mut order: Vec<usize> = (0..tokens.len()).collect();
    order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)).then(a.cmp(&b)));
    let ordered: Vec<f64> = order.iter().map(|&at| probabilities[at]).collect();
    let kept = until(&ordered, p)?;
    if let (last, Some(&next)) = (order[kept - 1], order.get(kept))
        && tokens[last].1 != tokens[next].1
        && distance(next) - distance(last) < NEAR
    {
        return None;
    }
    let mut tokens: Vec<_> = order[..kept].iter().map(|&at| tokens[at]).collect();
    sort(&mut tokens);
    Some(tokens)
}
