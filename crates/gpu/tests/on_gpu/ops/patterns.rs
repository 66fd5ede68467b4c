//! What is fused, and what looks like it.

use rullama_gguf::Format;
use rullama_graph::Tensor;

use super::{
    attention::Layer,
    case::{Case, Gpus, Maker, Random},
};

const EPS: f32 = 1e-6;
/// Of norms whose result is added to something: large enough to be seen.
const BRANCH_EPS: f32 = 0.3;
const STEPS: [usize; 5] = [1, 3, 9, 70, 1];

fn check(gpus: &Gpus, name: &str, build: impl for<'g> Fn(&'g Maker) -> Tensor<'g>) {
    Case::new(name, 41, build).steps(&STEPS).within(2e-4).check(gpus);
}

/// `gelu(gate) · up`, of weights that can be stacked and of others.
#[test]
fn gates() {
    let gpus = Gpus::both();
    let (a, b) = (Format::Q8_0, Format::Q4_0);
    for (formats, width, hidden) in
        [([a, a], 96, 300), ([a, b], 96, 33), ([a, a], 32, 1), ([Format::F16; 2], 100, 40), ([b, b], 1056, 7)]
    {
        check(&gpus, &format!("gate {formats:?} {hidden}×{width}"), |make| {
            let x = make.input(width);
            let [gate, up] = formats.map(|format| x.linear(make.matrix(format, width, hidden)));
            gate.gelu_mul(up)
        });
    }
    check(&gpus, "gate of another input", |make| {
        let [x, z] = [(); 2].map(|()| make.input(64));
        x.linear(make.matrix(a, 64, 40)).gelu_mul(z.linear(make.matrix(a, 64, 40)))
    });
    check(&gpus, "gate that is read twice", |make| {
        let x = make.input(64);
        let [gate, up] = [(); 2].map(|()| x.linear(make.matrix(a, 64, 40)));
        gate.gelu_mul(up) + gate
    });
    check(&gpus, "gate and columns", |make| {
        let x = make.input(64);
        x.linear(make.matrix(a, 64, 40)).gelu_mul(make.input(100).columns(27, 40))
    });
    check(&gpus, "gate and columns of a last row", |make| {
        let x = make.input(64).last_row();
        x.linear(make.matrix(a, 64, 40)).gelu_mul(make.input(100).last_row().columns(27, 40))
    });
    check(&gpus, "capped product", |make| make.input(64).linear(make.matrix(a, 64, 77)).soft_cap(0.5));
}

/// Products between bounds; and what is no such thing.
#[test]
fn clamps() {
    let gpus = Gpus::both();
    for (format, width, rows) in [(Format::Q4_0, 96, 300), (Format::F16, 100, 33), (Format::Q8_0, 1056, 7)] {
        check(&gpus, &format!("clamped {format} {rows}×{width}"), |make| {
            make.input(width).linear(make.matrix(format, width, rows)).clamp(-0.4, 0.7)
        });
    }
    let a = Format::Q8_0;
    check(&gpus, "clamped from one side, and clamped again", |make| {
        let y = make.input(64).linear(make.matrix(a, 64, 40)).clamp(f32::NEG_INFINITY, 0.5);
        y.clamp(-0.2, f32::INFINITY)
    });
    check(&gpus, "products of one norm, all with other bounds", |make| {
        let x = make.input(96).rms_norm(make.vector(96), EPS);
        let [p, q, r] = [0.3, 0.6, 0.9].map(|high| x.linear(make.matrix(a, 96, 40)).clamp(-0.5, high));
        p.gelu_mul(q) + r
    });
    check(&gpus, "a clamped product that is read twice", |make| {
        let y = make.input(64).linear(make.matrix(a, 64, 40));
        y.clamp(-0.3, 0.3) + y
    });
    check(&gpus, "a clamped last row", |make| {
        make.input(64).linear(make.matrix(a, 64, 40)).last_row().clamp(-0.3, 0.3)
    });
}

