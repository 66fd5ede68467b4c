//! Who may read what: paths that lead elsewhere, names of strangers, pages of other origins.

use std::fs;

use crate::{
    WEIGHTS,
    server::{Server, Store, app, command},
    start,
};

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

/// Every answer isolates its page, also one that is an error.
#[test]
fn every_answer_isolates_its_page() {
    let (server, _store) = start();
    let refused = server.get_with("/", &[("host", "evil.example")]);
    let answers = ["/", "/api/health", "/api/models", WEIGHTS, "/models/none", "/nothing.js"]
        .map(|path| server.get(path));
    for answer in answers.iter().chain([&refused]) {
        assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin");
        assert_eq!(answer.header("cross-origin-embedder-policy"), "require-corp");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("content-security-policy"), "frame-ancestors 'none'");
        assert_eq!(answer.header("access-control-allow-origin"), "");
    }
}

/// A stranger's name that was made to point here is refused.
#[test]
fn only_names_of_this_machine_are_answered() {
    let (server, _store) = start();
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
