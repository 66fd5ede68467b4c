//! `rullama`: Gemma 4 models from the command line.
//!
//! This crate parses arguments, prints results and gives advice; everything it knows about models
//! comes from the libraries below it.

#![warn(clippy::print_stderr)]

mod arguments;
mod commands;
mod demo;
mod embedded;
mod engine;
mod failure;
mod family;
mod media;
mod media_source;
mod model;
mod output;
mod program;
mod request;
mod runtime_folder;
mod server;
mod signals;
mod whole_file;
mod writer;

use std::{borrow::Cow, io, process::ExitCode};

use clap::Parser;

use crate::{arguments::Arguments, failure::Failure};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(reply) => return explain(&reply),
    };
    if arguments.command.may_use_gpu() {
        runtime_folder::provide();
    }
    // One thread, because the libraries' futures are not `Send` and a command does one thing at a time. With an event
    // interval of 1 the runtime looks for signals after every poll, so Ctrl-C works at once.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().event_interval(1).build();
    let result = runtime
        .map_err(|source| Failure::new("rullama can't start").caused_by(source))
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

/// Prints the parser's reply: an error in the command line, or the help that was asked for.
fn explain(reply: &clap::Error) -> ExitCode {
    let plain = reply.render().to_string();
    let written = match output::harmless(&plain) {
        Cow::Borrowed(_) => reply.print(),
        // The reply quotes the command line, where a shell may have put file names with control characters.
        Cow::Owned(text) => {
            output::error(text);
            Ok(())
        }
    };
    match written {
        // The user asked for the help, so not being able to print it is a failure.
        Err(error) if !reply.use_stderr() && error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::from(u8::try_from(reply.exit_code()).unwrap_or(1)),
    }
}
