//! Runs work compiled for the widest vectors the machine has.
//!
//! The loops here are plain Rust that LLVM vectorises. A portable x86-64 build may only assume SSE2, so the
//! same code is instantiated a second time inside a function that enables AVX2, and the processor is asked
//! which of the two to run. Neither instance contracts or reorders floating-point operations, so both give
//! the same numbers, bit for bit. Other targets have one instance; wasm gets its vectors from the build's
//! `simd128` flag.

/// Something to compute that gains from vectors.
pub(super) trait Work {
    /// Does it. Implementations are `#[inline(always)]`, down to the inner loops: code that stays a function
    /// of its own keeps the instruction set of the portable build.
    fn run(self);
}

/// Does the work with the best instructions at hand.
pub(super) fn run_widest(work: impl Work) {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "calling into other instructions is unsafe; the processor has them")]
        // SAFETY: the call requires AVX2 and nothing else, and the condition above has just detected it.
        unsafe {
            run_avx2(work);
        }
        return;
    }
    work.run();
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[target_feature(enable = "avx2")]
fn run_avx2(work: impl Work) {
    work.run();
}

/// Calls a function with each chunk of the first slice and the chunk of the second at the same place.
///
/// The sizes of the chunks are those of the function's arguments. This is a macro because a function passed
/// as a value is called through a shim, which would keep `#[inline(always)]` from reaching it.
macro_rules! for_each_chunk {
    ($from:expr, $to:expr, $body:path) => {
        for (from, to) in $from.as_chunks().0.iter().zip($to.as_chunks_mut().0) {
            $body(from, to);
        }
    };
}

pub(super) use for_each_chunk;
