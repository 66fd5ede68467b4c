//! The tokenizer of a file that was written.

use pollster::block_on;
use rullama_gguf::{MemorySource, Model};
use rullama_synth::{Mix, Preset, REAL_VOCABULARY, SynthOptions, tiny};
use rullama_tokenizer::{EncodeOptions, SpecialOutput, TokenKind, Tokenizer};

const PROSE: &str = "The question is why the sky is blue.\n\n\tA short answer: light, and the air that it \
                     passes through.    Größe, 語, 🦀 and \"quotes\".\n";

fn tokenizer(preset: Preset, vocabulary: u32) -> Tokenizer {
    let options = SynthOptions { mix: Mix::Q8_0, vocabulary: Some(vocabulary), ..SynthOptions::default() };
    let file = tiny(preset.name(), &options).unwrap();
    let model = block_on(Model::open(Box::new(MemorySource::new(file)))).unwrap();
    Tokenizer::from_gguf(model.header()).unwrap()
}

#[test]
fn text_survives_the_round_trip() {
    for vocabulary in [512, 2048, 20_000] {
        let tokenizer = tokenizer(Preset::TINY_12B, vocabulary);
        assert_eq!(tokenizer.len(), vocabulary as usize);
        for text in [PROSE, "", " ", "\n", "\t\t\t", "a", "\u{0}\u{7f}", &" ".repeat(100), &"\n".repeat(50)] {
            let ids = tokenizer.encode(text, EncodeOptions::PART);
            let bytes = tokenizer.decode_bytes(&ids, SpecialOutput::All).unwrap();
            assert_eq!(String::from_utf8(bytes).unwrap(), text, "of {vocabulary}");
        }
    }
}

/// Common words are whole tokens, and the rest does not fall apart into letters.
#[test]
fn prose_becomes_fewer_tokens_than_letters() {
    let tokenizer = tokenizer(Preset::TINY_E4B, 2048);
    let words = tokenizer.encode(" the question is why", EncodeOptions::PART);
    let texts: Vec<&[u8]> = words.iter().map(|&id| tokenizer.token_text(id).unwrap()).collect();
    assert_eq!(texts, ["▁the", "▁question", "▁is", "▁why"].map(str::as_bytes));
    let ids = tokenizer.encode(PROSE, EncodeOptions::PART);
    assert!(ids.len() * 2 < PROSE.len(), "{} tokens", ids.len());
}

#[test]
fn special_tokens_are_found_and_end_replies() {
    let tokenizer = tokenizer(Preset::TINY_12B, 2048);
    let ids = tokenizer.encode("<|turn>user\nhello<turn|>", EncodeOptions::PROMPT);
    assert_eq!(ids[0], tokenizer.bos());
    assert_eq!(Some(ids[1]), tokenizer.token_id("<|turn>"));
    assert_eq!(ids.last().copied(), tokenizer.token_id("<turn|>"));
    for end in ["<eos>", "<turn|>", "<|tool_response>"] {
        assert!(tokenizer.is_end(tokenizer.token_id(end).unwrap()));
    }
    let kind = |text| tokenizer.token_kind(tokenizer.token_id(text).unwrap()).unwrap();
    assert_eq!(kind("<|channel>"), TokenKind::UserDefined);
    assert_eq!(kind("<0x00>"), TokenKind::Byte);
    let suppressed = ["<audio|>", "<image|>"].map(|text| tokenizer.token_id(text).unwrap());
    assert_eq!(tokenizer.suppressed_tokens(), suppressed);
}

#[test]
fn a_vocabulary_of_the_real_size_has_the_real_ids() {
    let tokenizer = tokenizer(Preset::TINY_12B, REAL_VOCABULARY);
    for (text, id) in [
        ("<bos>", 2),
        ("<|turn>", 105),
        ("<turn|>", 106),
        ("\n\n", 108),
        ("<0x41>", 238 + 0x41),
        ("▁", 236_743),
        ("<|image|>", 258_880),
        ("<|video|>", 258_884),
    ] {
        assert_eq!(tokenizer.token_id(text), Some(id), "{text:?}");
    }
    let ids = tokenizer.encode(PROSE, EncodeOptions::PART);
    assert_eq!(tokenizer.decode_bytes(&ids, SpecialOutput::All).unwrap(), PROSE.as_bytes());
}
