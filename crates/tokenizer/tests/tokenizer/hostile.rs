//! Vocabularies that are wrong, odd, or made to do harm.

use proptest::prelude::*;
use rullama_gguf::{Header, MemorySource, Writer};
use rullama_tokenizer::{
    EncodeOptions, Parts, Roles, SpecialOutput, StreamDecoder, TokenKind, Tokenizer, TokenizerError,
};

fn build(tokens: &[&str], types: &[i32], merges: &[&str]) -> Result<Tokenizer, TokenizerError> {
    build_with(tokens, types, merges, Roles::default())
}

fn build_with(
    tokens: &[&str],
    types: &[i32],
    merges: &[&str],
    roles: Roles,
) -> Result<Tokenizer, TokenizerError> {
    let tokens = tokens.iter().map(|token| token.as_bytes());
    let merges = merges.iter().map(|merge| merge.as_bytes());
    Tokenizer::from_parts(Parts { tokens, types, merges, roles })
}

#[test]
fn wrong_parts_are_refused_with_the_reason() {
    use TokenizerError as E;
    let tokens = ["<bos>", "a", "b", "ab"];
    let refused = |result: Result<Tokenizer, E>| result.map(|_| ()).unwrap_err();
    assert!(matches!(refused(build(&[], &[], &[])), E::EmptyVocabulary));
    assert!(matches!(refused(build(&["a"], &[], &[])), E::MissingToken { text: "<bos>" }));
    assert!(matches!(refused(build(&tokens, &[1, 1], &[])), E::TypeCount { found: 2, expected: 4 }));
    assert!(matches!(refused(build(&tokens, &[3, 1, 9, 1], &[])), E::TokenType { id: 2, found: 9 }));
    for merge in ["", "ab", " b", "a "] {
        let error = refused(build(&tokens, &[], &["a b", merge]));
        assert!(matches!(error, E::MalformedMerge { index: 1, .. }), "{error}");
    }
    for (merge, unknown) in [("a c", "c"), ("c a", "c"), ("b a", "ba"), ("a b b", "b b")] {
        let error = refused(build(&tokens, &[], &["a b", merge]));
        assert!(matches!(&error, E::UnknownMergeToken { index: 1, text } if text == unknown), "{error}");
        assert_eq!(error.code(), "tokenizer.merges");
    }
    for roles in [
        Roles { bos: Some(4), ..Roles::default() },
        Roles { eos: Some(4), ..Roles::default() },
        Roles { unknown: Some(4), ..Roles::default() },
        Roles { padding: Some(4), ..Roles::default() },
        Roles { mask: Some(4), ..Roles::default() },
        Roles { ends: vec![1, 4], ..Roles::default() },
    ] {
        assert!(matches!(refused(build_with(&tokens, &[], &[], roles)), E::RoleOutOfRange { tokens: 4, .. }));
    }
}

#[test]
fn roles_are_taken_from_the_file_or_from_texts() {
    let tokens = ["<bos>", "<eos>", "x", "<turn|>", "y"];
    let found = build(&tokens, &[], &[]).unwrap();
    assert_eq!((found.bos(), found.eos(), found.end_tokens()), (0, Some(1), &[1, 3][..]));
    // Typed as normal, or not typed at all, they are special all the same.
    assert_eq!(found.token_kind(1), Some(TokenKind::Control));

    let roles = Roles {
        bos: Some(2),
        eos: Some(4),
        ends: vec![0, 3],
        suppressed: vec![4, 5, u32::MAX],
        ..Roles::default()
    };
    let given = build_with(&tokens, &[], &[], roles).unwrap();
    assert_eq!((given.bos(), given.eos(), given.end_tokens()), (2, Some(4), &[0, 1, 3, 4][..]));
    assert_eq!(given.suppressed_tokens(), [4], "ids that no token has are passed over");
}

