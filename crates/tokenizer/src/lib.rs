//! Gemma 4 tokenizer.
