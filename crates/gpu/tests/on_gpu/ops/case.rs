//! One case: a small graph with random weights, computed on the CPU and on the GPU.

use std::{cell::RefCell, rc::Rc};

use rullama_gguf::{Format, Model, Writer};
use rullama_gpu::{CacheFormat, GpuModel, GpuOptions, ModelOptions};
use rullama_graph::{Builder, Graph, SoftRows, Tensor, Weight, WeightInfo};
use safetensors::SafeTensors;

use crate::common::{Lent, Reference, from_bytes, gpu, load, step, testdata};

/// Tokens of every case.
const VOCABULARY: u32 = 61;

/// Numbers that are the same each time.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub(crate) fn chance(&mut self) -> bool {
        self.below(2) == 0
    }

    /// From −1 to 1.
    fn value(&mut self) -> f32 {
        self.next() as f32 / (1u32 << 30) as f32 - 1.0
    }

    fn values(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.value()).collect()
    }
}

/// A tensor of the case's file.
struct Stored {
    dims: Vec<u64>,
    format: Format,
    bytes: Vec<u8>,
}

/// What a graph is made with: a builder, and weights of random values.
pub(crate) struct Maker {
    pub(crate) builder: Builder,
    tensors: RefCell<Vec<Stored>>,
    random: RefCell<Random>,
}

impl Maker {
    fn new(seed: u64) -> Self {
        Self { builder: Builder::new(), tensors: RefCell::default(), random: RefCell::new(Random::new(seed)) }
    }

    /// The step's tokens as rows of random values.
    pub(crate) fn input(&self, width: u32) -> Tensor<'_> {
        self.embed(Format::F32, width, 1.0)
    }

    /// The same from a table in some format.
    pub(crate) fn embed(&self, format: Format, width: u32, scale: f32) -> Tensor<'_> {
        self.builder.embed(self.matrix(format, width, VOCABULARY), scale, SoftRows::Given)
    }

    /// Rows of random values that are the same for every token.
    pub(crate) fn alike(&self, width: u32) -> Tensor<'_> {
        let row = bytes(&self.random.borrow_mut().values(width as usize));
        let dims = [width, VOCABULARY].map(u64::from);
        let tensor = self.add(&dims, Format::F32, row.repeat(VOCABULARY as usize));
        let table = self.builder.weight(WeightInfo::matrix(tensor, width, VOCABULARY));
        self.builder.embed(table, 1.0, SoftRows::Given)
    }

    pub(crate) fn matrix(&self, format: Format, width: u32, rows: u32) -> Weight {
        let info = self.stored(format, width, rows, 1);
        self.builder.weight(info)
    }

    /// A matrix for each expert.
    pub(crate) fn experts(&self, format: Format, width: u32, rows: u32, count: u32) -> Weight {
        let info = self.stored(format, width, rows, count).experts(count);
        self.builder.weight(info)
    }

    /// Two weights that share every expert's matrix.
    pub(crate) fn expert_pair(&self, format: Format, width: u32, rows: u32, count: u32) -> [Weight; 2] {
        let tensor = self.stored(format, width, 2 * rows, count).tensor;
        [0, rows].map(|first| {
            let info = WeightInfo::matrix(&tensor, width, rows).experts(count).part_of(first, 2 * rows);
            self.builder.weight(info)
        })
    }

    /// A vector of values around one, as the weights of norms are.
    pub(crate) fn vector(&self, width: u32) -> Weight {
        let values: Vec<f32> =
            self.random.borrow_mut().values(width as usize).iter().map(|value| 1.0 + 0.5 * value).collect();
        let tensor = self.add(&[u64::from(width)], Format::F32, bytes(&values));
        self.builder.weight(WeightInfo::vector(tensor, width))
    }

    /// A matrix whose values are all multiplied with one that is stored beside it.
    pub(crate) fn scaled_matrix(&self, format: Format, width: u32, rows: u32) -> Weight {
        let scale = self.vector(1);
        let info = self.stored(format, width, rows, 1).scaled(Some(scale));
        self.builder.weight(info)
    }

    fn stored(&self, format: Format, width: u32, rows: u32, count: u32) -> WeightInfo {
        let values = width as usize * rows as usize * count as usize;
        let mut random = self.random.borrow_mut();
        let bytes = if format.can_encode() {
            // So that what comes out is about as large as what goes in.
            let scale = 2.0 / (width as f32).sqrt();
            let values: Vec<f32> = random.values(values).iter().map(|value| value * scale).collect();
            let mut bytes = vec![0; values.len() / format.block_len() * format.block_bytes()];
            format.encode(&values, &mut bytes).unwrap();
            bytes
        } else {
            random_blocks(&mut random, format, values)
        };
        let mut dims = vec![u64::from(width), u64::from(rows)];
        if count > 1 {
            dims.push(u64::from(count));
        }
        WeightInfo::matrix(self.add(&dims, format, bytes), width, rows)
    }

    fn add(&self, dims: &[u64], format: Format, bytes: Vec<u8>) -> String {
        let mut tensors = self.tensors.borrow_mut();
        tensors.push(Stored { dims: dims.to_vec(), format, bytes });
        name(tensors.len() - 1)
    }

    /// The file, with its weights in the formats that `convert` gives.
    fn file(&self, convert: impl Fn(Format, u32) -> Format) -> Rc<Model> {
        let mut writer = Writer::new();
        let tensors = self.tensors.borrow();
        let mut data = Vec::new();
        for (index, Stored { dims, format, bytes }) in tensors.iter().enumerate() {
            let to = convert(*format, dims[0] as u32);
            writer.add_tensor(&name(index), dims, to).unwrap();
            let mut converted = bytes.clone();
            if to != *format {
                let mut values = vec![0.0; dims.iter().product::<u64>() as usize];
                format.decode(bytes, &mut values).unwrap();
                converted = vec![0; values.len() / to.block_len() * to.block_bytes()];
                to.encode(&values, &mut converted).unwrap();
            }
            data.push(converted);
        }
        let mut body = writer.begin(Vec::new()).unwrap();
        data.iter().for_each(|bytes| body.write_tensor(bytes).unwrap());
        from_bytes("case", body.finish().unwrap())
    }
}

