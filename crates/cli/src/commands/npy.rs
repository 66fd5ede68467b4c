//! NumPy files.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use rullama_gguf::WriteError;

use super::written;
use crate::{
    failure::Failure,
    signals,
    whole_file::{self, Readers},
};

/// A matrix of f32, row by row.
pub(super) struct Matrix {
    pub(super) values: Vec<f32>,
    pub(super) columns: usize,
}

impl Matrix {
    pub(super) fn rows(&self) -> usize {
        self.values.len() / self.columns.max(1)
    }

    /// Writes the file `target` completely or not at all. Messages call it `path`, as the user does.
    pub(super) async fn keep(self, path: &Path, target: PathBuf) -> Result<(), Failure> {
        let needed = 4 * self.values.len() as u64;
        let stop = signals::stop_flag()?;
        let in_writer = stop.clone();
        // On another thread, so that this one can handle signals.
        let writing = tokio::task::spawn_blocking(move || {
            let write = |output: &mut whole_file::Output<'_>| Ok(self.write(output)?);
            whole_file::create(&target, Readers::Usual, &in_writer, write, |_| Ok(()))
        });
        let failed = || format!("`{}` can't be written", path.display());
        match writing.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) if stop.load(Ordering::Relaxed) => Err(written::stopped(path)),
            Ok(Err(WriteError::Io(error))) => Err(written::refused(path, error, needed)),
            Ok(Err(error)) => Err(Failure::new(failed()).caused_by(error)),
            Err(error) => Err(Failure::new(failed()).caused_by(error)),
        }
    }

    /// Writes a file of version 1: a line of Python that describes the array, padded so that the data begins at a multiple
    /// of 64 bytes.
    fn write(&self, file: &mut impl Write) -> io::Result<()> {
        let (rows, columns) = (self.rows(), self.columns);
        let mut header =
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
        let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
        header.extend(std::iter::repeat_n(' ', length - header.len() - 1));
        header.push('\n');
        file.write_all(b"\x93NUMPY\x01\x00")?;
        file.write_all(&(length as u16).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        for value in &self.values {
            file.write_all(&value.to_le_bytes())?;
        }
        Ok(())
    }
}
