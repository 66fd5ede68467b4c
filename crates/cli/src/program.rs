//! The folder of the program, which may hold an app or a demo model in place of the embedded ones.
//!
//! Nothing is looked for in the current folder or in a folder above the program: anyone may have put files there, and
//! the app runs on the origin that holds the user's chats.

use std::path::{Path, PathBuf};

/// The program's own folder, with links resolved.
pub(crate) fn folder() -> Option<PathBuf> {
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).ok()?;
    program.parent().map(Path::to_owned)
}
