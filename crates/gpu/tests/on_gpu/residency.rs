//! Weights that are not on the GPU as a whole: rows of tables and pages of experts give the same as all at once.

use std::{cell::Cell, ops::Range, rc::Rc};

use crate::common::{
    Lent, apart, from_bytes, generated, gpu, graph, load, open, read, step, testdata, try_load,
};
use rullama_gemma::Outputs;
use rullama_gguf::{ByteSource, MemorySource, Model, ReadFuture, SourceError};
use rullama_gpu::{Fit, Gpu, GpuError, GpuModel, GpuOptions, ModelOptions, Residency};

/// The model with experts.
const EXPERTS: &str = "tiny-moe-Q4_K_M";

/// A model with a table for every layer.
const TABLES: &str = "tiny-e2b-Q4_K_M";

fn device() -> Lent {
    gpu(&GpuOptions::default())
}

fn options() -> ModelOptions {
    ModelOptions::default().context(128)
}

fn loaded(gpu: &Gpu, model: &Rc<Model>, options: &ModelOptions) -> Rc<GpuModel> {
    load(gpu, model, graph(model, Outputs::Last), options)
}

/// The upper bound for the largest context of a fit.
const MOST_CONTEXT: u32 = 100_000;

fn fit(gpu: &Gpu, model: &Rc<Model>, options: &ModelOptions) -> Result<Fit, GpuError> {
    let graph = graph(model, Outputs::Last);
    pollster::block_on(GpuModel::fit(gpu, model, &graph, options, MOST_CONTEXT))
}

fn prompt(count: u32) -> Vec<u32> {
    (0..count).map(|index| (index * 37 + index * index * 5) % 500 + 3).collect()
}

/// Every residency, chunks of every plan.
#[test]
fn every_residency_gives_the_same_logits() {
    let gpu = device();
    let ids = prompt(75);
    for name in ["micro-e2b-Q8_0", TABLES, EXPERTS] {
        let model = open(name);
        let graph = || graph(&model, Outputs::All);
        let all = load(&gpu, &model, graph(), &options().residency(Residency::Gpu));
        let expected = read(&mut all.state().unwrap(), &ids, 75);
        for residency in [Residency::Rows, Residency::Paged] {
            let frugal = load(&gpu, &model, graph(), &options().residency(residency));
            // As many rows as there may be, and one by one.
            let size = frugal.rows_at_once().min(70);
            let mut state = frugal.state().unwrap();
            let mut found = read(&mut state, &ids[..70], size);
            found.extend(read(&mut state, &ids[70..], 1));
            let apart = apart(&found, &expected);
            assert!(apart < 2e-2, "{name}, {residency}, steps of {size}: {apart} apart");
        }
    }
}

#[test]
fn what_stays_in_the_file_takes_no_memory() {
    let gpu = device();
    let bytes = |name: &str, residency| {
        let loaded = loaded(&gpu, &open(name), &options().residency(residency));
        (loaded.residency(), loaded.weight_bytes(), loaded.budget().weights)
    };
    let (all, rows) = (bytes(TABLES, Residency::Gpu), bytes(TABLES, Residency::Rows));
    assert_eq!((all.0, rows.0), (Residency::Gpu, Residency::Rows));
    assert!(rows.1 < all.1 && rows.2 == rows.1, "{rows:?} and {all:?}");
    let (all, paged) = (bytes(EXPERTS, Residency::Gpu), bytes(EXPERTS, Residency::Paged));
    assert_eq!((all.0, paged.0), (Residency::Gpu, Residency::Paged));
    assert!(paged.1 < all.1, "{paged:?} and {all:?}");
    // There is no table that is not multiplied with.
    assert_eq!(bytes(EXPERTS, Residency::Rows), all);
}

