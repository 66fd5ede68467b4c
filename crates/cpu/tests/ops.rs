//! Every operation that does not multiply with a matrix, and attention with every cache, against the reference, with every
//! set of instructions. Inputs are random.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{future::Future, pin::pin, rc::Rc, task::Context};

use rullama_cpu::{Caches, Executor, Row, Step};
use rullama_gguf::{Format, MemorySource, Model, Writer};
use rullama_graph::{
    Activation, AttendShape, Builder, CacheFormat, CacheInfo, Convolution, Graph, Mask, Rope, Rows, Tensor,
    WeightInfo,
};
use rullama_reference as reference;

/// Rows and columns of the inputs: no multiples of what vectors hold.
const ROWS: usize = 5;
const WIDTH: u32 = 76;
const EXPERTS: u32 = 6;
const CONVOLUTION: Convolution = Convolution { bands: 19, channels: 4, outputs: 6 };

/// Numbers between −2 and 2.
fn noise(seed: u32, count: usize) -> Vec<f32> {
    let mix = |i: u32| {
        (i.wrapping_add(seed << 16).wrapping_mul(2_654_435_761) ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b1)
    };
    (0..count as u32).map(|i| mix(i) as i32 as f32 / (1 << 30) as f32).collect()
}

/// A model with the weights that the graphs below name.
fn model() -> Rc<Model> {
    let tensors: [(&str, &[u64]); 8] = [
        ("norm", &[WIDTH.into()]),
        ("head_norm", &[19]),
        ("factor", &[1]),
        ("experts", &[WIDTH.into(), 24, EXPERTS.into()]),
        ("expert_scales", &[EXPERTS.into()]),
        ("kernel", &[CONVOLUTION.weights().into()]),
        ("columns", &[5 * u64::from(WIDTH)]),
        ("matrix", &[WIDTH.into(), WIDTH.into()]),
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
    check_rows(what, ROWS, &[("x", WIDTH), ("y", WIDTH)], |builder, inputs| {
        build(builder, inputs[0], inputs[1])
    });
}

/// Compares the outputs of a graph with inputs of these names and widths.
fn check_rows(
    what: &str,
    rows: usize,
    inputs: &[(&str, u32)],
    build: impl for<'g> Fn(&'g Builder, &[Tensor<'g>]) -> Tensor<'g>,
) {
    let (model, builder) = (model(), Builder::new());
    let domain = Rows::Of(builder.domain("rows"));
    let tensors: Vec<_> = inputs.iter().map(|(name, width)| builder.input(*name, domain, *width)).collect();
    let graph = builder.finish(build(&builder, &tensors));
    let values: Vec<Vec<f32>> =
        (1..).zip(inputs).map(|(seed, (_, width))| noise(seed, rows * *width as usize)).collect();

    let matrix = |(values, (_, width)): (&Vec<f32>, &(&str, u32))| {
        reference::Matrix::new(values.clone(), *width as usize)
    };
    let matrices: Vec<reference::Matrix> = values.iter().zip(inputs).map(matrix).collect();
    let named: Vec<_> = inputs.iter().zip(&matrices).map(|((name, _), matrix)| (*name, matrix)).collect();
    let step = reference::Step::inputs(&named);
    let weights = reference::Weights::new(model.clone(), 1 << 30);
    let expected =
        pollster::block_on(reference::run_together(&graph, &weights, &mut [], &step, &mut ())).unwrap();
    for instructions in Executor::instructions() {
        let executor = Executor::new(model.clone(), 1 << 30).with_instructions(instructions);
        let named: Vec<_> =
            inputs.iter().zip(&values).map(|((name, _), values)| (*name, &values[..])).collect();
        let found = run(&executor, &graph, &named);
        compare(&format!("{what}, {rows} rows, {instructions}"), &found, expected[0].values());
        let paused = run(&executor.with_pauses_after(1), &graph, &named);
        assert!(paused == found, "{what}, {rows} rows, {instructions}: pauses change the result");
    }
}

/// The only output of a graph without caches.
fn run(executor: &Executor, graph: &Graph, inputs: &[(&str, &[f32])]) -> Vec<f32> {
    let mut caches = Caches::new(graph, CacheFormat::F32);
    let (step, mut progress) = (Step::inputs(inputs), |_, _| {});
    let outputs = pollster::block_on(executor.run(graph, &mut caches, &step, &mut progress)).unwrap();
    outputs.into_iter().next().unwrap().values
}

/// Attention of all rows to all.
fn attend_all<'g>(qkv: &[Tensor<'g>], heads: u32, kv_heads: u32) -> Tensor<'g> {
    let head_width = qkv[0].width() / heads;
    // Large scores would turn the rounding of their sums into differences of probabilities.
    qkv[0].scale(0.3).attend_rows(
        qkv[1],
        qkv[2],
        AttendShape { heads, kv_heads, head_width, mask: Mask::ALL },
    )
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
    check("layer_norm", |builder, x, _| {
        x.layer_norm(builder.weight(WeightInfo::vector("head_norm", 19)), 1e-6)
    });
    check("bias", |builder, x, _| x.bias(builder.weight(WeightInfo::vector("head_norm", 19))));
    check("clamp", |_, x, _| x.clamp(-0.5, 1.25));
    for with in [Activation::Relu, Activation::Sigmoid, Activation::Silu, Activation::QuickGelu] {
        check(&format!("{with:?}"), |_, x, _| x.scale(6.0).activate(with));
    }
    check("experts", |builder, x, y| {
        let routing = y.columns(0, EXPERTS).scale(2.0).route(3);
        let experts = builder.weight(WeightInfo::matrix("experts", WIDTH, 24).experts(EXPERTS));
        let scales = builder.weight(WeightInfo::vector("expert_scales", EXPERTS));
        x.expert_linear(experts, routing).combine(routing, Some(scales))
    });
}

