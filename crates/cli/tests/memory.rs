//! Models that no machine has the memory for are refused with an error, and the program is never aborted.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{fs, process::Command};

use rullama_gguf::{Format, MemorySource, Model, Value, Writer};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rullama");
const LAYERS: u32 = 64;
/// Heads of keys and values, and the width of each: 65,536 columns.
const HEADS: u32 = 256;
const HEAD_WIDTH: u32 = 256;

/// The header of a model with 64 layers whose caches are 65,536 columns wide. Its weights are zeros, which take no room in a
/// sparse file.
async fn hostile() -> (Vec<u8>, u64) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/tiny-dense-Q4_K_M.gguf");
    let source = MemorySource::new(fs::read(path).unwrap());
    let model = Model::open(Box::new(source)).await.unwrap();
    let mut writer = Writer::new();
    let heads = ["attention.head_count", "attention.head_count_kv", "attention.global_head_count_kv"];
    let widths = ["key_length", "key_length_swa", "value_length", "value_length_swa"];
    for (key, value) in model.header().entries() {
        let own = key.strip_prefix("gemma4.").unwrap_or_default();
        if own == "block_count" {
            writer.set(key, LAYERS).unwrap();
        } else if heads.contains(&own) {
            writer.set(key, HEADS).unwrap();
        } else if own.strip_prefix("attention.").is_some_and(|own| widths.contains(&own)) {
            writer.set(key, HEAD_WIDTH).unwrap();
        } else if own == "attention.sliding_window_pattern" {
            writer.set(key, [true; LAYERS as usize].as_slice()).unwrap();
        } else if own == "attention.sliding_window" {
            writer.set(key, 4096u32).unwrap();
        } else if own.starts_with("rope.dimension_count") {
            writer.set(key, HEAD_WIDTH).unwrap();
        } else if let (Value::Array(_), "feed_forward_length") = (&value, own) {
            let width = model.tensor("blk.0.ffn_gate.weight").unwrap().shape.dims()[1];
            writer.set(key, u32::try_from(width).unwrap()).unwrap();
        } else {
            writer.set(key, value).unwrap();
        }
    }
    let columns = u64::from(HEADS * HEAD_WIDTH);
    // No layer is global, so nothing would read the divisors of rotation angles.
    let outside = |name: &str| !name.starts_with("blk.") && name != "rope_freqs.weight";
    for tensor in model.tensors().filter(|tensor| outside(tensor.name)) {
        writer.add_tensor(tensor.name, tensor.shape.dims(), tensor.format).unwrap();
    }
    for layer in 0..LAYERS {
        for tensor in model.tensors().filter(|tensor| tensor.name.starts_with("blk.0.")) {
            let own = tensor.name.strip_prefix("blk.0.").unwrap();
            let mut dims = tensor.shape.dims().to_vec();
            let mut format = tensor.format;
            match own {
                "attn_q.weight" | "attn_k.weight" | "attn_v.weight" => {
                    (dims[1], format) = (columns, Format::Q8_0)
                }
                "attn_output.weight" => (dims[0], format) = (columns, Format::Q8_0),
                "attn_q_norm.weight" | "attn_k_norm.weight" => dims[0] = HEAD_WIDTH.into(),
                _ => {}
            }
            writer.add_tensor(&format!("blk.{layer}.{own}"), &dims, format).unwrap();
        }
    }
    let data = writer.data_bytes();
    let mut header = Vec::new();
    drop(writer.begin(&mut header).unwrap());
    (header, data)
}

#[tokio::test]
async fn caches_that_no_memory_holds_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.gguf");
    let (header, data) = hostile().await;
    fs::write(&path, &header).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(header.len() as u64 + data).unwrap();
    // The first step of the prompt alone needs two gibibytes of keys and values. The program may have two gigabytes of addresses.
    let ids = vec!["5"; 256].join(",");
    let script = format!(
        "ulimit -c 0; ulimit -v 2000000; exec '{PROGRAM}' generate '{}' --backend cpu --ids {ids} --max-tokens 1 --json",
        path.display()
    );
    let output = Command::new("sh").args(["-c", &script]).env("HOME", "/nonexistent").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    // The text of `memory.exhausted` on the CPU.
    assert!(said.contains("not enough memory for a step of 64 tokens after 0"), "{said}");
}
