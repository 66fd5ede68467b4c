//! What must not change a result: how a prompt is cut into steps, and which rows are asked for.

use crate::common::{Loaded, argmax};
use rullama_gemma::Outputs;
use rullama_gguf::{Format, Writer};
use rullama_graph::{Builder, CacheInfo, Graph, WeightInfo};
use rullama_reference::{CacheFormat, Caches, Matrix, ReferenceError, Row, Sequence, Step, Watch, run};

const MODELS: [&str; 4] = ["micro-e2b-Q8_0", "tiny-e2b-Q4_K_M", "tiny-dense-Q4_K_M", "tiny-moe-Q4_K_M"];

/// Longer than two windows of every model.
fn prompt() -> Vec<u32> {
    std::iter::once(2).chain((0..130).map(|index| 300 + index * 37 % 1500)).collect()
}

fn step(model: &Loaded, graph: &Graph, caches: &mut Caches, ids: &[u32]) -> Matrix {
    pollster::block_on(run(graph, &model.weights, caches, &Step::tokens(ids), &mut ())).unwrap()
}

#[test]
fn the_last_row_alone_is_the_last_row_of_all() {
    for name in MODELS {
        let model = Loaded::open(name);
        let (last, all) = (model.graph(Outputs::Last), model.graph(Outputs::All));
        let mut caches = (model.caches(CacheFormat::F32), model.caches(CacheFormat::F32));
        // Twice, so that what the shorter graph left in the caches is looked at as well.
        for ids in [&prompt()[..], &[700, 701, 702]] {
            let last = step(&model, &last, &mut caches.0, ids);
            let all = step(&model, &all, &mut caches.1, ids);
            assert!(last.row(0) == all.row(ids.len() - 1), "{name}: not the same bits");
        }
    }
}

#[test]
fn steps_of_any_size_give_the_same_logits() {
    for name in MODELS {
        let model = Loaded::open(name);
        let graph = model.graph(Outputs::Last);
        let prompt = prompt();
        let whole = step(&model, &graph, &mut model.caches(CacheFormat::F32), &prompt);
        for size in [1, 7, 32] {
            let mut caches = model.caches(CacheFormat::F32);
            let mut logits = Matrix::default();
            for ids in prompt.chunks(size) {
                logits = step(&model, &graph, &mut caches, ids);
            }
            assert_eq!(caches.len(), prompt.len());
            assert!(logits == whole, "{name}: steps of {size} give other bits");
        }
    }
}

#[test]
fn a_cache_that_was_set_back_continues_as_if_nothing_had_followed() {
    let model = Loaded::open("tiny-e2b-Q4_K_M");
    let graph = model.graph(Outputs::Last);
    let prompt = prompt();
    let mut caches = model.caches(CacheFormat::F16);
    step(&model, &graph, &mut caches, &prompt[..100]);
    let expected = step(&model, &graph, &mut caches.clone(), &prompt[100..]);
    step(&model, &graph, &mut caches, &[5, 6, 7, 8]);
    caches.truncate(100);
    assert!(step(&model, &graph, &mut caches, &prompt[100..]) == expected);
}

