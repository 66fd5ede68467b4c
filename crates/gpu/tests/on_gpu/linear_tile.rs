//! The tiled linear computes what a plain loop over the decoded weights does.

use crate::common::{self, Lent};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use rullama_gguf::Format;
use rullama_gpu::{
    Dialect, Experts, FewTiles, Fragment, GpuOptions, Kernel, KernelSpec, MatrixTiles, Tiles,
    params::LinearParams,
    weights::pack::{PACKED_FORMATS, Packing},
};
use rullama_gpu_lab::{
    Lab, Step,
    linear::{self, packed, plane_at},
};
use safetensors::SafeTensors;

/// The tiles that can be chosen.
const CHOSEN: [Tiles; 9] = [
    Tiles::LARGE,
    Tiles::WIDE,
    Tiles::NARROW,
    Tiles::SMALL,
    Tiles::FEW,
    Tiles::FEWEST,
    Tiles::FLAT,
    Tiles::FLATTER,
    Tiles::FLATTEST,
];

/// Some that are only measured.
fn measured() -> [Tiles; 3] {
    [
        Tiles { depth: 32, unroll: 2, ahead: false, ..Tiles::WIDE },
        Tiles { lane_columns: 4, depth: 32, unroll: 4, ..Tiles::WIDE },
        Tiles { rows: 32, outputs: 64, lane_rows: 4, lane_columns: 8, parts: 2, ..Tiles::NARROW },
    ]
}

/// The tiles that can be chosen for experts.
const EXPERT_TILES: [Tiles; 4] = [Tiles::WIDE, Tiles::FLAT, Tiles::FLATTER, Tiles::FLATTEST];

/// How a product is cut.
#[derive(Clone, Copy)]
enum Cut {
    Tiles(Tiles),
    Matrices(MatrixTiles),
    /// With the threads of a subgroup.
    Few(FewTiles, u32),
}

impl Cut {
    fn spec(self, format: Format, epilogue: Fragment, [rows, width]: [u32; 2]) -> KernelSpec {
        match self {
            Self::Few(tiles, subgroup) => {
                tiles.complete(linear::spec(Kernel::LinearFew, format, epilogue), rows, subgroup)
            }
            Self::Tiles(tiles) => spec(format, epilogue, &tiles, width),
            Self::Matrices(tiles) => {
                tiles.constants(linear::spec(Kernel::LinearMatrix, format, epilogue), width)
            }
        }
    }

    fn grid(self, rows: u32, outputs: u32, paired: bool) -> [u32; 3] {
        match self {
            Self::Tiles(tiles) => tiles.grid(rows, outputs),
            Self::Matrices(tiles) => tiles.grid(rows, outputs, paired),
            Self::Few(tiles, _) => tiles.grid(rows, outputs, paired),
        }
    }

    /// How far a sum of so many products may be from the right one, relative to a typical one.
    fn tolerance(self, width: usize) -> f64 {
        match self {
            Self::Tiles(_) => 2e-5 * (width as f64).sqrt(),
            Self::Few(..) => 4e-6 * (width as f64).sqrt(),
            // Factors have eleven bits.
            Self::Matrices(_) => 4e-3,
        }
    }
}

fn spec(format: Format, epilogue: Fragment, tiles: &Tiles, width: u32) -> KernelSpec {
    tiles.constants(linear::spec(Kernel::LinearTile, format, epilogue).with(Fragment::InOrder), width)
}

/// Core WGSL only, of which naga holds `unpack2x16float` to be a capability.
fn validate(spec: &KernelSpec) {
    let source = spec.compose(Dialect::Naga);
    let module = naga::front::wgsl::parse_str(&source)
        .unwrap_or_else(|error| panic!("{spec}: {}", error.emit_to_string(&source)));
    Validator::new(ValidationFlags::all(), Capabilities::SHADER_FLOAT16_IN_FLOAT32)
        .validate(&module)
        .unwrap_or_else(|error| panic!("{spec}: {}", error.emit_to_string(&source)));
}

#[test]
fn kernels_are_valid() {
    for tiles in CHOSEN.into_iter().chain(measured()) {
        for format in PACKED_FORMATS {
            validate(&spec(format, Fragment::Store, &tiles, 64));
            validate(&spec(format, Fragment::GeluPair, &tiles.paired(), 64));
        }
        for epilogue in [Fragment::CappedStore, Fragment::ClampedStore, Fragment::GeluOther] {
            validate(&spec(Format::Q4_K, epilogue, &tiles, 256));
        }
    }
}

