//! Several conversations with one model: decoded together, evicted, set back, opened and closed.

use std::rc::Rc;

use futures_util::future::join_all;
use rullama_gemma::Outputs;
use rullama_gpu::{
    CacheFormat, Footprint, GpuError, GpuModel, GpuOptions, GpuState, ModelOptions, Residency, RowInput,
    Sampling, StepInput,
};
use rullama_graph::{Ahead, AttendShape, Builder, CacheInfo, Mask, Rope, WeightInfo};
use rullama_reference::{Caches, Row, Sequence, Step, Weights, run};

use crate::common::{apart, generated, gpu, graph, load, open, opened, step};

/// One of each kind of model, with windows shorter than the prompts.
const MODELS: [&str; 3] = ["tiny-e2b-Q4_K_M", "tiny-dense-Q4_K_M", "tiny-moe-Q4_K_M"];

/// Prompts of different lengths, some longer than a window.
fn prompts(count: usize) -> Vec<Vec<u32>> {
    let lengths = [3usize, 40, 17, 1, 70, 8, 2, 25];
    let prompt = |(index, &len): (usize, &usize)| {
        (0..len).map(|at| 5 + ((at * 131 + index * 977) % 1500) as u32).collect()
    };
    lengths.iter().cycle().take(count).enumerate().map(prompt).collect()
}

fn loaded(name: &str, options: &ModelOptions) -> Rc<GpuModel> {
    let gpu = gpu(&GpuOptions::default());
    let model = open(name);
    load(&gpu, &model, graph(&model, Outputs::Last), options)
}

async fn next_tokens(state: &mut GpuState, count: usize) -> Result<Vec<u32>, GpuError> {
    let mut tokens = Vec::new();
    for _ in 0..count {
        tokens.push(state.next_token().await?);
    }
    Ok(tokens)
}

/// Reads a prompt in as many steps as it takes, and begins a reply.
async fn begin(state: &mut GpuState, prompt: &[u32], count: usize) {
    let rows = state.rows_at_once();
    let (before, last) = prompt.split_at((prompt.len() - 1) / rows * rows);
    for ids in before.chunks(rows) {
        state.read(ids).await.unwrap();
    }
    state.begin(last, &Sampling::GREEDY, prompt, count).await.unwrap();
}

#[test]
fn conversations_get_the_tokens_they_get_alone() {
    const COUNT: usize = 10;
    for (name, conversations) in MODELS.into_iter().zip([8, 3, 2]) {
        // Steps of eight rows make short rings, which the prompts and replies write several times over.
        let options = ModelOptions::default().context(128).conversations(8).rows(8);
        let model = loaded(name, &options);
        let prompts = prompts(conversations);
        let alone: Vec<Vec<u32>> =
            prompts.iter().map(|prompt| generated(&mut model.state().unwrap(), prompt, COUNT)).collect();

        let mut states: Vec<GpuState> = prompts.iter().map(|_| model.state().unwrap()).collect();
        let found = pollster::block_on(async {
            for (state, prompt) in states.iter_mut().zip(&prompts) {
                begin(state, prompt, COUNT).await;
            }
            join_all(states.iter_mut().map(|state| next_tokens(state, COUNT))).await
        });
        for ((prompt, alone), found) in prompts.iter().zip(alone).zip(found) {
            assert_eq!(found.unwrap(), alone, "{name}, a prompt of {}", prompt.len());
        }
        let together = model.footprint().unwrap().decoded_together;
        assert!(together as usize >= conversations, "{name}: at most {together} rows in a step");
    }
}