#[test]
fn rounded_caches_stay_close() {
    for name in MODELS {
        let model = Loaded::open(name);
        let graph = model.graph(Outputs::Last);
        // A text the model knows, on which its choices are clear.
        let ids = [2, 610, 483, 716, 312, 601, 1711, 311, 931, 466];
        let exact = step(&model, &graph, &mut model.caches(CacheFormat::F32), &ids);
        for (format, allowed) in [(CacheFormat::F16, 0.2), (CacheFormat::Q8, 1.5)] {
            let rounded = step(&model, &graph, &mut model.caches(format), &ids);
            assert_ne!(exact, rounded, "{name}: {format:?} changes nothing");
            let apart =
                exact.values().iter().zip(rounded.values()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(apart <= allowed, "{name}, {format:?}: {apart} apart");
            assert_eq!(argmax(exact.row(0)), argmax(rounded.row(0)), "{name}, {format:?}");
        }
    }
}

#[test]
fn a_soft_row_that_is_an_embedding_acts_like_its_token() {
    // Without per-layer embeddings, which a soft row takes from the padding token.
    let model = Loaded::open("tiny-dense-Q4_K_M");
    let graph = model.graph(Outputs::Last);
    let table = model.vector("token_embd.weight");
    let width = 256;
    let row: Vec<f32> =
        table[700 * width..][..width].iter().map(|value| value * (width as f32).sqrt()).collect();
    let expected = step(&model, &graph, &mut model.caches(CacheFormat::F32), &[2, 700, 701]);
    let soft = Step::sequence(Sequence {
        rows: vec![Row::Token(2), Row::Soft(&row), Row::Token(701)],
        spans: Vec::new(),
    });
    let mut caches = model.caches(CacheFormat::F32);
    assert!(
        pollster::block_on(run(&graph, &model.weights, &mut caches, &soft, &mut ())).unwrap() == expected
    );
}

#[test]
fn bad_steps_are_refused_and_leave_the_caches_alone() {
    let model = Loaded::open("micro-e2b-Q8_0");
    let graph = model.graph(Outputs::Last);
    let mut caches = model.caches(CacheFormat::F32);
    step(&model, &graph, &mut caches, &[2, 3]);
    let mut refuse = |step: Step<'_>| {
        let error = pollster::block_on(run(&graph, &model.weights, &mut caches, &step, &mut ())).unwrap_err();
        assert_eq!(caches.len(), 2);
        error
    };
    assert!(matches!(refuse(Step::tokens(&[])), ReferenceError::EmptyStep));
    assert!(matches!(
        refuse(Step::tokens(&[5, 2048])),
        ReferenceError::UnknownToken { id: 2048, vocabulary: 2048 }
    ));
    let short = Step::sequence(Sequence { rows: vec![Row::Soft(&[1.0; 3])], spans: Vec::new() });
    assert!(matches!(refuse(short), ReferenceError::SoftWidth { found: 3, expected: 128 }));
    let bad = [f32::NAN; 128];
    let bad = Step::sequence(Sequence { rows: vec![Row::Soft(&bad)], spans: Vec::new() });
    assert!(matches!(refuse(bad), ReferenceError::NotFinite { value, tokens: 3 } if value == "embed_scaled"));
}

/// Nothing held, so that every weight is read in pieces: the results are the same.
#[test]
fn weights_may_be_streamed() {
    let held = Loaded::open("tiny-moe-Q4_K_M");
    let streamed = Loaded::with_memory("tiny-moe-Q4_K_M", 0);
    let graph = held.graph(Outputs::Last);
    let expected = step(&held, &graph, &mut held.caches(CacheFormat::F32), &prompt()[..40]);
    assert!(step(&streamed, &graph, &mut held.caches(CacheFormat::F32), &prompt()[..40]) == expected);
}

/// A model's file written again with some tensors replaced by others.
fn rewritten(
    name: &str,
    replace: impl Fn(&str, &[u64], Vec<u8>) -> Vec<(String, Vec<u64>, Vec<u8>)>,
) -> Loaded {
    let original = Loaded::open(name);
    let model = original.weights.model();
    let mut writer = Writer::new();
    for (key, value) in model.header().entries() {
        writer.set(key, value).unwrap();
    }
    let mut data = Vec::new();
    for tensor in model.tensors() {
        let bytes = pollster::block_on(model.read(tensor.range())).unwrap();
        for (name, dims, bytes) in replace(tensor.name, tensor.shape.dims(), bytes) {
            let format = if name.ends_with(".scale") && dims == [1] { Format::F32 } else { tensor.format };
            writer.add_tensor(&name, &dims, format).unwrap();
            data.push(bytes);
        }
    }
    let mut body = writer.begin(Vec::new()).unwrap();
    data.iter().for_each(|bytes| body.write_tensor(bytes).unwrap());
    Loaded::from_bytes(name, body.finish().unwrap(), 1 << 30)
}

/// Early files of Ollama have the experts' gates and ups in tensors of their own.
#[test]
fn split_experts_are_the_fused_ones() {
    let fused = Loaded::open("tiny-moe-Q4_K_M");
    let split = rewritten("tiny-moe-Q4_K_M", |name, dims, bytes| {
        match name.strip_suffix("ffn_gate_up_exps.weight") {
            None => vec![(name.to_owned(), dims.to_vec(), bytes)],
            Some(layer) => {
                let half = [dims[0], dims[1] / 2, dims[2]];
                let expert = bytes.len() / dims[2] as usize;
                let halves = |second: bool| -> Vec<u8> {
                    let from = if second { expert / 2 } else { 0 };
                    bytes.chunks(expert).flat_map(|rows| rows[from..from + expert / 2].to_vec()).collect()
                };
                vec![
                    (format!("{layer}ffn_gate_exps.weight"), half.to_vec(), halves(false)),
                    (format!("{layer}ffn_up_exps.weight"), half.to_vec(), halves(true)),
                ]
            }
        }
    });
    let ids = &prompt()[..40];
    let expected = step(&fused, &fused.graph(Outputs::Last), &mut fused.caches(CacheFormat::F32), ids);
    assert!(step(&split, &split.graph(Outputs::Last), &mut split.caches(CacheFormat::F32), ids) == expected);
}

