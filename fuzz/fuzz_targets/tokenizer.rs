//! Arbitrary vocabularies, and arbitrary text through them.

#![no_main]

use rullama_tokenizer::{EncodeOptions, Parts, Roles, SpecialInput, SpecialOutput, StreamDecoder, Tokenizer};

libfuzzer_sys::fuzz_target!(|input: (Vec<&[u8]>, Vec<i32>, Vec<&[u8]>, Vec<&[u8]>, bool, bool)| {
    let (tokens, types, merges, texts, parse, bos) = input;
    let bytes: Vec<String> = (0..=255).map(|byte| format!("<0x{byte:02X}>")).collect();
    let common = ["<bos>", "<eos>", "a", "b", "aa", "ab", "▁", "▁a", "\n", "\n\n", "é", "😀"];
    let all: Vec<&[u8]> = bytes
        .iter()
        .map(String::as_bytes)
        .chain(common.iter().map(|text| text.as_bytes()))
        .chain(tokens.iter().copied())
        .collect();
    let mut all_types = vec![6; 256];
    all_types.extend([3, 3]);
    all_types.resize(256 + common.len(), 1);
    all_types.extend(types.iter().copied().chain(std::iter::repeat(1)).take(tokens.len()));
    let known: [&[u8]; 4] = ["a a".as_bytes(), "a b".as_bytes(), "▁ a".as_bytes(), "\n \n".as_bytes()];
    let parts = Parts {
        tokens: all.iter().copied(),
        types: &all_types,
        merges: known.into_iter().chain(merges.iter().copied()),
        roles: Roles::default(),
    };
    let Ok(tokenizer) = Tokenizer::from_parts(parts) else { return };
    let special = if parse { SpecialInput::Parse } else { SpecialInput::Text };
    for text in texts {
        let ids = tokenizer.encode_bytes(text, EncodeOptions { special, bos });
        let decoded = tokenizer.decode_bytes(&ids, SpecialOutput::All).expect("ids of the vocabulary");
        let mut stream = StreamDecoder::new(SpecialOutput::All);
        let mut streamed = String::new();
        for &id in &ids {
            streamed.push_str(stream.push(&tokenizer, id).expect("an id of the vocabulary"));
        }
        streamed.push_str(stream.finish());
        assert_eq!(streamed, String::from_utf8_lossy(&decoded));
    }
});
