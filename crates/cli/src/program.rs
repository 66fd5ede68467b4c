//! Where this program lies: what comes with it is found from there.

use std::path::{Path, PathBuf};

/// The program's folder and those above it, the nearest first, without links.
pub(crate) fn folders() -> Vec<PathBuf> {
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
    program.ancestors().skip(1).map(Path::to_owned).collect()
}
