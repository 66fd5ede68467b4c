//! `cargo xtask web`: the npm package, built: the engine as wasm, the module that loads it, and the package's own code.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use crate::{
    setup::WASM,
    shell::{command, complain, output, root, run, say},
};

/// The most that a browser may have to download of the engine, compressed.
const MOST_BYTES: u64 = 1_000_000;

/// What wasm-opt may use. Every browser with WebGPU has had these for years.
const WASM_FEATURES: [&str; 8] = [
    "--enable-bulk-memory",
    "--enable-extended-const",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
    "--enable-simd",
];

/// Builds `packages/npm/dist` and prints how large the wasm file is.
pub(crate) fn build() -> bool {
    let package = root().join("packages/npm");
    let [bindings, dist] = ["src/wasm", "dist"].map(|folder| package.join(folder));
    let Some(wasm) = target().map(|target| target.join(WASM).join("web/rullama_web.wasm")) else {
        complain("error: can't find cargo's target folder");
        return false;
    };
    let [wasm, bindings_folder, package_folder] =
        [&wasm, &bindings, &package].map(|path| path.display().to_string());
    let bundled = bindings.join("rullama_bg.wasm");
    compile()
        && run(&["cargo", "run", "--quiet", "--package", "xtask-bindgen", "--", &wasm, &bindings_folder])
        && optimise(&bundled)
        && clear(&dist)
        && run(&["npm", "run", "--silent", "build", "--prefix", &package_folder])
        && copy(&bindings, &dist.join("wasm"))
        && report(&bundled)
}

/// Compiles the engine. Messages of panics name files; where these lie on this machine is nobody's business.
fn compile() -> bool {
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let flags = [(cargo_home, "cargo"), (Some(root()), ".")]
        .into_iter()
        .filter_map(|(folder, name)| Some(format!("--remap-path-prefix={}={name}", folder?.display())));
    // Cargo's own separator: folders may have spaces in their names.
    let flags = flags.collect::<Vec<_>>().join("\x1f");
    let words = ["cargo", "build", "--package", "rullama-web", "--target", WASM, "--profile", "web"];
    say(&format!("$ {}", words.join(" ")));
    command(&words).env("CARGO_ENCODED_RUSTFLAGS", flags).status().is_ok_and(|status| status.success())
}

/// The folder that cargo builds in, which holds this program two levels down.
fn target() -> Option<PathBuf> {
    Some(env::current_exe().ok()?.parent()?.parent()?.to_owned())
}

/// Makes the wasm file smaller and faster by Binaryen's tool, where that is installed.
fn optimise(wasm: &Path) -> bool {
    if output(&["wasm-opt", "--version"]).is_none() {
        return true;
    }
    let wasm = wasm.display().to_string();
    run(&[&["wasm-opt", "-O3", &wasm, "-o", &wasm], &WASM_FEATURES[..]].concat())
}

/// Removes what an earlier build left, which may have had other files.
pub(crate) fn clear(folder: &Path) -> bool {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            complain(&format!("error: {} can't be deleted: {error}", folder.display()));
            false
        }
        _ => true,
    }
}

/// Copies what is in a folder, and in the folders in it.
pub(crate) fn copy(from: &Path, to: &Path) -> bool {
    fn files(from: &Path, to: &Path) -> io::Result<()> {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let path = entry?.path();
            let target = to.join(path.file_name().unwrap_or_default());
            if path.is_dir() {
                files(&path, &target)?;
            } else {
                fs::copy(&path, target)?;
            }
        }
        Ok(())
    }
    let copied = files(from, to);
    copied
        .inspect_err(|error| complain(&format!("error: {} can't be copied: {error}", from.display())))
        .is_ok()
}

/// Prints the size of the wasm file, which may not be too large.
fn report(wasm: &Path) -> bool {
    let raw = fs::metadata(wasm).map(|file| file.len()).unwrap_or_default();
    let script = "console.log(require('node:zlib').gzipSync(require('node:fs').readFileSync(process.argv[1]), \
                  { level: 9 }).length)";
    let compressed = output(&["node", "-e", script, &wasm.display().to_string()]);
    let Some(compressed) = compressed.and_then(|text| text.trim().parse::<u64>().ok()) else {
        complain("error: can't measure the size of the wasm file");
        return false;
    };
    say(&format!("wasm: {raw} bytes, {compressed} gzipped, of {MOST_BYTES} allowed"));
    if compressed > MOST_BYTES {
        complain("error: the wasm file is too large");
    }
    compressed <= MOST_BYTES
}

#[cfg(test)]
mod unit {
    use super::*;

    /// What is published has its licences with it; npm packs no links.
    #[test]
    fn the_package_has_the_project_s_licences() {
        for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let read =
                |folder: &str| fs::read(root().join(folder).join(name)).expect("a licence can be read");
            assert!(read("") == read("packages/npm"), "packages/npm/{name} is not the project's");
        }
    }
}
