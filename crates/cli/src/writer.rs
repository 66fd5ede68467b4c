//! A reply on the terminal: the answer plain, thoughts and calls dimmed.

use std::io::{self, IsTerminal as _, Write};

use rullama_chat::Delta;

const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Writes the parts of a reply as they come.
pub(crate) struct TerminalWriter {
    colours: bool,
    dimmed: bool,
    started: bool,
}

impl TerminalWriter {
    pub(crate) fn new() -> Self {
        Self { colours: io::stdout().is_terminal(), dimmed: false, started: false }
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
                self.write(&format!("\na call that cannot be understood ({error}): {text}\n"), true)
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
        let mut output = io::stdout().lock();
        output.write_all(text.as_bytes())?;
        output.flush()
    }

    fn dim(&mut self, dimmed: bool) -> io::Result<()> {
        if self.colours && self.dimmed != dimmed {
            write!(io::stdout(), "{}", if dimmed { DIM } else { PLAIN })?;
        }
        self.dimmed = dimmed;
        io::stdout().flush()
    }
}
