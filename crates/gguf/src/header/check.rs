//! What must hold of a header beyond being readable.

use super::{DEFAULT_ALIGNMENT, Header, Shape, text};
use crate::{Format, HeaderError, Value, value::string_at};

/// A tensor's rows are whole blocks, and its values and bytes can be counted.
pub(super) fn shape(name: &str, shape: Shape, format: Format) -> Result<(), HeaderError> {
    let too_large = || HeaderError::TensorTooLarge { name: name.to_owned(), shape: shape.to_string() };
    shape.checked_values().ok_or_else(too_large)?;
    let (row, block) = (shape.row_len(), format.block_len() as u64);
    if row % block != 0 {
        return Err(HeaderError::PartialBlock { name: name.to_owned(), row, format, block });
    }
    shape.bytes(format).ok_or_else(too_large)?;
    Ok(())
}

/// The entries sorted by key, of which no two are equal.
pub(super) fn keys(bytes: &[u8], entries: &[u32]) -> Result<Vec<u32>, HeaderError> {
    sorted(bytes, entries, |key| HeaderError::DuplicateKey { key })
}

/// The tensors sorted by name, of which no two are equal.
pub(super) fn names(bytes: &[u8], tensors: &[u32]) -> Result<Vec<u32>, HeaderError> {
    sorted(bytes, tensors, |name| HeaderError::DuplicateTensor { name })
}

/// Positions of strings, sorted by those strings; the first that occurs twice is the error.
fn sorted(
    bytes: &[u8],
    positions: &[u32],
    twice: impl Fn(String) -> HeaderError,
) -> Result<Vec<u32>, HeaderError> {
    let string = |at: &u32| string_at(bytes, *at as usize).0;
    let mut sorted = copied(positions)?;
    sorted.sort_unstable_by(|a, b| string(a).cmp(string(b)));
    match sorted.windows(2).find(|pair| string(&pair[0]) == string(&pair[1])) {
        Some(pair) => Err(twice(text(string(&pair[0])).to_owned())),
        None => Ok(sorted),
    }
}

/// A copy, if there is memory for it.
fn copied(positions: &[u32]) -> Result<Vec<u32>, HeaderError> {
    let mut copy = Vec::new();
    let bytes = size_of_val(positions) as u64;
    copy.try_reserve_exact(positions.len()).map_err(|_| HeaderError::OutOfMemory { bytes })?;
    copy.extend_from_slice(positions);
    Ok(copy)
}

/// The file's alignment: a power of two written as a u32, or the default.
pub(super) fn alignment(header: &Header) -> Result<u64, HeaderError> {
    match header.get("general.alignment") {
        None => Ok(DEFAULT_ALIGNMENT.into()),
        Some(Value::U32(alignment)) if alignment.is_power_of_two() => Ok(alignment.into()),
        Some(Value::U32(other)) => Err(HeaderError::Alignment { found: other.to_string() }),
        Some(other) => Err(HeaderError::Alignment { found: other.value_type().to_string() }),
    }
}

/// Tensors are aligned, inside the file, and apart from each other.
pub(super) fn layout(header: &Header) -> Result<(), HeaderError> {
    if header.tensors.is_empty() {
        return Ok(());
    }
    let (start, len) = (header.data_start, header.file_len);
    let available = len.checked_sub(start).ok_or(HeaderError::DataStart { start, len })?;
    for tensor in header.tensors() {
        let (offset, bytes) = (tensor.offset, tensor.bytes);
        if offset % header.alignment != 0 {
            let (name, alignment) = (tensor.name.to_owned(), header.alignment);
            return Err(HeaderError::Misaligned { name, offset, alignment });
        }
        if offset.checked_add(bytes).is_none_or(|end| end > available) {
            let name = tensor.name.to_owned();
            return Err(HeaderError::TensorPastEnd { name, offset, bytes, available });
        }
    }
    // An empty tensor claims no bytes, wherever it says it is.
    let mut by_offset = copied(&header.tensors)?;
    by_offset.retain(|&at| header.tensor_at(at).bytes > 0);
    by_offset.sort_unstable_by_key(|&at| header.tensor_at(at).offset);
    for pair in by_offset.windows(2) {
        let (first, second) = (header.tensor_at(pair[0]), header.tensor_at(pair[1]));
        if first.data_range().end > second.offset {
            let (first, second) = (first.name.to_owned(), second.name.to_owned());
            return Err(HeaderError::Overlap { first, second });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_that_overflows_only_because_of_a_zero_is_refused() {
        let huge = Shape::new(&[0, 1 << 40, 1 << 40]).unwrap();
        assert!(shape("t", huge, Format::F32).is_err());
        assert!(shape("t", Shape::new(&[0, 8]).unwrap(), Format::F32).is_ok());
    }
}
