//! An image or a sound becomes an attachment; messages with attachments become a prompt.

use std::{cell::Cell, rc::Rc};

use rullama_chat::{Conversation, Message, Prompt, render};
use rullama_gemma::Medium;
use rullama_media::{Budget, Pixels, Samples};

use super::{Attachment, EncodeProgress, Media, placed, remembered::Origin};
use crate::{ChatOptions, Engine, EngineError, MediaRows, PromptRows};

impl Engine {
    /// What the model takes besides text.
    pub fn media(&self) -> &[Medium] {
        self.inner.towers.media()
    }

    /// Encodes an image as at most `budget` rows. An image that was encoded before is not encoded again.
    pub async fn encode_image(
        &self,
        image: &Pixels,
        budget: Budget,
        progress: &mut dyn FnMut(EncodeProgress),
    ) -> Result<Attachment, EngineError> {
        let (medium, towers) = (Medium::Vision, &self.inner.towers);
        towers.check(medium)?;
        let origin = Origin::Image(image.digest(), budget);
        if let Some(known) = towers.remembered.borrow_mut().find(origin) {
            return Ok(known);
        }
        let rows = towers.see(&*self.inner.backend, image, budget, progress).await?;
        Ok(self.remember(origin, medium, rows))
    }

    /// Encodes a sound. A sound that was encoded before is not encoded again.
    pub async fn encode_sound(
        &self,
        sound: &Samples,
        progress: &mut dyn FnMut(EncodeProgress),
    ) -> Result<Attachment, EngineError> {
        let (medium, towers) = (Medium::Audio, &self.inner.towers);
        towers.check(medium)?;
        let origin = Origin::Sound(sound.digest());
        if let Some(known) = towers.remembered.borrow_mut().find(origin) {
            return Ok(known);
        }
        let rows = towers.hear(&*self.inner.backend, sound, progress).await?;
        Ok(self.remember(origin, medium, rows))
    }

    fn remember(&self, origin: Origin, medium: Medium, rows: MediaRows) -> Attachment {
        let attachment = Attachment { medium, rows: Rc::new(rows) };
        self.inner.towers.remembered.borrow_mut().add(origin, attachment.clone());
        attachment
    }

    /// Images and sounds that were encoded so far. Those that were encoded before do not count.
    pub fn encoded(&self) -> u64 {
        Cell::get(&self.inner.towers.encoded)
    }

    /// Frees the memory of both towers. The next image or sound reads their weights again.
    pub fn release_towers(&self) {
        self.inner.towers.release();
    }

    /// The prompt of a conversation, and its rows.
    pub fn prompt(
        &self,
        messages: &[Message],
        options: &ChatOptions,
    ) -> Result<(Prompt, PromptRows), EngineError> {
        self.prompt_with(messages, options, &options.media)
    }

    pub(crate) fn prompt_with(
        &self,
        messages: &[Message],
        options: &ChatOptions,
        media: &Media,
    ) -> Result<(Prompt, PromptRows), EngineError> {
        let conversation = Conversation { messages, tools: &options.tools, think: options.think };
        let prompt = render(&conversation, self.inner.prompts)?;
        let rows = placed(&prompt, messages, media, self.tokenizer())?;
        Ok((prompt, rows))
    }
}
