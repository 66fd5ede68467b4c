//! Products of rows of weights with many rows of activations, as in a prompt.
//!
//! A tile is as many rows of weights as a vector has lanes, unpacked so that every fourth byte of a vector belongs to the
//! next row. A byte product with four activations in all lanes then gives a sum for each row, and nothing has to be added
//! across lanes. The sums of a group of values are those of [`rows`](super::rows), and are added in the same order.

#![expect(unsafe_code, reason = "vectors are loaded through pointers")]

use super::Instructions;
use crate::{
    activations::{BLOCK, QuantBlock, QuantRows},
    product::{Place, StoredRows},
    unpack::{Packed, Unpacked},
};

/// The most lanes of a vector.
const MOST_LANES: usize = 16;

/// Rows of weights side by side. Groups of the same number in all blocks lie together, because their sums are added first.
#[derive(Debug, Default)]
pub(crate) struct Tile {
    quants: Vec<u8>,
    scales: Vec<f32>,
    minimums: Vec<f32>,
}

/// Multiplies a tile of rows, as many as a vector has lanes or fewer, with the rows of `x` at `places`; those products are
/// `out[place][from..]`.
#[inline(always)]
pub(super) fn products<I: Instructions, P: Packed, const GROUPS: usize, const SIGNED: bool>(
    rows: StoredRows<'_>,
    x: &QuantRows,
    places: &[Place],
    tile: &mut Tile,
    from: usize,
    out: &mut [&mut [f32]],
) {
    let blocks = rows.row_bytes.div_ceil(P::BYTES);
    tile.fill::<I, P, GROUPS>(rows, blocks);
    let count = rows.bytes.len() / rows.row_bytes;
    let (eights, rest) = places.as_chunks::<8>();
    let (out_eights, out_rest) = out.as_chunks_mut::<8>();
    if I::MANY_REGISTERS {
        for (places, out) in eights.iter().zip(out_eights) {
            let x = places.map(|place| x.row(place.input));
            tile.multiply::<I, GROUPS, SIGNED, 8>(blocks, x, |n, results| {
                out[n][from..from + count].copy_from_slice(&results[..count]);
            });
        }
    } else {
        for (places, out) in eights
            .as_flattened()
            .as_chunks::<4>()
            .0
            .iter()
            .zip(out_eights.as_flattened_mut().as_chunks_mut::<4>().0)
        {
            let x = places.map(|place| x.row(place.input));
            tile.multiply::<I, GROUPS, SIGNED, 4>(blocks, x, |n, results| {
                out[n][from..from + count].copy_from_slice(&results[..count]);
            });
        }
    }
    for (places, out) in rest.chunks(4).zip(out_rest.chunks_mut(4)) {
        // The last rows are multiplied more than once if there are no four of them.
        let x = std::array::from_fn::<_, 4, _>(|n| x.row(places[n.min(places.len() - 1)].input));
        tile.multiply::<I, GROUPS, SIGNED, 4>(blocks, x, |n, results| {
            if let Some(out) = out.get_mut(n) {
                out[from..from + count].copy_from_slice(&results[..count]);
            }
        });
    }
}

impl Tile {
    #[inline(always)]
    fn fill<I: Instructions, P: Packed, const GROUPS: usize>(&mut self, rows: StoredRows<'_>, blocks: usize) {
        self.quants.resize(blocks * BLOCK * I::LANES, 0);
        self.scales.resize(blocks * GROUPS * I::LANES, 0.0);
        self.minimums.resize(blocks * GROUPS * I::LANES, 0.0);
        let quants = self.quants.as_chunks_mut::<16>().0;
        let (scales, minimums) = (self.scales.as_chunks_mut::<4>().0, self.minimums.as_chunks_mut::<4>().0);
        let (fours, in_group) = (I::LANES / 4, BLOCK / GROUPS / 4);
        let mut unpacked = [const { Unpacked::ZERO }; 4];
        let row_bytes = rows.row_bytes;
        for (four, rows) in rows.bytes.chunks(4 * row_bytes).enumerate() {
            for block in 0..blocks {
                for (unpacked, row) in unpacked.iter_mut().zip(rows.chunks_exact(row_bytes)) {
                    let bytes = &row[block * P::BYTES..];
                    P::unpack::<I>(&bytes[..bytes.len().min(P::BYTES)], unpacked);
                }
                for group in 0..GROUPS {
                    let at = group * blocks + block;
                    scales[at * fours + four] = unpacked.each_ref().map(|row| row.scales[group]);
                    minimums[at * fours + four] = unpacked.each_ref().map(|row| row.minimums[group]);
                    let quants = &mut quants[at * in_group * fours + four..];
                    for part in 0..in_group / 4 {
                        // A square of four rows and sixteen values.
                        let sixteen = group * in_group / 4 + part;
                        let rows = unpacked.each_ref().map(|row| row.quants.as_chunks::<16>().0[sixteen]);
                        let columns = I::transpose(rows);
                        for value in 0..4 {
                            quants[(4 * part + value) * fours] = columns[value];
                        }
                    }
                }
            }
        }
    }

    /// Gives `done` the products with each row of `x`.
    #[inline(always)]
    fn multiply<I: Instructions, const GROUPS: usize, const SIGNED: bool, const N: usize>(
        &self,
        blocks: usize,
        x: [&[QuantBlock]; N],
        mut done: impl FnMut(usize, &[f32; MOST_LANES]),
    ) {
        let in_group = BLOCK / GROUPS / 4;
        assert!(self.quants.len() == blocks * BLOCK * I::LANES && x.iter().all(|x| x.len() == blocks));
        assert!(self.scales.len() == blocks * GROUPS * I::LANES && self.minimums.len() == self.scales.len());
        let mut groups = [[I::splat(0.0); GROUPS]; N];
        for group in 0..GROUPS {
            let mut sums = [I::splat(0.0); N];
            for block in 0..blocks {
                let at = group * blocks + block;
                // SAFETY: the lengths were checked above.
                unsafe {
                    let mut whole = [I::no_ints(); N];
                    for four in 0..in_group {
                        let weights =
                            I::bytes(self.quants.as_ptr().add((at * in_group + four) * 4 * I::LANES));
                        for n in 0..N {
                            let quants = x[n].get_unchecked(block).quants.as_ptr();
                            let x = I::four_bytes(quants.add((group * in_group + four) * 4));
                            whole[n] = I::dot::<SIGNED>(whole[n], weights, x);
                        }
                    }
                    let scales = I::load(self.scales.as_ptr().add(at * I::LANES));
                    let minimums = I::load(self.minimums.as_ptr().add(at * I::LANES));
                    for n in 0..N {
                        let x = x[n].get_unchecked(block);
                        let scale = I::mul(scales, I::splat(x.scales::<GROUPS>()[group]));
                        sums[n] = I::add_product(sums[n], I::to_floats(whole[n]), scale);
                        if !SIGNED {
                            let own = I::splat(x.sums::<GROUPS>()[group]);
                            sums[n] = I::subtract_product(sums[n], minimums, own);
                        }
                    }
                }
            }
            for n in 0..N {
                groups[n][group] = sums[n];
            }
        }
        for n in 0..N {
            let mut half = GROUPS;
            while half > 1 {
                half /= 2;
                for group in 0..half {
                    groups[n][group] = I::add(groups[n][group], groups[n][group + half]);
                }
            }
            let mut results = [0.0; MOST_LANES];
            // SAFETY: no vector has more lanes than this.
            unsafe { I::store(results.as_mut_ptr(), groups[n][0]) };
            done(n, &results);
        }
    }
}
