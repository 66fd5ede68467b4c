//! Images and sounds from files and messages: reading, decoding, encoding.

use std::{
    fs::File,
    io::{self, IsTerminal as _, Read as _},
    path::Path,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rullama_chat::Message;
use rullama_engine::{Attachment, EncodeProgress, Engine, EngineError, Media};
use rullama_gemma::Medium;
use rullama_gguf::Model;
use rullama_media::{Budget, MAX_CLIP, MediaError, Pixels, SAMPLE_RATE, Samples, decode_image, decode_sound};
use serde_json::{Map, Value, json};

use crate::{failure::Failure, media_source::Source, output};

/// The largest file that is read.
const MOST_BYTES: u64 = 1 << 30;

/// Tokens that a second of sound becomes.
const TOKENS_OF_A_SECOND: u32 = 25;

/// Seconds of a sound that are encoded together.
const CLIP_SECONDS: usize = MAX_CLIP / SAMPLE_RATE as usize;

/// An image or a sound, decoded.
pub(crate) struct Decoded {
    /// What errors call it: its path, or its place in a message.
    pub(crate) label: String,
    content: Content,
}

pub(crate) enum Content {
    Image(Pixels),
    Sound(Samples),
}

impl Decoded {
    pub(crate) fn new(label: impl Into<String>, content: Content) -> Self {
        Self { label: label.into(), content }
    }

    /// Reads a file.
    pub(crate) fn read(path: &Path, medium: Medium) -> Result<Self, Failure> {
        let label = format!("`{}`", path.display());
        let bytes = read_file(path)
            .map_err(|error| Failure::new(format!("{label} can't be read")).caused_by(error))
            .map_err(|failure| failure.hint("check the path"))?;
        Self::decode(label, medium, &bytes)
    }

    /// Reads what a message attaches; `place` says where it stands.
    fn of_message(text: &str, place: &str, medium: Medium) -> Result<Self, Failure> {
        match Source::of(text, place)? {
            Source::File(path) => Self::read(&path, medium),
            Source::Bytes(bytes) => Self::decode(place.to_owned(), medium, &bytes),
        }
    }

    fn decode(label: String, medium: Medium, bytes: &[u8]) -> Result<Self, Failure> {
        let content = match medium {
            Medium::Vision => decode_image(bytes).map(Content::Image),
            Medium::Audio => decode_sound(bytes).map(Content::Sound),
        };
        content.map(|content| Self::new(&*label, content)).map_err(|error| {
            let other = match error {
                MediaError::UnknownImage => decode_sound(bytes).is_ok().then_some(Medium::Audio),
                MediaError::UnknownSound => decode_image(bytes).is_ok().then_some(Medium::Vision),
                _ => None,
            };
            let failure = Failure::of_medium(&label, &error.into());
            match other {
                Some(Medium::Audio) => failure.hint("it is a sound: attach it as audio"),
                Some(Medium::Vision) => failure.hint("it is an image: attach it as an image"),
                None => failure,
            }
        })
    }

    pub(crate) fn medium(&self) -> Medium {
        match self.content {
            Content::Image(_) => Medium::Vision,
            Content::Sound(_) => Medium::Audio,
        }
    }

    /// Its size, for people.
    pub(crate) fn size(&self) -> String {
        match &self.content {
            Content::Image(image) => format!("{}×{} pixels", image.width(), image.height()),
            Content::Sound(sound) => format!("{:.1} s", sound.seconds()),
        }
    }

    /// Refuses a medium that the model does not read, before its weights are loaded.
    pub(crate) fn check(&self, model: &Model) -> Result<(), Failure> {
        let medium = self.medium();
        match Medium::of(model).contains(&medium) {
            true => Ok(()),
            false => Err(EngineError::NoMedium { medium }.into()),
        }
    }

    /// Encodes it. A terminal shows the progress if that takes long.
    pub(crate) async fn encode(&self, engine: &Engine, budget: Budget) -> Result<Attachment, Failure> {
        let progress = Progress::of(&self.label);
        self.encode_with(engine, budget, &mut |part| progress.tell(part)).await
    }

    /// Encodes it and tells `progress`.
    pub(crate) async fn encode_with(
        &self,
        engine: &Engine,
        budget: Budget,
        progress: &mut dyn FnMut(EncodeProgress),
    ) -> Result<Attachment, Failure> {
        let encoded = match &self.content {
            Content::Image(image) => engine.encode_image(image, budget, progress).await,
            Content::Sound(sound) => engine.encode_sound(sound, progress).await,
        };
        encoded.map_err(|error| match error.code().starts_with("media.") {
            true => Failure::of_medium(&self.label, &error),
            false => error.into(),
        })
    }
}

/// Reads a whole file of a size that an image or a sound can have. A device may have no end.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.len() <= MOST_BYTES {
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 <= MOST_BYTES {
            return Ok(bytes);
        }
    }
    Err(io::Error::other(format!("it has more than {}", output::size(MOST_BYTES))))
}

