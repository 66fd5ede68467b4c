//! Vision and hearing of every kind of model against Hugging Face transformers, in both layouts of files; and what the text
//! model makes of their rows.

use std::{collections::HashMap, rc::Rc};

use rullama_gemma::{Config, Gelu, Outputs, text};
use rullama_gguf::Model;
use rullama_reference::{
    CacheFormat, Caches, Matrix, Row, Sequence, Step, Watch, Weights, run, run_together,
};

use crate::{
    common::argmax,
    media::{
        Encoding, Prompt, apart, demo, golden, joined, picture, prompts, questions, samples, sound, split,
    },
};

/// Soft rows may differ by this much; their root mean square is about 1.
pub(crate) const ROWS: f32 = 1e-4;

/// Collects every named value.
#[derive(Default)]
struct Trace(HashMap<String, Matrix>);

impl Watch for Trace {
    fn value(&mut self, name: &str, value: &Matrix) {
        self.0.insert(name.to_owned(), value.clone());
    }
}

/// Soft rows, and all named values.
pub(crate) fn encode(model: &Rc<Model>, encoding: &Encoding) -> (Matrix, HashMap<String, Matrix>) {
    let (graph, weights) = (&encoding.graph, Weights::new(model.clone(), 1 << 30));
    let given: Vec<(&str, Matrix)> = graph
        .inputs()
        .iter()
        .map(|info| {
            let inputs = encoding.inputs();
            let (name, values) = inputs.iter().find(|(name, _)| *name == info.name).unwrap();
            (*name, Matrix::new(values.to_vec(), info.shape.width as usize))
        })
        .collect();
    let given: Vec<_> = given.iter().map(|(name, matrix)| (*name, matrix)).collect();
    let mut trace = Trace::default();
    let step = Step::inputs(&given);
    let outputs = pollster::block_on(run_together(graph, &weights, &mut [], &step, &mut trace));
    (outputs.unwrap().swap_remove(0), trace.0)
}

pub(crate) fn check(place: &str, found: &[f32], expected: &[f32], allowed: f32) {
    let worst = apart(found, expected);
    assert!(worst <= allowed, "{place}: {worst} apart, {allowed} allowed");
}

fn relative(place: &str, found: &[f32], expected: &[f32]) {
    let difference: f64 = found.iter().zip(expected).map(|(a, b)| f64::from(a - b).powi(2)).sum();
    let size: f64 = expected.iter().map(|b| f64::from(*b).powi(2)).sum();
    let error = (difference / size).sqrt();
    assert!(error <= 1e-4, "{place}: relative error {error:.2e}, 1e-4 allowed");
}

#[test]
fn pictures_without_a_tower() {
    let model = joined("tiny-12b-Q8_0", "tiny-12b-mmproj-f16");
    let golden = golden("media/tiny-12b");
    let encoding = picture(&model, "media/tiny-12b-480x336.png", Gelu::Tanh);
    let (rows, values) = encode(&model, &encoding);
    assert_eq!((rows.rows(), rows.width()), (70, 192));
    check("soft rows", rows.values(), &golden["image70.soft_rows0"], ROWS);
    for name in ["dense_out", "normed"] {
        let found = &values[name].values()[..4 * 192];
        relative(name, found, &golden[&format!("image70.{name}_first4")]);
    }
}

#[test]
fn sound_without_a_tower() {
    let model = joined("tiny-12b-Q8_0", "tiny-12b-mmproj-f16");
    let encoding = sound(&model, samples("media/tiny-12b-rise.wav", 640));
    let (rows, _) = encode(&model, &encoding);
    assert_eq!((rows.rows(), rows.width()), (59, 192));
    check("soft rows", rows.values(), &golden("media/tiny-12b")["audio.soft_rows0"], ROWS);
    assert!((38..45).all(|row| rows.row(row).iter().all(|value| *value == 0.0)), "silence is zero");
}

