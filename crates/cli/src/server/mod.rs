//! `rullama serve`: the web app, and the models of this machine, for browsers.
//!
//! ```text
//! connection   sockets, TLS, one task for each connection; seats: how many there may be
//!   router     every route of the server, in one place
//!     guard    who may ask: the Host header, origins; headers that isolate a page; token: who may use the log
//!     app      files of the web app          models   what there is, and files in pieces
//!     log      what pages report             file     Range and ETag, for both kinds of file
//! ```
//!
//! `commands/serve.rs` reads the arguments and puts these together. Nothing is written but the certificate, and the
//! log where one was asked for; nothing can be read but the app's folder, what manifests name as a model, files given by hand and
//! the demo model.

mod address;
mod app;
mod certificate;
mod connection;
mod digest;
mod error;
mod file;
mod guard;
mod log;
mod models;
mod path;
mod qr;
mod range;
mod ring;
mod router;
mod seats;
mod token;

use std::sync::Arc;

pub(crate) use self::{
    address::{LOOPBACK, default_route_first, page_urls},
    app::App,
    certificate::{Certificate, folder as certificate_folder},
    connection::{DEFAULT_PORT, DEFAULT_PORTS, Limits, Listener, bind, run},
    guard::{Guard, Reach},
    models::{Catalogue, ModelFile},
    qr::qr_code,
    ring::{LogFile, Ring},
    router::router,
    token::Token,
};

/// What the handlers of every request share.
pub(crate) struct Shared {
    pub(crate) app: App,
    pub(crate) catalogue: Catalogue,
    pub(crate) log: std::sync::Mutex<Ring>,
    pub(crate) guard: Guard,
    /// What the log asks for where others can reach the server.
    pub(crate) token: Option<Token>,
    /// The certificate that a phone can be told to trust, where there is TLS.
    pub(crate) authority: Option<Vec<u8>>,
}

/// [`Shared`], as handlers get it.
type SharedState = axum::extract::State<Arc<Shared>>;
