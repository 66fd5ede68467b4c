//! `cargo xtask test`: everything that must hold before a change lands, in phases.
//!
//! Every phase runs, also after one has failed. The last lines are a table of phases and minutes, and a count.
//! `cargo xtask test --quick` is the part for daily work.

mod tally;

use self::tally::Tally;
use crate::{
    audit, fuzz, package,
    setup::{self, WASI, WASM},
    shell::{complain, output, root, say},
    web,
};

/// Libraries that compile for the browser, and that tests can run without one.
const LIBRARIES: [&str; 7] = [
    "rullama-gguf",
    "rullama-tokenizer",
    "rullama-chat",
    "rullama-media",
    "rullama-graph",
    "rullama-gemma",
    "rullama-engine",
];

/// What computes on the GPU in a browser. The wasm file for the CPU is a build of its own.
const BROWSER: [&str; 7] = [
    "--package",
    "rullama-gpu",
    "--package",
    "rullama-web",
    "--no-default-features",
    "--features",
    "rullama-gguf/http,rullama-gguf/ollama,rullama-engine/gpu,rullama-web/gpu",
];

/// What computes on the CPU in a browser.
const BROWSER_CPU: [&str; 5] =
    ["--package", "rullama-web", "--no-default-features", "--features", "rullama-web/cpu"];

const LINTS: [&str; 4] = ["cargo", "clippy", "--workspace", "--all-targets"];

/// Tests on the GPU run in one process, which shares devices and compiled kernels; nextest would start one for each test.
const ON_GPU: [&str; 6] = ["cargo", "test", "--workspace", "--no-fail-fast", "--test", "on_gpu"];

/// Warnings of lints are errors.
const DENY: [&str; 3] = ["--", "--deny", "warnings"];

/// How long each fuzz target runs.
const FUZZ_SECONDS: u64 = 20;

/// The most that all tracked files may weigh together, in bytes: a clone stays quick, and models stay small.
const MOST_TRACKED: u64 = 90_000_000;

/// Runs all phases. Whether everything passed.
pub(crate) fn run() -> bool {
    let mut tally = Tally::default();
    tally.step("set-up", setup::for_tests);
    format(&mut tally);
    tally.step("size of tracked files", tracked_files);
    tally.check("lints", &[&LINTS[..], &DENY].concat());
    let clippy = ["cargo", "clippy", "--target", WASM];
    tally.check("lints for wasm", &[&clippy[..], &packages(), &BROWSER, &DENY].concat());
    tally.check("lints for wasm on the CPU", &[&clippy[..], &BROWSER_CPU, &DENY].concat());
    let with_threads = [web::UNSTABLE, ("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", web::SHARED)];
    let words = [&clippy[..], &BROWSER_CPU, &DENY].concat();
    tally.check_with("lints for wasm on several threads", &words, &with_threads);
    tally.step("dependencies", audit::run);
    native(&mut tally);
    tally.check("documentation tests", &["cargo", "test", "--workspace", "--doc"]);
    wasm(&mut tally);
    browsers(&mut tally);
    demo_data(&mut tally);
    tally.step("fuzz targets", || fuzz::run(FUZZ_SECONDS));
    let doc = ["cargo", "doc", "--workspace", "--no-deps"];
    tally.check_with("documentation", &doc, &[("RUSTDOCFLAGS", "--deny warnings")]);
    tally.report()
}

/// Runs what is quick: format, lints, the libraries' tests, which hold every model on the CPU, and one model on the GPU.
pub(crate) fn quick() -> bool {
    let mut tally = Tally::default();
    tally.step("set-up", setup::for_quick_tests);
    format(&mut tally);
    tally.check("lints", &[&LINTS[..], &DENY].concat());
    let excluded = ["rullama", "rullama-gpu", "rullama-gpu-lab"].iter().flat_map(|name| ["--exclude", name]);
    let words: Vec<&str> = ["--workspace", "--no-fail-fast"].into_iter().chain(excluded).collect();
    if has_nextest() {
        let filter = ["-E", "not (binary(/gpu/) | test(/on_a_gpu/))"];
        tally.check("libraries", &[&["cargo", "nextest", "run"][..], &words, &filter].concat());
    } else {
        let skipped = ["--lib", "--bins", "--tests", "--", "--skip", "gpu"];
        tally.check("libraries", &[&["cargo", "test"][..], &words, &skipped].concat());
    }
    tally.check("a model on the GPU", &[&ON_GPU[..], &["models::e2b_in_four_bits"]].concat());
    tally.report()
}

