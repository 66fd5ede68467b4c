//! Files that appear under their name only when they are whole.
//!
//! A file is written under another name beside its own and renamed when it is complete, so that no one ever finds
//! half a model. If it cannot be completed, or the user stops it, what was written is removed.

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

use crate::{failure::Failure, output};

/// What becomes true when the user presses Ctrl-C.
pub(crate) fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    // Not awaited: it ends with the program.
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stopped.store(true, Ordering::Relaxed);
        }
    });
    stop
}

/// The file that the new one replaces: where the path leads, if it is a link.
pub(crate) fn target(path: &Path) -> Result<PathBuf, Failure> {
    let refuse = |what: &str| {
        let message = format!("`{}` is {what}; a model is written to a file", path.display());
        Err(Failure::new(message).hint("give the path of a file, such as model.gguf"))
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

/// What a file is written through: it takes no more bytes once the user stops it.
pub(crate) type Output<'s> = BufWriter<Stoppable<'s, File>>;

/// Writes a file by `write`, has it looked at by `check` and gives it its name; tells its size.
pub(crate) fn create<E: From<WriteError>>(
    target: &Path,
    stop: &AtomicBool,
    write: impl FnOnce(&mut Output<'_>) -> Result<(), E>,
    check: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<u64, E> {
    let io = |error: io::Error| E::from(WriteError::Io(error));
    let (partial, file) = Partial::create(target).map_err(io)?;
    // Weights come in large pieces; this is for the padding between them.
    let mut output = BufWriter::with_capacity(1 << 16, Stoppable { output: file, stop });
    write(&mut output)?;
    let file = output.into_inner().map_err(|error| io(error.into_error()))?.output;
    let bytes = file.metadata().map_err(io)?.len();
    // Closed first: some systems do not rename a file that is open.
    drop(file);
    check(&partial.path)?;
    partial.complete(target).map_err(io)?;
    Ok(bytes)
}

/// A file under a name that is not its own yet; unless completed, it is removed.
struct Partial {
    path: PathBuf,
}

impl Partial {
    fn create(target: &Path) -> io::Result<(Self, File)> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        // Two runs for the same file must not write to each other's.
        let path = target.with_file_name(format!(".{name}.{}.partial", std::process::id()));
        let file = File::create(&path)?;
        Ok((Self { path }, file))
    }

    fn complete(self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // When it was completed there is nothing left to remove.
        let _ = fs::remove_file(&self.path);
    }
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

/// Whoever was making the file wanted it no more.
pub(crate) fn stopped(path: &Path) -> Failure {
    Failure::new(format!("`{}` was not written: you stopped it", path.display()))
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
