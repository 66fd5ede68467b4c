//! A model of a few tensors, and graphs over it that use every family of kernels.

use rullama_gguf::{Format, MemorySource, Model, Writer};
use rullama_graph::{
    AttendShape, Builder, CacheInfo, Graph, Mask, Rope, SoftRows, Tensor, Weight, WeightInfo,
};

use super::answers::{self, Answer};

const EPS: f32 = 1e-6;
const VOCABULARY: u32 = 64;
/// Two blocks of the K formats; and wide enough that more lanes share an output than a small subgroup has.
const WIDTH: u32 = 512;
/// Columns of what is compared.
pub(super) const OUTPUTS: u32 = 16;

const HEADS: u32 = 2;
const HEAD_WIDTH: u32 = 64;
/// Columns that each of two layers would have of its own.
const LAYER_WIDTH: u32 = 32;

/// Experts, how many of them a row uses, and what each makes of it.
const EXPERTS: u32 = 12;
const USED: u32 = 2;
const EXPERT_WIDTH: u32 = 32;

/// Columns of an input that is long enough to be read in pieces.
const LONG: u32 = 2048;

/// Columns of an input that is no whole number of chunks.
const ODD: u32 = 84;

/// Keys that a row sees where attention slides.
const WINDOW: u32 = 16;

/// The tensors: name, columns, rows, format.
const TENSORS: [(&str, u32, u32, Format); 26] = [
    ("table", WIDTH, VOCABULARY, Format::F16),
    ("norm", WIDTH, 1, Format::F32),
    ("mix", WIDTH, WIDTH, Format::Q4_K),
    ("mix_norm", WIDTH, 1, Format::F32),
    ("gate_norm", WIDTH, 1, Format::F32),
    ("gate", WIDTH, OUTPUTS, Format::Q8_0),
    ("up", WIDTH, OUTPUTS, Format::Q8_0),
    ("q", WIDTH, HEADS * HEAD_WIDTH, Format::F16),
    ("k", WIDTH, HEAD_WIDTH, Format::F16),
    ("v", WIDTH, HEAD_WIDTH, Format::F16),
    ("q_norm", HEAD_WIDTH, 1, Format::F32),
    ("k_norm", HEAD_WIDTH, 1, Format::F32),
    ("output", HEADS * HEAD_WIDTH, OUTPUTS, Format::F16),
    ("layer_table", 2 * LAYER_WIDTH, VOCABULARY, Format::F16),
    ("projection", WIDTH, 2 * LAYER_WIDTH, Format::F16),
    ("layer_norm", LAYER_WIDTH, 1, Format::F32),
    ("layer_output", 2 * LAYER_WIDTH, OUTPUTS, Format::F16),
    ("router", WIDTH, EXPERTS, Format::F16),
    ("expert_gate_up", WIDTH, EXPERTS * 2 * EXPERT_WIDTH, Format::Q8_0),
    ("expert_down", EXPERT_WIDTH, EXPERTS * OUTPUTS, Format::F16),
    ("expert_scale", EXPERTS, 1, Format::F32),
    ("long_table", LONG, VOCABULARY, Format::Q8_0),
    ("down", LONG, 2 * LAYER_WIDTH, Format::Q4_K),
    ("down_norm", 2 * LAYER_WIDTH, 1, Format::F32),
    ("narrow", 2 * LAYER_WIDTH, OUTPUTS, Format::Q8_0),
    ("odd", ODD, OUTPUTS, Format::F16),
];

/// A graph with what it computes for some positions of the tokens that are read.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) graph: fn() -> Graph,
    /// Rows of each step.
    pub(super) steps: &'static [u32],
    pub(super) answers: &'static [Answer],
}

impl Case {
    pub(super) fn tokens(&self) -> u32 {
        self.steps.iter().sum()
    }

    /// Rows of the step that a position is in.
    pub(super) fn step_of(&self, position: u32) -> u32 {
        let mut end = 0;
        let step = self.steps.iter().find(|&&rows| {
            end += rows;
            position < end
        });
        *step.expect("answers are to tokens that are read")
    }
}

pub(super) fn all() -> [Case; 7] {
    [
        Case { name: "products", graph: products, steps: &[58, 4, 1], answers: &answers::PRODUCTS },
        // Far enough that a row's keys are shared by two workgroups.
        Case { name: "attention", graph: attention, steps: &[60, 60, 1], answers: &answers::ATTENTION },
        // Further than a ring holds, which begins anew in the last step but one.
        Case {
            name: "sliding attention",
            graph: sliding,
            steps: &[64, 64, 64, 64, 64, 64, 64, 64, 40, 1],
            answers: &answers::SLIDING,
        },
        Case { name: "experts", graph: experts, steps: &[18, 1], answers: &answers::EXPERTS },
        Case {
            name: "per-layer embeddings",
            graph: per_layer,
            steps: &[12, 1],
            answers: &answers::PER_LAYER,
        },
        // Few rows of such a width have no kernel of their own.
        Case { name: "clamped products", graph: clamped, steps: &[40], answers: &answers::CLAMPED },
        // What is in pieces is so in steps of one row alone.
        Case { name: "split-K products", graph: pieces, steps: &[1, 1], answers: &answers::PIECES },
    ]
}

