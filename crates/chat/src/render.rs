//! The renderer: a conversation becomes a prompt.
//!
//! Results of tools have no turns of their own. They follow the calls they answer, inside the model's turn, and
//! neighbouring messages of the model share one turn, so that a model sees a round of calls the way it wrote
//! it: thought, calls, results, answer.

use std::borrow::Cow;

use crate::{
    ChatError, Message, Prompt, PromptStyle, Role, Tool, ToolCall,
    declaration::write_declaration,
    json::check_depth,
    marks::{
        BEGIN, CALL, CHANNEL, END_CALL, END_CHANNEL, END_RESPONSE, END_TURN, QUOTE, RESPONSE, THINK, THOUGHT,
        TURN,
    },
    prompt::PromptWriter,
    value::{Keys, write_object},
};

/// What a prompt is made from.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<'a> {
    /// The messages, oldest first.
    pub messages: &'a [Message],
    /// The tools offered to the model.
    pub tools: &'a [Tool],
    /// Whether the model is asked to think.
    pub think: bool,
}

/// Renders a conversation to the prompt that asks the model for the next message.
///
/// # Errors
///
/// [`ChatError::TooDeep`] when a tool's schema or a call's arguments are nested more deeply than anything read
/// from JSON text can be.
pub fn render(conversation: &Conversation<'_>, style: PromptStyle) -> Result<Prompt, ChatError> {
    let mut out = PromptWriter::default();
    out.push(BEGIN);
    let turns_from = write_system(&mut out, conversation)?;
    let ending = write_turns(&mut out, conversation.messages, turns_from)?;

    let think = conversation.think;
    match ending {
        Ending::Closed => {
            out.push(TURN);
            out.push("model\n");
            if style == PromptStyle::Large && !think {
                write_thought_mark(&mut out);
                out.push(END_CHANNEL);
            }
        }
        Ending::Responses if think => write_thought_mark(&mut out),
        Ending::Responses | Ending::PendingCalls => {}
    }
    Ok(out.finish(think && ending == Ending::Responses))
}

/// Writes the system turn if there is anything to say in it. Returns the index of the first message after it.
fn write_system(out: &mut PromptWriter, conversation: &Conversation<'_>) -> Result<usize, ChatError> {
    let system = conversation.messages.first().filter(|m| matches!(m.role, Role::System | Role::Developer));
    if system.is_none() && conversation.tools.is_empty() && !conversation.think {
        return Ok(0);
    }
    write_turn_mark(out, &Role::System);
    if conversation.think {
        out.push(THINK);
    }
    if let Some(message) = system {
        out.push(message.content.trim());
    }
    for tool in conversation.tools {
        write_declaration(&mut out.text, tool)?;
    }
    out.push(END_TURN);
    Ok(usize::from(system.is_some()))
}

/// How the last message left the prompt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Its turn is over.
    Closed,
    /// It called tools that have not answered.
    PendingCalls,
    /// Tools answered it. The model goes on in the turn in which it called them.
    Responses,
}

fn write_turns(out: &mut PromptWriter, messages: &[Message], from: usize) -> Result<Ending, ChatError> {
    let last_user = messages.iter().rposition(|m| m.role == Role::User).filter(|&last| last >= from);
    let mut ending = Ending::Closed;
    let mut previous: Option<&Role> = None;

    for (i, message) in messages.iter().enumerate().skip(from) {
        if message.role == Role::Tool {
            continue; // written with the calls it answers, or ignored where there are none
        }
        let is_model = message.role == Role::Assistant;
        if !(is_model && previous == Some(&Role::Assistant)) {
            write_turn_mark(out, &message.role);
        }

        // Thoughts before the last question are spent; the model is trained not to see them again.
        if is_model
            && last_user.is_none_or(|last| i > last)
            && let Some(thought) = message.thinking.as_deref().filter(|thought| !thought.is_empty())
        {
            write_thought_mark(out);
            out.push(thought);
            out.push("\n");
            out.push(END_CHANNEL);
        }

        ending = write_calls(out, messages, i)?;

        let content = if is_model { without_thoughts(&message.content) } else { (&*message.content).into() };
        let content = content.trim();
        out.push_content(content, i, message.media().len());

        let next = messages[i + 1..].iter().map(|m| &m.role).find(|role| **role != Role::Tool);
        let has_content = !content.is_empty() || message.media().len() > 0;
        match ending {
            Ending::PendingCalls => out.push(RESPONSE),
            _ if is_model && next == Some(&Role::Assistant) => {}
            Ending::Responses if !has_content && next.is_none() => {}
            _ => out.push(END_TURN),
        }
        previous = Some(&message.role);
    }
    Ok(ending)
}

