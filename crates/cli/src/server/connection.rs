//! Sockets: finds a port, accepts connections, and uses TLS with `--https`.
//!
//! A client may open many connections, or stop in the middle of a request. So there are limits on the number of open
//! connections (`seats`), on how long a connection may make no progress, and on the bytes buffered for a slow reader.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::Router;
use hyper::{
    Request,
    body::Incoming,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    time::{Instant, Sleep, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::seats::{NoSeat, Seat, Seats};
use crate::failure::Failure;

/// The port after Ollama's.
pub(crate) const DEFAULT_PORT: u16 = 11435;

/// The ports that are tried, in this order, if none is given.
pub(crate) const DEFAULT_PORTS: RangeInclusive<u16> = DEFAULT_PORT..=DEFAULT_PORT + 19;

/// Bytes of an answer that are buffered until the client reads them, not counting the last piece; also the longest head of
/// a request.
const MOST_HELD: usize = 64 << 10;

/// Limits that keep one client from blocking others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections that are open at once. When all are busy, others wait until one of these is idle or ends.
    connections: usize,
    /// Connections of one client that are open at once. When all are busy, another is closed.
    per_client: usize,
    /// How long a client may take to send a request with its body.
    pub(crate) patience: Duration,
    /// How long a connection stays open while no byte moves in either direction.
    standstill: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A connection has a socket and a file, and many systems allow a program 1,024 of both together.
            connections: 256,
            // A browser opens six.
            per_client: 64,
            patience: Duration::from_secs(30),
            // A page that slept for longer sends a new request.
            standstill: Duration::from_secs(120),
        }
    }
}

/// A listening socket with its TLS configuration and limits.
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) limits: Limits,
}

/// Listens on the given port, or else on the first free one of the default ports.
pub(crate) async fn bind(host: IpAddr, port: Option<u16>) -> Result<TcpListener, Failure> {
    let ports = match port {
        Some(port) => port..=port,
        None => DEFAULT_PORTS,
    };
    for port in ports.clone() {
        match TcpListener::bind(SocketAddr::new(host, port)).await {
            Ok(socket) => return Ok(socket),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => {
                let what = format!("can't listen on {}", SocketAddr::new(host, port));
                return Err(Failure::new(what).caused_by(error).hint("choose another --host or --port"));
            }
        }
    }
    let what = match port {
        Some(port) => format!("port {port} on {host} is already in use"),
        None => format!("ports {} to {} on {host} are all in use", ports.start(), ports.end()),
    };
    Err(Failure::new(what).hint("choose another --port, or use --port 0 for any free port"))
}

