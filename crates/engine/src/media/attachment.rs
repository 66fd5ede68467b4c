//! An image or a sound that was encoded, and the names by which messages attach it.

use std::{collections::HashMap, rc::Rc};

use rullama_gemma::Medium;

use crate::MediaRows;

/// An image or a sound, encoded by one model for that model. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct Attachment {
    pub(crate) medium: Medium,
    pub(crate) rows: Rc<MediaRows>,
}

impl Attachment {
    /// What it is.
    pub fn medium(&self) -> Medium {
        self.medium
    }

    /// Its rows, each of which takes the place of a token.
    pub fn rows(&self) -> &Rc<MediaRows> {
        &self.rows
    }
}

/// Attachments by the names that messages use for them in `images` and `audio`.
pub type Media = HashMap<String, Attachment>;