/// For experts, every size of tile is chosen for some number of rows, and none is mostly empty where it is not the
/// smallest.
#[test]
fn experts_fill_their_tiles() {
    for paired in [false, true] {
        let mut chosen = Vec::new();
        for rows in 9..=512 {
            let experts = Experts { count: 32, used: 4 };
            let tiles = Tiles::for_experts(experts, rows, paired);
            let average = rows * experts.used / experts.count;
            assert!(tiles.rows == 8 || 4 * average >= 3 * tiles.rows, "{average} rows: {tiles:?}");
            let lanes = tiles.lanes(paired);
            assert!(lanes.is_multiple_of(32) && lanes <= 256, "{tiles:?}: {lanes} lanes");
            if !chosen.contains(&tiles) {
                chosen.push(tiles);
            }
        }
        chosen.reverse();
        assert_eq!(chosen, EXPERT_TILES.map(|tiles| if paired { tiles.paired() } else { tiles }));
    }
}

/// What is chosen covers every output, with a whole number of subgroups in each workgroup.
#[test]
fn choices_cover_the_shape() {
    for paired in [false, true] {
        for rows in [2, 9, 32, 33, 128, 512] {
            for outputs in [1, 256, 1536, 2560, 6144, 12288, 262_144] {
                let tiles = Tiles::choose(rows, outputs, paired);
                let [x, y, z] = tiles.grid(rows, outputs);
                assert!(x * tiles.outputs >= outputs && y * tiles.rows >= rows && z == 1, "{tiles:?}");
                let lanes = tiles.lanes(paired);
                assert!(lanes.is_multiple_of(32) && lanes <= 256, "{tiles:?}: {lanes} lanes");
            }
        }
    }
}

#[test]
fn every_format_agrees() {
    let gpu = gpu();
    let lab = Lab::new(&gpu);
    for format in PACKED_FORMATS {
        for width in widths(format, &[96, 1536]) {
            Case::new(format, 33, 50, width).check(&lab, &Tiles { parts: 1, depth: 32, ..Tiles::SMALL });
        }
    }
}

#[test]
fn every_size_agrees() {
    let gpu = gpu();
    let lab = Lab::new(&gpu);
    for width in [32, 96, 256, 1536] {
        let case = Case::new(Format::Q8_0, 130, 300, width);
        for tiles in CHOSEN {
            // Not every pair of sizes: each size occurs, and large ones do not meet the longest width.
            for (rows, outputs) in [(2, 300), (3, 33), (9, 7), (33, 1), (64, 256), (130, 33), (130, 300)] {
                if rows * outputs * width < 8_000_000 {
                    case.first(rows, outputs).check(&lab, &tiles);
                }
            }
        }
    }
}

#[test]
fn every_epilogue_agrees() {
    let gpu = gpu();
    let lab = Lab::new(&gpu);
    let case = Case::new(Format::Q4_K, 70, 45, 256);
    for epilogue in [Fragment::CappedStore, Fragment::ClampedStore, Fragment::GeluOther] {
        for tiles in [Tiles::WIDE, Tiles::NARROW] {
            Case { epilogue, ..case.clone() }.check(&lab, &tiles);
        }
    }
    for tiles in CHOSEN {
        Case { epilogue: Fragment::GeluPair, ..case.clone() }.check(&lab, &tiles.paired());
    }
}

/// Floats alone have rows of any width: one quad and more of a chunk, and of the last slab. What lies beyond a row is NaN.
const RAGGED: [usize; 7] = [4, 20, 36, 72, 100, 176, 1164];

#[test]
fn widths_that_are_not_whole_chunks_agree() {
    let gpu = gpu();
    let lab = Lab::new(&gpu);
    for format in [Format::F16, Format::BF16, Format::F32] {
        for (index, width) in RAGGED.into_iter().enumerate() {
            let case = Case { x_more: 12, ..Case::new(format, 130, 133, width) };
            let tiles =
                if index % 2 == 0 { [Tiles::WIDE, Tiles::SMALL] } else { [Tiles::LARGE, Tiles::NARROW] };
            tiles.into_iter().for_each(|tiles| case.check(&lab, &tiles));
        }
    }
    // The rows of a step may be fewer than those of a tile, and other rows may follow them.
    let case = Case { x_at: 8, x_more: 4, ..Case::new(Format::F16, 17, 70, 36) };
    for tiles in [Tiles::FEW, Tiles::FEWEST, Tiles::WIDE] {
        case.check(&lab, &tiles);
    }
    Case { epilogue: Fragment::GeluPair, ..case }.check(&lab, &Tiles::WIDE.paired());
}

