//! Installs what the other commands need, if it is missing.
//!
//! Checking is quick and changes nothing, so it runs before every command.

use std::{fs, io::IsTerminal as _, path::Path};

use crate::shell::{command, complain, output, root, run, say};

/// The browser's target, and the one on which library tests run under Node.
pub(crate) const WASM: &str = "wasm32-unknown-unknown";
pub(crate) const WASI: &str = "wasm32-wasip1";

/// The versions of Node that Vite runs on, as people read them. [`runs_vite`] checks them.
const NODE_VERSIONS: &str = "20.19 or later in the 20 series, or 22.12 or later";

/// The version of cargo-deny that reads `deny.toml`.
const CARGO_DENY: &str = "0.20.2";

/// What starts a GPU, and one in software where there is no other.
const DRIVERS: [&str; 2] = ["libvulkan1", "mesa-vulkan-drivers"];

/// Two browsers with WebGPU, and what drives the first of them as a phone is driven.
const BROWSERS: [&str; 3] = ["chromium", "chromium-driver", "firefox-esr"];

/// Installs what the npm package is built with. False when something of it is missing.
pub(crate) fn for_web() -> bool {
    node() && target(WASM) && rust_sources() && npm_packages(&["packages/npm"])
}

/// Installs what building and serving the app takes. False when something of it is missing. A browser is the user's own.
pub(crate) fn for_running() -> bool {
    if !(node() && target(WASM) && rust_sources() && npm_packages(&["packages/npm", "packages/app"])) {
        return false;
    }
    // Programs start without, and say that there is no GPU.
    if has_apt() {
        system_packages(&DRIVERS);
    }
    true
}

/// Installs what `test --quick` needs: no browsers, no npm packages, and nothing that has to be compiled. False when something is missing.
pub(crate) fn for_quick_tests() -> bool {
    if has_apt() {
        system_packages(&DRIVERS);
    }
    true
}

/// Installs what the tests need besides. False when something is missing that no test can do without.
pub(crate) fn for_tests() -> bool {
    let targets = [WASM, WASI].into_iter().all(target) && rust_sources();
    if has_apt() {
        system_packages(&[&DRIVERS[..], &BROWSERS].concat());
    } else {
        advise_other_systems();
    }
    // What drives the browsers is no package of ours.
    python_packages()
        && node()
        && targets
        && npm_packages(&["packages/npm", "packages/app", "xtask/browser"])
        && for_audit()
}

/// Installs what checks dependencies. False when it is missing.
pub(crate) fn for_audit() -> bool {
    tool("cargo-deny", CARGO_DENY)
}

/// The program that checks dependencies, in the version that `for_audit` installs.
pub(crate) fn cargo_deny() -> String {
    root().join("target/tools/bin/cargo-deny").display().to_string()
}

/// Compiles a program of the registry into `target/tools`. Without optimisation, which would take longer than the program
/// ever runs.
fn tool(name: &str, version: &str) -> bool {
    let program = root().join("target/tools/bin").join(name).display().to_string();
    if output(&[&program, "--version"]).is_some_and(|text| text.trim_end().ends_with(version)) {
        return true;
    }
    let words =
        ["cargo", "install", name, "--version", version, "--locked", "--debug", "--root", "target/tools"];
    say(&format!("$ {}", words.join(" ")));
    let mut install = command(&words);
    install.envs([("CARGO_PROFILE_DEV_DEBUG", "false"), ("CARGO_INCREMENTAL", "0")]);
    let installed = install.status().is_ok_and(|status| status.success());
    if !installed {
        complain(&format!(
            "error: {name} {version} can't be installed; it checks the project's dependencies"
        ));
    }
    installed
}

/// The Python of the tests of `tools`, with packages of its own.
pub(crate) fn python() -> String {
    root().join("target/python/bin/python").display().to_string()
}

/// Installs the packages of Python that the tests of `tools` need.
fn python_packages() -> bool {
    let python = python();
    output(&[&python, "-c", "import numpy, tokenizers"]).is_some()
        || python_folder("target/python", "tools/demo-model/requirements-tests.txt")
}

/// The Python that makes the demo model's goldens. None where its packages, some gigabytes, cannot be installed.
pub(crate) fn goldens_python() -> Option<String> {
    let folder = "target/python-goldens";
    python_folder(folder, "tools/demo-model/requirements-goldens.txt")
        .then(|| root().join(folder).join("bin/python").display().to_string())
}

/// Makes a folder with a Python of its own and the packages that a file of requirements names.
fn python_folder(folder: &str, requirements: &str) -> bool {
    let python = root().join(folder).join("bin/python").display().to_string();
    let install = [python.as_str(), "-m", "pip", "install", "--quiet", "--requirement", requirements];
    let installed = run(&["python3", "-m", "venv", folder]) && run(&install);
    if !installed {
        complain(&format!(
            "error: this needs Python with the modules venv and pip, and the packages in {requirements}"
        ));
    }
    installed
}

/// Whether words can be recorded, for goldens of sounds.
pub(crate) fn speech() -> bool {
    if has_apt() {
        system_packages(&["espeak-ng", "sox"]);
    }
    ["espeak-ng", "sox"].iter().all(|program| output(&[program, "--version"]).is_some())
}

/// Whether there is Node, which set-up cannot install.
fn node() -> bool {
    let found = output(&["node", "--version"]);
    let there = found.as_deref().is_some_and(runs_vite);
    if !there {
        let found = found.map_or("is not installed".to_owned(), |version| format!("is {}", version.trim()));
        complain(&format!(
            "error: building the web app needs Node {NODE_VERSIONS}, but Node {found}\n\n\
             hint: install it from https://nodejs.org, or with your package manager if that has such a version"
        ));
    }
    there
}

