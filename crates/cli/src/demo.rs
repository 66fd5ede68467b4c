//! The demo model: a small model inside the program, so that rullama answers before anything is downloaded.

use std::{borrow::Cow, path::PathBuf};

use rullama_gguf::{MemorySource, Model, open_path};

use crate::{embedded, failure::Failure, output, program};

/// Its name on the command line, unless a file or a model of the store has the same name.
const NAME: &str = "demo";

/// Where another model can lie, beside the program, to be used in place of the embedded one.
const FILE: &str = "models/demo.gguf";

/// Where the demo model comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Demo {
    /// A file beside the program.
    File(PathBuf),
    /// The bytes inside the program.
    Embedded(&'static [u8]),
}

/// Whether `text` names the demo model. As in the store, case does not matter.
pub(crate) fn is_called(text: &str) -> bool {
    text.eq_ignore_ascii_case(NAME)
}

/// Says on standard error that the demo model answers, because no model was named.
pub(crate) fn announce() {
    output::note(
        "note: no model given, so this is the demo model. It knows rullama, small sums and little else; \
         `rullama list` shows your models",
    );
}

/// The demo model: the file beside the program, or else the one inside it.
pub(crate) fn find() -> Result<Demo, Failure> {
    find_in(program::folder(), embedded::DEMO)
}

fn find_in(folder: Option<PathBuf>, embedded: Option<&'static [u8]>) -> Result<Demo, Failure> {
    if let Some(path) = folder.map(|folder| folder.join(FILE)).filter(|path| path.is_file()) {
        return Ok(Demo::File(path));
    }
    embedded.map(Demo::Embedded).ok_or_else(|| {
        Failure::new(format!("this build of rullama has no demo model: {FILE} was missing when it was built"))
            .hint("name a model: the path of a GGUF file, or a name that `rullama list` shows")
    })
}

impl Demo {
    /// What a list of files calls it.
    pub(crate) fn file_name(&self) -> Cow<'_, str> {
        match self {
            Self::File(path) => path.file_name().unwrap_or_default().to_string_lossy(),
            Self::Embedded(_) => Cow::Borrowed("demo.gguf"),
        }
    }

    /// Reads its header.
    pub(crate) async fn open(&self) -> Result<Model, Failure> {
        Ok(match self {
            Self::File(path) => open_path(path).await?,
            Self::Embedded(bytes) => {
                Model::open(Box::new(MemorySource::named("the demo model", *bytes))).await?
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_beside_the_program_replaces_the_embedded_model() {
        let folder = tempfile::tempdir().unwrap();
        let find = |embedded| find_in(Some(folder.path().to_owned()), embedded);
        let said = find(None).unwrap_err().to_string();
        assert!(said.starts_with("error: this build of rullama has no demo model: "), "{said}");
        assert!(said.contains("\nhint: name a model: "), "{said}");
        assert_eq!(find(Some(b"GGUF")).unwrap(), Demo::Embedded(b"GGUF"));

        let file = folder.path().join(FILE);
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "").unwrap();
        assert_eq!(find(Some(b"GGUF")).unwrap(), Demo::File(file.clone()));
        assert_eq!(find(None).unwrap(), Demo::File(file));
    }
}
