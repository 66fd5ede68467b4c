//! Writes files that appear under their name only when they are complete.
//!
//! `tempfile` creates a file with an unpredictable name in the same folder, removes it if it is dropped, and renames it
//! when it is persisted. This module adds what a command promises besides: the bytes are on the disk before the file gets
//! its name, a signal stops the writing, and a file that is replaced keeps its permissions.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use rullama_gguf::WriteError;
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// Where the file goes: the path itself, or what it links to.
pub(crate) fn target(path: &Path) -> Result<PathBuf, Failure> {
    let refuse = |what: &str| {
        let message = format!("`{}` is {what}, so nothing was written", path.display());
        Err(Failure::new(message).hint("give the path of a file"))
    };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => refuse("a folder"),
        // Renaming a file over a device or a pipe would replace it.
        Ok(found) if !found.is_file() => refuse("not a regular file"),
        Ok(_) => Ok(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())),
        Err(_) if path.file_name().is_none() => refuse("not a file name"),
        Err(_) => Ok(path.to_owned()),
    }
}

/// The writer of a file. It fails once the program is asked to stop.
pub(crate) type Output<'s> = BufWriter<Stoppable<'s>>;

/// Who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Those who could read the file that it replaces, or else those whom the user's settings allow.
    Usual,
    /// Its owner only.
    Owner,
}

/// Writes a file with `write`, lets `check` look at it, and renames it to `target`. Returns its size.
pub(crate) fn create<E: From<WriteError>>(
    target: &Path,
    readers: Readers,
    stop: &AtomicBool,
    write: impl FnOnce(&mut Output<'_>) -> Result<(), E>,
    check: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<u64, E> {
    let io = |error: io::Error| E::from(WriteError::Io(error));
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let new = begin(folder, target, readers).map_err(io)?;
    // Weights come in large pieces; the buffer is for the padding between them.
    let mut output = BufWriter::with_capacity(1 << 16, Stoppable { file: new.as_file(), stop });
    write(&mut output)?;
    output.flush().map_err(io)?;
    drop(output);
    new.as_file().sync_all().map_err(io)?;
    let bytes = new.as_file().metadata().map_err(io)?.len();
    check(new.path())?;
    if stop.load(Ordering::Relaxed) {
        return Err(io(stopped()));
    }
    new.persist(target).map_err(|error| io(error.error))?;
    // The new name is on the disk once its folder is. Systems that can't sync a folder have written the file anyway.
    if cfg!(unix) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(bytes)
}

fn begin(folder: &Path, target: &Path, readers: Readers) -> io::Result<NamedTempFile> {
    let prefix = format!(".{}.", target.file_name().unwrap_or_default().to_string_lossy());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".partial").rand_bytes(12);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = if readers == Readers::Owner { 0o600 } else { 0o666 };
        // The system takes the user's mask off this, as for every new file.
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    // A missing folder is reported as the system reports it. The errors of `tempfile` name the temporary path, which means
    // nothing to the user, so only their kind is kept.
    fs::metadata(folder)?;
    let new = builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))?;
    if let (Readers::Usual, Ok(old)) = (readers, fs::metadata(target)) {
        // On a system that can't do this the new file has the usual permissions.
        let _ = new.as_file().set_permissions(old.permissions());
    }
    Ok(new)
}

/// A file that takes no more bytes once the program is asked to stop.
pub(crate) struct Stoppable<'s> {
    file: &'s File,
    stop: &'s AtomicBool,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn stopped() -> io::Error {
    io::Error::other("stopped")
}
