//! Two continuations of a prompt, and a verdict on their differences.

use rullama_engine::Engine;
use rullama_tokenizer::{SpecialOutput, Tokenizer};
use serde_json::{Value, json};

/// A token that one side chose. Fields that the side does not return are empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Said {
    pub(super) id: Option<u32>,
    pub(super) text: String,
    /// The likeliest tokens, as far as their ids are known, with log-probabilities.
    pub(super) top: Vec<(Option<u32>, f32)>,
    /// How far apart the two likeliest tokens are.
    pub(super) margin: Option<f32>,
}

/// The other side's continuation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Continuation {
    /// Its tokens; none if it returns only text.
    pub(super) tokens: Vec<Said>,
    pub(super) text: String,
    /// Whether it ended with an end token, and not at the limit.
    pub(super) ended: bool,
}

impl Continuation {
    /// The tokens' ids, if all are known.
    pub(super) fn ids(&self) -> Option<Vec<u32>> {
        let ids: Option<Vec<u32>> = self.tokens.iter().map(|token| token.id).collect();
        ids.filter(|ids| !ids.is_empty() || self.text.is_empty())
    }
}

/// The verdict on a comparison, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Equal,
    /// Different only where the other side's two best tokens are closer than the tolerance.
    WithinMargin,
    Different,
}

impl Verdict {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::WithinMargin => "equal within margin",
            Self::Different => "different",
        }
    }
}

/// The result of reading the other side's tokens.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Forced {
    tolerance: f32,
    logit_distance: Option<f32>,
    logprob_distance: Option<f32>,
    positions: usize,
    different: usize,
    outside_margin: usize,
}

impl Forced {
    pub(super) fn new(tolerance: f32) -> Self {
        let (logit_distance, logprob_distance) = (None, None);
        Self { tolerance, logit_distance, logprob_distance, positions: 0, different: 0, outside_margin: 0 }
    }

    /// Adds a position whose logits are all known.
    pub(super) fn logits(&mut self, distance: f32, same_choice: bool, margin: Option<f32>) {
        self.logit_distance = Some(self.logit_distance.map_or(distance, |most| most.max(distance)));
        self.choice(same_choice, margin);
    }

    /// Adds a position with the log-probabilities that are known.
    pub(super) fn log_probabilities(
        &mut self,
        distance: Option<f32>,
        same_choice: bool,
        margin: Option<f32>,
    ) {
        self.logprob_distance = self.logprob_distance.into_iter().chain(distance).reduce(f32::max);
        self.choice(same_choice, margin);
    }

    fn choice(&mut self, same: bool, margin: Option<f32>) {
        self.positions += 1;
        if !same {
            self.different += 1;
            self.outside_margin += usize::from(margin.is_none_or(|margin| margin >= self.tolerance));
        }
    }

    /// Whether a computed value is not a number.
    fn is_broken(&self) -> bool {
        self.logit_distance.into_iter().chain(self.logprob_distance).any(f32::is_infinite)
    }
}

/// The first token that differs; `None` on a side that had ended.
#[derive(Debug, Clone, PartialEq)]
struct Difference {
    index: usize,
    ours: Option<Said>,
    reference: Option<Said>,
    margin: Option<f32>,
}

/// One prompt, continued on both sides.
#[derive(Debug)]
pub(super) struct Comparison {
    prompt: String,
    prompt_tokens: usize,
    tokens: usize,
    pub(super) by_tokens: bool,
    pub(super) verdict: Verdict,
    first_difference: Option<Difference>,
    forced: Option<Forced>,
    ours: String,
    reference: String,
}

impl Comparison {
    pub(super) fn new(
        engine: &Engine,
        (prompt, prompt_tokens): (&str, usize),
        ours: Vec<Said>,
        reference: Continuation,
        forced: Option<Forced>,
        tolerance: f32,
    ) -> Self {
        let tokenizer = engine.tokenizer();
        let our_text: String = ours.iter().map(|token| token.text.as_str()).collect();
        let ids: Vec<u32> = ours.iter().filter_map(|token| token.id).collect();
        let by_tokens = reference.ids();
        let first_difference = match &by_tokens {
            Some(theirs) => {
                let index = first_difference(&ids, theirs, reference.ended, |id| tokenizer.is_end(id));
                index.map(|index| Difference {
                    index,
                    ours: ours.get(index).map(|said| named(tokenizer, said)),
                    reference: reference.tokens.get(index).map(|said| named(tokenizer, said)),
                    margin: reference.tokens.get(index).and_then(|said| said.margin),
                })
            }
            None => text_difference(&ours, &our_text, &reference),
        };
        Self {
            prompt: prompt.to_owned(),
            prompt_tokens,
            tokens: ours.len(),
            by_tokens: by_tokens.is_some(),
            verdict: verdict(first_difference.as_ref(), forced.as_ref(), tolerance),
            first_difference,
            forced,
            ours: our_text,
            reference: reference.text,
        }
    }

