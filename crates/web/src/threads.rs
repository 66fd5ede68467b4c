//! Threads, in the build with shared memory. JavaScript starts workers, which instantiate the same module on the same memory.
//!
//! A worker calls `joinThreads`, tells that it is ready, and calls `helpThreads`, which never returns: the worker ends with the
//! one that started it.

use js_sys::Array;
use rullama_cpu::threads;
use wasm_bindgen::prelude::*;

/// What a worker instantiates: the compiled module and its memory.
#[wasm_bindgen(js_name = threadParts)]
pub fn thread_parts() -> Array {
    Array::of2(&wasm_bindgen::module(), &wasm_bindgen::memory())
}

/// Counts the calling worker among the threads that compute.
#[wasm_bindgen(js_name = joinThreads)]
pub fn join() {
    threads::join();
}

/// Helps to compute, from now on.
#[wasm_bindgen(js_name = helpThreads)]
pub fn help() {
    threads::help()
}

/// Says that the calling worker has crashed: what waits for it then fails as well.
#[wasm_bindgen(js_name = crashThreads)]
pub fn crash() {
    threads::crash();
}