/// What the messages of a conversation attach, decoded, by the names that the messages have for it from then on.
#[derive(Default)]
pub(crate) struct Attachments(Vec<(String, Decoded)>);

impl Attachments {
    /// Decodes what messages attach, and replaces it in the messages by short names.
    pub(crate) fn of(messages: &mut [Message]) -> Result<Self, Failure> {
        let mut all = Self::default();
        for (index, message) in messages.iter_mut().enumerate() {
            let lists = [
                (std::mem::take(&mut message.images), "images", Medium::Vision),
                (std::mem::take(&mut message.audio), "audio", Medium::Audio),
            ];
            for (list, field, medium) in lists {
                for (number, text) in list.iter().enumerate() {
                    let place = format!("messages[{index}].{field}[{number}]");
                    all.add(Decoded::of_message(text, &place, medium)?, message);
                }
            }
        }
        Ok(all)
    }

    /// Attaches something to a message.
    pub(crate) fn add(&mut self, decoded: Decoded, message: &mut Message) {
        let name = format!("attachment {}", self.0.len());
        name_in(message, decoded.medium(), &name);
        self.0.push((name, decoded));
    }

    /// Refuses what the model does not read, before its weights are loaded.
    pub(crate) fn check(&self, model: &Model) -> Result<(), Failure> {
        self.0.iter().try_for_each(|(_, decoded)| decoded.check(model))
    }

    /// Encodes everything.
    pub(crate) async fn encode(self, engine: &Engine, budget: Budget) -> Result<Media, Failure> {
        let mut media = Media::new();
        for (name, decoded) in self.0 {
            media.insert(name, decoded.encode(engine, budget).await?);
        }
        Ok(media)
    }
}

/// Makes a message attach a medium by its name.
pub(crate) fn name_in(message: &mut Message, medium: Medium, name: &str) {
    let list = match medium {
        Medium::Vision => &mut message.images,
        Medium::Audio => &mut message.audio,
    };
    list.push(name.to_owned());
}

/// A progress bar that appears when encoding takes more than a second, on a terminal only.
struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// Steps of the bar.
    const STEPS: f64 = 1000.0;

    fn of(label: &str) -> Self {
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent} %");
        let bar = ProgressBar::with_draw_target(Some(Self::STEPS as u64), ProgressDrawTarget::hidden())
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            .with_message(format!("encoding {}", output::harmless(label)));
        Self { bar, started: Instant::now() }
    }

    fn tell(&self, progress: EncodeProgress) {
        if self.started.elapsed() < Duration::from_secs(1) || !io::stderr().is_terminal() {
            return;
        }
        if self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position((Self::STEPS * progress.fraction()) as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// What a model takes besides text, as `show` and `inspect` print it.
pub(crate) fn rows_about(media: &[Medium]) -> Vec<(&'static str, String)> {
    media.iter().map(|medium| row_about(*medium)).collect()
}

fn row_about(medium: Medium) -> (&'static str, String) {
    match medium {
        Medium::Vision => {
            let budget = |budget: Budget| match budget == Budget::default() {
                true => format!("{budget} (default)"),
                false => budget.to_string(),
            };
            ("images", format!("{} tokens", Budget::ALL.map(budget).join(", ")))
        }
        Medium::Audio => {
            ("audio", format!("clips of {CLIP_SECONDS} s, {TOKENS_OF_A_SECOND} tokens a second"))
        }
    }
}

/// The same as JSON.
pub(crate) fn json_about(media: &[Medium]) -> Value {
    let one = |medium: &Medium| match medium {
        Medium::Vision => {
            let budgets = Budget::ALL.map(Budget::soft_tokens);
            let default = Budget::default().soft_tokens();
            ("images".to_owned(), json!({ "budgets": budgets, "default_budget": default }))
        }
        Medium::Audio => {
            let about = json!({ "clip_seconds": CLIP_SECONDS, "tokens_per_second": TOKENS_OF_A_SECOND });
            ("audio".to_owned(), about)
        }
    };
    Value::Object(Map::from_iter(media.iter().map(one)))
}
