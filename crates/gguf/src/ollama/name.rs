//! Model names: `[host/][namespace/]model[:tag]`.

use std::{fmt, path::PathBuf, str::FromStr};

use super::StoreError;

const DEFAULT_HOST: &str = "registry.ollama.ai";
const DEFAULT_NAMESPACE: &str = "library";
const DEFAULT_TAG: &str = "latest";

/// The full name of a model. What a short name leaves out is filled in.
///
/// ```
/// use rullama_gguf::ollama::Name;
///
/// let name: Name = "gemma4:e2b".parse()?;
/// assert_eq!(name.full(), "registry.ollama.ai/library/gemma4:e2b");
/// assert_eq!(name.to_string(), "gemma4:e2b");
/// # Ok::<(), rullama_gguf::ollama::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// The registry it came from.
    pub host: String,
    /// Its owner there.
    pub namespace: String,
    /// The model.
    pub model: String,
    /// The variant.
    pub tag: String,
}

impl Name {
    /// The name from its four parts, each checked.
    pub fn new(host: &str, namespace: &str, model: &str, tag: &str) -> Result<Self, StoreError> {
        let name = Self {
            host: host.to_owned(),
            namespace: namespace.to_owned(),
            model: model.to_owned(),
            tag: tag.to_owned(),
        };
        let parts = [
            ("host", host, 350, &['-', '.', ':'][..]),
            ("namespace", namespace, 80, &['-'][..]),
            ("model", model, 80, &['-', '.'][..]),
            ("tag", tag, 80, &['-', '.'][..]),
        ];
        for (part, text, longest, punctuation) in parts {
            if !is_valid(text, longest, punctuation) {
                let found = text.to_owned();
                return Err(StoreError::InvalidName { name: name.full(), part, found });
            }
        }
        Ok(name)
    }

    /// The name with nothing left out.
    pub fn full(&self) -> String {
        format!("{}/{}/{}:{}", self.host, self.namespace, self.model, self.tag)
    }

    /// Where its manifest lies below the folder of manifests.
    pub fn manifest_path(&self) -> PathBuf {
        [&self.host, &self.namespace, &self.model, &self.tag].into_iter().collect()
    }

    pub(super) fn parts(&self) -> [&str; 4] {
        [&self.host, &self.namespace, &self.model, &self.tag]
    }
}

/// Whether `text` can be a part of a name. These rules also keep a name from leaving the store:
/// no part can be `..` or hold a separator.
fn is_valid(text: &str, longest: usize, punctuation: &[char]) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= longest
        && text.starts_with(word)
        && text.chars().all(|c| word(c) || punctuation.contains(&c))
}

impl FromStr for Name {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let bare = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).unwrap_or(text);
        let last_part_at = bare.rfind('/').map_or(0, |at| at + 1);
        let (path, tag) = match bare[last_part_at..].rfind(':') {
            Some(colon) => (&bare[..last_part_at + colon], &bare[last_part_at + colon + 1..]),
            None => (bare, DEFAULT_TAG),
        };
        let parts: Vec<&str> = path.split('/').collect();
        let name = match parts[..] {
            [model] => Self::new(DEFAULT_HOST, DEFAULT_NAMESPACE, model, tag),
            [namespace, model] => Self::new(DEFAULT_HOST, namespace, model, tag),
            [host, namespace, model] => Self::new(host, namespace, model, tag),
            _ => {
                let (name, found) = (text.to_owned(), path.to_owned());
                Err(StoreError::InvalidName { name, part: "path", found })
            }
        };
        // A message shows the name as it was given, not as it was filled in.
        name.map_err(|error| match error {
            StoreError::InvalidName { part, found, .. } => {
                StoreError::InvalidName { name: text.to_owned(), part, found }
            }
            other => other,
        })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host != DEFAULT_HOST {
            write!(f, "{}/{}/", self.host, self.namespace)?;
        } else if self.namespace != DEFAULT_NAMESPACE {
            write!(f, "{}/", self.namespace)?;
        }
        write!(f, "{}:{}", self.model, self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_filled_in() {
        for (text, full) in [
            ("gemma4", "registry.ollama.ai/library/gemma4:latest"),
            ("gemma4:e2b", "registry.ollama.ai/library/gemma4:e2b"),
            ("me/gemma4:e2b", "registry.ollama.ai/me/gemma4:e2b"),
            ("hf.co/user/repo.v1:Q4_K_M", "hf.co/user/repo.v1:Q4_K_M"),
            ("localhost:5000/me/gemma4", "localhost:5000/me/gemma4:latest"),
            ("https://localhost:5000/me/gemma4:e2b", "localhost:5000/me/gemma4:e2b"),
        ] {
            assert_eq!(text.parse::<Name>().unwrap().full(), full, "{text}");
        }
    }

    #[test]
    fn names_are_shown_short() {
        for (text, short) in [
            ("registry.ollama.ai/library/gemma4", "gemma4:latest"),
            ("registry.ollama.ai/me/gemma4:e2b", "me/gemma4:e2b"),
            ("hf.co/library/gemma4:e2b", "hf.co/library/gemma4:e2b"),
        ] {
            assert_eq!(text.parse::<Name>().unwrap().to_string(), short);
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = "a".repeat(81);
        for text in [
            "", ":", "a:", "a/", "/a", "a/b/c/d", "../a", "a/../b", ".a", "a b", "a\\b", "ns.x/a", "é", &long,
        ] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
        assert!("a".repeat(80).parse::<Name>().is_ok());
    }
}
