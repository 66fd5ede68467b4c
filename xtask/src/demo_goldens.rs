//! `cargo xtask goldens --make`: what transformers and llama.cpp say with the demo model, made anew from its file alone.

use std::{fs, io, path::Path};

use crate::{
    goldens, setup,
    shell::{complain, root, run},
};

const MODEL: &str = "models/demo.gguf";
const TOOLS: &str = "tools/demo-model";
/// Where they are made, and where tests look for them.
const WORK: &str = "target/goldens";
const KEPT: &str = "testdata/demo";

/// Makes the goldens of the demo model, puts them among the test data and records their checksums.
pub(crate) fn make() -> bool {
    if !root().join(MODEL).is_file() {
        complain(&format!("error: {MODEL} is missing"));
        return false;
    }
    // What is left there may belong to another model.
    let work = root().join(WORK);
    if work.exists() && !done(fs::remove_dir_all(&work), WORK) {
        return false;
    }
    if !setup::speech() {
        complain("error: espeak-ng and sox are needed, which speak the words; nothing was changed");
        return false;
    }
    let Some(python) = setup::goldens_python() else { return false };
    let make = format!("{TOOLS}/make.py");
    let texts = format!("{WORK}/goldens/demo.refs.json");
    run(&[&python, &make, "speech", "goldens", "--out", WORK, "--gguf", MODEL])
        && run(&[&python, &format!("{TOOLS}/llama_cpp.py"), MODEL, &texts])
        && done(replace(&work.join("goldens"), &root().join(KEPT)), KEPT)
        && goldens::record("./demo/")
        && goldens::run()
}

/// Puts the files of one folder, and no others, into another, which keeps what it has until all of them are written.
fn replace(from: &Path, into: &Path) -> io::Result<()> {
    let new = into.with_extension("new");
    if new.exists() {
        fs::remove_dir_all(&new)?;
    }
    fs::create_dir_all(&new)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        fs::write(new.join(file.file_name()), fs::read(file.path())?)?;
    }
    if into.exists() {
        fs::remove_dir_all(into)?;
    }
    fs::rename(new, into)
}

fn done(outcome: io::Result<()>, what: &str) -> bool {
    if let Err(error) = &outcome {
        complain(&format!("error: {what}: {error}"));
    }
    outcome.is_ok()
}