/// A branch that returns to the stream, with and without a scale, read once and more often.
#[test]
fn sums() {
    let gpus = Gpus::both();
    let product = |make: &Maker, x: Tensor<'_>, rows| make.matrix(Format::Q8_0, x.width(), rows);
    for width in [32, 96, 1056, 100] {
        let format = if width == 100 { Format::F16 } else { Format::Q8_0 };
        let norm = |make: &Maker| make.vector(width);
        check(&gpus, &format!("sum {width}"), |make| {
            let x = make.input(width);
            x + x.linear(make.matrix(format, width, width)).rms_norm(norm(make), BRANCH_EPS)
        });
        check(&gpus, &format!("scaled sum {width}"), |make| {
            let x = make.input(width);
            let sum = x + x.linear(make.matrix(format, width, width)).rms_norm(norm(make), BRANCH_EPS);
            sum.scale_by(make.vector(1))
        });
        check(&gpus, &format!("normed product of a scaled sum {width}"), |make| {
            let x = make.input(width);
            let sum = (x + make.input(width).rms_norm(norm(make), BRANCH_EPS)).scale_by(make.vector(1));
            let y = sum.rms_norm(norm(make), EPS).linear(make.matrix(format, width, width));
            // Read again, after the product.
            sum + y.rms_norm(norm(make), BRANCH_EPS)
        });
    }
    check(&gpus, "product of a sum", |make| {
        let x = make.input(96);
        let sum = x + make.input(96).rms_norm(make.vector(96), BRANCH_EPS);
        sum.linear(product(make, sum, 20))
    });
    check(&gpus, "two norms of a sum", |make| {
        let sum = make.input(96) + make.input(96).rms_norm(make.vector(96), BRANCH_EPS);
        let a = sum.rms_norm(make.vector(96), EPS);
        let b = sum.rms_norm(make.vector(96), EPS).scale(0.25);
        a.linear(product(make, a, 40)).gelu_mul(b.linear(product(make, b, 40)))
    });
    check(&gpus, "norm with a factor", |make| {
        let x = make.input(96).rms_norm(make.vector(96), EPS).scale(0.1);
        x.linear(product(make, x, 40))
    });
    check(&gpus, "norm that is read by more than products", |make| {
        let x = make.input(96).rms_norm(make.vector(96), EPS);
        x.linear(product(make, x, 96)) + x
    });
    check(&gpus, "sum of two norms", |make| {
        let [a, b] = [(); 2].map(|()| make.input(96).rms_norm(make.vector(96), EPS));
        (a + b).rms_norm(make.vector(96), BRANCH_EPS)
    });
    check(&gpus, "sum of a norm with itself", |make| {
        let x = make.input(96).rms_norm(make.vector(96), EPS);
        x + x
    });
    check(&gpus, "sum on the other side", |make| {
        make.input(96).rms_norm(make.vector(96), EPS) + make.input(96)
    });
    check(&gpus, "scaled twice", |make| {
        let sum = make.input(96) + make.input(96).rms_norm(make.vector(96), BRANCH_EPS);
        sum.scale_by(make.vector(1)).scale_by(make.vector(1))
    });
    check(&gpus, "last row of a sum", |make| {
        let sum = make.input(96) + make.input(96).rms_norm(make.vector(96), BRANCH_EPS);
        let x = sum.last_row();
        let y = x.rms_norm(make.vector(96), EPS).linear(product(make, x, 96));
        x + y.rms_norm(make.vector(96), BRANCH_EPS)
    });
}

fn down<'g>(make: &'g Maker, x: Tensor<'g>, format: Format, width: u32) -> Tensor<'g> {
    make.input(width).linear(make.matrix(format, width, x.width()))
}

/// Products over a long x whose narrow reader adds their pieces up, and some that only look like it.
#[test]
fn products_in_pieces() {
    let gpus = Gpus::both();
    // Only steps of one row are in pieces; one of nine shows that others are not.
    let check = |name: &str, build: &dyn for<'g> Fn(&'g Maker) -> Tensor<'g>| {
        Case::new(name, 41, build).steps(&[1, 9, 1]).within(2e-4).check(&gpus);
    };
    let reader = |make: &Maker, x: Tensor<'_>, rows| make.matrix(Format::Q8_0, x.width(), rows);
    // Pieces of 48 chunks and of 64; none where chunks cannot be cut evenly, or need not be cut.
    for (format, width, stream) in [
        (Format::Q8_0, 3072, 96),
        (Format::Q4_0, 2080, 96),
        (Format::Q4_K, 6144, 1056),
        (Format::F16, 3072, 32),
    ] {
        check(&format!("pieces of {format} {stream}×{width}"), &|make| {
            let x = make.input(stream);
            let sum = x + down(make, x, format, width).rms_norm(make.vector(stream), BRANCH_EPS);
            let gate = sum.linear(reader(make, sum, 40)).gelu_mul(make.input(40));
            sum + gate.linear(make.matrix(Format::F16, 40, stream)).rms_norm(make.vector(stream), BRANCH_EPS)
        });
    }
    for (width, stream) in [(3072, 96), (4096, 1056)] {
        check(&format!("normed pieces {stream}×{width}"), &|make| {
            let x = make.input(stream);
            let branch = down(make, x, Format::Q4_K, width).rms_norm(make.vector(stream), BRANCH_EPS);
            let y = (x + branch).scale_by(make.vector(1)).rms_norm(make.vector(stream), EPS);
            y.linear(reader(make, y, 7))
        });
    }
    check("a wide reader beside a narrow one", &|make| {
        let x = make.input(96);
        let sum = x + down(make, x, Format::Q8_0, 6144).rms_norm(make.vector(96), BRANCH_EPS);
        let wide = sum.linear(make.matrix(Format::Q4_0, 96, 600)).columns(3, 40);
        sum.linear(reader(make, sum, 40)).gelu_mul(wide)
    });
    check("a product that is read besides", &|make| {
        let x = make.input(96);
        let long = down(make, x, Format::Q8_0, 3072);
        let sum = x + long.rms_norm(make.vector(96), BRANCH_EPS);
        let y = sum.linear(reader(make, sum, 40));
        y.linear(make.matrix(Format::F16, 40, 96)) + long
    });
    check("a product whose last row is read besides", &|make| {
        let x = make.input(96);
        let long = down(make, x, Format::Q8_0, 3072).last_row();
        let sum = x.last_row() + long.rms_norm(make.vector(96), BRANCH_EPS);
        let y = sum.linear(reader(make, sum, 40));
        y.linear(make.matrix(Format::F16, 40, 96)) + long
    });
    check("a capped product", &|make| {
        let x = make.input(96);
        let sum = x + down(make, x, Format::Q8_0, 3072).soft_cap(0.5).rms_norm(make.vector(96), BRANCH_EPS);
        sum.linear(reader(make, sum, 40))
    });
    check("gates of a long input", &|make| {
        let (x, long) = (make.input(96), make.input(3072));
        let [gate, up] = [(); 2].map(|()| long.linear(make.matrix(Format::Q8_0, 3072, 96)));
        let sum = x + gate.gelu_mul(up).rms_norm(make.vector(96), BRANCH_EPS);
        sum.linear(reader(make, sum, 40))
    });
    check("a last row in pieces", &|make| {
        let x = make.input(96).last_row();
        let long = make.input(3072).last_row().linear(make.matrix(Format::Q8_0, 3072, 96));
        let sum = x + long.rms_norm(make.vector(96), BRANCH_EPS);
        sum.linear(reader(make, sum, 40))
    });
}