/// Whether Vite runs on this version of Node, such as `v22.12.0`: it needs `^20.19.0 || >=22.12.0`.
fn runs_vite(version: &str) -> bool {
    let mut numbers =
        version.trim().trim_start_matches('v').split('.').map_while(|number| number.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(20), Some(minor)) => minor >= 19,
        (Some(22), Some(minor)) => minor >= 12,
        (Some(major), _) => major > 22,
        (None, _) => false,
    }
}

/// A target of the Rust toolchain.
fn target(target: &str) -> bool {
    let libraries = output(&["rustc", "--print", "target-libdir", "--target", target]);
    if libraries.is_some_and(|folder| Path::new(folder.trim()).is_dir()) {
        return true;
    }
    if run(&["rustup", "target", "add", target]) {
        return true;
    }
    complain(&format!("the Rust target {target} is missing. Install it with:\n  rustup target add {target}"));
    false
}

/// The sources of the standard library, which the wasm file with threads compiles anew.
fn rust_sources() -> bool {
    let library = "lib/rustlib/src/rust/library/Cargo.lock";
    let found = output(&["rustc", "--print", "sysroot"]).map(|folder| Path::new(folder.trim()).join(library));
    if found.is_some_and(|file| file.is_file()) || run(&["rustup", "component", "add", "rust-src"]) {
        return true;
    }
    complain(
        "the sources of Rust's standard library are missing. Install them with:\n  rustup component add rust-src",
    );
    false
}

/// Whether this system has Debian's packages.
fn has_apt() -> bool {
    output(&["apt-get", "--version"]).is_some()
}

/// Says what the tests need where set-up cannot install it.
fn advise_other_systems() {
    if cfg!(target_os = "linux") {
        say(
            "note: set-up installs system packages on Debian and Ubuntu only. Tests on the GPU and in browsers need a Vulkan \
             driver, Chromium with chromedriver, and Firefox:\n  \
             Fedora   sudo dnf install vulkan-loader mesa-vulkan-drivers chromium chromedriver firefox\n  \
             Arch     sudo pacman -S vulkan-icd-loader vulkan-swrast chromium firefox",
        );
    } else if cfg!(target_os = "macos") {
        let apps = ["Google Chrome", "Firefox"].map(|name| format!("/Applications/{name}.app"));
        let driver = output(&["chromedriver", "--version"]).is_some();
        if !driver || !apps.iter().all(|app| Path::new(app).exists()) {
            say("note: tests in browsers need all of these:\n  \
                 brew install --cask google-chrome chromedriver firefox");
        }
    } else if cfg!(windows) {
        say("note: tests in browsers need all of these:\n  \
             winget install Google.Chrome Chromium.ChromeDriver Mozilla.Firefox");
    }
}

/// Installs packages of Debian or Ubuntu.
fn system_packages(packages: &[&str]) {
    let missing: Vec<&str> = packages.iter().copied().filter(|package| !is_installed(package)).collect();
    // What could not be had the last time is not asked for again each time.
    let given_up = root().join("target/packages-not-found");
    let known = fs::read_to_string(&given_up).unwrap_or_default();
    let known: Vec<&str> = known.split_whitespace().collect();
    if missing.iter().all(|package| known.contains(package)) {
        return;
    }
    let is_root = output(&["id", "-u"]).is_some_and(|user| user.trim() == "0");
    // Without a terminal nobody could answer when sudo asks for a password.
    let sudo: &[&str] = if is_root {
        &[]
    } else if std::io::stdin().is_terminal() {
        &["sudo"]
    } else {
        &["sudo", "--non-interactive"]
    };
    run(&[sudo, &["apt-get", "update", "--quiet"]].concat());
    // One by one, so that one that does not exist here does not keep the others away.
    let install = ["apt-get", "install", "--quiet", "--yes", "--no-install-recommends"];
    let failed: Vec<&str> =
        missing.into_iter().filter(|package| !run(&[sudo, &install, &[package]].concat())).collect();
    if failed.is_empty() {
        return;
    }
    let list = failed.join(" ");
    complain(&format!(
        "note: some system packages could not be installed. Install them with:\n  \
         sudo apt-get update\n  sudo apt-get install {list}"
    ));
    // Nothing is lost when this cannot be written but some time.
    let _ = fs::create_dir_all(root().join("target")).and_then(|()| fs::write(given_up, list));
}

fn is_installed(package: &str) -> bool {
    output(&["dpkg-query", "--show", "--showformat=${db:Status-Status}", package])
        .is_some_and(|status| status == "installed")
}

/// The packages that the lock files of these folders name, where what is installed is older than the lock file.
fn npm_packages(folders: &[&str]) -> bool {
    folders.iter().map(|folder| root().join(folder)).all(|folder| {
        let installed = folder.join("node_modules/.package-lock.json");
        let time = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
        if time(&installed)
            .is_some_and(|installed| Some(installed) >= time(&folder.join("package-lock.json")))
        {
            return true;
        }
        let folder = folder.display().to_string();
        run(&["npm", "ci", "--no-audit", "--no-fund", "--prefix", &folder])
    })
}

#[cfg(test)]
mod tests {
    use super::runs_vite;

    #[test]
    fn vite_needs_some_versions_of_node() {
        for version in ["v20.19.0\n", "v20.20.1", "v22.12.0", "v23.0.0", "v24.1.0"] {
            assert!(runs_vite(version), "{version}");
        }
        for version in ["v18.20.4", "v20.18.3", "v21.7.3", "v22.11.0", "", "node"] {
            assert!(!runs_vite(version), "{version}");
        }
    }
}
