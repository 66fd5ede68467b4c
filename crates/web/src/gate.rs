//! Holding replies back for a while.
//!
//! Phones take the GPU from a page that nobody looks at. A reply that waits until the page is looked at again goes on
//! where it was; one that computes on loses the GPU, and with it what it had read.

use std::{
    cell::RefCell,
    future::poll_fn,
    rc::Rc,
    task::{Poll, Waker},
};

use crate::host::milliseconds;

/// What replies pass before each token. Cheap to clone; all clones are one gate.
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

    /// Lets everybody through who waits.
    pub(crate) fn open(&self) {
        let waiting = {
            let mut shared = self.shared.borrow_mut();
            shared.closed = false;
            std::mem::take(&mut shared.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Waits until the gate is open. Gives the milliseconds it took.
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
