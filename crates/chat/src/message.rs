//! Messages in the shape of Ollama's `/api/chat`, read leniently.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{
    ChatError, ToolCall,
    json::{self, Fields, wrong_type},
};

/// Who speaks in a message.
///
/// Any word is accepted; the ones with a meaning in the format have a variant of their own. Case does not
/// matter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions to the model. As the first message they go into the system turn.
    System,
    /// The same, in the words of newer clients.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
    /// A turn under another name.
    Other(String),
}

impl Role {
    /// The role as requests write it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for Role {
    fn from(name: &str) -> Self {
        let name = name.to_lowercase();
        match name.as_str() {
            "system" => Self::System,
            "developer" => Self::Developer,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool" => Self::Tool,
            _ => Self::Other(name),
        }
    }
}

impl Serialize for Role {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Role {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(String::deserialize(deserializer)?.as_str()))
    }
}

/// One message of a conversation.
///
/// Reading from JSON forgives what clients do: content may be missing or `null`, arguments of tool calls may
/// be JSON in a string, a tool message may say `name` for `tool_name`, unknown fields are ignored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
    /// What the model thought before it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// Attached images: the base64 text of a request, or whatever names them to the caller.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Attached sounds, in the same way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audio: Vec<String>,
    /// Tools the model calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// In a tool message: which tool answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// In a tool message: which call is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message with a role and a text.
    #[must_use]
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            thinking: None,
            images: Vec::new(),
            audio: Vec::new(),
            tool_calls: Vec::new(),
            tool_name: None,
            tool_call_id: None,
        }
    }

    /// Instructions to the model.
    #[must_use]
    pub fn system(content: impl Into<String>) -> Self {
        Self::new(Role::System, content)
    }

    /// Something the person says.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self::new(Role::User, content)
    }

    /// Something the model said.
    #[must_use]
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new(Role::Assistant, content)
    }

    /// What the tool `tool_name` answered.
    #[must_use]
    pub fn tool(tool_name: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool_name: Some(tool_name.into()), ..Self::new(Role::Tool, content) }
    }

    /// Everything attached, in the order in which a prompt has it: images, then sounds.
    pub fn media(&self) -> impl ExactSizeIterator<Item = &str> {
        let (images, audio) = (&self.images, &self.audio);
        (0..images.len() + audio.len()).map(move |index| match images.get(index) {
            Some(image) => image.as_str(),
            None => audio[index - images.len()].as_str(),
        })
    }

    /// Reads a message from a JSON value.
    ///
    /// # Errors
    ///
    /// When the role is missing, or a field holds the wrong kind of value.
    pub fn from_value(value: Value) -> Result<Self, ChatError> {
        read_message(value, "message")
    }
}

fn read_message(value: Value, at: &str) -> Result<Message, ChatError> {
    let mut fields = Fields::new(value, at)?;
    let role = Role::from(fields.required_string("role")?.as_str());
    // On other messages `name` is the name of a participant, which the format has no place for.
    let name = if role == Role::Tool { fields.string("name")? } else { None };
    Ok(Message {
        content: fields.string("content")?.unwrap_or_default(),
        thinking: fields.string("thinking")?,
        images: fields.list("images", attachment)?,
        audio: fields.list("audio", attachment)?,
        tool_calls: fields.list("tool_calls", ToolCall::read)?,
        tool_name: fields.string("tool_name")?.or(name),
        tool_call_id: fields.string("tool_call_id")?,
        role,
    })
}

