//! Softmax attention of many queries to the same keys. Each lane of a vector holds another query, so no sum crosses lanes, and a
//! query's result does not depend on those beside it. The softmax is computed online: the keys come in tiles, and sums are
//! rescaled whenever a tile has a larger score than all before.

#![expect(unsafe_code, reason = "vectors are loaded through pointers")]

use super::Instructions;
use crate::float;

/// Vectors of queries.
pub(super) const VECTORS: usize = 2;
/// The most queries of a block: two vectors of 16 lanes.
const MOST_QUERIES: usize = 32;
/// Keys of a tile: the tile and a block of queries fit in the first-level cache, or nearly.
pub(crate) const TILE: usize = 64;

/// A block of queries of one head, and their partial sums over the keys so far. Matrices have a row for each column of the
/// head (or for each key), and in it a number for each query.
#[derive(Default)]
pub(crate) struct Queries {
    width: usize,
    count: usize,
    queries: Vec<Line>,
    sums: Vec<Line>,
    scores: Vec<Line>,
    /// The largest score of each query.
    most: [f32; MOST_QUERIES],
    /// The sum of each query's exponentials.
    totals: [f32; MOST_QUERIES],
}

/// A cache line of numbers.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

const LINE: usize = 16;

fn numbers(lines: &[Line]) -> &[f32] {
    // SAFETY: a line is its numbers and nothing else.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), LINE * lines.len()) }
}

fn numbers_mut(lines: &mut [Line]) -> &mut [f32] {
    // SAFETY: a line is its numbers and nothing else.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), LINE * lines.len()) }
}

impl Queries {
    /// Begins with a block of up to `count` queries of `width` columns.
    pub(crate) fn begin<'a>(
        &mut self,
        queries: impl IntoIterator<Item = &'a [f32]>,
        width: usize,
        count: usize,
    ) {
        (self.width, self.count) = (width, count);
        for matrix in [&mut self.queries, &mut self.sums] {
            matrix.clear();
            matrix.resize((width * count).div_ceil(LINE), Line([0.0; LINE]));
        }
        self.scores.resize((TILE * count).div_ceil(LINE), Line([0.0; LINE]));
        (self.most, self.totals) = ([f32::NEG_INFINITY; MOST_QUERIES], [0.0; MOST_QUERIES]);
        let columns = numbers_mut(&mut self.queries);
        for (lane, query) in queries.into_iter().enumerate() {
            columns.chunks_mut(count).zip(query).for_each(|(column, value)| column[lane] = *value);
        }
    }

    /// Writes the results of the first queries.
    pub(crate) fn finish(&self, out: &mut [&mut [f32]]) {
        let sums = numbers(&self.sums);
        for (lane, (out, total)) in out.iter_mut().zip(&self.totals).enumerate() {
            let share = 1.0 / total;
            out.iter_mut().zip(sums.chunks(self.count)).for_each(|(out, sums)| *out = sums[lane] * share);
        }
    }
}

/// Attends from a block of queries to up to [`TILE`] more keys, which lie one after another, as their values do.
#[inline(always)]
pub(super) fn attend_tile<I: Instructions>(keys: &[f32], values: &[f32], block: &mut Queries) {
    if I::MANY_REGISTERS {
        tile::<I, 8>(keys, values, block);
    } else {
        tile::<I, 4>(keys, values, block);
    }
}

/// Computes `ROWS` keys at once, and then `ROWS` columns of the values.
#[inline(always)]
fn tile<I: Instructions, const ROWS: usize>(keys: &[f32], values: &[f32], block: &mut Queries) {
    let (width, lanes) = (block.width, VECTORS * I::LANES);
    let count = keys.len() / width;
    assert!(count <= TILE && keys.len() == count * width && values.len() == keys.len());
    assert!(block.count == lanes);
    let (queries, sums) = (numbers(&block.queries), numbers_mut(&mut block.sums));
    let scores = &mut numbers_mut(&mut block.scores)[..count * lanes];

    let mut key = 0;
    while key + ROWS <= count {
        score::<I, ROWS>(&keys[key * width..], queries, width, &mut scores[key * lanes..]);
        key += ROWS;
    }
    while key < count {
        score::<I, 1>(&keys[key * width..], queries, width, &mut scores[key * lanes..]);
        key += 1;
    }
    for vector in 0..VECTORS {
        weigh::<I>(
            scores,
            sums,
            vector * I::LANES,
            width,
            &mut block.most[vector * I::LANES..][..I::LANES],
            &mut block.totals[vector * I::LANES..][..I::LANES],
        );
    }
    let mut column = 0;
    while column + ROWS <= width {
        add::<I, ROWS>(&values[column..], scores, width, count, &mut sums[column * lanes..]);
        column += ROWS;
    }
    while column < width {
        add::<I, 1>(&values[column..], scores, width, count, &mut sums[column * lanes..]);
        column += 1;
    }
}

