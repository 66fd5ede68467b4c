//! A rendered prompt, and how attached media find their place in it.

use std::{fmt, ops::Range};

/// A prompt, ready for the tokenizer.
///
/// Its `to_string()` is the text Ollama renders, with a tag `[img-K]` for every medium.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// The prompt in order: text and media. No text is empty, and no two texts are neighbours.
    pub pieces: Vec<Piece>,
    /// Where each medium comes from; [`Piece::Media`] counts in this list.
    pub media: Vec<MediaSource>,
    /// Whether the prompt ends inside an open thought, so that the reply begins with one
    /// ([`ReplyOptions::thought_open`](crate::ReplyOptions::thought_open)).
    pub thought_open: bool,
}

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text to tokenize, special tokens included.
    Text(String),
    /// The place of a medium's soft tokens.
    Media {
        /// Which medium, counted over the conversation.
        index: usize,
    },
}

/// The message that carries a medium, and the medium's place in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MediaSource {
    /// Index into the conversation's messages.
    pub message: usize,
    /// Index into that message's [media](crate::Message::media).
    pub medium: usize,
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Media { index } => write!(f, "{TAG}{index}]"),
        }
    }
}

impl fmt::Display for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| piece.fmt(f))
    }
}

/// What a numbered tag begins with.
const TAG: &str = "[img-";
/// A tag without a number, with which a client says where the next medium goes.
const PLACEHOLDER: &str = "[img]";

/// Collects a prompt's text, remembering which stretches of it may hold tags.
#[derive(Default)]
pub(crate) struct PromptWriter {
    pub(crate) text: String,
    media: Vec<MediaSource>,
    /// The contents of messages with media. A tag anywhere else is somebody's words.
    tagged: Vec<Range<usize>>,
}

impl PromptWriter {
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Writes the content of message `message` with tags for its `count` media.
    ///
    /// Placeholders are numbered first; media left over go in front of the text. A content with numbered tags
    /// already is the client's own arrangement and stays as it is.
    pub(crate) fn push_content(&mut self, content: &str, message: usize, count: usize) {
        if count == 0 {
            return self.push(content);
        }
        let start = self.text.len();
        let mut numbers = self.media.len()..self.media.len() + count;
        self.media.extend((0..count).map(|medium| MediaSource { message, medium }));

        if content.contains(TAG) {
            self.push(content);
        } else {
            let placed = content.matches(PLACEHOLDER).take(count).count();
            let mut placed_numbers = numbers.by_ref().take(placed).collect::<Vec<_>>().into_iter();
            for index in numbers {
                self.push(&Piece::Media { index }.to_string());
            }
            // Right after a tag, a first word without a space would be another token than it is elsewhere.
            if placed < count && content.starts_with(|c: char| !c.is_whitespace()) {
                self.push(" ");
            }
            let mut rest = content;
            while let Some(index) = placed_numbers.next()
                && let Some((before, after)) = rest.split_once(PLACEHOLDER)
            {
                self.push(before);
                self.push(&Piece::Media { index }.to_string());
                rest = after;
            }
            self.push(rest);
        }
        self.tagged.push(start..self.text.len());
    }

    pub(crate) fn finish(self, thought_open: bool) -> Prompt {
        let mut pieces = Vec::new();
        let mut done = 0;
        for range in self.tagged {
            for (tag, index) in tags(&self.text, range) {
                if index < self.media.len() {
                    push_text(&mut pieces, &self.text[done..tag.start]);
                    pieces.push(Piece::Media { index });
                    done = tag.end;
                }
            }
        }
        push_text(&mut pieces, &self.text[done..]);
        Prompt { pieces, media: self.media, thought_open }
    }
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
}

/// The numbered tags in a stretch of text. Only the plain spelling of a number counts (no sign, no leading
/// zero), so that a piece prints as the tag it was read from.
fn tags(text: &str, range: Range<usize>) -> impl Iterator<Item = (Range<usize>, usize)> {
    text[range.clone()].match_indices(TAG).filter_map(move |(at, _)| {
        let start = range.start + at;
        let digits_at = start + TAG.len();
        let digits = text[digits_at..range.end].bytes().take_while(u8::is_ascii_digit).count();
        let end = digits_at + digits;
        let number = &text[digits_at..end];
        let plain = number == "0" || !number.starts_with('0');
        let closed = text[end..range.end].starts_with(']');
        (plain && closed).then_some(())?;
        Some((start..end + 1, number.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(contents: &[(&str, usize)]) -> Prompt {
        let mut writer = PromptWriter::default();
        for (message, (content, count)) in contents.iter().enumerate() {
            writer.push_content(content, message, *count);
            writer.push("/");
        }
        writer.finish(false)
    }

    #[test]
    fn tags_go_in_front_or_into_placeholders() {
        for (contents, expected) in [
            (&[("What?", 1)][..], "[img-0] What?/"),
            (&[("What?", 2)], "[img-0][img-1] What?/"),
            (&[("", 1)], "[img-0]/"),
            (&[("\nWhat?", 1)], "[img-0]\nWhat?/"),
            (&[("a", 1), ("b", 0), ("c", 2)], "[img-0] a/b/[img-1][img-2] c/"),
            (&[("see [img] and [img]", 2)], "see [img-0] and [img-1]/"),
            (&[("see [img] and [img]", 1)], "see [img-0] and [img]/"),
            (&[("see [img]", 3)], "[img-1][img-2] see [img-0]/"),
            (&[("[img] left", 2)], "[img-1] [img-0] left/"),
            (&[("own [img-0]", 1), ("b", 1)], "own [img-0]/[img-1] b/"),
            (&[("own [img-x] [img]", 1), ("b", 1)], "own [img-x] [img]/[img-1] b/"),
            (&[("plain [img] [img-0]", 0)], "plain [img] [img-0]/"),
        ] {
            assert_eq!(written(contents).to_string(), expected);
        }
    }

    #[test]
    fn only_tags_of_attached_media_become_pieces() {
        let text = |text: &str| Piece::Text(text.to_owned());
        assert_eq!(written(&[("a [img-0]", 0)]).pieces, [text("a [img-0]/")]);
        assert_eq!(
            written(&[("[img-0] [img-1] [img-00] [img-] [img-99999999999999999999999]", 1)]).pieces,
            [Piece::Media { index: 0 }, text(" [img-1] [img-00] [img-] [img-99999999999999999999999]/")]
        );
        let prompt = written(&[("[img-1]", 1), ("b", 1), ("[img-0]", 0)]);
        assert_eq!(
            prompt.pieces,
            [Piece::Media { index: 1 }, text("/"), Piece::Media { index: 1 }, text(" b/[img-0]/")]
        );
        assert_eq!(prompt.media[1], MediaSource { message: 1, medium: 0 });
    }
}
