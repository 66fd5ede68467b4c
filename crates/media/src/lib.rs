//! Images and sound, prepared for Gemma 4's encoders exactly as Hugging Face prepares them.
//!
//! A model reads an image as patches and a sound as frames: rows of numbers. This crate makes them from decoded media, in
//! browsers too, and decodes files natively. It knows nothing of models: the graphs that read these rows are in
//! `rullama-gemma`.
//!
//! | to | use |
//! |---|---|
//! | hold a decoded image | [`Pixels`] |
//! | fit it to a number of soft tokens | [`Budget`], [`Pixels::fitted`] |
//! | cut it into the patches that an encoder reads | [`Patches`], [`Vision`] |
//! | hold a decoded sound, and cut it into clips | [`Samples`], [`Clip`] |
//! | make the frames that an audio tower reads | [`LogMel`] |
//! | make the frames that 12B reads | [`Frames::of_wave`] |
//! | recognise media that were encoded before | [`Digest`] |
//! | read PNG, JPEG, WebP, GIF and BMP | `decode_image` (feature `decode`, not on wasm) |
//! | read WAV, MP3, FLAC, Ogg Vorbis and M4A | `decode_sound` (feature `decode`, not on wasm) |
//!
//! Everything is bounded: images have at most [`MAX_PIXELS`] pixels, sounds last at most [`MAX_SECONDS`] seconds, and nothing
//! is cut off silently.
//!
//! # Example
//!
//! ```
//! use rullama_media::{Budget, LogMel, Patches, Pixels, Samples, Vision};
//!
//! // An image of 640 by 480 pixels, all of them grey.
//! let image = Pixels::from_rgb(640, 480, vec![128; 640 * 480 * 3])?;
//! let image = image.fitted(Budget::default())?;
//! let patches = Patches::new(&image, Vision::Tower)?;
//! assert_eq!((image.width(), image.height()), (912, 672));
//! assert_eq!((patches.columns(), patches.rows()), (57, 42));
//! assert_eq!(patches.soft_tokens(), [19, 14]);
//!
//! // A second of a tone.
//! let tone = (0..16_000).map(|at| 0.5 * (at as f32 * 440.0 * std::f32::consts::TAU / 16_000.0).sin());
//! let sound = Samples::new(tone.collect())?;
//! let frames: Vec<_> = sound.clips().map(|clip| LogMel::new().frames(clip)).collect();
//! assert_eq!((frames.len(), frames[0].rows(), frames[0].width()), (1, 99, 128));
//! assert_eq!(LogMel::soft_tokens(99), 25);
//! # Ok::<(), rullama_media::MediaError>(())
//! ```

mod budget;
#[cfg(all(feature = "decode", not(target_family = "wasm")))]
mod decode;
mod digest;
mod error;
mod frames;
mod mel;
mod patches;
mod pixels;
mod resize;
mod samples;

pub use budget::{Budget, TOKEN_SIDE};
#[cfg(all(feature = "decode", not(target_family = "wasm")))]
pub use decode::{decode_image, decode_sound};
pub use digest::Digest;
pub use error::MediaError;
pub use frames::{Frames, WAVE_FRAME};
pub use mel::{LogMel, MEL_BANDS, MelFloor};
pub use patches::{Patches, Vision};
pub use pixels::{MAX_PIXELS, MAX_SIDE, Pixels};
pub use samples::{Clip, MAX_CLIP, MAX_SECONDS, SAMPLE_RATE, Samples};
