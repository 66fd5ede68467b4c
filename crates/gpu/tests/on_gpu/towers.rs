//! Towers of every kind on the GPU, fused and not, against transformers and the CPU reference.

use std::rc::Rc;

use rullama_gemma::{Config, Gelu, Outputs, text};
use rullama_gguf::Model;
use rullama_gpu::{
    CacheFormat, EncoderOptions, GpuEncoder, GpuError, GpuModel, GpuOptions, GpuWeights, ModelOptions,
    RowInput, StepInput,
};
use rullama_reference::{Matrix, Step, Weights, run_together};

use crate::{
    common::gpu,
    media::{Encoding, apart, demo, golden, joined, picture, prompts, samples, sound},
};

/// Soft rows may differ by this much; their root mean square is about 1.
const ROWS: f32 = 1e-3;

/// Logits may differ by this much with an f32 cache.
const LOGITS: f32 = 0.02;

fn reference(model: &Rc<Model>, encoding: &Encoding) -> Vec<f32> {
    let width = |name: &str| {
        let mut inputs = encoding.graph.inputs().iter();
        inputs.find(|info| info.name == name).unwrap().shape.width as usize
    };
    let given = encoding.inputs().into_iter();
    let given: Vec<_> =
        given.map(|(name, values)| (name, Matrix::new(values.to_vec(), width(name)))).collect();
    let given: Vec<_> = given.iter().map(|(name, matrix)| (*name, matrix)).collect();
    let (weights, step) = (Weights::new(model.clone(), 1 << 30), Step::inputs(&given));
    let outputs = pollster::block_on(run_together(&encoding.graph, &weights, &mut [], &step, &mut ()));
    outputs.unwrap().swap_remove(0).into_values()
}

/// Soft rows with fused operations, without, and on a device that has no more than WebGPU guarantees.
fn encode(model: &Rc<Model>, encoding: &Encoding) -> Vec<Result<Vec<f32>, GpuError>> {
    let options = GpuOptions::default().without_matrices();
    let kinds = [(options.clone(), true), (options.clone(), false), (options.floor(), true)];
    let run = |(options, fused): (GpuOptions, bool)| {
        let gpu: &rullama_gpu::Gpu = &gpu(&options);
        let weights = GpuWeights::new(gpu.clone(), model.clone());
        let graph = encoding.graph.clone();
        let wanted = if fused { EncoderOptions::default() } else { EncoderOptions::default().unfused() };
        let encoder = pollster::block_on(GpuEncoder::load(&weights, graph, wanted, &mut |_, _| {})).unwrap();
        pollster::block_on(encoder.run(&encoding.inputs(), &mut |_, _| {}))
            .map(|mut outputs| outputs.swap_remove(0))
    };
    kinds.into_iter().map(run).collect()
}

fn check(place: &str, model: &Rc<Model>, encoding: &Encoding, expected: &[f32]) {
    for (kind, found) in encode(model, encoding).into_iter().enumerate() {
        let worst = apart(&found.unwrap(), expected);
        assert!(worst <= ROWS, "{place}, kind {kind}: {worst} apart, {ROWS} allowed");
    }
}

#[test]
fn without_a_tower() {
    let model = joined("tiny-12b-Q8_0", "tiny-12b-mmproj-f16");
    let golden = golden("media/tiny-12b");
    let seen = picture(&model, "media/tiny-12b-480x336.png", Gelu::Tanh);
    check("picture", &model, &seen, &golden["image70.soft_rows0"]);
    let heard = sound(&model, samples("media/tiny-12b-rise.wav", 640));
    check("sound", &model, &heard, &golden["audio.soft_rows0"]);
}

/// Prompts with a picture, which sliding layers see as a whole, and with sound, which is read in order.
#[test]
fn rows_are_read_by_the_text_model() {
    let model = joined("tiny-12b-Q8_0", "tiny-12b-mmproj-f16");
    let golden = golden("media/tiny-12b");
    let gpu: &rullama_gpu::Gpu = &gpu(&GpuOptions::default().without_matrices());
    // One set of weights: of the text model, and of what makes its rows.
    let weights = GpuWeights::new(gpu.clone(), model.clone());
    let graph = text(&model, &Config::read(&model).unwrap(), Outputs::All).unwrap();
    let options = ModelOptions::default().context(128).cache(CacheFormat::F32);
    let loaded = pollster::block_on(GpuModel::load(&weights, graph, options, &mut |_, _| {})).unwrap();
    let loaded = Rc::new(loaded);
    for prompt in prompts("tiny-12b") {
        let is_picture = prompt.name.starts_with("image");
        let encoding = match is_picture {
            true => picture(&model, "media/tiny-12b-480x336.png", Gelu::Tanh),
            false => sound(&model, samples("media/tiny-12b-rise.wav", 640)),
        };
        let graph = encoding.graph.clone();
        let encoder =
            pollster::block_on(GpuEncoder::load(&weights, graph, EncoderOptions::default(), &mut |_, _| {}));
        let encoder = encoder.unwrap();
        let soft =
            pollster::block_on(encoder.run(&encoding.inputs(), &mut |_, _| {})).unwrap().swap_remove(0);
        let span = prompt.runs[0].start..prompt.runs[0].start + prompt.runs[0].length;
        let mut rows: Vec<RowInput<'_>> = prompt.ids.iter().map(|&id| RowInput::Token(id)).collect();
        for (at, soft) in span.clone().zip(soft.chunks(soft.len() / span.len())) {
            rows[at] = RowInput::Soft(soft);
        }
        let spans = if is_picture { vec![span.clone()] } else { Vec::new() };
        let mut state = loaded.state().unwrap();
        let logits = pollster::block_on(state.step(StepInput { rows, spans })).unwrap();
        let logits: Vec<&[f32]> = logits.chunks(2048).collect();
        let expect = |what: &str, rows: &[&[f32]]| {
            let worst = apart(&rows.concat(), &golden[&format!("{}.{what}", prompt.name)]);
            assert!(worst <= LOGITS, "`{}`, {what}: {worst} apart, {LOGITS} allowed", prompt.name);
        };
        expect("logits_last8", &logits[logits.len() - 8..]);
        expect("logits_at_run_ends", &[span.start, span.end - 1, span.end].map(|row| logits[row]));
    }
}

#[test]
fn pictures() {
    let model = demo();
    let golden = golden("demo/demo.media");
    let seen = picture(&model, "demo/demo-image-1.png", Gelu::Tanh);
    check("picture", &model, &seen, &golden["demo-image-1.rows"]);
    let seen = picture(&model, "demo/demo-image-1.png", Gelu::Quick);
    check("quick", &model, &seen, &reference(&model, &seen));
}

/// As many frames as leave an odd number of rows twice, and one that is not a number.
#[test]
fn sound_of_a_tower() {
    let model = demo();
    let value = |at: usize| ((at * 7919) % 2003) as f32 / 250.0 - 7.0;
    let mut frames: Vec<f32> = (0..149 * 128).map(value).collect();
    let heard = sound(&model, frames.clone());
    check("sound", &model, &heard, &reference(&model, &heard));
    frames[130] = f32::NAN;
    for found in encode(&model, &sound(&model, frames)) {
        assert_eq!(found.unwrap_err().code(), "model.not_finite");
    }
}
