//! Gemma 4 chat format.
