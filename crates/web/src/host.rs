//! What the standard library cannot give in a browser: time and entropy; and where panics go.

use std::{cell::RefCell, panic};

use js_sys::Function;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// Milliseconds since the page or the worker began.
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    pub(crate) fn milliseconds() -> f64;

    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn log_error(text: &str);

    /// Fills the bytes from the browser's cryptographic random numbers.
    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues)]
    fn fill_random(bytes: &mut [u8]);
}

thread_local! {
    static HANDLER: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Tells `handler` of every panic. A panic is a mistake of ours, after which nothing here can be called any more: promises
/// that are under way never end, so that whoever waits for one has to be told by other means.
#[wasm_bindgen(js_name = onPanic)]
pub fn on_panic(handler: Function) {
    HANDLER.set(Some(handler));
    panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        log_error(&text);
        HANDLER.with_borrow(|handler| {
            if let Some(handler) = handler {
                // Whatever the handler throws, the panic goes on.
                let _ = handler.call1(&JsValue::UNDEFINED, &text.into());
            }
        });
    }));
}

/// Bytes of wasm memory. It never becomes less, so this is also the most that there has been.
pub(crate) fn memory() -> u64 {
    let memory = wasm_bindgen::memory().unchecked_into::<js_sys::WebAssembly::Memory>();
    let buffer = memory.buffer().unchecked_into::<js_sys::ArrayBuffer>();
    buffer.byte_length().into()
}

/// A number that cannot be predicted, for replies whose options name no seed.
pub(crate) fn entropy() -> u64 {
    let mut bytes = [0; 8];
    fill_random(&mut bytes);
    u64::from_le_bytes(bytes)
}
