//! Every operation that does not multiply with a matrix, and attention with every cache, against the reference, with every
//! set of instructions. Inputs are random.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::rc::Rc;

use rullama_cpu::{Caches, Executor, Row, Step};
use rullama_gguf::{Format, MemorySource, Model, Writer};
use rullama_graph::{
    AttendShape, Builder, CacheFormat, CacheInfo, Graph, Mask, Rope, Rows, Tensor, WeightInfo,
};
use rullama_reference as reference;

/// Rows and columns of the inputs: no multiples of what vectors hold.
const ROWS: usize = 5;
const WIDTH: u32 = 76;
const EXPERTS: u32 = 6;

/// Numbers between −2 and 2.
fn noise(seed: u32, count: usize) -> Vec<f32> {
    let mix = |i: u32| {
        (i.wrapping_add(seed << 16).wrapping_mul(2_654_435_761) ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b1)
    };
    (0..count as u32).map(|i| mix(i) as i32 as f32 / (1 << 30) as f32).collect()
}

/// A model with the weights that the graphs below name.
fn model() -> Rc<Model> {
    let tensors: [(&str, &[u64]); 5] = [
        ("norm", &[WIDTH.into()]),
        ("head_norm", &[19]),
        ("factor", &[1]),
        ("experts", &[WIDTH.into(), 24, EXPERTS.into()]),
        ("expert_scales", &[EXPERTS.into()]),
    ];
    let mut writer = Writer::new();
    writer.set("general.architecture", "gemma4").unwrap();
    for (name, shape) in tensors {
        writer.add_tensor(name, shape, Format::F32).unwrap();
    }
    let mut body = writer.begin(Vec::new()).unwrap();
    for (seed, (_, shape)) in (10..).zip(tensors) {
        let values = noise(seed, shape.iter().product::<u64>() as usize);
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        body.write_tensor(&bytes).unwrap();
    }
    let source = MemorySource::new(body.finish().unwrap());
    Rc::new(pollster::block_on(Model::open(Box::new(source))).unwrap())
}

/// Fails unless all values are those of the reference but for rounding.
fn compare(what: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let size = expected.iter().fold(1e-3f32, |size, value| size.max(value.abs()));
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= 1e-5 * size, "{what}, value {index}: {found} for {expected}");
    }
}

/// Compares the outputs of a graph that reads `x` and `y` alone.
fn check(what: &str, build: impl for<'g> Fn(&'g Builder, Tensor<'g>, Tensor<'g>) -> Tensor<'g>) {
    let (model, builder) = (model(), Builder::new());
    let domain = Rows::Of(builder.domain("rows"));
    let (x, y) = (builder.input("x", domain, WIDTH), builder.input("y", domain, WIDTH));
    let graph = builder.finish(build(&builder, x, y));
    let inputs = [("x", noise(1, ROWS * WIDTH as usize)), ("y", noise(2, ROWS * WIDTH as usize))];

    let matrices = inputs
        .each_ref()
        .map(|(name, values)| (*name, reference::Matrix::new(values.clone(), WIDTH as usize)));
    let step = reference::Step::inputs(&matrices.each_ref().map(|(name, matrix)| (*name, matrix)));
    let weights = reference::Weights::new(model.clone(), 1 << 30);
    let expected =
        pollster::block_on(reference::run_together(&graph, &weights, &mut [], &step, &mut ())).unwrap();
    for instructions in Executor::instructions() {
        let executor = Executor::new(model.clone(), 1 << 30).with_instructions(instructions);
        let mut caches = Caches::new(&graph, CacheFormat::F32);
        let step = Step::inputs(&inputs.each_ref().map(|(name, values)| (*name, &values[..])));
        let mut progress = |_, _| {};
        let found = pollster::block_on(executor.run(&graph, &mut caches, &step, &mut progress)).unwrap();
        compare(&format!("{what}, {instructions}"), &found[0].values, expected[0].values());
    }
}

