//! Images and sound: from pixels and samples to rows of a prompt.
//!
//! | file | idea |
//! |---|---|
//! | `encode` | what callers use: an image or a sound becomes an attachment, messages become a prompt |
//! | `attachment` | what was encoded, and the names by which messages attach it |
//! | `towers` | the two towers of a model, read when they are first needed |
//! | `encoder` | what the engine asks of a backend: rows from a tower's inputs |
//! | `remembered` | what was encoded before |
//! | `place` | where rows stand in a prompt |

mod attachment;
mod encode;
mod encoder;
mod place;
mod remembered;
mod towers;

pub use attachment::{Attachment, Media};
#[cfg(any(feature = "cpu", feature = "gpu"))]
pub(crate) use encoder::part;
pub use encoder::{EncodeProgress, Encoder};
pub(crate) use place::placed;
pub(crate) use towers::Towers;
