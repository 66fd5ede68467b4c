//! Operations on values alone.

use rullama_gguf::Format;
use rullama_graph::{Rope, Tensor};

use super::case::{Case, Gpus, Maker};

fn check(gpus: &Gpus, name: &str, build: impl for<'g> Fn(&'g Maker) -> Tensor<'g>) {
    Case::new(name, 21, build).steps(&[1, 2, 9, 70, 1]).check(gpus);
}

#[test]
fn rms_norm() {
    let gpus = Gpus::one();
    for (width, group) in [(96, 96), (96, 24), (20, 20), (1056, 1056), (1056, 33), (512, 256)] {
        check(&gpus, &format!("rms_norm {width} by {group}"), |make| {
            make.input(width).rms_norm(make.vector(group), 1e-6)
        });
        check(&gpus, &format!("rms_norm_unweighted {width} by {group}"), |make| {
            make.input(width).rms_norm_unweighted(group, 0.1)
        });
    }
}

#[test]
fn rope() {
    let gpus = Gpus::one();
    for (heads, head_width) in [(1, 20), (3, 32), (2, 512)] {
        let width = heads * head_width;
        check(&gpus, &format!("rope {heads}×{head_width}"), |make| {
            make.input(width).rope(Rope::new(head_width, 1e4))
        });
        check(&gpus, &format!("rope {heads}×{head_width}, some pairs"), |make| {
            make.input(width).rope(Rope { pairs: head_width / 5, ..Rope::new(head_width, 1e6) })
        });
        check(&gpus, &format!("rope {heads}×{head_width}, factors"), |make| {
            let factors = Some(make.vector(head_width / 2));
            make.input(width).rope(Rope { factors, ..Rope::new(head_width, 1e6) })
        });
        // A last row is turned by its own position.
        check(&gpus, &format!("rope {heads}×{head_width}, last row"), |make| {
            make.input(width).last_row().rope(Rope::new(head_width, 1e4))
        });
    }
}

#[test]
fn elementwise() {
    let gpus = Gpus::one();
    for width in [1, 20, 96, 300] {
        check(&gpus, &format!("add {width}"), |make| make.input(width) + make.input(width));
        check(&gpus, &format!("mul {width}"), |make| make.input(width) * make.input(width));
        check(&gpus, &format!("add itself {width}"), |make| {
            let x = make.input(width);
            x + x
        });
        check(&gpus, &format!("gelu_mul {width}"), |make| {
            make.input(width).scale(4.0).gelu_mul(make.input(width))
        });
        check(&gpus, &format!("scale {width}"), |make| make.input(width).scale(-0.3));
        check(&gpus, &format!("scale_by {width}"), |make| make.input(width).scale_by(make.vector(1)));
        check(&gpus, &format!("soft_cap {width}"), |make| make.input(width).scale(40.0).soft_cap(30.0));
        check(&gpus, &format!("clamp {width}"), |make| make.input(width).clamp(-0.3, 0.6));
    }
}

/// So many that each thread computes several of them.
#[test]
fn many_elements() {
    let gpus = Gpus::one();
    for width in [2304, 2050] {
        Case::new(format!("elementwise {width}"), 22, |make| {
            let x = make.input(width);
            (x.clamp(-0.3, 0.6) + x.scale_by(make.vector(1))).scale(0.7)
        })
        .steps(&[512])
        .context(512)
        .check(&gpus);
    }
}

/// Far from zero, where careless formulas overflow.
#[test]
fn extremes() {
    let gpus = Gpus::one();
    for scale in [1e3, 1e10, 1e30] {
        check(&gpus, &format!("gelu_mul of {scale}"), |make| {
            make.input(40).scale(scale).gelu_mul(make.input(40))
        });
        check(&gpus, &format!("soft_cap of {scale}"), |make| make.input(40).scale(scale).soft_cap(30.0));
        check(&gpus, &format!("capped product of {scale}"), |make| {
            make.input(64).scale(scale).linear(make.matrix(Format::F32, 64, 9)).soft_cap(30.0)
        });
    }
    // The others have no chance at all, so that it does not matter who they are.
    check(&gpus, "route without doubt", |make| make.input(9).scale(1e10).route(1));
}

#[test]
fn columns_and_rows() {
    let gpus = Gpus::one();
    check(&gpus, "columns", |make| make.input(100).columns(7, 40));
    check(&gpus, "last row", |make| make.input(100).last_row());
    check(&gpus, "columns of the last row", |make| make.input(100).last_row().columns(33, 66));
    check(&gpus, "last row of a sum", |make| {
        let x = make.input(64);
        (x + x.rms_norm(make.vector(64), 1e-6)).last_row().linear(make.matrix(Format::Q8_0, 64, 5))
    });
}

#[test]
fn route_and_combine() {
    let gpus = Gpus::one();
    for (experts, used) in [(8, 2), (128, 8), (5, 1), (3, 3)] {
        check(&gpus, &format!("route {used} of {experts}"), |make| {
            make.input(experts).scale(3.0).route(used)
        });
        for scaled in [false, true] {
            check(&gpus, &format!("combine {used} of {experts}, scaled: {scaled}"), |make| {
                let routing = make.input(experts).route(used);
                make.input(30 * used).combine(routing, scaled.then(|| make.vector(experts)))
            });
        }
    }
}
