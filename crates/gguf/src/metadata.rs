//! Typed look-up of metadata.
//!
//! Every accessor comes in two forms: `u32("key")` fails when the key is missing,
//! `optional_u32("key")` gives `None`. A key that is there with the wrong type is an error in
//! both. Integers are accepted in any width that holds the value, because converters differ.

use crate::{Array, Header, MetadataError, Strings, Value, value::ValueType};

/// The metadata of a file, or of one section of it such as `gemma4.` or `tokenizer.ggml.`.
#[derive(Debug, Clone, Copy)]
pub struct Metadata<'a> {
    header: &'a Header,
    section: &'a str,
}

/// Defines the required and the optional form of one accessor.
macro_rules! accessors {
    ($($name:ident, $optional:ident -> $kind:ty, $expected:literal, $text:literal;)*) => {
        impl<'a> Metadata<'a> {
            $(
                #[doc = concat!("The value of `key` as ", $text, ".")]
                pub fn $name(&self, key: &str) -> Result<$kind, MetadataError> {
                    self.required(key, $expected)
                }

                #[doc = concat!("The value of `key` as ", $text, ", if the key is there.")]
                pub fn $optional(&self, key: &str) -> Result<Option<$kind>, MetadataError> {
                    self.optional(key, $expected)
                }
            )*
        }
    };
}

accessors! {
    u32, optional_u32 -> u32, "a u32", "an unsigned integer of 32 bits";
    u64, optional_u64 -> u64, "a u64", "an unsigned integer of 64 bits";
    i32, optional_i32 -> i32, "an i32", "a signed integer of 32 bits";
    f32, optional_f32 -> f32, "an f32", "a number";
    bool, optional_bool -> bool, "a bool", "a truth value";
    str, optional_str -> &'a str, "a string", "text";
    strings, optional_strings -> Strings<'a>, "an array of strings", "strings, in place";
    i32s, optional_i32s -> Vec<i32>, "an array of i32", "signed integers";
    u32s, optional_u32s -> Vec<u32>, "an array of u32", "unsigned integers";
    f32s, optional_f32s -> Vec<f32>, "an array of f32", "numbers";
    bools, optional_bools -> Vec<bool>, "an array of bool", "truth values";
}

impl<'a> Metadata<'a> {
    pub(crate) fn new(header: &'a Header, section: &'a str) -> Self {
        Self { header, section }
    }

    /// The same metadata, with keys counted from `section`: `section("gemma4").u32("block_count")`
    /// looks `gemma4.block_count` up.
    pub fn section(&self, section: &'a str) -> Self {
        Self { header: self.header, section }
    }

    /// The value of `key`, whatever its type.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        if self.section.is_empty() { self.header.get(key) } else { self.header.get(&self.full_key(key)) }
    }

    /// Whether the key is there.
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// A value for each of `layers` layers, written either once for all or as an array of them.
    pub fn per_layer_u32(&self, key: &str, layers: usize) -> Result<Vec<u32>, MetadataError> {
        self.per_layer(key, layers, "a u32 or an array of them")
    }

    /// A truth value for each of `layers` layers, written once for all or as an array.
    pub fn per_layer_bool(&self, key: &str, layers: usize) -> Result<Vec<bool>, MetadataError> {
        self.per_layer(key, layers, "a bool or an array of them")
    }

    fn per_layer<T>(&self, key: &str, layers: usize, expected: &'static str) -> Result<Vec<T>, MetadataError>
    where
        T: FromValue<'a> + Copy,
        Vec<T>: FromValue<'a>,
    {
        match self.get(key) {
            Some(Value::Array(array)) if array.len() != layers => Err(MetadataError::WrongLength {
                key: self.full_key(key),
                found: array.len() as u64,
                expected: layers as u64,
            }),
            Some(Value::Array(_)) => self.required(key, expected),
            _ => Ok(vec![self.required(key, expected)?; layers]),
        }
    }

    fn required<T: FromValue<'a>>(&self, key: &str, expected: &'static str) -> Result<T, MetadataError> {
        self.optional(key, expected)?
            .ok_or_else(|| MetadataError::Missing { key: self.full_key(key), expected })
    }

    fn optional<T: FromValue<'a>>(
        &self,
        key: &str,
        expected: &'static str,
    ) -> Result<Option<T>, MetadataError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        T::from_value(value).map(Some).map_err(|mismatch| {
            let key = self.full_key(key);
            match mismatch {
                Mismatch::Type(found) => MetadataError::WrongType { key, found, expected },
                Mismatch::Range(found) => MetadataError::OutOfRange { key, found, expected },
                Mismatch::Utf8 => MetadataError::NotUtf8 { key },
            }
        })
    }

    fn full_key(&self, key: &str) -> String {
        if self.section.is_empty() { key.to_owned() } else { format!("{}.{key}", self.section) }
    }
}

/// Why a value is not what was asked for.
enum Mismatch {
    Type(ValueType),
    Range(String),
    Utf8,
}

/// What a metadata value can be read as.
trait FromValue<'a>: Sized {
    fn from_value(value: Value<'a>) -> Result<Self, Mismatch>;
}

macro_rules! integers {
    ($($kind:ty)*) => { $(
        impl<'a> FromValue<'a> for $kind {
            fn from_value(value: Value<'a>) -> Result<Self, Mismatch> {
                let integer = value.integer().ok_or(Mismatch::Type(value.value_type()))?;
                Self::try_from(integer).map_err(|_| Mismatch::Range(integer.to_string()))
            }
        }
    )* };
}

