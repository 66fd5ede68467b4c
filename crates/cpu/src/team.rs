//! Threads that help the one that has work.
//!
//! Natively they are started with the first work; where WebAssembly shares its memory, JavaScript starts them. Each calls
//! [`Team::help`] and stays. A thread that has work opens it to the others and does its own share meanwhile, so work is
//! done however many helpers have come by then, or none at all. Helpers take one
//! piece after another, look out for new work for a moment, and then sleep.

#![expect(unsafe_code, reason = "helpers reach work on the stack of another thread, which waits for them")]

use std::{
    hint,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering::*},
    },
};

/// Set in `door` while helpers may begin. The other bits count those that have begun and not ended.
const OPEN: u32 = 1 << 31;

/// How often a thread looks for a change before it sleeps: longer than the work between two products that are worth
/// sharing takes, some tens of microseconds.
const LOOKS: u32 = 20_000;

/// One thread that has work, and its helpers.
#[derive(Debug)]
pub(crate) struct Team {
    /// How many threads have come to help.
    helpers: AtomicU32,
    /// Whether there is work: two threads never have some at a time, nor does work contain other work.
    busy: AtomicBool,
    /// The work. Only those who are through the door may look at it.
    work: AtomicPtr<Work<'static>>,
    door: AtomicU32,
    /// How often there was work.
    rounds: AtomicU32,
    /// How many helpers sleep, or are about to.
    asleep: AtomicU32,
    bed: Mutex<()>,
    /// Rings when there is work.
    bell: Condvar,
    /// Whether the thread that has work sleeps until all helpers have left, or is about to.
    waiting: AtomicBool,
    /// Rings when they have.
    left: Condvar,
    /// Whether a piece of this round panicked on a helper, which has left all the same.
    panicked: AtomicBool,
    /// Whether a helper is gone, perhaps amid its work, as where a panic ends a WebAssembly thread. It will never leave.
    gone: AtomicBool,
}

/// Pieces of work, by number.
struct Work<'a> {
    piece: &'a (dyn Fn(usize) + Sync),
    count: usize,
    next: AtomicUsize,
}

impl Work<'_> {
    /// Does pieces until all are taken.
    fn take_part(&self) {
        loop {
            let index = self.next.fetch_add(1, Relaxed);
            if index >= self.count {
                return;
            }
            (self.piece)(index);
        }
    }
}

impl Team {
    pub(crate) const fn new() -> Self {
        Self {
            helpers: AtomicU32::new(0),
            busy: AtomicBool::new(false),
            work: AtomicPtr::new(std::ptr::null_mut()),
            door: AtomicU32::new(0),
            rounds: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
            bed: Mutex::new(()),
            bell: Condvar::new(),
            waiting: AtomicBool::new(false),
            left: Condvar::new(),
            panicked: AtomicBool::new(false),
            gone: AtomicBool::new(false),
        }
    }

    /// Threads that share work.
    pub(crate) fn threads(&self) -> usize {
        1 + self.helpers.load(Relaxed) as usize
    }

    /// Calls `piece` with each number below `count`, on all threads.
    pub(crate) fn share(&self, count: usize, piece: &(dyn Fn(usize) + Sync)) {
        if count < 2 || self.helpers.load(Relaxed) == 0 || self.busy.swap(true, Acquire) {
            return (0..count).for_each(piece);
        }
        let work = Work { piece, count, next: AtomicUsize::new(0) };
        // Also waits if a piece panics: no helper may be left with work that is gone.
        let closing = Closing(self);
        self.work.store((&raw const work).cast_mut().cast(), Relaxed);
        self.door.store(OPEN, Release);
        // A helper that is about to sleep either sees the new round, or is counted in `asleep` here.
        self.rounds.fetch_add(1, SeqCst);
        if self.asleep.load(SeqCst) > 0 {
            self.ring(&self.bell);
        }
        work.take_part();
        drop(closing);
        let panicked = self.panicked.swap(false, Relaxed);
        assert!(!panicked && !self.gone.load(Relaxed), "a thread of the engine crashed");
    }

    /// Counts the calling thread as a helper, which it becomes by [`help`](Self::help).
    pub(crate) fn join(&self) {
        self.helpers.fetch_add(1, Relaxed);
    }

    /// Helps from now on, beginning with the work of this moment.
    pub(crate) fn help(&self) -> ! {
        loop {
            // Before the work is looked at: what comes during it is not missed.
            let seen = self.rounds.load(SeqCst);
            self.take_part();
            self.await_round(seen);
        }
    }

    /// Says that a helper is gone and will never leave. The thread that waits for it panics, now and whenever it has work.
    ///
    /// Only for threads that end without unwinding, where a panic of the waiting thread ends it too: what it has on its stack
    /// must stay, since other helpers may still reach it.
    #[cfg_attr(not(target_family = "wasm"), cfg(test))]
    pub(crate) fn lose(&self) {
        self.gone.store(true, SeqCst);
        self.ring(&self.left);
    }

    /// Wakes the threads that sleep on `bell`. A thread holds the lock until it sleeps, so none is missed.
    fn ring(&self, bell: &Condvar) {
        let _bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        bell.notify_all();
    }

