//! An image or a sound that was encoded, on its way into a conversation.

use std::fmt::Write as _;

use rullama_engine::{Attachment, Media, Medium};
use wasm_bindgen::prelude::*;

/// An image or a sound that was encoded. Messages name it in `images` or `audio`.
#[wasm_bindgen]
pub struct WebAttachment {
    name: String,
    inner: Attachment,
}

impl WebAttachment {
    /// `budget` is that of an image: another one gives other rows.
    pub(crate) fn new(digest: &[u8], budget: Option<u32>, inner: Attachment) -> Self {
        let mut name = String::new();
        // Writing to a text can't fail.
        let _ = digest.iter().try_for_each(|byte| write!(name, "{byte:02x}"));
        if let Some(budget) = budget {
            let _ = write!(name, "-{budget}");
        }
        Self { name, inner }
    }
}

#[wasm_bindgen]
impl WebAttachment {
    /// The name by which messages attach it.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// `image` or `audio`.
    #[wasm_bindgen(getter)]
    pub fn medium(&self) -> String {
        let name = match self.inner.medium() {
            Medium::Vision => "image",
            Medium::Audio => "audio",
        };
        name.to_owned()
    }

    /// Rows of the prompt that it takes.
    #[wasm_bindgen(getter)]
    pub fn rows(&self) -> u32 {
        self.inner.rows().len() as u32
    }
}

/// Attachments by name.
pub(crate) fn media(attachments: Vec<WebAttachment>) -> Media {
    attachments.into_iter().map(|attachment| (attachment.name, attachment.inner)).collect()
}