#[test]
fn odd_vocabularies_follow_the_rules() {
    // The first of two equal merges counts, and of two equal texts the later id.
    let tokens = ["<bos>", "a", "b", "c", "ab", "bc", "ab"];
    let first = build(&tokens, &[], &["a b", "b c", "a b"]).unwrap();
    assert_eq!(first.encode("abc", EncodeOptions::TEXT), [6, 3]);
    let second = build(&tokens, &[], &["b c", "a b", "b c"]).unwrap();
    assert_eq!(second.encode("abc", EncodeOptions::TEXT), [1, 5]);
    let chain = build(&["<bos>", "a", "b", "ab", "abb", "ab"], &[], &["a b", "ab b"]).unwrap();
    assert_eq!(chain.encode("ab abb", EncodeOptions::TEXT), [5, 4]);
    // A run of newlines is one token even without merges, and never merges with anything else.
    let newlines = build(&["<bos>", "\n", "\n\n\n", "a", "a\n"], &[], &["a \n"]).unwrap();
    assert_eq!(newlines.encode("a\n\n\na\n\n", EncodeOptions::TEXT), [3, 2, 3, 1, 1]);
    // Characters without a token are dropped if their bytes have none either.
    let bare = build(&["<bos>", "a", "<0xC3>"], &[], &[]).unwrap();
    assert_eq!(bare.encode("é a", EncodeOptions::TEXT), [2, 1]);
    // A space is U+2581; a token that is a literal space is never made.
    let spaces = build(&["<bos>", " ", "\u{2581}"], &[], &[]).unwrap();
    assert_eq!(spaces.encode("  \u{2581}", EncodeOptions::TEXT), [2, 2, 2]);
}

/// All special tokens of type "control": nothing is cut out where special tokens are text.
#[test]
fn only_user_defined_tokens_are_cut_out_of_text() {
    let tokens = ["<bos>", "<", "x", ">", "<x>"];
    for (kind, ids) in [(3, &[1, 2, 3][..]), (4, &[4])] {
        let tokenizer = build(&tokens, &[3, 1, 1, 1, kind], &[]).unwrap();
        assert_eq!(tokenizer.encode("<x>", EncodeOptions::TEXT), ids);
        assert_eq!(tokenizer.encode("<x>", EncodeOptions::PART), [4]);
    }
}

fn read(set: impl FnOnce(&mut Writer)) -> Result<Tokenizer, TokenizerError> {
    let mut writer = Writer::new();
    set(&mut writer);
    let file = writer.begin(Vec::new()).unwrap().finish().unwrap();
    Tokenizer::from_gguf(&pollster::block_on(Header::read(&MemorySource::new(file))).unwrap())
}

fn set_vocabulary(writer: &mut Writer, model: &str) {
    writer.set("tokenizer.ggml.model", model).unwrap();
    writer.set("tokenizer.ggml.tokens", &["<bos>", "a", "b", "ab"][..]).unwrap();
    writer.set("tokenizer.ggml.merges", &["a b"][..]).unwrap();
}

#[test]
fn other_tokenizers_are_refused_by_name() {
    assert!(read(|writer| set_vocabulary(writer, "gemma4")).is_ok());
    for model in ["gpt2", "bert", "none", ""] {
        let error = read(|writer| set_vocabulary(writer, model)).unwrap_err();
        assert_eq!(error.code(), "tokenizer.unsupported");
        assert!(error.to_string().contains(&format!("`{model}`")), "{error}");
    }
    // `llama` is Gemma's only where something says so, and there are merges.
    let llama = |key: &'static str, value: &'static str| {
        read(move |writer| {
            set_vocabulary(writer, "llama");
            writer.set(key, value).unwrap();
        })
    };
    assert!(llama("general.architecture", "gemma4").is_ok());
    assert!(llama("tokenizer.ggml.pre", "gemma4").is_ok());
    let error = llama("general.architecture", "llama").unwrap_err();
    assert!(error.to_string().contains("`llama`"), "{error}");
    let error = read(|writer| {
        writer.set("general.architecture", "gemma4").unwrap();
        writer.set("tokenizer.ggml.model", "llama").unwrap();
        writer.set("tokenizer.ggml.tokens", &["<bos>"][..]).unwrap();
    });
    assert!(error.unwrap_err().to_string().contains("without merges"));
}

