//! Pieces, hidden and shown special tokens, and streams.

use rullama_tokenizer::{EncodeOptions, SpecialOutput, StreamDecoder, TokenKind, TokenizerError};

use crate::common::gemma;

#[test]
fn pieces_are_what_tokens_contribute() {
    let piece = |id| gemma().piece(id, SpecialOutput::Hidden).unwrap().into_owned();
    assert_eq!(piece(1902), b" world");
    assert_eq!(piece(139), b"   ");
    assert_eq!(piece(107), b"\n");
    assert_eq!(piece(238), [0]);
    assert_eq!(piece(238 + 0xE2), [0xE2]);
    assert_eq!(piece(106), b"");
    assert_eq!(piece(212), b"</s>");
}

#[test]
fn special_tokens_show_as_asked() {
    let text = "<bos><|turn>model\n<|channel>thought<channel|><|tool_call>call:f{a:<|\"|>b<|\"|>}<tool_call|><turn|>";
    let ids = gemma().encode(text, EncodeOptions::PROMPT);
    let decode = |special| gemma().decode(&ids, special).unwrap();
    assert_eq!(decode(SpecialOutput::All), text);
    assert_eq!(decode(SpecialOutput::Hidden), "model\nthoughtcall:f{a:b}");
    assert_eq!(
        decode(SpecialOutput::ForParser),
        "model\n<|channel>thought<channel|><|tool_call>call:f{a:<|\"|>b<|\"|>}<tool_call|>"
    );
}

#[test]
fn every_token_decodes_to_its_text() {
    for id in 0..gemma().len() as u32 {
        let text = str::from_utf8(gemma().token_text(id).unwrap()).unwrap();
        let piece = gemma().piece(id, SpecialOutput::All).unwrap();
        if gemma().token_kind(id) == Some(TokenKind::Byte) {
            assert_eq!(format!("<0x{:02X}>", piece[0]), text);
        } else {
            assert_eq!(piece, text.replace('\u{2581}', " ").as_bytes());
        }
        assert_eq!(gemma().token_id(text), Some(id));
    }
}

#[test]
fn ids_without_a_token_are_an_error() {
    for id in [262_144, u32::MAX] {
        let error = gemma().decode(&[1902, id], SpecialOutput::All).unwrap_err();
        assert!(matches!(error, TokenizerError::UnknownId { id: found, tokens: 262_144 } if found == id));
        assert_eq!(error.code(), "tokenizer.unknown_id");
        assert_eq!(gemma().token_text(id), None);
        assert_eq!(gemma().token_kind(id), None);
        assert!(!gemma().is_end(id));
    }
}

#[test]
fn a_stream_waits_for_whole_characters() {
    let byte = |value: u32| 238 + value;
    let mut decoder = StreamDecoder::new(SpecialOutput::Hidden);
    let mut push = |id| decoder.push(gemma(), id).unwrap().to_owned();
    assert_eq!(push(23391), "hello");
    // 🦙 in four bytes
    assert_eq!([0xF0, 0x9F, 0xA6, 0x99].map(|value| push(byte(value))), ["", "", "", "🦙"]);
    // The beginning of a character, then something else: it will never be whole.
    assert_eq!([push(byte(0xE2)), push(byte(0x96)), push(1902)], ["", "", "\u{FFFD} world"]);
    assert_eq!([push(byte(0xF0)), push(byte(0x9F))], ["", ""]);
    assert!(decoder.is_pending());
    // A bad id leaves everything as it was.
    assert!(decoder.push(gemma(), u32::MAX).is_err());
    assert_eq!(decoder.finish(), "\u{FFFD}");
    assert_eq!(decoder.finish(), "");
    assert_eq!(decoder.push(gemma(), 23391).unwrap(), "hello");
}
