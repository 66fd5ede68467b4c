//! Graphs that read inputs instead of tokens, attend within themselves and have several outputs, against the reference; and
//! weights that they share with a text model, give back and bring again.

use std::rc::Rc;

use rullama_gemma::Outputs;
use rullama_gguf::{Format, MemorySource, Model, Writer};
use rullama_gpu::{
    EncoderOptions, Gpu, GpuEncoder, GpuError, GpuModel, GpuOptions, GpuWeights, ModelOptions,
};
use rullama_graph::{Ahead, Builder, Graph, Mask, Rows, WeightInfo};
use rullama_reference::{Matrix, Step, Weights, run_together};

use crate::common::{
    apart, gpu, graph, open, step,
    tower::{MODEL, WIDTH, tower},
};

fn values(rows: usize, seed: usize) -> Vec<f32> {
    let value = |at: usize| ((at * 7919 + seed * 104_729) % 2003) as f32 / 1000.0 - 1.0;
    (0..rows * WIDTH as usize).map(value).collect()
}

fn expected(model: &Rc<Model>, graph: &Graph, inputs: &[(&str, &[f32])]) -> Vec<Vec<f32>> {
    let given: Vec<_> =
        inputs.iter().map(|(name, values)| (*name, Matrix::new(values.to_vec(), WIDTH as usize))).collect();
    let given: Vec<_> = given.iter().map(|(name, matrix)| (*name, matrix)).collect();
    let weights = Weights::new(model.clone(), 1 << 30);
    let step = Step::inputs(&given);
    let outputs = pollster::block_on(run_together(graph, &weights, &mut [], &step, &mut ()));
    outputs.unwrap().into_iter().map(Matrix::into_values).collect()
}

fn load(weights: &Rc<GpuWeights>, graph: Graph, fused: bool) -> GpuEncoder {
    let options = if fused { EncoderOptions::default() } else { EncoderOptions::default().unfused() };
    pollster::block_on(GpuEncoder::load(weights, graph, options, &mut |_, _| {})).unwrap()
}

fn run(encoder: &GpuEncoder, rows: usize) -> Vec<Vec<f32>> {
    let (patches, places) = (values(rows, 1), values(rows, 2));
    // The order of inputs does not matter.
    pollster::block_on(encoder.run(&[("places", &places), ("patches", &patches)], &mut |_, _| {})).unwrap()
}

fn text_model(weights: &Rc<GpuWeights>) -> Rc<GpuModel> {
    let graph = graph(weights.source(), Outputs::Last);
    let options = ModelOptions::default().context(64);
    Rc::new(pollster::block_on(GpuModel::load(weights, graph, options, &mut |_, _| {})).unwrap())
}

/// Every size of step, more rows than a step of tokens may have among them; every mask; heads for both kernels.
#[test]
fn rows_attend_to_each_other_and_are_pooled() {
    let model = open(MODEL);
    let options = GpuOptions::default().without_matrices();
    for (options, fused) in [(options.clone(), true), (options.clone(), false), (options.floor(), true)] {
        let gpu: &Gpu = &gpu(&options);
        let weights = GpuWeights::new(gpu.clone(), model.clone());
        let ahead = Mask { ahead: Ahead::Step, ..Mask::sliding(7) };
        for (head_width, mask) in [(64, Mask::ALL), (256, Mask::GLOBAL), (4, Mask::sliding(7)), (64, ahead)] {
            let graph = tower(head_width, mask);
            let encoder = load(&weights, graph.clone(), fused);
            for rows in [1, 5, 40, 600] {
                let (patches, places) = (values(rows, 1), values(rows, 2));
                let expected = expected(&model, &graph, &[("patches", &patches), ("places", &places)]);
                let found = run(&encoder, rows);
                assert_eq!(found.len(), 4);
                for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    let worst = apart(found, expected);
                    assert!(worst < 3e-4, "output {index}, {rows} rows, {mask}, fused {fused}: {worst}");
                }
                assert_eq!(found[1], found[3]);
            }
        }
    }
}

#[test]
fn a_tensor_of_two_graphs_is_loaded_once_and_dropped_with_the_last() {
    let gpu = gpu(&GpuOptions::default());
    let weights = GpuWeights::new(gpu.clone(), open(MODEL));
    let text = text_model(&weights);
    let held = weights.bytes();
    let logits = step(&mut text.state().unwrap(), &[2, 7, 9]);
    let encoder = load(&weights, tower(64, Mask::ALL), true);
    assert_eq!(weights.bytes(), held, "the text model had all of them");
    let alone =
        run(&load(&GpuWeights::new(gpu.clone(), weights.source().clone()), tower(64, Mask::ALL), true), 9);
    assert_eq!(run(&encoder, 9), alone);
    drop(text);
    assert_eq!(run(&encoder, 9), alone, "what it shares is there without the text model");
    let left = weights.bytes();
    assert!((1..held).contains(&left), "{left} of {held} bytes");
    let text = text_model(&weights);
    assert_eq!(weights.bytes(), held, "each tensor once");
    assert_eq!(step(&mut text.state().unwrap(), &[2, 7, 9]), logits);
    drop((text, encoder));
    assert_eq!(weights.bytes(), 0);
}

