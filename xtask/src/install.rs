//! `cargo xtask install`: installs rullama with the web app inside.
//!
//! `cargo install --path crates/cli` embeds the app only if it has been built, because a build script must not run npm.

use crate::{app, setup, shell::run};

/// Builds the app, then installs the program. Further arguments go to `cargo install`.
pub(crate) fn run_with(arguments: &[&str]) -> bool {
    let install = ["cargo", "install", "--locked", "--path", "crates/cli"];
    setup::for_running() && app::build() && run(&[&install[..], arguments].concat())
}
