//! `rullama serve` over real sockets: what can be read, what cannot, and how it is said.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod serving;

use std::{fs, net::TcpListener};

use serde_json::{Value, json};
use serving::{Server, Store, app, command, noise};

const WEIGHTS: &str = "/models/gemma4:e2b";

fn server() -> (Server, Store) {
    let store = Store::new();
    (Server::start(&["--models", store.argument()]), store)
}

#[test]
fn health_tells_the_version() {
    let (server, _store) = server();
    assert!(server.url.starts_with("http://127.0.0.1:") && server.url.ends_with('/'), "{}", server.url);
    let answer = server.get("/api/health");
    assert_eq!(answer.json(), json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }));
    assert_eq!(answer.header("content-type"), "application/json");
}

/// The list has what is whole, by name, from manifests and from files given by hand.
#[test]
fn models_are_listed() {
    let store = Store::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my model.gguf");
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-Q8_0.gguf"), &file).unwrap();
    let second = Store::new();
    second.model("registry.ollama.ai/library/other/latest", &[second.blob("model", &noise(100))]);
    let arguments =
        ["--models", store.argument(), "--models", second.argument(), "--model", file.to_str().unwrap()];
    let server = Server::start(&arguments);
    let list = server.get("/api/models").json();
    let models = list["models"].as_array().unwrap();
    let names: Vec<&str> = models.iter().map(|model| model["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["gemma4:e2b", "hf.co/user/repo.v1:Q4_K_M", "my model.gguf", "other:latest"]);

    let digest = |bytes: &[u8]| rullama_gguf::ollama::Digest::of(bytes).hex();
    let expected = json!({
        "name": "gemma4:e2b", "bytes": 700_001, "sha256": digest(&store.weights), "url": WEIGHTS,
        "family": "gemma4", "parameters": "5.1B", "format": "Q4_K_M",
        "projector": { "bytes": 5_000, "sha256": digest(&store.projector), "url": "/projectors/gemma4:e2b" },
    });
    assert_eq!(models[0], expected);
    assert_eq!(models[1]["projector"], Value::Null);
    assert_eq!(models[2]["url"], "/models/my%20model.gguf");
    assert_eq!((&models[2]["family"], &models[2]["format"]), (&json!("gemma4"), &json!("Q8_0")));
    // Every address in the list leads to a file of the size in the list.
    for model in models {
        let answer = server.get(model["url"].as_str().unwrap());
        assert_eq!((answer.status, answer.body.len() as u64), (200, model["bytes"].as_u64().unwrap()));
    }
    assert_eq!(server.get("/projectors/gemma4:e2b").body, store.projector);
    assert!(server.get("/models/my%20model.gguf").header("etag").starts_with("W/\""));
}

/// A machine without Ollama is served all the same.
#[test]
fn without_a_store_the_list_is_empty() {
    let server = Server::start(&[]);
    assert_eq!(server.get("/api/models").json(), json!({ "models": [] }));
}

#[test]
fn a_whole_model_has_its_digest_as_tag() {
    let (server, store) = server();
    for method in ["GET", "HEAD"] {
        let answer = server.ask(method, WEIGHTS, &[], b"");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-length"), "700001");
        assert_eq!(answer.header("x-total-size"), "700001");
        assert_eq!(answer.header("accept-ranges"), "bytes");
        assert_eq!(answer.header("content-type"), "application/octet-stream");
        assert_eq!(answer.header("etag"), store.tag());
        assert_eq!(answer.header("content-range"), "");
        assert!(answer.body == if method == "GET" { &store.weights[..] } else { &[] });
    }
    assert!(server.get("/models/hf.co/user/repo.v1:Q4_K_M").body == store.weights);
    assert!(server.get("/models/hf.co%2Fuser%2Frepo.v1%3AQ4_K_M").body == store.weights);
}

#[test]
fn ranges_give_parts() {
    let (server, store) = server();
    for (range, first, end) in [
        ("bytes=0-0", 0, 1),
        ("bytes=0-99", 0, 100),
        ("bytes=262100-524388", 262_100, 524_389),
        ("bytes=700000-", 700_000, 700_001),
        ("bytes=600000-99999999999", 600_000, 700_001),
        ("bytes=-1", 700_000, 700_001),
        ("bytes=-300000", 400_001, 700_001),
        ("bytes=-900000", 0, 700_001),
    ] {
        let answer = server.get_with(WEIGHTS, &[("range", range)]);
        assert_eq!(answer.status, 206, "{range}");
        assert_eq!(answer.header("content-range"), format!("bytes {first}-{}/700001", end - 1));
        assert_eq!(answer.header("content-length"), (end - first).to_string());
        assert_eq!(answer.header("x-total-size"), "700001");
        assert!(answer.body == store.weights[first..end], "{range}");
    }
    for range in ["bytes=700001-", "bytes=-0", "bytes=800000-900000"] {
        let answer = server.get_with(WEIGHTS, &[("range", range)]);
        assert_eq!((answer.status, answer.header("content-range")), (416, "bytes */700001"), "{range}");
        assert!(answer.body.is_empty());
    }
    // What is not understood, or would need several parts, is answered with the whole.
    for range in ["bytes=0-1,5-6", "lines=1-2", "bytes=9-1", "nonsense"] {
        let answer = server.get_with(WEIGHTS, &[("range", range)]);
        assert_eq!((answer.status, answer.body.len()), (200, 700_001), "{range}");
    }
    let head = server.ask("HEAD", WEIGHTS, &[("range", "bytes=0-9")], b"");
    assert_eq!((head.status, head.header("content-length")), (200, "700001"));
}

#[test]
fn conditions_compare_tags() {
    let (server, store) = server();
    let tag = store.tag();
    let range = ("range", "bytes=0-9");
    let part = |if_range: &str| server.get_with(WEIGHTS, &[range, ("if-range", if_range)]);
    assert_eq!(part(&tag).status, 206);
    for other in ["\"sha256:other\"", &format!("W/{tag}"), "Sun, 06 Nov 1994 08:49:37 GMT"] {
        let answer = part(other);
        assert_eq!((answer.status, answer.body.len()), (200, 700_001), "{other}");
    }
    for same in [tag.as_str(), "*", &format!("\"a\", {tag}"), &format!("W/{tag}")] {
        let answer = server.get_with(WEIGHTS, &[("if-none-match", same), range]);
        assert_eq!((answer.status, answer.header("etag")), (304, tag.as_str()), "{same}");
        assert!(answer.body.is_empty());
    }
    assert_eq!(server.get_with(WEIGHTS, &[("if-none-match", "\"a\"")]).status, 200);

    // A model that was pulled anew has another tag, and no part of it fits the old one.
    let new = noise(1_000);
    store.model("registry.ollama.ai/library/gemma4/e2b", &[store.blob("model", &new)]);
    let answer = part(&tag);
    assert_eq!((answer.status, answer.body == new), (200, true));
    assert_ne!(answer.header("etag"), tag);
}

/// Two connections at once, one of which goes away in the middle.
#[test]
fn broken_connections_do_no_harm() {
    use std::io::{Read as _, Write as _};
    let (server, store) = server();
    let mut stream = std::net::TcpStream::connect(server.authority()).unwrap();
    write!(stream, "GET {WEIGHTS} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut some = [0; 1000];
    stream.read_exact(&mut some).unwrap();
    assert!(server.get(WEIGHTS).body == store.weights);
    drop(stream);
    assert!(server.get(WEIGHTS).body == store.weights);
}

/// Nothing but models comes out of the store, whatever the path looks like.
#[test]
fn paths_lead_nowhere_else() {
    let (_folder, dist) = app();
    let store = Store::new();
    let server = Server::start(&["--models", store.argument(), "--app", dist.to_str().unwrap()]);
    let absolute = store.path().join("secret.txt");
    let absolute = absolute.to_str().unwrap();
    let blob = fs::read_dir(store.path().join("blobs")).unwrap().next().unwrap().unwrap().file_name();
    let blob = blob.to_str().unwrap();
    let mut paths =
        vec![format!("/models/{absolute}"), format!("/models{absolute}"), format!("/models/file:{absolute}")];
    paths.push(format!("/models/{}", absolute.replace('/', "%2f")));
    for target in ["secret.txt", "blobs/x", "manifests/registry.ollama.ai/library/gemma4/e2b"] {
        for up in
            ["../", "..%2f", "%2e%2e/", "%2e%2e%2f", "..\\", "..%5c", "%252e%252e%252f", "..%c0%af", "./../"]
        {
            for prefix in ["/models/", "/models/gemma4:e2b/", "/projectors/", "/", "/assets/", "/assets/../"]
            {
                paths.push(format!("{prefix}{up}{target}"));
            }
        }
    }
    for name in [
        "",
        ".",
        "..",
        "secret:latest",
        "cut:latest",
        "textonly:latest",
        "gemma4",
        "gemma4:e2b%00",
        "%00",
        "gemma4:e2b/x",
        "gemma4:e2b%00.gguf",
        blob,
        "blobs/x",
        "sha256:abc",
        "registry.ollama.ai/library/gemma4/e2b",
        "%ff%fe",
    ] {
        paths.push(format!("/models/{name}"));
    }
    paths.extend(
        ["/models", "/api", "/api/", "/api/nothing", "/projectors/hf.co/user/repo.v1:Q4_K_M"]
            .map(str::to_owned),
    );
    paths.extend(
        ["/secret.txt", "/.hidden", "//etc/passwd", "/assets%2f..%2f..%2fsecret.txt"].map(str::to_owned),
    );
    for path in paths {
        let answer = server.get(&path);
        let text = String::from_utf8_lossy(&answer.body);
        assert!(!text.contains("secret"), "{path}: {text}");
        // Encoded twice, it is a name with percent signs, which the app might have made up.
        if path.contains("%25") && text == "this is index.html" {
            continue;
        }
        assert_eq!((answer.status, answer.error_code().as_str()), (404, "not_found"), "{path}");
    }
    // A name may be written in full, and its case does not count; it is still the same model.
    assert!(server.get("/models/registry.ollama.ai/library/Gemma4:e2b").body == store.weights);
    // What is no path at all.
    let odd = server.send(b"GET ../../secret.txt HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert_eq!(odd.status, 400);
}

/// A link in the app's folder that leads out of it is not followed; one that stays is.
#[cfg(unix)]
#[test]
fn links_out_of_the_app_lead_nowhere() {
    let (folder, dist) = app();
    let link =
        |target: std::path::PathBuf, name: &str| std::os::unix::fs::symlink(target, dist.join(name)).unwrap();
    link(folder.path().join("secret.txt"), "link.txt");
    link(folder.path().to_owned(), "parent");
    link(dist.join("data.json"), "same.json");
    let server = Server::start(&["--app", dist.to_str().unwrap()]);
    assert_eq!(server.get("/link.txt").status, 404);
    assert_eq!(server.get("/parent/secret.txt").status, 404);
    assert_eq!(server.get("/same.json").text(), "this is data.json");
}

#[test]
fn the_app_is_served_with_types_and_lifetimes() {
    let (_folder, dist) = app();
    let server = Server::start(&["--app", dist.to_str().unwrap()]);
    let for_ever = "public, max-age=31536000, immutable";
    for (path, content_type, lifetime) in [
        ("index.html", "text/html; charset=utf-8", "no-cache"),
        ("service-worker.js", "text/javascript; charset=utf-8", "no-cache"),
        ("manifest.webmanifest", "application/manifest+json", "no-cache"),
        ("icon.svg", "image/svg+xml", "no-cache"),
        ("icon.png", "image/png", "no-cache"),
        ("data.json", "application/json", "no-cache"),
        ("assets/index-BfX1k2Yz.js", "text/javascript; charset=utf-8", for_ever),
        ("assets/index-C0ffee12.css", "text/css; charset=utf-8", for_ever),
        ("assets/engine-D-x_1abc.wasm", "application/wasm", for_ever),
        ("assets/plain.js", "text/javascript; charset=utf-8", "no-cache"),
    ] {
        let answer = server.get(&format!("/{path}"));
        assert_eq!((answer.status, answer.text()), (200, format!("this is {path}").as_str()));
        assert_eq!(
            (answer.header("content-type"), answer.header("cache-control")),
            (content_type, lifetime),
            "{path}"
        );
        let tag = answer.header("etag");
        assert_eq!(server.get_with(&format!("/{path}"), &[("if-none-match", tag)]).status, 304);
    }
    // Addresses that the app makes up are its first page; files that are missing are missing.
    for page in ["/", "/chat", "/chat/12", "/settings/", "/assets", "/?model=gemma4:e2b", "/a%20b"] {
        let answer = server.get(page);
        assert_eq!((answer.status, answer.text()), (200, "this is index.html"), "{page}");
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        assert_eq!(answer.header("cache-control"), "no-cache");
    }
    for missing in ["/favicon.ico", "/assets/index-00000000.js", "/chat/a.png"] {
        assert_eq!(server.get(missing).status, 404, "{missing}");
    }
    assert_eq!(server.ask("HEAD", "/index.html", &[], b"").header("content-length"), "18");
    assert_eq!(server.get_with("/index.html", &[("range", "bytes=5-6")]).text(), "is");
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        for path in ["/", "/index.html", WEIGHTS, "/api/models"] {
            let answer = server.ask(method, path, &[], b"");
            assert_eq!(
                (answer.status, answer.error_code().as_str()),
                (405, "request.method"),
                "{method} {path}"
            );
        }
    }
}

#[test]
fn without_an_app_a_page_says_how_to_build_it() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, expected) = (folder.path().join("none"), "there is no index.html in");
    let output = command(&["--port", "0", "--app", missing.to_str().unwrap()])
        .stderr(std::process::Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains(expected));

    // The program itself lies in the project's folder, where there may be an app; a copy elsewhere has none.
    let copy = folder.path().join("rullama");
    // It is large; where it can, a second name for it does.
    let program = env!("CARGO_BIN_EXE_rullama");
    fs::hard_link(program, &copy).or_else(|_| fs::copy(program, &copy).map(drop)).unwrap();
    let server = Server::start_program(&copy, folder.path(), &["--port", "0"]);
    for page in ["/", "/chat"] {
        let answer = server.get(page);
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains("cargo xtask run"), "{}", answer.text());
    }
    assert_eq!(server.get("/favicon.ico").status, 404);
}

