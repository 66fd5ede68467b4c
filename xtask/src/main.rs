//! The project's own commands: `cargo xtask run`, `test`, `web`, `bench-page`, `phone`, `audit`, `fuzz`, `goldens`.
//!
//! `run` and `test` first install what is missing, so that a new machine needs nothing but Rust, a C compiler, Node
//! and Python.

mod app;
mod audit;
mod bench_page;
mod demo_goldens;
mod fuzz;
mod goldens;
mod phone;
mod run;
mod setup;
mod shell;
mod tests;
mod web;

use std::process::ExitCode;

const HELP: &str = "\
The project's own commands

Usage: cargo xtask <COMMAND>

  run [FLAGS]       build the web app and rullama, and serve the one with the other; flags are those of
                    `rullama serve`, and --open if there are none
  run ARGUMENTS     build rullama and start it with them; for `serve`, build the web app first
  test              check format, lints, dependencies, tests, documentation, the wasm build, and everything in
                    browsers; ends with a table of phases and minutes
  test --quick      format, lints, the libraries' tests and one model on each backend, for daily work
  web               build the npm package, packages/npm/dist, with the engine as wasm
  bench-page [FILE.gguf] [FLAGS]
                    serve the page that measures a model in a browser; flags are those of `rullama serve`
  phone --driver URL [--page URL] [--model NAME|URL] [--say TEXT] [--keep] [--clean] [--screenshot FILE]
                    [--timeout SECONDS]
                    open the app in a phone's browser over WebDriver, load a model, say something, and print
                    the answer, its speed and what was logged; `phone --help` says the rest
  audit             check licences, sources and known vulnerabilities of dependencies, without a network
  fuzz [SECONDS]    run every fuzz target for that long (60 seconds unless told)
  goldens           say how the test data were made, and check that they are untouched
  goldens --make    make those of models/demo.gguf anew, with transformers and llama.cpp
  setup             only install what is missing, for `test` and so for all others
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        // The second pair of dashes is cargo's custom, not an argument of ours.
        ["run", "--", rest @ ..] | ["run", rest @ ..] => run::run(rest),
        ["test"] => tests::run(),
        ["test", "--quick"] => tests::quick(),
        ["web"] => setup::for_web() && web::build(),
        ["bench-page", rest @ ..] => bench_page::run(rest),
        ["phone", "--", rest @ ..] | ["phone", rest @ ..] => return ExitCode::from(phone::run(rest)),
        ["audit"] => setup::for_audit() && audit::run(),
        ["fuzz"] => fuzz::run(60),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run(seconds),
            Err(_) => return usage(&format!("`{seconds}` is not a number of seconds")),
        },
        ["goldens"] => goldens::run(),
        ["goldens", "--make"] => demo_goldens::make(),
        ["setup"] => setup::for_tests(),
        ["help" | "--help" | "-h"] | [] => {
            shell::say(HELP);
            true
        }
        [other, ..] => return usage(&format!("there is no command `{other}`")),
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage(problem: &str) -> ExitCode {
    shell::complain(&format!("error: {problem}\n\n{HELP}"));
    ExitCode::from(2)
}
