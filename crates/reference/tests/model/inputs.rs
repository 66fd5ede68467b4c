//! Graphs that read inputs instead of tokens, attend within themselves and have several outputs.

use rullama_graph::{AttendShape, Builder, Graph, Mask, Rows, WeightInfo};
use rullama_reference::{Matrix, ReferenceError, Step, run_together};

use crate::common::Loaded;

const HEADS: usize = 2;
const HEAD: usize = 64;

/// Patches of 128 columns: queries by a tensor of the test model, keys and values from the patches, then groups of three.
fn tower(mask: Mask) -> Graph {
    let builder = Builder::new();
    let patches = Rows::Of(builder.domain("patches"));
    let x = builder.input("patches", patches, 128);
    let shape = AttendShape { heads: HEADS as u32, kv_heads: 1, head_width: HEAD as u32, mask };
    let q = x + builder.input("places", patches, 128);
    let a = q.attend_rows(x.columns(0, 64), x.columns(64, 64), shape).named("attended");
    let norm = builder.weight(WeightInfo::vector("output_norm.weight", 128));
    builder.finish_with(&[("cells", a.mean_rows(3, "cells").rms_norm(norm, 1e-6)), ("attended", a)])
}

fn matrix(rows: usize, width: usize, seed: usize) -> Matrix {
    let value = |at: usize| ((at * 7919 + seed * 104_729) % 1000) as f32 / 1000.0 - 0.5;
    Matrix::new((0..rows * width).map(value).collect(), width)
}

/// The definition, in double precision.
fn expected(x: &Matrix, places: &Matrix, sees: impl Fn(usize, usize) -> bool) -> Vec<f64> {
    let value = |row: usize, column: usize| f64::from(x.row(row)[column]);
    let mut out = Vec::new();
    for row in 0..x.rows() {
        for head in 0..HEADS {
            let query = |column: usize| {
                value(row, head * HEAD + column) + f64::from(places.row(row)[head * HEAD + column])
            };
            let seen: Vec<usize> = (0..x.rows()).filter(|&other| sees(row, other)).collect();
            let score = |&other: &usize| {
                (0..HEAD).map(|column| query(column) * value(other, column)).sum::<f64>().exp()
            };
            let weights: Vec<f64> = seen.iter().map(score).collect();
            let total: f64 = weights.iter().sum();
            for column in 0..HEAD {
                let sum: f64 = seen
                    .iter()
                    .zip(&weights)
                    .map(|(&other, weight)| weight * value(other, HEAD + column))
                    .sum();
                out.push(sum / total);
            }
        }
    }
    out
}

#[test]
fn rows_attend_to_each_other_and_are_pooled() {
    let model = Loaded::open("micro-e2b-Q8_0");
    let (x, places) = (matrix(20, 128, 1), matrix(20, 128, 2));
    type Sees = fn(usize, usize) -> bool;
    let masks: [(Mask, Sees); 3] = [
        (Mask::ALL, |_, _| true),
        (Mask::GLOBAL, |row, other| other <= row),
        (Mask::sliding(4), |row, other| other <= row && other + 4 > row),
    ];
    for (mask, sees) in masks {
        let graph = tower(mask);
        let step = Step::inputs(&[("places", &places), ("patches", &x)]);
        let outputs =
            pollster::block_on(run_together(&graph, &model.weights, &mut [], &step, &mut ())).unwrap();
        let [cells, attended] = &outputs[..] else { panic!("two outputs") };
        assert_eq!((cells.rows(), attended.rows()), (7, 20), "groups of three, and one of two");
        let expected = expected(&x, &places, sees);
        for (found, expected) in attended.values().iter().zip(&expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{found} for {expected}");
        }
        let norm = model.vector("output_norm.weight");
        let mean = |cell: usize, column: usize| {
            let rows = 3 * cell..(3 * cell + 3).min(20);
            let count = rows.len() as f64;
            rows.map(|row| expected[row * 128 + column]).sum::<f64>() / count
        };
        for cell in 0..7 {
            let square: f64 = (0..128).map(|column| mean(cell, column).powi(2)).sum::<f64>() / 128.0;
            for (column, (&found, &norm)) in cells.row(cell).iter().zip(&norm).enumerate() {
                let expected = mean(cell, column) / (square + 1e-6).sqrt() * f64::from(norm);
                assert!((f64::from(found) - expected).abs() < 1e-4);
            }
        }
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let model = Loaded::open("micro-e2b-Q8_0");
    let graph = tower(Mask::ALL);
    let refuse = |inputs: &[(&str, &Matrix)]| {
        let step = Step::inputs(inputs);
        let error =
            pollster::block_on(run_together(&graph, &model.weights, &mut [], &step, &mut ())).unwrap_err();
        error.code()
    };
    let (x, places) = (matrix(20, 128, 1), matrix(20, 128, 2));
    assert_eq!(refuse(&[("patches", &x)]), "input.missing");
    assert_eq!(refuse(&[("patches", &x), ("places", &matrix(20, 64, 3))]), "input.shape");
    assert_eq!(refuse(&[("patches", &x), ("places", &matrix(19, 128, 3))]), "input.shape");
    assert_eq!(refuse(&[("patches", &Matrix::default()), ("places", &places)]), "input.shape");
    let error = ReferenceError::MissingInput { input: "places".to_owned() };
    assert_eq!(error.to_string(), "the step has no input `places`");
}
