//! `route`, `combine`, and which rows an expert serves.

use std::collections::BTreeMap;

use crate::product::Place;

/// Probabilities that sum to less than this are not scaled up to one.
const SMALLEST_SUM: f32 = 6.103_515_6e-5;

/// For each row, the numbers of the `used` most probable experts and then their weights.
pub(crate) fn route(logits: &[f32], experts: usize, used: usize, out: &mut [f32]) {
    for (logits, out) in logits.chunks(experts).zip(out.chunks_mut(2 * used)) {
        let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut probabilities: Vec<f32> = logits.iter().map(|logit| (logit - most).exp()).collect();
        let sum: f32 = probabilities.iter().sum();
        probabilities.iter_mut().for_each(|probability| *probability /= sum);
        let mut order: Vec<usize> = (0..experts).collect();
        // Stable, so that of equally probable experts the first comes first.
        order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
        let chosen = &order[..used];
        let sum = chosen.iter().map(|&expert| probabilities[expert]).sum::<f32>().max(SMALLEST_SUM);
        let (numbers, weights) = out.split_at_mut(used);
        for ((number, weight), &expert) in numbers.iter_mut().zip(weights).zip(chosen) {
            *number = expert as f32;
            *weight = probabilities[expert] / sum;
        }
    }
}

/// The rows that each expert serves, for results of `rows` values. `own_inputs` says that each expert of a row has an
/// input of its own.
pub(crate) fn places(
    routing: &[f32],
    used: usize,
    rows: usize,
    own_inputs: bool,
) -> BTreeMap<usize, Vec<Place>> {
    let mut by_expert: BTreeMap<usize, Vec<Place>> = BTreeMap::new();
    for (row, routing) in routing.chunks(2 * used).enumerate() {
        for (slot, &expert) in routing[..used].iter().enumerate() {
            let nth = row * used + slot;
            let place = Place { input: if own_inputs { nth } else { row }, output: nth * rows };
            by_expert.entry(expert as usize).or_default().push(place);
        }
    }
    by_expert
}

/// The weighted sum of the experts' outputs.
pub(crate) fn combine(
    x: &[f32],
    routing: &[f32],
    used: usize,
    width: usize,
    scale: Option<&[f32]>,
    out: &mut [f32],
) {
    out.fill(0.0);
    for ((x, routing), out) in x.chunks(used * width).zip(routing.chunks(2 * used)).zip(out.chunks_mut(width))
    {
        let (experts, weights) = routing.split_at(used);
        for ((answer, &expert), weight) in x.chunks(width).zip(experts).zip(weights) {
            let own = scale.map_or(1.0, |scale| scale[expert as usize]);
            out.iter_mut().zip(answer).for_each(|(out, value)| *out += weight * (own * value));
        }
    }
}
