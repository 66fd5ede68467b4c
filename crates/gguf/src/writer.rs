//! Writing GGUF files.
//!
//! Metadata and the list of tensors come first, then the data of each tensor in the listed order,
//! so a file of any size is written with one tensor in memory at a time:
//!
//! ```
//! # use rullama_gguf::{Format, Writer};
//! let mut writer = Writer::new();
//! writer.set("general.architecture", "gemma4")?;
//! writer.add_tensor("a", &[4, 2], Format::F32)?;
//! let mut body = writer.begin(Vec::new())?;
//! body.write_tensor(&[0; 32])?;
//! let file: Vec<u8> = body.finish()?;
//! # Ok::<(), rullama_gguf::WriteError>(())
//! ```

use std::{collections::HashSet, io};

use crate::{
    Array, Format, Shape, Strings, Value, ValueType, WriteError,
    header::{DEFAULT_ALIGNMENT, LONGEST_NAME},
};

/// The version written; readers of version 2 read the same bytes.
const VERSION: u32 = 3;

/// Collects what a file's header says.
#[derive(Debug, Clone)]
pub struct Writer {
    alignment: u32,
    metadata: Vec<u8>,
    keys: HashSet<String>,
    tensors: Vec<Entry>,
    names: HashSet<String>,
}

/// A tensor to be written.
#[derive(Debug, Clone)]
struct Entry {
    name: String,
    shape: Shape,
    format: Format,
    bytes: u64,
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    /// A file without metadata and tensors, aligned to 32 bytes as most files are.
    pub fn new() -> Self {
        Self {
            alignment: DEFAULT_ALIGNMENT,
            metadata: Vec::new(),
            keys: HashSet::new(),
            tensors: Vec::new(),
            names: HashSet::new(),
        }
    }

    /// Aligns tensors to `alignment` bytes and says so in the metadata.
    pub fn set_alignment(&mut self, alignment: u32) -> Result<(), WriteError> {
        if !alignment.is_power_of_two() {
            return Err(WriteError::Alignment { found: alignment });
        }
        self.put("general.alignment", alignment)?;
        self.alignment = alignment;
        Ok(())
    }

    /// Sets a metadata key.
    pub fn set(&mut self, key: &str, value: impl WriteValue) -> Result<(), WriteError> {
        if key == "general.alignment" {
            // Through its own method only, so that the value and the layout cannot differ.
            return Err(WriteError::Key { key: key.to_owned() });
        }
        self.put(key, value)
    }

    fn put(&mut self, key: &str, value: impl WriteValue) -> Result<(), WriteError> {
        if key.is_empty() || !self.keys.insert(key.to_owned()) {
            return Err(WriteError::Key { key: key.to_owned() });
        }
        put_string(&mut self.metadata, key.as_bytes());
        self.metadata.extend_from_slice(&value.value_type().id().to_le_bytes());
        value.write(&mut self.metadata);
        Ok(())
    }

    /// Lists a tensor. Its data is given later, in the same order.
    pub fn add_tensor(&mut self, name: &str, dims: &[u64], format: Format) -> Result<(), WriteError> {
        let refuse = |reason: String| WriteError::Tensor { name: name.to_owned(), reason };
        if name.len() > LONGEST_NAME {
            return Err(refuse(format!(
                "its name has {} bytes (expected at most {LONGEST_NAME})",
                name.len()
            )));
        }
        let shape = Shape::new(dims).ok_or_else(|| refuse(format!("it has {} dimensions", dims.len())))?;
        let bytes =
            shape.bytes(format).ok_or_else(|| refuse(format!("{format} can't have the shape {shape}")))?;
        if !self.names.insert(name.to_owned()) {
            return Err(refuse("it is listed twice".to_owned()));
        }
        self.tensors.push(Entry { name: name.to_owned(), shape, format, bytes });
        Ok(())
    }

    /// Bytes that the tensors take, each filled up to the alignment.
    pub fn data_bytes(&self) -> u64 {
        let alignment = u64::from(self.alignment);
        let padded = |bytes: u64| bytes.checked_next_multiple_of(alignment).unwrap_or(u64::MAX);
        self.tensors.iter().fold(0, |sum, tensor| sum.saturating_add(padded(tensor.bytes)))
    }

    /// Writes the header to `output`; the tensors' data follows through what this returns.
    pub fn begin<W: io::Write>(self, mut output: W) -> Result<TensorWriter<W>, WriteError> {
        let alignment = u64::from(self.alignment);
        let mut header = Vec::with_capacity(self.metadata.len() + 64 * self.tensors.len() + 64);
        header.extend_from_slice(b"GGUF");
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(&(self.tensors.len() as u64).to_le_bytes());
        header.extend_from_slice(&(self.keys.len() as u64).to_le_bytes());
        header.extend_from_slice(&self.metadata);
        let mut offset = 0u64;
        for tensor in &self.tensors {
            put_string(&mut header, tensor.name.as_bytes());
            let dims = tensor.shape.dims();
            header.extend_from_slice(&(dims.len() as u32).to_le_bytes());
            dims.iter().for_each(|dim| header.extend_from_slice(&dim.to_le_bytes()));
            header.extend_from_slice(&tensor.format.id().to_le_bytes());
            header.extend_from_slice(&offset.to_le_bytes());
            let too_large = || WriteError::Tensor {
                name: tensor.name.clone(),
                reason: "the file would be too large".to_owned(),
            };
            let end = offset.checked_add(tensor.bytes).ok_or_else(too_large)?;
            offset = end.checked_next_multiple_of(alignment).ok_or_else(too_large)?;
        }
        output.write_all(&header)?;
        let mut body = TensorWriter { output, alignment, tensors: self.tensors, next: 0, written: 0 };
        body.pad(header.len() as u64)?;
        Ok(body)
    }
}