/// The demo model is one file, in the layout of Ollama and of our own converter; with its towers in a file of their own, in
/// llama.cpp's layout, it sees the same bits. It reads pictures in order, and answers what transformers answers.
#[test]
fn pictures_of_the_demo_model_in_both_layouts() {
    let single = demo();
    let both = [single.clone(), split(&single)];
    let golden = golden("demo/demo.media");
    let graph = text(&single, &Config::read(&single).unwrap(), Outputs::Last).unwrap();
    let weights = Weights::new(single.clone(), 1 << 30);
    // The largest picture takes as long as all others together.
    let pictures = questions().into_iter().filter(|question| question.rows == 64);
    let mut compared = 0;
    for question in pictures {
        let path = format!("demo/{}", question.file);
        let [found, beside] =
            both.each_ref().map(|model| encode(model, &picture(model, &path, Gelu::Tanh)).0);
        let rows = format!("{}.rows", question.file.trim_end_matches(".png"));
        check(&rows, found.values(), &golden[&rows], ROWS);
        assert!(found == beside, "{path}: two layouts give different bits");

        let mut rows: Vec<Row<'_>> = question.ids.iter().map(|&id| Row::Token(id)).collect();
        question.span().enumerate().for_each(|(row, at)| rows[at] = Row::Soft(found.row(row)));
        let (mut spans, mut caches) = (vec![question.span()], Caches::new(&graph, CacheFormat::F32));
        for &expected in &question.greedy {
            let step = Step::sequence(Sequence { rows, spans: std::mem::take(&mut spans) });
            let logits = pollster::block_on(run(&graph, &weights, &mut caches, &step, &mut ())).unwrap();
            let next = argmax(logits.values());
            assert_eq!(next, expected, "{path}");
            rows = vec![Row::Token(next)];
        }
        compared += 1;
    }
    assert_eq!(compared, 4);
}

/// What the text model makes of a prompt with a medium.
pub(crate) fn reads(
    name: &str,
    model: &Rc<Model>,
    prompt: &Prompt,
    soft: &Matrix,
    allowed: [f32; 2],
    margin: f32,
) {
    let config = Config::read(model).unwrap();
    let graph = text(model, &config, Outputs::All).unwrap();
    let weights = Weights::new(model.clone(), 1 << 30);
    let mut caches = Caches::new(&graph, CacheFormat::F32);
    let golden = golden(&format!("media/{name}"));
    let golden = |what: &str| &golden[&format!("{}.{what}", prompt.name)];

    let mut rows: Vec<Row<'_>> = prompt.ids.iter().map(|&id| Row::Token(id)).collect();
    let run_of = &prompt.runs[0];
    assert_eq!(run_of.length, soft.rows());
    let span = run_of.start..run_of.start + run_of.length;
    for (row, at) in span.clone().enumerate() {
        rows[at] = Row::Soft(soft.row(row));
    }
    // Sound is read in order by every model.
    let spans = if prompt.name.starts_with("image") { vec![span.clone()] } else { Vec::new() };
    let step = Step::sequence(Sequence { rows, spans });
    let logits = pollster::block_on(run(&graph, &weights, &mut caches, &step, &mut ())).unwrap();

    let place = format!("{name}, `{}`", prompt.name);
    let width = logits.width();
    let [last, all] = allowed;
    check(&place, &logits.values()[(logits.rows() - 8) * width..], golden("logits_last8"), last);
    let ends: Vec<f32> =
        [span.start, span.end - 1, span.end].into_iter().flat_map(|row| logits.row(row).to_vec()).collect();
    check(&format!("{place}, ends"), &ends, golden("logits_at_run_ends"), all);
    for (row, (&expected, &by)) in prompt.argmax.iter().zip(&prompt.margins).enumerate() {
        assert!(by <= margin || argmax(logits.row(row)) == expected, "{place}, row {row}");
    }
    let graph = text(model, &config, Outputs::Last).unwrap();
    let mut next = argmax(logits.row(logits.rows() - 1));
    let mut compared = 0;
    for (&expected, &by) in prompt.hf_greedy.iter().zip(&prompt.hf_greedy_margins) {
        if by <= margin {
            break;
        }
        assert_eq!(next, expected, "{place}, token {compared}");
        compared += 1;
        let ids = [next];
        let step = Step::tokens(&ids);
        let logits = pollster::block_on(run(&graph, &weights, &mut caches, &step, &mut ())).unwrap();
        next = argmax(logits.values());
    }
    assert!(compared > 3, "{place}: only {compared} tokens were compared");
}

#[test]
fn a_picture_is_read_as_a_whole_by_the_larger_members() {
    let name = "tiny-12b";
    let model = joined("tiny-12b-Q8_0", "tiny-12b-mmproj-f16");
    for prompt in prompts(name) {
        let encoding = match prompt.name.as_str() {
            "audio" => sound(&model, samples("media/tiny-12b-rise.wav", 640)),
            _ => picture(&model, "media/tiny-12b-480x336.png", Gelu::Tanh),
        };
        let (soft, _) = encode(&model, &encoding);
        reads(name, &model, &prompt, &soft, [0.02, 0.02], 0.08);
    }
}
