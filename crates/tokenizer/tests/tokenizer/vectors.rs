//! Ids from outside: llama.cpp's own test vectors, and two hundred texts encoded by other engines.

use rullama_tokenizer::{EncodeOptions, SpecialOutput};
use serde::Deserialize;

use crate::common::{Obvious, gemma, testdata};

#[derive(Deserialize)]
struct Vector {
    text: String,
    ids: Vec<u32>,
}

fn vectors() -> Vec<Vector> {
    serde_json::from_slice(&testdata("tokenizer/vectors.json")).unwrap()
}

fn check(text: &str, ids: &[u32]) {
    assert_eq!(gemma().encode(text, EncodeOptions::PART), ids, "ids of {text:?}");
    if !text.contains('\u{2581}') {
        assert_eq!(gemma().decode(ids, SpecialOutput::All).unwrap(), text, "text of {ids:?}");
    }
}

#[test]
fn ids_match_the_vectors() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 210);
    for vector in vectors {
        check(&vector.text, &vector.ids);
    }
}

#[test]
fn ids_match_llama_cpp() {
    let input = String::from_utf8(testdata("tokenizer/llama-cpp.inp")).unwrap();
    let output = String::from_utf8(testdata("tokenizer/llama-cpp.out")).unwrap();
    // Every text is followed by a separator, the last one too.
    let texts: Vec<&str> = input.split("\n__ggml_vocab_test__\n").collect();
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines.len() > 40 && (lines.len()..=lines.len() + 1).contains(&texts.len()));
    for (text, line) in texts.into_iter().zip(lines) {
        let ids: Vec<u32> = line.split_whitespace().map(|id| id.parse().unwrap()).collect();
        check(text, &ids);
    }
}

/// The obvious implementation that other tests compare with is itself right.
#[test]
fn the_obvious_implementation_matches_the_vectors() {
    for vector in vectors().into_iter().filter(|vector| !vector.text.contains(['<', '\u{2581}'])) {
        assert_eq!(Obvious::gemma().encode(&vector.text), vector.ids, "{:?}", vector.text);
    }
}

#[test]
fn ids_match_known_examples() {
    for (text, ids) in [
        ("hello", &[23391][..]),
        ("hello world", &[23391, 1902]),
        ("Hello, World!", &[9259, 236764, 4109, 236888]),
        (" hello", &[29104]),
        ("  hello", &[138, 23391]),
        ("hello  world", &[23391, 138, 12392]),
        ("   ", &[139]),
        ("      ", &[142]),
        ("multiple    spaces", &[43819, 140, 35220]),
        ("ąęśćżźółń", &[237198, 237202, 14732, 237277, 238992, 24875, 238041]),
        ("café résumé naïve", &[123125, 236859, 118515, 120362]),
        ("L'élève a mangé", &[236798, 236789, 161654, 496, 14695, 236859]),
        ("über Straße Größe", &[28223, 80176, 112880]),
        ("ĀāĂăĄą", &[241920, 237448, 241645, 237106, 243514, 237198]),
        ("你好世界", &[144626, 12811]),
        ("こんにちは", &[85141]),
        ("\n\n", &[108]),
        ("\t\t", &[255969]),
        ("\n", &[107]),
        ("\n\n\n", &[109]),
        ("\t\n", &[255968, 107]),
        ("def foo(x): return x + 1", &[2063, 46293, 236769, 236781, 1473, 994, 1123, 900, 236743, 236770]),
        ("{\"key\": \"value\"}", &[14937, 2478, 1083, 623, 2394, 25938]),
        ("aaaaaa", &[50354, 9236]),
        ("hello 👋 world", &[23391, 155818, 1902]),
        ("12345", &[236770, 236778, 236800, 236812, 236810]),
        ("3.14159", &[236800, 236761, 236770, 236812, 236770, 236810, 236819]),
        ("33333333", &[236800; 8]),
        ("Hello world", &[9259, 1902]),
        (" Hello world", &[26352, 1902]),
        ("Hello World", &[9259, 4109]),
        (" (", &[568]),
        ("\n =", &[107, 578]),
        ("' era", &[236789, 6933]),
        ("ied 4 ½ months", &[1178, 236743, 236812, 47041, 3794]),
        ("Äpfel", &[239122, 22744, 535]),
        (" Hello World!", &[26352, 4109, 236888]),
        ("Hello, world!", &[9259, 236764, 1902, 236888]),
        (" this is 🦙.cpp", &[672, 563, 236743, 478, 397, 404, 391, 236761, 12362]),
        (
            "w048 7tuijk dsdfhu",
            &[236765, 236771, 236812, 236828, 236743, 236832, 11372, 12065, 31806, 3405, 9360],
        ),
        ("нещо на Български", &[1337, 12515, 1333, 4632, 165543, 3830]),
    ] {
        check(text, ids);
    }
}
