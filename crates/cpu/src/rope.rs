//! `rope`: rotary position embedding. The angles of a step are computed once and serve all layers that turn alike.

use rullama_graph::{Rope, Rows};

use crate::parallel;

/// The cosine and sine of each pair of columns, for each row.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    all: Vec<(Kind, Vec<Turn>)>,
}

/// Layers that turn alike, and which rows they turn.
type Kind = (Rope, Rows);

/// A cosine and a sine.
type Turn = (f32, f32);

impl Turns {
    /// Computes the angles of rows at `positions`, unless they are known.
    pub(crate) fn prepare(&mut self, by: Rope, rows: Rows, positions: &[usize], factors: Option<&[f32]>) {
        if self.all.iter().any(|(key, _)| *key == (by, rows)) {
            return;
        }
        // Angles in double precision: at long positions f32 has no digits left for their fraction.
        let frequency = |pair: u32| {
            let factor = factors.map_or(1.0, |factors| f64::from(factors[pair as usize]));
            f64::from(by.base).powf(-2.0 * f64::from(pair) / f64::from(by.head_width)) / factor
        };
        let frequencies: Vec<f64> = (0..by.pairs).map(frequency).collect();
        let turn = |position: usize, frequency: f64| {
            let (sin, cos) = (position as f64 * frequency).sin_cos();
            (cos as f32, sin as f32)
        };
        let turns = positions
            .iter()
            .flat_map(|&position| frequencies.iter().map(move |&frequency| turn(position, frequency)));
        self.all.push(((by, rows), turns.collect()));
    }

    /// Turns the heads of each row. The angles were prepared.
    pub(crate) fn rope(&self, x: &[f32], width: usize, by: Rope, rows: Rows, out: &mut [f32]) {
        let turns = self.all.iter().find(|(key, _)| *key == (by, rows)).map(|(_, turns)| &turns[..]);
        let (turns, pairs) = (turns.unwrap_or_default(), by.pairs as usize);
        let half = by.head_width as usize / 2;
        parallel::each_row(out, width, |row, out| {
            out.copy_from_slice(&x[row * width..][..width]);
            let turns = &turns[row * pairs..][..pairs];
            for head in out.chunks_mut(2 * half) {
                let (first, second) = head.split_at_mut(half);
                for ((a, b), &(cos, sin)) in first.iter_mut().zip(second).zip(turns) {
                    (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
                }
            }
        });
    }
}
