//! Every kernel that a plan may select, so that tests can compile them all: in naga, which is what native devices and
//! Firefox use, and in real browsers, whose rules are stricter.
//!
//! Every choice of files is here; numbers such as widths are examples. That no plan of the test models holds anything
//! else is tested.

use std::collections::HashSet;

use rullama_gguf::Format;
use rullama_graph::{AttendShape, Mask};

use crate::{
    CacheFormat, Experts, Fragment, Kernel, KernelSpec, MatrixTiles, Tiles,
    attention::{self, RowAttention},
    lab::SampleLab,
    lower::{RowProduct, RowShape, plain_spec},
    weights::pack::PACKED_FORMATS,
};

/// The lanes of a subgroup, as an example; and none, where lanes cannot talk to each other.
const SUBGROUPS: [Option<u32>; 2] = [None, Some(32)];

/// What is done with a product, with what the fragment needs beside it.
const EPILOGUES: [&[Fragment]; 4] = [
    &[Fragment::Store],
    &[Fragment::CappedStore],
    &[Fragment::Gelu, Fragment::GeluPair],
    &[Fragment::Gelu, Fragment::GeluOther],
];

const TILES: [Tiles; 6] = [Tiles::LARGE, Tiles::WIDE, Tiles::NARROW, Tiles::SMALL, Tiles::FEW, Tiles::FEWEST];

/// The same for experts.
const EXPERT_TILES: [Tiles; 4] = [Tiles::WIDE, Tiles::FLAT, Tiles::FLATTER, Tiles::FLATTEST];

impl KernelSpec {
    /// Every recipe that lowering can come up with, on any device.
    pub fn every() -> Vec<Self> {
        let mut specs = plain();
        // No plan holds it: it measures bandwidth.
        specs.push(Self::new(Kernel::Read).constant("LANES", 256).constant("PASSES", 1));
        specs.extend(rows());
        specs.extend(tiles());
        specs.extend(matrices());
        specs.extend(attention());
        for subgroup in SUBGROUPS {
            specs.extend(residual(subgroup));
            specs.extend(formats().map(|format| {
                let spec = Self::new(Kernel::PerLayer).with(Fragment::PlainEntry);
                spec.with_reduce(subgroup).with(Fragment::Planes).with(format).constant("LANES", 64)
            }));
        }
        for vocabulary in [2048, 262_144] {
            specs.extend(SampleLab::kernels(vocabulary));
        }
        let mut seen = HashSet::new();
        specs.retain(|spec| seen.insert(spec.clone()));
        specs
    }
}

fn formats() -> impl Iterator<Item = Fragment> {
    PACKED_FORMATS
        .into_iter()
        .map(|format| Fragment::format(format).expect("a packed format has a fragment that reads it"))
}

/// Operations as they are.
fn plain() -> Vec<KernelSpec> {
    let mut specs: Vec<KernelSpec> = [Kernel::Rope, Kernel::Copy, Kernel::Route].map(plain_spec).into();
    for flag in [0, 1] {
        specs.push(plain_spec(Kernel::RmsNorm).constant("WEIGHTED", flag));
        specs.push(plain_spec(Kernel::Combine).constant("SCALED", flag));
    }
    for op in [Fragment::Add, Fragment::Mul, Fragment::Scale, Fragment::SoftCap, Fragment::GeluMul] {
        specs.push(plain_spec(Kernel::Elementwise).with(Fragment::Gelu).with(op));
    }
    for format in CacheFormat::ALL {
        for (head_width, pairs) in [(512, 1), (1024, 2)] {
            specs.push(format.store(plain_spec(Kernel::StoreKv), head_width));
            let attend = plain_spec(Kernel::Attend).constant("PAIRS", pairs);
            specs.push(format.load(attend, head_width));
        }
    }
    for format in formats() {
        specs.push(plain_spec(Kernel::Embed).with(Fragment::Planes).with(format));
        for select in [Fragment::Dense, Fragment::Routed] {
            specs.push(plain_spec(Kernel::Linear).with(Fragment::Planes).with(format).with(select));
        }
    }
    specs
}

