//! `cargo xtask test`: everything that must hold before a change lands.

use std::{fs, time::Instant};

use crate::{
    setup::{self, WASI, WASM},
    shell::{command, output, root, run_reading, say},
    web,
};

/// What also runs in a browser, and can be tested without one.
const LIBRARIES: [&str; 6] =
    ["rullama-gguf", "rullama-tokenizer", "rullama-chat", "rullama-graph", "rullama-gemma", "rullama-engine"];

/// A browser has a GPU, and no use for the CPU reference, which is the engine's default.
const BROWSER: [&str; 7] = [
    "--package",
    "rullama-gpu",
    "--package",
    "rullama-web",
    "--no-default-features",
    "--features",
    "rullama-gguf/http,rullama-gguf/ollama,rullama-engine/gpu",
];

/// Tests that passed and failed. A check without tests of its own counts as one.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    /// The checks that did not succeed.
    broken: Vec<String>,
}

/// Runs all checks, though one may fail, and ends with a line that counts.
pub(crate) fn run() -> bool {
    let start = Instant::now();
    let mut tally = Tally::default();
    let libraries: Vec<&str> = LIBRARIES.iter().flat_map(|name| ["--package", name]).collect();
    let deny = ["--", "--deny", "warnings"];

    if !setup::for_tests() {
        tally.failed += 1;
        tally.broken.push("set-up".to_owned());
    }
    tally.check("format", &["cargo", "fmt", "--all", "--check"], &[]);
    // The fuzz targets are a workspace of their own; that they compile is all that a stable toolchain can tell.
    let fuzz = ["--manifest-path", "fuzz/Cargo.toml"];
    tally.check("format of fuzz targets", &[&["cargo", "fmt", "--check"], &fuzz[..]].concat(), &[]);
    tally.check(
        "fuzz targets",
        &[&["cargo", "check", "--target-dir", "target/fuzz"], &fuzz[..]].concat(),
        &[],
    );
    let clippy = ["cargo", "clippy", "--workspace", "--all-targets"];
    tally.check("lints", &[&clippy[..], &deny].concat(), &[]);
    let clippy = ["cargo", "clippy", "--target", WASM];
    tally.check("lints for wasm", &[&clippy[..], &libraries, &BROWSER, &deny].concat(), &[]);

    if output(&["cargo", "nextest", "--version"]).is_some() {
        tally.check("tests", &["cargo", "nextest", "run", "--workspace", "--no-fail-fast"], &[]);
    } else {
        let tests = ["cargo", "test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"];
        tally.check("tests", &tests, &[]);
    }
    tally.check("documentation tests", &["cargo", "test", "--workspace", "--doc"], &[]);

    let build = ["cargo", "build", "--target", WASM];
    tally.check("wasm build", &[&build[..], &libraries, &BROWSER].concat(), &[]);
    // Node 20 crashes when its garbage collector marks in steps, or beside other threads, while wasm memory grows.
    let node = "node --no-warnings --no-incremental-marking --single-threaded";
    let runner = format!("{node} {}", root().join("xtask/wasi.mjs").display());
    let tests = ["cargo", "test", "--target", WASI, "--no-fail-fast", "--lib", "--tests"];
    let runner = [("CARGO_TARGET_WASM32_WASIP1_RUNNER", runner.as_str())];
    tally.check(
        "tests on wasm",
        &[&tests[..], &libraries, &["--package", "rullama-reference"]].concat(),
        &runner,
    );

    // naga, which the tests above ask, accepts what browsers refuse.
    let kernels = root().join("target/kernels.json").display().to_string();
    // When this fails, so does writing the file.
    let _ = fs::create_dir_all(root().join("target"));
    let list = ["cargo", "run", "--package", "rullama-gpu", "--example", "kernels", "--", &kernels];
    tally.check("list of kernels", &list, &[]);
    for (what, browser) in [("kernels in Chromium", "chromium"), ("kernels in Firefox", "firefox")] {
        tally.check(what, &["node", "xtask/browser/kernels.mjs", browser, &kernels], &[]);
    }

    // The package as it is published, in the browsers that people use.
    if tally.step("npm package", web::build) {
        tally.check("npm package's own tests", &["npm", "test", "--prefix", "packages/npm"], &[]);
        for (what, browser) in
            [("npm package in Chromium", "chromium"), ("npm package in Firefox", "firefox")]
        {
            tally.check(what, &["node", "packages/npm/test/browser/run.mjs", browser], &[]);
        }
        for (what, browser) in [("store in Chromium", "chromium"), ("store in Firefox", "firefox")] {
            let test = format!("packages/npm/test/store/browser/{browser}.mjs");
            tally.check(what, &["node", &test], &[]);
        }
        let app = ["--prefix", "packages/app"];
        tally.check("app", &[&["npm", "run", "build"], &app[..]].concat(), &[]);
        tally.check("app's own tests", &[&["npm", "test"], &app[..]].concat(), &[]);
        // From the server that the tests above have built.
        let server = root().join("target/debug/rullama").display().to_string();
        let e2e = ["npm", "run", "e2e", "--prefix", "packages/app", "--", "--server", &server];
        tally.check("app in Chromium and Firefox", &e2e, &[]);
        tally.check("phone over WebDriver", &["node", "xtask/phone/test.mjs"], &[]);
    }

    let data = "tools/demo-model";
    let python = [&setup::python(), "-m", "unittest", "discover", "-s", data, "-t", data];
    tally.check("data of the demo model", &python, &[]);

    let doc = ["cargo", "doc", "--workspace", "--no-deps"];
    tally.check("documentation", &doc, &[("RUSTDOCFLAGS", "--deny warnings")]);

    say(&format!("\nin {} s", start.elapsed().as_secs()));
    for what in &tally.broken {
        say(&format!("failed: {what}"));
    }
    say(&format!("{} passed, {} failed", tally.passed, tally.failed));
    tally.failed == 0
}

