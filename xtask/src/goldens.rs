//! `cargo xtask goldens`: where the values that tests compare with come from, and whether they are untouched.

use std::{fs, path::Path};

use crate::shell::{complain, output, root, say};

/// Prints how the test data were made and compares every file with its checksum.
pub(crate) fn run() -> bool {
    let folder = root().join("testdata");
    let read = |name: &str| fs::read_to_string(folder.join(name));
    let (Ok(page), Ok(sums)) = (read("README.md"), read("SHA256SUMS")) else {
        complain("testdata/README.md or testdata/SHA256SUMS is missing");
        return false;
    };
    say(&page);
    let lines: Vec<&str> = sums.lines().collect();
    let good = lines.iter().filter(|line| is_untouched(&folder, line)).count();
    say(&format!("{good} passed, {} failed", lines.len() - good));
    good == lines.len()
}

fn is_untouched(folder: &Path, line: &str) -> bool {
    let Some((expected, name)) = line.split_once("  ") else { return false };
    let path = folder.join(name).display().to_string();
    // The system's own tool, so that this program needs no library for it.
    let sum = output(&["sha256sum", &path]).or_else(|| output(&["shasum", "-a", "256", &path]));
    let same = sum.is_some_and(|sum| sum.starts_with(expected));
    if !same {
        complain(&format!("{name} is not the file that was recorded"));
    }
    same
}
