//! `cargo xtask run`: builds rullama and starts it.

use crate::{app, shell::run as shell_run};

/// With arguments, runs the command line program with them; without, builds the web app and serves it.
pub(crate) fn run(arguments: &[&str]) -> bool {
    let start = ["cargo", "run", "--quiet", "--release", "--package", "rullama", "--"];
    if !arguments.is_empty() {
        return shell_run(&[&start[..], arguments].concat());
    }
    app::build() && shell_run(&[&start[..], &["serve", "--open"]].concat())
}