/// One conversation is set back and goes on elsewhere while another is being written.
#[test]
fn one_is_set_back_while_another_goes_on() {
    // Steps of other numbers of rows take other kernels, whose rounding a cache in half precision would magnify.
    let options = ModelOptions::default().context(128).cache(CacheFormat::F32).conversations(2);
    let model = loaded("tiny-e2b-Q4_K_M", &options);
    let prompts = prompts(2);
    let expected = generated(&mut model.state().unwrap(), &prompts[1], 12);
    let mut states = [model.state().unwrap(), model.state().unwrap()];
    let [first, second] = &mut states;
    let found = pollster::block_on(async {
        first.begin(&prompts[0], &Sampling::GREEDY, &prompts[0], 20).await.unwrap();
        second.begin(&prompts[1], &Sampling::GREEDY, &prompts[1], 12).await.unwrap();
        let both = join_all([next_tokens(first, 4), next_tokens(second, 4)]).await;
        let mut found = both.into_iter().next_back().unwrap().unwrap();
        first.truncate(2);
        let logits = first.step(&[700, 701]).await.unwrap();
        found.extend(next_tokens(second, 8).await.unwrap());
        (found, logits)
    });
    assert_eq!(found.0, expected);
    let mut fresh = model.state().unwrap();
    let other: Vec<u32> = prompts[0][..2].iter().copied().chain([700, 701]).collect();
    let apart = apart(&found.1, &step(&mut fresh, &other));
    assert!(apart < 1e-4, "{apart}");
}

/// With fewer slots than conversations, the one used least recently makes room, and says so.
#[test]
fn conversations_beyond_the_pool_are_evicted() {
    let model = loaded("micro-e2b-Q8_0", &ModelOptions::default().context(64).conversations(2));
    let ids = [2, 610, 483];
    let mut states: Vec<GpuState> = (0..3).map(|_| model.state().unwrap()).collect();
    let expected = step(&mut states[0], &ids);
    assert_eq!(step(&mut states[1], &ids), expected);
    assert_eq!(states[0].len(), 3);
    assert_eq!(step(&mut states[2], &ids), expected);
    assert_eq!((states[0].len(), states[1].len(), states[2].len()), (0, 3, 3));
    let again = pollster::block_on(states[0].step(&[716]));
    assert!(matches!(again, Err(GpuError::Evicted)), "{again:?}");
    // Set back, it reads everything again, and the next one makes room.
    states[0].truncate(0);
    assert_eq!(step(&mut states[0], &ids), expected);
    assert_eq!(states[1].len(), 0);
    // A conversation that ends leaves its slot to others.
    states.pop();
    states[1].truncate(0);
    assert_eq!(step(&mut states[1], &ids), expected);
    assert_eq!((states[0].len(), states[1].len()), (3, 3));
}

/// Tables in the file and experts in pages: each conversation has its steps to itself, and they do not get into each other's way.
#[test]
fn conversations_share_what_is_brought() {
    for (name, residency) in [("tiny-moe-Q4_K_M", Residency::Paged), ("tiny-e2b-Q4_K_M", Residency::Rows)] {
        let options = ModelOptions::default().context(128).conversations(2).residency(residency);
        let model = loaded(name, &options);
        let prompts = [prompts(3)[0].clone(), prompts(3)[2][..6].to_vec()];
        let alone = prompts.clone().map(|prompt| generated(&mut model.state().unwrap(), &prompt, 5));
        let mut states = [model.state().unwrap(), model.state().unwrap()];
        let found =
            pollster::block_on(join_all(states.iter_mut().zip(&prompts).map(|(state, prompt)| async {
                begin(state, prompt, 5).await;
                next_tokens(state, 5).await.unwrap()
            })));
        assert_eq!(found, alone, "{name}");
    }
}

/// Opening a conversation makes no pipeline, no bind group and no plan, and leaves nothing behind.
#[test]
fn opening_conversations_costs_nothing() {
    // A GPU of its own: other tests compile kernels for theirs.
    let gpu = opened(&GpuOptions::default().without_self_test());
    let file = open("micro-e2b-Q8_0");
    let options = ModelOptions::default().context(64).conversations(2);
    let model = load(&gpu, &file, graph(&file, Outputs::Last), &options);
    let ids = [2, 610, 483];
    let expected = generated(&mut model.state().unwrap(), &ids, 3);
    let before = model.footprint().unwrap();
    for _ in 0..100 {
        assert_eq!(generated(&mut model.state().unwrap(), &ids, 3), expected);
    }
    assert_eq!(model.footprint().unwrap(), before, "a hundred conversations, one after another");
    let mut open: Vec<GpuState> = (0..100).map(|_| model.state().unwrap()).collect();
    assert_eq!(model.footprint().unwrap(), Footprint { conversations: 100, ..before.clone() });
    // All of them read, though the pool has two slots: each makes room for the next.
    for state in &mut open {
        step(state, &ids);
    }
    let grown = model.footprint().unwrap();
    assert_eq!((grown.slots, grown.conversations, grown.pipelines), (2, 100, before.pipelines));
    drop(open);
    assert_eq!(model.footprint().unwrap(), Footprint { conversations: 0, ..grown });
}

