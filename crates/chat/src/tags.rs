//! Finds tags in text that comes in chunks.
//!
//! Every tag begins with `<` and has no other `<` in it, so tags never overlap, and what may yet become one is
//! always the end of the text from its last `<` on: at most a tag's length is held back.

use crate::marks::{CALL, CHANNEL, END_CALL, END_CHANNEL, RESPONSE};

/// The tags that mean something in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    Channel,
    EndChannel,
    Call,
    EndCall,
    Response,
}

impl Tag {
    const ALL: [Self; 5] = [Self::Channel, Self::EndChannel, Self::Call, Self::EndCall, Self::Response];

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Channel => CHANNEL,
            Self::EndChannel => END_CHANNEL,
            Self::Call => CALL,
            Self::EndCall => END_CALL,
            Self::Response => RESPONSE,
        }
    }
}

/// A stretch of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Text(&'a str),
    Tag(Tag),
}

/// Splits chunks into text and tags. Where the chunks are cut makes no difference but to how text is split.
#[derive(Debug, Clone, Default)]
pub(crate) struct TagSplitter {
    /// The beginning of a tag, or of text that looks like one so far.
    candidate: String,
}

impl TagSplitter {
    pub(crate) fn push(&mut self, chunk: &str, mut take: impl FnMut(Token<'_>)) {
        let mut rest = chunk;
        while let Some(next) = rest.chars().next() {
            if self.candidate.is_empty() {
                let (text, from_mark) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
                if !text.is_empty() {
                    take(Token::Text(text));
                }
                rest = match from_mark.strip_prefix('<') {
                    Some(after) => {
                        self.candidate.push('<');
                        after
                    }
                    None => from_mark,
                };
                continue;
            }

            self.candidate.push(next);
            let could_be = |tag: &&Tag| tag.text().starts_with(self.candidate.as_str());
            match Tag::ALL.iter().find(could_be) {
                Some(tag) => {
                    rest = &rest[next.len_utf8()..];
                    if tag.text().len() == self.candidate.len() {
                        self.candidate.clear();
                        take(Token::Tag(*tag));
                    }
                }
                None => {
                    // Not a tag after all. `next` is looked at again, for it may begin one.
                    self.candidate.pop();
                    take(Token::Text(&self.candidate));
                    self.candidate.clear();
                }
            }
        }
    }

    /// What was held back when the text ended: the beginning of a tag that never came.
    pub(crate) fn finish(self) -> String {
        self.candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&str]) -> String {
        let mut splitter = TagSplitter::default();
        let mut seen = String::new();
        for chunk in chunks {
            splitter.push(chunk, |token| match token {
                Token::Text(text) => seen.push_str(text),
                Token::Tag(tag) => seen.push_str(&format!("({tag:?})")),
            });
        }
        format!("{seen}|{}", splitter.finish())
    }

    #[test]
    fn tags_are_found_wherever_chunks_end() {
        let text =
            "a<|channel>b<channel|><<|tool_call><tool_call|>é<|tool_response><|tool_cal<|\"|>< <tool_call";
        let expected = "a(Channel)b(EndChannel)<(Call)(EndCall)é(Response)<|tool_cal<|\"|>< |<tool_call";
        assert_eq!(split(&[text]), expected);
        let singly: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(split(&singly.iter().map(String::as_str).collect::<Vec<_>>()), expected);
        for (at, _) in text.char_indices() {
            assert_eq!(split(&[&text[..at], &text[at..]]), expected);
        }
    }
}
