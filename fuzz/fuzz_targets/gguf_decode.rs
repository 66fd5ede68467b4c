//! Arbitrary bytes as blocks of every format, and arbitrary values into every format.

#![no_main]

use rullama_gguf::Format;

libfuzzer_sys::fuzz_target!(|input: (u8, &[u8])| {
    let (choice, bytes) = input;
    let format = Format::ALL[choice as usize % Format::ALL.len()];
    let blocks = bytes.len() / format.block_bytes();
    let mut values = vec![0.0; blocks * format.block_len()];
    format.decode(&bytes[..blocks * format.block_bytes()], &mut values).expect("whole blocks are decoded");

    // What was decoded may hold infinities and NaN; encoding survives them.
    let mut encoded = vec![0; blocks * format.block_bytes()];
    let _ = format.encode(&values, &mut encoded);
});
