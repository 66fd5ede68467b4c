//! JSON values as the format writes them: strings between delimiters instead of quotes, keys sorted, no
//! spaces, numbers as Go prints them.

use std::fmt::Write;

use serde_json::{Map, Number, Value};

use crate::marks::QUOTE;

/// How the keys of objects are written: bare in calls, delimited inside schemas.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    Bare,
    Quoted,
}

/// Writes a value. The caller has checked its depth.
pub(crate) fn write_value(out: &mut String, value: &Value, keys: Keys) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(values) => {
            out.push('[');
            write_separated(out, values, |out, value| write_value(out, value, keys));
            out.push(']');
        }
        Value::Object(map) => write_object(out, map, keys),
    }
}

/// Writes an object with its keys in byte order.
pub(crate) fn write_object(out: &mut String, map: &Map<String, Value>, keys: Keys) {
    out.push('{');
    write_separated(out, sorted(map), |out, (key, value)| {
        match keys {
            Keys::Bare => out.push_str(key),
            Keys::Quoted => write_string(out, key),
        }
        out.push(':');
        write_value(out, value, keys);
    });
    out.push('}');
}

/// Writes a string between delimiters, verbatim: the format has no escapes.
pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push_str(QUOTE);
    out.push_str(text);
    out.push_str(QUOTE);
}

/// Writes a number.
///
/// Whole numbers have neither a point nor an exponent while they fit 64 bits, however the JSON wrote them.
/// Others are the fewest digits that give the same number back, with an exponent of at least two digits
/// below 1e-4 and from 1e6 on, as Go's `%v` has it.
pub(crate) fn write_number(out: &mut String, number: &Number) {
    // Two to the 63rd: the first whole number that a signed 64-bit integer cannot hold.
    const INTEGERS_END: f64 = 9_223_372_036_854_775_808.0;

    // Integers stay exact even where Ollama, which holds every number as a float, would round them.
    let value = match number.as_f64() {
        Some(value) if number.is_f64() => value,
        _ => return push(out, number),
    };
    if value.fract() == 0.0 && (-INTEGERS_END..INTEGERS_END).contains(&value) {
        #[expect(clippy::cast_possible_truncation, reason = "whole and in range, as just checked")]
        return push(out, value as i64);
    }
    let scientific = format!("{value:e}");
    let parts = scientific.split_once('e').and_then(|(digits, exponent)| {
        let exponent: i32 = exponent.parse().ok()?;
        Some((digits, exponent))
    });
    match parts {
        Some((digits, exponent)) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            push(out, format_args!("{digits}e{sign}{:02}", exponent.unsigned_abs()));
        }
        _ => push(out, value),
    }
}

fn push(out: &mut String, text: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{text}");
}

/// The entries of an object in the byte order of their keys.
pub(crate) fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

/// Writes items with commas between them.
pub(crate) fn write_separated<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write(out, item);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_printed_as_go_prints_them() {
        for (json, expected) in [
            ("0", "0"),
            ("42", "42"),
            ("-7", "-7"),
            ("42.0", "42"),
            ("-0.0", "0"),
            ("-0", "0"),
            ("3.14", "3.14"),
            ("0.1", "0.1"),
            ("-2.5", "-2.5"),
            ("1e3", "1000"),
            ("1.5e3", "1500"),
            ("1e15", "1000000000000000"),
            ("123456789012.0", "123456789012"),
            ("9007199254740993", "9007199254740993"),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808.0", "-9223372036854775808"),
            ("18446744073709551615", "18446744073709551615"),
            ("1e19", "1e+19"),
            ("100000000000000000000", "1e+20"),
            ("1.25e300", "1.25e+300"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1.5e-7", "1.5e-07"),
            ("5e-324", "5e-324"),
            ("123456.5", "123456.5"),
            ("1234567.5", "1.2345675e+06"),
        ] {
            let mut out = String::new();
            write_value(&mut out, &serde_json::from_str(json).unwrap(), Keys::Bare);
            assert_eq!(out, expected, "{json}");
        }
    }

    #[test]
    fn objects_are_sorted_by_bytes_at_every_level() {
        let value = json!({"b": [1, "x", null, {"z": true, "Z": false}], "a": {}, "é": [], "_": "\n\"'"});
        let mut bare = String::new();
        write_value(&mut bare, &value, Keys::Bare);
        assert_eq!(bare, "{_:<|\"|>\n\"'<|\"|>,a:{},b:[1,<|\"|>x<|\"|>,null,{Z:false,z:true}],é:[]}");
        let mut quoted = String::new();
        write_value(&mut quoted, &json!({"b": {"c": 1}, "a": 2}), Keys::Quoted);
        assert_eq!(quoted, "{<|\"|>a<|\"|>:2,<|\"|>b<|\"|>:{<|\"|>c<|\"|>:1}}");
    }
}
