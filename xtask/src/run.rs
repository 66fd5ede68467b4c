//! `cargo xtask run`: builds rullama and starts it.

use crate::shell::{run as shell_run, say};

/// A model small enough to come with the tests: real architecture, a vocabulary of 2048 tokens.
const SMALL_MODEL: &str = "testdata/gguf/micro-e2b-Q8_0.gguf";

/// With arguments, runs the command line program with them; without, shows what it can do.
pub(crate) fn run(arguments: &[&str]) -> bool {
    let start = ["cargo", "run", "--quiet", "--release", "--package", "rullama", "--"];
    if !arguments.is_empty() {
        return shell_run(&[&start[..], arguments].concat());
    }
    say("The browser app does not exist yet; this shows a small model, inspected and asked on the CPU.");
    let demonstrations: [&[&str]; 4] = [
        &["inspect", SMALL_MODEL],
        &["tokenize", SMALL_MODEL, "Why is the sky blue?", "--bos"],
        &["generate", SMALL_MODEL, "--prompt", "Hello", "--raw", "--temperature", "0", "--max-tokens", "30"],
        &["--help"],
    ];
    let done = demonstrations.iter().all(|words| {
        say("");
        shell_run(&[&start[..], words].concat())
    });
    say("Models that Ollama has downloaded:  cargo xtask run models");
    done
}
