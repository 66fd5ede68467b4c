//! Puts the built web app and the demo model into the program, so that the program alone is enough.
//!
//! This script only reads files that are there. It never runs npm: `cargo xtask install` builds the app first and
//! installs the program then. Without a built app the program builds all the same, and `rullama serve` says what to
//! do. See docs/decisions/0018-embedded-app.md.

use std::{
    env,
    fmt::Write as _,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::{Path, PathBuf},
};

/// Where the repository has the built app and the demo model, seen from this package.
const APP: &str = "../../packages/app/dist";
const DEMO: &str = "../../models/demo.gguf";

fn main() -> io::Result<()> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let demo = fs::canonicalize(package.join(DEMO)).ok();
    let app = env::var_os("CARGO_FEATURE_EMBED_APP").is_some().then(|| package.join(APP));
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={DEMO}");
    if let Some(app) = &app {
        // Cargo would run this script before every build if the folder it watches did not exist.
        let _ = fs::create_dir_all(app);
        println!("cargo::rerun-if-changed={APP}");
    }
    let files = match &app {
        Some(app) if app.join("index.html").is_file() => files(&fs::canonicalize(app)?)?,
        Some(_) => {
            // Developers build without the app all day; users who install rullama want to know.
            if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
                println!(
                    "cargo::warning=the web app has not been built, so this rullama has no app to serve; \
                     `cargo xtask install` builds the app and installs rullama with it"
                );
            }
            Vec::new()
        }
        None => Vec::new(),
    };
    let output = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("embedded.rs");
    fs::write(output, source(demo.as_deref(), &files)?)
}

/// The files of a folder and of the folders in it, each with its path below the folder, sorted by that path.
fn files(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    let mut folders = vec![(String::new(), folder.to_owned())];
    while let Some((prefix, folder)) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().into_string().map_err(|_| io::ErrorKind::InvalidFilename)?;
            let path = format!("{prefix}{name}");
            // The server refuses names that begin with a dot, so they need no room in the program.
            if name.starts_with('.') {
                continue;
            }
            if entry.path().is_dir() {
                folders.push((format!("{path}/"), entry.path()));
            } else {
                found.push((path, entry.path()));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The Rust source of the tables that `src/embedded.rs` includes.
fn source(demo: Option<&Path>, files: &[(String, PathBuf)]) -> io::Result<String> {
    let mut text = String::new();
    let model = demo.map(fs::read).transpose()?;
    let demo = match demo {
        Some(path) => format!("Some(include_bytes!({path:?}))"),
        None => "None".to_owned(),
    };
    let _ = writeln!(text, "pub(crate) static DEMO: Option<&[u8]> = {demo};");
    let _ = writeln!(text, "pub(crate) static APP: &[Asset] = &[");
    for (name, path) in files {
        let bytes = fs::read(path)?;
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let tag = format!("\"{:016x}\"", hasher.finish());
        // The app has a copy of the demo model. One in the program is enough for both.
        let content = match &model {
            Some(model) if *model == bytes => "None".to_owned(),
            _ => format!("Some(include_bytes!({path:?}))"),
        };
        let _ = writeln!(text, "    Asset {{ path: {name:?}, tag: {tag:?}, content: {content} }},");
    }
    text.push_str("];\n");
    Ok(text)
}