/// What the product of one row or a few reads.
#[derive(Clone, Copy)]
enum Input {
    /// Where `apart`, each piece of it has workgroups of its own.
    Plain {
        apart: bool,
    },
    Merged {
        apart: bool,
    },
    Residual {
        keep: Fragment,
        branch: u32,
        scaled: bool,
        normed: bool,
    },
}

impl Input {
    fn every() -> Vec<Self> {
        let mut inputs = Vec::new();
        for apart in [false, true] {
            inputs.extend([Self::Plain { apart }, Self::Merged { apart }]);
        }
        for keep in [Fragment::Kept, Fragment::Dropped] {
            // A scale belongs to a branch, and there is no reason to stop on the way without either.
            for [branch, scaled, normed] in [[0, 0, 1], [1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1], [6, 0, 0]]
            {
                let [scaled, normed] = [scaled, normed].map(|flag| flag == 1);
                inputs.push(Self::Residual { keep, branch, scaled, normed });
            }
        }
        inputs
    }

    fn add(self, spec: KernelSpec, subgroup: Option<u32>) -> KernelSpec {
        match self {
            Self::Plain { .. } => spec.with(Fragment::PlainInput),
            Self::Merged { apart } => spec
                .with(Fragment::MergedInput)
                .with(Fragment::Splits)
                .constant("HEADS", 8)
                .constant("HEAD_WIDTH", if apart { 384 } else { 192 })
                .constant("SPLIT_KEYS", 64)
                .constant("MOST_SPLITS", 8),
            Self::Residual { keep, branch, scaled, normed } => spec
                .with(Fragment::ResidualInput)
                .with_reduce(subgroup)
                .with(keep)
                .constant("BRANCH", branch)
                .constant("SCALED", scaled.into())
                .constant("NORMED", normed.into()),
        }
    }
}

/// Products of one row or a few.
fn rows() -> Vec<KernelSpec> {
    let linear = |format: Format, input: Input, epilogue: usize, select, rows, subgroup| {
        let fragment = Fragment::format(format).expect("a packed format has a fragment that reads it");
        let mut spec = KernelSpec::new(Kernel::LinearRow)
            .with(Fragment::LinearParams)
            .with(Fragment::Planes)
            .with(fragment);
        spec = input.add(spec, subgroup);
        spec = EPILOGUES[epilogue].iter().fold(spec, |spec, &fragment| spec.with(fragment));
        spec = spec.with(select).with(Fragment::PlainEntry);
        let made = !matches!(input, Input::Plain { .. });
        let (width, most_partial_sums) = match input {
            Input::Plain { apart: true } | Input::Merged { apart: true } => (3072, 2),
            _ => (1536, 1),
        };
        let product = RowProduct { format, width, outputs: 6144, rows, made, most_partial_sums };
        RowShape::new(product, 16_384, subgroup).complete(spec, subgroup)
    };
    let made = |keep| Input::Residual { keep, branch: 1, scaled: true, normed: true };
    let mut specs = Vec::new();
    for subgroup in SUBGROUPS {
        for format in PACKED_FORMATS {
            // What attention found has one reader, which projects it.
            specs.push(linear(format, Input::Merged { apart: false }, 0, Fragment::Dense, 1, subgroup));
            for input in [Input::Plain { apart: false }, made(Fragment::Kept), made(Fragment::Dropped)] {
                let dense = [0, 1, 2, 3].map(|epilogue| (epilogue, Fragment::Dense));
                let routed = [0, 2].map(|epilogue| (epilogue, Fragment::Routed));
                for (epilogue, select) in dense.into_iter().chain(routed) {
                    specs.push(linear(format, input, epilogue, select, 1, subgroup));
                }
            }
        }
        for input in Input::every() {
            specs.push(linear(Format::Q4_K, input, 0, Fragment::Dense, 1, subgroup));
        }
        for epilogue in 0..EPILOGUES.len() {
            let input = Input::Plain { apart: false };
            specs.push(linear(Format::Q4_K, input, epilogue, Fragment::Dense, 8, subgroup));
        }
    }
    specs
}

