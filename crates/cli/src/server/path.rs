//! Decodes the path of a request once, and refuses paths that could lead out of a folder.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The characters of a model's name that are percent-encoded in a URL.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':').remove(b'/');

/// The segments of a path, decoded; none for the root.
///
/// Refuses everything that could mean more than a name below a folder: `.` and `..`, empty segments, encoded slashes,
/// backslashes, the colon of a drive, control characters, and names that begin with a dot. Text that was encoded twice is
/// decoded once.
pub(super) fn segments(path: &str) -> Option<Vec<String>> {
    let path = path.strip_prefix('/')?;
    if path.is_empty() {
        return Some(Vec::new());
    }
    path.split('/').map(segment).collect()
}

fn segment(raw: &str) -> Option<String> {
    let text = percent_decode_str(raw).decode_utf8().ok()?.into_owned();
    let strange = |c: char| matches!(c, '/' | '\\' | ':') || c.is_control();
    let plain = !text.is_empty() && !text.starts_with('.') && !text.contains(strange);
    plain.then_some(text)
}

/// Encodes a name for a URL.
pub(super) fn encode(name: &str) -> String {
    utf8_percent_encode(name, ENCODED).to_string()
}

/// Decodes a name from a URL.
pub(super) fn decode(name: &str) -> Option<String> {
    percent_decode_str(name).decode_utf8().ok().map(|text| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paths_are_taken_apart() {
        assert_eq!(segments("/"), Some(vec![]));
        assert_eq!(segments("/assets/a%20b.js"), Some(vec!["assets".to_owned(), "a b.js".to_owned()]));
    }

    #[test]
    fn whatever_could_leave_the_folder_is_refused() {
        for path in [
            "",
            "assets",
            "*",
            "//",
            "/a//b",
            "/a/",
            "/.",
            "/..",
            "/../a",
            "/a/../../b",
            "/%2e%2e/a",
            "/%2E./a",
            "/..%2fa",
            "/a%2fb",
            "/a%5cb",
            "/..%5c",
            "/a%00",
            "/%00",
            "/c:/a",
            "/c%3a",
            "/.git/config",
            "/a%ff",
            "/a%0a",
        ] {
            assert_eq!(segments(path), None, "{path}");
        }
        // Encoded twice is a name with percent signs.
        assert_eq!(segments("/%252e%252e"), Some(vec!["%2e%2e".to_owned()]));
    }

    #[test]
    fn names_survive_an_address() {
        for name in ["gemma4:e2b", "hf.co/user/repo.v1:Q4_K_M", "my model #1?.gguf", "größe.gguf", "50%"] {
            assert_eq!(decode(&encode(name)).as_deref(), Some(name));
        }
        assert_eq!(encode("me/gemma4:e2b"), "me/gemma4:e2b");
        assert_eq!(encode("a b#?%"), "a%20b%23%3F%25");
    }
}