/// Two buffers with half of the rows each give what one does, wherever a tile lies over their border.
#[test]
fn shards_agree() {
    let gpu = gpu();
    let lab = Lab::new(&gpu);
    for tiles in [Tiles::WIDE, Tiles::FEW] {
        let case = Case { shards: vec![0..3, 3..90, 90..203], ..Case::new(Format::Q4_0, 20, 203, 96) };
        case.check(&lab, &tiles);
        Case { first_row: 60, ..case }.first(20, 100).check(&lab, &tiles);
    }
}

/// Parts of larger buffers are read, and only their part is written.
#[test]
fn places_in_buffers_agree() {
    let gpu = gpu();
    let lab = Lab::new(&gpu);
    let case = Case {
        x_at: 64,
        x_more: 12,
        y_at: 5,
        y_more: 3,
        factor: 0.25,
        ..Case::new(Format::BF16, 37, 41, 64)
    };
    case.check(&lab, &Tiles::WIDE);
    case.check(&lab, &Tiles::NARROW);
    Case { epilogue: Fragment::GeluOther, other_at: 7, ..case.clone() }.check(&lab, &Tiles::NARROW);
    Case { epilogue: Fragment::GeluPair, ..case }.check(&lab, &Tiles::WIDE.paired());
}

/// The same on matrix units: formats, awkward sizes, epilogues, shards and places.
#[test]
#[ignore = "needs a GPU with matrix units: run with --ignored where there is one"]
fn matrices_agree() {
    let gpu = common::gpu(&GpuOptions::default());
    assert!(gpu.profile().matrices, "`{}` has no matrix units", gpu.profile().name);
    let lab = Lab::new(&gpu);
    for tiles in MatrixTiles::ALL {
        let check = |case: Case| case.check_cut(&lab, Cut::Matrices(tiles));
        for format in PACKED_FORMATS {
            check(Case::new(format, 33, 150, 256));
        }
        for width in [128, 384, 1536] {
            let case = Case::new(Format::Q8_0, 130, 300, width);
            for (rows, outputs) in [(9, 7), (33, 1), (64, 256), (65, 129), (130, 300)] {
                check(case.first(rows, outputs));
            }
        }
        for format in [Format::F16, Format::BF16, Format::F32] {
            for width in RAGGED.into_iter().chain([4304]) {
                check(Case { x_more: 12, ..Case::new(format, 130, 133, width) });
            }
        }
        let case = Case::new(Format::Q4_K, 70, 190, 256);
        for epilogue in
            [Fragment::CappedStore, Fragment::ClampedStore, Fragment::GeluOther, Fragment::GeluPair]
        {
            check(Case { epilogue, ..case.clone() });
        }
        let case = Case { shards: vec![0..3, 3..90, 90..203], ..Case::new(Format::Q4_0, 20, 203, 128) };
        check(case.clone());
        check(Case { first_row: 60, ..case }.first(20, 100));
        let case = Case {
            x_at: 64,
            x_more: 12,
            y_at: 5,
            y_more: 3,
            factor: 0.25,
            ..Case::new(Format::BF16, 37, 141, 128)
        };
        check(case.clone());
        check(Case { epilogue: Fragment::GeluOther, other_at: 7, ..case.clone() });
        check(Case { epilogue: Fragment::GeluPair, ..case });
    }
}

