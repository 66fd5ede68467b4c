//! The app's files, and what is shown without them.

use std::{fs, path::Path};

use crate::{
    WEIGHTS,
    server::{PROGRAM, Server, app, command, install},
};

/// A model that is not the demo model.
const OTHER_MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-Q8_0.gguf");

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
fn a_folder_without_an_app_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, expected) = (folder.path().join("none"), "has no index.html");
    let output = command(&["--port", "0", "--app", missing.to_str().unwrap()])
        .stderr(std::process::Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains(expected));
}

/// What lies in the current folder, or above the program, may be anybody's: neither is served.
#[test]
fn only_the_program_s_own_app_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let foreign = folder.join("packages/app/dist");
    fs::create_dir_all(&foreign).unwrap();
    fs::write(foreign.join("index.html"), "a foreign app").unwrap();
    fs::create_dir_all(folder.join("app")).unwrap();
    fs::write(folder.join("app/index.html"), "a foreign app").unwrap();
    fs::write(folder.join("Cargo.toml"), "").unwrap();
    fs::create_dir(folder.join("models")).unwrap();
    fs::copy(OTHER_MODEL, folder.join("models/demo.gguf")).unwrap();
    fs::create_dir(folder.join("bin")).unwrap();
    let copy = folder.join("bin/rullama");
    install(&copy);

    for program in [Path::new(PROGRAM), &copy] {
        let server = Server::start_program(program, folder, &["--port", "0"]);
        assert_ne!(server.get("/").text(), "a foreign app", "{}", program.display());
        let listed = server.get("/api/models").json();
        assert_ne!(listed["models"][0]["bytes"], fs::metadata(OTHER_MODEL).unwrap().len());
    }

    // Beside the program lies its own.
    fs::create_dir(folder.join("bin/app")).unwrap();
    fs::write(folder.join("bin/app/index.html"), "its own app").unwrap();
    let server = Server::start_program(&copy, folder, &["--port", "0"]);
    assert_eq!(server.get("/").text(), "its own app");
}
