//! How long images and sounds take to encode: made-up ones, a new one each time, because the engine knows those that it encoded.

use std::time::Instant;

use rullama_engine::Engine;
use rullama_media::{Budget, Pixels, SAMPLE_RATE, Samples};
use serde_json::{Value, json};

use super::{BenchArguments, Setting};
use crate::{
    arguments::ImageSize,
    failure::Failure,
    media::{Content, Decoded},
    output,
};

/// What is encoded.
#[derive(Clone, Copy)]
pub(super) enum Subject {
    Image(ImageSize, Budget),
    /// Its seconds.
    Sound(f32),
}

impl Subject {
    /// What the command line asks for.
    pub(super) fn all(arguments: &BenchArguments) -> Vec<Self> {
        let budget = arguments.towers.budget.unwrap_or_default();
        let image = arguments.image.map(|size| Self::Image(size, budget));
        image.into_iter().chain(arguments.audio.map(Self::Sound)).collect()
    }

    /// What is encoded in this round: like every other round's but for one pixel or sample.
    fn made(self, round: u32) -> Result<Decoded, Failure> {
        let failed = |error| Failure::of_medium(&self.to_string(), &error);
        let content = match self {
            Self::Image(ImageSize { width, height }, _) => {
                Content::Image(picture(width, height, round).map_err(|error| failed(error.into()))?)
            }
            Self::Sound(seconds) => {
                Content::Sound(sound(seconds, round).map_err(|error| failed(error.into()))?)
            }
        };
        Ok(Decoded::new(self.to_string(), content))
    }

    fn budget(self) -> Budget {
        match self {
            Self::Image(_, budget) => budget,
            Self::Sound(_) => Budget::default(),
        }
    }

    pub(super) async fn measure(self, setting: &Setting, repeat: u32) -> Result<Encoding, Failure> {
        let say = |which: String| setting.progress.set_message(format!("{self}: {which}"));
        say("weights and warm-up".to_owned());
        let (rows, first) = time(&setting.engine, &self.made(0)?, self.budget()).await?;
        let mut times = Vec::new();
        for round in 1..=repeat {
            say(format!("{round} of {repeat}"));
            times.push(time(&setting.engine, &self.made(round)?, self.budget()).await?.1);
        }
        Ok(Encoding { subject: self, rows, first, median: median(&mut times), times })
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Image(ImageSize { width, height }, budget) => {
                write!(f, "image of {width}×{height}, at most {budget} tokens")
            }
            Self::Sound(seconds) => write!(f, "sound of {seconds} s"),
        }
    }
}

/// A gradient with some noise.
fn picture(width: u32, height: u32, round: u32) -> Result<Pixels, rullama_media::MediaError> {
    let mut bytes = Vec::with_capacity(3 * width as usize * height as usize);
    for y in 0..height {
        for x in 0..width {
            let noise = x.wrapping_mul(2_654_435_761).wrapping_add(y.wrapping_mul(40_503)) >> 27;
            let along = |at: u32, all: u32| (u64::from(at) * 223 / u64::from(all)) as u8;
            bytes.extend([along(x, width), along(y, height), 100].map(|value| value + noise as u8));
        }
    }
    for (at, byte) in round.to_le_bytes().into_iter().enumerate().take(3) {
        bytes[at] = byte;
    }
    Pixels::from_rgb(width, height, bytes)
}

/// A tone that rises and falls.
fn sound(seconds: f32, round: u32) -> Result<Samples, rullama_media::MediaError> {
    let count = (f64::from(seconds) * f64::from(SAMPLE_RATE)).round() as usize;
    let sample = |at: usize| {
        let time = at as f32 / SAMPLE_RATE as f32;
        0.3 * (std::f32::consts::TAU * 300.0 * time + 80.0 * time.sin()).sin()
    };
    let mut samples: Vec<f32> = (0..count).map(sample).collect();
    if let Some(last) = samples.last_mut() {
        *last = round as f32 / 65_536.0;
    }
    Samples::new(samples)
}

/// The rows, and the milliseconds that they took.
async fn time(engine: &Engine, made: &Decoded, budget: Budget) -> Result<(usize, f64), Failure> {
    let (encoded, started) = (engine.encoded(), Instant::now());
    let attachment = made.encode_with(engine, budget, &mut |_| {}).await?;
    let took = started.elapsed();
    debug_assert_eq!(engine.encoded(), encoded + 1, "the engine knew this one");
    Ok((attachment.rows().len(), crate::engine::milliseconds(took)))
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    let middle = times.len() / 2;
    match times.len() % 2 {
        0 => f64::midpoint(times[middle - 1], times[middle]),
        _ => times[middle],
    }
}

/// What was measured.
pub(super) struct Encoding {
    subject: Subject,
    rows: usize,
    /// Milliseconds of the first, which reads the weights.
    first: f64,
    median: f64,
    /// Milliseconds of the others, from the shortest to the longest.
    times: Vec<f64>,
}

impl Encoding {
    /// The field of `bench --json`, and its value.
    pub(super) fn json(&self) -> (&'static str, Value) {
        let (name, mut value) = match self.subject {
            Subject::Image(ImageSize { width, height }, budget) => {
                let budget = budget.soft_tokens();
                ("image", json!({ "width": width, "height": height, "budget": budget }))
            }
            Subject::Sound(seconds) => ("audio", json!({ "seconds": seconds })),
        };
        value["rows"] = self.rows.into();
        value["encode_ms"] = self.median.into();
        value["encode_ms_all"] = self.times.clone().into();
        value["first_ms"] = self.first.into();
        (name, value)
    }

    /// The table of all that was measured.
    pub(super) fn print(all: &[Self]) -> Result<(), Failure> {
        if all.is_empty() {
            return Ok(());
        }
        let mut rows = vec![["ENCODED", "TOKENS", "MEDIAN", "FASTEST", "FIRST"].map(str::to_owned).to_vec()];
        let shown = |time: f64| format!("{time:.1} ms");
        rows.extend(all.iter().map(|one| {
            let fastest = one.times.first().copied().unwrap_or_default();
            let times = [one.median, fastest, one.first].map(shown);
            [vec![one.subject.to_string(), one.rows.to_string()], times.to_vec()].concat()
        }));
        output::line("")?;
        Ok(output::table(&rows)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_something_new() {
        let (a, b) = (picture(1, 1, 1).unwrap(), picture(1, 1, 2).unwrap());
        assert_ne!(a.digest(), b.digest());
        assert_ne!(sound(0.1, 1).unwrap().digest(), sound(0.1, 2).unwrap().digest());
        assert_eq!((median(&mut [3.0, 1.0, 2.0]), median(&mut [4.0, 1.0])), (2.0, 2.5));
    }
}
