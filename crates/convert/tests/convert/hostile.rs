//! Files of weights from strangers: cut off, changed, or made up. There is always an answer, and never a file that
//! claims to be whole.

use std::fs;

use proptest::prelude::*;
use rullama_convert::{ConvertError, ConvertOptions, plan};

use crate::checkpoint::Checkpoint;

/// Plans and, if that succeeds, converts.
fn try_all(checkpoint: &Checkpoint) -> Result<(), ConvertError> {
    plan(checkpoint.path(), &ConvertOptions::default())?.write(std::io::sink(), |_, _| ())
}

fn with_weights(bytes: &[u8]) -> Result<(), ConvertError> {
    thread_local! {
        static CHECKPOINT: Checkpoint = Checkpoint::new();
    }
    CHECKPOINT.with(|checkpoint| {
        fs::write(checkpoint.weights(), bytes).unwrap();
        try_all(checkpoint)
    })
}

fn weights() -> Vec<u8> {
    fs::read(Checkpoint::new().weights()).unwrap()
}

/// A file with this header and no data.
fn headed(header: &str) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat()
}

#[test]
fn headers_by_name() {
    for (header, why) in [
        ("", "no JSON"),
        ("{", "cut off"),
        ("[]", "no object"),
        ("{}", "no tensors"),
        (r#"{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}"#, "no data"),
        (r#"{"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}"#, "an empty tensor"),
        (r#"{"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}"#, "an end before its start"),
        (r#"{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}"#, "another length"),
        (r#"{"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}"#, "another type"),
        (r#"{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}"#, "a negative extent"),
        (
            r#"{"a": {"dtype": "F32", "shape": [4294967296, 4294967296, 4294967296], "data_offsets": [0, 4]}}"#,
            "an extent beyond all numbers",
        ),
        (
            r#"{"a": {"dtype": "F32", "shape": [4611686018427387904], "data_offsets": [0, 18446744073709551615]}}"#,
            "an end beyond all files",
        ),
        (
            r#"{"a": {"dtype": "U8", "shape": [18446744073709551615], "data_offsets": [0, 18446744073709551615]}}"#,
            "a file as long as numbers go",
        ),
    ] {
        assert!(with_weights(&headed(header)).is_err(), "{why}");
    }
    for length in [0, 1, u64::from(u32::MAX), 100_000_001, u64::MAX - 7, u64::MAX] {
        assert!(with_weights(&length.to_le_bytes()).is_err(), "a header of {length} bytes");
    }
    assert!(with_weights(&[]).is_err() && with_weights(&[1, 2, 3]).is_err());
    assert!(with_weights(&weights()).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_cut_off_or_too_long_is_refused(at in any::<prop::sample::Index>(), more in 1usize..100) {
        let whole = weights();
        prop_assert!(with_weights(&whole[..at.index(whole.len())]).is_err());
        prop_assert!(with_weights(&[&whole[..], &vec![0; more]].concat()).is_err());
    }

    /// A changed byte is an error, or changes no more than a value.
    #[test]
    fn changed_headers_have_an_answer(at in any::<prop::sample::Index>(), byte in any::<u8>(), more in 0usize..4) {
        let mut bytes = weights();
        let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        for step in 0..=more {
            let place = (at.index(header) + step * 7919) % header;
            bytes[place] = byte.wrapping_add(step as u8);
        }
        let _ = with_weights(&bytes);
    }

    #[test]
    fn made_up_headers_have_an_answer(
        name in "[a-z.]{0,12}",
        dtype in prop::sample::select(vec!["F32", "F16", "BF16", "F64", "I8", "F4", "BOOL"]),
        shape in prop::collection::vec(any::<u64>(), 0..5),
        start in any::<u64>(),
        end in any::<u64>(),
    ) {
        let header = serde_json::json!({name: {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}});
        prop_assert!(with_weights(&headed(&header.to_string())).is_err());
    }

    #[test]
    fn noise_has_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(with_weights(&bytes).is_err());
    }
}
