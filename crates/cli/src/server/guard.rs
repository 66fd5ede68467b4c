//! Decides which requests are allowed, and adds the headers that every answer has.
//!
//! Every page that the user visits can send requests to a server on localhost. Three rules protect it:
//!
//! - **The Host header** must be a name that other people can't point to this machine. A page of `evil.example` whose name
//!   suddenly resolves to 127.0.0.1 ("DNS rebinding") still sends `Host: evil.example`.
//! - **Requests that change something** must not come from a page of another origin.
//! - **Other origins may not read** anything, except for models if `--cors` allows it.
//!
//! Every answer isolates its page (`Cross-Origin-Opener-Policy`, `Cross-Origin-Embedder-Policy`), because browsers allow
//! shared memory and exact clocks only then, and forbids frames, which other sites could use to trick users into clicks.
//! The rest of the app's policy is in its page.

use std::{net::IpAddr, time::Duration};

use axum::{
    body::{Body, HttpBody as _},
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use tokio::time::timeout;

use super::{SharedState, error::Problem, file::TOTAL_SIZE, token::Token};

/// Who can reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// This machine.
    Loopback,
    /// Everyone on the network.
    Network,
}

/// The rules for requests.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) reach: Reach,
    /// Other origins that may read models; `*` means all.
    pub(crate) origins: Vec<String>,
    /// How long the body of a request may take.
    pub(crate) patience: Duration,
}

/// Paths that allowed origins may read.
const SHAREABLE: [&str; 4] = ["/api/health", "/api/models", "/models/", "/projectors/"];

