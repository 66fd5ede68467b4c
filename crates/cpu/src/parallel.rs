//! Work on several threads: rayon's natively, those that JavaScript starts where WebAssembly shares its memory, and one
//! thread elsewhere.

#[cfg(not(target_family = "wasm"))]
mod threads {
    use rayon::prelude::*;

    /// Threads that share work.
    pub(crate) fn threads() -> usize {
        rayon::current_num_threads()
    }

    /// Calls `work` with each item, on all threads.
    pub(crate) fn each<T: Send>(items: Vec<T>, work: impl Fn(T) + Sync + Send) {
        items.into_par_iter().with_max_len(1).for_each(work);
    }

    /// Calls `work` with each chunk of `len` values and its number, on all threads.
    pub(crate) fn each_chunk(values: &mut [f32], len: usize, work: impl Fn(usize, &mut [f32]) + Sync + Send) {
        values.par_chunks_mut(len).enumerate().for_each(|(index, chunk)| work(index, chunk));
    }

    /// Runs `work` on one of the threads that share work. Parallel work that it starts begins at once there; started
    /// elsewhere, each piece of it would first wake a thread and then be waited for.
    pub(crate) fn inside<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        rayon::scope(|_| work())
    }
}

#[cfg(all(target_family = "wasm", target_feature = "atomics"))]
pub(crate) mod threads {
    use std::sync::{Mutex, PoisonError};

    use crate::team::Team;

    /// The threads that JavaScript has started.
    pub(crate) static TEAM: Team = Team::new();

    /// Threads that share work.
    pub(crate) fn threads() -> usize {
        TEAM.threads()
    }

    /// Calls `work` with each item, on all threads.
    pub(crate) fn each<T: Send>(items: Vec<T>, work: impl Fn(T) + Sync + Send) {
        let items: Vec<Mutex<Option<T>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
        TEAM.share(items.len(), &|index| {
            let item = items[index].lock().unwrap_or_else(PoisonError::into_inner).take();
            item.into_iter().for_each(&work);
        });
    }

    /// Calls `work` with each chunk of `len` values and its number, on all threads.
    pub(crate) fn each_chunk(values: &mut [f32], len: usize, work: impl Fn(usize, &mut [f32]) + Sync + Send) {
        let len = len.max(1);
        // Several chunks to a piece: taking one is cheap, but not free.
        let together = values.len().div_ceil(len).div_ceil(8 * threads()).max(1);
        each(values.chunks_mut(len * together).enumerate().collect(), |(piece, chunks)| {
            let numbered = (piece * together..).zip(chunks.chunks_mut(len));
            numbered.for_each(|(index, chunk)| work(index, chunk));
        });
    }

    /// Runs `work`, which helpers join as it shares.
    pub(crate) fn inside<T>(work: impl FnOnce() -> T) -> T {
        work()
    }
}

#[cfg(all(target_family = "wasm", not(target_feature = "atomics")))]
mod threads {
    /// Threads that share work.
    pub(crate) fn threads() -> usize {
        1
    }

    /// Calls `work` with each item.
    pub(crate) fn each<T>(items: Vec<T>, work: impl Fn(T)) {
        items.into_iter().for_each(work);
    }

    /// Calls `work` with each chunk of `len` values and its number.
    pub(crate) fn each_chunk(values: &mut [f32], len: usize, work: impl Fn(usize, &mut [f32])) {
        values.chunks_mut(len).enumerate().for_each(|(index, chunk)| work(index, chunk));
    }

    /// Runs `work`.
    pub(crate) fn inside<T>(work: impl FnOnce() -> T) -> T {
        work()
    }
}

pub(crate) use threads::{each, each_chunk, inside, threads};

/// Fewer values than this are not worth waking a thread.
const WORTH_SHARING: usize = 1 << 14;

/// Calls `work` with each row of `width` values and its number; on all threads if there are many values.
pub(crate) fn each_row(values: &mut [f32], width: usize, work: impl Fn(usize, &mut [f32]) + Sync + Send) {
    if values.len() < WORTH_SHARING || threads() == 1 {
        values.chunks_mut(width).enumerate().for_each(|(index, row)| work(index, row));
    } else {
        each_chunk(values, width, work);
    }
}
