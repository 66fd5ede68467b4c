//! Files that appear under their name only when they are whole.
//!
//! A file is written under another name in the same folder, forced to the disk and then renamed, so that nobody finds half
//! a file, not even after a power cut, and a file that is replaced is there until the new one is. If the new file
//! cannot be completed, or a signal asks the program to end, what was written is removed.
//!
//! The temporary name cannot be foreseen and must be new: otherwise a link of that name, put into a shared folder
//! beforehand, would have the program overwrite what the link leads to.

use std::{
    fs::{self, File},
    io::{self, BufWriter, ErrorKind, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rullama_gguf::WriteError;
use tempfile::{NamedTempFile, TempPath};

use crate::{failure::Failure, output, signals};

/// What becomes true when the user presses Ctrl-C, or something else asks the program to end. From now on that does
/// not end the program by itself.
pub(crate) fn stop_on_signal() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    // Listened to before the file is begun, not when the task first runs.
    let signalled = signals::end_or_hang_up()?;
    // Not awaited: it ends with the program.
    tokio::spawn(async move {
        signalled.await;
        stopped.store(true, Ordering::Relaxed);
    });
    Ok(stop)
}

/// The file that the new one replaces: where the path leads, if it is a link.
pub(crate) fn target(path: &Path) -> Result<PathBuf, Failure> {
    let refuse = |what: &str| {
        let message = format!("`{}` is {what}, so nothing was written to it", path.display());
        Err(Failure::new(message).hint("give the path of a file"))
    };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => refuse("a folder"),
        // A device or a pipe would be replaced, not written to.
        Ok(found) if !found.is_file() => refuse("no regular file"),
        Ok(_) => Ok(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())),
        Err(_) if path.file_name().is_none() => refuse("no name for a file"),
        Err(_) => Ok(path.to_owned()),
    }
}

/// What a file is written through: it takes no more bytes once the program is asked to end.
pub(crate) type Output<'s> = BufWriter<Stoppable<'s, File>>;

/// Who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Those who could read the file that it replaces; else those whom the user's settings allow.
    Usual,
    /// Its owner.
    Owner,
}

/// Writes a file by `write`, has it looked at by `check` and gives it its name; tells its size.
pub(crate) fn create<E: From<WriteError>>(
    target: &Path,
    readers: Readers,
    stop: &AtomicBool,
    write: impl FnOnce(&mut Output<'_>) -> Result<(), E>,
    check: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<u64, E> {
    let io = |error: io::Error| E::from(WriteError::Io(error));
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Removed when it is dropped, unless it got its name.
    let (file, path) = begin(folder, target, readers).map_err(io)?.into_parts();
    // Weights come in large pieces; this is for the padding between them.
    let mut output = BufWriter::with_capacity(1 << 16, Stoppable { output: file, stop });
    write(&mut output)?;
    let file = output.into_inner().map_err(|error| io(error.into_error()))?.output;
    let bytes = file.metadata().map_err(io)?.len();
    file.sync_all().map_err(io)?;
    // Closed first: some systems do not rename a file that is open.
    drop(file);
    check(&path)?;
    complete(path, folder, target, stop).map_err(io)?;
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
        // The user's mask is taken off this, as for every new file.
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    let new = builder.tempfile_in(folder)?;
    if let (Readers::Usual, Ok(old)) = (readers, fs::metadata(target)) {
        // A system that cannot do this gives the new file the usual readers.
        let _ = new.as_file().set_permissions(old.permissions());
    }
    Ok(new)
}

/// Gives a file its name, and makes sure that it keeps it.
fn complete(path: TempPath, folder: &Path, target: &Path, stop: &AtomicBool) -> io::Result<()> {
    if stop.load(Ordering::Relaxed) {
        return Err(io::Error::other("stopped"));
    }
    path.persist(target).map_err(|error| error.error)?;
    // A name is on the disk when its folder is. Not every system lets a program see to that, and the file is whole either way.
    if cfg!(unix) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

/// Takes no more bytes once it is told to stop.
pub(crate) struct Stoppable<'s, W> {
    output: W,
    stop: &'s AtomicBool,
}

impl<W: Write> Write for Stoppable<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("stopped"));
        }
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Why a file could not be written.
pub(crate) fn refused(path: &Path, error: io::Error, needed: u64) -> Failure {
    let kind = error.kind();
    let failure = Failure::new(format!("`{}` cannot be written", path.display())).caused_by(error);
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            failure.hint(format!("the file needs {}; nothing of it was kept", output::size(needed)))
        }
        ErrorKind::NotFound => failure.hint("the folder must exist"),
        _ => failure,
    }
}

/// The user, or the system, asked the program to end.
pub(crate) fn stopped(path: &Path) -> Failure {
    Failure::new(format!("`{}` was not written: the program was stopped", path.display()))
}

/// Tells what was made of a model, and how fast.
pub(crate) fn describe(
    path: &Path,
    tensors: usize,
    parameters: u64,
    bytes: u64,
    took: Duration,
) -> Result<(), Failure> {
    let took = took.max(Duration::from_millis(1)).as_secs_f64();
    let rate = output::size((bytes as f64 / took) as u64);
    Ok(output::table(&[
        vec!["file".to_owned(), path.display().to_string()],
        vec!["holds".to_owned(), format!("{tensors} tensors, {} parameters", output::count(parameters))],
        vec!["size".to_owned(), output::size(bytes)],
        vec!["took".to_owned(), format!("{took:.1} s, {rate}/s")],
    ])?)
}