    pub(super) fn json(&self) -> Value {
        let side =
            |said: &Option<Said>| said.as_ref().map(|said| json!({ "id": said.id, "text": said.text }));
        let difference = self.first_difference.as_ref().map(|difference| {
            json!({
                "index": difference.index,
                "ours": side(&difference.ours),
                "reference": side(&difference.reference),
                "margin": difference.margin,
            })
        });
        let forced = self.forced.as_ref();
        json!({
            "prompt": self.prompt,
            "prompt_tokens": self.prompt_tokens,
            "verdict": self.verdict.as_str(),
            "tokens": self.tokens,
            "first_difference": difference,
            "logit_distance": forced.and_then(|forced| forced.logit_distance),
            "logprob_distance": forced.and_then(|forced| forced.logprob_distance),
            "positions": forced.map(|forced| forced.positions),
            "positions_different": forced.map(|forced| forced.different),
            "positions_outside_margin": forced.map(|forced| forced.outside_margin),
            "ours": self.ours,
            "reference": self.reference,
        })
    }

    /// The comparison in one line.
    pub(super) fn row(&self) -> Vec<String> {
        let distance = self.forced.as_ref().map(|forced| (forced.logit_distance, forced.logprob_distance));
        let distance = match distance {
            Some((Some(distance), _)) => format!("{distance:.4}"),
            Some((None, Some(distance))) => format!("{distance:.4} (log-probability)"),
            _ => "–".to_owned(),
        };
        let side = |said: &Option<Said>| match said {
            Some(Said { id: Some(id), text, .. }) => format!("{text:?} ({id})"),
            Some(Said { text, .. }) => format!("{text:?}"),
            None => "the end".to_owned(),
        };
        let difference = self.first_difference.as_ref().map_or("–".to_owned(), |difference| {
            let margin = difference.margin.map_or(String::new(), |margin| format!(", margin {margin:.4}"));
            let (ours, theirs) = (side(&difference.ours), side(&difference.reference));
            format!("token {}: {ours} instead of {theirs}{margin}", difference.index)
        });
        let mut prompt: String = self.prompt.chars().take(32).flat_map(char::escape_debug).collect();
        if self.prompt.chars().nth(32).is_some() {
            prompt.push('…');
        }
        vec![prompt, self.tokens.to_string(), distance, self.verdict.as_str().to_owned(), difference]
    }
}

/// A token with all of its text, special tokens included.
fn named(tokenizer: &Tokenizer, said: &Said) -> Said {
    let piece = said.id.and_then(|id| tokenizer.piece(id, SpecialOutput::All).ok());
    let text = piece.map_or_else(|| said.text.clone(), |piece| String::from_utf8_lossy(&piece).into_owned());
    Said { text, ..said.clone() }
}

/// The index at which the tokens begin to differ. Not all sides return the end token, so it does not count. If one side
/// stopped at its limit, the tokens after it can't be compared.
fn first_difference(
    ours: &[u32],
    reference: &[u32],
    reference_ended: bool,
    is_end: impl Fn(u32) -> bool,
) -> Option<usize> {
    let without_end = |ids: &[u32]| ids.len() - usize::from(ids.last().is_some_and(|&id| is_end(id)));
    let (our_len, their_len) = (without_end(ours), without_end(reference));
    let ended = reference_ended || their_len < reference.len();
    let pairs = ours[..our_len].iter().zip(&reference[..their_len]);
    let common = pairs.take_while(|(ours, theirs)| ours == theirs).count();
    let same = common == their_len && (common == our_len || !ended);
    (!same).then_some(common)
}

/// The index of our first token at which the texts differ.
fn text_difference(ours: &[Said], our_text: &str, reference: &Continuation) -> Option<Difference> {
    if our_text == reference.text {
        return None;
    }
    let same = |(a, b): &((usize, char), char)| a.1 == *b;
    let common = our_text.char_indices().zip(reference.text.chars()).take_while(same);
    let at: usize = common.map(|((_, character), _)| character.len_utf8()).sum();
    let covering = |tokens: &[Said]| {
        let mut end = 0;
        tokens.iter().position(|token| {
            end += token.text.len();
            end > at
        })
    };
    let theirs = covering(&reference.tokens).map(|index| reference.tokens[index].clone());
    let rest: String = reference.text[at..].chars().take(16).collect();
    let index = covering(ours);
    Some(Difference {
        index: index.unwrap_or(ours.len()),
        ours: index.map(|index| ours[index].clone()),
        margin: theirs.as_ref().and_then(|said| said.margin),
        reference: theirs.or((!rest.is_empty()).then(|| Said { text: rest, ..Said::default() })),
    })
}

fn verdict(difference: Option<&Difference>, forced: Option<&Forced>, tolerance: f32) -> Verdict {
    let broken = forced.is_some_and(|forced| forced.is_broken() || forced.outside_margin > 0);
    match difference {
        _ if broken => Verdict::Different,
        Some(Difference { margin: Some(margin), .. }) if *margin < tolerance => Verdict::WithinMargin,
        Some(_) => Verdict::Different,
        None if forced.is_some_and(|forced| forced.different > 0) => Verdict::WithinMargin,
        None => Verdict::Equal,
    }
}

