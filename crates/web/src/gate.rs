//! Pausing replies.
//!
//! Phones take the GPU away from a hidden page. A reply that waits until the page is visible again continues where it was;
//! one that keeps computing loses the GPU and its key-value cache.

use std::{
    cell::RefCell,
    future::poll_fn,
    rc::Rc,
    task::{Poll, Waker},
};

use crate::host::milliseconds;

/// Replies pass it before each token, and wait while it is closed. Cheap to clone; all clones are the same gate.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate {
    shared: Rc<RefCell<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    closed: bool,
    waiting: Vec<Waker>,
}

impl Gate {
    pub(crate) fn close(&self) {
        self.shared.borrow_mut().closed = true;
    }

    /// Lets all waiting replies continue.
    pub(crate) fn open(&self) {
        let waiting = {
            let mut shared = self.shared.borrow_mut();
            shared.closed = false;
            std::mem::take(&mut shared.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Waits until the gate is open. Gives the milliseconds that it waited.
    pub(crate) async fn pass(&self) -> f64 {
        let came = milliseconds();
        poll_fn(|context| {
            let mut shared = self.shared.borrow_mut();
            if shared.closed {
                shared.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
        milliseconds() - came
    }
}