#[test]
fn weights_that_were_given_back_come_again() {
    let gpu = gpu(&GpuOptions::default());
    let weights = GpuWeights::new(gpu.clone(), open(MODEL));
    let encoder = load(&weights, tower(64, Mask::ALL), true);
    let (before, held) = (run(&encoder, 9), weights.bytes());
    // Besides the weights of four norms.
    assert_eq!(held, encoder.weight_bytes() - 4 * 4 * u64::from(WIDTH));
    encoder.release();
    assert_eq!((encoder.is_loaded(), weights.bytes()), (false, 0));
    assert_eq!(run(&encoder, 9), before);
    assert_eq!((encoder.is_loaded(), weights.bytes()), (true, held));
}

/// A matrix of one file and one of another, in one graph.
#[test]
fn two_files_feed_one_set() {
    let gpu = gpu(&GpuOptions::default());
    let doubled = {
        let mut writer = Writer::new();
        writer.add_tensor("projector", &[256, 256], Format::F32).unwrap();
        let diagonal = |at: usize| if at / 256 == at % 256 { 2.0f32 } else { 0.0 };
        let bytes: Vec<u8> = (0..256 * 256).flat_map(|at| diagonal(at).to_le_bytes()).collect();
        let mut body = writer.begin(Vec::new()).unwrap();
        body.write_tensor(&bytes).unwrap();
        let source = MemorySource::named("projector", body.finish().unwrap());
        pollster::block_on(Model::open(Box::new(source))).unwrap()
    };
    let text = Rc::try_unwrap(open(MODEL)).unwrap();
    let joined = Rc::new(text.join(doubled).unwrap());
    let weights = GpuWeights::new(gpu.clone(), joined.clone());
    let builder = Builder::new();
    let x = builder.input("x", Rows::Of(builder.domain("rows")), WIDTH);
    let k = x.linear(builder.weight(WeightInfo::matrix("blk.0.attn_k.weight", WIDTH, WIDTH)));
    let y = k.linear(builder.weight(WeightInfo::matrix("projector", WIDTH, WIDTH)));
    let encoder = load(&weights, builder.finish_with(&[("k", k), ("y", y)]), true);
    let found = pollster::block_on(encoder.run(&[("x", &values(3, 1))], &mut |_, _| {})).unwrap();
    let twice: Vec<f32> = found[0].iter().map(|value| 2.0 * value).collect();
    assert!(apart(&found[1], &twice) < 1e-4);
}

#[test]
fn what_does_not_fit_is_refused() {
    let gpu = gpu(&GpuOptions::default());
    let weights = GpuWeights::new(gpu.clone(), open(MODEL));
    let encoder = load(&weights, tower(64, Mask::ALL), true);
    let (nine, eight) = (values(9, 1), values(8, 1));
    let refused =
        |inputs: &[(&str, &[f32])]| pollster::block_on(encoder.run(inputs, &mut |_, _| {})).unwrap_err();
    let missing = refused(&[("patches", &nine)]);
    assert_eq!(missing.to_string(), "the graph was run without its input `places`");
    assert_eq!(missing.code(), "input.missing");
    for places in [&eight[..], &nine[1..], &[]] {
        assert_eq!(refused(&[("patches", &nine), ("places", places)]).code(), "input.shape");
    }
    let long = vec![0.0; 65_536 * WIDTH as usize];
    let many = refused(&[("patches", &long), ("places", &long)]);
    assert_eq!(many.to_string(), "input `patches` has 65536 rows, but at most 65535 are computed at once");
    let load =
        |graph, options| pollster::block_on(GpuEncoder::load(&weights, graph, options, &mut |_, _| {}));
    let tokens = load(graph(weights.source(), Outputs::Last), EncoderOptions::default());
    assert!(matches!(tokens, Err(GpuError::Unsupported { .. })));
    // The weights alone, then the weights with the values of a run.
    let held = encoder.weight_bytes();
    let too_little = load(tower(64, Mask::ALL), EncoderOptions::default().memory(held - 1));
    assert!(matches!(too_little, Err(GpuError::EncoderTooLarge { .. })));
    let enough = load(tower(64, Mask::ALL), EncoderOptions::default().memory(held)).unwrap();
    let inputs: [(&str, &[f32]); 2] = [("patches", &nine), ("places", &nine)];
    let values = pollster::block_on(enough.run(&inputs, &mut |_, _| {})).unwrap_err();
    assert_eq!(values.code(), "memory.too_large");
    let options = ModelOptions::default();
    let progress = &mut |_, _| {};
    let text = GpuModel::load(&weights, tower(64, Mask::ALL), options, progress);
    assert!(matches!(pollster::block_on(text), Err(GpuError::Unsupported { .. })));
    let mut broken = nine.clone();
    broken[300] = f32::NAN;
    assert_eq!(refused(&[("patches", &broken), ("places", &nine)]).code(), "model.not_finite");
}
