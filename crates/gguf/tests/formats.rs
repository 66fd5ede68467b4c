//! Every format decodes to what ggml decodes, sizes follow the table of the file format, and no bytes panic.

use std::str::FromStr;

use proptest::prelude::*;
use rullama_gguf::format::{Format, FormatError, UnknownFormat};
use safetensors::SafeTensors;

/// The quantised formats that have blocks and ggml's decoding of them in `blocks.safetensors`.
const WITH_GOLDENS: [Format; 25] = [
    Format::Q4_0,
    Format::Q4_1,
    Format::Q5_0,
    Format::Q5_1,
    Format::Q8_0,
    Format::Q2_K,
    Format::Q3_K,
    Format::Q4_K,
    Format::Q5_K,
    Format::Q6_K,
    Format::IQ1_S,
    Format::IQ1_M,
    Format::IQ2_XXS,
    Format::IQ2_XS,
    Format::IQ2_S,
    Format::IQ3_XXS,
    Format::IQ3_S,
    Format::IQ4_NL,
    Format::IQ4_XS,
    Format::TQ1_0,
    Format::TQ2_0,
    Format::MXFP4,
    Format::NVFP4,
    Format::Q1_0,
    Format::Q2_0,
];

fn decode(format: Format, blocks: &[u8]) -> Vec<f32> {
    let mut out = vec![0.0; blocks.len() / format.block_bytes() * format.block_len()];
    format.decode(blocks, &mut out).expect("the sizes fit");
    out
}

fn encode(format: Format, values: &[f32]) -> Vec<u8> {
    let mut out = vec![0; values.len() / format.block_len() * format.block_bytes()];
    format.encode(values, &mut out).expect("the sizes fit");
    out
}

/// Equal bits, or both NaN: which NaN an operation makes of two is up to the processor.
fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// Equal bits, both NaN, or neighbours: an order of operations may cost one unit in the last place.
fn within_one_ulp(a: f32, b: f32) -> bool {
    // Maps the floats to integers in their own order, both zeros to 0.
    let ordered = |v: f32| {
        let magnitude = i64::from(v.to_bits() & 0x7fff_ffff);
        if v.is_sign_negative() { -magnitude } else { magnitude }
    };
    same(a, b) || (!a.is_nan() && !b.is_nan() && (ordered(a) - ordered(b)).abs() <= 1)
}

/// Random blocks of 25 formats decode to ggml's values.
#[test]
fn decodes_as_ggml() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/blocks.safetensors");
    let file = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let file = SafeTensors::deserialize(&file).unwrap();

    for format in WITH_GOLDENS {
        let tensor = |suffix: &str| {
            let name = file
                .names()
                .into_iter()
                .find(|name| name.eq_ignore_ascii_case(&format!("{format}.{suffix}")))
                .unwrap_or_else(|| panic!("no {suffix} of {format} in {path}"));
            file.tensor(name).unwrap()
        };
        let (blocks, golden) = (tensor("blocks"), tensor("values"));
        assert_eq!(blocks.shape(), [24, format.block_bytes()], "{format}");
        assert_eq!(golden.shape(), [24, format.block_len()], "{format}");

        let golden = decode(Format::F32, golden.data());
        for (at, (ours, golden)) in decode(format, blocks.data()).into_iter().zip(golden).enumerate() {
            assert!(
                within_one_ulp(ours, golden),
                "{format}: value {} of block {} is {ours:e}; ggml has {golden:e}",
                at % format.block_len(),
                at / format.block_len(),
            );
        }
    }
}

/// The file has no format that the list above leaves out.
#[test]
fn goldens_are_all_used() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/blocks.safetensors");
    let file = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    for name in SafeTensors::deserialize(&file).unwrap().names() {
        let format: Format = name.split('.').next().unwrap().parse().unwrap();
        assert!(WITH_GOLDENS.contains(&format), "{format}");
    }
}

