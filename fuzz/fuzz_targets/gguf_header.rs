//! Arbitrary bytes as a GGUF file.

#![no_main]

#[global_allocator]
static ALLOCATOR: rullama_fuzz::Counting = rullama_fuzz::Counting;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    rullama_fuzz::read_within_bounds(bytes);
    // Most inputs fail at the magic; behind a right one the walk goes deeper.
    rullama_fuzz::read_within_bounds(&[b"GGUF\x03\0\0\0", bytes].concat());
});