    /// Waits for another round than `seen`.
    fn await_round(&self, seen: u32) {
        for _ in 0..LOOKS {
            if self.rounds.load(Relaxed) != seen {
                return;
            }
            hint::spin_loop();
        }
        let mut bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        self.asleep.fetch_add(1, SeqCst);
        while self.rounds.load(SeqCst) == seen {
            bed = self.bell.wait(bed).unwrap_or_else(PoisonError::into_inner);
        }
        self.asleep.fetch_sub(1, SeqCst);
    }

    /// Does a share of the work, if the door is still open.
    fn take_part(&self) {
        let enter = |door: u32| (door & OPEN != 0).then_some(door + 1);
        if self.door.try_update(Acquire, Relaxed, enter).is_ok() {
            // SAFETY: the pointer was stored before the door was opened, and the thread that has the work does not give
            // it up before everybody who came through the door has left.
            let work = unsafe { &*self.work.load(Relaxed) };
            if catch_unwind(AssertUnwindSafe(|| work.take_part())).is_err() {
                self.panicked.store(true, Relaxed);
            }
            // The thread that has the work either sees that all helpers have left, or has set `waiting` here.
            if self.door.fetch_sub(1, SeqCst) == 1 && self.waiting.load(SeqCst) {
                self.ring(&self.left);
            }
        }
    }
}

/// Closes the door when it is dropped, and waits for those inside.
struct Closing<'a>(&'a Team);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let team = self.0;
        team.door.fetch_and(!OPEN, Relaxed);
        let all_left = || team.door.load(SeqCst) == 0;
        let look = |_| {
            hint::spin_loop();
            all_left()
        };
        if !(0..LOOKS).any(look) {
            team.waiting.store(true, SeqCst);
            let mut bed = team.bed.lock().unwrap_or_else(PoisonError::into_inner);
            while !all_left() && !team.gone.load(SeqCst) {
                bed = team.left.wait(bed).unwrap_or_else(PoisonError::into_inner);
            }
            team.waiting.store(false, SeqCst);
        }
        team.busy.store(false, Release);
    }
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use std::{thread, time::Duration};

    use super::*;

    /// A team with so many helpers, which stay until the tests end.
    fn team(helpers: usize) -> &'static Team {
        let team: &'static Team = Box::leak(Box::new(Team::new()));
        for _ in 0..helpers {
            team.join();
            thread::spawn(|| team.help());
        }
        team
    }

    #[test]
    fn every_piece_is_done_once_in_every_round() {
        for helpers in [0, 1, 3] {
            let team = team(helpers);
            assert_eq!(team.threads(), 1 + helpers);
            for round in 0..2000 {
                let done: Vec<AtomicUsize> = (0..round % 37).map(|_| AtomicUsize::new(0)).collect();
                team.share(done.len(), &|piece| {
                    done[piece].fetch_add(1, Relaxed);
                });
                assert!(done.iter().all(|count| count.load(Relaxed) == 1), "round {round} of {helpers}");
                if round % 500 == 0 {
                    // Long enough for helpers to fall asleep.
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }

    #[test]
    fn helpers_take_part() {
        let team = team(1);
        let both = std::sync::Barrier::new(2);
        // One thread alone would wait forever.
        team.share(2, &|_| {
            both.wait();
        });
    }

    #[test]
    fn work_within_work_is_done_by_the_thread_that_has_it() {
        let team = team(2);
        let done = AtomicUsize::new(0);
        team.share(8, &|_| {
            let me = thread::current().id();
            team.share(4, &|_| {
                assert_eq!(thread::current().id(), me);
                done.fetch_add(1, Relaxed);
            });
        });
        assert_eq!(done.load(Relaxed), 32);
    }

    /// Work that panics on one helper is given up only when the others have left it, and the team goes on afterwards.
    #[test]
    fn a_piece_that_panics_is_told_when_all_have_left() {
        let (team, me) = (team(3), thread::current().id());
        let (all, panicked, finished) =
            (std::sync::Barrier::new(4), AtomicBool::new(false), AtomicUsize::new(0));
        for round in 1..=3 {
            panicked.store(false, Relaxed);
            let result = catch_unwind(AssertUnwindSafe(|| {
                team.share(4, &|_| {
                    // Each of the four threads has one piece.
                    all.wait();
                    if thread::current().id() == me {
                        return;
                    }
                    assert!(panicked.swap(true, Relaxed), "one helper panics, as it should in this test");
                    thread::sleep(Duration::from_millis(30));
                    finished.fetch_add(1, Relaxed);
                });
            }));
            assert!(result.is_err());
            assert_eq!(finished.load(Relaxed), 2 * round);
        }
        team.share(4, &|_| {
            all.wait();
        });
    }

    #[test]
    #[should_panic(expected = "a thread of the engine crashed")]
    fn a_helper_that_is_gone_ends_the_work_instead_of_stalling_it() {
        let team = team(0);
        // It came through the door and will never leave.
        team.join();
        team.share(2, &|_| {
            if team.door.load(Relaxed) == OPEN {
                team.door.fetch_add(1, Relaxed);
                team.lose();
            }
        });
    }
}
