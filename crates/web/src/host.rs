//! What the standard library does not have in a browser: a clock, random numbers, and a handler of panics.

use std::{cell::RefCell, panic};

use js_sys::{Function, Uint8Array};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// Milliseconds since the page or worker started.
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    pub(crate) fn milliseconds() -> f64;

    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn log_error(text: &str);

    /// Fills the bytes with the browser's cryptographic random numbers.
    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues)]
    fn fill_random(bytes: &Uint8Array);
}

thread_local! {
    static HANDLER: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Calls `handler` on a panic. A panic is a bug, and nothing here can be called after it: pending promises never settle, so
/// the handler has to reject whatever waits for them.
#[wasm_bindgen(js_name = onPanic)]
pub fn on_panic(handler: Function) {
    HANDLER.set(Some(handler));
    panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        log_error(&text);
        HANDLER.with_borrow(|handler| {
            if let Some(handler) = handler {
                // An error of the handler does not stop the panic.
                let _ = handler.call1(&JsValue::UNDEFINED, &text.into());
            }
        });
    }));
}

/// Bytes of wasm memory. It never shrinks, so this is also the peak.
pub(crate) fn memory() -> u64 {
    let memory = wasm_bindgen::memory().unchecked_into::<js_sys::WebAssembly::Memory>();
    let buffer = memory.buffer().unchecked_into::<js_sys::ArrayBuffer>();
    buffer.byte_length().into()
}

/// A random number, for replies without a seed.
pub(crate) fn entropy() -> u64 {
    // An array of its own: memory that threads share is refused.
    let filled = Uint8Array::new_with_length(8);
    fill_random(&filled);
    let mut bytes = [0; 8];
    filled.copy_to(&mut bytes);
    u64::from_le_bytes(bytes)
}
