//! Special tokens in text, the beginning of a prompt, bytes that are not UTF-8, and long texts.

use rullama_tokenizer::{EncodeOptions, SpecialInput, SpecialOutput};

use crate::common::gemma;

const BOS: u32 = 2;
const TEXT_WITH_BOS: EncodeOptions = EncodeOptions { special: SpecialInput::Text, bos: true };

#[test]
fn special_tokens_are_parsed_or_not() {
    let text = "<|turn>user\n<|channel>hi<turn|>";
    let parsed = gemma().encode(text, EncodeOptions::PART);
    assert_eq!(parsed, [105, 2364, 107, 100, 2202, 106]);

    // `<|channel>` is user-defined in this file: it is cut out even where special tokens are text.
    let plain = gemma().encode(text, EncodeOptions::TEXT);
    assert!(!plain.contains(&105) && !plain.contains(&106) && plain.contains(&100), "{plain:?}");
    assert_eq!(gemma().decode(&plain, SpecialOutput::All).unwrap(), text);
}

#[test]
fn special_tokens_leave_the_text_around_them_alone() {
    assert_eq!(gemma().encode(" <bos> ", EncodeOptions::PART), [236743, BOS, 236743]);
    assert_eq!(gemma().encode("<<bos>>", EncodeOptions::PART), [236820, BOS, 236813]);
    // `</s>` is an ordinary token, and not one that text becomes.
    assert_eq!(gemma().token_id("</s>"), Some(212));
    assert!(!gemma().is_end(212));
}

#[test]
fn a_prompt_begins_with_one_bos() {
    let encode = |text| gemma().encode(text, EncodeOptions::PROMPT);
    assert_eq!(encode(""), [BOS]);
    assert_eq!(encode("hello"), [BOS, 23391]);
    assert_eq!(encode("<bos>hello"), [BOS, 23391]);
    assert_eq!(encode("<bos>"), [BOS]);
    // Only the first one is the beginning; what follows is the caller's.
    assert_eq!(encode("<bos><bos>hello"), [BOS, BOS, 23391]);
    assert_eq!(encode("hello<bos>"), [BOS, 23391, BOS]);
    assert_eq!(gemma().encode("<bos>hello", EncodeOptions::PART), [BOS, 23391]);
    // As text, `<bos>` is not the beginning of anything.
    let plain = gemma().encode("<bos>", TEXT_WITH_BOS);
    assert_eq!(plain[0], BOS);
    assert!(plain.len() > 2 && !plain[1..].contains(&BOS), "{plain:?}");
}

#[test]
fn bytes_that_are_not_utf8_become_byte_tokens() {
    let byte = |value: u8| gemma().token_id(&format!("<0x{value:02X}>")).unwrap();
    let encode = |bytes: &[u8]| gemma().encode_bytes(bytes, EncodeOptions::TEXT);
    assert_eq!(encode(b"\xFF"), [byte(0xFF)]);
    assert_eq!(encode(b"hello\xFF world"), [23391, byte(0xFF), 1902]);
    assert_eq!(encode(b"hello\xF0\x9F"), [23391, byte(0xF0), byte(0x9F)]);
    // A lead byte takes what it announces, up to a newline.
    assert_eq!(encode(b"\xC3("), [byte(0xC3), byte(b'(')]);
    assert_eq!(encode(b"\xC3\n"), [byte(0xC3), 107]);
    assert_eq!(encode(b"\xC3 "), [byte(0xC3), byte(b' ')]);
}

/// A long run of anything is encoded, and gives its text back. A quadratic step would be felt here.
#[test]
fn long_runs_are_encoded_whole() {
    for unit in ["a", " ", "\n", "\t", "=", "ab", "the", "é", "中", "🦙", "<", "<|turn", "ha ", "0", "\r\n"]
    {
        let text = unit.repeat((1 << 16) / unit.len());
        let ids = gemma().encode(&text, EncodeOptions::PART);
        assert!(ids.len() <= text.len());
        assert_eq!(gemma().decode(&ids, SpecialOutput::All).unwrap(), text, "{unit:?}");
    }
    let spaces = gemma().encode(&" ".repeat(31 * 1000 + 1), EncodeOptions::PART);
    let widest = gemma().token_id(&"\u{2581}".repeat(31)).unwrap();
    assert_eq!(spaces.len(), 1001);
    assert!(spaces[..1000].iter().all(|&id| id == widest));
}
