//! Products with every format against the reference, with every set of instructions.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::rc::Rc;

use rullama_cpu::{Caches, Executor, Step};
use rullama_gguf::{Format, MemorySource, Model, Writer};
use rullama_graph::{Builder, CacheFormat, Rows, WeightInfo};
use rullama_reference as reference;

fn noise(i: u32) -> u32 {
    (i.wrapping_mul(2_654_435_761) ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b1)
}

/// Random blocks whose scales are ordinary numbers: the golden blocks of ggml's decoders, over and over.
fn blocks(format: Format, bytes: usize) -> Option<Vec<u8>> {
    let file = format!("{}/../../testdata/gguf/blocks.safetensors", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read(file).unwrap();
    let file = safetensors::SafeTensors::deserialize(&file).unwrap();
    let name = format!("{format}.");
    let found = file.iter().find(|(key, tensor)| {
        key.to_ascii_uppercase().starts_with(&name) && tensor.dtype() == safetensors::Dtype::U8
    });
    let whole = found?.1.data();
    let mut decoded = vec![0.0; whole.len() / format.block_bytes() * format.block_len()];
    format.decode(whole, &mut decoded).unwrap();
    // Blocks of ordinary size only: an infinite scale makes everything NaN, and a huge one swallows the others.
    let ordinary = whole.chunks(format.block_bytes()).zip(decoded.chunks(format.block_len()));
    let ordinary = ordinary.filter(|(_, values)| values.iter().all(|value| value.abs() < 1e3));
    let ordinary: Vec<u8> = ordinary.flat_map(|(block, _)| block.to_vec()).collect();
    assert!(!ordinary.is_empty(), "{format}: no ordinary block");
    Some(ordinary.iter().copied().cycle().take(bytes).collect())
}

#[test]
fn products_are_the_references() {
    let mut compared = 0;
    for &format in Format::ALL {
        for (rows, width) in [(7, 256), (66, 512), (5, 2304)] {
            let bytes = format.row_bytes(width).unwrap() as usize * rows as usize;
            let weights = if format.can_encode() {
                let count = width as u32 * rows;
                let values: Vec<f32> = (0..count).map(|i| noise(i) as i32 as f32 * 1e-9).collect();
                let mut out = vec![0; bytes];
                format.encode(&values, &mut out).unwrap();
                out
            } else {
                let Some(weights) = blocks(format, bytes) else { continue };
                weights
            };
            for tokens in [1, 4, 9] {
                check(format, rows, width as u32, &weights, tokens);
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "only {compared} products were compared");
}

/// Twice the error that was measured. Formats with kernels of their own multiply with activations of eight bits, which leave half a
/// percent; golden blocks of some have large offsets, whose products cancel. Others lose nothing but the order of their sums.
fn allowed(format: Format) -> f64 {
    use Format as F;
    match format {
        F::Q4_0
        | F::Q4_1
        | F::Q5_0
        | F::Q8_0
        | F::Q2_K
        | F::Q3_K
        | F::Q4_K
        | F::Q5_K
        | F::Q6_K
        | F::IQ4_XS => 1.1e-2,
        F::Q5_1 | F::IQ4_NL => 2e-2,
        _ => 5e-6,
    }
}

fn check(format: Format, rows: u32, width: u32, weights: &[u8], tokens: u32) {
    let mut writer = Writer::new();
    writer.set("general.architecture", "gemma4").unwrap();
    writer.add_tensor("w", &[width.into(), rows.into()], format).unwrap();
    let mut body = writer.begin(Vec::new()).unwrap();
    body.write_tensor(weights).unwrap();
    let source = MemorySource::new(body.finish().unwrap());
    let model = Rc::new(pollster::block_on(Model::open(Box::new(source))).unwrap());

    let builder = Builder::new();
    let domain = Rows::Of(builder.domain("rows"));
    let w = builder.weight(WeightInfo::matrix("w", width, rows));
    let graph = builder.finish(builder.input("x", domain, width).linear(w));

    let x: Vec<f32> = (0..tokens * width).map(|i| noise(i + 77) as i32 as f32 * 1e-9).collect();
    let matrix = reference::Matrix::new(x.clone(), width as usize);
    let held = reference::Weights::new(model.clone(), 1 << 30);
    let (step, watch) = (reference::Step::inputs(&[("x", &matrix)]), &mut ());
    let expected = pollster::block_on(reference::run_together(&graph, &held, &mut [], &step, watch)).unwrap();
    let expected = expected[0].values();

    let size = expected.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
    for instructions in Executor::instructions() {
        let executor = Executor::new(model.clone(), 1 << 30).with_instructions(instructions);
        let mut caches = Caches::new(&graph, CacheFormat::F32);
        let (step, mut progress) = (Step::inputs(&[("x", &x)]), |_, _| {});
        let run = executor.run(&graph, &mut caches, &step, &mut progress);
        let found = pollster::block_on(run).unwrap().swap_remove(0);
        let difference: f64 = found.values.iter().zip(expected).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        let error = (difference / size).sqrt();
        let allowed = allowed(format);
        assert!(
            error <= allowed,
            "{format}, {instructions}, {rows}x{width}, {tokens} rows: {error:.1e} off, {allowed:.1e} allowed"
        );
    }
}
