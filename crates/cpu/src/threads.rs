//! The threads of a WebAssembly module whose memory is shared. JavaScript starts them; each first calls [`join`], then
//! [`help`], and stays there until its worker is ended.

use crate::parallel::threads::TEAM;

/// Counts the calling thread among those that share work.
pub fn join() {
    TEAM.join();
}

/// Helps with all work from now on.
pub fn help() -> ! {
    TEAM.help()
}

/// Says that a thread that helped has crashed. The thread that shared its work then panics instead of waiting forever.
pub fn crash() {
    TEAM.lose();
}

/// How many threads share work: those that joined, and the one that has it.
pub fn count() -> usize {
    TEAM.threads()
}
