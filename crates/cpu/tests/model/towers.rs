//! Vision and hearing against Hugging Face transformers, and what the text model makes of their rows.

use std::rc::Rc;

use rullama_cpu::{Caches, Executor, Output, Row, Step};
use rullama_gemma::{Config, Gelu, Outputs, text};
use rullama_gguf::Model;
use rullama_graph::{CacheFormat, Graph};

use crate::{
    common::argmax,
    media::{Encoding, apart, demo, golden, joined, picture, prompts, samples, sound, split},
};

/// Soft rows of towers of half floats may differ by this much; their root mean square is about 1.
const ROWS: f32 = 1e-4;

pub(crate) fn encode(model: &Rc<Model>, encoding: &Encoding) -> Output {
    let executor = Executor::new(model.clone(), 1 << 30);
    let mut caches = Caches::new(&encoding.graph, CacheFormat::F32);
    step(&executor, &encoding.graph, &mut caches, &Step::inputs(&encoding.inputs()))
}

fn step(executor: &Executor, graph: &Graph, caches: &mut Caches, step: &Step<'_>) -> Output {
    let mut progress = |_, _| {};
    pollster::block_on(executor.run(graph, caches, step, &mut progress)).unwrap().swap_remove(0)
}

pub(crate) fn check(place: &str, found: &Output, expected: &[f32]) {
    let worst = apart(&found.values, expected);
    assert!(worst <= ROWS, "{place}: {worst} apart, {ROWS} allowed");
}

#[test]
fn pictures_and_sound_without_a_tower() {
    let model = joined("tiny-12b-Q8_0", "tiny-12b-mmproj-f16");
    let golden = golden("media/tiny-12b");
    let seen = encode(&model, &picture(&model, "media/tiny-12b-480x336.png", Gelu::Tanh));
    check("picture", &seen, &golden["image70.soft_rows0"]);
    let heard = encode(&model, &sound(&model, samples("media/tiny-12b-rise.wav", 640)));
    check("sound", &heard, &golden["audio.soft_rows0"]);
}

/// The towers of the demo model have four to eight bits, so their inputs are rounded to eight.
#[test]
fn pictures_of_the_demo_model_in_both_layouts() {
    let single = demo();
    let both = [single.clone(), split(&single)];
    for name in ["demo-image-0", "demo-image-1", "demo-image-2", "demo-image-3"] {
        let path = format!("demo/{name}.png");
        let [found, beside] = both.each_ref().map(|model| encode(model, &picture(model, &path, Gelu::Tanh)));
        assert!(found == beside, "{name}: two layouts give different bits");
        let expected = &golden("demo/demo.media")[&format!("{name}.rows")];
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        let cosine = product(&found.values, expected)
            / (product(&found.values, &found.values) * product(expected, expected)).sqrt();
        assert!(cosine > 0.999, "{name}: a cosine of {cosine}");
    }
}

/// Activations of eight bits change logits by more than the order of sums does, so choices are compared where they are clear.
#[test]
fn rows_are_read_by_the_text_model() {
    /// By how much the golden token is preferred.
    const SURE: f32 = 2.0;
    let model = joined("tiny-12b-Q8_0", "tiny-12b-mmproj-f16");
    let executor = Executor::new(model.clone(), 1 << 30);
    let config = Config::read(&model).unwrap();
    for prompt in prompts("tiny-12b") {
        let is_picture = prompt.name.starts_with("image");
        let soft = match is_picture {
            true => encode(&model, &picture(&model, "media/tiny-12b-480x336.png", Gelu::Tanh)),
            false => encode(&model, &sound(&model, samples("media/tiny-12b-rise.wav", 640))),
        };
        let span = prompt.runs[0].start..prompt.runs[0].start + prompt.runs[0].length;
        let mut rows: Vec<Row<'_>> = prompt.ids.iter().map(|&id| Row::Token(id)).collect();
        span.clone().enumerate().for_each(|(row, at)| rows[at] = Row::Soft(soft.row(row)));
        let spans = if is_picture { vec![span] } else { Vec::new() };
        let all = text(&model, &config, Outputs::All).unwrap();
        let mut caches = Caches::new(&all, CacheFormat::F32);
        let logits = step(&executor, &all, &mut caches, &Step { rows, spans, ..Step::default() });
        for (row, (&expected, &margin)) in prompt.argmax.iter().zip(&prompt.margins).enumerate() {
            let found = argmax(logits.row(row));
            assert!(margin <= SURE || found == expected, "`{}`, row {row}", prompt.name);
        }
        let graph = text(&model, &config, Outputs::Last).unwrap();
        let mut next = argmax(logits.row(prompt.ids.len() - 1));
        let clear = prompt.hf_greedy_margins.iter().take_while(|&&margin| margin > SURE).count();
        assert!(clear > 3, "`{}`: only {clear} tokens are clear", prompt.name);
        for (token, &expected) in prompt.hf_greedy[..clear].iter().enumerate() {
            assert_eq!(next, expected, "`{}`, token {token}", prompt.name);
            next = argmax(&step(&executor, &graph, &mut caches, &Step::tokens(&[next])).values);
        }
    }
}
