//! Images and sounds of a chat: files that go with the next message, and stay in the conversation.

use std::path::Path;

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
    /// Answers a message with paths in it; paths alone are kept for the next message.
    pub(super) async fn with_files(&mut self, typed: Typed) -> Result<(), Failure> {
        let before = self.attached.len();
        for (medium, path) in &typed.files {
            if !self.attach_file(*medium, path).await? {
                // Without its image the message would be another question.
                self.attached.truncate(before);
                return Ok(());
            }
        }
        if typed.text.is_empty() { Ok(()) } else { self.message(&typed.text).await }
    }

    /// Attaches a file to the next message, and says so. A failure is shown and does not end the chat; the result is whether
    /// the file was attached.
    pub(super) async fn attach_file(&mut self, medium: Medium, path: &Path) -> Result<bool, Failure> {
        let attached = match Decoded::read(path, medium) {
            Ok(decoded) => self.attach(decoded, true).await,
            Err(failure) => Err(failure),
        };
        match attached {
            Err(failure) if !failure.is_closed_pipe() => complain(&failure).map(|()| false),
            attached => attached,
        }
    }

    /// Encodes something for the next message, until it is done or the user presses Ctrl-C. An image or a sound that the
    /// engine knows is not encoded again.
    pub(super) async fn attach(&mut self, decoded: Decoded, confirm: bool) -> Result<bool, Failure> {
        let engine = self.session.engine().clone();
        let attachment = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => return say("Nothing was attached.").map(|()| false),
            encoded = decoded.encode(&engine, self.budget) => encoded?,
        };
        if confirm {
            let (label, size, rows) = (&decoded.label, decoded.size(), attachment.rows().len());
            say(&format!("Attached {label} to your next message: {size}, {rows} tokens."))?;
        }
        let name = format!("attachment {}", self.options.media.len());
        self.options.media.insert(name.clone(), attachment);
        self.attached.push((decoded.medium(), name));
        Ok(true)
    }
}
