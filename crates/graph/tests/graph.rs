//! Building, printing and pricing a small graph.

use rullama_graph::{
    AttendShape, Builder, Cache, CacheInfo, Cost, Graph, Mask, Rope, Rows, SoftRows, StepExtent, Tensor,
    WeightInfo,
};

/// A model of one layer with attention and experts, of which only the last row is wanted.
fn small() -> Graph {
    let builder = Builder::new();
    let table = builder.weight(WeightInfo::matrix("embd", 8, 100).bytes(3200));
    let norm = builder.weight(WeightInfo::vector("norm", 8).bytes(32));
    let q = builder.weight(WeightInfo::matrix("q", 8, 16).bytes(512));
    let kv = builder.weight(WeightInfo::matrix("kv", 8, 8).bytes(256));
    let o = builder.weight(WeightInfo::matrix("o", 16, 8).bytes(512));
    let router = builder.weight(WeightInfo::matrix("router", 8, 4).bytes(128));
    let gate = builder.weight(WeightInfo::matrix("gate_up", 8, 6).experts(4).part_of(0, 12).bytes(768));
    let up = builder.weight(WeightInfo::matrix("gate_up", 8, 6).experts(4).part_of(6, 12).bytes(768));
    let down = builder.weight(WeightInfo::matrix("down", 6, 8).experts(4).bytes(768));
    let out = builder.weight(WeightInfo::vector("out_scale", 1).bytes(4));
    let cache = builder.cache(CacheInfo { layer: 0, kv_heads: 2, head_width: 4, window: Some(3) });
    let rope = Rope::new(4, 1e4);

    let x = builder.embed(table, 2.0, SoftRows::Given);
    let x: Tensor<'_> = builder.scope("blk.0", || {
        let u = x.rms_norm(norm, 1e-6);
        let k = u.linear(kv).rope(rope);
        let stored = k.store_kv(u.linear(kv).rms_norm_unweighted(4, 1e-6), cache);
        let shape = AttendShape { heads: 4, kv_heads: 2, head_width: 4, mask: Mask::sliding(3) };
        let a = u.last_row().linear(q).rope(rope).attend(stored, shape).linear(o);
        let x = (x.last_row() + a).named("after_attention");
        let routing = x.linear(router).route(2).named("routing");
        let hidden = x.expert_linear(gate, routing).gelu_mul(x.expert_linear(up, routing));
        (x + hidden.expert_linear(down, routing).combine(routing, None)).scale_by(out).named("out")
    });
    let half = x.columns(0, 4) * x.columns(4, 4);
    builder.finish(half.scale(0.5).soft_cap(30.0).named("result"))
}

#[test]
fn a_graph_reads_as_text() {
    let expected = "\
%0 step×8 = embed embd scale 2 soft given
%1 step×8 = rms_norm %0 norm group 8
%2 step×8 = linear %1 kv
%3 step×8 = rope %2 base 10000 head 4
%4 step×8 = linear %1 kv
%5 step×8 = rms_norm %4 unweighted group 4
%6 = store_kv %3 %5 cache 0
%7 last×8 = last_row %1
%8 last×16 = linear %7 q
%9 last×16 = rope %8 base 10000 head 4
%10 last×16 = attend %9 %6 cache 0 heads 4/2×4 sliding 3
%11 last×8 = linear %10 o
%12 last×8 = last_row %0
%13 last×8 = add %12 %11    // blk.0.after_attention
%14 last×4 = linear %13 router
%15 last×4 = route %14 used 2    // blk.0.routing
%16 last×12 = expert_linear %13 %15 gate_up[0..6]
%17 last×12 = expert_linear %13 %15 gate_up[6..12]
%18 last×12 = gelu_mul %16 %17
%19 last×16 = expert_linear %18 %15 down
%20 last×8 = combine %19 %15
%21 last×8 = add %13 %20
%22 last×8 = scale_by %21 out_scale    // blk.0.out
%23 last×4 = columns %22 0..4
%24 last×4 = columns %22 4..8
%25 last×4 = mul %23 %24
%26 last×4 = scale %25 by 0.5
%27 last×4 = soft_cap %26 30    // result
";
    assert_eq!(small().to_string(), expected);
}

#[test]
fn values_are_forgotten_after_their_last_use() {
    let graph = small();
    let last = graph.last_uses();
    assert_eq!((last[0], last[1], last[15]), (12, 7, 20));
    assert_eq!(last[27], graph.nodes().len(), "the output is kept");
    assert_eq!(graph.adapter_points(), 8);
    assert_eq!(graph.value(graph.output()).shape.rows, Rows::Last);
}

#[test]
fn weights_that_are_the_same_are_declared_once() {
    assert_eq!(small().weights().len(), 10);
}

