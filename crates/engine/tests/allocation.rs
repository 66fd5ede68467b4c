//! After the first token nothing is allocated.
//!
//! The allocator of this test binary counts for each thread on its own: the test runner's allocates too.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use rullama_engine::{Sampler, SamplingOptions};

/// Counts allocations.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "an allocator cannot be written without it")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`, which is passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above. `realloc` is the default: a new block, a copy, and this.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn sampling_allocates_for_the_first_token_only() {
    let off = SamplingOptions { top_k: 0, top_p: 1.0, ..SamplingOptions::default() };
    let penalties = SamplingOptions { repeat_penalty: 1.1, repeat_last_n: -1, ..SamplingOptions::default() };
    for options in [
        SamplingOptions::default(),
        SamplingOptions::GREEDY,
        penalties,
        SamplingOptions { top_p: 0.9, ..off.clone() },
        SamplingOptions { min_p: 0.1, ..off.clone() },
        SamplingOptions { typical_p: 0.9, ..off.clone() },
        off,
    ] {
        let mut sampler = Sampler::new(&options, &[3]).unwrap();
        let logits: Vec<f32> = (0..20_000_u32).map(|id| (id * 7919 % 10_007) as f32 / 2000.0).collect();
        let recent: Vec<u32> = (0..500).collect();
        sampler.sample(&logits, &recent).unwrap();
        let before = ALLOCATIONS.get();
        for _ in 0..10 {
            sampler.sample(&logits, &recent).unwrap();
        }
        assert_eq!(ALLOCATIONS.get(), before, "{options:?}");
    }
}
