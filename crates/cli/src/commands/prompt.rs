//! The prompt of `generate` and `run`: an argument, standard input, or both.

use std::io::{self, IsTerminal as _};

use super::read_standard_input;
use crate::failure::Failure;

const NOTHING_PIPED: &str = "there is no prompt: standard input is empty";

/// The failure if the prompt should come from standard input and nothing is there.
pub(super) fn nothing_piped() -> Failure {
    missing(NOTHING_PIPED)
}

/// The prompt that was given as an argument. `-` stands for standard input. With any other prompt, text that is piped to
/// standard input follows it after a line break, as in `cat FILE | rullama run MODEL "Summarise"`.
pub(super) fn given(prompt: &str) -> Result<String, Failure> {
    if prompt == "-" {
        return non_blank(text_of_standard_input()?, NOTHING_PIPED);
    }
    let prompt = non_blank(prompt.to_owned(), "the prompt is empty")?;
    if !is_piped() {
        return Ok(prompt);
    }
    let text = text_of_standard_input()?;
    Ok(if text.trim().is_empty() { prompt } else { format!("{prompt}\n{text}") })
}

/// The prompt from standard input, because none was given. A terminal is not read: nothing would show that rullama waits.
pub(super) fn piped() -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        return Err(missing("there is no prompt"));
    }
    non_blank(text_of_standard_input()?, NOTHING_PIPED)
}

/// Whether text comes from a pipe or a file. Other inputs, such as a socket or a device, may stay open without ever
/// sending anything, so they are read only if the prompt is `-` or missing.
pub(super) fn is_piped() -> bool {
    #[cfg(unix)]
    {
        use std::os::{fd::AsFd as _, unix::fs::FileTypeExt as _};
        let file = io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from);
        let kind = file.and_then(|file| file.metadata()).map(|metadata| metadata.file_type());
        kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file())
    }
    #[cfg(not(unix))]
    {
        !io::stdin().is_terminal()
    }
}

fn text_of_standard_input() -> Result<String, Failure> {
    let text = String::from_utf8(read_standard_input()?)
        .map_err(|_| Failure::new("standard input is not UTF-8 text"))?;
    // `echo` and most editors end the last line.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

/// Refuses a prompt of nothing but white space.
fn non_blank(text: String, problem: &str) -> Result<String, Failure> {
    if text.trim().is_empty() { Err(missing(problem)) } else { Ok(text) }
}

fn missing(problem: &str) -> Failure {
    Failure::new(problem)
        .hint("give one, as in `rullama generate \"Why is the sky blue?\"`, or use --ids or --messages")
        .usage()
}
