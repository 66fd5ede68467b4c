//! Commands of Ollama that rullama does not have. Each one says what to do instead.

use crate::{arguments::OllamaArguments, failure::Failure};

pub(super) fn pull(arguments: &OllamaArguments) -> Failure {
    Failure::new("rullama doesn't download models yet")
        .hint(format!(
            "run `{}`; rullama finds the model by the same name",
            same("pull", arguments, "gemma4:e2b")
        ))
        .usage()
}

pub(super) fn stop() -> Failure {
    Failure::new("rullama keeps no model loaded in the background, so there is nothing to stop")
        .hint("`rullama ps` lists running servers; press Ctrl-C where `rullama serve` runs to stop one")
        .usage()
}

pub(super) fn create() -> Failure {
    Failure::new("rullama doesn't create models in the Ollama store")
        .hint("run `ollama create`, or `rullama convert` to make a GGUF file from a Hugging Face checkpoint")
        .usage()
}

pub(super) fn cp(arguments: &OllamaArguments) -> Failure {
    Failure::new("rullama doesn't copy models in the Ollama store")
        .hint(format!("run `{}`", same("cp", arguments, "SOURCE DESTINATION")))
        .usage()
}

/// The same command for Ollama.
fn same(command: &str, arguments: &OllamaArguments, example: &str) -> String {
    let rest = arguments.rest.join(" ");
    format!("ollama {command} {}", if rest.is_empty() { example } else { &rest })
}