/// What attention found is projected in two pieces, of one split of the context and of several.
#[test]
fn attention_in_pieces() {
    let gpus = Gpus::both();
    for (heads, head_width, window) in [(8, 256, Some(600)), (4, 512, None)] {
        let name = format!("attention in pieces {heads}×{head_width} {window:?}");
        Case::new(name, 43, |make| {
            let x = make.input(96);
            let layer = Layer::new(heads, 1, head_width, window);
            let (answer, _) = layer.forward(make, x.rms_norm(make.vector(96), EPS), None);
            let sum = x + answer.rms_norm(make.vector(96), BRANCH_EPS);
            sum.linear(make.matrix(Format::Q8_0, 96, 600))
        })
        .steps(&[1, 66, 1, 70, 1])
        .context(160)
        .within(2e-3)
        .check(&gpus);
    }
}

/// The embeddings of all layers, in groups that the fast way knows and others.
#[test]
fn per_layer_embeddings() {
    let gpus = Gpus::both();
    let formats = [Format::Q8_0, Format::F32, Format::Q5_1, Format::Q4_K, Format::Q6_K, Format::BF16];
    for (format, groups, group) in formats.map(|format| (format, 8, 32)).into_iter().chain([
        (Format::F16, 3, 24),
        (Format::Q4_0, 3, 64),
        (Format::Q8_0, 2, 288),
    ]) {
        let width = groups * group;
        check(&gpus, &format!("per-layer {format} {groups}×{group}"), |make| {
            let x = make.input(64);
            let projected = x.linear(make.matrix(Format::Q8_0, 64, width)).scale(0.2);
            let tokens = make.embed(format, width, 3.0);
            (projected.rms_norm(make.vector(group), BRANCH_EPS) + tokens).scale(0.7)
        });
    }
}

/// A mixture of experts.
fn mixture<'g>(
    make: &'g Maker,
    x: Tensor<'g>,
    sizes: [u32; 3],
    formats: [Format; 2],
    shared: bool,
) -> Tensor<'g> {
    let [experts, used, hidden] = sizes;
    let width = x.width();
    let routing = x.linear(make.matrix(Format::F32, width, experts)).route(used);
    let [gate, up] = match shared {
        true => make.expert_pair(formats[0], width, hidden, experts),
        false => [(); 2].map(|()| make.experts(formats[0], width, hidden, experts)),
    };
    let hidden_row = x.expert_linear(gate, routing).gelu_mul(x.expert_linear(up, routing));
    let down = make.experts(formats[1], hidden, width, experts);
    hidden_row.expert_linear(down, routing).combine(routing, Some(make.vector(experts)))
}