/// A few rows: formats, awkward sizes, epilogues, partial sums, shards and places.
#[test]
fn few_rows_agree() {
    let gpu = common::gpu(&GpuOptions::default());
    let Some(subgroup) = gpu.profile().subgroups.map(|[size, _]| size) else { return };
    let lab = Lab::new(&gpu);
    let few = |width: usize, [parts, together]: [u32; 2], piece: u32| {
        let chunks = width as u32 / 32;
        Cut::Few(FewTiles { lanes: 64, parts, together, chunks, span: chunks, piece }, subgroup)
    };
    for format in PACKED_FORMATS.into_iter().filter(|&format| FewTiles::fits(format)) {
        Case::new(format, 5, 50, 256).check_cut(&lab, few(256, [4, 4], 4));
    }
    let case = Case::new(Format::Q4_K, 16, 70, 768);
    let cut = few(768, [8, 4], 8);
    for (rows, outputs) in [(2, 70), (8, 33), (9, 16), (16, 1)] {
        case.first(rows, outputs).check_cut(&lab, cut);
    }
    case.first(4, 70).check_cut(&lab, few(768, [2, 2], 24));
    let split = FewTiles { lanes: 32, parts: 4, together: 2, chunks: 24, span: 8, piece: 4 };
    case.first(4, 70).check_cut(&lab, Cut::Few(split, subgroup));
    let case = case.first(8, 61);
    for epilogue in [Fragment::CappedStore, Fragment::GeluOther] {
        Case { epilogue, ..case.clone() }.check_cut(&lab, cut);
    }
    let pairs = Case { epilogue: Fragment::GeluPair, ..case };
    pairs.check_cut(&lab, cut);
    pairs.first(4, 61).check_cut(&lab, few(768, [8, 2], 8));
    let cut = few(256, [8, 4], 8);
    let case = Case { shards: vec![0..3, 3..90, 90..103], ..Case::new(Format::Q6_K, 4, 103, 256) };
    case.check_cut(&lab, cut);
    Case { first_row: 60, ..case }.first(4, 40).check_cut(&lab, cut);
    let places = Case { x_at: 64, x_more: 12, y_at: 5, y_more: 3, factor: 0.25, other_at: 7, ..pairs };
    for epilogue in [Fragment::Store, Fragment::GeluOther, Fragment::GeluPair] {
        Case { epilogue, ..places.clone() }.check_cut(&lab, few(768, [8, 4], 8));
    }
}

fn gpu() -> Lent {
    common::gpu(&GpuOptions::default().floor())
}

/// Those of the widths that rows of the format can have, made so if need be.
fn widths(format: Format, widths: &[usize]) -> Vec<usize> {
    widths.iter().map(|width| width.next_multiple_of(format.block_len())).collect()
}

