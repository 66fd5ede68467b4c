//! Metadata values, viewed where they lie in the header's bytes.
//!
//! Nothing is copied: a vocabulary of a quarter of a million strings stays the bytes it was read
//! as, with one `u32` per string saying where it begins.

use std::fmt;

/// The type of a metadata value, as numbered in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
#[repr(u32)]
pub enum ValueType {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
}

impl ValueType {
    const ALL: [Self; 13] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::Bool,
        Self::String,
        Self::Array,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    /// The type with this number.
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(id).ok()?).copied()
    }

    /// Its number in the file.
    pub fn id(self) -> u32 {
        self as u32
    }

    /// Bytes of one value, where that does not depend on the value.
    pub fn bytes(self) -> Option<usize> {
        match self {
            Self::U8 | Self::I8 | Self::Bool => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::String | Self::Array => None,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U8 => "a u8",
            Self::I8 => "an i8",
            Self::U16 => "a u16",
            Self::I16 => "an i16",
            Self::U32 => "a u32",
            Self::I32 => "an i32",
            Self::F32 => "an f32",
            Self::Bool => "a bool",
            Self::String => "a string",
            Self::Array => "an array",
            Self::U64 => "a u64",
            Self::I64 => "an i64",
            Self::F64 => "an f64",
        })
    }
}

/// One metadata value.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Value<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    /// Text by convention; nothing in the file guarantees that it is.
    String(&'a [u8]),
    Array(Array<'a>),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl<'a> Value<'a> {
    /// The value's type.
    pub fn value_type(&self) -> ValueType {
        match self {
            Self::U8(_) => ValueType::U8,
            Self::I8(_) => ValueType::I8,
            Self::U16(_) => ValueType::U16,
            Self::I16(_) => ValueType::I16,
            Self::U32(_) => ValueType::U32,
            Self::I32(_) => ValueType::I32,
            Self::F32(_) => ValueType::F32,
            Self::Bool(_) => ValueType::Bool,
            Self::String(_) => ValueType::String,
            Self::Array(_) => ValueType::Array,
            Self::U64(_) => ValueType::U64,
            Self::I64(_) => ValueType::I64,
            Self::F64(_) => ValueType::F64,
        }
    }

    /// The value as a whole number, whatever width it was written in.
    pub fn integer(&self) -> Option<i128> {
        Some(match *self {
            Self::U8(v) => v.into(),
            Self::I8(v) => v.into(),
            Self::U16(v) => v.into(),
            Self::I16(v) => v.into(),
            Self::U32(v) => v.into(),
            Self::I32(v) => v.into(),
            Self::U64(v) => v.into(),
            Self::I64(v) => v.into(),
            _ => return None,
        })
    }

    /// Reads a scalar of `kind` from exactly the bytes it occupies.
    pub(crate) fn scalar(kind: ValueType, bytes: &'a [u8]) -> Option<Self> {
        Some(match kind {
            ValueType::U8 => Self::U8(u8::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::I8 => Self::I8(i8::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::U16 => Self::U16(u16::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::I16 => Self::I16(i16::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::U32 => Self::U32(u32::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::I32 => Self::I32(i32::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::F32 => Self::F32(f32::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::Bool => Self::Bool(*bytes.first()? != 0),
            ValueType::U64 => Self::U64(u64::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::I64 => Self::I64(i64::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::F64 => Self::F64(f64::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::String | ValueType::Array => return None,
        })
    }
}

/// An array of scalars or strings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Array<'a> {
    /// Values of one fixed size, packed.
    Scalars {
        /// Type of every element.
        element: ValueType,
        /// The elements, little-endian, without padding.
        bytes: &'a [u8],
    },
    /// Strings.
    Strings(Strings<'a>),
}

impl<'a> Array<'a> {
    /// Type of every element.
    pub fn element_type(&self) -> ValueType {
        match self {
            Self::Scalars { element, .. } => *element,
            Self::Strings(_) => ValueType::String,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::Scalars { element, bytes } => bytes.len() / element.bytes().unwrap_or(1),
            Self::Strings(strings) => strings.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Value<'a>> {
        (0..self.len()).map(move |index| match self {
            Self::Scalars { element, bytes } => {
                let size = element.bytes().unwrap_or(1);
                Value::scalar(element, &bytes[index * size..][..size])
                    .expect("an array's elements have the size of its element type")
            }
            Self::Strings(strings) => {
                Value::String(string_at(strings.header, strings.starts[index] as usize).0)
            }
        })
    }
}

/// An array of strings, each a slice of the header.
#[derive(Clone, Copy)]
pub struct Strings<'a> {
    pub(crate) header: &'a [u8],
    /// Where each string's length is written; its bytes follow.
    pub(crate) starts: &'a [u32],
}

impl<'a> Strings<'a> {
    /// Number of strings.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The string at `index`. Text by convention; nothing in the file guarantees that it is.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.starts.get(index).map(|&start| string_at(self.header, start as usize).0)
    }

    /// The strings in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.starts.iter().map(move |&start| string_at(self.header, start as usize).0)
    }
}

impl std::ops::Index<usize> for Strings<'_> {
    type Output = [u8];

    fn index(&self, index: usize) -> &[u8] {
        string_at(self.header, self.starts[index] as usize).0
    }
}

impl PartialEq for Strings<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Strings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(String::from_utf8_lossy)).finish()
    }
}

/// The string whose length is written at `at`, and where it ends. For headers that were checked.
pub(crate) fn string_at(header: &[u8], at: usize) -> (&[u8], usize) {
    let start = at + 8;
    let end = start + u64_at(header, at) as usize;
    (&header[start..end], end)
}

/// The number at `at`. For headers that were checked.
pub(crate) fn u32_at(header: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"))
}

/// The number at `at`. For headers that were checked.
pub(crate) fn u64_at(header: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"))
}
