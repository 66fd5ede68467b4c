//! Walks a header that arrives piece by piece.
//!
//! [`Parser::advance`] goes as far as the bytes at hand allow and then says how many it needs.
//! Each entry is taken whole or not at all, so nothing but a position has to be remembered between
//! calls; only string arrays, which may be megabytes long, are resumed in the middle.

use super::{Header, LONGEST_NAME, Shape, check};
use crate::{
    Format, HeaderError,
    format::UnknownFormat,
    value::{ValueType, u32_at, u64_at},
};

/// The longest header that is read. All of it is kept in memory, and a sparse file of any length costs its author
/// nothing; real headers have less than a tenth of this.
pub(super) const LONGEST: u64 = 1 << 28;
/// Strings of all arrays together, each of which takes four bytes more. Real vocabularies have a quarter of a million, and
/// twice as many merges.
const MOST_STRINGS: u64 = 1 << 24;
/// Key (8 + 1), type (4): less than this no entry can be, value not counted.
const SMALLEST_ENTRY: u64 = 13;
/// Name (8 + 1), rank (4), format (4), offset (8).
const SMALLEST_TENSOR: u64 = 25;

/// Why the walk stopped.
enum Stop {
    /// At this many bytes of the file it can go on.
    Need(u64),
    /// The file is not usable.
    Bad(HeaderError),
}

impl From<HeaderError> for Stop {
    fn from(error: HeaderError) -> Self {
        Self::Bad(error)
    }
}

/// The state between two pieces.
pub(super) struct Parser {
    pub(super) bytes: Vec<u8>,
    pub(super) file_len: u64,
    /// Everything before this position was taken.
    at: u64,
    version: Option<u32>,
    entries_left: u64,
    strings_left: u64,
    tensors_left: u64,
    entries: Vec<u32>,
    strings: Vec<u32>,
    string_arrays: Vec<(u32, u32)>,
    tensors: Vec<u32>,
}

impl Parser {
    pub(super) fn new(file_len: u64) -> Self {
        Self {
            bytes: Vec::new(),
            file_len,
            at: 0,
            version: None,
            entries_left: 0,
            strings_left: 0,
            tensors_left: 0,
            entries: Vec::new(),
            strings: Vec::new(),
            string_arrays: Vec::new(),
            tensors: Vec::new(),
        }
    }

