//! The Gemma 4 tokenizer, read from the metadata of a GGUF file.
//!
//! Gemma 4 uses byte-pair merging over Unicode characters with 262,144 tokens and 514,906 ranked merges.
//! Spaces are written as U+2581, characters without a token become one token for each of their bytes, and
//! some two dozen special tokens mark turns, thoughts, tool calls and media. [`Tokenizer`] gives the very
//! ids that llama.cpp gives, in time proportional to the length of the text, whatever the text.
//!
//! | to | use |
//! |---|---|
//! | read the tokenizer of a model | [`Tokenizer::from_gguf`] |
//! | make ids of text | [`Tokenizer::encode`], [`Tokenizer::encode_bytes`] |
//! | make text of ids | [`Tokenizer::decode`], [`Tokenizer::decode_bytes`] |
//! | make text of ids as they are generated | [`StreamDecoder`] |
//! | know when a reply is over | [`Tokenizer::is_end`] |
//!
//! # Example
//!
//! ```
//! use rullama_gguf::{Header, MemorySource};
//! use rullama_tokenizer::{EncodeOptions, SpecialOutput, StreamDecoder, Tokenizer};
//!
//! # pollster::block_on(async {
//! // A model with a small vocabulary; any Gemma 4 file will do.
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-Q8_0.gguf");
//! # let file = std::fs::read(path)?;
//! let header = Header::read(&MemorySource::new(file)).await?;
//! let tokenizer = Tokenizer::from_gguf(&header)?;
//!
//! let ids = tokenizer.encode("<|turn>user\nWhy is the sky blue? 🦙<turn|>", EncodeOptions::PROMPT);
//! assert_eq!(ids[0], tokenizer.bos());
//! assert!(tokenizer.is_end(ids[ids.len() - 1]));
//!
//! // The llama has no token, so it comes as four bytes. The decoder waits until it is whole.
//! let mut decoder = StreamDecoder::new(SpecialOutput::Hidden);
//! let mut text = String::new();
//! for id in ids {
//!     text.push_str(decoder.push(&tokenizer, id)?);
//! }
//! text.push_str(decoder.finish());
//! assert_eq!(text, "user\nWhy is the sky blue? 🦙");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod boundary;
mod cache;
mod character;
mod decode;
mod encode;
mod error;
mod from_gguf;
mod merge;
mod merges;
mod special;
mod stream;
mod tokenizer;
mod vocabulary;

pub use decode::SpecialOutput;
pub use encode::{EncodeOptions, SpecialInput};
pub use error::TokenizerError;
pub use stream::StreamDecoder;
pub use tokenizer::{Parts, Roles, Tokenizer};
pub use vocabulary::TokenKind;
