//! Addresses, ports, TLS, and how it ends.

use std::{fs, net::TcpListener};

use serde_json::json;

use crate::{
    WEIGHTS,
    server::{Server, command},
    start,
};

#[test]
fn health_tells_the_version() {
    let (server, _store) = start();
    assert!(server.url.starts_with("http://127.0.0.1:") && server.url.ends_with('/'), "{}", server.url);
    let answer = server.get("/api/health");
    assert_eq!(answer.json(), json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }));
    assert_eq!(answer.header("content-type"), "application/json");
}

/// TLS with a certificate of our own, which stays the same, and is good for addresses and for localhost.
#[tokio::test]
async fn https_uses_one_certificate_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    // As the libraries do it; another test may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let start = || Server::start(&["--https", "--certificate", folder]);
    let (server, other) = (start(), start());
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.url);

    let stranger = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
    assert!(stranger.get(&server.url).send().await.is_err(), "a certificate nobody trusts is accepted");

    let careless = reqwest::Client::builder().tls_danger_accept_invalid_certs(true).build().unwrap();
    let mut authorities = Vec::new();
    for server in [&server, &other] {
        let answer = careless.get(format!("{}certificate.crt", server.url)).send().await.unwrap();
        assert_eq!(answer.headers()["content-type"], "application/x-x509-ca-cert");
        authorities.push(answer.bytes().await.unwrap());
    }
    assert_eq!(authorities[0], authorities[1]);

    let authority = reqwest::Certificate::from_der(&authorities[0]).unwrap();
    let client = reqwest::Client::builder().tls_certs_only([authority]).build().unwrap();
    for url in [&server.url, &other.url, &server.url.replace("127.0.0.1", "localhost")] {
        let answer = client.get(format!("{url}api/health")).send().await.unwrap();
        assert_eq!(answer.headers()["cross-origin-embedder-policy"], "require-corp");
        assert!(answer.text().await.unwrap().contains("\"ok\""));
    }
    let kept = std::path::Path::new(folder).join("certificate.json");
    let before = fs::read(&kept).unwrap();
    drop(start());
    assert_eq!(fs::read(&kept).unwrap(), before);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Without TLS there is nothing to trust.
    assert_eq!(Server::start(&[]).get("/certificate.crt").status, 404);
}

/// The fingerprint on the screen is that of the certificate which phones download, so that people can compare the two.
#[tokio::test]
async fn https_prints_the_fingerprint_of_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let screen = folder.path().join("screen");
    let certificate = folder.path().join("certificate");
    let mut serve = command(&["--port", "0", "--https", "--certificate", certificate.to_str().unwrap()]);
    let server = Server::spawn(serve.stderr(fs::File::create(&screen).unwrap()));
    let careless = reqwest::Client::builder().tls_danger_accept_invalid_certs(true).build().unwrap();
    let answer = careless.get(format!("{}certificate.crt", server.url)).send().await.unwrap();
    let digest = rullama_gguf::ollama::Digest::of(&answer.bytes().await.unwrap()).hex();
    let screen = fs::read_to_string(screen).unwrap();
    let printed = screen.lines().find_map(|line| line.strip_prefix("trust   SHA-256 "));
    let printed = printed.unwrap_or_else(|| panic!("no fingerprint: {screen}"));
    assert_eq!(printed.replace(':', "").to_ascii_lowercase(), digest);
}

/// On the network, its addresses are answered to. What the screen shows is tested beside it, with a given address.
#[test]
fn on_the_network_addresses_are_answered_to() {
    let server = Server::start(&["--lan"]);
    assert!(server.url.starts_with("http://127.0.0.1:"), "{}", server.url);
    for host in ["192.168.0.2:11435", "desk.local", "localhost"] {
        assert_eq!(server.get_with("/api/health", &[("host", host)]).status, 200, "{host}");
    }
    assert_eq!(server.get_with("/api/health", &[("host", "evil.example")]).status, 403);
}

#[test]
fn a_busy_port_is_an_error_only_if_it_was_asked_for() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = command(&["--port", &port]).stderr(std::process::Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&format!("port {port} on 127.0.0.1 is already in use")), "{said}");
    assert!(said.contains("hint: choose another --port"), "{said}");

    // Whether or not the usual port is free, two servers find one each, and the second says that it is another.
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let first = Server::start_plain(&[]);
    let second = Server::spawn(command(&[]).stderr(fs::File::create(&said).unwrap()));
    assert_ne!(first.url, second.url);
    assert_eq!(second.get("/api/health").status, 200);
    let said = fs::read_to_string(&said).unwrap();
    assert!(said.contains("note: port 11435 is in use") && said.contains("hint: "), "{said}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_cleanly() {
    let (server, _store) = start();
    // A download that is under way does not hold it up.
    let mut stream = std::net::TcpStream::connect(server.authority()).unwrap();
    std::io::Write::write_all(
        &mut stream,
        format!("GET {WEIGHTS} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes(),
    )
    .unwrap();
    assert_eq!(server.interrupt(), Some(0));
}
