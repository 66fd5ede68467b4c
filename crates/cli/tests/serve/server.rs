//! What tests of the server need: the program on a free port, a store to serve, and a client that sends exactly what
//! it is told, which well-behaved ones do not.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use rullama_gguf::ollama::Digest;
use serde_json::{Value, json};

/// The program itself.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rullama");

/// The program, serving. It ends with the test.
pub(crate) struct Server {
    child: Child,
    /// Held open, so that the program can go on printing.
    _output: BufReader<ChildStdout>,
    /// The first line it printed.
    pub(crate) url: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Server {
    /// Starts the program on a port that is free.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_plain(&[&["--port", "0"], arguments].concat())
    }

    /// Starts the program on whatever port the arguments say.
    pub(crate) fn start_plain(arguments: &[&str]) -> Self {
        Self::spawn(&mut command(arguments))
    }

    /// Starts the program, or a copy of it, in another folder, as users do: with the demo model.
    pub(crate) fn start_program(program: &Path, folder: &Path, arguments: &[&str]) -> Self {
        let mut command = command_of(program, arguments);
        command.current_dir(folder);
        Self::spawn(&mut command)
    }

    /// Starts the program as it is given.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        output.read_line(&mut url).unwrap();
        let url = url.strip_suffix('\n').unwrap_or_else(|| panic!("the program ended: {url:?}")).to_owned();
        Self { child, _output: output, url }
    }

    /// `127.0.0.1:PORT`
    pub(crate) fn authority(&self) -> &str {
        self.url.split("://").nth(1).unwrap().trim_end_matches('/')
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], b"")
    }

    pub(crate) fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask("GET", path, headers, b"")
    }

    pub(crate) fn post(&self, path: &str, content_type: &str, body: &[u8]) -> Answer {
        self.ask("POST", path, &[("content-type", content_type)], body)
    }

    /// Sends a request as it is given; a `host` header replaces the right one.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            request += &format!("host: {}\r\n", self.authority());
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("content-length: {}\r\n\r\n", body.len());
        self.send(&[request.as_bytes(), body].concat())
    }

    /// Sends bytes and reads until the server closes.
    pub(crate) fn send(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.authority()).unwrap();
        // A server that refuses a large body may close before it has read all of it.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        parse(&answer)
    }

    /// The number of the program's process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Interrupts the program as Ctrl-C does, and gives its exit status.
    #[cfg(unix)]
    pub(crate) fn interrupt(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The code of an error, which must have a message too.
    pub(crate) fn error_code(&self) -> String {
        let json = self.json();
        assert!(!json["error"]["message"].as_str().unwrap().is_empty());
        json["error"]["code"].as_str().unwrap().to_owned()
    }
}

fn parse(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(bytes)));
    let head = str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.map(|line| line.split_once(": ").unwrap());
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut answer = Answer { status, headers, body: bytes[end + 4..].to_vec() };
    if answer.header("transfer-encoding") == "chunked" {
        answer.body = joined(&answer.body);
    }
    answer
}

/// A body that came in chunks, each after its length in hexadecimal.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = chunks.windows(2).position(|window| window == b"\r\n").unwrap();
        let length = usize::from_str_radix(str::from_utf8(&chunks[..end]).unwrap(), 16).unwrap();
        body.extend_from_slice(&chunks[end + 2..][..length]);
        chunks = &chunks[end + 2 + length + 2..];
        if length == 0 {
            return body;
        }
    }
}

/// `rullama serve` without the demo model, never with the store or the certificate of whoever runs the tests.
pub(crate) fn command(arguments: &[&str]) -> Command {
    command_of(Path::new(PROGRAM), &[&["--no-demo"], arguments].concat())
}

/// `rullama serve`, never with the store or the certificate of whoever runs the tests.
pub(crate) fn command_of(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("serve").args(arguments).stderr(Stdio::null());
    for variable in ["OLLAMA_MODELS", "XDG_DATA_HOME", "HOME", "LOCALAPPDATA"] {
        command.env(variable, "/nonexistent");
    }
    command
}

/// A second name for the program, elsewhere; it is large, so that a copy is made only where it has to be.
pub(crate) fn install(place: &Path) {
    fs::hard_link(PROGRAM, place).or_else(|_| fs::copy(PROGRAM, place).map(drop)).unwrap();
}

/// A store with whole models, broken ones, and files that are none of anybody's business.
pub(crate) struct Store {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) weights: Vec<u8>,
    pub(crate) projector: Vec<u8>,
}

impl Store {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("blobs")).unwrap();
        let store = Self { folder, weights: noise(700_001), projector: noise(5_000) };
        let model = store.blob("model", &store.weights);
        let projector = store.blob("projector", &store.projector);
        let text = store.blob("system", b"Be brief.");
        store.model("registry.ollama.ai/library/gemma4/e2b", &[model.clone(), text.clone(), projector]);
        store.model("hf.co/user/repo.v1/Q4_K_M", std::slice::from_ref(&model));
        let mut cut = model;
        cut["size"] = json!(700_002);
        store.model("registry.ollama.ai/library/cut/latest", &[cut]);
        // Someone named a file that is no model as one.
        let secret = store.blob("model", b"root:x:0:0:secret");
        store.model("registry.ollama.ai/library/secret/latest", &[secret]);
        store.model("registry.ollama.ai/library/textonly/latest", &[text]);
        fs::write(store.path().join("secret.txt"), "GGUF secret").unwrap();
        store
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn argument(&self) -> &str {
        self.path().to_str().unwrap()
    }

    /// The tag that the weights must have.
    pub(crate) fn tag(&self) -> String {
        format!("\"{}\"", Digest::of(&self.weights))
    }

    pub(crate) fn blob(&self, kind: &str, content: &[u8]) -> Value {
        let digest = Digest::of(content);
        fs::write(self.path().join("blobs").join(digest.blob_name()), content).unwrap();
        let media = format!("application/vnd.ollama.image.{kind}");
        json!({ "mediaType": media, "digest": digest.to_string(), "size": content.len() })
    }

    pub(crate) fn model(&self, path: &str, layers: &[Value]) {
        let config = json!({ "model_format": "gguf", "model_family": "gemma4", "model_type": "5.1B",
                             "file_type": "Q4_K_M" });
        let config = self.blob("config", config.to_string().as_bytes());
        let path = self.path().join("manifests").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, json!({ "schemaVersion": 2, "config": config, "layers": layers }).to_string())
            .unwrap();
    }
}

/// Bytes that begin like a GGUF and are different everywhere.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = length as u32;
    let mut bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(length)
    .collect();
    bytes[..4].copy_from_slice(b"GGUF");
    bytes
}

/// A built app, as a bundler leaves it, with things beside it that are not part of it.
pub(crate) fn app() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let dist = folder.path().join("dist");
    fs::create_dir_all(dist.join("assets")).unwrap();
    fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    for name in [
        "index.html",
        "service-worker.js",
        "manifest.webmanifest",
        "icon.svg",
        "icon.png",
        "data.json",
        ".hidden",
        "assets/index-BfX1k2Yz.js",
        "assets/index-C0ffee12.css",
        "assets/engine-D-x_1abc.wasm",
        "assets/plain.js",
    ] {
        fs::write(dist.join(name), format!("this is {name}")).unwrap();
    }
    (folder, dist)
}
