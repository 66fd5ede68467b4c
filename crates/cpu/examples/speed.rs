//! How fast products are, for each format and set of instructions: `cargo run --release -p rullama-cpu --example speed`.
//!
//! For one row of activations, as in decoding, and for many, as in a prompt; and attention of all rows to each other, as in a
//! vision tower. Arguments name formats (or `attention`) and sets of instructions; without any, all are measured.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people to run")]

use std::{rc::Rc, time::Instant};

use rullama_cpu::{Caches, Executor, Step};
use rullama_gguf::{Format, MemorySource, Model, Writer};
use rullama_graph::{AttendShape, Builder, CacheFormat, Graph, Mask, Rows, WeightInfo};

const WIDTH: u32 = 2048;
const ROWS: u32 = 2048;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let asked = |kinds: &[&str], name: &str| {
        let mut of_kind = wanted.iter().filter(|word| kinds.contains(&word.as_str())).peekable();
        of_kind.peek().is_none() || of_kind.any(|word| word == name)
    };
    let formats: Vec<&Format> =
        Format::ALL.iter().filter(|format| format.row_bytes(WIDTH.into()).is_some()).collect();
    let names: Vec<String> = formats.iter().map(|format| format.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["attention"]).collect();
    println!("{:8} {:12} {:>5} {:>12} {:>8}", "format", "instructions", "rows", "products/ns", "GB/s");
    for (&&format, name) in formats.iter().zip(&names).filter(|(_, name)| asked(&names, name)) {
        for instructions in Executor::instructions() {
            for tokens in [1, 32] {
                if !asked(&Executor::instructions(), instructions) {
                    continue;
                }
                let seconds = measure(format, instructions, tokens);
                let products = f64::from(tokens * WIDTH * ROWS);
                let bytes = format.row_bytes(WIDTH.into()).unwrap() as f64 * f64::from(ROWS);
                let (products, bytes) = (products / seconds / 1e9, bytes / seconds / 1e9);
                println!("{name:8} {instructions:12} {tokens:5} {products:12.2} {bytes:8.2}");
            }
        }
    }
    for instructions in Executor::instructions() {
        if asked(&names, "attention") && asked(&Executor::instructions(), instructions) {
            attention(instructions);
        }
    }
}

/// Measures attention of some hundred rows and more, with heads as wide as those of towers.
fn attention(instructions: &str) {
    const HEADS: u32 = 12;
    for (rows, head_width) in [(300, 64), (1000, 64), (1000, 72), (2520, 64)] {
        let builder = Builder::new();
        let (domain, width) = (Rows::Of(builder.domain("rows")), HEADS * head_width);
        let [q, k, v] = ["q", "k", "v"].map(|name| builder.input(name, domain, width));
        let shape = AttendShape { heads: HEADS, kv_heads: HEADS, head_width, mask: Mask::ALL };
        let graph = builder.finish(q.attend_rows(k, v, shape));
        let x: Vec<f32> = (0..rows * width).map(|i| (i * 37 % 101) as f32 * 0.01 - 0.5).collect();
        let empty = Writer::new().begin(Vec::new()).unwrap().finish().unwrap();
        let model = Rc::new(pollster::block_on(Model::open(Box::new(MemorySource::new(empty)))).unwrap());
        let executor = Executor::new(model, 1 << 30).with_instructions(instructions);
        let seconds = fastest(&executor, &graph, &[("q", &x), ("k", &x), ("v", &x)]);
        let products = 2.0 * f64::from(rows) * f64::from(rows) * f64::from(width) / seconds / 1e9;
        println!("attention, heads of {head_width}: {instructions:12} {rows:5} {products:12.2}");
    }
}

/// The seconds that one product takes, of the fastest of many.
fn measure(format: Format, instructions: &str, tokens: u32) -> f64 {
    let mut writer = Writer::new();
    writer.set("general.architecture", "gemma4").unwrap();
    writer.add_tensor("w", &[WIDTH.into(), ROWS.into()], format).unwrap();
    let mut body = writer.begin(Vec::new()).unwrap();
    // Any bytes do, but half floats of them should be ordinary numbers.
    let bytes = format.row_bytes(WIDTH.into()).unwrap() as usize * ROWS as usize;
    let bytes: Vec<u8> = (0..bytes).map(|i| (i as u8).wrapping_mul(37) & 0x3b).collect();
    body.write_tensor(&bytes).unwrap();
    let source = MemorySource::new(body.finish().unwrap());
    let model = Rc::new(pollster::block_on(Model::open(Box::new(source))).unwrap());
    let builder = Builder::new();
    let domain = Rows::Of(builder.domain("rows"));
    let w = builder.weight(WeightInfo::matrix("w", WIDTH, ROWS));
    let graph = builder.finish(builder.input("x", domain, WIDTH).linear(w));
    let executor = Executor::new(model, 1 << 30).with_instructions(instructions);
    let x: Vec<f32> = (0..tokens * WIDTH).map(|i| (i % 101) as f32 - 50.0).collect();
    fastest(&executor, &graph, &[("x", &x)])
}

/// The seconds that a step takes, of the fastest of many.
fn fastest(executor: &Executor, graph: &Graph, inputs: &[(&str, &[f32])]) -> f64 {
    let mut caches = Caches::new(graph, CacheFormat::F32);
    let (mut best, begun) = (f64::INFINITY, Instant::now());
    while begun.elapsed().as_secs_f64() < 0.3 {
        let start = Instant::now();
        let (step, mut progress) = (Step::inputs(inputs), |_, _| {});
        pollster::block_on(executor.run(graph, &mut caches, &step, &mut progress)).unwrap();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}