/// Every answer isolates its page, also one that is an error.
#[test]
fn every_answer_isolates_its_page() {
    let (server, _store) = server();
    let refused = server.get_with("/", &[("host", "evil.example")]);
    let answers = ["/", "/api/health", "/api/models", WEIGHTS, "/models/none", "/nothing.js"]
        .map(|path| server.get(path));
    for answer in answers.iter().chain([&refused]) {
        assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin");
        assert_eq!(answer.header("cross-origin-embedder-policy"), "require-corp");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("access-control-allow-origin"), "");
    }
}

/// A stranger's name that was made to point here is refused.
#[test]
fn only_names_of_this_machine_are_answered() {
    let (server, _store) = server();
    for host in ["localhost", "LocalHost:80", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:11435"] {
        assert_eq!(server.get_with("/api/health", &[("host", host)]).status, 200, "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "192.168.0.1",
        "x@localhost",
        "",
    ] {
        for path in ["/", "/api/models", WEIGHTS, "/api/log"] {
            let answer = server.get_with(path, &[("host", host)]);
            assert_eq!((answer.status, answer.error_code().as_str()), (403, "host.refused"), "{host}");
        }
    }
    let two = server.get_with("/api/health", &[("host", "localhost"), ("host", "evil.example")]);
    assert!(matches!(two.status, 400 | 403), "{two:?}");
    let none = server.send(b"GET /api/health HTTP/1.0\r\n\r\n");
    assert!(matches!(none.status, 400 | 403), "{none:?}");
    let proxied = server
        .send(b"GET http://evil.example/api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert_eq!(proxied.status, 403);
}

#[test]
fn other_origins_read_models_only_if_they_are_named() {
    let store = Store::new();
    let server = Server::start(&["--models", store.argument(), "--cors", "http://localhost:5173/"]);
    let from = |path: &str, origin: &str| server.get_with(path, &[("origin", origin)]);
    for path in [WEIGHTS, "/api/models", "/projectors/gemma4:e2b"] {
        let answer = from(path, "http://localhost:5173");
        assert_eq!(answer.header("access-control-allow-origin"), "http://localhost:5173");
        assert!(answer.header("access-control-expose-headers").contains("content-range"));
        assert_eq!(answer.header("cross-origin-resource-policy"), "cross-origin");
        assert_eq!(answer.header("vary"), "origin");
        assert_eq!(from(path, "http://localhost:5174").header("access-control-allow-origin"), "");
    }
    for path in ["/", "/api/log"] {
        assert_eq!(from(path, "http://localhost:5173").header("access-control-allow-origin"), "", "{path}");
    }
    let ask = [("origin", "http://localhost:5173"), ("access-control-request-method", "GET")];
    let answer = server.ask("OPTIONS", WEIGHTS, &ask, b"");
    assert_eq!((answer.status, answer.header("access-control-allow-methods")), (204, "GET, HEAD"));
    assert!(answer.header("access-control-allow-headers").contains("range"));
    let ask = [("origin", "http://evil.example"), ("access-control-request-method", "GET")];
    assert_eq!(server.ask("OPTIONS", WEIGHTS, &ask, b"").status, 405);

    let refused = command(&["--cors", "localhost"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn pages_report_what_happens() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.jsonl");
    let server = Server::start(&["--log-file", file.to_str().unwrap()]);
    let json = "application/json";
    let said = server.post("/api/log", json, br#"{"tag": "app.load", "text": "one"}"#);
    assert_eq!((said.status, said.json()), (200, json!({ "sequence": 1 })));
    assert_eq!(
        server.post("/api/log?tag=worker-1", "text/plain;charset=UTF-8", "zwei\né".as_bytes()).status,
        200
    );
    assert_eq!(server.post("/api/log", "text/plain", b"three").json()["sequence"], 3);

    let read = |query: &str| server.get(&format!("/api/log{query}")).json();
    let all = read("");
    assert_eq!(all["latest"], 3);
    let texts = |log: &Value| -> Vec<String> {
        let messages = log["messages"].as_array().unwrap();
        messages.iter().map(|message| format!("{} {}", message["tag"], message["text"])).collect()
    };
    assert_eq!(texts(&all), [r#""app.load" "one""#, r#""worker-1" "zwei\né""#, r#""page" "three""#]);
    let time = all["messages"][0]["time"].as_str().unwrap();
    assert!(time.len() == 24 && time.starts_with("20") && time.ends_with('Z'), "{time}");
    assert_eq!(texts(&read("?since=2")), [r#""page" "three""#]);
    assert_eq!(texts(&read("?tag=app.load&since=0")), [r#""app.load" "one""#]);
    assert_eq!(texts(&read("?tag=app.load&since=1")), [""; 0]);

    let lines = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json!(lines), all["messages"]);
}

#[test]
fn strange_reports_are_refused() {
    let server = Server::start(&[]);
    let long_tag = format!(r#"{{"tag": "{}", "text": "a"}}"#, "a".repeat(65));
    for body in [
        "",
        "{",
        "null",
        "[]",
        "7",
        r#""text""#,
        "{}",
        r#"{"tag": "a"}"#,
        r#"{"tag": 7, "text": "a"}"#,
        r#"{"tag": "a", "text": 7}"#,
        r#"{"tag": "a", "text": ""}"#,
        r#"{"tag": "", "text": "a"}"#,
        r#"{"tag": "a b", "text": "a"}"#,
        r#"{"tag": "../a", "text": "a"}"#,
        r#"{"tag": "a", "text": "a", "more": 1}"#,
        r#"{"tag": "a", "text": "a"} x"#,
        &long_tag,
    ] {
        let answer = server.post("/api/log", "application/json", body.as_bytes());
        assert_eq!((answer.status, answer.error_code().as_str()), (400, "request.invalid"), "{body}");
    }
    assert_eq!(server.post("/api/log", "application/json", b"{\"text\": \"\xff\"}").status, 400);
    assert_eq!(server.post("/api/log", "application/json", &b"[".repeat(10_000)).status, 400);
    assert_eq!(server.post("/api/log", "text/plain", b"\xff").status, 400);
    assert_eq!(server.post("/api/log?tag=a%20b", "text/plain", b"a").status, 400);
    assert_eq!(server.post("/api/log", "image/png", b"a").status, 415);
    assert_eq!(server.get("/api/log?since=x").status, 400);
    assert_eq!(server.get("/api/log?tag=%00").status, 400);

    let longest = "x".repeat(16 << 10);
    assert_eq!(server.post("/api/log", "text/plain", longest.as_bytes()).status, 200);
    for text in [longest.clone() + "x", "x".repeat(1 << 20)] {
        let answer = server.post("/api/log", "text/plain", text.as_bytes());
        assert_eq!((answer.status, answer.error_code().as_str()), (413, "request.too_large"));
    }
    // Escapes make the body longer, not the message.
    let escaped = format!(r#"{{"text": "{}"}}"#, "\\u0041".repeat(16 << 10));
    assert_eq!(server.post("/api/log", "application/json", escaped.as_bytes()).status, 200);

    let origin = |origin: &str| {
        let headers = [("origin", origin), ("content-type", "text/plain")];
        server.ask("POST", "/api/log", &headers, b"a").status
    };
    assert_eq!(origin(server.url.trim_end_matches('/')), 200);
    assert_eq!(
        (origin("http://evil.example"), origin("null"), origin("http://localhost:1")),
        (403, 403, 403)
    );
    assert_eq!(server.get("/api/log").json()["latest"], 3);
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

/// On the network, addresses are answered to, and the screen shows a code.
#[test]
fn on_the_network_a_code_is_shown() {
    let server = Server::start(&["--lan"]);
    assert!(server.url.starts_with("http://127.0.0.1:"), "{}", server.url);
    for host in ["192.168.0.2:11435", "desk.local", "localhost"] {
        assert_eq!(server.get_with("/api/health", &[("host", host)]).status, 200, "{host}");
    }
    assert_eq!(server.get_with("/api/health", &[("host", "evil.example")]).status, 403);
    let said = server.rest();
    // A machine without a network has no address to show.
    if said.contains("On this network") {
        assert!(said.contains("  http://") && said.contains("█▀▀▀▀▀█"), "{said}");
    }
}

#[test]
fn a_busy_port_is_an_error_only_if_it_was_asked_for() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = command(&["--port", &port]).stderr(std::process::Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&format!("port {port} of 127.0.0.1 is in use")), "{said}");
    assert!(said.contains("hint: give another --port"), "{said}");

    // Whether or not the usual port is free, two servers find one each.
    let (first, second) = (Server::start_plain(&[]), Server::start_plain(&[]));
    assert_ne!(first.url, second.url);
    assert_eq!(second.get("/api/health").status, 200);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_cleanly() {
    let (server, _store) = server();
    // A download that is under way does not hold it up.
    let mut stream = std::net::TcpStream::connect(server.authority()).unwrap();
    std::io::Write::write_all(
        &mut stream,
        format!("GET {WEIGHTS} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes(),
    )
    .unwrap();
    assert_eq!(server.interrupt(), Some(0));
}

#[test]
fn files_that_cannot_be_offered_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("text.gguf"), "no model").unwrap();
    let micro = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-Q8_0.gguf");
    let (text, none, nowhere) = (path("text.gguf"), path("none.gguf"), path("nowhere/log"));
    for arguments in [
        &["--model", text.as_str()][..],
        &["--model", none.as_str()],
        &["--model", micro, "--model", micro],
        &["--models", none.as_str()],
        &["--log-file", nowhere.as_str()],
    ] {
        let output = command(&[&["--port", "0"], arguments].concat()).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{arguments:?}");
    }
}
