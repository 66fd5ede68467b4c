//! Cancelling calls. A promise cannot be dropped as a future can, so each call takes a handle that cancels it.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    pin::pin,
    rc::Rc,
    task::{Poll, Waker},
};

use wasm_bindgen::prelude::*;

use crate::error::{Failure, cancelled};

/// Cancels the call that it was passed to.
#[wasm_bindgen]
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    shared: Rc<RefCell<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    cancelled: bool,
    waker: Option<Waker>,
}

#[wasm_bindgen]
impl Cancel {
    /// A handle for one call.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the call: its promise rejects with the code `cancelled`.
    pub fn cancel(&self) {
        let mut shared = self.shared.borrow_mut();
        shared.cancelled = true;
        if let Some(waker) = shared.waker.take() {
            waker.wake();
        }
    }
}

impl Cancel {
    /// Runs `work`; if it is cancelled first, drops it.
    pub(crate) async fn unless<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut work = pin!(work);
        #[cfg(not(feature = "gpu"))]
        let breath = crate::breath::Breath::new();
        poll_fn(|context| {
            {
                let mut shared = self.shared.borrow_mut();
                if shared.cancelled {
                    return Poll::Ready(Err(cancelled()));
                }
                shared.waker = Some(context.waker().clone());
            }
            #[cfg(not(feature = "gpu"))]
            if !breath.goes_on(context) {
                return Poll::Pending;
            }
            work.as_mut().poll(context)
        })
        .await
    }
}