/// The case that only matrix units answer by kernels of their own: a tile of rows and some more, and keys likewise.
pub(super) fn on_matrix_units() -> Case {
    Case { name: "attention among rows", graph: among_rows, steps: &[70], answers: &answers::AMONG_ROWS }
}

/// The token at a position.
pub(super) fn token(position: u32) -> u32 {
    (37 * position + 11) % VOCABULARY
}

/// Logits to choose from.
pub(super) fn logits() -> Vec<f32> {
    let mut noise = Noise(3);
    (0..300).map(|_| 12.0 * noise.unit() - 6.0).collect()
}

/// Products with norms and sums on their way, of weights with offsets and without, and of pairs.
fn products() -> Graph {
    build(|_, x, weight| {
        let branch = x.rms_norm(weight("norm"), EPS).linear(weight("mix"));
        let sum = x + branch.rms_norm(weight("mix_norm"), EPS);
        let normed = sum.rms_norm(weight("gate_norm"), EPS);
        normed.linear(weight("gate")).gelu_mul(normed.linear(weight("up")))
    })
}

/// Heads, keys and values in a cache, and attention to all of it.
fn attention() -> Graph {
    attending(None)
}

/// Attention to the latest of a cache that is no longer than it has to be.
fn sliding() -> Graph {
    attending(Some(WINDOW))
}

fn attending(window: Option<u32>) -> Graph {
    build(|builder, x, weight| {
        let x = x.rms_norm(weight("norm"), EPS);
        let rope = Rope::new(HEAD_WIDTH, 10_000.0);
        let cache = CacheInfo { layer: 0, kv_heads: 1, head_width: HEAD_WIDTH, window };
        let cache = builder.cache(cache);
        let k = x.linear(weight("k")).rms_norm(weight("k_norm"), EPS).rope(rope);
        let v = x.linear(weight("v")).rms_norm_unweighted(HEAD_WIDTH, EPS);
        let stored = k.store_kv(v, cache);
        let q = x.linear(weight("q")).rms_norm(weight("q_norm"), EPS).rope(rope);
        let mask = Mask { window, ..Mask::GLOBAL };
        let shape = AttendShape { heads: HEADS, kv_heads: 1, head_width: HEAD_WIDTH, mask };
        q.attend(stored, shape).linear(weight("output"))
    })
}

/// Rows that attend to each other, all of them, as the patches of an image do.
fn among_rows() -> Graph {
    build(|_, x, weight| {
        let x = x.rms_norm(weight("norm"), EPS);
        let q = x.linear(weight("q")).rms_norm(weight("q_norm"), EPS);
        let k = x.linear(weight("k")).rms_norm(weight("k_norm"), EPS).scale(4.0);
        let shape = AttendShape { heads: HEADS, kv_heads: 1, head_width: HEAD_WIDTH, mask: Mask::ALL };
        q.attend_rows(k, x.linear(weight("v")), shape).linear(weight("output"))
    })
}

/// Experts that are chosen for each row, and the sum of what they make of it.
fn experts() -> Graph {
    build(|builder, x, weight| {
        let matrices = |name: &str, width, rows| WeightInfo::matrix(name, width, rows).experts(EXPERTS);
        let half = || matrices("expert_gate_up", WIDTH, EXPERT_WIDTH);
        let gate = builder.weight(half().part_of(0, 2 * EXPERT_WIDTH));
        let up = builder.weight(half().part_of(EXPERT_WIDTH, 2 * EXPERT_WIDTH));
        let down = builder.weight(matrices("expert_down", EXPERT_WIDTH, OUTPUTS));
        let x = x.rms_norm(weight("norm"), EPS);
        let routing = x.linear(weight("router")).route(USED);
        let hidden = x.expert_linear(gate, routing).gelu_mul(x.expert_linear(up, routing));
        hidden.expert_linear(down, routing).combine(routing, Some(weight("expert_scale")))
    })
}

/// The embeddings of all layers at once.
fn per_layer() -> Graph {
    build(|builder, x, weight| {
        let tokens = builder.embed(weight("layer_table"), 2.0, SoftRows::Given);
        let projected = x.linear(weight("projection")).scale(0.25).rms_norm(weight("layer_norm"), EPS);
        (projected + tokens).scale(0.5).linear(weight("layer_output"))
    })
}

/// A product of an odd width between bounds.
fn clamped() -> Graph {
    build(|_, x, weight| x.columns(7, ODD).linear(weight("odd")).clamp(-0.03, 0.05))
}

