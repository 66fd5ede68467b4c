//! Checkpoints of which one file is arbitrary: refused, or planned.
//!
//! The first byte of an input chooses the file, the rest is what it holds; of weights, the header.

#![no_main]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use rullama_convert::{ConvertOptions, plan};

const CHECKPOINT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/convert/nano-e2b");

/// The files that are replaced, in the order that `cargo xtask fuzz` numbers its first inputs by.
const FILES: [&str; 4] =
    ["config.json", "model-00003-of-00003.safetensors", "model.safetensors.index.json", "tokenizer.json"];

/// A copy of a small checkpoint for this process.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("rullama-fuzz-convert-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for temporary files");
        for file in fs::read_dir(CHECKPOINT).expect("the test data") {
            let file = file.expect("the test data");
            fs::copy(file.path(), folder.join(file.file_name())).expect("room for a small file");
        }
        folder
    })
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let name = FILES[usize::from(choice) % FILES.len()];
    let path = folder().join(name);
    let content = if name.ends_with(".safetensors") {
        [&(bytes.len() as u64).to_le_bytes(), bytes, &[0; 40_000]].concat()
    } else {
        bytes.to_vec()
    };
    fs::write(&path, content).expect("room for a small file");
    let _ = plan(folder(), &ConvertOptions::default());
    fs::copy(Path::new(CHECKPOINT).join(name), &path).expect("room for a small file");
});
