//! Files of images and sound, read by pure Rust decoders. Files are hostile until decoded: sizes are checked before memory is
//! needed, and memory is bounded.

mod image;
mod jpeg;
mod mp4;
mod resample;
mod sound;

pub use self::{image::decode_image, sound::decode_sound};
