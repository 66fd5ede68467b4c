//! Work on several threads: a team of as many as the machine has processors, those that JavaScript starts where WebAssembly
//! shares its memory, and one thread elsewhere.

#[cfg(any(not(target_family = "wasm"), target_feature = "atomics"))]
pub(crate) mod threads {
    #![expect(unsafe_code, reason = "threads write to parts of one slice, which their numbers keep apart")]

    use std::sync::{Mutex, PoisonError};

    use crate::team::Team;

    /// All threads that help.
    pub(crate) static TEAM: Team = Team::new();

    /// Starts a thread for each processor but the one that this thread runs on. JavaScript does so in a browser.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn start() {
        use std::{num::NonZero, sync::Once, thread};

        static START: Once = Once::new();
        START.call_once(|| {
            let processors = thread::available_parallelism().map_or(1, NonZero::get);
            for _ in 1..processors {
                // Without this thread, the others have more to do.
                if thread::Builder::new().name("rullama".into()).spawn(|| TEAM.help()).is_ok() {
                    TEAM.join();
                }
            }
        });
    }

    #[cfg(target_family = "wasm")]
    pub(crate) fn start() {}

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

    /// The beginning of a slice that threads share.
    struct Start<T>(*mut T);

    // SAFETY: the pointer is private to this module, whose threads write to parts of the slice that do not overlap.
    unsafe impl<T: Send> Sync for Start<T> {}

    /// Calls `work` with each chunk of `len` values and its number, on all threads.
    pub(crate) fn each_chunk<T: Send>(
        values: &mut [T],
        len: usize,
        work: impl Fn(usize, &mut [T]) + Sync + Send,
    ) {
        let (len, all, start) = (len.max(1), values.len(), &Start(values.as_mut_ptr()));
        // Several chunks to a piece: taking one is cheap, but not free.
        let together = len * all.div_ceil(len).div_ceil(8 * threads()).max(1);
        TEAM.share(all.div_ceil(together), &|piece| {
            let from = piece * together;
            // SAFETY: pieces do not overlap, and end where the slice ends. Nothing else reaches the slice meanwhile.
            let chunks =
                unsafe { std::slice::from_raw_parts_mut(start.0.add(from), together.min(all - from)) };
            let numbered = (from / len..).zip(chunks.chunks_mut(len));
            numbered.for_each(|(index, chunk)| work(index, chunk));
        });
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
    pub(crate) fn each_chunk<T>(values: &mut [T], len: usize, work: impl Fn(usize, &mut [T])) {
        values.chunks_mut(len).enumerate().for_each(|(index, chunk)| work(index, chunk));
    }

    pub(crate) fn start() {}
}

pub(crate) use threads::{each, each_chunk, start, threads};

/// Fewer values than this are not worth sharing.
pub(crate) const WORTH_SHARING: usize = 1 << 14;

/// Calls `work` with each row of `width` values and its number; on all threads if there are many values.
pub(crate) fn each_row(values: &mut [f32], width: usize, work: impl Fn(usize, &mut [f32]) + Sync + Send) {
    if values.len() < WORTH_SHARING || threads() == 1 {
        values.chunks_mut(width).enumerate().for_each(|(index, row)| work(index, row));
    } else {
        each_chunk(values, width, work);
    }
}