#[test]
fn replies_are_the_same() {
    let gpu = device();
    for name in [TABLES, EXPERTS] {
        let model = open(name);
        let ids = prompt(30);
        let expected = generated(
            &mut loaded(&gpu, &model, &options().residency(Residency::Gpu)).state().unwrap(),
            &ids,
            40,
        );
        let frugal = loaded(&gpu, &model, &options().residency(Residency::Paged));
        let mut state = frugal.state().unwrap();
        assert_eq!(generated(&mut state, &ids, 40), expected, "{name}");
        // What was chosen last has not been read.
        assert_eq!(state.len(), 30 + 39, "{name}");
        // Stopped in the middle, set back, begun again.
        state.truncate(20);
        let again = generated(&mut state, &ids[20..], 3);
        assert_eq!(again, expected[..3], "{name}");
        state.truncate(30);
        let more = generated(&mut state, &expected[..10], 5);
        assert_eq!(more, expected[10..15], "{name}");
    }
}

/// Two conversations bring and throw out each other's experts.
#[test]
fn conversations_share_pages() {
    let gpu = device();
    let model = open(EXPERTS);
    let all = loaded(&gpu, &model, &options().residency(Residency::Gpu));
    let paged = loaded(&gpu, &model, &options().residency(Residency::Paged));
    let ids = prompt(40);
    let (mut first, mut second) = (paged.state().unwrap(), paged.state().unwrap());
    let (mut first_all, mut second_all) = (all.state().unwrap(), all.state().unwrap());
    for index in 0..ids.len() - 1 {
        let (one, other) = (&ids[index..=index], &ids[ids.len() - 1 - index..ids.len() - index]);
        assert!(apart(&step(&mut first, one), &step(&mut first_all, one)) < 2e-2);
        assert!(apart(&step(&mut second, other), &step(&mut second_all, other)) < 2e-2);
    }
}

/// Without a word about residency, the fastest that fits is taken.
#[test]
fn memory_decides() {
    let gpu = device();
    for (name, frugal) in [(TABLES, Residency::Rows), (EXPERTS, Residency::Paged)] {
        let model = open(name);
        let all = loaded(&gpu, &model, &options());
        assert_eq!(all.residency(), Residency::Gpu, "{name}");
        let total = all.budget().total();
        let exactly = loaded(&gpu, &model, &options().memory(total));
        assert_eq!(exactly.residency(), Residency::Gpu, "{name}");
        let less = loaded(&gpu, &model, &options().memory(total - 1));
        assert_eq!(less.residency(), frugal, "{name}");
        // What is known from the header alone is what a load does.
        for (asked, loaded) in [(options(), &all), (options().memory(total - 1), &less)] {
            let found = fit(&gpu, &model, &asked).unwrap();
            assert_eq!((found.residency, &found.budget), (loaded.residency(), loaded.budget()), "{name}");
            assert_eq!(found.conversions, loaded.conversions(), "{name}");
            assert!(
                (128..=MOST_CONTEXT).contains(&found.largest_context),
                "{name}: {}",
                found.largest_context
            );
            let larger = asked.clone().context(found.largest_context + 1).residency(found.residency);
            let is_bound = matches!(fit(&gpu, &model, &larger), Err(GpuError::OutOfBudget { .. }));
            assert!(is_bound || found.largest_context == MOST_CONTEXT, "{name}");
        }
        assert!(less.budget().total() < total, "{name}");
        let ids = prompt(20);
        let size = less.rows_at_once().min(20);
        let expected = read(&mut all.state().unwrap(), &ids, size);
        assert!(apart(&read(&mut less.state().unwrap(), &ids, size), &expected) < 2e-2, "{name}");

        let graph = graph(&model, Outputs::Last);
        let asked = options().memory(less.budget().weights / 2);
        let refused = try_load(&gpu, &model, graph, &asked);
        assert!(matches!(refused, Err(GpuError::OutOfBudget { .. })), "{name}");
        assert!(matches!(fit(&gpu, &model, &asked), Err(GpuError::OutOfBudget { .. })), "{name}");
    }
}

