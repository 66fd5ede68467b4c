//! What holds for every text and every sequence of ids, with the whole vocabulary of Gemma 4.

use proptest::prelude::*;
use rullama_tokenizer::{EncodeOptions, SpecialOutput, StreamDecoder};

use crate::common::{Obvious, gemma};

/// Texts over alphabets that make merges compete: few letters, runs, words, scripts with and without
/// tokens for their characters, code.
fn mergeable_text() -> impl Strategy<Value = String> {
    let alphabets = prop_oneof![
        Just(&["a", "b"][..]),
        Just(&["a", "e", "n", "r", "s", "t", "i", "o"][..]),
        Just(&[" ", "a", "\u{2581}", ">"][..]),
        Just(&["\n", " ", "\t", "x"][..]),
        Just(&["the", " the", "ing", "er", " un", "re", "ion", "s"][..]),
        Just(&["=", "-", "*", "/", "#", "."][..]),
        Just(&["fn", "(", ")", "{", "}", ";", " ", "    ", "::", "<", ">", "\"", "0", "_", "\n"][..]),
        Just(&["中", "国", "人", "的", "一", "是", "不", "了", "。"][..]),
        Just(&["ん", "に", "ち", "は", "の", "ー", "ス", "ト"][..]),
        Just(&["한", "국", "어", "의", "는", " "][..]),
        Just(&["👋", "🦙", "😀", "❤", "\u{FE0F}", "\u{200D}", "👨", "👩"][..]),
        Just(&["é", "e", "\u{301}", "ü", "ß", "ą", " "][..]),
        Just(&["п", "р", "и", "в", "е", "т", " "][..]),
        Just(&["न", "म", "स", "्", "त", "े", " "][..]),
    ];
    (alphabets, prop::collection::vec((any::<prop::sample::Index>(), 1..9_usize), 0..50), any::<bool>())
        .prop_map(|(alphabet, picks, runs)| {
            let pick = |(index, times): (prop::sample::Index, usize)| {
                alphabet[index.index(alphabet.len())].repeat(if runs { times } else { 1 })
            };
            picks.into_iter().map(pick).collect()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Encoding gives what the rule gives, however the text is cut, cached and windowed.
    #[test]
    fn encoding_follows_the_rule(text in mergeable_text()) {
        prop_assert_eq!(gemma().encode(&text, EncodeOptions::TEXT), Obvious::gemma().encode(&text));
    }

    /// The same for any characters at all.
    #[test]
    fn encoding_follows_the_rule_for_any_text(text in any::<String>()) {
        prop_assert_eq!(gemma().encode(&text, EncodeOptions::TEXT), Obvious::gemma().encode(&text));
    }

    /// Encoding can be undone, whatever special tokens mean.
    #[test]
    fn text_comes_back(parts in prop::collection::vec(prop_oneof![
        any::<String>(),
        mergeable_text(),
        (0_u32..262_144).prop_map(|id| String::from_utf8_lossy(gemma().token_text(id).unwrap()).into_owned()),
        Just("<|turn>".to_owned()),
        Just("<|tool_call>".to_owned()),
    ], 0..6)) {
        let text = parts.concat().replace('\u{2581}', " ");
        for options in [EncodeOptions::PART, EncodeOptions::TEXT] {
            let ids = gemma().encode(&text, options);
            prop_assert_eq!(&gemma().decode(&ids, SpecialOutput::All).unwrap(), &text);
        }
    }

    /// Bytes come back too, as long as they do not hold U+2581.
    #[test]
    fn bytes_come_back(bytes in prop::collection::vec(
        prop_oneof![any::<u8>(), Just(b' '), Just(b'\n'), Just(0xE2), Just(0xF0)], 0..100,
    )) {
        prop_assume!(!bytes.windows(3).any(|window| window == "\u{2581}".as_bytes()));
        let ids = gemma().encode_bytes(&bytes, EncodeOptions::TEXT);
        prop_assert_eq!(gemma().decode_bytes(&ids, SpecialOutput::All).unwrap(), bytes);
    }

    /// A stream of any ids gives the text of all of them at once, and never part of a character.
    #[test]
    fn streams_agree_with_decoding(
        ids in prop::collection::vec(prop_oneof![0_u32..262_144, 238_u32..494, 0_u32..110], 0..60),
    ) {
        for special in [SpecialOutput::Hidden, SpecialOutput::ForParser, SpecialOutput::All] {
            let mut decoder = StreamDecoder::new(special);
            let mut streamed = String::new();
            for &id in &ids {
                streamed.push_str(decoder.push(gemma(), id).unwrap());
            }
            streamed.push_str(decoder.finish());
            let bytes = gemma().decode_bytes(&ids, special).unwrap();
            prop_assert_eq!(&streamed, &String::from_utf8_lossy(&bytes));
            prop_assert_eq!(streamed, gemma().decode(&ids, special).unwrap());
        }
    }
}

/// Texts much longer than a window, against the rule; fewer of them, because the rule is slow.
#[test]
fn long_texts_follow_the_rule() {
    for unit in
        ["a", "ab", " ", "=", "\n", "the", "aé", "中国", "na", "haha", "aaab", "-=", "\t", ">  ", "ing"]
    {
        for length in [100, 333, 1000] {
            let text: String = unit.chars().cycle().take(length).collect();
            let ids = gemma().encode(&text, EncodeOptions::TEXT);
            assert_eq!(ids, Obvious::gemma().encode(&text), "{length} characters of {unit:?}");
        }
    }
    // Letters without any order, all of which merge.
    let mut state = 1_u64;
    let letters: String = (0..1500)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + ((state >> 33) % 26) as u8)
        })
        .collect();
    assert_eq!(gemma().encode(&letters, EncodeOptions::TEXT), Obvious::gemma().encode(&letters));
}
