//! Where an image or a sound comes from: what messages write for it, and paths that are typed or dropped into a terminal.

use std::path::{Path, PathBuf};

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use percent_encoding::{percent_decode, percent_decode_str};
use rullama_gemma::Medium;

use crate::failure::Failure;

/// Base64 as clients write it, with padding or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Text that is shorter than this is no base64 of an image or a sound, whatever its letters are.
const LEAST_BASE64: usize = 48;

/// What an attachment of a message may be.
const SOURCES: &str = "write a path, a data: URL or base64";

/// An image or a sound that a message attaches.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    File(PathBuf),
    Bytes(Vec<u8>),
}

impl Source {
    /// Reads a path, a `file:` or `data:` URL, or base64. `place` is what errors call it.
    pub(crate) fn of(text: &str, place: &str) -> Result<Self, Failure> {
        let wrong = |what: &str| Failure::new(format!("{place} {what}")).hint(SOURCES);
        let text = text.trim();
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
        match &*scheme {
            "data" => data_url(text).map(Self::Bytes).ok_or_else(|| wrong("is not a valid data: URL")),
            "http" | "https" => Err(wrong("is on the web, and rullama downloads no attachments")),
            "file" => file_url(text).map(Self::File).ok_or_else(|| wrong("is not the URL of a local file")),
            _ if text.is_empty() => Err(wrong("is empty")),
            _ => Ok(base64(text).map_or_else(|| Self::File(text.into()), Self::Bytes)),
        }
    }
}

fn data_url(text: &str) -> Option<Vec<u8>> {
    let (kind, data) = text.get("data:".len()..)?.split_once(',')?;
    let data: Vec<u8> = percent_decode_str(data).collect();
    if !kind.to_ascii_lowercase().ends_with(";base64") {
        return Some(data);
    }
    BASE64.decode(without_blanks(&data)).ok()
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let is_long = text.len() >= LEAST_BASE64 && !Path::new(text).is_file();
    is_long.then(|| BASE64.decode(without_blanks(text.as_bytes())).ok())?
}

