//! What does not fit is refused before it is read, and memory that runs out is an error like others.

use std::rc::Rc;

use crate::common::{gpu, graph, open, step, try_load};
use rullama_gemma::Outputs;
use rullama_gguf::{Format, Model, Writer};
use rullama_gpu::{Bound, Budget, CacheFormat, Gpu, GpuError, GpuModel, GpuOptions, ModelOptions, Residency};
use rullama_graph::{AttendShape, Builder, CacheInfo, Graph, Mask, SoftRows, WeightInfo};
use rullama_synth::Blank;

fn load(gpu: &Gpu, model: &Rc<Model>, options: &ModelOptions) -> Result<GpuModel, GpuError> {
    try_load(gpu, model, graph(model, Outputs::Last), options)
}

/// The error of a load that does not fit.
fn refused(gpu: &Gpu, model: &Rc<Model>, options: &ModelOptions) -> (Budget, Bound, Option<u32>, String) {
    match load(gpu, model, options) {
        Err(error @ GpuError::OutOfBudget { .. }) => {
            let text = error.to_string();
            assert_eq!(error.code(), "memory.too_large");
            let GpuError::OutOfBudget { budget, bound, largest_context } = error else { unreachable!() };
            (budget, bound, largest_context, text)
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it fits"),
    }
}

#[test]
fn the_largest_context_that_fits_is_told() {
    let gpu = gpu(&GpuOptions::default());
    let model = open("tiny-e2b-Q4_K_M");
    let options = |context: u32| {
        ModelOptions::default().context(context).cache(CacheFormat::F16).residency(Residency::Gpu)
    };
    let loaded = load(&gpu, &model, &options(4096)).unwrap();
    let all = *loaded.budget();
    assert_eq!(all.weights, loaded.weight_bytes());
    assert_eq!(all.total(), all.weights + all.caches + all.scratch + all.staging);
    assert!([all.caches, all.scratch, all.staging].iter().all(|&bytes| bytes > 0), "{all:?}");

    // All of it, and a byte less.
    load(&gpu, &model, &options(4096).memory(all.total())).unwrap();
    for missing in [1, all.caches / 3] {
        let memory = all.total() - missing;
        let (budget, bound, largest, text) = refused(&gpu, &model, &options(4096).memory(memory));
        assert_eq!((budget, &bound), (all, &Bound::Memory { allowed: memory }));
        let largest = largest.unwrap();
        assert!(text.contains("with a context of 4096") && text.contains("(weights "), "{text}");
        assert!(text.ends_with(&format!("a context of {largest} fits")), "{text}");
        assert!(largest < 4096);
        load(&gpu, &model, &options(largest).memory(memory)).unwrap();
        let (.., next, _) = refused(&gpu, &model, &options(largest + 1).memory(memory));
        assert_eq!(next, Some(largest), "no larger one fits");
    }

    let (.., largest, text) = refused(&gpu, &model, &options(4096).memory(all.weights));
    assert_eq!(largest, None);
    assert!(text.ends_with("no context fits"), "{text}");
}

#[test]
fn a_cache_is_no_larger_than_a_binding() {
    let gpu = gpu(&GpuOptions::default().floor());
    let model = open("micro-e2b-F16");
    let options = |context: u32| ModelOptions::default().context(context).cache(CacheFormat::F32);
    let (_, bound, largest, text) = refused(&gpu, &model, &options(8_000_000));
    let Bound::Binding { what, bytes, allowed } = bound else { panic!("{bound:?}") };
    assert!(what.starts_with("the cache of layer"), "{what}");
    assert!(bytes > allowed && allowed == gpu.profile().largest_binding);
    let largest = largest.unwrap();
    assert_eq!(u64::from(largest), allowed / (bytes / 8_000_000), "{text}");
    load(&gpu, &model, &options(largest)).unwrap();
}

/// More conversations than there is memory for: those used least recently make room, and all of them go on.
#[test]
#[ignore = "needs a process with little memory: the next test makes one"]
fn conversations_until_memory_ends() {
    let gpu = gpu(&GpuOptions::default());
    let model = open("micro-e2b-F16");
    let (.., largest, _) =
        refused(&gpu, &model, &ModelOptions::default().context(8_000_000).cache(CacheFormat::F32));
    // Half of what can be bound, so that two fit into a binding.
    let options =
        ModelOptions::default().context(largest.unwrap() / 2).cache(CacheFormat::F32).conversations(64);
    let loaded = Rc::new(load(&gpu, &model, &options).unwrap());
    let mut states: Vec<_> = (0..8).map(|_| loaded.state().unwrap()).collect();
    let expected = step(&mut states[0], &[2, 610, 483]);
    for _ in 0..2 {
        for state in &mut states {
            state.truncate(0);
            assert_eq!(step(state, &[2, 610, 483]), expected, "it goes on");
        }
        let remembered = states.iter().filter(|state| !state.is_empty()).count();
        assert!((1..8).contains(&remembered), "{remembered} of 8 conversations fit");
        assert_eq!(states[7].len(), 3, "the latest one was not evicted");
    }
}

/// A table of half a gigabyte and a conversation of as much, where memory is left for one and a half of them.
#[test]
#[ignore = "needs a process with little memory: the next test makes one"]
fn a_table_that_leaves_no_room_for_the_conversation() {
    const MIB: usize = 1 << 20;
    let gpu = gpu(&GpuOptions::default());
    let (model, graph) = large_table();
    let options = ModelOptions::default().context(32_768).cache(CacheFormat::F32);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let taken = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.strip_suffix("kB")).unwrap();
    let taken: usize = 1024 * taken.trim().parse::<usize>().unwrap();
    let spare = (1024 * LITTLE_MEMORY).checked_sub(taken + 768 * MIB).unwrap();
    let ballast = std::hint::black_box(Vec::<u8>::with_capacity(spare));

    let error = match try_load(&gpu, &model, graph.clone(), &options.clone().residency(Residency::Gpu)) {
        Err(error) => error,
        Ok(_) => panic!("all of it fits"),
    };
    let GpuError::OutOfMemory { what, .. } = &error else { panic!("{error:?}") };
    assert_eq!(what, "the first conversation");

    let loaded = Rc::new(try_load(&gpu, &model, graph, &options).unwrap());
    assert_eq!(loaded.residency(), Residency::Rows, "the table stays in the file");
    assert_eq!(step(&mut loaded.state().unwrap(), &[1, 2, 3]), [0.0; 32]);
    drop(ballast);
}