#[test]
fn q8_1_and_q8_k_are_a_scale_and_signed_bytes() {
    let quants: Vec<u8> = (0..32).map(|i| (i * 8 - 128i32) as u8).collect();
    let block = [&[0x00, 0x38, 0xff, 0x7f], quants.as_slice()].concat();
    let expected: Vec<f32> = (0..32).map(|i| 0.5 * (i * 8 - 128) as f32).collect();
    assert_eq!(decode(Format::Q8_1, &block), expected);

    let quants: Vec<u8> = (0..256).map(|i| (i - 128i32) as u8).collect();
    let block = [&0.1f32.to_le_bytes(), quants.as_slice(), &[0xab; 32]].concat();
    let expected: Vec<f32> = (0..256).map(|i| 0.1 * (i - 128) as f32).collect();
    assert_eq!(decode(Format::Q8_K, &block), expected);
}

#[test]
fn numbers_decode_to_themselves() {
    let bytes_of = |values: &[f64]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
    assert_eq!(decode(Format::F64, &bytes_of(&[0.1, -2.5, 1e300])), [0.1, -2.5, f32::INFINITY]);
    assert_eq!(decode(Format::F32, &(-0.3f32).to_le_bytes()), [-0.3]);
    assert_eq!(decode(Format::I8, &[0x80, 0xff, 0x7f]), [-128.0, -1.0, 127.0]);
    assert_eq!(decode(Format::I16, &[0x00, 0x80, 0xff, 0x7f]), [-32768.0, 32767.0]);
    assert_eq!(decode(Format::I32, &(-16_777_215i32).to_le_bytes()), [-16_777_215.0]);
    assert_eq!(decode(Format::I64, &(-(1i64 << 40)).to_le_bytes()), [-(2f32.powi(40))]);
    assert_eq!(
        decode(Format::F16, &[0x00, 0x3c, 0x01, 0x00, 0x00, 0xfc]),
        [1.0, 2f32.powi(-24), f32::NEG_INFINITY]
    );
    assert_eq!(decode(Format::BF16, &[0x80, 0x3f, 0x49, 0xc0]), [1.0, -3.140_625]);
}

/// Ids, sizes and spellings, against a few rows of ggml's table and each other.
#[test]
fn table_is_consistent() {
    let mut last = None;
    for &format in Format::ALL {
        assert_eq!(Format::from_id(format.id()), Ok(format));
        assert_eq!(Format::from_str(format.name()), Ok(format));
        assert_eq!(Format::from_str(&format.name().to_lowercase()), Ok(format));
        assert_eq!(format.to_string(), format.name());
        assert_eq!(format.row_bytes(format.block_len() as u64 * 3), Some(format.block_bytes() as u64 * 3));
        assert_eq!(format.is_quantised(), format.block_len() != 1);
        assert!(last < Some(format.id()), "{format} is out of order");
        last = Some(format.id());
    }
    assert_eq!(Format::ALL.len(), 35);
    assert_eq!((Format::Q6_K.id(), Format::Q6_K.block_len(), Format::Q6_K.block_bytes()), (14, 256, 210));
    assert_eq!(Format::Q4_K.row_bytes(255), None);
    assert_eq!(Format::F64.row_bytes(u64::MAX / 8), Some(u64::MAX - 7));
    assert_eq!(Format::F64.row_bytes(u64::MAX / 4), None);
    assert_eq!(Format::Q8_1.row_bytes(u64::MAX - 31), None);
}

#[test]
fn removed_and_unknown_ids_differ() {
    for id in [4, 5, 31, 32, 33, 36, 37, 38] {
        assert_eq!(Format::from_id(id), Err(UnknownFormat::Removed { id }));
    }
    for id in [43, 44, 1000, u32::MAX] {
        assert_eq!(Format::from_id(id), Err(UnknownFormat::Unknown { id }));
    }
    assert_eq!(UnknownFormat::Removed { id: 4 }.code(), "format.removed");
    assert_eq!(
        UnknownFormat::Unknown { id: 99 }.to_string(),
        "tensor type 99 is unknown (expected at most 42)",
    );
    assert!(Format::from_str("Q4_").is_err());
}

