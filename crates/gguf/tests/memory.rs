//! No file makes the reader allocate more than 4 × its size + 1 MiB, and reading a real
//! vocabulary costs at most 3 × the header.
//!
//! The allocator of this test binary counts for each thread on its own, so tests do not disturb each other.

#[path = "file/common.rs"]
mod common;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use proptest::prelude::*;
use rullama_gguf::{ByteSource, Header, MemorySource};

/// Counts the bytes in use and the most there ever were.
struct Counting;

thread_local! {
    static USED: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "an allocator cannot be written without it")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.get().wrapping_add(layout.size());
        USED.set(used);
        MOST.set(MOST.get().max(used));
        // SAFETY: the caller keeps the contract of `alloc`, which is passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // Wrapping, because a thread may free what another has allocated.
        USED.set(USED.get().wrapping_sub(layout.size()));
        // SAFETY: as above. `realloc` is the default: a new block, a copy, and this.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that `work` had in use at once, beyond those in use before it.
fn most_during<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = USED.get();
    USED.set(0);
    MOST.set(0);
    let result = work();
    USED.set(USED.get().wrapping_add(before));
    (MOST.get(), result)
}

fn check(bytes: Vec<u8>) -> Result<(), TestCaseError> {
    let limit = 4 * bytes.len() + (1 << 20);
    let source = MemorySource::new(bytes);
    let (most, result) = most_during(|| {
        pollster::block_on(Header::read(&source)).map(|header| {
            // Whatever was accepted can be walked to its end.
            let entries = header.entries().filter(|(key, _)| header.get(key).is_some()).count();
            let tensors = header.tensors().filter(|tensor| header.tensor(tensor.name).is_some()).count();
            assert_eq!((entries, tensors), (header.entry_count(), header.tensor_count()));
        })
    });
    drop(result);
    prop_assert!(most <= limit, "{most} bytes in use at once, {limit} allowed");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(target_family = "wasm") { 64 } else { 512 }))]

    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
        check(bytes)?;
    }

    #[test]
    fn arbitrary_bytes_behind_a_real_start(bytes in proptest::collection::vec(any::<u8>(), 0..4096),
                                           tensors in 0u64..40, entries in 0u64..40) {
        check(common::Raw::new(tensors, entries).bytes(&bytes).0)?;
    }

    #[test]
    fn mutated_files(changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..16),
                     cut in proptest::option::of(any::<proptest::sample::Index>())) {
        let mut file = common::sample();
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        check(file)?;
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Many tiny things are where bookkeeping could outgrow the input.
    #[test]
    fn files_of_tiny_entries(count in 1usize..30_000, kind in 0..4) {
        let raw = match kind {
            0 => (0..count).fold(common::Raw::new(0, count as u64), |raw, i| {
                raw.string(i.to_string()).u32(0).bytes(&[1])
            }),
            1 => (0..count).fold(common::Raw::new(0, count as u64), |raw, i| {
                raw.string(i.to_string()).u32(9).u32(8).u64(0)
            }),
            2 => common::Raw::new(0, 1).string("k").u32(9).u32(8).u64(count as u64).bytes(&vec![0; count * 8]),
            _ => (0..count).fold(common::Raw::new(count as u64, 0), |raw, i| {
                raw.tensor(i.to_string(), &[], 24, 32 * i as u64)
            }).data(32 * count),
        };
        prop_assert!(raw.clone().read().is_ok());
        check(raw.0)?;
    }
}

/// The real vocabulary: 262,144 tokens and 514,906 merges.
#[test]
fn a_real_header_costs_at_most_three_times_its_size() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/tokenizer/gemma4-vocab.gguf");
    let source = MemorySource::new(std::fs::read(path).expect("the vocabulary is part of the test data"));
    let size = source.len() as usize;
    let (most, header) = most_during(|| pollster::block_on(Header::read(&source)).unwrap());
    assert!(most <= 3 * size, "{most} bytes for a header of {size}");

    let tokenizer = header.metadata().section("tokenizer.ggml");
    assert_eq!(tokenizer.strings("tokens").unwrap().len(), 262_144);
    assert_eq!(tokenizer.strings("merges").unwrap().len(), 514_906);
    assert_eq!(&tokenizer.strings("tokens").unwrap()[105], b"<|turn>");
}

/// A file of some length that holds nothing but zeros after its first bytes, as sparse files do.
struct Sparse(Vec<u8>, u64);

impl ByteSource for Sparse {
    fn name(&self) -> &str {
        "sparse"
    }

    fn len(&self) -> u64 {
        self.1
    }

    fn read(&self, range: std::ops::Range<u64>) -> rullama_gguf::ReadFuture<'_> {
        Box::pin(async move {
            let byte = |at: u64| self.0.get(at as usize).copied().unwrap_or(0);
            Ok(range.map(byte).collect())
        })
    }
}

/// Lengths and counts of a sparse file are real, and cost its author nothing. What is announced beyond all real headers
/// is refused before it is read.
#[test]
fn a_sparse_file_is_refused_before_its_header_is_read() {
    let most_strings = 1 << 24;
    let array = |kind: u32, count: u64| common::Raw::new(0, 1).string("k").u32(9).u32(kind).u64(count);
    let two = common::Raw::new(0, 2).string("a").u32(9).u32(8).u64(1).string("x");
    let cases = [
        (array(8, 268_000_000), most_strings),
        (array(8, most_strings + 1), most_strings),
        (two.string("b").u32(9).u32(8).u64(most_strings), most_strings - 1),
        (array(0, 1 << 29), 1 << 28),
    ];
    for (raw, most) in cases {
        let source = Sparse(raw.0, 1 << 40);
        let (used, error) = most_during(|| pollster::block_on(Header::read(&source)).unwrap_err());
        assert!(
            matches!(&error, rullama_gguf::HeaderError::ArrayTooLong { limit, .. } if *limit == most),
            "{error:?}"
        );
        assert!(used < 4 << 20, "{used} bytes");
    }
    // A header that goes on and on ends at the limit.
    let long = Sparse(common::Raw::new(0, 1).u64(1 << 29).0, 1 << 40);
    let error = pollster::block_on(Header::read(&long)).unwrap_err();
    assert!(matches!(error, rullama_gguf::HeaderError::TooLong { limit: 0x1000_0000 }), "{error:?}");
}