/// The less memory, the fewer pages, down to what a step of one row needs.
#[test]
fn pages_are_as_many_as_fit() {
    let gpu = device();
    let model = open(EXPERTS);
    let all = loaded(&gpu, &model, &options());
    let ids = prompt(30);
    let expected = read(&mut all.state().unwrap(), &ids, 1);
    let mut sizes = vec![all.weight_bytes()];
    let mut total = all.budget().total();
    loop {
        let (graph, asked) = (graph(&model, Outputs::Last), options().memory(total - 1));
        match try_load(&gpu, &model, graph, &asked) {
            Ok(paged) => {
                assert!(paged.budget().total() < total);
                total = paged.budget().total();
                sizes.push(paged.weight_bytes());
                let found = read(&mut Rc::new(paged).state().unwrap(), &ids, 1);
                assert!(apart(&found, &expected) < 2e-2, "{total} bytes");
            }
            Err(GpuError::OutOfBudget { largest_context, .. }) => {
                assert!(largest_context.is_some_and(|context| context < 128));
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(sizes.len() > 2 && sizes.is_sorted_by(|more, less| more > less), "{sizes:?}");
}

/// A file that can become unreadable.
struct Fragile {
    bytes: MemorySource,
    broken: Rc<Cell<bool>>,
}

impl ByteSource for Fragile {
    fn name(&self) -> &str {
        self.bytes.name()
    }

    fn len(&self) -> u64 {
        self.bytes.len()
    }

    fn read(&self, range: Range<u64>) -> ReadFuture<'_> {
        if self.broken.get() {
            let source = std::io::Error::other("the cable was pulled");
            let error = SourceError::Io { name: self.name().to_owned(), source };
            return Box::pin(async { Err(error) });
        }
        self.bytes.read(range)
    }
}

/// What cannot be read is an error, and the conversation goes on when it can be read again.
#[test]
fn a_source_that_fails_loses_nothing() {
    let gpu = device();
    for name in [TABLES, EXPERTS] {
        let broken = Rc::new(Cell::new(false));
        let bytes = std::fs::read(testdata(&format!("gguf/{name}.gguf"))).unwrap();
        let source = Fragile { bytes: MemorySource::named(name, bytes.clone()), broken: broken.clone() };
        let model = Rc::new(pollster::block_on(Model::open(Box::new(source))).unwrap());
        let frugal = loaded(&gpu, &model, &options().residency(Residency::Paged));
        let whole = from_bytes(name, bytes);
        let all = loaded(&gpu, &whole, &options().residency(Residency::Gpu));
        let ids = prompt(40);
        let (mut state, mut expected) = (frugal.state().unwrap(), all.state().unwrap());
        read(&mut state, &ids[..10], 1);
        read(&mut expected, &ids[..10], 1);
        broken.set(true);
        let mut failed = 0;
        for &id in &ids[10..] {
            // Experts that are there already need no reading.
            match pollster::block_on(state.step(&[id])) {
                Ok(logits) => assert!(apart(&logits, &step(&mut expected, &[id])) < 2e-2, "{name}"),
                Err(error) => {
                    assert!(matches!(error, GpuError::Source(_)), "{name}: {error:?}");
                    failed += 1;
                    broken.set(false);
                    let logits = step(&mut state, &[id]);
                    assert!(apart(&logits, &step(&mut expected, &[id])) < 2e-2, "{name}");
                    broken.set(true);
                }
            }
        }
        assert!(failed > 0, "{name}");
        assert_eq!(state.len(), 40, "{name}");
    }
}

/// Within WebGPU's floor, and with every operation a dispatch of its own.
#[test]
fn residencies_need_nothing_special() {
    let gpu = gpu(&GpuOptions::default().floor());
    let ids = prompt(20);
    for name in [TABLES, EXPERTS] {
        let model = open(name);
        let expected = read(&mut loaded(&device(), &model, &options()).state().unwrap(), &ids, 1);
        // Experts are what most kernels are for.
        let unfused = (name == EXPERTS).then(|| options().unfused());
        for asked in [options()].into_iter().chain(unfused) {
            let frugal = loaded(&gpu, &model, &asked.residency(Residency::Paged));
            let found = read(&mut frugal.state().unwrap(), &ids, 1);
            assert!(apart(&found, &expected) < 2e-2, "{name}");
        }
    }
}
