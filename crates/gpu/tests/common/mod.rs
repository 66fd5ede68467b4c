//! What several tests need: the test data, an adapter, models on the GPU and on the CPU.

#![allow(dead_code, clippy::allow_attributes, reason = "no test needs all of it")]

pub(crate) mod catalogue;
pub(crate) mod tower;

use std::{
    ops::Deref,
    path::PathBuf,
    rc::Rc,
    sync::{Mutex, PoisonError},
};

use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::{MemorySource, Model};
use rullama_gpu::{Gpu, GpuError, GpuModel, GpuOptions, GpuState, GpuWeights, ModelOptions, Sampling};
use rullama_graph::Graph;
use rullama_reference::{CacheFormat, Caches, Step, Weights, run};

/// Every model of the test data.
pub(crate) const MODELS: [&str; 7] = [
    "micro-e2b-F16",
    "micro-e2b-Q8_0",
    "micro-e2b-Q8_0-ollama",
    "micro-e2b-Q4_0",
    "tiny-e2b-Q4_K_M",
    "tiny-dense-Q4_K_M",
    "tiny-moe-Q4_K_M",
];

pub(crate) const OUTPUTS: [Outputs; 2] = [Outputs::All, Outputs::Last];

/// A file of the test data.
pub(crate) fn testdata(path: &str) -> PathBuf {
    in_repository("testdata").join(path)
}

/// A file or folder of this crate.
pub(crate) fn source(path: &str) -> PathBuf {
    in_repository("crates/gpu").join(path)
}

/// A folder of the repository. Tests also run where they were not built: there, it lies in the current folder, above it,
/// or beside the program.
fn in_repository(folder: &str) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let program = std::env::current_exe().unwrap_or_default();
    let built = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let roots = std::iter::once(built.as_path()).chain(here.ancestors()).chain(program.ancestors().skip(1));
    let found = roots.map(|root| root.join(folder)).find(|folder| folder.is_dir());
    found.unwrap_or_else(|| panic!("no folder `{folder}` here, above, or beside the program"))
}

pub(crate) fn open(name: &str) -> Rc<Model> {
    from_bytes(name, std::fs::read(testdata(&format!("gguf/{name}.gguf"))).unwrap())
}

pub(crate) fn from_bytes(name: &str, bytes: Vec<u8>) -> Rc<Model> {
    Rc::new(pollster::block_on(Model::open(Box::new(MemorySource::named(name, bytes)))).unwrap())
}

pub(crate) fn graph(model: &Model, outputs: Outputs) -> Graph {
    text(model, &Config::read(model).unwrap(), outputs).unwrap()
}

/// Opens a GPU for one test alone: for tests that lose it, or that test the self-test.
pub(crate) fn opened(options: &GpuOptions) -> Gpu {
    pollster::block_on(Gpu::open(options))
        .expect("these tests need an adapter; a software one such as lavapipe will do")
}

/// GPUs that no test is using, each with its options. A device keeps the pipelines that were compiled for it, so the
/// tests of one process compile a kernel once for each thread, not once for each test.
static IDLE: Mutex<Vec<(String, Gpu)>> = Mutex::new(Vec::new());

/// A GPU on loan to one test. The next test with the same options gets it, unless this one panics.
pub(crate) struct Lent {
    options: String,
    opened: Gpu,
    /// The same, with the shards that the test wants.
    gpu: Gpu,
}

impl Deref for Lent {
    type Target = Gpu;

    fn deref(&self) -> &Gpu {
        &self.gpu
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let (options, gpu) = (std::mem::take(&mut self.options), self.opened.clone());
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).push((options, gpu));
        }
    }
}

/// A GPU that other tests use before and after, one at a time. It is opened without the self-test, which has tests of its
/// own; and shared by tests that split weights and tests that do not, since that changes no kernel.
pub(crate) fn gpu(options: &GpuOptions) -> Lent {
    let mut options = options.clone().without_self_test();
    let largest_shard = options.largest_shard.take();
    let key = format!("{options:?}");
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = idle.iter().position(|(options, _)| *options == key);
    let found = found.map(|at| idle.swap_remove(at).1);
    drop(idle);
    let opened = found.unwrap_or_else(|| opened(&options));
    let gpu = match largest_shard {
        Some(bytes) => opened.clone().with_largest_shard(bytes),
        None => opened.clone(),
    };
    Lent { options: key, opened, gpu }
}

pub(crate) fn load(gpu: &Gpu, model: &Rc<Model>, graph: Graph, options: &ModelOptions) -> Rc<GpuModel> {
    Rc::new(try_load(gpu, model, graph, options).unwrap())
}

/// Loads a model that may be refused, of which no byte may then have been read.
pub(crate) fn try_load(
    gpu: &Gpu,
    model: &Rc<Model>,
    graph: Graph,
    options: &ModelOptions,
) -> Result<GpuModel, GpuError> {
    let mut read = false;
    let progress = &mut |done: u64, _| read |= done > 0;
    let weights = GpuWeights::new(gpu.clone(), model.clone());
    let loaded = pollster::block_on(GpuModel::load(&weights, graph, options.clone(), progress));
    assert_eq!(read, loaded.is_ok(), "weights are read if they fit");
    loaded
}

pub(crate) fn step(state: &mut GpuState, ids: &[u32]) -> Vec<f32> {
    pollster::block_on(state.step(ids)).unwrap()
}

/// Reads a prompt in steps of `size` and gives the output of every row.
pub(crate) fn read(state: &mut GpuState, ids: &[u32], size: usize) -> Vec<f32> {
    ids.chunks(size).flat_map(|ids| step(state, ids)).collect()
}

/// The likeliest tokens after `ids`, chosen on the GPU while steps are under way for those after them.
pub(crate) fn generated(state: &mut GpuState, ids: &[u32], count: usize) -> Vec<u32> {
    pollster::block_on(async {
        // The last step, which has at least one token, is read by `begin`.
        let rows = state.rows_at_once();
        let (before, last) = ids.split_at((ids.len() - 1) / rows * rows);
        for ids in before.chunks(rows) {
            state.read(ids).await.unwrap();
        }
        state.begin(last, &Sampling::GREEDY, ids, count).await.unwrap();
        let mut tokens = Vec::new();
        for _ in 0..count {
            tokens.push(state.next_token().await.unwrap());
        }
        tokens
    })
}

/// A graph on the CPU, with what it remembers.
pub(crate) struct Reference {
    graph: Graph,
    weights: Weights,
    caches: Caches,
}

impl Reference {
    pub(crate) fn new(model: &Rc<Model>, graph: Graph, cache: CacheFormat) -> Self {
        let caches = Caches::new(&graph, cache);
        Self { graph, weights: Weights::new(model.clone(), 1 << 30), caches }
    }

    pub(crate) fn step(&mut self, ids: &[u32]) -> Vec<f32> {
        let step = Step::tokens(ids);
        let watch = &mut ();
        let output = run(&self.graph, &self.weights, &mut self.caches, &step, watch);
        pollster::block_on(output).unwrap().into_values()
    }
}

/// The most probable token; of several, the first.
pub(crate) fn argmax(logits: &[f32]) -> u32 {
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    logits.iter().position(|&logit| logit == best).unwrap() as u32
}

/// The largest difference.
pub(crate) fn apart(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    // Whatever is not a number is infinitely far away.
    let difference = |(a, b): (&f32, &f32)| if (a - b).is_nan() { f32::INFINITY } else { (a - b).abs() };
    found.iter().zip(expected).map(difference).fold(0.0, f32::max)
}