const PRIVATE_NETWORK_ASKED: HeaderName = HeaderName::from_static("access-control-request-private-network");
const PRIVATE_NETWORK_ALLOWED: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Checks a request, passes it on, and adds headers to the answer.
pub(super) async fn guard(State(shared): SharedState, request: Request, next: Next) -> Response {
    let guard = &shared.guard;
    let path = request.uri().path();
    let shareable = SHAREABLE.iter().any(|prefix| path.starts_with(prefix));
    let origin = request.headers().get(header::ORIGIN).cloned();
    let token = shared.token.as_ref().filter(|token| token.is_in(request.uri()));
    let allowed = origin.as_ref().filter(|origin| shareable && guard.allows(origin));
    let mut response = if let Err(problem) = guard.check(&request) {
        problem.into_response()
    } else if *request.method() == Method::OPTIONS && allowed.is_some() {
        preflight(request.headers())
    } else if request.body().is_end_stream() {
        next.run(request).await
    } else {
        // Otherwise a body that arrives byte by byte could take any time.
        let answer = timeout(guard.patience, next.run(request)).await;
        answer.unwrap_or_else(|_| Problem::timeout().into_response())
    };
    isolate(response.headers_mut());
    if shareable && !guard.origins.is_empty() {
        response.headers_mut().append(header::VARY, HeaderValue::from_static("origin"));
    }
    if let Some(cookie) = token.and_then(Token::cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    if let Some(origin) = allowed {
        share(response.headers_mut(), origin);
    }
    response
}

impl Guard {
    fn check(&self, request: &Request) -> Result<(), Problem> {
        let refused = |message: &str| Problem::new(StatusCode::FORBIDDEN, "host.refused", message);
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()),
            _ => None,
        };
        let host = host.ok_or_else(|| refused("a request must have exactly one Host header"))?;
        // A request in proxy form has the host in its first line too.
        let same = request.uri().authority().is_none_or(|authority| *authority == host);
        if !same || !self.knows(&host) {
            return Err(refused("this server does not accept that host name; use its IP address"));
        }
        if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
            return Ok(());
        }
        match request.headers().get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default()) {
            Some(origin) if origin.split_once("://").is_none_or(|(_, own)| own != host.as_str()) => {
                Err(Problem::new(
                    StatusCode::FORBIDDEN,
                    "origin.refused",
                    "pages from other origins can't do this",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Whether `host` is a name that only this machine or its network can give to this server.
    fn knows(&self, host: &Authority) -> bool {
        if host.as_str().contains('@') {
            return false;
        }
        let name = host.host().to_ascii_lowercase();
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        match self.reach {
            Reach::Loopback => name == "localhost" || address.is_some_and(|address| address.is_loopback()),
            // IP addresses can't be rebound, and names without a dot or in .local are not in the public DNS.
            Reach::Network => {
                address.is_some() || (!name.is_empty() && (!name.contains('.') || name.ends_with(".local")))
            }
        }
    }

    fn allows(&self, origin: &HeaderValue) -> bool {
        self.origins.iter().any(|allowed| allowed == "*" || allowed.as_bytes() == origin.as_bytes())
    }
}

/// Answers a CORS preflight request.
fn preflight(request: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD"));
    let asked = HeaderValue::from_static("range, if-range, if-none-match");
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    if request.contains_key(PRIVATE_NETWORK_ASKED) {
        headers.insert(PRIVATE_NETWORK_ALLOWED, HeaderValue::from_static("true"));
    }
    response
}

fn isolate(headers: &mut HeaderMap) {
    for (name, value) in [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-embedder-policy", "require-corp"),
        ("cross-origin-resource-policy", "same-origin"),
        ("content-security-policy", "frame-ancestors 'none'"),
        ("x-content-type-options", "nosniff"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

fn share(headers: &mut HeaderMap, origin: &HeaderValue) {
    let resource_policy = HeaderName::from_static("cross-origin-resource-policy");
    headers.insert(resource_policy, HeaderValue::from_static("cross-origin"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    let exposed = format!("accept-ranges, content-length, content-range, etag, {TOTAL_SIZE}");
    if let Ok(exposed) = HeaderValue::from_str(&exposed) {
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use axum::body::Bytes;
    use futures_util::stream;
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;

    use super::*;
    use crate::server::{App, Catalogue, Ring, Shared, router};

    fn guard(reach: Reach) -> Guard {
        Guard { reach, origins: Vec::new(), patience: Duration::from_millis(50) }
    }

    fn knows(reach: Reach, host: &str) -> bool {
        host.parse().is_ok_and(|host| guard(reach).knows(&host))
    }

    /// A server without app and models.
    fn shared(token: Option<Token>) -> Shared {
        Shared {
            app: App::Missing,
            catalogue: Catalogue { stores: Vec::new(), files: Vec::new() },
            log: Mutex::new(Ring::new(None)),
            guard: guard(Reach::Loopback),
            token,
            authority: None,
        }
    }

    #[tokio::test]
    async fn without_an_app_a_page_says_how_to_build_it() {
        let service = TowerToHyperService::new(router(Arc::new(shared(None))));
        for (path, status) in [("/", 200), ("/chat", 200), ("/favicon.ico", 404)] {
            let request = Request::get(path).header(header::HOST, "localhost").body(Body::empty()).unwrap();
            let answer = service.call(request).await.unwrap();
            assert_eq!(answer.status(), status, "{path}");
            let body = axum::body::to_bytes(answer.into_body(), 1 << 16).await.unwrap();
            let text = str::from_utf8(&body).unwrap();
            assert_eq!(text.contains("cargo xtask install"), status == 200, "{text}");
        }
    }

    #[tokio::test]
    async fn an_embedded_app_is_served_like_a_folder() {
        let shared = Shared { app: App::Embedded(crate::embedded::TEST_APP), ..shared(None) };
        let service = TowerToHyperService::new(router(Arc::new(shared)));
        let ask = async |path: &str, header: (&str, &str)| {
            let request = Request::get(path).header(header::HOST, "localhost").header(header.0, header.1);
            let answer = service.call(request.body(Body::empty()).unwrap()).await.unwrap();
            let (head, body) = answer.into_parts();
            let body = axum::body::to_bytes(body, 1 << 16).await.unwrap();
            (head.status.as_u16(), head.headers, String::from_utf8(body.to_vec()).unwrap())
        };
        let none = ("accept", "*/*");
        for (path, status, body) in [
            ("/", 200, "page"),
            ("/index.html", 200, "page"),
            ("/chat", 200, "page"),
            ("/assets/index-BfX1k2Yz.js", 200, "script"),
        ] {
            let (found, _, text) = ask(path, none).await;
            assert_eq!((found, text.as_str()), (status, body), "{path}");
        }
        for (path, status) in [("/chat/12", 307), ("/favicon.ico", 404), ("/assets/../index.html", 404)] {
            assert_eq!(ask(path, none).await.0, status, "{path}");
        }
        let (_, headers, _) = ask("/assets/index-BfX1k2Yz.js", none).await;
        assert_eq!(headers["cache-control"], "public, max-age=31536000, immutable");
        assert_eq!(headers["content-type"], "text/javascript; charset=utf-8");
        assert_eq!(headers["etag"], "\"1\"");
        assert_eq!(ask("/index.html", ("if-none-match", "\"2\"")).await.0, 304);
        let (status, _, text) = ask("/index.html", ("range", "bytes=1-2")).await;
        assert_eq!((status, text.as_str()), (206, "ag"));
    }

    /// A client that sends a byte now and then never stands still, and is not waited for all the same.
    #[tokio::test]
    async fn a_body_that_trickles_is_not_waited_for() {
        let shared = shared(None);
        let trickle = stream::unfold((), async |()| {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Some((Ok::<_, io::Error>(Bytes::from_static(b"x")), ()))
        });
        let request = Request::post("/api/log").header(header::HOST, "localhost");
        let request = request.body(Body::from_stream(trickle)).unwrap();
        let answer = TowerToHyperService::new(router(Arc::new(shared))).call(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::REQUEST_TIMEOUT);
    }

    #[test]
    fn on_loopback_only_its_own_names_are_known() {
        for host in
            ["localhost", "LOCALHOST:1", "127.0.0.1:11435", "127.0.0.1", "127.0.0.2", "[::1]", "[::1]:80"]
        {
            assert!(knows(Reach::Loopback, host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.168.0.2",
            "me@localhost",
            "a",
        ] {
            assert!(!knows(Reach::Loopback, host), "{host}");
        }
    }

    #[test]
    fn on_a_network_addresses_and_local_names_are_known() {
        for host in ["192.168.0.2:11435", "[fe80::1]:80", "desk.local", "desk:11435", "localhost"] {
            assert!(knows(Reach::Network, host), "{host}");
        }
        for host in ["evil.example", "desk.local.evil.example", "me@desk.local"] {
            assert!(!knows(Reach::Network, host), "{host}");
        }
    }
}