fn format(tally: &mut Tally) {
    tally.check("format", &["cargo", "fmt", "--all", "--check"]);
    // The fuzz targets are a workspace of their own.
    tally.check("format of fuzz targets", &["cargo", "fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"]);
}

/// All tests on this machine, those of the GPU on the adapter that the system offers.
fn native(tally: &mut Tally) {
    if has_nextest() {
        // First, because Mesa keeps the kernels that these compile, and the other tests use them too. The tests of `kernels` share
        // a list of all kernels, which each process would make anew.
        tally.check("native tests on the GPU", &[&ON_GPU[..], &["--test", "kernels"]].concat());
        let filter = ["-E", "not (binary(on_gpu) or binary(kernels))"];
        let tests = ["cargo", "nextest", "run", "--workspace", "--no-fail-fast"];
        tally.check("native tests", &[&tests[..], &filter].concat());
    } else {
        let tests = ["cargo", "test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"];
        tally.check("native tests", &tests);
    }
}

fn has_nextest() -> bool {
    output(&["cargo", "nextest", "--version"]).is_some()
}

/// The libraries' tests with 32-bit addresses, as WebAssembly under Node.
fn wasm(tally: &mut Tally) {
    // Node 20 crashes when its garbage collector marks in steps, or beside other threads, while wasm memory grows.
    let node = "node --no-warnings --no-incremental-marking --single-threaded";
    let runner = format!("{node} {}", root().join("xtask/wasi.mjs").display());
    let tests = ["cargo", "test", "--target", WASI, "--no-fail-fast", "--lib", "--tests"];
    let words =
        [&tests[..], &packages(), &["--package", "rullama-cpu", "--package", "rullama-reference"]].concat();
    let settings = [
        ("CARGO_TARGET_WASM32_WASIP1_RUNNER", runner.as_str()),
        // As the file for the CPU is built.
        ("CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS", "-Ctarget-feature=+simd128"),
    ];
    tally.check_with("tests on wasm", &words, &settings);
}

/// The package as it is published and the app as it is served, without a browser and in those that people use.
fn browsers(tally: &mut Tally) {
    // naga, which the native tests ask, accepts WGSL that browsers refuse.
    let kernels = root().join("target/kernels.json").display().to_string();
    let list = ["cargo", "run", "--package", "rullama-gpu", "--example", "kernels", "--", &kernels];
    tally.check("list of kernels", &list);
    if !tally.step("npm package", web::build) {
        return;
    }
    tally.check("npm package's unit tests", &["npm", "test", "--prefix", "packages/npm"]);
    tally.check("app", &["npm", "run", "build", "--prefix", "packages/app"]);
    tally.step("package", package::test);
    tally.check("app's unit tests", &["npm", "test", "--prefix", "packages/app"]);
    // The app comes from the server that the native tests have built.
    tally.check("browsers", &["node", "xtask/browser/test.mjs"]);
}

/// The Python that makes the data of the demo model.
fn demo_data(tally: &mut Tally) {
    let data = "tools/demo-model";
    let python = [&setup::python(), "-m", "unittest", "discover", "-s", data, "-t", data];
    tally.check("data of the demo model", &python);
}

/// Whether the files that git tracks weigh no more than is agreed.
fn tracked_files() -> bool {
    let Some(names) = output(&["git", "ls-files", "-z"]) else {
        complain("git cannot list the files of the project");
        return false;
    };
    let sizes = names.split_terminator('\0').map(|name| root().join(name).symlink_metadata());
    // A tracked file that was deleted, and not yet committed so, weighs nothing.
    let total: u64 = sizes.filter_map(|file| Some(file.ok()?.len())).sum();
    say(&format!("{:.1} MB of {:.0} MB", total as f64 / 1e6, MOST_TRACKED as f64 / 1e6));
    total > 0 && total <= MOST_TRACKED
}

/// The libraries as arguments of cargo.
fn packages() -> Vec<&'static str> {
    LIBRARIES.iter().flat_map(|name| ["--package", name]).collect()
}
