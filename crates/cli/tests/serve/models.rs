//! The models: what is listed, and files whole, in parts and on conditions.

use std::fs;

use rullama_gguf::{ByteSource as _, HttpSource};
use serde_json::{Value, json};

use crate::{
    WEIGHTS,
    server::{Server, Store, command, noise},
    start,
};

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

/// A file given by its path has a weak tag and no date. A reader notices all the same when another file of the same size
/// takes its place.
#[tokio::test]
async fn a_replaced_file_is_noticed_by_our_own_reader() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.gguf");
    let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-Q8_0.gguf");
    let mut bytes = fs::read(testdata).unwrap();
    fs::write(&file, &bytes).unwrap();
    let server = Server::start(&["--model", file.to_str().unwrap()]);
    let source = HttpSource::open(format!("{}models/m.gguf", server.url)).await.unwrap();
    assert_eq!(source.read(0..100).await.unwrap(), bytes[..100]);
    assert_eq!(source.read(100..200).await.unwrap(), bytes[100..200]);

    *bytes.last_mut().unwrap() ^= 1;
    let other = folder.path().join("other");
    fs::write(&other, &bytes).unwrap();
    // Another time than that of the first file, however coarse the clock of the file system is.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(10);
    fs::File::options().write(true).open(&other).unwrap().set_modified(later).unwrap();
    fs::rename(&other, &file).unwrap();
    let error = source.read(200..300).await.unwrap_err();
    assert_eq!(error.code(), "source.changed", "{error}");
}

/// A damaged model in the first store hides no whole one in the second: what is listed can be read.
#[test]
fn a_damaged_model_hides_no_whole_one() {
    let (first, second) = (Store::new(), Store::new());
    let name = "registry.ollama.ai/library/gemma4/e2b";
    let [weights, projector] =
        ["model", "projector"].map(|kind| first.blob(kind, b"as long as it says, but no GGUF"));
    first.model(name, &[weights, projector]);
    let server = Server::start(&["--models", first.argument(), "--models", second.argument()]);
    let list = server.get("/api/models").json();
    let listed = list["models"].as_array().unwrap().iter().find(|model| model["name"] == "gemma4:e2b");
    assert_eq!(listed.unwrap()["bytes"], second.weights.len());
    assert!(server.get(WEIGHTS).body == second.weights);
    assert!(server.get("/projectors/gemma4:e2b").body == second.projector);
}

/// A machine without Ollama is served all the same.
#[test]
fn without_a_store_the_list_is_empty() {
    let server = Server::start(&[]);
    assert_eq!(server.get("/api/models").json(), json!({ "models": [] }));
}

#[test]
fn a_whole_model_has_its_digest_as_tag() {
    let (server, store) = start();
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
    let (server, store) = start();
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
    let (server, store) = start();
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
    let (server, store) = start();
    let mut stream = std::net::TcpStream::connect(server.authority()).unwrap();
    write!(stream, "GET {WEIGHTS} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut some = [0; 1000];
    stream.read_exact(&mut some).unwrap();
    assert!(server.get(WEIGHTS).body == store.weights);
    drop(stream);
    assert!(server.get(WEIGHTS).body == store.weights);
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
