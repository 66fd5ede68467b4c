//! How fast a model runs: `cargo run --release -p rullama-cpu --example model -- FILE [PROMPT [GENERATE]]`.
//!
//! Reads a prompt of random tokens in steps of 64, as the engine does, and then decodes greedily, several times; prints the
//! tokens per second of each time. `--instructions=NAME` uses other instructions than the fastest.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people to run")]

use std::{rc::Rc, time::Instant};

use rullama_cpu::{Caches, Executor, Output, Step};
use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::{MemorySource, Model};
use rullama_graph::{CacheFormat, Graph};

/// Tokens of a prompt that are read at once.
const AT_ONCE: usize = 64;
const REPEAT: usize = 5;

fn main() {
    let (options, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let number = |at: usize, otherwise| words.get(at).map_or(otherwise, |word| word.parse().unwrap());
    let (path, prompt, generate) = (&words[0], number(1, 128), number(2, 24));
    let source = MemorySource::new(std::fs::read(path).unwrap());
    let model = Rc::new(pollster::block_on(Model::open(Box::new(source))).unwrap());
    let graph = text(&model, &Config::read(&model).unwrap(), Outputs::Last).unwrap();
    let mut executor = Executor::new(model, u64::MAX);
    if let Some(name) = options.iter().find_map(|option| option.strip_prefix("--instructions=")) {
        executor = executor.with_instructions(name);
    }
    for time in 0..=REPEAT {
        let mut caches = Caches::new(&graph, CacheFormat::F16);
        let ids: Vec<u32> = (0..prompt as u32).map(|index| 300 + index * 37 % 1500).collect();
        let start = Instant::now();
        let mut next = 0;
        for ids in ids.chunks(AT_ONCE) {
            next = best(&step(&executor, &graph, &mut caches, ids));
        }
        let read = start.elapsed().as_secs_f64();
        for _ in 0..generate {
            next = best(&step(&executor, &graph, &mut caches, &[next]));
        }
        let written = start.elapsed().as_secs_f64() - read;
        // The first time, weights are read.
        if time > 0 {
            println!(
                "prompt {:9.1} tok/s   decode {:9.1} tok/s",
                prompt as f64 / read,
                generate as f64 / written
            );
        }
    }
}

fn step(executor: &Executor, graph: &Graph, caches: &mut Caches, ids: &[u32]) -> Output {
    let (step, mut progress) = (Step::tokens(ids), |_, _| {});
    pollster::block_on(executor.run(graph, caches, &step, &mut progress)).unwrap().swap_remove(0)
}

fn best(logits: &Output) -> u32 {
    let best = logits.values.iter().copied().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
    best.unwrap().0 as u32
}
