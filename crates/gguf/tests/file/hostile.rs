//! Every way in which a header can be wrong has its own error, and none of them is a panic.

use rullama_gguf::{HeaderError, MemorySource};

use crate::common::{Raw, read, sample};

/// Asserts that reading fails with a variant of [`HeaderError`].
macro_rules! refuses {
    ($raw:expr, $pattern:pat $(if $guard:expr)?) => {
        match $raw.read() {
            Err($pattern) $(if $guard)? => {}
            other => panic!("expected {}, found {other:?}", stringify!($pattern)),
        }
    };
}

/// A metadata entry that holds one u32.
fn entry(raw: Raw, key: impl AsRef<[u8]>, value: u32) -> Raw {
    raw.string(key).u32(4).u32(value)
}

#[test]
fn the_sample_itself_is_fine() {
    read(sample()).unwrap();
}

#[test]
fn magic() {
    refuses!(Raw(vec![]), HeaderError::NotGguf { found } if found.is_empty());
    refuses!(Raw(b"GG".to_vec()), HeaderError::NotGguf { .. });
    refuses!(Raw(b"GGML\x03\0\0\0".to_vec()), HeaderError::NotGguf { found } if found == b"GGML");
}

#[test]
fn version() {
    let with = |version: u32| Raw(b"GGUF".to_vec()).u32(version).u64(0).u64(0);
    with(2).read().unwrap();
    with(3).read().unwrap();
    refuses!(with(1), HeaderError::UnsupportedVersion { found: 1 });
    refuses!(with(4), HeaderError::UnsupportedVersion { found: 4 });
    refuses!(with(3u32.swap_bytes()), HeaderError::BigEndian);
    refuses!(with(2u32.swap_bytes()), HeaderError::BigEndian);
}

#[test]
fn counts() {
    refuses!(Raw::new(0, u64::MAX), HeaderError::EntryCount { found: -1, .. });
    refuses!(Raw::new(u64::MAX, 0), HeaderError::TensorCount { found: -1, .. });
    refuses!(Raw::new(0, 1 << 62), HeaderError::EntryCount { limit: 0, .. });
    refuses!(Raw::new(0, 4).bytes(&[0; 51]), HeaderError::EntryCount { found: 4, limit: 3 });
    refuses!(Raw::new(3, 0).bytes(&[0; 74]), HeaderError::TensorCount { found: 3, limit: 2 });
}

#[test]
fn every_truncation_is_noticed() {
    let file = sample();
    for len in 0..file.len() {
        // Only the padding after the last tensor may be missing.
        if let Ok(header) = read(file[..len].to_vec()) {
            let end = header.tensors().map(|tensor| tensor.data_range().end).max().unwrap();
            assert!(header.data_start() + end <= len as u64, "{len}");
        }
    }
}

#[test]
fn truncation_inside_the_header_says_so() {
    refuses!(Raw(b"GGUF\x03\0\0\0".to_vec()), HeaderError::Truncated { len: 8, needed: 16 });
    let raw = Raw::new(0, 1).string("a key").u32(4);
    refuses!(raw, HeaderError::Truncated { needed: 45, .. });
}

#[test]
fn strings() {
    let long = Raw::new(0, 1).u64(u64::MAX).bytes(&[0; 20]);
    refuses!(long, HeaderError::StringTooLong { at: 24, length: u64::MAX, remaining: 20 });
    let long = Raw::new(0, 1).string("k").u32(8).u64(1000).bytes(&[0; 20]);
    refuses!(long, HeaderError::StringTooLong { length: 1000, remaining: 20, .. });
    let element = Raw::new(0, 1).string("k").u32(9).u32(8).u64(2).string("ok").u64(99).bytes(&[0; 9]);
    refuses!(element, HeaderError::StringTooLong { length: 99, remaining: 9, .. });
}

#[test]
fn arrays() {
    let scalars = Raw::new(0, 1).string("k").u32(9).u32(10).u64(3).bytes(&[0; 23]);
    refuses!(scalars, HeaderError::ArrayTooLong { key, count: 3, limit: 2 } if key == "k");
    let strings = Raw::new(0, 1).string("k").u32(9).u32(8).u64(u64::MAX).bytes(&[0; 16]);
    refuses!(strings, HeaderError::ArrayTooLong { limit: 2, .. });
    let nested = Raw::new(0, 1).string("k").u32(9).u32(9).u64(0);
    refuses!(nested, HeaderError::NestedArray { key } if key == "k");
}

#[test]
fn value_types() {
    refuses!(Raw::new(0, 1).string("k").u32(13).u64(0), HeaderError::UnknownValueType { found: 13, .. });
    let array = Raw::new(0, 1).string("k").u32(9).u32(77).u64(0);
    refuses!(array, HeaderError::UnknownValueType { found: 77, .. });
}

