//! The HTTP server of `rullama serve`: sends the web app and the models to browsers.
//!
//! ```text
//! connection   sockets, TLS, one task for each connection; seats: the limit on connections
//!   router     every route of the server, in one place
//!     guard    which requests are allowed: Host header, origins; headers that isolate pages; token: access to the log
//!     app      files of the web app          models   the list, and files in pieces
//!     log      messages from pages           file     Range and ETag, for both kinds of file
//! ```
//!
//! `commands/serve.rs` reads the arguments and puts these together. The server writes only the certificate and the log
//! file. It sends only the app, models that manifests name, files given with `--model`, and the demo model.

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

/// The state that all request handlers share.
pub(crate) struct Shared {
    pub(crate) app: App,
    pub(crate) catalogue: Catalogue,
    pub(crate) log: std::sync::Mutex<Ring>,
    pub(crate) guard: Guard,
    /// The token for the log, if other machines can connect.
    pub(crate) token: Option<Token>,
    /// The certificate for phones to trust, if the server uses TLS.
    pub(crate) authority: Option<Vec<u8>>,
}

/// [`Shared`], as handlers get it.
type SharedState = axum::extract::State<Arc<Shared>>;
