//! Products of experts, of rows that are few, many, and all for the same experts.

use rullama_gguf::Format;
use rullama_gpu::GpuOptions;
use rullama_graph::Tensor;

use super::case::{Case, Gpus, Maker};

/// One more than fills a tile, and than the steps of each plan have; and the most.
const STEPS: [usize; 5] = [8, 9, 17, 65, 512];
const CONTEXT: u32 = 1024;

/// How rows choose their experts.
#[derive(Debug, Clone, Copy)]
enum Routing {
    /// Each for itself.
    Apart,
    /// All the same.
    Alike,
}

impl Routing {
    fn make(self, make: &Maker, experts: u32, used: u32) -> Tensor<'_> {
        let x = match self {
            Self::Apart => make.input(32),
            Self::Alike => make.alike(32),
        };
        x.linear(make.matrix(Format::F32, 32, experts)).route(used)
    }
}

/// Experts, how many of them a row uses, outputs of each, and the width of their input.
type Sizes = [u32; 4];

/// A product of rows that all their experts share.
fn shared(make: &Maker, format: Format, sizes: Sizes, routing: Routing) -> Tensor<'_> {
    let [experts, used, outputs, width] = sizes;
    let routing = routing.make(make, experts, used);
    make.input(width).expert_linear(make.experts(format, width, outputs, experts), routing)
}

/// Gate and up, and a product of what each expert has made of its row; all with the same routing.
fn chained(make: &Maker, formats: [Format; 2], sizes: Sizes, routing: Routing) -> Tensor<'_> {
    let [experts, used, hidden, width] = sizes;
    let routing = routing.make(make, experts, used);
    let x = make.input(width);
    let [gate, up] = make.expert_pair(formats[0], width, hidden, experts);
    let made = x.expert_linear(gate, routing).gelu_mul(x.expert_linear(up, routing));
    made.expert_linear(make.experts(formats[1], hidden, 50, experts), routing)
}

fn check_shared(gpus: &Gpus, format: Format, sizes: Sizes, routing: Routing, steps: &[usize]) {
    let name = format!("experts {sizes:?} in {format}, {routing:?}");
    Case::new(name, 17, |make| shared(make, format, sizes, routing))
        .steps(steps)
        .context(CONTEXT)
        .within(1e-5 * (sizes[3] as f32).sqrt())
        .check(gpus);
}

fn check_chained(gpus: &Gpus, formats: [Format; 2], sizes: Sizes, routing: Routing, steps: &[usize]) {
    let name = format!("gates of experts {sizes:?} in {formats:?}, {routing:?}");
    Case::new(name, 23, |make| chained(make, formats, sizes, routing))
        .steps(steps)
        .context(CONTEXT)
        .within(2e-4)
        .check(gpus);
}

/// Every format meets tiles of every size: the more experts there are, the fewer rows has each.
#[test]
fn every_format_and_tile() {
    let gpus = Gpus::one();
    let formats = [
        (Format::Q4_K, 256),
        (Format::Q6_K, 256),
        (Format::Q8_0, 96),
        (Format::MXFP4, 32),
        (Format::Q5_0, 160),
        (Format::BF16, 64),
    ];
    for (index, (format, width)) in formats.into_iter().enumerate() {
        let counts = [[3, 1, 70], [16, 1, 65], [64, 3, 33], [130, 2, 7]];
        let [experts, used, outputs] = counts[index % counts.len()];
        let sizes = [experts, used, outputs, width];
        check_shared(&gpus, format, sizes, Routing::Apart, &[9, 65, 512]);
        // Tiles of another size for the formats that experts come in.
        if index < 3 {
            let [experts, used, outputs] = counts[(index + 1) % counts.len()];
            let sizes = [experts, used, outputs, width];
            check_shared(&gpus, format, sizes, Routing::Apart, &[17, 70]);
        }
    }
}

/// Without subgroups, and with limits at the floor.
#[test]
fn gates_and_what_follows() {
    let gpus = Gpus::both();
    check_chained(&gpus, [Format::Q4_K, Format::Q8_0], [16, 4, 96, 256], Routing::Apart, &STEPS);
    check_chained(&gpus, [Format::Q8_0, Format::Q5_0], [5, 1, 32, 32], Routing::Apart, &[9, 65]);
    check_chained(&gpus, [Format::MXFP4, Format::Q6_K], [128, 8, 256, 64], Routing::Apart, &[64, 100]);
}

/// Experts that all rows use, beside others that none does.
#[test]
fn rows_that_go_the_same_way() {
    let gpus = Gpus::one();
    check_shared(&gpus, Format::Q4_K, [128, 8, 20, 256], Routing::Alike, &[9, 512]);
    check_shared(&gpus, Format::Q8_0, [300, 1, 65, 32], Routing::Alike, &[17, 65]);
    check_chained(&gpus, [Format::Q8_0, Format::Q4_0], [8, 2, 64, 96], Routing::Alike, &STEPS);
    check_chained(&gpus, [Format::Q4_0, Format::Q8_0], [3, 3, 32, 64], Routing::Alike, &[16, 65]);
}

/// Experts in several buffers: whole, two or more in each; and torn, where a buffer has no room for one.
#[test]
fn shards() {
    for bytes in [40_000, 9000, 3000] {
        let gpus = Gpus::with(&GpuOptions::default().largest_shard(bytes));
        check_shared(&gpus, Format::Q8_0, [10, 3, 70, 96], Routing::Apart, &[9, 65]);
        check_chained(&gpus, [Format::Q8_0, Format::Q8_0], [10, 3, 64, 64], Routing::Apart, &[9, 65]);
        check_chained(&gpus, [Format::Q8_0, Format::Q8_0], [10, 3, 64, 64], Routing::Alike, &[40]);
    }
}
