//! `embed` and `linear` in all formats.

use rullama_gguf::Format;
use rullama_gpu::weights::pack::PACKED_FORMATS;

use super::case::{Case, Gpus};

const WIDTHS: [u32; 6] = [32, 96, 288, 1056, 20, 100];
const OUTPUTS: [u32; 4] = [1, 7, 33, 300];
const ROWS: [usize; 7] = [1, 2, 5, 8, 9, 33, 70];

/// The widths that rows of a format can have, or the next that they can.
fn widths(format: Format) -> Vec<u32> {
    let mut widths = WIDTHS.map(|width| width.next_multiple_of(format.block_len() as u32)).to_vec();
    widths.sort_unstable();
    widths.dedup();
    widths
}

/// Every format meets four widths, every number of outputs and every number of rows, but not all of each other. All formats
/// share the code that deals with widths; each meets one that is shorter than a lane's share and one that needs several.
fn check_linear(formats: &[Format]) {
    let gpus = Gpus::one();
    for (at, &format) in formats.iter().enumerate() {
        let widths = widths(format);
        for index in 0..OUTPUTS.len() {
            let width = widths[(index + at) % widths.len()];
            let outputs = OUTPUTS[(index + at) % OUTPUTS.len()];
            // One row and many rows first; then others, a few among them.
            let steps = match index {
                0 => [1, 70],
                _ => [0, 4].map(|more| ROWS[(2 * index + at + more) % ROWS.len()]),
            };
            let name = format!("linear {format} {outputs}×{width}");
            Case::new(name, 7, |make| make.input(width).linear(make.matrix(format, width, outputs)))
                .steps(&steps)
                .within(1e-5 * (width as f32).sqrt())
                .check(&gpus);
        }
    }
}

#[test]
fn linear_in_floats_and_old_blocks() {
    check_linear(&PACKED_FORMATS[..4]);
}

#[test]
fn linear_in_other_old_blocks() {
    check_linear(&PACKED_FORMATS[4..7]);
}

#[test]
fn linear_in_k_quants() {
    check_linear(&PACKED_FORMATS[7..12]);
}

#[test]
fn linear_in_later_formats() {
    check_linear(&PACKED_FORMATS[12..]);
}

/// The rows of a table.
#[test]
fn embed_in_every_format() {
    let gpus = Gpus::one();
    for format in PACKED_FORMATS {
        for width in [20, 96].map(|width: u32| width.next_multiple_of(format.block_len() as u32)) {
            Case::new(format!("embed {format} {width}"), 3, |make| make.embed(format, width, 5.5))
                .steps(&[1, 70])
                .within(1e-5)
                .check(&gpus);
        }
    }
}

/// Without subgroups, and with limits at the floor.
#[test]
fn linear_at_the_floor() {
    let gpus = Gpus::both();
    for (format, width, outputs) in [
        (Format::Q4_K, 1536, 300),
        (Format::Q6_K, 2304, 33),
        (Format::F32, 4128, 7),
        (Format::Q8_0, 96, 1),
        (Format::BF16, 8224, 40),
    ] {
        Case::new(format!("linear {format} {outputs}×{width}"), 9, |make| {
            make.input(width).linear(make.matrix(format, width, outputs))
        })
        .within(1e-5 * (width as f32).sqrt())
        .check(&gpus);
    }
}

/// Rows of floats that end in the middle of a chunk, by the kernels for many rows; few rows go the general way.
#[test]
fn linear_of_odd_widths() {
    let gpus = Gpus::one();
    for (format, shapes) in [
        (Format::F16, [(4304, 9, &[1, 16, 17, 70][..]), (36, 300, &[512])]),
        (Format::BF16, [(72, 65, &[17, 200]), (4, 33, &[5, 40])]),
        (Format::F32, [(1164, 20, &[100]), (20, 72, &[17, 512])]),
    ] {
        for (width, outputs, steps) in shapes {
            Case::new(format!("linear {format} {outputs}×{width}"), 13, |make| {
                make.input(width).linear(make.matrix(format, width, outputs))
            })
            .steps(steps)
            .context(1024)
            .within(1e-5 * (width as f32).sqrt())
            .check(&gpus);
        }
    }
    Case::new("gate and up of an odd width", 13, |make| {
        let x = make.input(100).rms_norm(make.vector(100), 1e-6);
        let hidden = x.linear(make.matrix(Format::F16, 100, 44));
        hidden.gelu_mul(x.linear(make.matrix(Format::F16, 100, 44))).linear(make.matrix(Format::BF16, 44, 12))
    })
    .within(1e-4)
    .check(&gpus);
}

/// A factor for a whole matrix, stored beside it.
#[test]
fn scaled_matrices() {
    let gpus = Gpus::one();
    for width in [64, 100] {
        Case::new(format!("scaled linear {width}"), 5, |make| {
            let x = make.input(width);
            x.linear(make.scaled_matrix(Format::F16, width, 40)).gelu_mul(x.linear(make.scaled_matrix(
                Format::F16,
                width,
                40,
            )))
        })
        .within(1e-4)
        .check(&gpus);
    }
}

/// Formats without kernels: the values are those of the nearest format that has one.
#[test]
fn other_formats_are_converted() {
    let gpus = Gpus::one();
    let others = Format::ALL.iter().copied().filter(|format| !PACKED_FORMATS.contains(format));
    for format in others {
        for width in [96, 20].map(|width: u32| width.next_multiple_of(format.block_len() as u32)) {
            Case::new(format!("linear {format} 33×{width}"), 11, |make| {
                make.embed(format, width, 0.5).linear(make.matrix(format, width, 33))
            })
            .converted()
            .steps(&[1, 9])
            .within(1e-5 * (width as f32).sqrt())
            .check(&gpus);
        }
    }
}