/// More rows than one thread, one tile or one go computes, and heads as wide as those of towers and not.
#[test]
fn many_rows_are_the_references() {
    for (rows, heads, kv_heads, head_width) in
        [(300, 3, 3, 64), (1000, 2, 2, 72), (131, 4, 2, 17), (64, 1, 1, 80), (33, 5, 5, 6)]
    {
        let (width, kv_width) = (heads * head_width, kv_heads * head_width);
        let inputs = [("q", width), ("k", kv_width), ("v", kv_width)];
        check_rows(&format!("attend_rows, heads of {head_width}"), rows, &inputs, |_, qkv| {
            attend_all(qkv, heads, kv_heads)
        });
    }
    for (rows, window) in [(7, 5), (1001, 13)] {
        let inputs = [("q", 144), ("k", 144), ("v", 144)];
        check_rows("attend_relative", rows, &inputs, |_, qkv| {
            let mask = Mask::sliding(window);
            let distances = qkv[0].mean_rows(rows as u32 / 7, "distances").scale(3.0);
            let shape = AttendShape { heads: 2, kv_heads: 2, head_width: 72, mask };
            qkv[0].scale(9.0).attend_relative(qkv[1], qkv[2], distances, shape, 50.0)
        });
    }
    for rows in [1, 2, 301] {
        let x = [("x", WIDTH), ("y", WIDTH)];
        check_rows("convolve", rows, &x, |builder, x| {
            let weight = builder.weight(WeightInfo::vector("kernel", CONVOLUTION.weights()));
            x[0].convolve(weight, CONVOLUTION, "halved")
        });
        check_rows("convolve_columns", rows, &x, |builder, x| {
            x[0].convolve_columns(builder.weight(WeightInfo::vector("columns", 5 * WIDTH)))
        });
        check_rows("rotate", rows, &x, |_, x| x[0].rotate(x[1].columns(0, 38), 38));
        check_rows("rotate in parts", rows, &x, |_, x| x[0].rotate(x[1].columns(0, 38), 2));
        check_rows("layer_norm and bias", rows, &x, |builder, x| {
            let weight = builder.weight(WeightInfo::vector("head_norm", 19));
            x[0].layer_norm(weight, 1e-6).bias(weight).activate(Activation::Silu)
        });
        check_rows("factor", rows, &x, |builder, x| {
            x[0].scale_by(builder.weight(WeightInfo::vector("factor", 1)))
        });
        check_rows("linear", rows, &x, |builder, x| {
            x[0].linear(builder.weight(WeightInfo::matrix("matrix", WIDTH, WIDTH)))
        });
    }
}

