//! `cargo xtask goldens`: where the values that tests compare with come from, and whether they are untouched.

use std::{fs, path::Path};

use crate::shell::{complain, output, root, say};

const SUMS: &str = "testdata/SHA256SUMS";

/// Prints how the test data were made and compares every file with its checksum.
pub(crate) fn run() -> bool {
    let folder = root().join("testdata");
    let (Ok(page), Ok(sums)) =
        (fs::read_to_string(folder.join("README.md")), fs::read_to_string(root().join(SUMS)))
    else {
        complain(&format!("testdata/README.md or {SUMS} is missing"));
        return false;
    };
    say(&page);
    let lines: Vec<&str> = sums.lines().collect();
    let good = lines.iter().filter(|line| is_untouched(&folder, line)).count();
    say(&format!("{good} passed, {} failed", lines.len() - good));
    good == lines.len()
}

/// Records the checksums of a folder's files, named as `./demo/`, in place of those that were recorded.
pub(crate) fn record(folder: &str) -> bool {
    let testdata = root().join("testdata");
    let (Ok(sums), Ok(files)) = (fs::read_to_string(root().join(SUMS)), fs::read_dir(testdata.join(folder)))
    else {
        complain(&format!("error: {SUMS} or testdata/{folder} cannot be read"));
        return false;
    };
    let mut lines: Vec<String> =
        sums.lines().filter(|line| !name(line).starts_with(folder)).map(str::to_owned).collect();
    for file in files.flatten() {
        let Some(sum) = checksum(&file.path()) else {
            complain("error: neither sha256sum nor shasum can be started");
            return false;
        };
        lines.push(format!("{sum}  {folder}{}", file.file_name().display()));
    }
    lines.sort_by(|one, other| name(one).cmp(name(other)));
    let written = fs::write(root().join(SUMS), lines.join("\n") + "\n");
    if let Err(error) = &written {
        complain(&format!("error: {SUMS}: {error}"));
    }
    written.is_ok()
}

/// The file that a line of checksums is about.
fn name(line: &str) -> &str {
    line.split_once("  ").map_or("", |(_, name)| name)
}

fn is_untouched(folder: &Path, line: &str) -> bool {
    let Some((expected, name)) = line.split_once("  ") else { return false };
    let same = checksum(&folder.join(name)).is_some_and(|sum| sum == expected);
    if !same {
        complain(&format!("{name} is not the file that was recorded"));
    }
    same
}

fn checksum(path: &Path) -> Option<String> {
    let path = path.display().to_string();
    // The system's own tool, so that this program needs no library for it.
    let line = output(&["sha256sum", &path]).or_else(|| output(&["shasum", "-a", "256", &path]))?;
    line.split_whitespace().next().map(str::to_owned)
}
