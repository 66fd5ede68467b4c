//! Packing loses nothing: what a kernel reads from the planes is what the decoder reads from the blocks.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use proptest::prelude::*;
use rullama_gguf::Format;
use rullama_gpu::weights::pack::{PACKED_FORMATS, Packing, resident_format};
use safetensors::SafeTensors;

fn decode(format: Format, blocks: &[u8]) -> Vec<f32> {
    let mut out = vec![0.0; blocks.len() / format.block_bytes() * format.block_len()];
    format.decode(blocks, &mut out).unwrap();
    out
}

/// Packs into planes full of `rubbish`, which packing must leave nothing of.
fn pack(packing: &Packing, blocks: &[u8], rubbish: u32) -> [Vec<u32>; 3] {
    let rows = blocks.len() / packing.bytes_per_row();
    let mut planes = packing.plane_words.map(|words| vec![rubbish; rows * words as usize]);
    packing.pack_rows(blocks, planes.each_mut().map(Vec::as_mut_slice));
    planes
}

fn unpack(packing: &Packing, planes: &[Vec<u32>; 3], rows: usize) -> Vec<f32> {
    let mut out = vec![0.0; rows * packing.width as usize];
    for (row, out) in out.chunks_mut(packing.width as usize).enumerate() {
        let plane = |p: usize| &planes[p][row * packing.plane_words[p] as usize..];
        packing.unpack_row([plane(0), plane(1), plane(2)], out);
    }
    out
}

/// Packs rows and compares what is read back.
///
/// All formats compare exactly. The products that differ from the decoder's do so by a power of two that
/// moves from the scale to the quant, and a product with a half float never comes near the subnormals, where
/// that would round. Which NaN an operation makes is up to the processor, and either zero is zero.
fn check_round_trip(format: Format, width: u32, blocks: &[u8]) {
    let packing = Packing::new(format, width).unwrap();
    let rows = blocks.len() / packing.bytes_per_row();
    let planes = pack(&packing, blocks, 0xdead_beef);
    assert_eq!(planes, pack(&packing, blocks, 0), "{format}: every word is written");

    let unpacked = unpack(&packing, &planes, rows);
    for (at, (ours, decoded)) in unpacked.into_iter().zip(decode(format, blocks)).enumerate() {
        assert!(
            ours == decoded || (ours.is_nan() && decoded.is_nan()),
            "{format}, width {width}: value {} of row {} is {ours:e}; the decoder has {decoded:e}",
            at % width as usize,
            at / width as usize,
        );
    }
}

fn fixture(format: Format) -> Option<Vec<u8>> {
    let path = common::testdata("gguf/blocks.safetensors");
    let file = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = SafeTensors::deserialize(&file).unwrap();
    let wanted = format!("{format}.blocks");
    let name = file.names().into_iter().find(|name| name.eq_ignore_ascii_case(&wanted))?;
    Some(file.tensor(name).unwrap().data().to_vec())
}

/// Rows of one block, of several, and of odd numbers of them.
#[test]
fn blocks_of_ggml_survive() {
    for format in PACKED_FORMATS.into_iter().filter(|format| format.is_quantised()) {
        let blocks = fixture(format).unwrap_or_else(|| panic!("no blocks of {format}"));
        for blocks_per_row in [1, 2, 3, 8, 24] {
            check_round_trip(format, (blocks_per_row * format.block_len()) as u32, &blocks);
        }
        let five = &blocks[..20 * format.block_bytes()];
        check_round_trip(format, (5 * format.block_len()) as u32, five);
    }
}

/// Every pattern of 16 bits as a half float and as a bfloat, in rows that end within a group and within a word.
#[test]
fn floats_of_any_width_survive() {
    let bits: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for format in [Format::F16, Format::BF16, Format::F32] {
        for width in [1, 31, 32, 33, 100, 101, 256, 4096] {
            let row = width as usize * format.block_bytes();
            check_round_trip(format, width, &bits[..bits.len() / row * row]);
        }
    }
}

/// A row is padded to whole groups with zeros, which kernels read and which must not disturb a sum.
#[test]
fn padding_is_zero() {
    let packing = Packing::new(Format::F16, 101).unwrap();
    assert_eq!(packing.plane_words, [64, 0, 0]);
    let [words, ..] = pack(&packing, &[0xff; 2 * 202], u32::MAX);
    for row in words.chunks(64) {
        assert!(row[..50].iter().all(|&word| word == u32::MAX));
        assert_eq!(row[50], 0xffff);
        assert!(row[51..].iter().all(|&word| word == 0));
    }
}

/// Packed rows take the bits that they take in the file, but for the last word of the scales.
#[test]
fn bits_per_weight_stay() {
    for format in PACKED_FORMATS.into_iter().filter(|format| format.is_quantised()) {
        for blocks in 1..=9 {
            let packing = Packing::new(format, blocks * format.block_len() as u32).unwrap();
            let padding = packing.row_words() as usize * 4 - packing.bytes_per_row();
            assert!(padding < 4, "{format}: {padding} bytes more than in the file for {blocks} blocks");
        }
    }
}

