//! Printing. Everything that the program writes to standard output or standard error goes through here or through
//! `writer.rs`, for two reasons:
//!
//! - **Names, metadata and errors come from files that other people wrote.** A control character in them could move the
//!   cursor, rename the window or fill the clipboard. It is shown as a visible symbol instead, on a terminal and elsewhere.
//!   Only if text is the result of a command (`generate`, `run`, `render`, `detokenize`) does a pipe or a file get the
//!   exact bytes; a terminal never does.
//! - **No failed write may panic**, as `println!` and `eprintln!` do on a full disk. Writing to standard output returns
//!   the error; a note that cannot be written to standard error is lost, and the exit status stays what it was.

use std::{
    borrow::Cow,
    fmt,
    io::{self, IsTerminal as _, Write},
    num::NonZeroU8,
    time::SystemTime,
};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};
use time::{
    OffsetDateTime,
    format_description::well_known::{
        Iso8601,
        iso8601::{Config, EncodedConfig, TimePrecision},
    },
};

/// Prints one JSON value on a line of its own.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(&json_line(value)?)?;
    output.flush()
}

/// One JSON value and the end of its line.
pub(crate) fn json_line(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = Vec::new();
    write_json(&mut line, value)?;
    line.push(b'\n');
    Ok(line)
}

/// Writes one JSON value with every control character escaped.
pub(crate) fn write_json(output: impl Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(output, EscapeControls))
}

/// JSON that also escapes the control characters that JSON allows in strings: DEL and U+0080 to U+009F, of which U+009B
/// begins a terminal's command.
struct EscapeControls;

impl Formatter for EscapeControls {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, control)) = rest.char_indices().find(|(_, c)| c.is_control()) {
            CompactFormatter.write_string_fragment(writer, &rest[..at])?;
            write!(writer, "\\u{:04x}", u32::from(control))?;
            rest = &rest[at + control.len_utf8()..];
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

/// Prints a line, or several.
pub(crate) fn line(text: &str) -> io::Result<()> {
    self::text(&format!("{text}\n"))
}

/// Prints text that has its own line ends.
pub(crate) fn text(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(harmless(text).as_bytes())?;
    output.flush()
}

/// Prints text that is the result of a command: its exact bytes to a pipe or file; to a terminal without control characters
/// and with a line end.
pub(crate) fn verbatim(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    if output.is_terminal() {
        writeln!(output, "{}", harmless(&String::from_utf8_lossy(bytes)))?;
    } else {
        output.write_all(bytes)?;
    }
    output.flush()
}

/// Writes a line to standard error. If that fails, there is no way to report it.
pub(crate) fn note(text: impl fmt::Display) {
    error(format_args!("{text}\n"));
}

/// Writes text with its own line ends to standard error, like [`note`].
pub(crate) fn error(text: impl fmt::Display) {
    let mut output = io::stderr().lock();
    let _ = output.write_all(harmless(&text.to_string()).as_bytes());
    let _ = output.flush();
}

/// Text for a terminal: each control character except line feed and tab is replaced by a visible symbol.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    pictured(text, |c| c.is_control() && !matches!(c, '\n' | '\t'))
}

/// The same for a table cell: line feeds and tabs are replaced too, so that a name can't add rows or columns.
fn harmless_cell(text: &str) -> Cow<'_, str> {
    pictured(text, char::is_control)
}

fn pictured(text: &str, replaced: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&replaced) {
        return Cow::Borrowed(text);
    }
    let picture = |c: char| match c {
        // Unicode has symbols for the first 32 control characters, in order, and for delete.
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    };
    Cow::Owned(text.chars().map(|c| if replaced(c) { picture(c) } else { c }).collect())
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
    // A value that would round up to 1024 (or 1000) is shown in the next unit.
    while value >= step - 0.05 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = usize::from(unit > 0);
    format!("{value:.digits$}{gap}{}", units[unit]).trim_end().to_owned()
}

/// A day as `2026-08-22`, in UTC.
pub(crate) fn date(time: SystemTime) -> String {
    OffsetDateTime::from(time).date().to_string()
}

/// A moment as `2026-08-22T10:05:00Z`.
pub(crate) fn timestamp(time: SystemTime) -> String {
    const SECONDS: EncodedConfig = iso_8601(None);
    OffsetDateTime::from(time).format(&Iso8601::<SECONDS>).unwrap_or_default()
}

/// A moment as `2026-08-22T10:05:00.250Z`, as JavaScript's `toISOString` writes it.
pub(crate) fn timestamp_millis(time: SystemTime) -> String {
    const MILLISECONDS: EncodedConfig = iso_8601(NonZeroU8::new(3));
    OffsetDateTime::from(time).format(&Iso8601::<MILLISECONDS>).unwrap_or_default()
}

const fn iso_8601(decimal_digits: Option<NonZeroU8>) -> EncodedConfig {
    Config::DEFAULT.set_time_precision(TimePrecision::Second { decimal_digits }).encode()
}

/// Rows of text in columns as wide as their widest cell; the last column is left as it is.
pub(crate) fn table(rows: &[Vec<String>]) -> io::Result<()> {
    text(&table_text(rows))
}

pub(crate) fn table_text(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<Cow<'_, str>>> =
        rows.iter().map(|row| row.iter().map(|cell| harmless_cell(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
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
    fn a_cell_stays_on_its_line() {
        let rows = [["a\nb", "c\td"], ["e", "\x1b[2J"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table_text(&rows), "a␊b  c␉d\ne    ␛[2J\n");
    }

    /// The value read back is the same, and no byte of the line is a control character.
    #[test]
    fn json_has_no_control_characters() {
        let text: String = ('\0'..='\u{a0}').chain("\"\\é\u{2028}".chars()).collect();
        let line = String::from_utf8(json_line(&serde_json::json!({ &text: [&text] })).unwrap()).unwrap();
        let bare = line.strip_suffix('\n').unwrap();
        assert!(!bare.contains(char::is_control), "{bare}");
        assert!(bare.contains(r"\u009b") && bare.contains(r"\u007f"), "{bare}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(bare).unwrap(),
            serde_json::json!({ &text: [&text] })
        );
    }

    #[test]
    fn moments_are_written_in_utc() {
        use std::time::{Duration, UNIX_EPOCH};
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!((timestamp(time).as_str(), date(time).as_str()), (text, &text[..10]));
        }
        let time = UNIX_EPOCH + Duration::from_millis(61_007);
        assert_eq!(timestamp_millis(time), "1970-01-01T00:01:01.007Z");
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
