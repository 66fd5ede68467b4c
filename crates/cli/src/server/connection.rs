//! Sockets: finding a port, accepting connections, speaking TLS where that was asked for.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use crate::failure::Failure;

/// Beside Ollama's.
const DEFAULT_PORT: u16 = 11435;

/// Ports that are tried where none was asked for.
const PORTS_TRIED: u16 = 20;

/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(30);

/// A socket that listens, and how it is spoken to.
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
}

/// Listens on a port; without one, on the usual port or the next that is free.
pub(crate) async fn bind(host: IpAddr, port: Option<u16>) -> Result<TcpListener, Failure> {
    let ports = match port {
        Some(port) => port..=port,
        None => DEFAULT_PORT..=DEFAULT_PORT + PORTS_TRIED - 1,
    };
    let mut refused = None;
    for port in ports.clone() {
        match TcpListener::bind(SocketAddr::new(host, port)).await {
            Ok(socket) => return Ok(socket),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => refused = Some(error),
            Err(error) => {
                let what = format!("{} cannot be listened on", SocketAddr::new(host, port));
                return Err(Failure::new(what).caused_by(error).hint("give another --host or --port"));
            }
        }
    }
    let what = match port {
        Some(port) => format!("port {port} of {host} is in use"),
        None => format!("the ports {} to {} of {host} are in use", ports.start(), ports.end()),
    };
    let mut failure = Failure::new(what).hint("give another --port, or --port 0 for any that is free");
    if let Some(error) = refused {
        failure = failure.caused_by(error);
    }
    Err(failure)
}

/// Answers until it is dropped.
pub(crate) async fn run(listener: Listener, router: Router) {
    let tls = listener.tls.map(TlsAcceptor::from);
    loop {
        match listener.socket.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(greet(stream, tls.clone(), router.clone()));
            }
            // Most likely too many files are open; some of them will be closed.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// One connection. Clients go away whenever they like, so how it ends is of no interest.
async fn greet(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router) {
    // Small answers are sent at once; when this fails they are a little slower.
    let _ = stream.set_nodelay(true);
    match tls {
        None => converse(stream, router).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(PATIENCE, tls.accept(stream)).await {
                converse(stream, router).await;
            }
        }
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router) {
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let _ = protocol.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await;
}
