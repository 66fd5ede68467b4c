//! Prints a reply as it is generated.
//!
//! On a terminal, thoughts stand between the lines `Thinking…` and `…done thinking.`, and thoughts and tool calls are
//! dimmed unless the terminal is plain (`NO_COLOR`, `TERM=dumb`). A pipe or a file gets the answer and the tool calls, with
//! the answer's exact bytes, and no thoughts: another program reads the answer.

use std::{
    borrow::Cow,
    env,
    io::{self, IsTerminal as _, Stdout, Write},
};

use rullama_chat::Delta;

use crate::output;

const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// The part of a reply that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Start,
    Thought,
    Answer,
    Call,
}

/// Writes the parts of a reply as they are generated.
pub(crate) struct ReplyWriter<W: Write = Stdout> {
    output: W,
    terminal: bool,
    colours: bool,
    section: Section,
}

impl ReplyWriter {
    pub(crate) fn new() -> Self {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let terminal = io::stdout().is_terminal();
        let plain = set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb");
        Self { output: io::stdout(), terminal, colours: terminal && !plain, section: Section::Start }
    }
}

impl<W: Write> ReplyWriter<W> {
    pub(crate) fn delta(&mut self, delta: &Delta) -> io::Result<()> {
        match delta {
            Delta::Answer(text) => self.write(Section::Answer, text),
            Delta::Thought(text) if self.terminal => self.write(Section::Thought, text),
            Delta::Call(call) => {
                let arguments = serde_json::to_string(&call.function.arguments)?;
                self.write(Section::Call, &format!("{}({arguments})", call.function.name))
            }
            Delta::MalformedCall { text, error } => {
                self.write(Section::Call, &format!("invalid tool call ({error}): {text}"))
            }
            _ => Ok(()),
        }
    }

    /// Ends the reply's last line.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        if matches!(self.section, Section::Thought | Section::Call) {
            self.style(PLAIN)?;
        }
        self.section = Section::Start;
        writeln!(self.output)?;
        self.output.flush()
    }

    fn write(&mut self, section: Section, text: &str) -> io::Result<()> {
        self.begin(section)?;
        let text = shown(self.terminal, text);
        self.output.write_all(text.as_bytes())?;
        self.output.flush()
    }

    /// Ends the section before and begins this one. Each tool call is on a line of its own.
    fn begin(&mut self, section: Section) -> io::Result<()> {
        let before = std::mem::replace(&mut self.section, section);
        if before == section && section != Section::Call {
            return Ok(());
        }
        match before {
            Section::Start => {}
            Section::Thought => {
                write!(self.output, "\n…done thinking.")?;
                self.style(PLAIN)?;
                write!(self.output, "\n\n")?;
            }
            Section::Answer => write!(self.output, "\n\n")?,
            Section::Call => {
                self.style(PLAIN)?;
                writeln!(self.output)?;
            }
        }
        match section {
            Section::Thought => {
                self.style(DIM)?;
                writeln!(self.output, "Thinking…")
            }
            Section::Call => self.style(DIM),
            Section::Start | Section::Answer => Ok(()),
        }
    }

    fn style(&mut self, code: &str) -> io::Result<()> {
        if self.colours { write!(self.output, "{code}") } else { Ok(()) }
    }
}

/// The text without control characters for a terminal, and unchanged for anything else.
fn shown(terminal: bool, text: &str) -> Cow<'_, str> {
    if terminal { output::harmless(text) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(terminal: bool, colours: bool, deltas: &[Delta]) -> String {
        let mut writer = ReplyWriter { output: Vec::new(), terminal, colours, section: Section::Start };
        for delta in deltas {
            writer.delta(delta).unwrap();
        }
        writer.end().unwrap();
        String::from_utf8(writer.output).unwrap()
    }

    fn thought(text: &str) -> Delta {
        Delta::Thought(text.to_owned())
    }

    fn answer(text: &str) -> Delta {
        Delta::Answer(text.to_owned())
    }

    /// A terminal gets no control characters from a model; a pipe gets exactly the model's text.
    #[test]
    fn only_a_terminal_is_protected() {
        assert_eq!(written(true, true, &[answer("\x1b[2J")]), "␛[2J\n");
        assert_eq!(written(false, false, &[answer("\x1b[2J")]), "\x1b[2J\n");
    }

    #[test]
    fn a_terminal_shows_thoughts_between_lines_of_their_own_and_a_pipe_shows_none() {
        let reply = [thought("7 + 5 "), thought("= 12"), answer("It is "), answer("12.")];
        assert_eq!(
            written(true, true, &reply),
            "\x1b[2mThinking…\n7 + 5 = 12\n…done thinking.\x1b[0m\n\nIt is 12.\n"
        );
        assert_eq!(written(true, false, &reply), "Thinking…\n7 + 5 = 12\n…done thinking.\n\nIt is 12.\n");
        assert_eq!(written(false, false, &reply), "It is 12.\n");
        assert_eq!(written(true, true, &[thought("7 +")]), "\x1b[2mThinking…\n7 +\x1b[0m\n");
    }

    #[test]
    fn each_tool_call_has_a_line_of_its_own() {
        let error = || rullama_chat::parse_messages("[{}]").unwrap_err();
        let call = || Delta::MalformedCall { text: "f(".to_owned(), error: error() };
        let line = format!("invalid tool call ({}): f(", error());
        assert_eq!(written(false, false, &[call(), call()]), format!("{line}\n{line}\n"));
        assert_eq!(written(false, false, &[answer("So:"), call()]), format!("So:\n\n{line}\n"));
        assert_eq!(written(true, true, &[call()]), format!("\x1b[2m{line}\x1b[0m\n"));
    }
}
