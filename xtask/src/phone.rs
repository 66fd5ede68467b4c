//! `cargo xtask phone`: the app in the browser of a phone, driven over WebDriver. The walk itself is a script in
//! `xtask/phone`, because all that it says to the page is JavaScript.

use std::process::Command;

use crate::shell::{complain, root};

/// Starts the walk where the user is, so that paths mean what they seem to. Gives the status to exit with, which
/// tells a wrong command line from a walk that failed.
pub(crate) fn run(arguments: &[&str]) -> u8 {
    match Command::new("node").arg(root().join("xtask/phone/phone.mjs")).args(arguments).status() {
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
        Err(error) => {
            complain(&format!("Node (20 or later) walks, and cannot be started: {error}"));
            1
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn the_status_is_the_walk_s_own() {
        assert_eq!(run(&["--help"]), 0);
        assert_eq!(run(&["--no-such-option"]), 2);
        // Nobody listens at a port that was free a moment ago.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = format!("http://{}", listener.local_addr().expect("it has an address"));
        drop(listener);
        assert_eq!(run(&["--driver", &address]), 1);
    }
}
