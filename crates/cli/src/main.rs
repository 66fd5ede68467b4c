//! `rullama`: Gemma 4 models from the command line.
//!
//! This crate parses arguments, prints results and gives advice; everything it knows about models
//! comes from the libraries below it.

mod arguments;
mod commands;
mod demo;
mod engine;
mod failure;
mod family;
mod model;
mod moment;
mod new_file;
mod output;
mod program;
mod request;
mod server;
mod writer;

use std::process::ExitCode;

use clap::Parser;

use crate::{arguments::Arguments, failure::Failure};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // One thread: the libraries' futures are not `Send`, and a command waits for one thing at a time.
    // An interrupt is seen whenever that thing gives way, not only now and then.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().event_interval(1).build();
    let result = runtime
        .map_err(|source| Failure::new("the program cannot be started").caused_by(source))
        .and_then(|runtime| runtime.block_on(commands::run(arguments)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            anstream::eprint!("{failure}");
            ExitCode::from(failure.status())
        }
    }
}