/// Some formats keep a factor for a whole matrix in a tensor beside it.
#[test]
fn a_factor_beside_a_matrix_is_applied() {
    let plain = Loaded::open("micro-e2b-Q8_0");
    let with_factor = |value: f32| {
        rewritten("micro-e2b-Q8_0", move |name, dims, bytes| {
            let mut tensors = vec![(name.to_owned(), dims.to_vec(), bytes)];
            if name == "blk.1.attn_output.weight" {
                tensors.push(("blk.1.attn_output.scale".to_owned(), vec![1], value.to_le_bytes().to_vec()));
            }
            tensors
        })
    };
    // Up to the next norm, which takes any factor out again.
    let output = |model: &Loaded| {
        let mut seen = Seen { name: "layer1.attn_out", value: Matrix::default() };
        let graph = model.graph(Outputs::All);
        let step = Step::tokens(&[2, 610, 483]);
        pollster::block_on(run(
            &graph,
            &model.weights,
            &mut model.caches(CacheFormat::F32),
            &step,
            &mut seen,
        ))
        .unwrap();
        seen.value
    };
    let plain = output(&plain);
    assert!(output(&with_factor(1.0)) == plain);
    let quarter: Vec<f32> = plain.values().iter().map(|value| value * 0.25).collect();
    assert_eq!(output(&with_factor(0.25)).values(), quarter);
}

/// Keeps one named value.
struct Seen {
    name: &'static str,
    value: Matrix,
}

impl Watch for Seen {
    fn value(&mut self, name: &str, value: &Matrix) {
        if name == self.name {
            self.value = value.clone();
        }
    }
}

#[test]
fn weights_that_are_no_numbers_are_noticed() {
    let broken = rewritten("micro-e2b-Q8_0", |name, dims, mut bytes| {
        if name == "blk.2.attn_output.weight" {
            // The scale of a block, as a half: not a number.
            bytes[..2].copy_from_slice(&0x7e00u16.to_le_bytes());
        }
        vec![(name.to_owned(), dims.to_vec(), bytes)]
    });
    let graph = broken.graph(Outputs::Last);
    let mut caches = broken.caches(CacheFormat::F32);
    let result =
        pollster::block_on(run(&graph, &broken.weights, &mut caches, &Step::tokens(&[2, 3]), &mut ()));
    let error = result.unwrap_err();
    assert!(
        matches!(&error, ReferenceError::NotFinite { value, .. } if value == "layer2.attn_out"),
        "{error}"
    );
    assert!(caches.is_empty());
}

/// A file may describe layers as wide as it likes. A step that no machine has memory for is refused before anything is
/// allocated for it, and not a process that is aborted.
#[test]
fn a_step_that_there_is_no_memory_for_is_refused() {
    let model = Loaded::open("micro-e2b-Q8_0");
    let builder = Builder::new();
    let table = builder.weight(WeightInfo::matrix("token_embd.weight", 128, 2048));
    let x = builder.embed(table, 1.0, Default::default());
    for layer in 0..1024 {
        let wide = builder.weight(WeightInfo::matrix("blk.0.attn_k.weight", 128, 1 << 24));
        let cache = CacheInfo { layer, kv_heads: 256, head_width: 65_536, window: None };
        let k = x.linear(wide);
        k.store_kv(k, builder.cache(cache));
    }
    let graph = builder.finish(x.last_row());
    let mut caches = Caches::new(&graph, CacheFormat::F32);
    // 128 GiB of keys and values for each token.
    let ids = vec![5; 2048];
    let step = Step::tokens(&ids);
    let error = pollster::block_on(run(&graph, &model.weights, &mut caches, &step, &mut ())).unwrap_err();
    assert_eq!(error.code(), "memory.exhausted");
    let refused =
        matches!(error, ReferenceError::OutOfMemory { rows: 2048, cached: 0, bytes } if bytes > 1 << 48);
    assert!(refused, "{error}");
}
