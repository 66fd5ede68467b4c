//! Lets the thread's other work have its turn while the CPU computes.
//!
//! A GPU computes on its own, and calls wait for it. On the CPU a call computes for as long as it is polled, and wakes itself: the
//! browser would hear of nothing else until a reply is over, not even that it was cancelled. So every few milliseconds a call waits
//! for a message that it sends to itself, which comes after all that arrived meanwhile.

use std::{
    cell::RefCell,
    rc::Rc,
    task::{Context, Waker},
};

use js_sys::Function;
use wasm_bindgen::prelude::*;

use crate::host::milliseconds;

/// Milliseconds of work in one go. A page that computes on its own thread still paints in time.
const WORK: f64 = 12.0;

#[wasm_bindgen]
extern "C" {
    type MessageChannel;
    type MessagePort;

    #[wasm_bindgen(constructor)]
    fn new() -> MessageChannel;
    #[wasm_bindgen(method, getter)]
    fn port1(this: &MessageChannel) -> MessagePort;
    #[wasm_bindgen(method, getter)]
    fn port2(this: &MessageChannel) -> MessagePort;
    #[wasm_bindgen(method, setter)]
    fn set_onmessage(this: &MessagePort, listener: Option<&Function>);
    #[wasm_bindgen(method, js_name = postMessage)]
    fn post_message(this: &MessagePort, message: &JsValue);
    #[wasm_bindgen(method)]
    fn close(this: &MessagePort);
}

/// Breathes for one call.
pub(crate) struct Breath {
    shared: Rc<RefCell<Shared>>,
    to: MessagePort,
    from: MessagePort,
    _listener: Closure<dyn FnMut()>,
}

struct Shared {
    /// When the thread did something else last.
    since: f64,
    /// Woken by the message that is under way.
    waiting: Option<Waker>,
}

impl Breath {
    pub(crate) fn new() -> Self {
        let shared = Rc::new(RefCell::new(Shared { since: milliseconds(), waiting: None }));
        let heard = shared.clone();
        let listener = Closure::<dyn FnMut()>::new(move || {
            let waiting = {
                let mut shared = heard.borrow_mut();
                shared.since = milliseconds();
                shared.waiting.take()
            };
            if let Some(waker) = waiting {
                waker.wake();
            }
        });
        let channel = MessageChannel::new();
        let (to, from) = (channel.port1(), channel.port2());
        from.set_onmessage(Some(listener.as_ref().unchecked_ref()));
        Self { shared, to, from, _listener: listener }
    }

    /// Whether to go on now; otherwise the task is woken later.
    pub(crate) fn goes_on(&self, context: &Context<'_>) -> bool {
        let mut shared = self.shared.borrow_mut();
        if shared.waiting.is_some() {
            shared.waiting = Some(context.waker().clone());
            return false;
        }
        if milliseconds() - shared.since < WORK {
            return true;
        }
        shared.waiting = Some(context.waker().clone());
        self.to.post_message(&JsValue::NULL);
        false
    }
}

impl Drop for Breath {
    fn drop(&mut self) {
        // A message may be under way, and an open port would keep itself alive.
        self.from.set_onmessage(None);
        self.from.close();
    }
}
