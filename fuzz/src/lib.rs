//! What fuzz targets share: an allocator that counts, and a file worth damaging.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
};

use rullama_gguf::{Format, Header, MemorySource, Writer};

/// Counts the bytes in use and the most there ever were.
pub struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(used, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Reads a header and everything in it, within four times its size and a mebibyte.
pub fn read_within_bounds(bytes: &[u8]) {
    let source = MemorySource::new(bytes);
    let before = USED.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    if let Ok(header) = pollster::block_on(Header::read(&source)) {
        for (key, value) in header.entries() {
            assert_eq!(header.get(key).map(|value| value.value_type()), Some(value.value_type()));
            if let rullama_gguf::Value::Array(array) = value {
                assert_eq!(array.iter().count(), array.len());
            }
        }
        for tensor in header.tensors() {
            assert_eq!(header.tensor(tensor.name), Some(tensor));
            assert!(header.data_start() + tensor.data_range().end <= header.file_len());
        }
    }
    let used = MOST.load(Ordering::Relaxed) - before;
    assert!(used <= 4 * bytes.len() + (1 << 20), "{used} bytes in use for an input of {}", bytes.len());
}

/// A small file with entries of many types and tensors of several formats.
pub fn sample() -> Vec<u8> {
    build().expect("the sample is well-formed")
}

fn build() -> Result<Vec<u8>, rullama_gguf::WriteError> {
    let mut writer = Writer::new();
    writer.set_alignment(64)?;
    writer.set("general.architecture", "gemma4")?;
    writer.set("gemma4.block_count", 3u32)?;
    writer.set("gemma4.eps", 1e-6f32)?;
    writer.set("gemma4.pattern", [true, false, true].as_slice())?;
    writer.set("gemma4.wide", [1u64, 2].as_slice())?;
    writer.set("tokenizer.ggml.tokens", ["<pad>", "", "▁the", "\n"].as_slice())?;
    writer.set("tokenizer.ggml.merges", ["▁ the", "t h"].as_slice())?;
    let tensors: [(&str, &[u64], Format); 3] = [
        ("norm", &[5], Format::F32),
        ("matrix", &[256, 3], Format::Q4_K),
        ("experts", &[32, 2, 2], Format::Q8_0),
    ];
    for (name, dims, format) in tensors {
        writer.add_tensor(name, dims, format)?;
    }
    let mut body = writer.begin(Vec::new())?;
    body.write_tensor(&[0; 20])?;
    body.write_tensor(&[0; 432])?;
    body.write_tensor(&[0; 136])?;
    body.finish()
}
