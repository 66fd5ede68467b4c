//! `rullama render`.

use rullama_chat::{Conversation, render};
use serde_json::json;

use crate::{arguments::RenderArguments, failure::Failure, model, output, request::Request};

pub(super) async fn run(arguments: &RenderArguments) -> Result<(), Failure> {
    let opened = model::open(&arguments.model).await?;
    opened.check_architecture()?;
    let mut request = Request::read(&arguments.messages)?;
    if let Some(path) = &arguments.tools {
        request.read_tools(path)?;
    }
    request.prepend_defaults(&opened)?;
    let think = request.thinks(arguments.think);
    let conversation = Conversation { messages: &request.messages, tools: &request.tools, think };
    let prompt = render(&conversation, opened.prompt_style()?)?.to_string();
    if arguments.json {
        return Ok(output::json(&json!({ "prompt": prompt }))?);
    }
    Ok(output::verbatim(prompt.as_bytes())?)
}