#[test]
fn costs_count_bytes_and_products() {
    let graph = small();
    let step = &StepExtent::tokens(5, 9);
    let cost = |index: usize| graph.cost(&graph.nodes()[index], step);
    assert_eq!(cost(0).weight_bytes, 5 * 32, "rows of a table are read, not the table");
    assert_eq!(cost(2), Cost { weight_bytes: 256, read_bytes: 160, written_bytes: 160, flops: 2 * 40 * 8 });
    assert_eq!(cost(6).written_bytes, 4 * 80);
    assert_eq!(cost(10).flops, 4 * 16 * 3, "a window bounds what a row sees");
    assert_eq!(cost(16).weight_bytes, 2 * 192, "two of four experts for one row");
    let total = graph.total_cost(step);
    assert_eq!(
        total.weight_bytes,
        graph.nodes().iter().map(|node| graph.cost(node, step).weight_bytes).sum()
    );
}

#[test]
#[should_panic(expected = "`kv` does not fit its input")]
fn a_description_that_does_not_fit_is_a_panic() {
    let builder = Builder::new();
    let table = builder.weight(WeightInfo::matrix("embd", 8, 100));
    let kv = builder.weight(WeightInfo::matrix("kv", 9, 8));
    builder.embed(table, 1.0, SoftRows::Given).linear(kv);
}

/// A tower in small: rows in by name, attention within them, pooled rows and their sum over columns out.
fn tower() -> Graph {
    let builder = Builder::new();
    let project = builder.weight(WeightInfo::matrix("project", 6, 8).bytes(192));
    let output = builder.weight(WeightInfo::matrix("output", 8, 4).bytes(128));
    let patches = Rows::Of(builder.domain("patches"));
    let x = builder.input("pixels", patches, 6).linear(project) + builder.input("places", patches, 8);
    let shape = AttendShape { heads: 2, kv_heads: 1, head_width: 4, mask: Mask::ALL };
    let a = x.attend_rows(x.columns(0, 4), x.columns(4, 4), shape);
    let pooled = a.mean_rows(9, "cells");
    builder.finish_with(&[("rows", pooled.linear(output)), ("pooled", pooled)])
}

#[test]
fn a_graph_has_named_inputs_outputs_and_rows() {
    let graph = tower();
    let expected = "\
%0 domain0×6 = input pixels
%1 domain0×8 = linear %0 project
%2 domain0×8 = input places
%3 domain0×8 = add %1 %2
%4 domain0×4 = columns %3 0..4
%5 domain0×4 = columns %3 4..8
%6 domain0×8 = attend %3 %4 %5 heads 2/1×4 global within step
%7 domain1×8 = mean_rows %6 group 9
%8 domain1×4 = linear %7 output
";
    assert_eq!(graph.to_string(), expected);
    let names = |outputs: &[(String, _)]| outputs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(graph.outputs()), ["rows", "pooled"]);
    assert_eq!(graph.inputs().iter().map(|input| &*input.name).collect::<Vec<_>>(), ["pixels", "places"]);
    let last = graph.last_uses();
    assert_eq!((last[7], last[8]), (9, 9), "both outputs are kept");

    let counts = graph.row_counts(0, 0, |domain| if domain.index() == 0 { 2520 } else { unreachable!() });
    assert_eq!(counts.domains, [2520, 280]);
    let step = StepExtent { rows: counts, context: 0 };
    let cost = |index: usize| graph.cost(&graph.nodes()[index], &step);
    assert_eq!(cost(0), Cost::default(), "what is given costs nothing");
    assert_eq!(cost(6).flops, 4 * 2520 * 8 * 2520);
    assert_eq!(cost(8).flops, 2 * 280 * 4 * 8);
}

#[test]
#[should_panic(expected = "two inputs are called `x`")]
fn inputs_have_names_of_their_own() {
    let builder = Builder::new();
    builder.input("x", Rows::Step, 4);
    builder.input("x", Rows::Step, 8);
}

/// A graph whose step stores keys and values, and what was stored.
fn stored(builder: &Builder) -> (Tensor<'_>, Cache) {
    let cache = builder.cache(CacheInfo { layer: 0, kv_heads: 1, head_width: 8, window: None });
    let x = builder.input("x", Rows::Step, 8);
    x.store_kv(x, cache);
    (x, cache)
}

#[test]
#[should_panic(expected = "a step stores one key and value for each row")]
fn a_cache_is_stored_once() {
    let builder = Builder::new();
    let (x, cache) = stored(&builder);
    x.store_kv(x, cache);
}

#[test]
#[should_panic(expected = "last rows belong to different conversations")]
fn last_rows_do_not_see_each_other() {
    let builder = Builder::new();
    let (x, _) = stored(&builder);
    let last = x.last_row();
    let shape = AttendShape { heads: 1, kv_heads: 1, head_width: 8, mask: Mask::GLOBAL };
    last.attend_rows(last, last, shape);
}