/// A long product on its way to a narrow one, which adds its pieces up.
fn pieces() -> Graph {
    build(|builder, _, weight| {
        let long = builder.embed(weight("long_table"), 1.0, SoftRows::Given);
        let base = builder.embed(weight("layer_table"), 2.0, SoftRows::Given);
        let sum = base + long.linear(weight("down")).rms_norm(weight("down_norm"), EPS);
        sum.linear(weight("narrow"))
    })
}

/// A graph from the rows of the tokens to what `describe` makes of them.
fn build(
    describe: impl for<'g> FnOnce(&'g Builder, Tensor<'g>, &dyn Fn(&str) -> Weight) -> Tensor<'g>,
) -> Graph {
    let builder = Builder::new();
    let weight = |name: &str| {
        let tensor = TENSORS.iter().find(|(tensor, ..)| *tensor == name);
        let &(name, width, rows, _) = tensor.expect("graphs name tensors of the list");
        builder.weight(WeightInfo::matrix(name, width, rows))
    };
    let x = builder.embed(weight("table"), 1.5, SoftRows::Given);
    let output = describe(&builder, x, &weight);
    builder.finish(output)
}

/// The model, written to memory.
pub(super) async fn model() -> Model {
    const WRITTEN: &str = "a list of tensors without mistakes can be written to memory";
    let mut writer = Writer::new();
    for (name, width, rows, format) in TENSORS {
        writer.add_tensor(name, &[width.into(), rows.into()], format).expect(WRITTEN);
    }
    let mut body = writer.begin(Vec::new()).expect(WRITTEN);
    let mut noise = Noise(1);
    for (_, width, rows, format) in TENSORS {
        body.write_tensor(&noise.blocks(format, (width * rows) as usize, width)).expect(WRITTEN);
    }
    let file = MemorySource::named("the self-test", body.finish().expect(WRITTEN));
    Model::open(Box::new(file)).await.expect("what was just written can be read")
}

/// Numbers that are the same everywhere.
struct Noise(u64);

impl Noise {
    fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// From 0 to just below 1.
    fn unit(&mut self) -> f32 {
        (self.word() >> 8) as f32 / (1 << 24) as f32
    }

    /// Values in the blocks of a format. Where these hold whole numbers any bytes will do, but for the scales.
    fn blocks(&mut self, format: Format, values: usize, width: u32) -> Vec<u8> {
        let mut bytes = vec![0; values / format.block_len() * format.block_bytes()];
        let encode = |values: &[f32], format: Format, bytes: &mut [u8]| {
            format.encode(values, bytes).expect("floats can be written as floats");
        };
        match format {
            Format::F32 => {
                let values: Vec<f32> = (0..values).map(|_| 0.25 + 0.25 * self.unit()).collect();
                encode(&values, format, &mut bytes);
            }
            Format::F16 => {
                let scale = 4.0 / (width as f32).sqrt();
                let values: Vec<f32> = (0..values).map(|_| scale * (self.unit() - 0.5)).collect();
                encode(&values, format, &mut bytes);
            }
            _ => {
                bytes.fill_with(|| self.word() as u8);
                let scales: &[f32] = if format == Format::Q4_K { &[2e-4, 1.5e-3] } else { &[5e-4] };
                for block in bytes.chunks_mut(format.block_bytes()) {
                    encode(scales, Format::F16, &mut block[..2 * scales.len()]);
                }
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rullama_reference::{CacheFormat, Caches, Step, Weights, run};

    /// What the reference computes for all positions of a case.
    fn reference(case: &Case) -> Vec<f32> {
        let graph = (case.graph)();
        let weights = Weights::new(std::rc::Rc::new(pollster::block_on(model())), 1 << 30);
        let mut caches = Caches::new(&graph, CacheFormat::F16);
        let ids: Vec<u32> = (0..case.tokens()).map(token).collect();
        let step = Step::tokens(&ids);
        pollster::block_on(run(&graph, &weights, &mut caches, &step, &mut ())).unwrap().into_values()
    }

    #[test]
    fn answers_are_those_of_the_reference() {
        for case in all().into_iter().chain([on_matrix_units()]) {
            let values = reference(&case);
            let known = case.answers.iter().flat_map(|(_, answer)| answer);
            let largest = known.fold(0.0_f32, |largest, value| largest.max(value.abs()));
            for &(position, answer) in case.answers {
                let row = &values[(position * OUTPUTS) as usize..][..OUTPUTS as usize];
                let apart = row.iter().zip(&answer).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(apart < 1e-3 * largest, "{}, position {position}: the answer is {row:?}", case.name);
            }
            for rows in case.steps {
                let answered = case.answers.iter().any(|(position, _)| case.step_of(*position) == *rows);
                assert!(answered, "{}: steps of {rows} have an answer", case.name);
            }
        }
    }
}
