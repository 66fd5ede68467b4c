//! `rullama render`.

use std::{
    io::{self, IsTerminal as _, Write},
    path::Path,
};

use rullama_chat::{ChatError, Conversation, Message, Think, Tool, render};
use rullama_gguf::ollama::StoredModel;
use serde_json::{Value, json};

use super::read_input;
use crate::{
    arguments::{RenderArguments, Switch},
    failure::Failure,
    model, output,
};

pub(super) async fn run(arguments: &RenderArguments) -> Result<(), Failure> {
    let opened = model::open(&arguments.model).await?;
    let mut request = Request::read(&arguments.messages)?;
    if let Some(path) = &arguments.tools {
        request.tools = list(path, "tools", read_json(path)?, Tool::from_value)?;
    }
    if let Some(stored) = &opened.stored {
        request.prepend_defaults(stored)?;
    }
    let think = match arguments.think {
        Some(switch) => switch == Switch::On,
        None => request.think.is_on(),
    };
    let conversation = Conversation { messages: &request.messages, tools: &request.tools, think };
    let prompt = render(&conversation, opened.prompt_variant())?.to_string();
    if arguments.json {
        return Ok(output::json(&json!({ "prompt": prompt }))?);
    }
    let mut output = io::stdout().lock();
    output.write_all(prompt.as_bytes())?;
    if output.is_terminal() {
        output.write_all(b"\n")?;
    }
    Ok(output.flush()?)
}

/// What a messages file may say: a list of messages, or a whole request for `/api/chat`.
struct Request {
    messages: Vec<Message>,
    tools: Vec<Tool>,
    think: Think,
}

impl Request {
    fn read(path: &Path) -> Result<Self, Failure> {
        let mut value = read_json(path)?;
        let Some(body) = value.as_object_mut() else {
            let messages = list(path, "messages", value, Message::from_value)?;
            return Ok(Self { messages, tools: Vec::new(), think: Think::default() });
        };
        let mut field = |name: &str| body.remove(name).unwrap_or_default();
        let think = field("think");
        Ok(Self {
            messages: list(path, "messages", field("messages"), Message::from_value)?,
            tools: match field("tools") {
                Value::Null => Vec::new(),
                tools => list(path, "tools", tools, Tool::from_value)?,
            },
            think: Think::from_value(&think).map_err(|error| in_file(path, error))?,
        })
    }

    /// Puts before the conversation what the model brings along, as Ollama does.
    fn prepend_defaults(&mut self, stored: &StoredModel) -> Result<(), Failure> {
        let starts_with_system =
            self.messages.first().is_some_and(|message| message.role.as_str() == "system");
        let mut messages = Vec::new();
        if let Some(system) = stored.system.as_ref().filter(|text| !text.is_empty() && !starts_with_system) {
            messages.push(Message::system(system.as_str()));
        }
        for message in &stored.messages {
            messages.push(Message::from_value(message.clone())?);
        }
        messages.append(&mut self.messages);
        self.messages = messages;
        Ok(())
    }
}

fn read_json(path: &Path) -> Result<Value, Failure> {
    serde_json::from_slice(&read_input(path)?)
        .map_err(|error| Failure::new(format!("`{}` is not JSON", path.display())).caused_by(error))
}

/// Reads every element of a JSON list.
fn list<T>(
    path: &Path,
    what: &str,
    value: Value,
    read: impl Fn(Value) -> Result<T, ChatError>,
) -> Result<Vec<T>, Failure> {
    let Value::Array(elements) = value else {
        let message = format!("`{}` does not hold a list of {what}", path.display());
        return Err(
            Failure::new(message).hint(format!("{what} are written as in Ollama's /api/chat: [{{…}}, …]"))
        );
    };
    elements.into_iter().map(|element| read(element).map_err(|error| in_file(path, error))).collect()
}

fn in_file(path: &Path, error: ChatError) -> Failure {
    Failure::new(format!("`{}` cannot be used", path.display())).caused_by(error)
}
