//! Names of models that come in several files: `gemma-00001-of-00003.gguf`.

/// The name of one file of a split model, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitName {
    prefix: String,
    count: u32,
    /// What follows `.gguf`, as in an address with a query.
    suffix: String,
}

impl SplitName {
    /// Takes a path or an address apart, if it follows the pattern.
    pub fn parse(name: &str) -> Option<Self> {
        let path_end = name.find(['?', '#']).unwrap_or(name.len());
        let (path, suffix) = name.split_at(path_end);
        let stem = path.strip_suffix(".gguf")?;
        let (rest, count) = numbered(stem, "-of-")?;
        let (prefix, number) = numbered(rest, "-")?;
        let prefix = prefix.to_owned();
        (1..=count).contains(&number).then(|| Self { prefix, count, suffix: suffix.to_owned() })
    }

    /// How many files the model has.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The names of all its files, in order.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = String> {
        // Counted as `usize`, for which a range knows its length on every machine.
        (1..self.count as usize + 1).map(move |number| {
            format!("{}-{number:05}-of-{:05}.gguf{}", self.prefix, self.count, self.suffix)
        })
    }
}

/// Splits `text` at a separator that five digits follow to its end.
fn numbered<'a>(text: &'a str, separator: &str) -> Option<(&'a str, u32)> {
    let digits_at = text.len().checked_sub(5)?;
    let (rest, digits) = text.split_at_checked(digits_at)?;
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then_some((rest.strip_suffix(separator)?, digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_names_all_parts() {
        let split = SplitName::parse("/models/gemma-00002-of-00003.gguf").unwrap();
        let parts: Vec<String> = split.parts().collect();
        assert_eq!(
            parts,
            [
                "/models/gemma-00001-of-00003.gguf",
                "/models/gemma-00002-of-00003.gguf",
                "/models/gemma-00003-of-00003.gguf",
            ]
        );
    }

    #[test]
    fn an_address_keeps_its_query() {
        let split = SplitName::parse("https://host/m-00001-of-00002.gguf?download=true").unwrap();
        assert_eq!(split.parts().nth(1).unwrap(), "https://host/m-00002-of-00002.gguf?download=true");
    }

    #[test]
    fn other_names_are_left_alone() {
        for name in [
            "",
            "a.gguf",
            "m-00000-of-00002.gguf",
            "m-00003-of-00002.gguf",
            "m-1-of-2.gguf",
            "m-0000é-of-00002.gguf",
            "-of-00001.gguf",
            "m-00001-of-00002.bin",
        ] {
            assert_eq!(SplitName::parse(name), None, "{name}");
        }
    }
}
