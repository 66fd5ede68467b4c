//! Products of weights with activations: the work of `linear` and `expert_linear`.
//!
//! Rows of a weight are spread over threads. With few rows of activations, as in decoding, blocks of weights are unpacked
//! as they are multiplied; with more, a tile of rows is unpacked once for all of them.

use std::cell::RefCell;

use rullama_gguf::Format;

use crate::{
    activations::{QuantRows, SCALED},
    kernels::{Kernels, Tile},
    parallel, unpack,
};

/// From so many rows of activations on, a tile of weights is unpacked for them.
const WORTH_A_TILE: usize = 4;

/// Rows of floating-point weights that are multiplied with four rows of activations before the next four.
const FLOAT_ROWS: usize = 8;

/// Fewer products than this are not worth sharing: one thread needs some microseconds for them, and a thread that sleeps or
/// waits for a processor would need longer to come.
const WORTH_SHARING: usize = 1 << 18;

/// Rows of weights as they are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredRows<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) row_bytes: usize,
    pub(crate) format: Format,
}

/// Where a row of activations is, and where its products go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The number of the row.
    pub(crate) input: usize,
    /// Where the product with the first row of weights goes; those with the next rows follow.
    pub(crate) output: usize,
}

/// Activations as the format of the weights needs them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Inputs<'a> {
    Quantised(&'a QuantRows),
    Floats(&'a [f32]),
}

#[derive(Default)]
struct Scratch {
    tile: Tile,
    decoded: Vec<f32>,
    bytes: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Whether weights of this format and width are multiplied with quantised activations.
pub(crate) fn quantises(format: Format, width: usize) -> bool {
    unpack::is_integer(format) && width.is_multiple_of(SCALED)
}

/// Multiplies `rows` with the inputs at `places`, which are in the order of their outputs and do not overlap.
pub(crate) fn multiply(
    kernels: &Kernels,
    rows: StoredRows<'_>,
    width: usize,
    inputs: Inputs<'_>,
    places: &[Place],
    out: &mut [f32],
) {
    let count = rows.bytes.len() / rows.row_bytes;
    let worth_sharing = count * width * places.len() >= WORTH_SHARING && parallel::threads() > 1;
    // Several tasks for each thread, because threads are seldom equally fast.
    let at_once = match worth_sharing {
        true => count.div_ceil(4 * parallel::threads()).next_multiple_of(kernels.lanes),
        false => count,
    };
    let part = |first: usize, count: usize| {
        let bytes = &rows.bytes[first * rows.row_bytes..][..count * rows.row_bytes];
        StoredRows { bytes, ..rows }
    };
    if let (&[place], Inputs::Quantised(x)) = (places, inputs) {
        let x = x.row(place.input);
        let task = |index: usize, out: &mut [f32]| {
            (kernels.rows)(part(index * at_once, out.len()), x, out);
        };
        let out = &mut out[place.output..][..count];
        return match worth_sharing {
            true => parallel::each_chunk(out, at_once, task),
            false => task(0, out),
        };
    }
    let task = |first: usize, outs: &mut [&mut [f32]]| {
        let count = outs.first().map_or(0, |out| out.len());
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.multiply(kernels, part(first, count), width, inputs, places, outs);
        });
    };
    let mut outs = outputs(out, places, count);
    if !worth_sharing {
        return task(0, &mut outs);
    }
    let mut tasks: Vec<(usize, Vec<&mut [f32]>)> =
        (0..count.div_ceil(at_once)).map(|task| (task * at_once, Vec::with_capacity(places.len()))).collect();
    for out in outs {
        for ((_, outs), out) in tasks.iter_mut().zip(out.chunks_mut(at_once)) {
            outs.push(out);
        }
    }
    parallel::each(tasks, |(first, mut outs)| task(first, &mut outs));
}

/// The results of each place.
fn outputs<'a>(mut out: &'a mut [f32], places: &[Place], count: usize) -> Vec<&'a mut [f32]> {
    let mut at = 0;
    let take = |place: &Place| {
        let (_, rest) = std::mem::take(&mut out).split_at_mut(place.output - at);
        let (own, rest) = rest.split_at_mut(count);
        (out, at) = (rest, place.output + count);
        own
    };
    places.iter().map(take).collect()
}

impl Scratch {
    fn multiply(
        &mut self,
        kernels: &Kernels,
        rows: StoredRows<'_>,
        width: usize,
        inputs: Inputs<'_>,
        places: &[Place],
        out: &mut [&mut [f32]],
    ) {
        match inputs {
            Inputs::Quantised(x) if places.len() < WORTH_A_TILE => {
                for (place, out) in places.iter().zip(out) {
                    (kernels.rows)(rows, x.row(place.input), out);
                }
            }
            Inputs::Quantised(x) => {
                for (tile, bytes) in rows.bytes.chunks(kernels.lanes * rows.row_bytes).enumerate() {
                    let from = tile * kernels.lanes;
                    (kernels.tile)(StoredRows { bytes, ..rows }, x, places, &mut self.tile, from, out);
                }
            }
            Inputs::Floats(x) => self.floats(kernels, rows, width, x, places, out),
        }
    }

    fn floats(
        &mut self,
        kernels: &Kernels,
        rows: StoredRows<'_>,
        width: usize,
        x: &[f32],
        places: &[Place],
        out: &mut [&mut [f32]],
    ) {
        let stored = matches!(rows.format, Format::F16 | Format::BF16 | Format::F32);
        for (group, bytes) in rows.bytes.chunks(FLOAT_ROWS * rows.row_bytes).enumerate() {
            let (format, bytes, row_bytes) = if stored {
                (rows.format, bytes, rows.row_bytes)
            } else {
                self.decode(rows.format, bytes, bytes.len() / rows.row_bytes * width);
                (Format::F32, &self.bytes[..], 4 * width)
            };
            for (places, out) in places.chunks(4).zip(out.chunks_mut(4)) {
                let mut few: [&[f32]; 4] = [&[]; 4];
                for (few, place) in few.iter_mut().zip(places) {
                    *few = &x[place.input * width..][..width];
                }
                for (row, bytes) in (group * FLOAT_ROWS..).zip(bytes.chunks_exact(row_bytes)) {
                    let mut results = [0.0; 4];
                    (kernels.float_products)(
                        format,
                        bytes,
                        &few[..places.len()],
                        &mut results[..places.len()],
                    );
                    out.iter_mut().zip(results).for_each(|(out, result)| out[row] = result);
                }
            }
        }
    }

    /// Decodes `count` values to bytes of F32.
    fn decode(&mut self, format: Format, blocks: &[u8], count: usize) {
        self.decoded.resize(count, 0.0);
        format.decode(blocks, &mut self.decoded).expect("a row of the tensor has the width of its weight");
        self.bytes.clear();
        self.bytes.extend(self.decoded.iter().flat_map(|value| value.to_ne_bytes()));
    }
}
