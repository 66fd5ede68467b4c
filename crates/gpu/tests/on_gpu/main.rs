//! Everything that runs on a GPU, in one process: tests share devices and the pipelines compiled for them, because on a
//! software adapter compiling a kernel takes far longer than running it. `cargo test --workspace --test on_gpu` runs them
//! so; one test for each process works as well, and takes longer.
//!
//! | file | what must be equal to what |
//! |---|---|
//! | `formats_wgsl` | each format's fragment decodes packed weights to the CPU's values |
//! | `linear_tile`, `attention`, `group_rows` | single kernels against plain loops, at awkward sizes |
//! | `sample` | tokens chosen on the GPU against the definition |
//! | `ops` | small graphs against the CPU reference, fused and not: every operation, format, and size of step |
//! | `models` | whole models against Hugging Face and the CPU reference |
//! | `fusion` | whole models: fused against unfused, and any cutting of a prompt into steps |
//! | `shards`, `residency` | weights split between buffers, or left in the file, against whole ones |
//! | `encoder` | graphs of inputs against the CPU reference; weights that graphs share, give back and bring again |
//! | `towers` | vision and hearing of every kind against Hugging Face and the CPU reference |
//! | `budget`, `lost`, `self_test` | what happens when memory is short, the device goes away, or kernels are wrong |

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../common/mod.rs"]
mod common;

mod attention;
mod budget;
mod encoder;
mod formats_wgsl;
mod fusion;
mod group_rows;
mod linear_tile;
mod lost;
#[path = "../../../gemma/tests/media/mod.rs"]
mod media;
mod models;
mod ops;
mod residency;
mod sample;
mod self_test;
mod shards;
mod together;
mod towers;
