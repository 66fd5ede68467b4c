//! The log that pages write to.

use std::fs;

use serde_json::{Value, json};

use crate::server::{Server, command};

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

/// Messages that JSON makes six times as long, read by clients that stop after the first bytes: an answer is made while it is
/// read, so that they cost next to nothing. (It would be 24 MiB for each if it were made at once.)
#[cfg(target_os = "linux")]
#[test]
fn readers_that_do_not_read_cost_little_memory() {
    use std::io::{Read as _, Write as _};

    let server = Server::start(&[]);
    let message = "\x01".repeat(16 << 10);
    for _ in 0..256 {
        assert_eq!(server.post("/api/log", "text/plain", message.as_bytes()).status, 200);
    }
    let peak = || {
        let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().to_owned();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let before = peak();
    let readers: Vec<_> = std::iter::repeat_with(|| {
        let mut stream = std::net::TcpStream::connect(server.authority()).unwrap();
        stream.write_all(b"GET /api/log HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        stream
    })
    .take(20)
    .collect();
    // Others are answered meanwhile, whole.
    let log = server.get("/api/log").json();
    assert_eq!(log["messages"].as_array().unwrap().len(), 256);
    assert_eq!(log["messages"][255]["text"], message);
    let grown = peak() - before;
    assert!(grown < 64 << 10, "{} readers took {grown} KiB", readers.len());
}

/// Where others can reach the server, the log needs the token; a page that was opened with it gets a cookie.
#[test]
fn on_a_network_the_log_needs_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let mut command = command(&["--port", "0", "--lan"]);
    let server = Server::spawn(command.stderr(fs::File::create(&said).unwrap()));
    assert!(!server.url.contains("token"), "{}", server.url);
    // Said before it answers.
    assert_eq!(server.get("/api/health").status, 200);
    let said = fs::read_to_string(&said).unwrap();
    let token = said.lines().find_map(|line| line.strip_prefix("log ")).unwrap();
    let token = token.split("?token=").nth(1).unwrap();

    let refused = server.get("/api/log");
    assert_eq!((refused.status, refused.error_code().as_str()), (403, "token.missing"));
    assert_eq!(server.post("/api/log", "text/plain", b"a").error_code(), "token.missing");
    assert_eq!(server.get("/?token=wrong").header("set-cookie"), "");

    let page = server.get(&format!("/?report&token={token}"));
    assert_eq!(page.status, 200);
    let cookie = page.header("set-cookie");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(server.ask("POST", "/api/log", &[("cookie", cookie)], b"one").json()["sequence"], 1);
    let read = server.get(&format!("/api/log?since=0&token={token}")).json();
    assert_eq!((&read["messages"][0]["text"], &read["latest"]), (&json!("one"), &json!(1)));
    let bearer = format!("Bearer {token}");
    assert_eq!(server.get_with("/api/log", &[("authorization", &bearer)]).status, 200);
}