integers!(u32 u64 i32);

impl<'a> FromValue<'a> for f32 {
    fn from_value(value: Value<'a>) -> Result<Self, Mismatch> {
        match value {
            Value::F32(number) => Ok(number),
            Value::F64(number) => Ok(number as f32),
            other => Err(Mismatch::Type(other.value_type())),
        }
    }
}

impl<'a> FromValue<'a> for bool {
    fn from_value(value: Value<'a>) -> Result<Self, Mismatch> {
        match value {
            Value::Bool(truth) => Ok(truth),
            other => Err(Mismatch::Type(other.value_type())),
        }
    }
}

impl<'a> FromValue<'a> for &'a str {
    fn from_value(value: Value<'a>) -> Result<Self, Mismatch> {
        match value {
            Value::String(bytes) => std::str::from_utf8(bytes).map_err(|_| Mismatch::Utf8),
            other => Err(Mismatch::Type(other.value_type())),
        }
    }
}

impl<'a> FromValue<'a> for Strings<'a> {
    fn from_value(value: Value<'a>) -> Result<Self, Mismatch> {
        match value {
            Value::Array(Array::Strings(strings)) => Ok(strings),
            // Some writers give an empty array whatever element type comes first.
            Value::Array(array) if array.is_empty() => Ok(Strings { header: &[], starts: &[] }),
            other => Err(Mismatch::Type(element_or_own(other))),
        }
    }
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Vec<T> {
    fn from_value(value: Value<'a>) -> Result<Self, Mismatch> {
        match value {
            Value::Array(array) => array.iter().map(T::from_value).collect(),
            other => Err(Mismatch::Type(other.value_type())),
        }
    }
}

/// For a message about an array, what its elements are says more than that it is one.
fn element_or_own(value: Value<'_>) -> ValueType {
    match value {
        Value::Array(array) => array.element_type(),
        other => other.value_type(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Header, MemorySource, MetadataError, Value, ValueType, Writer};

    fn header() -> Header {
        let mut writer = Writer::new();
        writer.set("m.text", "hello").unwrap();
        writer.set("m.bytes", Value::String(b"\xff")).unwrap();
        writer.set("m.small", 7u8).unwrap();
        writer.set("m.negative", -7i64).unwrap();
        writer.set("m.number", 0.5f64).unwrap();
        writer.set("m.truth", true).unwrap();
        writer.set("m.list", [1i32, 2, 3].as_slice()).unwrap();
        writer.set("m.flags", [true, false, true].as_slice()).unwrap();
        writer.set("m.words", ["a", "", "ccc"].as_slice()).unwrap();
        let file = writer.begin(Vec::new()).unwrap().finish().unwrap();
        pollster::block_on(Header::read(&MemorySource::new(file))).unwrap()
    }

    #[test]
    fn values_are_found_with_their_types() {
        let header = header();
        let m = header.metadata().section("m");
        assert_eq!(m.str("text").unwrap(), "hello");
        assert_eq!(m.u32("small").unwrap(), 7);
        assert_eq!(m.i32("negative").unwrap(), -7);
        assert_eq!(m.f32("number").unwrap(), 0.5);
        assert!(m.bool("truth").unwrap());
        assert_eq!(m.i32s("list").unwrap(), [1, 2, 3]);
        assert_eq!(m.bools("flags").unwrap(), [true, false, true]);
        let words: Vec<&[u8]> = m.strings("words").unwrap().iter().collect();
        assert_eq!(words, [&b"a"[..], b"", b"ccc"]);
        assert_eq!(m.optional_u32("absent").unwrap(), None);
        assert_eq!(header.metadata().u32("m.small").unwrap(), 7);
    }

    #[test]
    fn per_layer_values_may_be_written_once_or_for_each_layer() {
        let header = header();
        let m = header.metadata().section("m");
        assert_eq!(m.per_layer_u32("small", 2).unwrap(), [7, 7]);
        assert_eq!(m.per_layer_u32("list", 3).unwrap(), [1, 2, 3]);
        assert_eq!(m.per_layer_bool("flags", 3).unwrap(), [true, false, true]);
        let error = m.per_layer_u32("list", 4).unwrap_err();
        assert_eq!(error, MetadataError::WrongLength { key: "m.list".into(), found: 3, expected: 4 });
    }

    #[test]
    fn errors_name_key_found_and_expected() {
        let header = header();
        let m = header.metadata().section("m");
        let say = |error: MetadataError| error.to_string();
        assert_eq!(say(m.u32("absent").unwrap_err()), "metadata key `m.absent` is missing (expected a u32)");
        assert_eq!(say(m.u32("text").unwrap_err()), "metadata key `m.text` is a string (expected a u32)");
        assert_eq!(say(m.u32("negative").unwrap_err()), "metadata key `m.negative` is -7 (expected a u32)");
        assert_eq!(say(m.str("bytes").unwrap_err()), "metadata key `m.bytes` is not UTF-8");
        assert_eq!(
            m.optional_strings("list").unwrap_err(),
            MetadataError::WrongType {
                key: "m.list".into(),
                found: ValueType::I32,
                expected: "an array of strings"
            }
        );
    }
}
