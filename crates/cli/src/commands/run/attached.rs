//! Images and sounds of a chat: files that go with the next message, and stay in the conversation.

use rullama_gemma::Medium;

use super::{Chat, complain, say};
use crate::{
    commands::prompt,
    failure::Failure,
    media::Decoded,
    media_source::{self, Typed},
};

/// The prompt of a question from the command line, and the files whose paths stand in it, as Ollama takes them. Text that is
/// piped in names no files.
pub(super) fn in_question(text: &str, reads: &[Medium]) -> Result<Typed, Failure> {
    let typed = media_source::typed(text);
    if !typed.is_for(reads) {
        return Ok(Typed { text: prompt::given(text)?, files: Vec::new() });
    }
    let text = match (typed.text.is_empty(), prompt::is_piped()) {
        (false, _) => prompt::given(&typed.text)?,
        (true, true) => prompt::piped().unwrap_or_default(),
        // An image says enough.
        (true, false) => String::new(),
    };
    Ok(Typed { text, files: typed.files })
}

impl Chat {
    /// Answers a message with paths in it; paths alone are kept for the next message. Without one of its files the message
    /// would be another question, so it is not sent.
    pub(super) async fn with_files(&mut self, typed: Typed) -> Result<(), Failure> {
        let before = self.attached.len();
        let read = typed.files.iter().map(|(medium, path)| Decoded::given(path, *medium));
        let done = self.attach_all(read).await?;
        if typed.text.is_empty() {
            return done.iter().try_for_each(|line| say(line));
        }
        if done.len() < typed.files.len() {
            self.attached.truncate(before);
            return say("The message was not sent, and nothing was attached to the next one.");
        }
        done.iter().try_for_each(|line| say(line))?;
        self.message(&typed.text).await
    }

    /// Attaches files to the next message, and returns a line about each that was attached. Failures are shown and do not
    /// end the chat; Ctrl-C leaves out the rest.
    pub(super) async fn attach_all(
        &mut self,
        all: impl Iterator<Item = Result<Decoded, Failure>>,
    ) -> Result<Vec<String>, Failure> {
        let mut done = Vec::new();
        for decoded in all {
            let attached = match decoded {
                Ok(decoded) => self.attach(decoded).await,
                Err(failure) => Err(failure),
            };
            match attached {
                Ok(Some(line)) => done.push(line),
                Ok(None) => {
                    say("Stopped.")?;
                    break;
                }
                Err(failure) => complain(&failure)?,
            }
        }
        Ok(done)
    }

    /// Encodes something for the next message, and returns a line that says so; `None` if the user pressed Ctrl-C. An image or
    /// a sound that the engine knows is not encoded again.
    pub(super) async fn attach(&mut self, decoded: Decoded) -> Result<Option<String>, Failure> {
        let engine = self.session.engine().clone();
        let attachment = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => return Ok(None),
            encoded = decoded.encode(&engine, self.budget) => encoded?,
        };
        let (label, size, rows) = (&decoded.label, decoded.size(), attachment.rows().len());
        let line = format!("Attached {label} to your next message: {size}, {rows} tokens.");
        let name = format!("attachment {}", self.options.media.len());
        self.options.media.insert(name.clone(), attachment);
        self.attached.push((decoded.medium(), name));
        Ok(Some(line))
    }
}
