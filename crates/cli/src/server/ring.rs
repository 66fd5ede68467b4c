//! Messages from pages: the newest in memory and, with `--log-file`, all of them in a file.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::Write as _,
    path::Path,
    sync::Arc,
    time::SystemTime,
};

use serde::Serialize;

use crate::{failure::Failure, output};

/// Messages that are kept in memory.
const MOST_MESSAGES: usize = 2_000;

/// Bytes of text that are kept in memory.
const MOST_BYTES: usize = 4 << 20;

/// Bytes that the file may have.
const LARGEST_FILE: u64 = 16 << 20;

/// A message from a page.
#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    /// Counts from one, for as long as the server runs.
    pub(crate) sequence: u64,
    pub(crate) time: String,
    pub(crate) tag: String,
    pub(crate) text: String,
}

/// The newest messages.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    /// Shared with requests that are reading them.
    entries: VecDeque<Arc<Entry>>,
    bytes: usize,
    latest: u64,
    file: Option<LogFile>,
}

/// A file that messages are added to, until it is full.
#[derive(Debug)]
pub(crate) struct LogFile {
    file: File,
    bytes: u64,
    full: bool,
}

impl Ring {
    pub(crate) fn new(file: Option<LogFile>) -> Self {
        Self { file, ..Self::default() }
    }

    /// Adds a message and gives its number.
    pub(crate) fn push(&mut self, tag: String, text: String) -> u64 {
        self.latest += 1;
        let entry =
            Entry { sequence: self.latest, time: output::timestamp_millis(SystemTime::now()), tag, text };
        if let Some(file) = &mut self.file {
            file.append(&entry);
        }
        self.bytes += entry.text.len();
        self.entries.push_back(Arc::new(entry));
        while self.entries.len() > MOST_MESSAGES || self.bytes > MOST_BYTES {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.text.len();
        }
        self.latest
    }

    /// The first message after number `after`, of one tag or of all.
    pub(crate) fn next(&self, after: u64, tag: Option<&str>) -> Option<Arc<Entry>> {
        // Numbers have no gaps, so a message's index follows from its number.
        let oldest = self.entries.front()?.sequence;
        let at = usize::try_from(after.saturating_add(1).saturating_sub(oldest)).unwrap_or(usize::MAX);
        let mut later = self.entries.range(at.min(self.entries.len())..);
        later.find(|entry| tag.is_none_or(|tag| entry.tag == tag)).cloned()
    }

    /// The number of the newest message; zero if there was none.
    pub(crate) fn latest(&self) -> u64 {
        self.latest
    }
}

impl LogFile {
    /// Opens a file to append to.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let open = || {
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            let bytes = file.metadata()?.len();
            Ok(Self { file, bytes, full: false })
        };
        open().map_err(|error: std::io::Error| {
            Failure::new(format!("the log file `{}` can't be written", path.display())).caused_by(error)
        })
    }

    /// Adds a line of JSON. Lines are short, so this does not keep other requests waiting.
    fn append(&mut self, entry: &Entry) {
        let Ok(line) = output::json_line(entry) else { return };
        if self.full {
            return;
        }
        self.bytes += line.len() as u64;
        if self.bytes > LARGEST_FILE {
            self.full = true;
            output::note(format_args!(
                "note: the log file has reached {} MiB; new messages are no longer added to it",
                LARGEST_FILE >> 20
            ));
        } else if let Err(error) = self.file.write_all(&line) {
            self.full = true;
            output::note(format_args!(
                "note: the log file can't be written, so new messages are no longer added to it: {error}"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the messages after number `since`.
    fn since(ring: &Ring, since: u64, tag: Option<&str>) -> Vec<u64> {
        let next = |last: &u64| ring.next(*last, tag).map(|entry| entry.sequence);
        std::iter::successors(next(&since), next).collect()
    }

    #[test]
    fn the_oldest_messages_make_room() {
        let mut ring = Ring::default();
        for index in 0..MOST_MESSAGES + 5 {
            ring.push("a".to_owned(), index.to_string());
        }
        let kept = since(&ring, 0, None);
        assert_eq!((kept.len(), kept[0]), (MOST_MESSAGES, 6));
        assert_eq!(since(&ring, ring.latest() - 1, None).len(), 1);
        assert_eq!(since(&ring, ring.latest(), None).len(), 0);
        assert_eq!(since(&ring, u64::MAX, None).len(), 0);

        let large = "x".repeat(16 << 10);
        for _ in 0..MOST_BYTES / large.len() + 1 {
            ring.push("b".to_owned(), large.clone());
        }
        assert_eq!(since(&ring, 0, Some("a")).len(), 0);
        assert_eq!(since(&ring, 0, Some("b")).len(), MOST_BYTES / large.len());
        assert!(ring.bytes <= MOST_BYTES);
    }

    #[test]
    fn a_full_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, vec![b'\n'; LARGEST_FILE as usize - 100]).unwrap();
        let mut ring = Ring::new(Some(LogFile::open(&path).unwrap()));
        ring.push("a".to_owned(), String::new());
        let length = std::fs::metadata(&path).unwrap().len();
        assert!(length > LARGEST_FILE - 100 && length <= LARGEST_FILE);
        ring.push("a".to_owned(), "x".repeat(100));
        ring.push("a".to_owned(), String::new());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), length);
    }
}