/// Scores of `ROWS` keys.
#[inline(always)]
fn score<I: Instructions, const ROWS: usize>(
    keys: &[f32],
    queries: &[f32],
    width: usize,
    scores: &mut [f32],
) {
    let lanes = VECTORS * I::LANES;
    assert!(keys.len() >= ROWS * width && queries.len() >= width * lanes && scores.len() >= ROWS * lanes);
    let mut sums = [[I::splat(0.0); VECTORS]; ROWS];
    // SAFETY: the lengths were checked above.
    unsafe {
        for column in 0..width {
            let mut query = [I::splat(0.0); VECTORS];
            for vector in 0..VECTORS {
                query[vector] = I::load(queries.as_ptr().add(column * lanes + vector * I::LANES));
            }
            for row in 0..ROWS {
                let key = I::splat(*keys.get_unchecked(row * width + column));
                for vector in 0..VECTORS {
                    sums[row][vector] = I::add_product(sums[row][vector], key, query[vector]);
                }
            }
        }
        for row in 0..ROWS {
            for vector in 0..VECTORS {
                I::store(scores.as_mut_ptr().add(row * lanes + vector * I::LANES), sums[row][vector]);
            }
        }
    }
}

/// Makes the scores of a vector of queries into exponentials, relative to the largest score so far, and rescales the sums.
#[inline(always)]
fn weigh<I: Instructions>(
    scores: &mut [f32],
    sums: &mut [f32],
    from: usize,
    width: usize,
    most: &mut [f32],
    totals: &mut [f32],
) {
    let lanes = VECTORS * I::LANES;
    let mut largest = [f32::NEG_INFINITY; LINE];
    largest[..I::LANES].copy_from_slice(most);
    for scores in scores.chunks_exact(lanes) {
        let scores = &scores[from..][..I::LANES];
        for lane in 0..I::LANES {
            largest[lane] = if largest[lane] > scores[lane] { largest[lane] } else { scores[lane] };
        }
    }
    let mut scales = [0.0; LINE];
    let mut exponentials = [0.0; LINE];
    for lane in 0..I::LANES {
        scales[lane] = float::exp(most[lane] - largest[lane]);
        most[lane] = largest[lane];
    }
    for scores in scores.chunks_exact_mut(lanes) {
        let scores = &mut scores[from..][..I::LANES];
        for lane in 0..I::LANES {
            scores[lane] = float::exp(scores[lane] - largest[lane]);
            exponentials[lane] += scores[lane];
        }
    }
    for lane in 0..I::LANES {
        totals[lane] = totals[lane] * scales[lane] + exponentials[lane];
    }
    for sums in sums.chunks_exact_mut(lanes).take(width) {
        let sums = &mut sums[from..][..I::LANES];
        for lane in 0..I::LANES {
            sums[lane] *= scales[lane];
        }
    }
}

/// Adds `ROWS` columns of the values, each times the exponential of its key.
#[inline(always)]
fn add<I: Instructions, const ROWS: usize>(
    values: &[f32],
    exponentials: &[f32],
    width: usize,
    count: usize,
    out: &mut [f32],
) {
    let lanes = VECTORS * I::LANES;
    assert!(count == 0 || values.len() >= (count - 1) * width + ROWS);
    assert!(exponentials.len() >= count * lanes && out.len() >= ROWS * lanes);
    let mut sums = [[I::splat(0.0); VECTORS]; ROWS];
    // SAFETY: the lengths were checked above.
    unsafe {
        for row in 0..ROWS {
            for vector in 0..VECTORS {
                sums[row][vector] = I::load(out.as_ptr().add(row * lanes + vector * I::LANES));
            }
        }
        for key in 0..count {
            let mut weights = [I::splat(0.0); VECTORS];
            for vector in 0..VECTORS {
                weights[vector] = I::load(exponentials.as_ptr().add(key * lanes + vector * I::LANES));
            }
            for row in 0..ROWS {
                let value = I::splat(*values.get_unchecked(key * width + row));
                for vector in 0..VECTORS {
                    sums[row][vector] = I::add_product(sums[row][vector], value, weights[vector]);
                }
            }
        }
        for row in 0..ROWS {
            for vector in 0..VECTORS {
                I::store(out.as_mut_ptr().add(row * lanes + vector * I::LANES), sums[row][vector]);
            }
        }
    }
}