/// Products of many rows on matrix units.
fn matrices() -> Vec<KernelSpec> {
    let linear = |format, epilogue: usize, tiles: MatrixTiles| {
        let mut spec = KernelSpec::new(Kernel::LinearMatrix)
            .with(Fragment::LinearParams)
            .with(Fragment::Planes)
            .with(format);
        spec = EPILOGUES[epilogue].iter().fold(spec, |spec, &fragment| spec.with(fragment));
        tiles.constants(spec)
    };
    let mut specs = Vec::new();
    for epilogue in 0..EPILOGUES.len() {
        specs.extend(formats().map(|format| linear(format, epilogue, MatrixTiles::WIDE)));
        specs.push(linear(Fragment::Q4K, epilogue, MatrixTiles::SMALL));
    }
    specs
}

/// Products of many rows.
fn tiles() -> Vec<KernelSpec> {
    let linear = |format, epilogue: usize, tiles: Tiles, rows| {
        let mut spec = KernelSpec::new(Kernel::LinearTile)
            .with(Fragment::LinearParams)
            .with(Fragment::Planes)
            .with(format);
        spec = EPILOGUES[epilogue].iter().fold(spec, |spec, &fragment| spec.with(fragment));
        let paired = EPILOGUES[epilogue].contains(&Fragment::GeluPair);
        let tiles = if paired { tiles.paired() } else { tiles };
        tiles.constants(spec.with(rows))
    };
    let mut specs = Vec::new();
    for epilogue in 0..EPILOGUES.len() {
        let rows = Fragment::InOrder;
        specs.extend(formats().map(|format| linear(format, epilogue, Tiles::WIDE, rows)));
        specs.extend(TILES.map(|tiles| linear(Fragment::Q4K, epilogue, tiles, rows)));
    }
    for epilogue in [0, 2] {
        let rows = Fragment::Grouped;
        specs.extend(formats().map(|format| linear(format, epilogue, Tiles::FLAT, rows)));
        specs.extend(EXPERT_TILES.map(|tiles| linear(Fragment::Q4K, epilogue, tiles, rows)));
    }
    let experts = Experts { count: 128, used: 8 };
    specs.extend(EXPERT_TILES.map(|tiles| experts.group_rows(tiles.rows)));
    specs
}

fn attention() -> Vec<KernelSpec> {
    let mut specs = Vec::new();
    for head_width in [64, 256, 512] {
        specs.push(attention::query_heads(head_width));
        for format in CacheFormat::ALL {
            specs.push(attention::cache_heads(format, head_width));
            specs.push(attention::attend_tile(format, head_width));
            for (owns, mask) in [(true, Mask::GLOBAL), (false, Mask::sliding(512))] {
                let shape = AttendShape { heads: 8, kv_heads: 2, head_width, mask };
                for subgroup in SUBGROUPS {
                    let row = RowAttention::new(shape, format, owns, subgroup);
                    specs.extend([row.attend(), row.merge()]);
                }
            }
        }
    }
    specs
}

/// Sums that are stages of their own.
fn residual(subgroup: Option<u32>) -> Vec<KernelSpec> {
    let mut specs = Vec::new();
    for normed in [Fragment::Normed, Fragment::SumOnly] {
        for scaled in [0, 1] {
            let spec = KernelSpec::new(Kernel::Residual).with(Fragment::PlainEntry);
            let spec = spec.with_reduce(subgroup).with(normed).constant("LANES", 256);
            specs.push(spec.constant("SCALED", scaled).constant("FOURS", 2));
        }
    }
    specs
}