impl Tally {
    /// Counts something that is no command of its own as one check. Whether it succeeded.
    fn step(&mut self, what: &str, work: impl FnOnce() -> bool) -> bool {
        let start = Instant::now();
        say(&format!("\n== {what}"));
        let succeeded = work();
        self.passed += u64::from(succeeded);
        self.failed += u64::from(!succeeded);
        if !succeeded {
            self.broken.push(what.to_owned());
        }
        let verdict = if succeeded { "ok" } else { "FAILED" };
        say(&format!("== {what}: {verdict} in {} s", start.elapsed().as_secs()));
        succeeded
    }

    fn check(&mut self, what: &str, words: &[&str], variables: &[(&str, &str)]) {
        let start = Instant::now();
        say(&format!("\n== {what}: {}", words.join(" ")));
        let mut command = command(words);
        command.envs(variables.iter().copied());
        let mut tests = Self::default();
        let succeeded = run_reading(command, |line| tests.read(line));
        if tests.passed + tests.failed == 0 {
            tests.passed += u64::from(succeeded);
        }
        if tests.failed == 0 {
            tests.failed += u64::from(!succeeded);
        }
        if !succeeded {
            self.broken.push(what.to_owned());
        }
        let verdict = if succeeded { "ok" } else { "FAILED" };
        say(&format!("== {what}: {verdict} in {} s", start.elapsed().as_secs()));
        self.passed += tests.passed;
        self.failed += tests.failed;
    }

    /// Adds what a test runner's closing line says: `test result: ok. 3 passed; 0 failed; …`,
    /// `Summary [ 1.2s] 5 tests run: 4 passed, 1 failed, 0 skipped` or, of vitest, `Tests  1 failed | 4 passed (5)`.
    fn read(&mut self, line: &str) {
        let plain = without_colours(line);
        let line = plain.trim_start();
        if !["test result:", "Summary [", "Tests  "].iter().any(|start| line.starts_with(start)) {
            return;
        }
        let words: Vec<&str> = line.split([' ', ',', ';']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<u64>() else { continue };
            match pair[1] {
                "passed" => self.passed += count,
                "failed" | "timed" => self.failed += count,
                _ => {}
            }
        }
    }
}

/// The text without the escape sequences that colour it.
fn without_colours(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('\x1b') {
        plain.push_str(&rest[..at]);
        rest = rest[at..].split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn closing_lines_are_counted() {
        let mut tally = Tally::default();
        tally.read("test result: ok. 3 passed; 1 failed; 0 ignored; 0 measured; 9 filtered out; in 0.1s");
        tally.read("\x1b[32;1m     Summary\x1b[0m [   1.2s] 5 tests run: \x1b[1m4\x1b[0m passed, 1 failed, 2 skipped");
        tally.read("      Tests  2 failed | 6 passed (8)");
        tally.read("7 passed by here, 8 failed to notice");
        assert_eq!((tally.passed, tally.failed), (13, 4));
    }
}
