//! The two ways in which files describe the tokenizer.

use rullama_tokenizer::{EncodeOptions, SpecialOutput, TokenKind, Tokenizer};

use crate::common::{gemma, header};

#[test]
fn gemma_is_read_whole() {
    let tokenizer = gemma();
    assert_eq!(tokenizer.len(), 262_144);
    assert_eq!(tokenizer.bos(), 2);
    assert_eq!(tokenizer.eos(), Some(1));
    assert_eq!(tokenizer.unknown(), Some(3));
    assert_eq!(tokenizer.padding(), Some(0));
    assert_eq!(tokenizer.mask(), Some(4));
    assert_eq!(tokenizer.end_tokens(), [1, 50, 106]);
    assert!(tokenizer.is_end(106) && !tokenizer.is_end(105) && !tokenizer.is_end(212));
    assert!(tokenizer.suppressed_tokens().is_empty());
    assert!(tokenizer.memory() < 24 << 20, "{} bytes", tokenizer.memory());

    for (text, id) in [
        ("<pad>", 0),
        ("<|tool>", 46),
        ("<tool|>", 47),
        ("<|tool_call>", 48),
        ("<tool_response|>", 51),
        ("<|\"|>", 52),
        ("<|think|>", 98),
        ("<|channel>", 100),
        ("<|turn>", 105),
        ("<turn|>", 106),
        ("<|image>", 255_999),
        ("<|image|>", 258_880),
        ("<|video|>", 258_884),
    ] {
        assert_eq!(tokenizer.token_id(text), Some(id));
        assert!(tokenizer.token_kind(id).unwrap().is_special());
    }
    assert_eq!(tokenizer.token_kind(100), Some(TokenKind::UserDefined));
    assert_eq!(tokenizer.token_kind(105), Some(TokenKind::Control));
    assert_eq!(tokenizer.token_kind(238), Some(TokenKind::Byte));
    assert_eq!(tokenizer.token_kind(107), Some(TokenKind::Normal));
}

/// A small vocabulary has other ids, and Ollama's conversion marks byte tokens as normal. Neither shows.
#[test]
fn both_dialects_encode_alike() {
    let read = |path| Tokenizer::from_gguf(&header(path)).unwrap();
    let llama_cpp = read("gguf/micro-e2b-Q8_0.gguf");
    let ollama = read("gguf/micro-e2b-Q8_0-ollama.gguf");
    assert_eq!(ollama.len(), 2048);
    assert_eq!(ollama.end_tokens(), [1, 9, 16]);
    assert_eq!(ollama.end_tokens(), llama_cpp.end_tokens());
    assert_eq!(ollama.token_id("<turn|>"), Some(16));

    let text = "<|turn>user\nGrüße, 世界! 🦙 \t  x = [1, 2];\n\n\n<turn|>\n<|turn>model\n";
    let ids = llama_cpp.encode(text, EncodeOptions::PROMPT);
    assert_eq!(ollama.encode(text, EncodeOptions::PROMPT), ids);
    for tokenizer in [&llama_cpp, &ollama] {
        assert_eq!(tokenizer.decode(&ids[1..], SpecialOutput::All).unwrap(), text);
        let llama = tokenizer.encode("🦙", EncodeOptions::TEXT);
        assert_eq!(llama.len(), 4);
        assert!(llama.iter().all(|&id| tokenizer.token_kind(id) == Some(TokenKind::Byte)));
        assert_eq!(tokenizer.decode(&llama, SpecialOutput::Hidden).unwrap(), "🦙");
    }
}
