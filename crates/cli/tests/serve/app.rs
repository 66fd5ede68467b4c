//! The app's files, and what is shown without them.

use crate::{
    WEIGHTS,
    server::{Server, app, command, install},
};

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
    for page in ["/", "/chat", "/assets", "/?model=gemma4:e2b", "/a%20b"] {
        let answer = server.get(page);
        assert_eq!((answer.status, answer.text()), (200, "this is index.html"), "{page}");
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        assert_eq!(answer.header("cache-control"), "no-cache");
    }
    // Below them, what the page names beside itself would not be found.
    for deep in ["/chat/12", "/settings/", "/a/b/c"] {
        let answer = server.get(deep);
        assert_eq!((answer.status, answer.header("location")), (307, "/"), "{deep}");
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
    install(&copy);
    let server = Server::start_program(&copy, folder.path(), &["--port", "0"]);
    for page in ["/", "/chat"] {
        let answer = server.get(page);
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains("cargo xtask run"), "{}", answer.text());
    }
    assert_eq!(server.get("/favicon.ico").status, 404);
}
