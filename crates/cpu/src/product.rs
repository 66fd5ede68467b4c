//! Products of weights with activations: the work of `linear` and `expert_linear`.
//!
//! Rows of a weight are spread over threads. A thread unpacks a few rows of weights, and multiplies these with all rows of
//! activations before it goes on to the next, so that a prompt unpacks each row once.

use std::cell::RefCell;

use rullama_gguf::Format;

use crate::{
    activations::{BLOCK, QuantRow, QuantRows},
    kernels::{AT_ONCE, Kernels},
    parallel,
    unpack::{self, Unpacked},
};

/// Rows of weights that are unpacked together. Activations are then read from the first cache for all but the first.
const TILE: usize = 4;

/// Fewer products than this are not worth waking a thread.
const WORTH_SHARING: usize = 1 << 16;

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
    unpacked: [Unpacked; TILE],
    decoded: [Vec<f32>; TILE],
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Whether weights of this format and width are multiplied with quantised activations.
pub(crate) fn quantises(format: Format, width: usize) -> bool {
    unpack::is_integer(format) && width.is_multiple_of(BLOCK)
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
    let task = |first: usize, inputs_of: &mut [&mut [f32]]| {
        let count = inputs_of.first().map_or(0, |out| out.len());
        let own = &rows.bytes[first * rows.row_bytes..][..count * rows.row_bytes];
        SCRATCH.with_borrow_mut(|scratch| {
            let rows = StoredRows { bytes: own, ..rows };
            scratch.multiply(kernels, rows, width, inputs, places, inputs_of);
        });
    };
    let outs = outputs(out, places, count);
    if count * width * places.len() < WORTH_SHARING || parallel::threads() == 1 {
        let mut outs = outs;
        return task(0, &mut outs);
    }
    // Several tasks for each thread, because threads are seldom equally fast.
    let at_once = count.div_ceil(4 * parallel::threads()).next_multiple_of(TILE);
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
            Inputs::Quantised(x) => self.integers(kernels, rows, width, x, places, out),
            Inputs::Floats(values) => self.floats(kernels, rows, width, values, places, out),
        }
    }

    fn integers(
        &mut self,
        kernels: &Kernels,
        rows: StoredRows<'_>,
        width: usize,
        x: &QuantRows,
        places: &[Place],
        out: &mut [&mut [f32]],
    ) {
        self.unpacked.iter_mut().for_each(|unpacked| unpacked.prepare(rows.format, width));
        for (tile, bytes) in rows.bytes.chunks(TILE * rows.row_bytes).enumerate() {
            let bytes = bytes.chunks(rows.row_bytes);
            let in_tile = bytes.len();
            for (unpacked, bytes) in self.unpacked.iter_mut().zip(bytes) {
                (kernels.unpack)(rows.format, bytes, unpacked);
            }
            for (places, out) in places.chunks(AT_ONCE).zip(out.chunks_mut(AT_ONCE)) {
                let mut few = [x.row(places[0].input); AT_ONCE];
                for (few, place) in few.iter_mut().zip(places) {
                    *few = x.row(place.input);
                }
                let few: &[QuantRow<'_>] = &few[..places.len()];
                for (row, unpacked) in self.unpacked[..in_tile].iter().enumerate() {
                    let mut results = [0.0; AT_ONCE];
                    let results = &mut results[..few.len()];
                    (kernels.products)(unpacked, few, results);
                    out.iter_mut().zip(results).for_each(|(out, result)| out[tile * TILE + row] = *result);
                }
            }
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
        self.decoded.iter_mut().for_each(|decoded| decoded.resize(width, 0.0));
        for (tile, bytes) in rows.bytes.chunks(TILE * rows.row_bytes).enumerate() {
            let bytes = bytes.chunks(rows.row_bytes);
            let in_tile = bytes.len();
            for (decoded, bytes) in self.decoded.iter_mut().zip(bytes) {
                decode(kernels, rows.format, bytes, decoded);
            }
            for (place, out) in places.iter().zip(&mut *out) {
                let x = &x[place.input * width..][..width];
                for (row, decoded) in self.decoded[..in_tile].iter().enumerate() {
                    (kernels.float_products)(decoded, &[x], &mut out[tile * TILE + row..][..1]);
                }
            }
        }
    }
}

/// Decodes a row of weights.
pub(crate) fn decode(kernels: &Kernels, format: Format, bytes: &[u8], out: &mut [f32]) {
    match format {
        Format::F16 => (kernels.decode_halves)(bytes, out),
        _ => format.decode(bytes, out).expect("a row of the tensor has the width of its weight"),
    }
}