#[test]
fn experts() {
    let gpus = Gpus::both();
    let cases = [
        (96, [8, 2, 64], [Format::Q8_0, Format::Q5_0]),
        (256, [5, 1, 32], [Format::Q4_K, Format::Q8_0]),
        (160, [16, 4, 96], [Format::Q5_0, Format::Q4_0]),
        (100, [4, 2, 40], [Format::F16, Format::BF16]),
        (32, [3, 3, 32], [Format::MXFP4, Format::IQ4_NL]),
    ];
    for (index, (width, sizes, formats)) in cases.into_iter().enumerate() {
        // What is stored apart is another place to read from, and no other kernel.
        for shared in [true, false].into_iter().take(if index < 2 { 2 } else { 1 }) {
            check(
                &gpus,
                &format!("experts {sizes:?} {width} {formats:?}, gate and up in one: {shared}"),
                |make| mixture(make, make.input(width), sizes, formats, shared),
            );
        }
    }
}

/// Whole layers, put together at random.
fn layers(seeds: std::ops::Range<u64>) {
    let gpus = Gpus::one();
    for seed in seeds {
        let steps = Random::new(seed).pick(&[[1, 7, 1], [30, 1, 1], [4, 9, 2], [65, 1, 3]]);
        Case::new(format!("layers {seed}"), seed, |make| random_layers(make, &mut Random::new(seed)))
            .steps(&steps)
            .within(2e-3)
            .check(&gpus);
    }
}

fn random_layers<'g>(make: &'g Maker, random: &mut Random) -> Tensor<'g> {
    const FORMATS: [Format; 5] = [Format::Q8_0, Format::Q4_0, Format::Q5_1, Format::F16, Format::MXFP4];
    let width = random.pick(&[32, 64, 96, 160]);
    let layers = 1 + random.below(2) as u32;
    let group = random.pick(&[32, 64]);
    let per_layer = random.chance();
    let last_at = random.pick(&[layers, layers, 0]);
    let mut x = make.embed(random.pick(&FORMATS), width, 4.0);
    let embeddings = per_layer.then(|| {
        let projected = x.linear(make.matrix(random.pick(&FORMATS), width, layers * group)).scale(0.1);
        let tokens = make.embed(random.pick(&FORMATS), layers * group, 2.0);
        (projected.rms_norm(make.vector(group), BRANCH_EPS) + tokens).scale(0.7)
    });
    let mut embeddings = embeddings;
    let mut cache = None;
    let mut shape =
        Layer::new(4, random.pick(&[1, 2, 4]), random.pick(&[32, 64]), random.pick(&[None, Some(8)]));
    for layer in 0..layers {
        shape.formats = [(); 4].map(|()| random.pick(&FORMATS));
        if random.chance() {
            shape.formats = [shape.formats[0]; 4];
        }
        shape.keys_are_values = random.chance();
        shape.last = layer == last_at;
        // After the last row alone there is nothing to store.
        let borrows = layer > 0 && (random.chance() || layer > last_at);
        let (a, own) = shape.forward(make, x.rms_norm(make.vector(width), EPS), cache.filter(|_| borrows));
        cache = Some(own);
        if shape.last {
            (x, embeddings) = (x.last_row(), embeddings.map(Tensor::last_row));
        }
        x = x + a.rms_norm(make.vector(width), BRANCH_EPS);
        let hidden = random.pick(&[33, 64, 96]);
        let z = x.rms_norm(make.vector(width), EPS);
        let [gate, up] =
            [random.pick(&FORMATS); 2].map(|format| z.linear(make.matrix(format, width, hidden)));
        let down = if hidden == 33 { Format::F16 } else { random.pick(&FORMATS) };
        let mut f = gate.gelu_mul(up).linear(make.matrix(down, hidden, width));
        if random.chance() {
            let z = x.rms_norm(make.vector(width), EPS);
            let formats = [random.pick(&FORMATS), random.pick(&FORMATS)];
            let answer = mixture(make, z, [6, 2, 64], formats, random.chance());
            f = f.rms_norm(make.vector(width), EPS) + answer.rms_norm(make.vector(width), BRANCH_EPS);
        }
        x = x + f.rms_norm(make.vector(width), BRANCH_EPS);
        if let Some(embeddings) = embeddings {
            let own = embeddings.columns(layer * group, group);
            let gate = x.linear(make.matrix(random.pick(&FORMATS), width, group)).gelu_mul(own);
            let answer = gate.linear(make.matrix(random.pick(&FORMATS), group, width));
            x = x + answer.rms_norm(make.vector(width), BRANCH_EPS);
        }
        if random.chance() {
            x = x.scale_by(make.vector(1));
        }
    }
    let x = if last_at < layers { x } else { x.last_row() };
    let head = make.matrix(random.pick(&FORMATS), width, 61);
    x.rms_norm(make.vector(width), EPS).linear(head).soft_cap(30.0)
}

#[test]
fn random_layers_one() {
    layers(100..102);
}

#[test]
fn random_layers_two() {
    layers(200..202);
}
