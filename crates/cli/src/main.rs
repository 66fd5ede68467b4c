//! `rullama`: Gemma 4 models from the command line.
//!
//! This crate parses arguments, prints results and gives advice; everything it knows about models
//! comes from the libraries below it.

#![warn(clippy::print_stderr)]

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
mod signals;
mod writer;

use std::{borrow::Cow, io, process::ExitCode};

use clap::Parser;

use crate::{arguments::Arguments, failure::Failure};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(reply) => return explain(&reply),
    };
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
            output::error(&failure);
            ExitCode::from(failure.status())
        }
    }
}

/// Shows what the command line parser has to say: what is wrong with the command line, or the help that it asks for.
fn explain(reply: &clap::Error) -> ExitCode {
    let plain = reply.render().to_string();
    let written = match output::harmless(&plain) {
        Cow::Borrowed(_) => reply.print(),
        // It quotes the command line, on which a shell may have put the names of files.
        Cow::Owned(text) => {
            output::error(text);
            Ok(())
        }
    };
    match written {
        // The help is what was asked for, so that failing to print it is a failure.
        Err(error) if !reply.use_stderr() && error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::from(u8::try_from(reply.exit_code()).unwrap_or(1)),
    }
}
