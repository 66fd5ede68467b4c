//! `cargo xtask fuzz`: every fuzz target, each for some seconds.

use std::fs;

use crate::shell::{complain, output, root, run as shell_run, say};

/// Runs every target in `fuzz/fuzz_targets` for `seconds`.
pub(crate) fn run(seconds: u64) -> bool {
    if output(&["cargo", "fuzz", "--version"]).is_none() {
        complain("cargo-fuzz is missing. Install it with:\n  cargo install cargo-fuzz");
        return false;
    }
    if output(&["rustup", "run", "nightly", "rustc", "--version"]).is_none() {
        complain("fuzzing needs a nightly toolchain. Install it with:\n  rustup toolchain install nightly");
        return false;
    }
    let mut failed = Vec::new();
    let targets = targets();
    for target in &targets {
        let time = format!("-max_total_time={seconds}");
        // Through rustup, because the cargo that runs this is not the nightly one.
        let words =
            ["rustup", "run", "nightly", "cargo", "fuzz", "run", target, "--", &time, "-print_final_stats=1"];
        if !shell_run(&words) {
            failed.push(target.as_str());
        }
    }
    for target in &failed {
        complain(&format!("{target} failed; what it found is in fuzz/artifacts/{target}"));
    }
    say(&format!("{} passed, {} failed", targets.len() - failed.len(), failed.len()));
    failed.is_empty() && !targets.is_empty()
}

fn targets() -> Vec<String> {
    let files = fs::read_dir(root().join("fuzz/fuzz_targets")).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        files.filter_map(|file| file.file_name().to_str()?.strip_suffix(".rs").map(str::to_owned)).collect();
    names.sort();
    names
}
