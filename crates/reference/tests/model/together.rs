//! Several conversations in one step, each as if it were alone.

use rullama_gemma::Outputs;
use rullama_reference::{CacheFormat, Caches, Sequence, Step, run, run_together};

use crate::common::{Loaded, argmax};

/// Every member of the family. Their windows are shorter than what is read here, so sliding layers forget.
const MODELS: [&str; 4] = ["tiny-e2b-Q4_K_M", "tiny-dense-Q4_K_M", "tiny-moe-Q4_K_M", "micro-e2b-Q8_0"];

/// Prompts of different lengths, some longer than a window.
fn prompts() -> Vec<Vec<u32>> {
    [3usize, 40, 17, 1, 70, 8, 2, 25]
        .iter()
        .enumerate()
        .map(|(index, &len)| (0..len).map(|at| 5 + ((at * 131 + index * 977) % 1500) as u32).collect())
        .collect()
}

/// Greedy tokens of one conversation alone.
fn alone(model: &Loaded, prompt: &[u32], count: usize) -> Vec<u32> {
    let graph = model.graph(Outputs::Last);
    let mut caches = model.caches(CacheFormat::F16);
    let mut ids = prompt.to_vec();
    let mut tokens = Vec::new();
    for _ in 0..count {
        let step = Step::tokens(&ids);
        let logits = pollster::block_on(run(&graph, &model.weights, &mut caches, &step, &mut ())).unwrap();
        ids = vec![argmax(logits.values())];
        tokens.push(ids[0]);
    }
    tokens
}

/// The next token of each conversation, which reads `ids` in one step with the others.
fn step_together(model: &Loaded, caches: &mut [Caches], ids: &[Vec<u32>]) -> Vec<u32> {
    let graph = model.graph(Outputs::Last);
    let step = Step { sequences: ids.iter().map(|ids| Sequence::tokens(ids)).collect(), inputs: Vec::new() };
    let mut caches: Vec<&mut Caches> = caches.iter_mut().collect();
    let watch = &mut ();
    let outputs = run_together(&graph, &model.weights, &mut caches, &step, watch);
    let logits = pollster::block_on(outputs).unwrap().swap_remove(0);
    assert_eq!(logits.rows(), ids.len(), "a row for each conversation");
    (0..logits.rows()).map(|row| argmax(logits.row(row))).collect()
}

#[test]
fn conversations_get_the_tokens_they_get_alone() {
    const COUNT: usize = 12;
    for name in MODELS {
        let model = Loaded::open(name);
        let prompts = prompts();
        let mut caches: Vec<Caches> = prompts.iter().map(|_| model.caches(CacheFormat::F16)).collect();
        let mut ids = prompts.clone();
        let mut found = vec![Vec::new(); prompts.len()];
        for _ in 0..COUNT {
            let next = step_together(&model, &mut caches, &ids);
            ids = next.iter().map(|&token| vec![token]).collect();
            found.iter_mut().zip(next).for_each(|(found, token)| found.push(token));
        }
        for (prompt, found) in prompts.iter().zip(found) {
            assert_eq!(found, alone(&model, prompt, COUNT), "{name}, a prompt of {}", prompt.len());
        }
    }
}

#[test]
fn one_conversation_is_set_back_while_others_go_on() {
    let model = Loaded::open("tiny-e2b-Q4_K_M");
    let prompts = prompts();
    let pair = [prompts[4].clone(), prompts[1].clone()];
    let mut caches: Vec<Caches> = pair.iter().map(|_| model.caches(CacheFormat::F16)).collect();
    let first = step_together(&model, &mut caches, &pair);
    let ids: Vec<Vec<u32>> = first.iter().map(|&token| vec![token]).collect();
    let second = step_together(&model, &mut caches, &ids);

    // The first reads other tokens after half of its prompt; the second goes on.
    caches[0].truncate(35);
    let other = vec![700, 701];
    let third = step_together(&model, &mut caches, &[other.clone(), vec![second[1]]]);
    let set_back: Vec<u32> = pair[0][..35].iter().copied().chain(other).collect();
    assert_eq!(third[0], alone(&model, &set_back, 1)[0]);
    assert_eq!(vec![first[1], second[1], third[1]], alone(&model, &pair[1], 3));
}

#[test]
fn a_step_without_a_token_of_each_is_refused() {
    let model = Loaded::open("micro-e2b-Q8_0");
    let graph = model.graph(Outputs::Last);
    let mut both = [model.caches(CacheFormat::F32), model.caches(CacheFormat::F32)];
    for sequences in [vec![Sequence::tokens(&[2])], vec![Sequence::tokens(&[2]), Sequence::default()]] {
        let step = Step { sequences, inputs: Vec::new() };
        let mut caches: Vec<&mut Caches> = both.iter_mut().collect();
        let error = pollster::block_on(run_together(&graph, &model.weights, &mut caches, &step, &mut ()))
            .unwrap_err();
        assert_eq!(error.code(), "input.empty");
        assert!(both.iter().all(Caches::is_empty));
    }
}