    /// Adds the bytes that follow those at hand.
    pub(super) fn append(&mut self, more: &[u8]) -> Result<(), HeaderError> {
        let bytes = (self.bytes.len() + more.len()) as u64;
        self.bytes.try_reserve_exact(more.len()).map_err(|_| HeaderError::OutOfMemory { bytes })?;
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    /// Goes on; `Some(n)` asks for the first `n` bytes of the file, `None` means done.
    pub(super) fn advance(&mut self) -> Result<Option<u64>, HeaderError> {
        match self.walk() {
            Ok(()) => Ok(None),
            Err(Stop::Bad(error)) => Err(error),
            Err(Stop::Need(needed)) if needed > self.file_len => {
                Err(HeaderError::Truncated { len: self.file_len, needed })
            }
            Err(Stop::Need(needed)) if needed > LONGEST => Err(HeaderError::TooLong { limit: LONGEST }),
            Err(Stop::Need(needed)) => Ok(Some(needed)),
        }
    }

    fn walk(&mut self) -> Result<(), Stop> {
        if self.version.is_none() {
            self.preamble()?;
        }
        while self.strings_left > 0 || self.entries_left > 0 {
            while self.strings_left > 0 {
                let start = self.at;
                self.at = self.string(start)?;
                push(&mut self.strings, start as u32)?;
                self.strings_left -= 1;
            }
            if self.entries_left > 0 {
                self.entry()?;
                self.entries_left -= 1;
            }
        }
        while self.tensors_left > 0 {
            self.tensor()?;
            self.tensors_left -= 1;
        }
        Ok(())
    }

    fn preamble(&mut self) -> Result<(), Stop> {
        let magic = &self.bytes[..self.bytes.len().min(4)];
        if magic != &b"GGUF"[..magic.len()] || (self.file_len < 4) {
            return Err(HeaderError::NotGguf { found: magic.to_vec() }.into());
        }
        let version = self.u32(4)?;
        if version & 0xffff == 0 {
            return Err(HeaderError::BigEndian.into());
        }
        if !(2..=3).contains(&version) {
            return Err(HeaderError::UnsupportedVersion { found: version }.into());
        }
        let tensors = self.u64(8)? as i64;
        let entries = self.u64(16)? as i64;
        let remaining = self.file_len - 24;
        let limit = remaining / SMALLEST_ENTRY;
        match u64::try_from(entries) {
            Ok(count) if count <= limit => self.entries_left = count,
            _ => return Err(HeaderError::EntryCount { found: entries, limit }.into()),
        }
        let limit = remaining / SMALLEST_TENSOR;
        match u64::try_from(tensors) {
            Ok(count) if count <= limit => self.tensors_left = count,
            _ => return Err(HeaderError::TensorCount { found: tensors, limit }.into()),
        }
        self.at = 24;
        self.version = Some(version);
        Ok(())
    }

    fn entry(&mut self) -> Result<(), Stop> {
        let start = self.at;
        let kind_at = self.string(start)?;
        let key = &self.bytes[start as usize + 8..kind_at as usize];
        if key.is_empty() {
            return Err(HeaderError::EmptyKey { at: start }.into());
        }
        let key = std::str::from_utf8(key).map_err(|_| HeaderError::KeyNotUtf8 { at: start })?;
        let value_at = kind_at + 4;
        self.at = match self.value_type(kind_at, key)? {
            ValueType::String => self.string(value_at)?,
            ValueType::Array => {
                let element = self.value_type(value_at, key)?;
                let count = self.u64(value_at + 4)?;
                let first = value_at + 12;
                let smallest = match element {
                    ValueType::Array => return Err(HeaderError::NestedArray { key: key.to_owned() }.into()),
                    other => other.bytes().unwrap_or(8) as u64,
                };
                let mut limit = (self.file_len - first).min(LONGEST) / smallest;
                if element == ValueType::String {
                    limit = limit.min(MOST_STRINGS - self.strings.len() as u64);
                }
                if count > limit {
                    return Err(HeaderError::ArrayTooLong { key: key.to_owned(), count, limit }.into());
                }
                if element == ValueType::String {
                    let first_string = self.strings.len() as u32;
                    push(&mut self.string_arrays, (start as u32, first_string))?;
                    self.strings_left = count;
                    first
                } else {
                    self.need(first + count * smallest)?
                }
            }
            scalar => self.need(value_at + scalar.bytes().unwrap_or(0) as u64)?,
        };
        push(&mut self.entries, start as u32)?;
        Ok(())
    }

    fn tensor(&mut self) -> Result<(), Stop> {
        let start = self.at;
        let rank_at = self.string(start)?;
        let length = rank_at - start - 8;
        if length > LONGEST_NAME as u64 {
            return Err(HeaderError::TensorNameTooLong { at: start, length }.into());
        }
        let name = &self.bytes[start as usize + 8..rank_at as usize];
        let name = std::str::from_utf8(name).map_err(|_| HeaderError::TensorNameNotUtf8 { at: start })?;
        let named = || name.to_owned();
        let rank = self.u32(rank_at)?;
        if rank > 4 {
            return Err(HeaderError::TooManyDimensions { name: named(), found: rank }.into());
        }
        let format_at = rank_at + 4 + 8 * u64::from(rank);
        let end = self.need(format_at + 12)?;
        let mut dims = [1u64; 4];
        for (index, dim) in dims[..rank as usize].iter_mut().enumerate() {
            *dim = self.u64(rank_at + 4 + 8 * index as u64)?;
            if *dim > i64::MAX as u64 {
                return Err(HeaderError::NegativeDimension { name: named(), found: *dim as i64 }.into());
            }
        }
        let shape = Shape::new(&dims[..rank as usize]).expect("at most four dimensions");
        let format = match Format::from_id(self.u32(format_at)?) {
            Ok(format) => format,
            Err(UnknownFormat::Removed { id }) => {
                return Err(HeaderError::RemovedFormat { name: named(), id }.into());
            }
            Err(UnknownFormat::Unknown { id }) => {
                return Err(HeaderError::UnknownFormat { name: named(), id }.into());
            }
        };
        check::shape(name, shape, format)?;
        push(&mut self.tensors, start as u32)?;
        self.at = end;
        Ok(())
    }

    /// Where the string at `at` ends, once all of it is at hand.
    fn string(&self, at: u64) -> Result<u64, Stop> {
        let length = self.u64(at)?;
        let remaining = self.file_len - (at + 8);
        if length > remaining {
            return Err(HeaderError::StringTooLong { at, length, remaining }.into());
        }
        self.need(at + 8 + length)
    }

    fn value_type(&self, at: u64, key: &str) -> Result<ValueType, Stop> {
        let found = self.u32(at)?;
        ValueType::from_id(found)
            .ok_or_else(|| HeaderError::UnknownValueType { key: key.to_owned(), found }.into())
    }

    fn u32(&self, at: u64) -> Result<u32, Stop> {
        self.need(at + 4)?;
        Ok(u32_at(&self.bytes, at as usize))
    }

    fn u64(&self, at: u64) -> Result<u64, Stop> {
        self.need(at + 8)?;
        Ok(u64_at(&self.bytes, at as usize))
    }

    fn need(&self, end: u64) -> Result<u64, Stop> {
        if end <= self.bytes.len() as u64 { Ok(end) } else { Err(Stop::Need(end)) }
    }

    /// The header, after what only the whole of it can tell was checked as well.
    pub(super) fn finish(mut self) -> Result<Header, HeaderError> {
        self.bytes.truncate(self.at as usize);
        self.bytes.shrink_to_fit();
        self.strings.shrink_to_fit();
        let mut header = Header {
            version: self.version.unwrap_or_default(),
            by_key: check::keys(&self.bytes, &self.entries)?,
            by_name: check::names(&self.bytes, &self.tensors)?,
            bytes: self.bytes,
            entries: self.entries,
            strings: self.strings,
            string_arrays: self.string_arrays,
            tensors: self.tensors,
            alignment: 0,
            data_start: 0,
            file_len: self.file_len,
        };
        header.alignment = check::alignment(&header)?;
        header.data_start = header.header_len().next_multiple_of(header.alignment);
        check::layout(&header)?;
        Ok(header)
    }
}

/// Appends an item, or says that there is no memory for it.
fn push<T>(items: &mut Vec<T>, item: T) -> Result<(), HeaderError> {
    if items.len() == items.capacity() {
        let more = items.len().max(64);
        let bytes = ((items.len() + more) * size_of::<T>()) as u64;
        items.try_reserve_exact(more).map_err(|_| HeaderError::OutOfMemory { bytes })?;
    }
    items.push(item);
    Ok(())
}
