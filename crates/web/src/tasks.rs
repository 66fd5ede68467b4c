//! Runs futures as promises, and lets the browser have its turn in between.
//!
//! A step on the CPU never waits for the browser; it only pauses every few milliseconds. Futures that wasm-bindgen runs continue
//! in a microtask, which the browser does not interrupt: a worker would not read the message that cancels a reply before the
//! reply is complete. So what has run for a while continues in a task of its own here, after the messages that have come.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;

use crate::host::milliseconds;

/// After so many milliseconds the browser gets its turn.
const TURN: f64 = 10.0;

#[wasm_bindgen]
extern "C" {
    type MessageChannel;

    #[wasm_bindgen(constructor)]
    fn new() -> MessageChannel;

    #[wasm_bindgen(method, getter)]
    fn port1(this: &MessageChannel) -> MessagePort;

    #[wasm_bindgen(method, getter)]
    fn port2(this: &MessageChannel) -> MessagePort;

    type MessagePort;

    #[wasm_bindgen(method, js_name = postMessage)]
    fn post_message(this: &MessagePort, message: &JsValue);

    #[wasm_bindgen(method, setter, js_name = onmessage)]
    fn set_on_message(this: &MessagePort, listener: &Function);

    #[wasm_bindgen(js_name = queueMicrotask)]
    fn queue_microtask(callback: &Function);
}

/// The futures of this thread.
struct Tasks {
    /// Those that are not being polled right now.
    idle: RefCell<HashMap<u64, Pin<Box<dyn Future<Output = ()>>>>>,
    /// Those that are to be polled.
    woken: RefCell<VecDeque<u64>>,
    /// Whether `run` is going to be called.
    scheduled: Cell<bool>,
    /// When the browser had its last turn.
    turn: Cell<f64>,
    next: Cell<u64>,
    run: Function,
    /// A message to it arrives after all messages that came before.
    port: MessagePort,
}

thread_local! {
    static TASKS: Tasks = Tasks::new();
}

/// Wakes a task, on the thread that it belongs to: nothing here waits for another thread.
struct Alarm(u64);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        TASKS.with(|tasks| tasks.wake(self.0));
    }
}

impl Tasks {
    fn new() -> Self {
        let channel = MessageChannel::new();
        let in_turn = Closure::<dyn Fn()>::new(|| {
            TASKS.with(|tasks| tasks.turn.set(milliseconds()));
            run();
        });
        channel.port1().set_on_message(&in_turn.into_js_value().unchecked_into());
        Self {
            idle: RefCell::default(),
            woken: RefCell::default(),
            scheduled: Cell::new(false),
            turn: Cell::new(milliseconds()),
            next: Cell::new(0),
            run: Closure::<dyn Fn()>::new(run).into_js_value().unchecked_into(),
            port: channel.port2(),
        }
    }

    fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let id = self.next.get();
        self.next.set(id + 1);
        self.idle.borrow_mut().insert(id, Box::pin(future));
        self.wake(id);
    }

    fn wake(&self, id: u64) {
        let mut woken = self.woken.borrow_mut();
        if !woken.contains(&id) {
            woken.push_back(id);
        }
        if self.scheduled.replace(true) {
            return;
        }
        if milliseconds() - self.turn.get() < TURN {
            queue_microtask(&self.run);
        } else {
            self.port.post_message(&JsValue::UNDEFINED);
        }
    }
}

/// Polls every task that is awake. Those that wake meanwhile are polled the next time.
fn run() {
    let woken = TASKS.with(|tasks| {
        tasks.scheduled.set(false);
        tasks.woken.take()
    });
    for id in woken {
        let Some(mut future) = TASKS.with(|tasks| tasks.idle.borrow_mut().remove(&id)) else { continue };
        let waker = Waker::from(Arc::new(Alarm(id)));
        if let Poll::Pending = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            TASKS.with(|tasks| tasks.idle.borrow_mut().insert(id, future));
        }
    }
}

/// A promise of what a future gives.
pub(crate) fn future_to_promise(future: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> Promise {
    let mut future = Some(future);
    Promise::new(&mut |resolve: Function, reject: Function| {
        let future = future.take().expect("a promise calls its function once");
        TASKS.with(|tasks| {
            tasks.spawn(async move {
                let (settle, value) = match future.await {
                    Ok(value) => (resolve, value),
                    Err(error) => (reject, error),
                };
                // These functions never throw.
                let _ = settle.call1(&JsValue::UNDEFINED, &value);
            });
        });
    })
}