/// Base64 may be broken into lines.
fn without_blanks(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

/// The path that a `file:` URL names on this machine.
fn file_url(text: &str) -> Option<PathBuf> {
    let rest = text.get("file://".len()..).filter(|_| text.is_char_boundary(7) && text[4..7] == *"://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = percent_decode(path.as_bytes()).decode_utf8().ok().filter(|path| path.starts_with('/'))?;
    // On Windows, file:///C:/cat.png is C:/cat.png.
    let has_drive = cfg!(windows) && path.as_bytes().get(2) == Some(&b':');
    Some(PathBuf::from(if has_drive { &path[1..] } else { &*path }))
}

/// Endings of the names of image files.
const IMAGES: [&str; 6] = ["png", "jpg", "jpeg", "webp", "gif", "bmp"];

/// Endings of the names of sound files.
const SOUNDS: [&str; 7] = ["wav", "mp3", "flac", "ogg", "oga", "m4a", "aac"];

/// What a file has, as its name says.
fn medium_of(path: &Path) -> Option<Medium> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    let is_in = |endings: &[&str]| endings.contains(&&*ending);
    if is_in(&IMAGES) { Some(Medium::Vision) } else { is_in(&SOUNDS).then_some(Medium::Audio) }
}

/// A typed text without the paths in it.
#[derive(Debug, PartialEq)]
pub(crate) struct Typed {
    pub(crate) text: String,
    pub(crate) files: Vec<(Medium, PathBuf)>,
}

impl Typed {
    /// Whether these files are meant for a model that reads these media: all of them, or there is nothing but paths.
    pub(crate) fn is_for(&self, reads: &[Medium]) -> bool {
        let all = || self.files.iter().all(|(medium, _)| reads.contains(medium));
        !self.files.is_empty() && (self.text.is_empty() || all())
    }
}

/// Takes the paths of images and sounds that exist out of a typed text, as Ollama does: terminals type the path of a file
/// that is dropped on them. It may be in quotes, have blanks behind backslashes, or be a `file:` URL.
pub(crate) fn typed(text: &str) -> Typed {
    let whole = Path::new(text.trim());
    if let Some(medium) = existing(whole) {
        return Typed { text: String::new(), files: vec![(medium, whole.to_owned())] };
    }
    let (mut left, mut files, mut at) = (String::new(), Vec::new(), 0);
    while at < text.len() {
        let rest = &text[at..];
        let blanks = rest.len() - rest.trim_start().len();
        left.push_str(&rest[..blanks]);
        let word = Word::first(&rest[blanks..]);
        // A sentence may end behind a path.
        let ends = word.meant.len() - word.meant.trim_end_matches(['.', ',', ';', ':', '?', '!', ')']).len();
        let found = [0, ends].into_iter().find_map(|end| {
            let meant = &word.meant[..word.meant.len() - end];
            let path = file_url(meant).unwrap_or_else(|| in_home(meant));
            Some((existing(&path)?, path, end))
        });
        at += blanks + word.length;
        match found {
            Some((medium, path, end)) => {
                files.push((medium, path));
                left.push_str(&text[at - end..at]);
            }
            None => left.push_str(&rest[blanks..blanks + word.length]),
        }
    }
    if files.is_empty() {
        return Typed { text: text.to_owned(), files };
    }
    Typed { text: left.trim().to_owned(), files }
}

fn existing(path: &Path) -> Option<Medium> {
    medium_of(path).filter(|_| path.is_file())
}

/// A path as a shell would read it.
pub(crate) fn in_home(text: &str) -> PathBuf {
    match (text.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    }
}

/// The path that a command of a chat is given: in quotes, with backslashes, as a `file:` URL, or as it is.
pub(crate) fn given(text: &str) -> PathBuf {
    let text = text.trim();
    let word = Word::first(text);
    let is_whole = word.length == text.len() && !Path::new(text).is_file();
    let meant = if is_whole { &word.meant } else { text };
    file_url(meant).unwrap_or_else(|| in_home(meant))
}

/// A word of a shell's command line.
struct Word {
    /// Bytes that it takes.
    length: usize,
    /// Without its quotes and backslashes.
    meant: String,
}

impl Word {
    /// The first word of a text that begins with one. A quote that is never closed, as in "don't", is a letter.
    fn first(text: &str) -> Self {
        if let Some(quote @ ('\'' | '"')) = text.chars().next()
            && let Some(end) = text[1..].find(quote)
        {
            return Self { length: end + 2, meant: text[1..=end].to_owned() };
        }
        let (mut meant, mut length, mut escaped) = (String::new(), 0, false);
        for letter in text.chars() {
            if escaped {
                meant.push(letter);
                escaped = false;
            } else if letter == '\\' && cfg!(not(windows)) {
                escaped = true;
            } else if letter.is_whitespace() {
                break;
            } else {
                meant.push(letter);
            }
            length += letter.len_utf8();
        }
        Self { length, meant }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn messages_attach_paths_urls_and_base64() {
        let of = |text: &str| Source::of(text, "messages[0].images[0]");
        let file = |path: &str| Source::File(path.into());
        assert_eq!(of("cat.png").unwrap(), file("cat.png"));
        assert_eq!(of("file:///tmp/a%20cat.png").unwrap(), file("/tmp/a cat.png"));
        assert_eq!(of("file://localhost/cat.png").unwrap(), file("/cat.png"));
        let bytes: Vec<u8> = (0..100).collect();
        let text = BASE64.encode(&bytes);
        let broken = format!("{}\n{}", &text[..50], text[50..].trim_end_matches('='));
        for text in
            [&text, &broken, &format!("data:image/png;base64,{text}"), &format!("DATA:;BASE64,{text}")]
        {
            assert_eq!(of(text).unwrap(), Source::Bytes(bytes.clone()), "{text}");
        }
        assert_eq!(of("data:,a%62c").unwrap(), Source::Bytes(b"abc".to_vec()));
        // Letters of base64 alone do not make a short name an image.
        assert_eq!(of("picture").unwrap(), file("picture"));
        for (text, said) in [
            ("", "is empty"),
            ("https://example.org/cat.png", "downloads no attachments"),
            ("data:image/png;base64,*", "not a valid data: URL"),
            ("data:image/png", "not a valid data: URL"),
            ("file://elsewhere/cat.png", "not the URL of a local file"),
            ("file:", "not the URL of a local file"),
        ] {
            let failure = of(text).unwrap_err();
            assert!(failure.message().starts_with("messages[0].images[0] "), "{failure}");
            assert!(failure.message().contains(said), "{text}: {failure}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn paths_are_found_in_what_is_typed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("{}/{name}", folder.path().display());
        for name in ["a cat.png", "dog's.JPG", "word.wav", "notes.txt"] {
            fs::write(at(name), "").unwrap();
        }
        let (cat, dog, word) = (at("a cat.png"), at("dog's.JPG"), at("word.wav"));
        let found = |text: &str| {
            let Typed { text, files } = typed(text);
            let files: Vec<String> =
                files.into_iter().map(|(_, path)| path.to_str().unwrap().to_owned()).collect();
            (text, files)
        };
        let escaped = cat.replace(' ', "\\ ");
        let url = format!("file://{}", cat.replace(' ', "%20"));
        for one in [&cat, &format!("'{cat}' "), &format!("\"{cat}\""), &escaped, &url] {
            assert_eq!(found(one), (String::new(), vec![cat.clone()]), "{one}");
        }
        let both = format!("What is in '{cat}', and who speaks in {word}?");
        // A comma behind the quote stays where it is.
        assert_eq!(found(&both), ("What is in , and who speaks in ?".to_owned(), vec![cat, word.clone()]));
        assert_eq!(found(&format!("\"{dog}\" what's this?")).0, "what's this?");
        assert_eq!(typed(&word).files[0].0, Medium::Audio);
        for none in ["/help", "don't open missing.png", &at("notes.txt"), "  two  blanks ", "'", "\\"] {
            assert_eq!(found(none), (none.to_owned(), Vec::new()));
        }
        assert_eq!(given(&escaped), given(&format!("'{}'", at("a cat.png"))));
        assert_eq!(given(&at("a cat.png")), Path::new(&at("a cat.png")));
    }
}
