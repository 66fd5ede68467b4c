//! Signals that ask the program to stop, for commands that have to clean up first.

use std::{
    future::Future,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::failure::Failure;

/// Completes when the user presses Ctrl-C or a service manager asks the program to stop. From now on these signals do not
/// end the program at once.
pub(crate) fn end() -> Result<impl Future<Output = ()>, Failure> {
    listen(false).map_err(refused)
}

/// The same, also when the terminal hangs up.
fn end_or_hang_up() -> Result<impl Future<Output = ()>, Failure> {
    listen(true).map_err(refused)
}

/// A flag that becomes true when a signal asks the program to stop. From now on signals do not end the program at once.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    // Listening begins here, not when the task first runs, so that no signal is missed.
    let signalled = end_or_hang_up()?;
    // The task is never joined: it ends with the program.
    tokio::spawn(async move {
        signalled.await;
        stopped.store(true, Ordering::Relaxed);
    });
    Ok(stop)
}

fn refused(error: io::Error) -> Failure {
    Failure::new("can't handle Ctrl-C").caused_by(error)
}

#[cfg(unix)]
fn listen(hang_up: bool) -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{Signal, SignalKind, signal};
    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    if hang_up && !hang_up_is_ignored() {
        kinds.push(SignalKind::hangup());
    }
    let mut signals: Vec<Signal> = kinds.into_iter().map(signal).collect::<io::Result<_>>()?;
    Ok(std::future::poll_fn(move |context| {
        let came = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if came { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    }))
}

#[cfg(windows)]
fn listen(_hang_up: bool) -> io::Result<impl Future<Output = ()>> {
    let mut interrupted = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupted.recv().await;
    })
}

/// Whether the program was started with hang-ups ignored, as by `nohup`: listening to them would undo that. If this can't
/// be found out, they count as ignored, so that a long conversion survives its terminal.
#[cfg(unix)]
fn hang_up_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is signal 1, the lowest bit of the mask.
    ignored.is_none_or(|mask| mask & 1 == 1)
}