/// Writes the data of a file's tensors, in the order in which they were listed.
#[derive(Debug)]
pub struct TensorWriter<W> {
    output: W,
    alignment: u64,
    tensors: Vec<Entry>,
    next: usize,
    /// Bytes of the current tensor that were written.
    written: u64,
}

impl<W: io::Write> TensorWriter<W> {
    /// Writes all of the next tensor's data.
    pub fn write_tensor(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if self.written > 0 {
            return Err(self.wrong_length(self.written));
        }
        let expected = self.current()?.bytes;
        if bytes.len() as u64 != expected {
            return Err(self.wrong_length(bytes.len() as u64));
        }
        self.write_some(bytes)
    }

    /// Writes some of the next tensor's data; it is complete when all of its bytes were given.
    pub fn write_some(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        let expected = self.current()?.bytes;
        let written = self.written + bytes.len() as u64;
        if written > expected {
            return Err(self.wrong_length(written));
        }
        self.output.write_all(bytes)?;
        self.written = written;
        if written == expected {
            self.pad(expected)?;
            self.next += 1;
            self.written = 0;
        }
        Ok(())
    }

    /// Ends the file, after all tensors were given, and returns the output.
    pub fn finish(mut self) -> Result<W, WriteError> {
        if self.next < self.tensors.len() {
            if self.written > 0 {
                return Err(self.wrong_length(self.written));
            }
            return Err(WriteError::TensorCount { found: self.next, expected: self.tensors.len() });
        }
        self.output.flush()?;
        Ok(self.output)
    }

    fn current(&self) -> Result<&Entry, WriteError> {
        let count = self.tensors.len();
        self.tensors.get(self.next).ok_or(WriteError::TensorCount { found: count + 1, expected: count })
    }

    fn wrong_length(&self, found: u64) -> WriteError {
        let tensor = &self.tensors[self.next];
        WriteError::WrongLength { name: tensor.name.clone(), found, expected: tensor.bytes }
    }

    /// Fills up to the alignment after `len` bytes.
    fn pad(&mut self, len: u64) -> Result<(), WriteError> {
        let padding = len.next_multiple_of(self.alignment) - len;
        io::copy(&mut io::Read::take(io::repeat(0), padding), &mut self.output)?;
        Ok(())
    }
}

/// What can be written as a metadata value.
pub trait WriteValue {
    /// The type it is written as.
    fn value_type(&self) -> ValueType;
    /// Appends it as the file holds it.
    fn write(&self, output: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($kind:ty => $type:ident,)*) => { $(
        impl WriteValue for $kind {
            fn value_type(&self) -> ValueType {
                ValueType::$type
            }

            fn write(&self, output: &mut Vec<u8>) {
                output.extend_from_slice(&self.to_le_bytes());
            }
        }
    )* };
}

numbers! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32,
    u64 => U64, i64 => I64, f64 => F64,
}

impl WriteValue for bool {
    fn value_type(&self) -> ValueType {
        ValueType::Bool
    }

    fn write(&self, output: &mut Vec<u8>) {
        output.push(u8::from(*self));
    }
}

impl WriteValue for &str {
    fn value_type(&self) -> ValueType {
        ValueType::String
    }

    fn write(&self, output: &mut Vec<u8>) {
        put_string(output, self.as_bytes());
    }
}

/// A slice is written as an array of its elements.
impl<T: WriteValue + ArrayElement> WriteValue for &[T] {
    fn value_type(&self) -> ValueType {
        ValueType::Array
    }

    fn write(&self, output: &mut Vec<u8>) {
        output.extend_from_slice(&T::TYPE.id().to_le_bytes());
        output.extend_from_slice(&(self.len() as u64).to_le_bytes());
        self.iter().for_each(|element| element.write(output));
    }
}

/// What an array can hold: its type is known even when it is empty, and it is no array itself.
pub trait ArrayElement {
    /// The type of every element.
    const TYPE: ValueType;
}

macro_rules! elements {
    ($($kind:ty => $type:ident,)*) => { $(
        impl ArrayElement for $kind {
            const TYPE: ValueType = ValueType::$type;
        }
    )* };
}

elements! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32, bool => Bool,
    u64 => U64, i64 => I64, f64 => F64, &str => String,
}

/// A value read from another file, written again as it was.
impl WriteValue for Value<'_> {
    fn value_type(&self) -> ValueType {
        Value::value_type(self)
    }

    fn write(&self, output: &mut Vec<u8>) {
        match *self {
            Self::U8(value) => value.write(output),
            Self::I8(value) => value.write(output),
            Self::U16(value) => value.write(output),
            Self::I16(value) => value.write(output),
            Self::U32(value) => value.write(output),
            Self::I32(value) => value.write(output),
            Self::F32(value) => value.write(output),
            Self::Bool(value) => value.write(output),
            Self::U64(value) => value.write(output),
            Self::I64(value) => value.write(output),
            Self::F64(value) => value.write(output),
            Self::String(bytes) => put_string(output, bytes),
            Self::Array(array) => {
                output.extend_from_slice(&array.element_type().id().to_le_bytes());
                output.extend_from_slice(&(array.len() as u64).to_le_bytes());
                match array {
                    Array::Scalars { bytes, .. } => output.extend_from_slice(bytes),
                    Array::Strings(strings) => put_strings(output, strings),
                }
            }
        }
    }
}

fn put_strings(output: &mut Vec<u8>, strings: Strings<'_>) {
    strings.iter().for_each(|string| put_string(output, string));
}

fn put_string(output: &mut Vec<u8>, bytes: &[u8]) {
    output.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    output.extend_from_slice(bytes);
}
