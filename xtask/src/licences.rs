//! The licences of everything that is compiled or bundled into rullama, for the archive that is given to others.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs, io,
    path::{Path, PathBuf},
};

use crate::shell::{output, root};

/// Files with one of these at the start of their name are licences or notices.
const NAMES: [&str; 5] = ["licen", "copying", "notice", "unlicense", "copyright"];

/// A library in the program.
struct Library {
    /// Its name and version.
    name: String,
    /// Its licence, as it declares it.
    declared: String,
    folder: Option<PathBuf>,
}

/// Every licence text once, with the libraries that come under it.
pub(crate) fn collect() -> io::Result<String> {
    let mut by_text: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut listed = BTreeSet::new();
    for library in crates()?.into_iter().chain(npm_packages()?) {
        let declared = if library.declared.is_empty() { "see below" } else { &library.declared };
        listed.insert(format!("{} ({declared})", library.name));
        for text in library.folder.iter().flat_map(|folder| texts(folder)) {
            by_text.entry(text).or_default().insert(library.name.clone());
        }
    }
    // Libraries under MPL-2.0 ask that this is said.
    let mut all = "rullama contains these libraries, unchanged. The sources of each are published under its name and version\n\
                   in the package registry of its language, that of Rust or npm.\n\n"
        .to_owned();
    listed.iter().for_each(|line| all.push_str(&format!("- {line}\n")));
    for (text, libraries) in by_text {
        let libraries: Vec<String> = libraries.into_iter().collect();
        all.push_str(&format!("\n{}\n{}\n\n{}\n", "-".repeat(80), libraries.join(", "), text.trim()));
    }
    Ok(all)
}

/// The crates that the program is made of, without our own.
fn crates() -> io::Result<Vec<Library>> {
    let words = ["cargo", "tree", "--package", "rullama", "--edges", "normal", "--prefix", "none"];
    let tree = output(&[&words[..], &["--format", "{p}|{l}"]].concat());
    let tree = tree.ok_or_else(|| io::Error::other("cargo can't list the dependencies"))?;
    let sources = sources()?;
    let mut found = BTreeMap::new();
    for line in tree.lines() {
        let Some((package, declared)) = line.split_once('|') else { continue };
        // `name v1.0.0`; our own crates have their folder behind.
        let mut words = package.split_whitespace();
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        if words.any(|word| word.starts_with("(/") || word.contains(":\\")) {
            continue;
        }
        let name = format!("{name} {}", version.trim_start_matches('v'));
        let folder = name.replace(' ', "-");
        let folder = sources.iter().map(|source| source.join(&folder)).find(|folder| folder.is_dir());
        let declared = declared.trim_end_matches(" (*)").to_owned();
        found.insert(name.clone(), Library { name, declared, folder });
    }
    Ok(found.into_values().collect())
}

/// Where cargo keeps the sources of registries.
fn sources() -> io::Result<Vec<PathBuf>> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let folder = home.ok_or(io::ErrorKind::NotFound)?.join("registry/src");
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

/// The npm packages that the app is bundled from, without our own.
fn npm_packages() -> io::Result<Vec<Library>> {
    let app = root().join("packages/app");
    let words = ["npm", "ls", "--omit=dev", "--all", "--parseable", "--prefix", &app.display().to_string()];
    let paths = output(&words).ok_or_else(|| io::Error::other("npm can't list the app's packages"))?;
    let modules = app.join("node_modules");
    let ours = root().join("packages/npm");
    let paths = paths.lines().map(PathBuf::from);
    let folders = paths
        .filter(|path| path.starts_with(&modules) && fs::canonicalize(path).is_ok_and(|real| real != ours));
    Ok(folders
        .map(|folder| Library {
            name: folder.strip_prefix(&modules).unwrap_or(&folder).display().to_string(),
            declared: String::new(),
            folder: Some(folder),
        })
        .collect())
}

/// The licences and notices in a library's folder.
fn texts(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_licence = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        path.is_file() && NAMES.iter().any(|start| name.starts_with(start))
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_licence).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

#[cfg(test)]
mod unit {
    use super::*;

    /// Crates of every kind are listed with the text of their licence; our own are not.
    #[test]
    fn the_crates_in_the_program_are_listed_with_their_licences() {
        let crates = crates().expect("cargo lists them");
        let find = |name: &str| crates.iter().find(|library| library.name.starts_with(name));
        for name in ["clap ", "wgpu ", "rustls ", "tokio "] {
            let library = find(name).unwrap_or_else(|| panic!("{name} is listed"));
            assert!(!library.declared.is_empty(), "{name}");
            let folder = library.folder.as_deref().unwrap_or_else(|| panic!("{name} has a folder"));
            assert!(
                texts(folder).iter().any(|text| text.contains("Permission") || text.contains("Apache")),
                "{name}"
            );
        }
        assert!(find("rullama").is_none());
    }
}
