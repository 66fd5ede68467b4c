//! `cargo xtask package`: one archive to give to others, with a program that contains the web app and the demo model.
//!
//! `target/package/rullama-VERSION-TARGET.tar.gz` (a zip file on Windows) holds a folder of the same name with the program,
//! a short README and the licences of rullama and of everything in it.

use std::{
    env, fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{
    app, licences, setup,
    shell::{complain, output, root, run, say},
    web::clear,
};

const PROGRAM: &str = if cfg!(windows) { "rullama.exe" } else { "rullama" };
const ENDING: &str = if cfg!(windows) { "zip" } else { "tar.gz" };

/// How the program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// For users.
    Release,
    /// For the test of the archive: the program that the other tests have built.
    Dev,
}

/// Builds the app and the program, and writes the archive.
pub(crate) fn run_all(profile: Profile) -> bool {
    if !(setup::for_running() && app::build()) {
        complain("error: the web app could not be built, so there is nothing to package");
        return false;
    }
    let archive = build(profile);
    if let Some(archive) = &archive {
        say(&format!("\n{}", archive.display()));
    }
    archive.is_some()
}

/// Writes the archive with the app as it has been built.
fn build(profile: Profile) -> Option<PathBuf> {
    if !app::mark_as_new() {
        return None;
    }
    let (folder, built) = match profile {
        Profile::Release => ("release", run(&["cargo", "build", "--package", "rullama", "--release"])),
        Profile::Dev => ("debug", run(&["cargo", "build", "--package", "rullama"])),
    };
    let program = env::current_exe().ok()?.parent()?.parent()?.join(folder).join(PROGRAM);
    let name = format!("rullama-{}-{}", env!("CARGO_PKG_VERSION"), target()?);
    let parent = root().join("target/package");
    let staged = parent.join(&name);
    if !(built && clear(&staged)) {
        return None;
    }
    let fill = || -> io::Result<()> {
        fs::create_dir_all(&staged)?;
        fs::copy(&program, staged.join(PROGRAM))?;
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            fs::copy(root().join(licence), staged.join(licence))?;
        }
        fs::write(staged.join("README.md"), readme())?;
        fs::write(staged.join("THIRD-PARTY.txt"), licences::collect()?)
    };
    if let Err(error) = fill() {
        complain(&format!("error: {} can't be filled: {error}", staged.display()));
        return None;
    }
    let archive = parent.join(format!("{name}.{ENDING}"));
    // Windows' own tar writes a zip file for that ending; everywhere else -z compresses.
    let kind = if cfg!(windows) { "-acf" } else { "-czf" };
    let parent = parent.display().to_string();
    let words = ["tar", "-C", &parent, kind, &archive.display().to_string(), &name];
    run(&words).then_some(archive)
}

/// The system that the program is for, as rustc calls it.
fn target() -> Option<String> {
    let version = output(&["rustc", "--version", "--verbose"])?;
    version.lines().find_map(|line| Some(line.strip_prefix("host: ")?.to_owned()))
}

fn readme() -> String {
    format!(
        "# rullama {}\n\n\
         Run Google's Gemma 4 models on your own machine. The program `{PROGRAM}` is all there is to install: the web app and\n\
         a small demo model are inside. Move it to a folder on your PATH, or run it from here:\n\n\
         ```console\n\
         $ ./rullama generate \"What is rullama?\"   # ask the demo model\n\
         $ ./rullama run gemma4:e2b                # chat with a model that Ollama has downloaded\n\
         $ ./rullama serve --open                  # open the web app in your browser\n\
         $ ./rullama doctor                        # check the GPU\n\
         $ ./rullama --help\n\
         ```\n\n\
         rullama needs a Vulkan driver on Linux; macOS and Windows need nothing. Without a GPU it uses the CPU, which is slow\n\
         for large models.\n\n\
         rullama is licensed under MIT or Apache-2.0, as you prefer. THIRD-PARTY.txt has the licences of the libraries in it.\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// Packages the app and the program that the other tests have built, unpacks the archive elsewhere and uses it.
pub(crate) fn test() -> bool {
    let Some(archive) = build(Profile::Dev) else { return false };
    let folder = env::temp_dir().join(format!("rullama-package-{}", std::process::id()));
    let used = clear(&folder) && use_archive(&archive, &folder);
    clear(&folder) && used
}

fn use_archive(archive: &Path, folder: &Path) -> bool {
    let unpack = || -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let folder_text = folder.display().to_string();
        if !run(&["tar", "-C", &folder_text, "-xf", &archive.display().to_string()]) {
            return Err(io::Error::other("tar failed"));
        }
        let inside = fs::read_dir(folder)?.next().ok_or(io::ErrorKind::NotFound)??.path();
        Ok(inside)
    };
    let checked = unpack().and_then(|inside| {
        for name in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"] {
            expect(fs::metadata(inside.join(name))?.len() > 500, &format!("{name} is in the archive"))?;
        }
        answers(&inside)?;
        serves(&inside)
    });
    if let Err(error) = &checked {
        complain(&format!("error: the package does not work: {error}"));
    }
    checked.is_ok()
}

fn expect(holds: bool, what: &str) -> io::Result<()> {
    if holds { Ok(()) } else { Err(io::Error::other(format!("expected that {what}"))) }
}

/// The unpacked program, away from the repository and without anybody's models.
fn program(inside: &Path) -> Command {
    let mut command = Command::new(inside.join(PROGRAM));
    command.current_dir(inside).env("OLLAMA_MODELS", inside.join("none")).stdin(Stdio::null());
    command
}

fn answers(inside: &Path) -> io::Result<()> {
    let question =
        ["generate", "What is rullama?", "--backend", "cpu", "--think", "off", "--temperature", "0"];
    let said = program(inside).args(question).stderr(Stdio::inherit()).output()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    expect(said.contains("Gemma 4"), &format!("the demo model says what rullama is, and not {said:?}"))
}

/// Ends a program when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serves(inside: &Path) -> io::Result<()> {
    let mut command = program(inside);
    command.args(["serve", "--port", "0"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Running(command.spawn()?);
    let stdout = server.0.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut url = String::new();
    BufReader::new(stdout).read_line(&mut url)?;
    let host = url.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let get = |path: &str| -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(&host)?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end =
            answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
        Ok(answer.split_off(end + 4))
    };
    let dist = root().join("packages/app/dist");
    for file in ["index.html", "manifest.webmanifest"] {
        expect(get(&format!("/{file}"))? == fs::read(dist.join(file))?, &format!("{file} is the app's"))?;
    }
    expect(get("/")? == fs::read(dist.join("index.html"))?, "the first page is the app's")?;
    let models = String::from_utf8_lossy(&get("/api/models")?).into_owned();
    expect(models.contains("\"demo.gguf\""), "the demo model is listed")?;
    expect(
        get("/models/demo.gguf")? == fs::read(root().join("models/demo.gguf"))?,
        "the demo model is served",
    )
}
