//! Conversations from files, in the format of Ollama's `/api/chat`.

use std::path::Path;

use rullama_chat::{ChatError, Message, Role, Think, Tool};
use serde_json::Value;

use crate::{
    arguments::Switch,
    commands::read_input,
    failure::{CHAT_HINT, Failure},
    model::Opened,
};

/// The contents of a messages file: a list of messages, or a whole request for `/api/chat`.
pub(crate) struct Request {
    pub(crate) messages: Vec<Message>,
    pub(crate) tools: Vec<Tool>,
    /// What the file says, if it does.
    think: Option<Think>,
}

impl Request {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let mut value = read_json(path)?;
        let Some(body) = value.as_object_mut() else {
            let messages = messages(path, value)?;
            return Ok(Self { messages, tools: Vec::new(), think: None });
        };
        let mut field = |name: &str| body.remove(name).unwrap_or_default();
        let think = field("think");
        Ok(Self {
            messages: messages(path, field("messages"))?,
            tools: match field("tools") {
                Value::Null => Vec::new(),
                tools => list(path, "tools", tools, Tool::from_value)?,
            },
            think: match think {
                Value::Null => None,
                think => Some(Think::from_value(&think).map_err(|error| in_file(path, error))?),
            },
        })
    }

    /// One message from the user.
    pub(crate) fn message(text: &str) -> Self {
        Self { messages: vec![Message::user(text)], tools: Vec::new(), think: None }
    }

    /// Takes the tools from a file of their own.
    pub(crate) fn read_tools(&mut self, path: &Path) -> Result<(), Failure> {
        self.tools = list(path, "tools", read_json(path)?, Tool::from_value)?;
        Ok(())
    }

    /// Whether the model thinks: as the command line says, or else the request.
    pub(crate) fn thinks(&self, argument: Option<Switch>) -> bool {
        argument.map_or(self.think.unwrap_or_default().is_on(), |switch| switch == Switch::On)
    }

    /// Whether the command line or the request asks the model to think.
    pub(crate) fn asks_to_think(&self, argument: Option<Switch>) -> bool {
        argument.map_or(self.think.is_some_and(Think::is_on), |switch| switch == Switch::On)
    }

    /// Puts the system prompt and the messages of a stored model before the conversation, as Ollama does.
    pub(crate) fn prepend_defaults(&mut self, opened: &Opened) -> Result<(), Failure> {
        let Some(stored) = &opened.stored else { return Ok(()) };
        let starts_with_system =
            self.messages.first().is_some_and(|message| message.role.as_str() == "system");
        let mut messages = Vec::new();
        if let Some(system) = stored.system.as_ref().filter(|text| !text.is_empty() && !starts_with_system) {
            messages.push(Message::system(system.as_str()));
        }
        for message in &stored.messages {
            // Only text: what a model's entry names is no file of the user's.
            let message = Message::from_value(message.clone())?;
            messages.push(Message { images: Vec::new(), audio: Vec::new(), ..message });
        }
        messages.append(&mut self.messages);
        self.messages = messages;
        Ok(())
    }
}

fn read_json(path: &Path) -> Result<Value, Failure> {
    let bytes = read_input(path)?;
    // Some editors begin a file with a byte order mark.
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    serde_json::from_slice(text).map_err(|error| {
        Failure::new(format!("{} is not valid JSON", shown(path))).caused_by(error).hint(CHAT_HINT)
    })
}

/// Reads messages, and refuses roles that prompts do not have: a model would read them as text.
fn messages(path: &Path, value: Value) -> Result<Vec<Message>, Failure> {
    let messages = list(path, "messages", value, Message::from_value)?;
    for (index, message) in messages.iter().enumerate() {
        if let Role::Other(role) = &message.role {
            return Err(Failure::new(format!(
                "messages[{index}] in {} has the unknown role `{role}`",
                shown(path)
            ))
            .hint("a role is one of system, developer, user, assistant, tool"));
        }
    }
    Ok(messages)
}

/// Reads every element of a JSON list.
fn list<T>(
    path: &Path,
    what: &str,
    value: Value,
    read: impl Fn(Value) -> Result<T, ChatError>,
) -> Result<Vec<T>, Failure> {
    let Value::Array(elements) = value else {
        let message = format!("{} is not a list of {what}", shown(path));
        return Err(Failure::new(message).hint(format!("write {what} as for Ollama's /api/chat: [{{…}}, …]")));
    };
    let read = |(index, element)| {
        read(element).map_err(|error| {
            let message = format!("{what}[{index}] in {} is not valid", shown(path));
            Failure::new(message).caused_by(error).hint(CHAT_HINT)
        })
    };
    elements.into_iter().enumerate().map(read).collect()
}

/// The file's name in a message.
fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { format!("`{}`", path.display()) }
}

fn in_file(path: &Path, error: ChatError) -> Failure {
    Failure::new(format!("{} is not valid", shown(path))).caused_by(error)
}
