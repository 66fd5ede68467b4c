//! Prints a reply. On a terminal, thoughts and tool calls are dimmed; a pipe or a file gets the exact text.

use std::{
    borrow::Cow,
    io::{self, IsTerminal as _, Write},
};

use rullama_chat::Delta;

use crate::output;

const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Writes the parts of a reply as they are generated.
pub(crate) struct TerminalWriter {
    terminal: bool,
    dimmed: bool,
    started: bool,
}

impl TerminalWriter {
    pub(crate) fn new() -> Self {
        Self { terminal: io::stdout().is_terminal(), dimmed: false, started: false }
    }

    pub(crate) fn delta(&mut self, delta: &Delta) -> io::Result<()> {
        match delta {
            Delta::Answer(text) => self.write(text, false),
            Delta::Thought(text) => self.write(text, true),
            Delta::Call(call) => {
                let arguments = serde_json::to_string(&call.function.arguments)?;
                self.write(&format!("\n{}({arguments})\n", call.function.name), true)
            }
            Delta::MalformedCall { text, error } => {
                self.write(&format!("\ninvalid tool call ({error}): {text}\n"), true)
            }
            _ => Ok(()),
        }
    }

    /// Ends the reply's last line.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.dim(false)?;
        writeln!(io::stdout())
    }

    fn write(&mut self, text: &str, dimmed: bool) -> io::Result<()> {
        if self.started && self.dimmed != dimmed {
            writeln!(io::stdout(), "\n")?;
        }
        self.dim(dimmed)?;
        self.started = true;
        let mut screen = io::stdout().lock();
        screen.write_all(self.shown(text).as_bytes())?;
        screen.flush()
    }

    fn shown<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.terminal { output::harmless(text) } else { Cow::Borrowed(text) }
    }

    fn dim(&mut self, dimmed: bool) -> io::Result<()> {
        if self.terminal && self.dimmed != dimmed {
            write!(io::stdout(), "{}", if dimmed { DIM } else { PLAIN })?;
        }
        self.dimmed = dimmed;
        io::stdout().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal is not commanded by a model; a pipe gets what the model wrote.
    #[test]
    fn only_a_terminal_is_spared() {
        let writer = |terminal| TerminalWriter { terminal, dimmed: false, started: false };
        assert_eq!(writer(true).shown("\x1b[2J"), "␛[2J");
        assert_eq!(writer(false).shown("\x1b[2J"), "\x1b[2J");
    }
}
