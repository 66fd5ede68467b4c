//! From the format's notation of arguments to JSON.

use crate::marks::QUOTE;

/// What counts as a key without quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BareKeys {
    /// Letters, digits and `_`.
    Words,
    /// Anything without white space and without the characters that structure arguments.
    Any,
}

impl BareKeys {
    fn contain(self, c: char) -> bool {
        match self {
            Self::Words => c == '_' || c.is_alphanumeric(),
            Self::Any => {
                !matches!(c, '{' | '}' | '[' | ']' | ':' | ',' | '"' | '\'' | '<' | '>') && !c.is_whitespace()
            }
        }
    }
}

/// Rewrites arguments as JSON: delimited strings get quotes and escapes, bare keys get quotes, everything else
/// stays. Whether the result is JSON is for the JSON parser to say.
pub(crate) fn to_json(arguments: &str, keys: BareKeys) -> String {
    let mut out = String::with_capacity(arguments.len() + 16);
    let mut scanner = Scanner::new(arguments);
    while let Some(part) = scanner.next() {
        match part {
            Part::Delimited(text) => push_json_string(&mut out, text),
            Part::Quoted(text) => out.push_str(text),
            Part::Other(c) => {
                out.push(c);
                if matches!(c, '{' | ',')
                    && let Some((key, value)) = bare_key(scanner.rest, keys)
                {
                    push_json_string(&mut out, key);
                    out.push(':');
                    scanner.rest = value;
                }
            }
        }
    }
    out
}

fn push_json_string(out: &mut String, text: &str) {
    // The JSON text of a string value, escapes and all.
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// The bare key that `text` begins with, and what follows its colon. White space around the key is passed over.
pub(crate) fn bare_key(text: &str, keys: BareKeys) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(|c| !keys.contain(c))?;
    let (key, rest) = text.split_at(end);
    let value = rest.trim_start().strip_prefix(':')?;
    (!key.is_empty()).then_some((key, value))
}

/// A part of a call's arguments.
pub(crate) enum Part<'a> {
    /// What stands between two delimiters.
    Delimited(&'a str),
    /// A JSON string with its quotes.
    Quoted(&'a str),
    /// A character of anything else.
    Other(char),
}

/// Walks over arguments, taking strings whole so that nothing inside them is mistaken for structure.
pub(crate) struct Scanner<'a> {
    /// What is left. May be set to a later part of the same text.
    pub(crate) rest: &'a str,
    /// Once a quote has no partner, no later one has: the search for it passed them all as escaped. Remembering
    /// that keeps the walk linear.
    double_quotes_close: bool,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text, double_quotes_close: true }
    }

    pub(crate) fn next(&mut self) -> Option<Part<'a>> {
        if let Some(after) = self.rest.strip_prefix(QUOTE)
            && let Some((text, rest)) = after.split_once(QUOTE)
        {
            self.rest = rest;
            return Some(Part::Delimited(text));
        }
        let c = self.rest.chars().next()?;
        if c == '"' && self.double_quotes_close {
            match quoted_length(self.rest, '"') {
                Some(length) => {
                    let (text, rest) = self.rest.split_at(length);
                    self.rest = rest;
                    return Some(Part::Quoted(text));
                }
                None => self.double_quotes_close = false,
            }
        }
        self.rest = &self.rest[c.len_utf8()..];
        Some(Part::Other(c))
    }
}

/// The length of the string that `text` begins with, both quotes included. A backslash escapes a quote.
pub(crate) fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => {
                characters.next();
            }
            c if c == quote => return Some(at + quote.len_utf8()),
            _ => {}
        }
    }
    None
}
