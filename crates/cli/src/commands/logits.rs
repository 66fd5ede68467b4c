//! `rullama logits`: the logits for a prompt, in a NumPy file.

use rullama_engine::{ChatOptions, PromptRows};
use serde_json::json;

use super::npy::Matrix;
use crate::{
    arguments::LogitsArguments, engine, failure::Failure, media::Attachments, model, output,
    request::Request, whole_file,
};

pub(super) async fn run(arguments: &LogitsArguments) -> Result<(), Failure> {
    let towers = &arguments.towers;
    let opened = model::open(&arguments.model).await?.with_towers(towers.projector.as_deref()).await?;
    let out = &arguments.out;
    // Checked before the logits are computed, which takes time.
    let target = whole_file::target(out)?;
    let conversation = match &arguments.messages {
        None => None,
        Some(path) => {
            let mut request = Request::read(path)?;
            let attachments = Attachments::of(&mut request.messages)?;
            attachments.check(&opened.model)?;
            request.prepend_defaults(&opened)?;
            Some((request, attachments))
        }
    };
    let engine = engine::load(opened, arguments.backend, &arguments.load, None).await?;
    let prompt = match conversation {
        Some((request, attachments)) => {
            let media = attachments.encode(&engine, towers.budget.unwrap_or_default()).await?;
            // Off unless something says otherwise: the logits are those of the answer's first token.
            let think = request.asks_to_think(arguments.think);
            let options = ChatOptions { think, tools: request.tools, media, ..ChatOptions::default() };
            engine.prompt(&request.messages, &options)?.1
        }
        None => PromptRows::from(arguments.ids.as_ref().map_or(&[][..], |ids| &ids.0)),
    };
    let ids = prompt.ids.clone();
    let logits = engine::session(&engine)?.logits(prompt, arguments.all).await?;
    let (rows, vocabulary) = (logits.rows(), logits.vocabulary);
    Matrix { values: logits.values, columns: vocabulary }.keep(out, target).await?;
    if arguments.json {
        let value = json!({ "rows": rows, "vocabulary": vocabulary, "path": out, "ids": ids });
        return Ok(output::json(&value)?);
    }
    Ok(output::line(&format!("wrote {rows} × {vocabulary} logits to {}", out.display()))?)
}
