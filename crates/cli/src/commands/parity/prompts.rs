//! The prompts to continue.

use std::path::Path;

use crate::{commands::read_input, failure::Failure};

/// Prose, a list, code, another script, and a turn of a conversation.
const PROMPTS: [&str; 5] = [
    "The capital of France is",
    "1, 1, 2, 3, 5, 8, 13,",
    "fn main() {\n    println!(",
    "Die Würde des Menschen ist",
    "<|turn>user\nWhy is the sky blue?<turn|>\n<|turn>model\n",
];

/// The prompts in a file, or the built-in ones.
pub(super) fn read(path: Option<&Path>) -> Result<Vec<String>, Failure> {
    let Some(path) = path else { return Ok(PROMPTS.map(String::from).to_vec()) };
    let refuse = |what: &str| {
        Failure::new(format!("`{}` {what}", path.display()))
            .hint("write one prompt per line, or a JSON list of strings")
    };
    let text = String::from_utf8(read_input(path)?).map_err(|_| refuse("is not UTF-8 text"))?;
    let prompts = if text.trim_start().starts_with('[') {
        serde_json::from_str(&text)
            .map_err(|error| refuse("is not a JSON list of strings").caused_by(error))?
    } else {
        lines(&text)
    };
    match prompts.iter().any(|prompt| !prompt.is_empty()) {
        true => Ok(prompts),
        false => Err(refuse("contains no prompts")),
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn of(content: &str) -> Result<Vec<String>, String> {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(content.as_bytes()).expect("room for it");
        read(Some(file.path())).map_err(|failure| failure.to_string())
    }

    #[test]
    fn prompts_are_lines_or_a_list() {
        assert_eq!(of("one\n\n two \n"), Ok(vec!["one".to_owned(), " two ".to_owned()]));
        assert_eq!(of("[\"a\\nb\", \"c\"]"), Ok(vec!["a\nb".to_owned(), "c".to_owned()]));
        for bad in ["", "\n", "[]", "[1]", "[\"a\""] {
            let said = of(bad).expect_err(bad);
            assert!(said.contains("hint: write one prompt per line"), "{said}");
        }
    }
}
