//! `rullama serve` over real sockets: what can be read, what cannot, and how it is said.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod app;
mod demo;
mod guard;
mod log;
mod models;
mod network;
mod server;

use server::{Server, Store};

const WEIGHTS: &str = "/models/gemma4:e2b";

/// A server with a store.
fn start() -> (Server, Store) {
    let store = Store::new();
    (Server::start(&["--models", store.argument()]), store)
}