fn name(index: usize) -> String {
    format!("tensor{index}")
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Blocks of a format that is only read: those of the fixture in another order, or whole numbers.
fn random_blocks(random: &mut Random, format: Format, values: usize) -> Vec<u8> {
    let numbers = |bytes: fn(i16) -> Vec<u8>, random: &mut Random| -> Vec<u8> {
        (0..values).flat_map(|_| bytes(random.below(255) as i16 - 127)).collect()
    };
    match format {
        Format::I8 => return numbers(|value| (value as i8).to_le_bytes().into(), random),
        Format::I16 => return numbers(|value| (100 * value).to_le_bytes().into(), random),
        Format::I32 => return numbers(|value| (1000 * i32::from(value)).to_le_bytes().into(), random),
        Format::I64 => return numbers(|value| (1000 * i64::from(value)).to_le_bytes().into(), random),
        Format::F64 => return numbers(|value| (f64::from(value) / 3.0).to_le_bytes().into(), random),
        // ggml's own intermediates are in no fixture, since no file has them: a scale, quants, and sums of these.
        Format::Q8_1 | Format::Q8_K => {
            let block = |random: &mut Random| {
                let scale = 0.01 + 0.01 * random.value();
                let mut bytes = scale.to_le_bytes().to_vec();
                if format == Format::Q8_1 {
                    bytes.truncate(2);
                    Format::F16.encode(&[scale], &mut bytes).unwrap();
                    bytes.extend([0; 2]);
                }
                bytes.extend((0..format.block_len()).map(|_| random.next() as u8));
                bytes.resize(format.block_bytes(), 0);
                bytes
            };
            return (0..values / format.block_len()).flat_map(|_| block(random)).collect();
        }
        _ => {}
    }
    let path = testdata("gguf/blocks.safetensors");
    let file = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = SafeTensors::deserialize(&file).unwrap();
    let wanted = format!("{format}.blocks");
    let found = file.names().into_iter().find(|name| name.eq_ignore_ascii_case(&wanted));
    let found =
        file.tensor(found.unwrap_or_else(|| panic!("the fixture has no blocks of {format}"))).unwrap();
    let blocks: Vec<_> = found.data().chunks(format.block_bytes()).collect();
    (0..values / format.block_len()).flat_map(|_| random.pick(&blocks)).copied().collect()
}

/// A graph on both executors.
pub(crate) struct Case<F> {
    pub(crate) name: String,
    pub(crate) seed: u64,
    /// Rows of each step, one after another.
    pub(crate) steps: Vec<usize>,
    pub(crate) cache: CacheFormat,
    pub(crate) context: u32,
    /// How far apart values may be, as a share of what is usual in their row, or in all.
    pub(crate) tolerance: f32,
    /// Whether weights in formats without kernels are looked at after their conversion.
    pub(crate) converted: bool,
    pub(crate) build: F,
}

impl<F: for<'g> Fn(&'g Maker) -> Tensor<'g>> Case<F> {
    /// With steps of the sizes that plans differ in, and what f32 allows after a product or two. Every number of a few rows
    /// has kernels of its own; `products` goes through these.
    pub(crate) fn new(name: impl Into<String>, seed: u64, build: F) -> Self {
        let steps = vec![1, 2, 9, 33, 70, 1];
        let (cache, context, tolerance) = (CacheFormat::F32, 256, 2e-5);
        Self { name: name.into(), seed, steps, cache, context, tolerance, converted: false, build }
    }

    pub(crate) fn steps(mut self, steps: &[usize]) -> Self {
        self.steps = steps.to_vec();
        self
    }

    pub(crate) fn within(mut self, tolerance: f32) -> Self {
        self.tolerance = tolerance;
        self
    }

    pub(crate) fn cache(mut self, cache: CacheFormat) -> Self {
        self.cache = cache;
        self
    }

    pub(crate) fn context(mut self, context: u32) -> Self {
        self.context = context;
        self
    }

    pub(crate) fn converted(mut self) -> Self {
        self.converted = true;
        self
    }

    /// The graph and what it is made with.
    fn graph(&self) -> (Maker, Graph) {
        let maker = Maker::new(self.seed);
        let graph = maker.builder.finish((self.build)(&maker));
        (maker, graph)
    }

    /// Runs all steps on the CPU and, fused and not, on the first GPU; on others, fused alone, because what is not fused uses
    /// kernels that differ only in how lanes add up. Compares what comes out.
    pub(crate) fn check(&self, gpus: &Gpus) {
        let (maker, graph) = self.graph();
        let ids: Vec<u32> = {
            let mut random = Random::new(self.seed + 1);
            (0..self.steps.iter().sum()).map(|_| random.below(VOCABULARY as usize) as u32).collect()
        };
        let model = maker.file(|format, _| format);
        let of_reference = if self.converted {
            maker.file(rullama_gpu::weights::pack::resident_format)
        } else {
            model.clone()
        };
        let mut reference = Reference::new(&of_reference, graph.clone(), self.cache);
        let expected: Vec<_> = self.cut(&ids).map(|ids| reference.step(ids)).collect();
        let usual = usual(&expected.concat());
        let options = ModelOptions::default().context(self.context).cache(self.cache);
        let fused = gpus.0.iter().map(|gpu| (gpu, options.clone()));
        for (gpu, options) in fused.chain([(&gpus.0[0], options.clone().unfused())]) {
            let loaded = load(gpu, &model, graph.clone(), &options);
            let mut state = loaded.state().unwrap();
            let mut position = 0;
            for (ids, expected) in self.cut(&ids).zip(&expected) {
                let found = step(&mut state, ids);
                self.compare(&loaded, [ids.len(), position], options.fused, usual, [&found, expected]);
                position += ids.len();
            }
        }
    }

    fn cut<'a>(&'a self, ids: &'a [u32]) -> impl Iterator<Item = &'a [u32]> {
        let mut rest = ids;
        self.steps.iter().map(move |&rows| {
            let (step, others) = rest.split_at(rows);
            rest = others;
            step
        })
    }

    fn compare(
        &self,
        model: &GpuModel,
        step: [usize; 2],
        fused: bool,
        all: f32,
        [found, expected]: [&[f32]; 2],
    ) {
        assert_eq!(found.len(), expected.len(), "{}", self.name);
        let (_, graph) = self.graph();
        let width = graph.value(graph.output()).shape.width as usize;
        let mut worst = (0.0, 0);
        let mut wrong = Vec::new();
        for (row, values) in expected.chunks(width).enumerate() {
            let usual = usual(values).max(all);
            for (column, &expected) in values.iter().enumerate() {
                let at = row * width + column;
                let error = (found[at] - expected).abs() / usual;
                if error.is_nan() || error > self.tolerance {
                    wrong.push(format!("[{row}, {column}] {}/{expected}", found[at]));
                }
                if error.is_nan() || error > worst.0 {
                    worst = (error, at);
                }
            }
        }
        if wrong.is_empty() {
            return;
        }
        let [rows, position] = step;
        let kernels: Vec<String> = model
            .report(rows as u32, position as u32)
            .unwrap()
            .dispatches
            .into_iter()
            .map(|dispatch| format!("{}: {} {:?}", dispatch.what, dispatch.kernel, dispatch.workgroups))
            .collect();
        wrong.truncate(8);
        panic!(
            "{}, seed {}, {} rows after {position}, fused: {fused}, subgroups {:?}\n  relative error {:.1e} at [{}, {}], {:.1e} \
             allowed\n  first differences, gpu/reference: {}\n  {}",
            self.name,
            self.seed,
            rows,
            model.gpu().profile().subgroups,
            worst.0,
            worst.1 / width,
            worst.1 % width,
            self.tolerance,
            wrong.join("  "),
            kernels.join("\n  "),
        );
    }
}

/// The root of the mean square.
fn usual(values: &[f32]) -> f32 {
    let squares: f64 = values.iter().map(|&value| f64::from(value).powi(2)).sum();
    (squares / values.len() as f64).sqrt() as f32
}

/// What cases run on: the GPU as it is, and where it has subgroups, as if it had none.
pub(crate) struct Gpus(Vec<Lent>);

impl Gpus {
    /// As it is, but for matrix units, which are not exact and have a test of their own.
    pub(crate) fn one() -> Self {
        Self(vec![gpu(&GpuOptions::default().without_matrices())])
    }

    /// With these options.
    pub(crate) fn with(options: &GpuOptions) -> Self {
        Self(vec![gpu(options)])
    }

    /// In both ways.
    pub(crate) fn both() -> Self {
        let mut both = Self::one();
        both.0.push(gpu(&GpuOptions::default().floor()));
        both
    }
}
