//! The prompt of `generate` and `run`: an argument, or standard input.

use std::io::{self, IsTerminal as _};

use super::read_standard_input;
use crate::failure::Failure;

/// The prompt that was given; `-` stands for standard input.
pub(super) fn given(prompt: &str) -> Result<String, Failure> {
    if prompt == "-" { standard_input() } else { Ok(prompt.to_owned()) }
}

/// The prompt from standard input, because none was given. A terminal is not read: nothing would show that rullama waits.
pub(super) fn piped() -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        return Err(missing("there is no prompt"));
    }
    standard_input()
}

fn standard_input() -> Result<String, Failure> {
    let text = String::from_utf8(read_standard_input()?)
        .map_err(|_| Failure::new("standard input is not UTF-8 text"))?;
    // `echo` and most editors end the last line.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        return Err(missing("there is no prompt: standard input is empty"));
    }
    Ok(text.to_owned())
}

fn missing(what: &str) -> Failure {
    Failure::new(what)
        .hint("give one, as in `rullama generate \"Why is the sky blue?\"`, or use --ids or --messages")
        .usage()
}