/// The largest difference of two values at the same index; infinite if one is not a number.
pub(super) fn distance(ours: &[f32], theirs: &[f32]) -> f32 {
    let differences = ours.iter().zip(theirs).map(|(a, b)| if a == b { 0.0 } else { (a - b).abs() });
    differences
        .map(|difference| if difference.is_nan() { f32::INFINITY } else { difference })
        .fold(0.0, f32::max)
}

/// The most likely token that is not suppressed; the first if there are several.
pub(super) fn likeliest(logits: &[f32], suppressed: &[u32]) -> Option<u32> {
    let mut best: Option<(u32, f32)> = None;
    for (id, &logit) in (0u32..).zip(logits) {
        if best.is_none_or(|(_, most)| logit > most) && !suppressed.contains(&id) {
            best = Some((id, logit));
        }
    }
    best.map(|(id, _)| id)
}

/// The difference of the two highest logits among tokens that are not suppressed.
pub(super) fn top_two_margin(logits: &[f32], suppressed: &[u32]) -> Option<f32> {
    let (mut first, mut second) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
    for (id, &logit) in (0u32..).zip(logits) {
        if logit > second && !suppressed.contains(&id) {
            second = logit.min(first);
            first = first.max(logit);
        }
    }
    second.is_finite().then_some(first - second)
}

/// The logarithm of the softmax.
pub(super) fn log_probabilities(logits: &[f32]) -> Vec<f32> {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - most).exp()).sum();
    let all = most + sum.ln() as f32;
    logits.iter().map(|logit| logit - all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_count_however_they_are_told() {
        let is_end = |id| id == 9;
        let find = |ours: &[u32], reference: &[u32], ended| first_difference(ours, reference, ended, is_end);
        assert_eq!(find(&[1, 2, 3], &[1, 2, 3], false), None);
        assert_eq!(find(&[1, 2, 9], &[1, 2], true), None);
        assert_eq!(find(&[1, 2, 9], &[1, 2, 9], true), None);
        assert_eq!(find(&[1, 2, 3], &[1, 2], false), None, "it may have meant to go on");
        assert_eq!(find(&[1, 2, 3], &[1, 2], true), Some(2));
        assert_eq!(find(&[1, 9], &[1, 2, 3], false), Some(1));
        assert_eq!(find(&[1, 2, 3], &[1, 4, 3], false), Some(1));
    }

    #[test]
    fn texts_differ_at_a_token_of_ours() {
        let said = |text: &str, margin| Said { text: text.to_owned(), margin, ..Said::default() };
        let ours = [said("Hel", None), said("lö", None), said(" you", None)];
        let tokens = vec![said("Hello", Some(0.5)), said(" you", None)];
        let reference = Continuation { tokens, text: "Hello you".to_owned(), ended: false };
        let found = text_difference(&ours, "Hellö you", &reference).expect("they differ");
        assert_eq!((found.index, found.margin), (1, Some(0.5)));
        let reference = Continuation { text: "Hellö you".to_owned(), ..Continuation::default() };
        assert_eq!(text_difference(&ours, "Hellö you", &reference), None);
        let reference = Continuation { text: "Hellö".to_owned(), ..Continuation::default() };
        let found = text_difference(&ours, "Hellö you", &reference).expect("they differ");
        assert_eq!((found.index, found.reference), (2, None));
    }

    #[test]
    fn differences_within_the_margin_are_forgiven() {
        let at = |margin| Difference { index: 0, ours: None, reference: None, margin };
        assert_eq!(verdict(None, None, 0.05), Verdict::Equal);
        assert_eq!(verdict(Some(&at(Some(0.04))), None, 0.05), Verdict::WithinMargin);
        assert_eq!(verdict(Some(&at(Some(0.06))), None, 0.05), Verdict::Different);
        assert_eq!(verdict(Some(&at(None)), None, 0.05), Verdict::Different);
        let mut forced = Forced::new(0.05);
        forced.logits(0.01, true, Some(0.01));
        assert_eq!(verdict(None, Some(&forced), 0.05), Verdict::Equal);
        forced.logits(0.01, false, Some(0.01));
        assert_eq!(verdict(None, Some(&forced), 0.05), Verdict::WithinMargin);
        forced.logits(0.01, false, Some(0.2));
        assert_eq!(verdict(Some(&at(Some(0.01))), Some(&forced), 0.05), Verdict::Different);
        let mut broken = Forced::new(0.05);
        broken.logits(distance(&[f32::NAN, 1.0], &[0.0, 1.0]), true, Some(1.0));
        assert_eq!(verdict(None, Some(&broken), 0.05), Verdict::Different);
    }

    #[test]
    fn suppressed_tokens_are_not_chosen() {
        let logits = [1.0, 5.0, 3.0, 2.5];
        assert_eq!(likeliest(&logits, &[1]), Some(2));
        assert_eq!(top_two_margin(&logits, &[1]), Some(0.5));
        assert_eq!(top_two_margin(&logits, &[]), Some(2.0));
        let probabilities = log_probabilities(&logits);
        let sum: f32 = probabilities.iter().map(|value| value.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-6 && (probabilities[1] - probabilities[2] - 2.0).abs() < 1e-6);
    }
}