#[test]
fn keys() {
    refuses!(entry(Raw::new(0, 1), "", 1), HeaderError::EmptyKey { at: 24 });
    refuses!(entry(Raw::new(0, 1), b"\xff", 1), HeaderError::KeyNotUtf8 { at: 24 });
    let twice = entry(entry(entry(Raw::new(0, 3), "a", 1), "b", 2), "a", 3);
    refuses!(twice, HeaderError::DuplicateKey { key } if key == "a");
}

#[test]
fn alignment() {
    let with = |alignment| entry(Raw::new(0, 1), "general.alignment", alignment);
    assert_eq!(with(64).read().unwrap().alignment(), 64);
    refuses!(with(0), HeaderError::Alignment { found } if found == "0");
    refuses!(with(24), HeaderError::Alignment { found } if found == "24");
    let wide = Raw::new(0, 1).string("general.alignment").u32(10).u64(32);
    refuses!(wide, HeaderError::Alignment { found } if found == "a u64");
}

#[test]
fn tensor_names() {
    let with = |name: &[u8]| Raw::new(1, 0).tensor(name, &[1], 0, 0).data(4);
    with(&[b'n'; 63]).read().unwrap();
    refuses!(with(&[b'n'; 64]), HeaderError::TensorNameTooLong { at: 24, length: 64 });
    refuses!(with(b"\xc3"), HeaderError::TensorNameNotUtf8 { at: 24 });
    let twice = Raw::new(2, 0).tensor("t", &[1], 0, 0).tensor("t", &[1], 0, 32).data(64);
    refuses!(twice, HeaderError::DuplicateTensor { name } if name == "t");
}

#[test]
fn shapes() {
    let with = |dims: &[u64]| Raw::new(1, 0).tensor("t", dims, 0, 0).data(64);
    with(&[1, 2, 2, 2]).read().unwrap();
    refuses!(with(&[1; 5]), HeaderError::TooManyDimensions { found: 5, .. });
    refuses!(with(&[u64::MAX]), HeaderError::NegativeDimension { found: -1, .. });
    refuses!(with(&[1 << 32, 1 << 32]), HeaderError::TensorTooLarge { .. });
    refuses!(with(&[1 << 62]), HeaderError::TensorTooLarge { .. });
    refuses!(with(&[0, 1 << 40, 1 << 40]), HeaderError::TensorTooLarge { .. });
    let partial = Raw::new(1, 0).tensor("t", &[33], 8, 0).data(64);
    refuses!(partial, HeaderError::PartialBlock { row: 33, block: 32, .. });
}

#[test]
fn formats() {
    let with = |format| Raw::new(1, 0).tensor("t", &[256], format, 0).data(4096);
    for removed in [4, 5, 31, 32, 33, 36, 37, 38] {
        refuses!(with(removed), HeaderError::RemovedFormat { id, .. } if id == removed);
    }
    for unknown in [43, 1000, u32::MAX] {
        refuses!(with(unknown), HeaderError::UnknownFormat { id, .. } if id == unknown);
    }
}

#[test]
fn layout() {
    let with = |offset| Raw::new(1, 0).tensor("t", &[16], 0, offset).data(64);
    with(0).read().unwrap();
    refuses!(with(8), HeaderError::Misaligned { offset: 8, alignment: 32, .. });
    refuses!(with(32), HeaderError::TensorPastEnd { offset: 32, bytes: 64, available: 64, .. });
    refuses!(with(u64::MAX - 31), HeaderError::TensorPastEnd { .. });
    refuses!(Raw::new(1, 0).tensor("t", &[16], 0, 0), HeaderError::DataStart { .. });

    let two = |second| Raw::new(2, 0).tensor("a", &[16], 0, 0).tensor("b", &[8], 0, second).data(96);
    two(64).read().unwrap();
    refuses!(two(32), HeaderError::Overlap { first, second } if first == "a" && second == "b");
    refuses!(two(0), HeaderError::Overlap { .. });

    let empty = Raw::new(2, 0).tensor("a", &[16], 0, 0).tensor("none", &[0], 0, 32).data(64);
    empty.read().unwrap();
}

/// A file that claims an endless header is given up instead of being read.
#[test]
fn endless_headers() {
    struct Endless(MemorySource);
    impl rullama_gguf::ByteSource for Endless {
        fn name(&self) -> &str {
            "endless"
        }
        fn len(&self) -> u64 {
            1 << 50
        }
        fn read(&self, range: std::ops::Range<u64>) -> rullama_gguf::ReadFuture<'_> {
            let len = self.0.len();
            Box::pin(async move {
                let mut bytes = self.0.read(range.start.min(len)..range.end.min(len)).await?;
                bytes.resize((range.end - range.start) as usize, 0);
                Ok(bytes)
            })
        }
    }
    let start = Raw::new(0, 1).string("k").u32(8).u64(1 << 40);
    let source = Endless(MemorySource::new(start.0));
    let found = pollster::block_on(rullama_gguf::Header::read(&source));
    assert!(matches!(found, Err(HeaderError::TooLong { .. })), "{found:?}");
}