/// Planes start at whole quads of words, as do the rows that fragments read in quads; likewise for pairs.
#[test]
fn rows_can_be_read_in_quads() {
    for format in PACKED_FORMATS {
        let whole = match format {
            Format::Q4_K | Format::Q5_K => [4, 4, 1],
            Format::IQ4_XS => [4, 2, 1],
            Format::Q6_K => [4, 1, 2],
            _ => [4, 1, 1],
        };
        for blocks in 1..=70 {
            let packing = Packing::new(format, blocks * format.block_len() as u32).unwrap();
            for (words, whole) in packing.plane_words.into_iter().zip(whole) {
                assert!(words.is_multiple_of(whole), "{format}: {words} words for {blocks} blocks");
            }
            for rows in 0..9 {
                let starts = packing.plane_starts(rows);
                assert!(starts.iter().all(|start| start.is_multiple_of(4)), "{format}: {starts:?}");
                for (plane, words) in packing.plane_words.into_iter().enumerate() {
                    let room = starts[plane + 1] - starts[plane];
                    assert!(room >= rows * u64::from(words), "{format}: {room} words for {rows} rows");
                }
                let [.., end] = starts;
                let within = packing.rows_within(4 * end);
                assert!(within <= rows && within + 1 >= rows, "{format}: {within} rows fit where {rows} do");
            }
        }
    }
}

/// A buffer with room for some rows, padding included, is never too small for them.
#[test]
fn rows_within_a_buffer_fit() {
    for format in PACKED_FORMATS {
        let packing = Packing::new(format, 3 * 256).unwrap();
        for bytes in 0..20_000 {
            let [.., end] = packing.plane_starts(packing.rows_within(bytes));
            assert!(4 * end <= bytes, "{format}: {end} words in {bytes} bytes");
        }
    }
}

#[test]
fn what_cannot_be_packed_has_no_packing() {
    for &format in Format::ALL {
        let width = 256;
        assert_eq!(Packing::new(format, width).is_some(), PACKED_FORMATS.contains(&format), "{format}");
        assert_eq!(Packing::new(format, 0), None, "{format}");
        if format.is_quantised() {
            assert_eq!(Packing::new(format, width + 16), None, "{format}");
        }
    }
}

/// A format without kernels becomes one that has them, can be written, and keeps the values.
#[test]
fn other_formats_are_converted() {
    for &format in Format::ALL {
        let resident = resident_format(format, 256);
        assert!(Packing::new(resident, 256).is_some(), "{format} becomes {resident}");
        if PACKED_FORMATS.contains(&format) {
            assert_eq!(resident, format);
            continue;
        }
        assert!(resident.can_encode(), "{format} becomes {resident}");

        let Some(blocks) = fixture(format) else { continue };
        let values = decode(format, &blocks);
        let mut converted = vec![0; values.len() / resident.block_len() * resident.block_bytes()];
        resident.encode(&values, &mut converted).unwrap();
        // Half a step of Q8_0, whose 127 steps reach the largest of 32; and what those 127 lose together when
        // the step is so small that it is a subnormal half float, rounded to a multiple of 2^-24.
        assert_eq!(resident, Format::Q8_0, "{format}");
        for (before, after) in values.chunks(32).zip(decode(resident, &converted).chunks(32)) {
            let largest = before.iter().fold(0f32, |largest, value| largest.max(value.abs()));
            for (before, after) in before.iter().zip(after) {
                assert!(
                    (before - after).abs() <= largest / 253.0 + 127.0 * 2f32.powi(-25),
                    "{format}: {before:e} becomes {after:e}"
                );
            }
        }
    }
    assert_eq!(resident_format(Format::I8, 256), Format::F16);
    assert_eq!(resident_format(Format::I16, 7), Format::F32);
    assert_eq!(resident_format(Format::F64, 7), Format::F32);
    assert_eq!(resident_format(Format::IQ2_XS, 256), Format::Q8_0);
}

#[test]
#[should_panic(expected = "packing Q4_0: 19 bytes; expected a multiple of 18")]
fn partial_rows_are_refused() {
    let packing = Packing::new(Format::Q4_0, 32).unwrap();
    packing.pack_rows(&[0; 19], [&mut [0; 4], &mut [0; 1], &mut []]);
}

proptest! {
    /// Any bytes at all, infinities and NaN included.
    #[test]
    fn any_bytes_survive(
        format in prop::sample::select(PACKED_FORMATS.to_vec()),
        blocks_per_row in 1usize..6,
        rows in 1usize..4,
        bytes in prop::collection::vec(any::<u8>(), 3 * 5 * 210),
    ) {
        let blocks = &bytes[..rows * blocks_per_row * format.block_bytes()];
        check_round_trip(format, (blocks_per_row * format.block_len()) as u32, blocks);
    }
}
