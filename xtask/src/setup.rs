//! Installs what the other commands need and this machine does not have.
//!
//! Looking is quick and changes nothing, so this runs before every command.

use std::{
    fs,
    io::IsTerminal as _,
    path::{Path, PathBuf},
};

use crate::shell::{complain, output, root, run, say};

/// The browser's target, and the one on which library tests run under Node.
pub(crate) const WASM: &str = "wasm32-unknown-unknown";
pub(crate) const WASI: &str = "wasm32-wasip1";

/// A Vulkan driver in software, two browsers with WebGPU, and what drives the first of them as a phone is driven.
const PACKAGES: [&str; 5] =
    ["libvulkan1", "mesa-vulkan-drivers", "chromium", "chromium-driver", "firefox-esr"];

/// Installs what is missing. False when something is missing that no command can do without.
pub(crate) fn install() -> bool {
    let targets = [WASM, WASI].into_iter().all(target);
    system_packages();
    targets && npm_packages()
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

/// Packages of Debian or Ubuntu; on another system, what to install instead.
fn system_packages() {
    if output(&["apt-get", "--version"]).is_none() {
        if cfg!(target_os = "linux") {
            say(
                "note: this is no Debian or Ubuntu. Tests on the GPU and in browsers need a Vulkan driver, Chromium \
                 with chromedriver and Firefox:\n  \
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
        return;
    }
    let missing: Vec<&str> = PACKAGES.into_iter().filter(|package| !is_installed(package)).collect();
    // What could not be had the last time is not asked for again each time.
    let given_up = root().join("target/packages-not-found");
    if missing.is_empty() || fs::read_to_string(&given_up).is_ok_and(|list| list == missing.join(" ")) {
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

/// The packages of every folder that has a lock file, where they are older than that.
fn npm_packages() -> bool {
    lock_files().iter().all(|lock| {
        let folder = lock.parent().unwrap_or(lock);
        let installed = folder.join("node_modules/.package-lock.json");
        let time = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
        if time(&installed).is_some_and(|installed| Some(installed) >= time(lock)) {
            return true;
        }
        let folder = folder.display().to_string();
        // Not `ci`: that refuses lock files without the packages that only other systems need, and no machine sees all of
        // these. What is in the lock file is installed as it says, and it stays as it is.
        run(&["npm", "install", "--no-save", "--no-audit", "--no-fund", "--prefix", &folder])
    })
}

fn lock_files() -> Vec<PathBuf> {
    let packages = fs::read_dir(root().join("packages")).into_iter().flatten().flatten();
    // What drives the browsers in tests is no package of ours.
    let folders = packages.map(|entry| entry.path()).chain([root().join("xtask/browser")]);
    folders.map(|folder| folder.join("package-lock.json")).filter(|path| path.is_file()).collect()
}
