//! Images and sound, compared with what Hugging Face, torchvision and Pillow make of them.

mod common;
#[cfg(all(feature = "decode", not(target_family = "wasm")))]
mod files;
mod images;
mod properties;
mod sounds;