/// Writes the calls of message `i` and the answers that follow it.
fn write_calls(out: &mut PromptWriter, messages: &[Message], i: usize) -> Result<Ending, ChatError> {
    let calls = &messages[i].tool_calls;
    if calls.is_empty() {
        return Ok(Ending::Closed);
    }
    for call in calls {
        write_call(&mut out.text, call)?;
    }
    let mut ending = Ending::PendingCalls;
    for (k, answer) in messages.iter().enumerate().skip(i + 1).take_while(|(_, m)| m.role == Role::Tool) {
        out.push(RESPONSE);
        out.push("response:");
        out.push(answering_tool(answer, calls));
        out.push("{value:");
        out.push(QUOTE);
        out.push_content(&answer.content, k, answer.media().len());
        out.push(QUOTE);
        out.push("}");
        out.push(END_RESPONSE);
        ending = Ending::Responses;
    }
    Ok(ending)
}

/// Writes one tool call.
pub(crate) fn write_call(out: &mut String, call: &ToolCall) -> Result<(), ChatError> {
    let function = &call.function;
    check_depth(function.arguments.values(), || format!("an argument of the call of `{}`", function.name))?;
    out.push_str(CALL);
    out.push_str("call:");
    out.push_str(&function.name);
    write_object(out, &function.arguments, Keys::Bare);
    out.push_str(END_CALL);
    Ok(())
}

/// The name of the tool that answers: by the call it refers to, else as it says itself.
fn answering_tool<'a>(answer: &'a Message, calls: &'a [ToolCall]) -> &'a str {
    let given = |text: &'a Option<String>| text.as_deref().filter(|text| !text.is_empty());
    given(&answer.tool_call_id)
        .and_then(|id| calls.iter().find(|call| call.id.as_deref() == Some(id)))
        .map(|call| call.function.name.as_str())
        .or(given(&answer.tool_name))
        .unwrap_or("unknown")
}

fn write_turn_mark(out: &mut PromptWriter, role: &Role) {
    out.push(TURN);
    out.push(if *role == Role::Assistant { "model" } else { role.as_str() });
    out.push("\n");
}

fn write_thought_mark(out: &mut PromptWriter) {
    out.push(CHANNEL);
    out.push(THOUGHT);
}

/// The text of a stored answer less the thoughts left in it. A thought that does not end takes the rest along.
fn without_thoughts(content: &str) -> Cow<'_, str> {
    let Some((before, mut rest)) = content.split_once(CHANNEL) else {
        return Cow::Borrowed(content);
    };
    let mut kept = before.to_owned();
    while let Some((_, after)) = rest.split_once(END_CHANNEL) {
        match after.split_once(CHANNEL) {
            Some((before, next)) => {
                kept.push_str(before);
                rest = next;
            }
            None => {
                kept.push_str(after);
                break;
            }
        }
    }
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    #[test]
    fn thoughts_are_cut_out_of_stored_answers() {
        for (content, expected) in [
            ("plain", "plain"),
            ("<|channel>a<channel|>b", "b"),
            ("a<|channel>b<channel|>c<|channel>d<channel|>e", "ace"),
            ("a<|channel>b", "a"),
            ("a<|channel>b<|channel>c<channel|>d", "ad"),
            ("a<channel|>b", "a<channel|>b"),
            ("a<|channel>b<channel|>c<|channel>d", "ac"),
        ] {
            assert_eq!(without_thoughts(content), expected, "{content}");
        }
    }

    /// A value far deeper than JSON text can be. Dropping one overflows the stack, so it must be forgotten.
    fn abyss() -> Value {
        (0..100_000).fold(Value::Null, |inner, _| Value::Array(vec![inner]))
    }

    #[test]
    fn bottomless_values_are_an_error() {
        let tools =
            [Tool::function("f", "", Value::Object(Map::from_iter([("properties".into(), abyss())])))];
        let with_tools = Conversation { messages: &[], tools: &tools, think: false };
        let error = render(&with_tools, PromptStyle::Small).unwrap_err();
        assert_eq!(error.to_string(), "the schema of tool `f` is nested more than 128 levels deep");
        std::mem::forget(tools);

        let call = ToolCall::new("f", Map::from_iter([("a".into(), abyss())]));
        let messages = [Message { tool_calls: vec![call], ..Message::assistant("") }];
        let with_call = Conversation { messages: &messages, tools: &[], think: false };
        assert_eq!(render(&with_call, PromptStyle::Small).unwrap_err().code(), "chat.too_deep");
        std::mem::forget(messages);
    }
}