/// A model of zeros whose table is half a gigabyte. At a context of 32,768 its caches in f32 are the same.
fn large_table() -> (Rc<Model>, Graph) {
    const WIDTH: u32 = 1024;
    const HEAD: u32 = 512;
    let (builder, mut writer) = (Builder::new(), Writer::new());
    let mut weight = |name: String, rows: u32, width: u32| {
        writer.add_tensor(&name, &[u64::from(width), u64::from(rows)], Format::F32).unwrap();
        builder.weight(WeightInfo::matrix(name, width, rows))
    };
    let mut x = builder.embed(weight("table".into(), 131_072, WIDTH), 1.0, SoftRows::Given);
    for layer in 0..4 {
        let cache = builder.cache(CacheInfo { layer, kv_heads: 1, head_width: HEAD, window: None });
        let heads = x.linear(weight(format!("heads {layer}"), HEAD, WIDTH));
        let stored = heads.store_kv(heads, cache);
        let shape = AttendShape { heads: 1, kv_heads: 1, head_width: HEAD, mask: Mask::GLOBAL };
        x = heads.attend(stored, shape).linear(weight(format!("out {layer}"), WIDTH, HEAD));
    }
    let graph = builder.finish(x.last_row().linear(weight("logits".into(), 32, WIDTH)));
    let file = Box::new(Blank::new(writer).unwrap());
    (Rc::new(pollster::block_on(Model::open(file)).unwrap()), graph)
}

#[test]
#[cfg(target_os = "linux")]
fn memory_that_runs_out_is_an_error() {
    in_little_memory("budget::conversations_until_memory_ends");
}

#[test]
#[cfg(target_os = "linux")]
fn weights_leave_room_for_a_conversation() {
    in_little_memory("budget::a_table_that_leaves_no_room_for_the_conversation");
}

/// Kilobytes that the process of a test may have.
const LITTLE_MEMORY: usize = 5_000_000;

/// Runs an ignored test in a process of its own, which may have little memory.
#[cfg(target_os = "linux")]
fn in_little_memory(test: &str) {
    // Others have memory of their own, which is not known and may be large.
    let profile = gpu(&GpuOptions::default()).profile().clone();
    if !profile.software {
        eprintln!(
            "skipped: `{}` does not take its memory from the process, which can be limited",
            profile.name
        );
        return;
    }
    let output = std::process::Command::new("sh")
        .args([
            "-c",
            &format!("ulimit -v {LITTLE_MEMORY} && exec \"$0\" --ignored --exact {test} --nocapture"),
        ])
        .arg(std::env::current_exe().unwrap())
        // Threads would set memory aside for what each of them allocates.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}
