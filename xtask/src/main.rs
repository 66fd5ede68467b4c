//! The project's own commands: `cargo xtask run`, `install`, `package`, `test`, `web` and others.
//!
//! They install what they need first, so that a new machine needs only Rust, a C compiler, Node and Python.

mod app;
mod audit;
mod bench_page;
mod demo_goldens;
mod fuzz;
mod goldens;
mod install;
mod licences;
mod package;
mod phone;
mod run;
mod setup;
mod shell;
mod tests;
mod web;

use std::process::ExitCode;

use crate::package::Profile;

const HELP: &str = "\
The project's own commands

Usage: cargo xtask <COMMAND>

  run [FLAGS]       build the web app and rullama, and start `rullama serve` with these flags; without any, with --open
  run ARGUMENTS     build rullama and run it with these arguments; for `serve`, build the web app first
  install [FLAGS]   build the web app and install rullama with it; flags are those of `cargo install`
  package           build an archive for other machines, in target/package: rullama with the app and the demo model
  package --test    package what has been built already, without optimisation, unpack it elsewhere and use it
  test              run all checks: format, lints, dependencies, tests, documentation, wasm, browsers; ends with a table
                    of phases and minutes
  test --quick      run format, lints, the libraries' tests and one model on each backend, for daily work
  web               build the npm package in packages/npm/dist, with the engine as wasm
  bench-page [FILE.gguf] [FLAGS]
                    serve the page that benchmarks a model in a browser; flags are those of `rullama serve`
  phone --driver URL [--page URL] [--model NAME|URL] [--say TEXT] [--keep] [--clean] [--screenshot FILE]
                    [--timeout SECONDS]
                    open the app in a phone's browser over WebDriver, load a model, send a message, and print the
                    reply, its speed and the log; see `phone --help`
  audit             check licences, sources and known vulnerabilities of dependencies, without a network
  fuzz [SECONDS]    run every fuzz target for that long [default: 60]
  goldens           show how the test data were made, and check that they are unchanged
  goldens --make    make the data of models/demo.gguf again, with transformers and llama.cpp
  setup             install everything that the commands need, and do nothing else
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        // The second pair of dashes is cargo's custom, not an argument of ours.
        ["run", "--", rest @ ..] | ["run", rest @ ..] => run::run(rest),
        ["install", "--", rest @ ..] | ["install", rest @ ..] => install::run_with(rest),
        ["package"] => package::run_all(Profile::Release),
        // For trying the archive out without waiting for an optimised build.
        ["package", "--profile", "dev"] => package::run_all(Profile::Dev),
        ["package", "--test"] => package::test(),
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
        unknown => return usage(&format!("there is no command `cargo xtask {}`", unknown.join(" "))),
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage(problem: &str) -> ExitCode {
    shell::complain(&format!("error: {problem}\n\n{HELP}"));
    ExitCode::from(2)
}