#[test]
fn wrong_keys_are_refused() {
    let refused = |set: fn(&mut Writer)| {
        let result = read(|writer| {
            set_vocabulary(writer, "gemma4");
            set(writer);
        });
        result.map(|_| ()).unwrap_err()
    };
    assert_eq!(read(|_| ()).unwrap_err().code(), "tokenizer.metadata");
    let error = refused(|w| w.set("tokenizer.ggml.token_type", &[3, 1][..]).unwrap());
    assert!(matches!(error, TokenizerError::TypeCount { found: 2, expected: 4 }));
    let error = refused(|w| w.set("tokenizer.ggml.token_type", &[0_i32; 0][..]).unwrap());
    assert!(matches!(error, TokenizerError::TypeCount { found: 0, expected: 4 }));
    let error = refused(|w| w.set("tokenizer.ggml.token_type", "normal").unwrap());
    assert!(matches!(error, TokenizerError::Metadata(_)));
    let error = refused(|w| w.set("tokenizer.ggml.bos_token_id", 4_u32).unwrap());
    assert!(matches!(error, TokenizerError::RoleOutOfRange { key: "bos_token_id", id: 4, tokens: 4 }));
    let error = refused(|w| w.set("tokenizer.ggml.eos_token_ids", &[1, -1][..]).unwrap());
    assert!(matches!(error, TokenizerError::RoleOutOfRange { key: "eos_token_ids", id: -1, tokens: 4 }));
    let error = refused(|w| w.set("tokenizer.ggml.eot_token_id", 9_u32).unwrap());
    assert!(matches!(error, TokenizerError::RoleOutOfRange { key: "eot_token_id", id: 9, .. }));
}

proptest! {
    /// Whatever the vocabulary holds, nothing panics and every id is in range.
    #[test]
    fn any_vocabulary_is_safe(
        mut tokens in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 1..40),
        pairs in prop::collection::vec((any::<usize>(), any::<usize>()), 0..40),
        types in prop::collection::vec(0..7, 80),
        texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 4),
    ) {
        tokens.push(b"<bos>".to_vec());
        let mut merges = Vec::new();
        for (left, right) in pairs {
            let (left, right) = (&tokens[left % tokens.len()], &tokens[right % tokens.len()]);
            let named = |text: &[u8]| !text.is_empty() && !text.contains(&b' ');
            if tokens.len() < 80 && named(left) && named(right) {
                merges.push([left, &b" "[..], right].concat());
                let joined = [&left[..], right].concat();
                tokens.push(joined);
            }
        }
        let tokenizer = Tokenizer::from_parts(Parts {
            tokens: tokens.iter().map(Vec::as_slice),
            types: &types[..tokens.len()],
            merges: merges.iter().map(Vec::as_slice),
            roles: Roles::default(),
        }).unwrap();
        // The tokens themselves, one after another, make merges likely.
        let texts = texts.into_iter().chain([tokens.concat(), tokens[0].repeat(100)]);
        for text in texts {
            for options in [EncodeOptions::PROMPT, EncodeOptions::TEXT] {
                let ids = tokenizer.encode_bytes(&text, options);
                let decoded = tokenizer.decode(&ids, SpecialOutput::All).unwrap();
                let mut decoder = StreamDecoder::new(SpecialOutput::All);
                let mut streamed = String::new();
                for id in ids {
                    streamed.push_str(decoder.push(&tokenizer, id).unwrap());
                }
                streamed.push_str(decoder.finish());
                prop_assert_eq!(streamed, decoded);
            }
        }
    }
}