#[test]
fn values_are_the_references() {
    check("rms_norm", |builder, x, _| x.rms_norm(builder.weight(WeightInfo::vector("norm", WIDTH)), 1e-6));
    check("rms_norm of heads", |builder, x, _| {
        x.rms_norm(builder.weight(WeightInfo::vector("head_norm", 19)), 1e-6)
    });
    check("rms_norm without weight", |_, x, _| x.rms_norm_unweighted(38, 1e-6));
    check("rope", |_, x, _| x.rope(Rope::new(38, 1e4)));
    check("rope of some pairs", |_, x, _| x.rope(Rope { pairs: 5, ..Rope::new(38, 1e6) }));
    check("add and mul", |_, x, y| (x + y) * y);
    check("scale", |_, x, _| x.scale(0.3));
    check("scale_by", |builder, x, _| x.scale_by(builder.weight(WeightInfo::vector("factor", 1))));
    check("gelu_mul", |_, x, y| x.scale(3.0).gelu_mul(y));
    check("columns", |_, x, _| x.columns(7, 30));
    check("mean_rows", |_, x, _| x.mean_rows(2, "pairs"));
    check("soft_cap", |_, x, _| x.scale(20.0).soft_cap(15.0));
    check("attend_rows", |_, x, y| {
        x.attend_rows(
            y.columns(0, 38),
            y.columns(38, 38),
            AttendShape { heads: 2, kv_heads: 1, head_width: 38, mask: Mask::ALL },
        )
    });
    check("experts", |builder, x, y| {
        let routing = y.columns(0, EXPERTS).scale(2.0).route(3);
        let experts = builder.weight(WeightInfo::matrix("experts", WIDTH, 24).experts(EXPERTS));
        let scales = builder.weight(WeightInfo::vector("expert_scales", EXPERTS));
        x.expert_linear(experts, routing).combine(routing, Some(scales))
    });
}

/// Steps of different sizes, until a sliding window has dropped rows, with caches of every format.
#[test]
fn attention_with_caches_is_the_references() {
    let model = model();
    for (heads, kv_heads, head_width, window) in [(4, 2, 24, Some(9)), (3, 1, 48, None), (2, 2, 64, Some(3))]
    {
        let (graph, widths) = attention(heads, kv_heads, head_width, window);
        for format in CacheFormat::ALL {
            for instructions in Executor::instructions() {
                let what = format!("{heads} heads of {head_width}, {format:?}, {instructions}");
                let executor = Executor::new(model.clone(), 1 << 30).with_instructions(instructions);
                attend_in_steps(&what, &executor, &model, &graph, widths, format);
            }
        }
    }
}

/// A graph of attention alone, and the widths of its inputs.
fn attention(
    heads: u32,
    kv_heads: u32,
    head_width: u32,
    window: Option<u32>,
) -> (Graph, [(&'static str, u32); 3]) {
    let builder = Builder::new();
    let widths = [("q", heads * head_width), ("k", kv_heads * head_width), ("v", kv_heads * head_width)];
    let [q, k, v] = widths.map(|(name, width)| builder.input(name, Rows::Step, width));
    let cache = builder.cache(CacheInfo { layer: 0, kv_heads, head_width, window });
    let mask = Mask { window, ..Mask::GLOBAL };
    let stored = k.store_kv(v, cache);
    (builder.finish(q.attend(stored, AttendShape { heads, kv_heads, head_width, mask })), widths)
}

fn attend_in_steps(
    what: &str,
    executor: &Executor,
    model: &Rc<Model>,
    graph: &Graph,
    widths: [(&'static str, u32); 3],
    format: CacheFormat,
) {
    let weights = reference::Weights::new(model.clone(), 1 << 30);
    let mut caches = Caches::new(graph, format);
    let mut expected_caches = reference::Caches::new(graph, format);
    for (seed, rows) in (20..).step_by(3).zip([1, 7, 1, 16, 2, 1]) {
        let inputs: Vec<(&str, Vec<f32>, u32)> = (seed..)
            .zip(widths)
            .map(|(seed, (name, width))| (name, noise(seed, rows * width as usize), width))
            .collect();
        let matrices: Vec<(&str, reference::Matrix)> = inputs
            .iter()
            .map(|(name, values, width)| (*name, reference::Matrix::new(values.clone(), *width as usize)))
            .collect();
        let mut step = reference::Step::tokens(&vec![0; rows]);
        step.inputs = matrices.iter().map(|(name, matrix)| (*name, matrix)).collect();
        let watch = &mut ();
        let expected = reference::run(graph, &weights, &mut expected_caches, &step, watch);
        let expected = pollster::block_on(expected).unwrap();

        let inputs = inputs.iter().map(|(name, values, _)| (*name, &values[..])).collect();
        let step = Step { rows: vec![Row::Token(0); rows], inputs, ..Step::default() };
        let mut progress = |_, _| {};
        let found = pollster::block_on(executor.run(graph, &mut caches, &step, &mut progress)).unwrap();
        compare(what, &found[0].values, expected.values());
    }
}
