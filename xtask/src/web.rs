//! `cargo xtask web`: the npm package, built: the engine as wasm, the module that loads it, and the package's own code.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use crate::{
    setup::WASM,
    shell::{command, complain, output, root, run, say},
};

/// A build of the engine: a page downloads the one that it uses.
struct Build {
    /// The name of its module and its wasm file.
    name: &'static str,
    features: &'static [&'static str],
    /// Flags of the compiler. Builds with other flags have a target folder of their own.
    flags: &'static [&'static str],
    folder: &'static str,
    /// Whether the standard library is compiled with the same flags.
    own_std: bool,
    /// The most that a browser may have to download of it, compressed.
    most_bytes: u64,
}

const BUILDS: [Build; 3] = [
    Build { name: "rullama", features: &[], flags: &[], folder: "", own_std: false, most_bytes: 1_000_000 },
    Build {
        name: "rullama-cpu",
        features: &["--no-default-features", "--features", "cpu"],
        // Every browser of the last years has these vectors.
        flags: &["-Ctarget-feature=+simd128"],
        folder: "web-cpu",
        own_std: false,
        most_bytes: 800_000,
    },
    Build {
        name: "rullama-cpu-threads",
        features: &["--no-default-features", "--features", "cpu"],
        flags: &THREADS,
        folder: "web-cpu-threads",
        // The one of the toolchain was compiled without atomics, and the linker refuses to mix the two.
        own_std: true,
        most_bytes: 800_000,
    },
];

/// What a build whose memory is shared needs: atomics, a memory that is made elsewhere and may grow to all of its four
/// gibibytes, and the symbols by which wasm-bindgen gives each thread variables of its own.
const THREADS: [&str; 8] = [
    SHARED,
    "-Clink-arg=--shared-memory",
    "-Clink-arg=--import-memory",
    "-Clink-arg=--max-memory=4294967296",
    "-Clink-arg=--export=__wasm_init_tls",
    "-Clink-arg=--export=__tls_size",
    "-Clink-arg=--export=__tls_align",
    "-Clink-arg=--export=__tls_base",
];

/// The features of such a build.
pub(crate) const SHARED: &str = "-Ctarget-feature=+atomics,+bulk-memory,+mutable-globals,+simd128";

/// Compiles the standard library too. The stable toolchain does so only if it is told that it may use what is not stable.
pub(crate) const OWN_STD: &str = "-Zbuild-std=std,panic_abort";
pub(crate) const UNSTABLE: (&str, &str) = ("RUSTC_BOOTSTRAP", "1");

/// What wasm-opt may use. Every browser with WebGPU has had these for years.
const WASM_FEATURES: [&str; 9] = [
    "--enable-bulk-memory",
    "--enable-extended-const",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
    "--enable-simd",
    "--enable-threads",
];

/// Builds `packages/npm/dist` and prints how large the wasm files are.
pub(crate) fn build() -> bool {
    let package = root().join("packages/npm");
    let [bindings, dist] = ["src/wasm", "dist"].map(|folder| package.join(folder));
    let package_folder = package.display().to_string();
    BUILDS.iter().all(|build| build.bind(&bindings))
        && clear(&dist)
        && run(&["npm", "run", "--silent", "build", "--prefix", &package_folder])
        && copy(&bindings, &dist.join("wasm"))
        && BUILDS.iter().all(|build| report(&build.wasm(&bindings), build.most_bytes))
}

impl Build {
    /// Its wasm file among the bindings.
    fn wasm(&self, bindings: &Path) -> PathBuf {
        bindings.join(format!("{}_bg.wasm", self.name))
    }

    /// Compiles it, writes its bindings and makes its wasm file smaller.
    fn bind(&self, bindings: &Path) -> bool {
        let Some(folder) = target().map(|target| target.join(self.folder)) else {
            complain("error: can't find cargo's target folder");
            return false;
        };
        let wasm = folder.join(WASM).join("web/rullama_web.wasm").display().to_string();
        let bindings_folder = bindings.display().to_string();
        let bindgen = ["cargo", "run", "--quiet", "--package", "xtask-bindgen", "--"];
        self.compile(&folder)
            && run(&[&bindgen[..], &[&wasm, &bindings_folder, self.name]].concat())
            && optimise(&self.wasm(bindings))
    }

    /// Compiles the engine. Messages of panics name files; where these lie on this machine is nobody's business.
    fn compile(&self, folder: &Path) -> bool {
        let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let cargo_home = cargo_home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
        let flags = [(cargo_home, "cargo"), (Some(root()), ".")]
            .into_iter()
            .filter_map(|(folder, name)| Some(format!("--remap-path-prefix={}={name}", folder?.display())))
            .chain(self.flags.iter().map(|&flag| flag.to_owned()));
        // Cargo's own separator: folders may have spaces in their names.
        let flags = flags.collect::<Vec<_>>().join("\x1f");
        let words = ["cargo", "build", "--package", "rullama-web", "--target", WASM, "--profile", "web"];
        let own_std: &[&str] = if self.own_std { &[OWN_STD] } else { &[] };
        let words = [&words[..], self.features, own_std].concat();
        say(&format!("$ {}", words.join(" ")));
        let mut cargo = command(&words);
        cargo.envs(self.own_std.then_some(UNSTABLE));
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags).env("CARGO_TARGET_DIR", folder);
        cargo.status().is_ok_and(|status| status.success())
    }
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
fn report(wasm: &Path, most_bytes: u64) -> bool {
    let raw = fs::metadata(wasm).map(|file| file.len()).unwrap_or_default();
    let script = "console.log(require('node:zlib').gzipSync(require('node:fs').readFileSync(process.argv[1]), \
                  { level: 9 }).length)";
    let compressed = output(&["node", "-e", script, &wasm.display().to_string()]);
    let Some(compressed) = compressed.and_then(|text| text.trim().parse::<u64>().ok()) else {
        complain("error: can't measure the size of the wasm file");
        return false;
    };
    let name = wasm.file_name().unwrap_or_default().display();
    say(&format!("{name}: {raw} bytes, {compressed} gzipped, of {most_bytes} allowed"));
    if compressed > most_bytes {
        complain("error: the wasm file is too large");
    }
    compressed <= most_bytes
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
