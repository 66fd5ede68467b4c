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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    is_ours(folder).then(|| folder.to_owned())
}

/// Whether a folder belongs to this user or to the administrator, and nobody else can write to it. The path of the checkout
/// is fixed when the program is built: on the machine where the program runs, it may be another person's folder.
#[cfg(unix)]
fn is_ours(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    // The owner of a folder that this process has just made is the user it runs as; /proc says the same without one.
    let Ok(metadata) = std::fs::metadata(folder) else { return false };
    let user = std::fs::metadata("/proc/self").map(|process| process.uid());
    let owned = metadata.uid() == 0 || user.is_ok_and(|user| user == metadata.uid());
    owned && metadata.mode() & 0o022 == 0
}

/// Elsewhere, permissions are not modes; folders of other users are not writable by default.
#[cfg(not(unix))]
fn is_ours(folder: &Path) -> bool {
    folder.is_dir()
}

#[cfg(all(test, unix))]
mod unit {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn a_checkout_that_others_can_write_to_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for (mode, expected) in
            [(0o755, true), (0o700, true), (0o775, false), (0o777, false), (0o1777, false)]
        {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_ours(path), expected, "{mode:o}");
        }
        assert!(!is_ours(&path.join("missing")));
    }
}