/// Soft rows are taken as they are, and rows of a span see each other in the layers that say so.
#[test]
fn soft_rows_and_spans_are_those_of_the_reference() {
    let model = open("micro-e2b-F16");
    for (ahead, window) in
        [(Ahead::Nothing, None), (Ahead::Span, None), (Ahead::Span, Some(4)), (Ahead::Step, Some(4))]
    {
        let builder = Builder::new();
        let weight = |name: &str, width, rows| builder.weight(WeightInfo::matrix(name, width, rows));
        let x = builder.embed(weight("token_embd.weight", 128, 2048), 1.0, Default::default());
        let (heads, kv_heads, head_width) = (4, 1, 64);
        let cache = builder.cache(CacheInfo { layer: 0, kv_heads, head_width, window });
        let rope = Rope::new(head_width, 1e4);
        let norm = builder.weight(WeightInfo::vector("blk.4.attn_q_norm.weight", head_width));
        let k = x.linear(weight("blk.2.attn_k.weight", 128, 64)).rms_norm(norm, 1e-6).rope(rope);
        let v = x.linear(weight("blk.2.attn_v.weight", 128, 64)).rms_norm_unweighted(head_width, 1e-6);
        let stored = k.store_kv(v, cache);
        let q = x.linear(weight("blk.4.attn_q.weight", 128, 256)).rms_norm(norm, 1e-6).rope(rope);
        let mask = Mask { window, ahead };
        let shape = AttendShape { heads, kv_heads, head_width, mask };
        let graph = builder.finish(q.attend(stored, shape));

        let soft: Vec<Vec<f32>> = (0..5)
            .map(|row| (0..128).map(|column| ((row * 128 + column) as f32 * 0.37).sin()).collect())
            .collect();
        let ids = [2, 610, 483, 716, 9, 10, 11];
        let mut inputs: Vec<RowInput<'_>> = ids.iter().map(|&id| RowInput::Token(id)).collect();
        let mut rows: Vec<Row<'_>> = ids.iter().map(|&id| Row::Token(id)).collect();
        for (at, soft) in soft.iter().enumerate() {
            inputs.insert(2 + at, RowInput::Soft(soft));
            rows.insert(2 + at, Row::Soft(soft));
        }
        #[expect(clippy::single_range_in_vec_init, reason = "one span of five rows")]
        let spans = vec![2..7];
        let weights = Weights::new(model.clone(), 1 << 30);
        let mut caches = Caches::new(&graph, CacheFormat::F32);
        let sequence = Sequence { rows, spans: spans.clone() };
        let expected =
            pollster::block_on(run(&graph, &weights, &mut caches, &Step::sequence(sequence), &mut ()))
                .unwrap();

        let gpu = gpu(&GpuOptions::default());
        let options = ModelOptions::default().context(64).cache(CacheFormat::F32);
        for options in [options.clone(), options.unfused()] {
            let loaded = load(&gpu, &model, graph.clone(), &options);
            let mut state = loaded.state().unwrap();
            let input = StepInput { rows: inputs.clone(), spans: spans.clone() };
            let found = pollster::block_on(state.step(input)).unwrap();
            assert!(apart(&found, expected.values()) < 1e-3, "{mask}: {}", apart(&found, expected.values()));
            let mut refused = |rows: &[RowInput<'static>], spans: &[std::ops::Range<usize>]| {
                let input = StepInput { rows: rows.to_vec(), spans: spans.to_vec() };
                pollster::block_on(state.step(input)).unwrap_err()
            };
            let narrow = refused(&[RowInput::Soft(&[1.0])], &[]);
            assert!(matches!(narrow, GpuError::SoftWidth { found: 1, expected: 128 }), "{narrow:?}");
            for spans in [&[(0, 0)][..], &[(1, 3)], &[(0, 2), (1, 2)]] {
                let spans: Vec<_> = spans.iter().map(|&(start, end)| start..end).collect();
                let wrong = refused(&[RowInput::Token(2); 2], &spans);
                assert!(matches!(wrong, GpuError::WrongSpan { rows: 2, .. }), "{spans:?}: {wrong:?}");
            }
        }
    }
}
