//! Rows are grouped by their experts as a plain loop would group them.

use crate::common::gpu;
use rullama_gpu::{Experts, GpuOptions, params::GroupRowsParams};
use rullama_gpu_lab::{Lab, Step};

/// No expert, or no pair.
const NONE: u32 = u32::MAX;

/// What a row's slot chooses.
type Choice = fn(row: u32, slot: u32, count: u32) -> u32;

/// Different ones, in no order.
fn spread(row: u32, slot: u32, count: u32) -> u32 {
    (row * 7919 + row / 3 * 13 + slot) % count
}

/// The last ones, whatever the row.
fn last(_: u32, slot: u32, count: u32) -> u32 {
    count - 1 - slot % count
}

/// One for all slots of all rows, which no routing of a sound model comes to.
fn single(_: u32, _: u32, count: u32) -> u32 {
    count / 2
}

/// The tiles of a step: each the expert, then its pairs by row and slot.
fn expected(experts: Experts, rows: u32, tile_rows: u32, choice: Choice) -> Vec<Vec<u32>> {
    let Experts { count, used } = experts;
    let mut tiles = Vec::new();
    for expert in 0..count {
        let pairs: Vec<u32> =
            (0..rows * used).filter(|pair| choice(pair / used, pair % used, count) == expert).collect();
        for pairs in pairs.chunks(tile_rows as usize) {
            let mut tile = vec![expert];
            tile.extend(pairs);
            tile.resize(1 + tile_rows as usize, NONE);
            tiles.push(tile);
        }
    }
    tiles
}

fn check(lab: &Lab<'_>, experts: Experts, rows: u32, tile_rows: u32, choice: Choice) {
    let Experts { count, used } = experts;
    // A plan for more rows than the step has.
    let most = experts.tiles(rows + 11, tile_rows);
    let mut routing = Vec::new();
    for row in 0..rows + 11 {
        let chosen = |slot| if row < rows { choice(row, slot, count) } else { slot };
        routing.extend((0..used).map(|slot| chosen(slot) as f32));
        routing.extend((0..used).map(|slot| 1.0 / (2 + slot) as f32));
    }
    let words = Experts::words(most, tile_rows) as usize;
    let groups = lab.words(&vec![77; words + 5]);
    let buffers = [("routing", &lab.floats(&routing)), ("groups", &groups)];
    let params = GroupRowsParams { tiles: most };
    let kernel = lab.prepare(&experts.group_rows(tile_rows), &[params.into()], &buffers, [count, 1, 1]);
    lab.run(&[kernel], &Step::new(rows, 0));
    let found: Vec<u32> =
        pollster::block_on(lab.read(&groups)).unwrap().into_iter().map(f32::to_bits).collect();

    let place = format!("{experts:?}, {rows} rows in tiles of {tile_rows}");
    let expected = expected(experts, rows, tile_rows, choice);
    assert!(expected.len() as u32 <= experts.tiles(rows, tile_rows), "{place}");
    let (tiles, beyond) = found.split_at(words);
    for (index, tile) in tiles.chunks(1 + tile_rows as usize).enumerate() {
        match expected.get(index) {
            Some(expected) => assert_eq!(tile, expected, "{place}, tile {index}"),
            None => assert_eq!(tile[0], NONE, "{place}, tile {index}"),
        }
    }
    assert_eq!(beyond, [77; 5], "{place}");
}

#[test]
fn rows_are_grouped() {
    let gpu = gpu(&GpuOptions::default().floor());
    let lab = Lab::new(&gpu);
    for (count, used) in [(128, 8), (3, 3), (5, 1), (257, 2), (600, 4), (1, 1)] {
        let experts = Experts { count, used };
        for (rows, tile_rows) in [(1, 8), (9, 8), (17, 16), (65, 32), (512, 32), (512, 64)] {
            for choice in [spread, last, single] {
                check(&lab, experts, rows, tile_rows, choice);
            }
        }
    }
}
