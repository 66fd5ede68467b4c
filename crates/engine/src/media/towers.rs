//! The two towers of a model. Their descriptions are read when they are first needed, and so are their weights.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use rullama_gemma::{AudioConfig, Config, Medium, VisionConfig, audio, vision};
use rullama_gguf::Model;
use rullama_graph::Ahead;
use rullama_media::{Budget, Clip, Frames, LogMel, Patches, Pixels, Samples, Vision};

use super::{Encoder, encoder::EncodeProgress, remembered::Remembered};
use crate::{Backend, EngineError, MediaRows};

/// What turns images and sound into rows.
pub(crate) struct Towers {
    model: Rc<Model>,
    media: Vec<Medium>,
    /// Whether the rows of an image see each other in this model.
    joined: bool,
    /// Whether weights stay in memory after an image or a sound was encoded.
    keep: bool,
    sight: RefCell<Option<Rc<Sight>>>,
    hearing: RefCell<Option<Rc<Hearing>>>,
    pub(super) remembered: RefCell<Remembered>,
    /// Images and sounds that were encoded, and not remembered.
    pub(super) encoded: Cell<u64>,
}

struct Sight {
    config: VisionConfig,
    encoder: Box<dyn Encoder>,
}

struct Hearing {
    config: AudioConfig,
    encoder: Box<dyn Encoder>,
    mel: LogMel,
}

impl Towers {
    pub(crate) fn new(model: Rc<Model>, config: &Config, keep: bool) -> Self {
        Self {
            media: Medium::of(&model),
            model,
            joined: config.ahead() == Ahead::Span,
            keep,
            sight: RefCell::default(),
            hearing: RefCell::default(),
            remembered: RefCell::default(),
            encoded: Cell::default(),
        }
    }

    pub(super) fn media(&self) -> &[Medium] {
        &self.media
    }

    pub(super) fn check(&self, medium: Medium) -> Result<(), EngineError> {
        if self.media.contains(&medium) { Ok(()) } else { Err(EngineError::NoMedium { medium }) }
    }

    /// The rows of an image.
    pub(super) async fn see(
        &self,
        backend: &dyn Backend,
        image: &Pixels,
        budget: Budget,
        progress: &mut dyn FnMut(EncodeProgress),
    ) -> Result<MediaRows, EngineError> {
        let sight = self.sight(backend).await?;
        let Sight { config, encoder } = &*sight;
        let vision = if config.tower.is_some() { Vision::Tower } else { Vision::EncoderFree };
        let longest = config.positions.saturating_mul(config.patch_side());
        let patches = Patches::new(&image.fitted_within(budget, longest)?, vision)?;
        let (columns, rows, values) = (patches.columns(), patches.rows(), patches.values());
        let patches = rullama_gemma::Patches { columns, rows, values };
        let inputs = config.inputs(&self.model, patches).await?;
        let values = encoder.run(&inputs.by_name(), progress).await?;
        self.is_done(&**encoder);
        Ok(MediaRows { values, width: config.text_width as usize, joined: self.joined })
    }

    /// The rows of a sound: those of all its clips, one after another.
    pub(super) async fn hear(
        &self,
        backend: &dyn Backend,
        sound: &Samples,
        progress: &mut dyn FnMut(EncodeProgress),
    ) -> Result<MediaRows, EngineError> {
        let hearing = self.hearing(backend).await?;
        let Hearing { config, encoder, mel } = &*hearing;
        let (mut values, clips) = (Vec::new(), sound.clips());
        let count = clips.len();
        for (index, clip) in clips.enumerate() {
            let frames = frames(config, mel, clip);
            // The rest of a sound after its last whole clip may be too short for a frame.
            if frames.rows() == 0 {
                continue;
            }
            let inputs = config.inputs(frames.values().to_vec());
            let mut told = |part: EncodeProgress| progress(part.of_clip(index, count));
            values.extend(encoder.run(&inputs.by_name(), &mut told).await?);
        }
        self.is_done(&**encoder);
        if values.is_empty() {
            return Err(EngineError::SoundTooShort);
        }
        Ok(MediaRows { values, width: config.text_width as usize, joined: false })
    }

    /// Frees the weights of both towers. The next image or sound reads them again.
    pub(super) fn release(&self) {
        if let Some(sight) = &*self.sight.borrow() {
            sight.encoder.release();
        }
        if let Some(hearing) = &*self.hearing.borrow() {
            hearing.encoder.release();
        }
    }

    fn is_done(&self, encoder: &dyn Encoder) {
        self.encoded.set(self.encoded.get() + 1);
        if !self.keep {
            encoder.release();
        }
    }

    async fn sight(&self, backend: &dyn Backend) -> Result<Rc<Sight>, EngineError> {
        if let Some(sight) = &*self.sight.borrow() {
            return Ok(sight.clone());
        }
        let missing = EngineError::NoMedium { medium: Medium::Vision };
        let config = VisionConfig::read(&self.model).await?.ok_or(missing)?;
        let encoder = backend.encoder(vision(&self.model, &config)?)?;
        let sight = Rc::new(Sight { config, encoder });
        Ok(self.sight.borrow_mut().get_or_insert(sight).clone())
    }

    async fn hearing(&self, backend: &dyn Backend) -> Result<Rc<Hearing>, EngineError> {
        if let Some(hearing) = &*self.hearing.borrow() {
            return Ok(hearing.clone());
        }
        let missing = EngineError::NoMedium { medium: Medium::Audio };
        let config = AudioConfig::read(&self.model).await?.ok_or(missing)?;
        let encoder = backend.encoder(audio(&self.model, &config)?)?;
        let hearing = Rc::new(Hearing { config, encoder, mel: LogMel::new() });
        Ok(self.hearing.borrow_mut().get_or_insert(hearing).clone())
    }
}

fn frames(config: &AudioConfig, mel: &LogMel, clip: Clip<'_>) -> Frames {
    if config.tower.is_some() { mel.frames(clip) } else { Frames::of_wave(clip) }
}
