//! Printing.

use std::{
    borrow::Cow,
    io::{self, IsTerminal as _, Write},
};

use serde::Serialize;

/// Prints one JSON value on a line of its own.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, value)?;
    output.write_all(b"\n")?;
    output.flush()
}

/// Prints a line.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{text}")?;
    output.flush()
}

/// Prints bytes as they are, so that a pipe gets nothing else; on a terminal, the line is ended.
pub(crate) fn verbatim(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(bytes)?;
    if output.is_terminal() {
        output.write_all(b"\n")?;
    }
    output.flush()
}

/// Text of a model for a terminal: what could command the terminal is shown as a picture of itself instead. A model
/// repeats what it has read, and that may move the cursor, rename the window or fill the clipboard.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let commands = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(commands) {
        return Cow::Borrowed(text);
    }
    let picture = |c: char| match c {
        // Unicode has pictures of the first 32 in their order, and of the one that deletes.
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    };
    Cow::Owned(text.chars().map(|c| if commands(c) { picture(c) } else { c }).collect())
}

/// A size as people read it: `3.2 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"], " ")
}

/// A count as people read it: `5.1B`.
pub(crate) fn count(number: u64) -> String {
    scaled(number, 1000.0, &["", "K", "M", "B", "T"], "")
}

fn scaled(number: u64, step: f64, units: &[&str], gap: &str) -> String {
    let mut value = number as f64;
    let mut unit = 0;
    // A value that would round up to a whole step is shown in the next unit.
    while value >= step - 0.05 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = usize::from(unit > 0);
    format!("{value:.digits$}{gap}{}", units[unit]).trim_end().to_owned()
}

/// Rows of text in columns as wide as their widest cell; the last column is left as it is.
pub(crate) fn table(rows: &[Vec<String>]) -> io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut output = io::stdout().lock();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
        }
        writeln!(output, "{}", line.trim_end())?;
    }
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_commands_a_terminal() {
        assert!(matches!(harmless("Größe:\t1\n"), Cow::Borrowed("Größe:\t1\n")));
        assert_eq!(harmless("\x1b[2Ja\rb\x07\x7f\u{9b}1m\0"), "␛[2Ja␍b␇␡\u{fffd}1m␀");
    }

    #[test]
    fn sizes_and_counts_are_short() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1000), "1000 B");
        assert_eq!(size(3_430_000_000), "3.2 GiB");
        assert_eq!(count(999), "999");
        assert_eq!(count(5_123_456_789), "5.1B");
        assert_eq!(count(999_960), "1.0M");
        assert_eq!(size(u64::MAX), "16384.0 PiB");
    }
}