fn attachment(value: Value, at: &str) -> Result<String, ChatError> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(wrong_type(at, &other, "a string")),
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Reads the `messages` of a request from JSON text. Errors name the message by its index.
///
/// # Errors
///
/// When the text is not JSON, not a list, or a message in it cannot be read.
///
/// ```
/// let error = rullama_chat::parse_messages(r#"[{"role":"user","content":1}]"#).unwrap_err();
/// assert_eq!(error.to_string(), "`messages[0].content` is a number (expected a string)");
/// assert_eq!(error.code(), "chat.wrong_type");
/// ```
pub fn parse_messages(text: &str) -> Result<Vec<Message>, ChatError> {
    json::list(json::parse(text, "messages")?, "messages", read_message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Message {
        Message::from_value(value).unwrap()
    }

    #[test]
    fn carelessness_of_clients_is_forgiven() {
        assert_eq!(read(json!({"role": "User"})), Message::user(""));
        assert_eq!(read(json!({"role": "user", "content": null, "mood": "good"})), Message::user(""));
        assert_eq!(read(json!({"role": "critic", "content": "no"})).role, Role::Other("critic".into()));
        assert_eq!(
            read(json!({"role": "tool", "name": "bash", "content": "ok"})),
            Message::tool("bash", "ok")
        );
        assert_eq!(
            read(json!({"role": "tool", "name": "a", "tool_name": "b", "content": "ok"})),
            Message::tool("b", "ok")
        );
        assert_eq!(read(json!({"role": "user", "name": "Ada", "content": "hi"})), Message::user("hi"));
        let empty = json!({"role": "assistant", "content": "", "thinking": "", "images": null,
            "tool_calls": null, "tool_name": "", "tool_call_id": ""});
        assert_eq!(read(empty), Message::assistant(""));
    }

    #[test]
    fn arguments_come_as_an_object_a_string_or_not_at_all() {
        let call = |arguments: Value| {
            let function = json!({"name": "f", "arguments": arguments});
            let message = json!({"role": "assistant", "tool_calls": [{"id": "1", "function": function}]});
            read(message).tool_calls.remove(0).function.arguments
        };
        let object = json!({"a": 1});
        assert_eq!(Value::from(call(object.clone())), object);
        assert_eq!(Value::from(call(json!("{\"a\": 1}"))), object);
        for nothing in [json!(null), json!(""), json!(" "), json!("null"), json!("{}"), json!({})] {
            assert!(call(nothing).is_empty());
        }
    }

    #[test]
    fn errors_name_the_place() {
        for (text, place, code) in [
            ("[{]", "messages", "chat.invalid_json"),
            ("{}", "messages", "chat.wrong_type"),
            ("[1]", "messages[0]", "chat.wrong_type"),
            (r#"[{"content":"x"}]"#, "messages[0].role", "chat.missing_field"),
            (r#"[{"role":"user","images":[1]}]"#, "messages[0].images[0]", "chat.wrong_type"),
            (r#"[{"role":"user","audio":["", {}]}]"#, "messages[0].audio[1]", "chat.wrong_type"),
            (
                r#"[{"role":"user"},{"role":"assistant","tool_calls":[{}]}]"#,
                "messages[1].tool_calls[0].function",
                "chat.missing_field",
            ),
            (
                r#"[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{a"}}]}]"#,
                "messages[0].tool_calls[0].function.arguments",
                "chat.invalid_json",
            ),
            (
                r#"[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"[]"}}]}]"#,
                "messages[0].tool_calls[0].function.arguments",
                "chat.wrong_type",
            ),
        ] {
            let error = parse_messages(text).unwrap_err();
            assert_eq!(error.code(), code, "{text}");
            assert!(error.to_string().contains(&format!("`{place}`")), "{error}");
        }
    }

    #[test]
    fn a_message_survives_json() {
        let message = json!({"role": "assistant", "content": "c", "thinking": "t", "images": ["AA=="],
            "audio": ["AQ=="], "tool_calls": [{"id": "call_1",
                "function": {"index": 1, "name": "f", "arguments": {"b": 1, "a": 2.5}}}],
            "tool_name": "n", "tool_call_id": "i"});
        assert_eq!(serde_json::to_value(read(message.clone())).unwrap(), message);
        let plain = json!({"role": "user", "content": "c"});
        assert_eq!(serde_json::to_value(Message::user("c")).unwrap(), plain);
    }
}
