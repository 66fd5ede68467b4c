//! Where the program finds what comes with it: the web app and the demo model.
//!
//! It looks beside itself and in the checkout it was built from, and nowhere else. The current folder may be anybody's
//! checkout, and so may a folder above the program: what lies there must not run on the origin that holds the user's
//! chats.

use std::path::{Path, PathBuf};

/// The program's own folder, without links.
pub(crate) fn folder() -> Option<PathBuf> {
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).ok()?;
    program.parent().map(Path::to_owned)
}

/// The checkout that the program was built from, which is where `cargo install` and `cargo xtask run` leave the app and
/// the demo model.
pub(crate) fn checkout() -> Option<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_owned)
}