/// Serves connections until it is dropped.
pub(crate) async fn run(listener: Listener, router: Router) {
    let Listener { socket, tls, limits } = listener;
    let tls = tls.map(TlsAcceptor::from);
    let seats = Seats::new(limits.connections, limits.per_client);
    loop {
        match socket.accept().await {
            Ok((stream, peer)) => {
                // Further connections wait in the system's queue and cost nothing here.
                let Some(seat) = seat(&seats, peer.ip()).await else { continue };
                let (tls, router, seat) = (tls.clone(), router.clone(), Arc::new(seat));
                tokio::spawn(async move {
                    tokio::select! {
                        biased;
                        () = seat.evicted() => {}
                        () = serve_connection(stream, tls, router, &seat, limits) => {}
                    }
                });
            }
            // Most likely too many files are open. Wait until some are closed.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Waits for a seat for a connection; returns `None` if its client has too many connections.
async fn seat(seats: &Arc<Seats>, address: IpAddr) -> Option<Seat> {
    loop {
        match seats.take(address) {
            Ok(seat) => return Some(seat),
            Err(NoSeat::Client) => return None,
            Err(NoSeat::Server) => seats.freed().await,
        }
    }
}

/// Serves one connection. Clients disconnect at any time, so errors are ignored.
async fn serve_connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    seat: &Arc<Seat>,
    limits: Limits,
) {
    // Send small answers at once. If this fails they are a little slower.
    let _ = stream.set_nodelay(true);
    let stream = Moving::new(stream, limits.standstill);
    match tls {
        None => speak_http(stream, router, seat, limits).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(limits.patience, tls.accept(stream)).await {
                speak_http(stream, router, seat, limits).await;
            }
        }
    }
}

async fn speak_http(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    seat: &Arc<Seat>,
    limits: Limits,
) {
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(limits.patience).max_buf_size(MOST_HELD);
    let router = TowerToHyperService::new(router);
    let service = service_fn(|request: Request<Incoming>| {
        let (in_progress, answer) = (seat.request(), router.call(request));
        async move { answer.await.map(|answer| answer.map(|body| in_progress.until_sent(body))) }
    });
    let _ = protocol.serve_connection(TokioIo::new(stream), service).await;
}

/// A stream that fails if no byte moves in either direction for too long. Otherwise a body that never arrives, or a client
/// that does not read, would keep its connection open forever.
struct Moving<S> {
    stream: S,
    longest: Duration,
    until: Pin<Box<Sleep>>,
}

impl<S> Moving<S> {
    fn new(stream: S, longest: Duration) -> Self {
        Self { stream, longest, until: Box::pin(sleep(longest)) }
    }

    /// Restarts the timer if bytes moved, and fails if none have for too long.
    fn watch<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            let until = Instant::now() + self.longest;
            self.until.as_mut().reset(until);
            return outcome;
        }
        self.until.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Moving<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.watch(context, outcome)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Moving<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // Neither of these sends anything over TCP, so neither restarts the timer.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, routing::get};
    use futures_util::stream;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

    /// A server with these limits; ends with the test.
    async fn start(limits: Limits, router: Router) -> SocketAddr {
        let socket = bind(super::super::LOOPBACK, Some(0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(run(Listener { socket, tls: None, limits }, router));
        address
    }

    fn hello() -> Router {
        Router::new().route("/", get(async || "hello"))
    }

    /// Long enough for any machine.
    const LONG: Duration = Duration::from_secs(20);

    /// The first bytes of an answer, unless none come for so long.
    async fn answer(stream: &mut TcpStream, within: Duration) -> Option<Vec<u8>> {
        let mut bytes = [0; 12];
        let read = timeout(within, stream.read_exact(&mut bytes)).await;
        read.ok().map(|read| read.map(|_| bytes.to_vec()).unwrap())
    }

    /// Waits for the server to close, and gives what it had sent.
    async fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
        let mut bytes = Vec::new();
        let read = timeout(LONG, stream.read_to_end(&mut bytes)).await;
        // It may close by force.
        let _ = read.expect("the server holds the connection");
        bytes
    }

    /// Connections that say nothing make room for one that does, though it comes last.
    #[tokio::test]
    async fn idle_connections_make_room() {
        let limits = Limits { connections: 8, per_client: 4, ..Limits::default() };
        let address = start(limits, hello()).await;
        let mut idle = Vec::new();
        for _ in 0..20 {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(REQUEST).await.unwrap();
        assert_eq!(answer(&mut client, LONG).await.as_deref(), Some(&b"HTTP/1.1 200"[..]));
        assert_eq!(until_closed(&mut idle[0]).await, b"");
        // One that was answered is idle again.
        for _ in 0..8 {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        until_closed(&mut client).await;
    }

    /// One client's connections, idle and busy, leave room for another client. (Not every system has a second
    /// loopback address.)
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn one_client_does_not_keep_another_waiting() {
        let router = hello().route("/never", get(std::future::pending::<String>));
        let limits = Limits { connections: 8, per_client: 6, ..Limits::default() };
        let address = start(limits, router).await;
        let mut greedy = Vec::new();
        for number in 0..20 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            if number < 6 {
                stream.write_all(b"GET /never HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
            }
            greedy.push(stream);
        }
        for source in ["127.0.0.2", "127.0.0.3", "127.0.0.2"] {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(SocketAddr::new(source.parse().unwrap(), 0)).unwrap();
            let mut stream = socket.connect(address).await.unwrap();
            stream.write_all(REQUEST).await.unwrap();
            assert_eq!(answer(&mut stream, LONG).await.as_deref(), Some(&b"HTTP/1.1 200"[..]));
        }
    }

    /// A request that is being answered is not given up for another.
    #[tokio::test]
    async fn busy_connections_are_waited_for() {
        let (begun, go_on) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
        let (tell, wait) = (begun.clone(), go_on.clone());
        let router = hello().route(
            "/slow",
            get(async move || {
                tell.notify_one();
                wait.notified().await;
                "slow"
            }),
        );
        let limits = Limits { connections: 1, per_client: 2, ..Limits::default() };
        let address = start(limits, router).await;
        let mut first = TcpStream::connect(address).await.unwrap();
        first.write_all(b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        begun.notified().await;
        let mut second = TcpStream::connect(address).await.unwrap();
        second.write_all(REQUEST).await.unwrap();
        go_on.notify_one();
        for stream in [&mut first, &mut second] {
            assert_eq!(answer(stream, LONG).await.as_deref(), Some(&b"HTTP/1.1 200"[..]));
        }
    }

    /// Someone who asks for more than sockets can hold, and does not read it.
    #[tokio::test]
    async fn a_reader_who_does_not_read_is_let_go() {
        let piece = || stream::repeat_with(|| Ok::<_, io::Error>(vec![0_u8; 1 << 16]));
        let router = Router::new().route("/", get(async move || Body::from_stream(piece())));
        let limits = Limits { connections: 1, standstill: Duration::from_millis(200), ..Limits::default() };
        let address = start(limits, router).await;
        let mut idle = TcpStream::connect(address).await.unwrap();
        idle.write_all(REQUEST).await.unwrap();
        // There is room for one, so the second is answered only once the first was let go.
        let mut second = TcpStream::connect(address).await.unwrap();
        second.write_all(REQUEST).await.unwrap();
        assert_eq!(answer(&mut second, LONG).await.as_deref(), Some(&b"HTTP/1.1 200"[..]));
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let router = Router::new().route("/", axum::routing::post(async |body: String| body));
        let limits = Limits { standstill: Duration::from_millis(200), ..Limits::default() };
        let address = start(limits, router).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nhalf")
            .await
            .unwrap();
        let said = String::from_utf8(until_closed(&mut stream).await).unwrap();
        assert!(!said.contains(" 200 "), "{said}");
    }
}