/// Numbers from −1 to 1, the same each time.
fn random(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// A linear, the values that go in, and the products that must come out before any epilogue.
#[derive(Clone)]
struct Case {
    packing: Packing,
    blocks: Vec<u8>,
    x: Vec<f32>,
    /// Of each row with each row of the weight, of which there are two for each output.
    products: Vec<f64>,
    rows: usize,
    outputs: usize,
    /// Rows of the weight.
    weights: usize,
    shards: Vec<std::ops::Range<usize>>,
    first_row: usize,
    epilogue: Fragment,
    factor: f32,
    x_at: usize,
    x_more: usize,
    y_at: usize,
    y_more: usize,
    other_at: usize,
}

impl Case {
    fn new(format: Format, rows: usize, outputs: usize, width: usize) -> Self {
        let weights = outputs;
        let packing = Packing::new(format, width as u32).unwrap();
        let blocks = blocks(format, weights * width);
        let mut decoded = vec![0.0; weights * width];
        format.decode(&blocks, &mut decoded).unwrap();
        let x = random(2, rows * width);
        let products = x
            .chunks(width)
            .flat_map(|x| decoded.chunks(width).map(|w| dot(x, w)).collect::<Vec<_>>())
            .collect();
        let (shards, epilogue) = (std::iter::once(0..weights).collect(), Fragment::Store);
        let (first_row, factor, x_at, x_more, y_at, y_more, other_at) = (0, 1.0, 0, 0, 0, 0, 0);
        #[rustfmt::skip]
        return Self {
            packing, blocks, x, products, rows, outputs, weights, shards, first_row, epilogue, factor,
            x_at, x_more, y_at, y_more, other_at,
        };
    }

    /// Only the first rows and outputs.
    fn first(&self, rows: usize, outputs: usize) -> Self {
        Self { rows, outputs, ..self.clone() }
    }

    fn check(&self, lab: &Lab<'_>, tiles: &Tiles) {
        self.check_cut(lab, Cut::Tiles(*tiles));
    }

    fn check_cut(&self, lab: &Lab<'_>, cut: Cut) {
        let width = self.packing.width as usize;
        let size = [self.rows as u32, self.packing.width];
        let spec = cut.spec(self.packing.format, self.epilogue, size);
        let paired = self.epilogue == Fragment::GeluPair;
        // Pairs share the rows there are: gates from the start on, and ups some rows later.
        let pair = if paired { self.outputs / 3 } else { 0 };
        let outputs = self.outputs - pair;
        let splits = if let Cut::Few(tiles, _) = cut { tiles.partial_sums() as usize } else { 1 };
        let (x_stride, y_stride) = (width + self.x_more, splits * outputs + self.y_more);

        let mut x = vec![f32::NAN; self.x_at + self.rows * x_stride];
        for (row, values) in self.x.chunks(width).take(self.rows).enumerate() {
            x[self.x_at + row * x_stride..][..width].copy_from_slice(values);
        }
        let other = random(3, self.other_at + self.rows * outputs);
        let untouched = 123.0;
        let (x, others) = (lab.floats(&x), lab.floats(&other));
        let y = lab.floats(&vec![untouched; self.y_at + self.rows * y_stride + 7]);

        let (cap, low, high) = (3.0f32, -1.5f32, 2.0f32);
        let kernels: Vec<_> = self
            .shards
            .iter()
            .map(|shard| {
                let bytes = self.packing.bytes_per_row();
                let words = packed(&self.packing, &self.blocks[shard.start * bytes..shard.end * bytes]);
                let [a, b, c] = self.packing.plane_words;
                let params = LinearParams {
                    plane_at: plane_at(&self.packing, shard.len() as u32),
                    plane_words: [a, b, c, 0],
                    width: width as u32,
                    outputs: outputs as u32,
                    first_row: self.first_row as u32,
                    matrix_rows: self.weights as u32,
                    shard_first: shard.start as u32,
                    shard_rows: shard.len() as u32,
                    pair: pair as u32,
                    x_at: self.x_at as u32,
                    x_stride: x_stride as u32,
                    expert_stride: 0,
                    y_at: self.y_at as u32,
                    y_stride: y_stride as u32,
                    routing_width: 0,
                    other_at: self.other_at as u32,
                    other_stride: outputs as u32,
                    factor: self.factor,
                    cap,
                    low,
                    high,
                };
                let buffers = [("weight", &lab.words(&words)), ("x", &x), ("y", &y), ("other", &others)];
                let grid = cut.grid(self.rows as u32, outputs as u32, paired);
                lab.prepare(&spec, &[params.into()], &buffers, grid)
            })
            .collect();
        lab.run(&kernels, &Step::new(self.rows as u32, 0));
        let mut found = pollster::block_on(lab.read(&y)).unwrap();
        // Partial sums are added up to the first of them.
        for row in 0..self.rows {
            for at in (self.y_at + row * y_stride..).take(outputs) {
                for split in 1..splits {
                    found[at] += std::mem::replace(&mut found[at + split * outputs], untouched);
                }
            }
        }

        let mut expected = vec![f64::from(untouched); found.len()];
        for row in 0..self.rows {
            for output in 0..outputs {
                let product = |output: usize| {
                    let products = &self.products[row * self.weights..][..self.weights];
                    f64::from(self.factor) * products[self.first_row + output]
                };
                let value = product(output);
                expected[self.y_at + row * y_stride + output] = match self.epilogue {
                    Fragment::CappedStore => f64::from(cap) * (value / f64::from(cap)).tanh(),
                    Fragment::ClampedStore => value.clamp(f64::from(low), f64::from(high)),
                    Fragment::GeluPair => gelu(value) * product(output + pair),
                    Fragment::GeluOther => {
                        gelu(value) * f64::from(other[self.other_at + row * outputs + output])
                    }
                    _ => value,
                };
            }
        }
        let squares: f64 = self.products.iter().map(|product| product * product).sum();
        let typical = f64::from(self.factor) * (squares / self.products.len() as f64).sqrt();
        let typical = if paired { typical * typical } else { typical };
        let allowed = cut.tolerance(width) * typical;
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert!(
                (f64::from(*found) - expected).abs() <= allowed,
                "{spec}, {} rows, {outputs} outputs, width {width}: y[{at}] is {found}; expected {expected} ± {allowed:.1e}",
                self.rows,
            );
        }
    }
}

/// Blocks of random values; for formats that are only read, the blocks of the fixture over and over.
fn blocks(format: Format, values: usize) -> Vec<u8> {
    let mut blocks = vec![0; values / format.block_len() * format.block_bytes()];
    if format.can_encode() {
        format.encode(&random(1, values), &mut blocks).unwrap();
        return blocks;
    }
    let path = common::testdata("gguf/blocks.safetensors");
    let file = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = SafeTensors::deserialize(&file).unwrap();
    let wanted = format!("{format}.blocks");
    let name = file.names().into_iter().find(|name| name.eq_ignore_ascii_case(&wanted)).unwrap();
    let few = file.tensor(name).unwrap();
    let few: Vec<_> = few.data().chunks(format.block_bytes()).collect();
    // Rows begin at different blocks, and no two blocks follow each other each time.
    for (i, block) in blocks.chunks_mut(format.block_bytes()).enumerate() {
        block.copy_from_slice(few[(7 * i + i / 5) % few.len()]);
    }
    blocks
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + (0.797_884_560_802_865_4 * x * (1.0 + 0.044_715 * x * x)).tanh())
}
