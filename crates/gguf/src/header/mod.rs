//! The start of a GGUF file: metadata and the directory of tensors.
//!
//! The header is kept as the bytes it was read as, plus the position of each entry, each tensor
//! and each string of an array. Looking something up decodes it on the spot, so a hostile file
//! with millions of tiny entries costs a few bytes for each of its own, and a real one with a
//! vocabulary of 16 MiB little more than that.

mod check;
mod parse;
mod tensor;

use parse::Parser;
pub use tensor::{Shape, Tensor};

use crate::{
    ByteSource, HeaderError, Metadata,
    value::{Array, Strings, Value, ValueType, string_at, u32_at, u64_at},
};

/// Names must leave room for the terminator in the 64 bytes that other readers have for them.
pub(crate) const LONGEST_NAME: usize = 63;
/// Where tensors begin when a file does not say.
pub(crate) const DEFAULT_ALIGNMENT: u32 = 32;

/// Read at first: enough for a header without a vocabulary.
const FIRST_READ: u64 = 1 << 20;
/// Read at least, each time more is needed.
const NEXT_READ: u64 = 4 << 20;

/// The checked header of a GGUF file.
#[derive(Clone)]
pub struct Header {
    /// The file from its first byte to the end of its tensor entries.
    bytes: Vec<u8>,
    version: u32,
    /// Where each metadata entry begins, in the order of the file.
    entries: Vec<u32>,
    /// The same, sorted by key.
    by_key: Vec<u32>,
    /// Where each string of each string array begins.
    strings: Vec<u32>,
    /// For each string array, where its entry begins and which of `strings` is its first.
    string_arrays: Vec<(u32, u32)>,
    /// Where each tensor entry begins, in the order of the file.
    tensors: Vec<u32>,
    /// The same, sorted by name.
    by_name: Vec<u32>,
    alignment: u64,
    data_start: u64,
    file_len: u64,
}

impl Header {
    /// Reads and checks the header at the start of `source`, reading no further than it must.
    pub async fn read(source: &dyn ByteSource) -> Result<Self, HeaderError> {
        let mut parser = Parser::new(source.len());
        let mut wanted = FIRST_READ;
        loop {
            let have = parser.bytes.len() as u64;
            let end = parser.file_len.min(have.max(wanted));
            let more = source.read(have..end).await?;
            parser.append(&more)?;
            drop(more);
            let Some(needed) = parser.advance()? else {
                return parser.finish();
            };
            // A quarter more each time keeps the number of requests logarithmic for absurd
            // headers without holding much more than needed for real ones.
            wanted = needed.max((end + NEXT_READ.max(end / 4)).min(parse::LONGEST));
        }
    }

    /// The GGUF version, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// All metadata, to be looked up by full key.
    pub fn metadata(&self) -> Metadata<'_> {
        Metadata::new(self, "")
    }

    /// Number of metadata entries.
    pub fn entry_count(&self) -> usize {
        self.entries.len()
    }

    /// Every metadata entry in the order of the file.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&str, Value<'_>)> {
        self.entries.iter().map(|&at| self.entry(at))
    }

    /// The value of a metadata key.
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        let key = key.as_bytes();
        let found = self.by_key.binary_search_by(|&at| string_at(&self.bytes, at as usize).0.cmp(key));
        found.ok().map(|index| self.entry(self.by_key[index]).1)
    }

    /// Number of tensors.
    pub fn tensor_count(&self) -> usize {
        self.tensors.len()
    }

    /// Every tensor in the order of the file.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> {
        self.tensors.iter().map(|&at| self.tensor_at(at))
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        let name = name.as_bytes();
        let found = self.by_name.binary_search_by(|&at| string_at(&self.bytes, at as usize).0.cmp(name));
        found.ok().map(|index| self.tensor_at(self.by_name[index]))
    }

    /// What every tensor's offset is a multiple of.
    pub fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Where in the file the data section begins; tensor offsets count from here.
    pub fn data_start(&self) -> u64 {
        self.data_start
    }

    /// Length of the whole file.
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Length of the header itself, without the padding that follows it.
    pub fn header_len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The entry that begins at `at`.
    fn entry(&self, at: u32) -> (&str, Value<'_>) {
        let (key, kind_at) = string_at(&self.bytes, at as usize);
        let kind = value_type_at(&self.bytes, kind_at);
        let value_at = kind_at + 4;
        let value = match kind {
            ValueType::String => Value::String(string_at(&self.bytes, value_at).0),
            ValueType::Array => Value::Array(self.array(at, value_at)),
            scalar => {
                let size = scalar.bytes().expect("scalars have a size");
                Value::scalar(scalar, &self.bytes[value_at..value_at + size]).expect("exactly its bytes")
            }
        };
        (text(key), value)
    }

    /// The array at `value_at` of the entry that begins at `entry`.
    fn array(&self, entry: u32, value_at: usize) -> Array<'_> {
        let element = value_type_at(&self.bytes, value_at);
        let count = u64_at(&self.bytes, value_at + 4) as usize;
        let first = value_at + 12;
        match element.bytes() {
            Some(size) => Array::Scalars { element, bytes: &self.bytes[first..first + count * size] },
            None => {
                let index = self
                    .string_arrays
                    .binary_search_by_key(&entry, |array| array.0)
                    .expect("every string array was recorded when it was parsed");
                let start = self.string_arrays[index].1 as usize;
                Array::Strings(Strings { header: &self.bytes, starts: &self.strings[start..start + count] })
            }
        }
    }

    fn tensor_at(&self, at: u32) -> Tensor<'_> {
        Tensor::view(&self.bytes, at as usize)
    }
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Header")
            .field("version", &self.version)
            .field("entries", &self.entries.len())
            .field("tensors", &self.tensors.len())
            .field("data_start", &self.data_start)
            .field("file_len", &self.file_len)
            .finish()
    }
}

/// Keys and names were checked to be UTF-8 when they were parsed.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("checked while parsing")
}

fn value_type_at(bytes: &[u8], at: usize) -> ValueType {
    ValueType::from_id(u32_at(bytes, at)).expect("checked while parsing")
}
