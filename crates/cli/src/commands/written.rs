//! Messages of the commands that write a file.

use std::{
    io::{self, ErrorKind},
    path::Path,
    time::Duration,
};

use crate::{failure::Failure, output};

/// Why a file could not be written.
pub(super) fn refused(path: &Path, error: io::Error, needed: u64) -> Failure {
    let kind = error.kind();
    let failure = Failure::new(format!("`{}` can't be written", path.display())).caused_by(error);
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            failure.hint(format!("the file needs {}; the incomplete file was deleted", output::size(needed)))
        }
        ErrorKind::NotFound => failure.hint("check that the folder exists"),
        _ => failure,
    }
}

/// The user or the system stopped the program before the file was complete.
pub(super) fn stopped(path: &Path) -> Failure {
    Failure::new(format!("`{}` was not written: rullama was stopped", path.display()))
}

/// Describes a model that was written.
pub(super) fn describe(
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
        vec!["model".to_owned(), format!("{} parameters in {tensors} tensors", output::count(parameters))],
        vec!["size".to_owned(), output::size(bytes)],
        vec!["time".to_owned(), format!("{took:.1} s ({rate}/s)")],
    ])?)
}