#[test]
fn wrong_lengths_are_errors() {
    let partial = Format::Q8_0.decode(&[0; 35], &mut [0.0; 32]).unwrap_err();
    assert_eq!(partial, FormatError::PartialBlock { format: Format::Q8_0, found: 35, block_bytes: 34 });
    assert_eq!(partial.to_string(), "can't decode Q8_0: got 35 bytes (expected a multiple of 34)");

    let room = Format::Q8_0.decode(&[0; 68], &mut [0.0; 32]).unwrap_err();
    assert_eq!(room, FormatError::WrongValueCount { format: Format::Q8_0, found: 32, expected: 64 });

    let partial = Format::Q4_K.encode(&[0.0; 128], &mut [0; 72]).unwrap_err();
    assert_eq!(
        partial,
        FormatError::PartialBlockOfValues { format: Format::Q4_K, found: 128, block_len: 256 }
    );

    let room = Format::F16.encode(&[0.0; 3], &mut [0; 5]).unwrap_err();
    assert_eq!(room, FormatError::WrongByteCount { format: Format::F16, found: 5, expected: 6 });

    let refused = Format::IQ1_S.encode(&[0.0; 256], &mut [0; 50]).unwrap_err();
    assert_eq!(refused, FormatError::CannotEncode { format: Format::IQ1_S });
    assert_eq!(
        refused.to_string(),
        "can't encode IQ1_S: rullama only reads this format (it writes F32, F16, Q4_0, Q5_0, Q8_0, Q4_K, Q6_K, BF16)",
    );
    for &format in Format::ALL {
        let values = vec![0.0; format.block_len()];
        let result = format.encode(&values, &mut vec![0; format.block_bytes()]);
        assert_eq!(result.is_ok(), format.can_encode(), "{format}");
    }
}

#[test]
fn nothing_decodes_to_nothing() {
    for &format in Format::ALL {
        assert_eq!(format.decode(&[], &mut []), Ok(()));
    }
}

proptest! {
    /// Any bytes of the right length decode, whatever they are.
    #[test]
    fn any_bytes_decode(
        format in prop::sample::select(Format::ALL),
        bytes in prop::collection::vec(any::<u8>(), 0..1200),
    ) {
        let whole = bytes.len() - bytes.len() % format.block_bytes();
        decode(format, &bytes[..whole]);
    }

    /// A block decodes alike alone and among others.
    #[test]
    fn blocks_are_independent(
        format in prop::sample::select(Format::ALL),
        bytes in prop::collection::vec(any::<u8>(), 600..1200),
    ) {
        let blocks: Vec<_> = bytes.chunks_exact(format.block_bytes()).collect();
        let together = decode(format, &blocks.concat());
        for (block, together) in blocks.iter().zip(together.chunks_exact(format.block_len())) {
            let alone = decode(format, block);
            prop_assert!(alone.iter().zip(together).all(|(&a, &b)| same(a, b)), "{format}");
        }
    }

    /// Half floats and bfloat16 come back as they were; a NaN comes back as a NaN.
    #[test]
    fn sixteen_bit_floats_survive(words in prop::collection::vec(any::<u16>(), 0..200)) {
        for (format, nan) in [(Format::F16, 0x7c00), (Format::BF16, 0x7f80)] {
            let bytes: Vec<u8> = words
                .iter()
                .filter(|&&word| word & 0x7fff <= nan)
                .flat_map(|word| word.to_le_bytes())
                .collect();
            prop_assert_eq!(encode(format, &decode(format, &bytes)), bytes);
        }
        for format in [Format::F16, Format::BF16] {
            prop_assert!(decode(format, &encode(format, &[f32::NAN]))[0].is_nan());
        }
    }
}