/// A row's result does not depend on the place of its query among the others, so it does not depend on threads either.
#[test]
fn queries_in_another_order_give_the_same_bits() {
    const ROWS: usize = 333;
    let builder = Builder::new();
    let domain = Rows::Of(builder.domain("rows"));
    let qkv = ["q", "k", "v"].map(|name| builder.input(name, domain, 48));
    let graph = builder.finish(attend_all(&qkv, 2, 2));
    let [mut q, k, v] = [1, 2, 3].map(|seed| noise(seed, ROWS * 48));
    for instructions in Executor::instructions() {
        let executor = Executor::new(model(), 1 << 30).with_instructions(instructions);
        let mut expected = run(&executor, &graph, &[("q", &q), ("k", &k), ("v", &v)]);
        for rows in [1, 10, 77] {
            q.rotate_left(rows * 48);
            expected.rotate_left(rows * 48);
            let found = run(&executor, &graph, &[("q", &q), ("k", &k), ("v", &v)]);
            assert!(found == expected, "{instructions}: queries moved by {rows} rows have other results");
        }
    }
}

/// An infinite or NaN value among the inputs makes every result that it is part of NaN, not an ordinary number.
#[test]
fn attention_does_not_hide_what_is_not_finite() {
    let builder = Builder::new();
    let domain = Rows::Of(builder.domain("rows"));
    let qkv = ["q", "k", "v"].map(|name| builder.input(name, domain, 32));
    let graph = builder.finish(attend_all(&qkv, 2, 2));
    let inputs = [1, 2, 3].map(|seed| noise(seed, 200 * 32));
    for instructions in Executor::instructions() {
        let executor = Executor::new(model(), 1 << 30).with_instructions(instructions);
        for (bad, at) in [(f32::NAN, 0), (f32::NAN, 150), (f32::INFINITY, 3), (f32::INFINITY, 199)] {
            let [q, mut k, v] = inputs.clone();
            k[at * 32] = bad;
            let found = run(&executor, &graph, &[("q", &q), ("k", &k), ("v", &v)]);
            for (row, found) in found.chunks(32).enumerate() {
                // A score of minus infinity is an ordinary one: its probability is zero.
                let hidden = bad.is_infinite() && q[row * 32] < 0.0;
                assert!(
                    hidden || found[..16].iter().all(|value| !value.is_finite()),
                    "{instructions}, row {row}"
                );
                assert!(found[16..].iter().all(|value| value.is_finite()), "{instructions}, row {row}");
            }
        }
    }
}

/// A caller can cancel a heavy operation long before it ends.
#[test]
fn heavy_operations_pause_between_rows() {
    let builder = Builder::new();
    let domain = Rows::Of(builder.domain("rows"));
    let qkv = ["q", "k", "v"].map(|name| builder.input(name, domain, 256));
    let graph = builder.finish(attend_all(&qkv, 16, 16));
    let executor = Executor::new(model(), 1 << 30);
    let inputs = [1, 2, 3].map(|seed| noise(seed, 1500 * 256));
    let inputs = [("q", &inputs[0][..]), ("k", &inputs[1]), ("v", &inputs[2])];
    let mut caches = Caches::new(&graph, CacheFormat::F32);
    let (step, mut progress) = (Step::inputs(&inputs), |_, _| {});
    let mut run = pin!(executor.run(&graph, &mut caches, &step, &mut progress));
    let mut context = Context::from_waker(std::task::Waker::noop());
    let pauses = (0..100).find(|_| run.as_mut().poll(&mut context).is_ready());
    assert!(pauses.is_some_and(|pauses| pauses > 3), "{pauses:?} pauses in a thousand million products");
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
