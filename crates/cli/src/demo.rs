//! The demo model: a small one that comes with rullama, so that something answers before anything is downloaded.

use std::path::PathBuf;

use crate::{failure::Failure, output, program};

/// What it is called where a command takes a model, unless a file or a model of the store is called so.
const NAME: &str = "demo";

/// Its place in the project, and beside a program that was installed.
const FILE: &str = "models/demo.gguf";

/// Whether `text` is its name. As in the store, capitals make no difference.
pub(crate) fn is_called(text: &str) -> bool {
    text.eq_ignore_ascii_case(NAME)
}

/// Says on standard error what answers where no model is named.
pub(crate) fn announce() {
    output::note(
        "note: no model is named, so this is the demo model, which is for trying rullama out: it answers questions \
         about rullama, does sums with small numbers and knows little else",
    );
}

/// Its file: beside the program, or in the checkout that the program was built from.
pub(crate) fn find() -> Result<PathBuf, Failure> {
    find_in(program::folder().into_iter().chain(program::checkout()))
}

fn find_in(folders: impl Iterator<Item = PathBuf>) -> Result<PathBuf, Failure> {
    let missing = || {
        Failure::new(format!(
            "the demo model is missing: there is no {FILE} beside the program or in the checkout it was built from"
        ))
        .hint("give a model: the path of a GGUF file, or a name that `rullama models` lists")
    };
    folders.map(|folder| folder.join(FILE)).find(|path| path.is_file()).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_file_counts_and_a_missing_one_is_told() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let find = || find_in(folders.iter().map(|folder| folder.path().to_owned()));
        let said = find().unwrap_err().to_string();
        assert!(said.starts_with("error: the demo model is missing: "), "{said}");
        assert!(said.contains("models/demo.gguf") && said.contains("\nhint: give a model: "), "{said}");

        for folder in folders[1..].iter().rev() {
            let file = folder.path().join(FILE);
            std::fs::create_dir(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            assert_eq!(find().unwrap(), file);
        }
    }
}
