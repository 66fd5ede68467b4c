//! Continuations by other programs: Ollama and llama.cpp, over HTTP.

use std::{fmt, time::Duration};

use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::compare::{Continuation, Said};
use crate::{failure::Failure, output};

/// How long to wait for a connection. Answers may take any time.
const PATIENCE: Duration = Duration::from_secs(10);

/// The number of top tokens to ask for. Two are enough to compute the margin.
const TOP: usize = 2;

/// A server that continues prompts.
pub(super) struct Server {
    client: Client,
    url: String,
    kind: Kind,
}

enum Kind {
    Ollama { version: String, model: String },
    LlamaCpp,
}

impl Server {
    /// Finds out which kind of server is at `url`. Ollama needs the name of its model.
    pub(super) async fn find(url: &str, model: Option<&str>) -> Result<Self, Failure> {
        // Fails only if a provider is installed already, and then that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let agent = concat!("rullama/", env!("CARGO_PKG_VERSION"));
        let client = Client::builder().user_agent(agent).connect_timeout(PATIENCE).build();
        let client =
            client.map_err(|error| Failure::new("the HTTP client can't be set up").caused_by(error))?;
        let mut server = Self { client, url: url.to_owned(), kind: Kind::LlamaCpp };
        // A server that can't be reached fails here.
        if let Ok(version) = server.ask(Method::GET, "/api/version", None).await? {
            let version = version["version"].as_str().unwrap_or("(unknown version)").to_owned();
            let Some(model) = model else {
                let failure = Failure::new("Ollama needs the name of the model on its server");
                return Err(failure.hint("give it with --model, as in --model gemma4:e2b").usage());
            };
            server.kind = Kind::Ollama { version, model: model.to_owned() };
            return Ok(server);
        }
        match server.ask(Method::GET, "/props", None).await? {
            Ok(_) => Ok(server),
            Err(refusal) => {
                let message = format!("`{url}` is neither an Ollama nor a llama.cpp server: {refusal}");
                Err(Failure::new(message)
                    .hint("give only the server's address, such as http://localhost:11434"))
            }
        }
    }

    /// The server's greedy continuation of a prompt, with a context of `context` tokens.
    pub(super) async fn generate(
        &self,
        prompt: &str,
        ids: &[u32],
        tokens: u32,
        context: usize,
    ) -> Result<Continuation, Failure> {
        let (path, body) = match &self.kind {
            Kind::Ollama { model, .. } => ("/api/generate", ollama_request(model, prompt, tokens, context)),
            Kind::LlamaCpp => ("/completion", llama_request(ids, tokens)),
        };
        let answer = self.ask(Method::POST, path, Some(body)).await?.map_err(|refusal| {
            let message = format!("`{}{path}` returned {refusal}", self.url);
            Failure::new(message).hint("check the model's name and the server's log")
        })?;
        Ok(match self.kind {
            Kind::Ollama { .. } => ollama_answer(&answer),
            Kind::LlamaCpp => llama_answer(&answer),
        })
    }

    /// Sends a request and returns its JSON answer, or the server's refusal.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Result<Value, Refusal>, Failure> {
        let address = format!("{}{path}", self.url);
        let failed = |error| {
            Failure::new(format!("`{address}` can't be reached"))
                .caused_by(error)
                .hint("check that the server is running and that the address is right")
        };
        let mut request = self.client.request(method, &address);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(failed)?;
        let answer: Option<Value> = serde_json::from_slice(&bytes).ok();
        Ok(match answer {
            Some(value) if status.is_success() => Ok(value),
            answer => Err(Refusal { status: status.as_u16(), answer }),
        })
    }
}

/// An answer with an error status, or without JSON.
struct Refusal {
    status: u16,
    /// The answer, if it is JSON.
    answer: Option<Value>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP status {}", self.status)?;
        let Some(answer) = &self.answer else { return f.write_str(", not JSON") };
        // Ollama has its reason at `error`, llama.cpp at `error.message`.
        let error = &answer["error"];
        match error.as_str().or_else(|| error["message"].as_str()) {
            Some(reason) => write!(f, ": {}", output::harmless(reason)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Ollama { version, model } => write!(f, "Ollama {version} at {} ({model})", self.url),
            Kind::LlamaCpp => write!(f, "llama.cpp at {}", self.url),
        }
    }
}

/// A request with the raw prompt. Ollama adds the begin-of-sequence token, as we do.
///
/// Ollama would silently cut a prompt that is longer than its context, so the context is set too.
fn ollama_request(model: &str, prompt: &str, tokens: u32, context: usize) -> Value {
    json!({
        "model": model,
        "prompt": prompt,
        "raw": true,
        "stream": false,
        "logprobs": true,
        "top_logprobs": TOP,
        "options": {
            "temperature": 0,
            "num_ctx": context,
            "num_predict": tokens,
            "repeat_penalty": 1,
            "seed": 0,
        },
    })
}

fn ollama_answer(answer: &Value) -> Continuation {
    let tokens = answer["logprobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    Continuation {
        tokens: tokens.iter().map(said).collect(),
        text: answer["response"].as_str().unwrap_or_default().to_owned(),
        ended: answer["done_reason"] == "stop",
    }
}

/// The prompt in tokens, so that only what follows it is compared.
fn llama_request(ids: &[u32], tokens: u32) -> Value {
    json!({
        "prompt": ids,
        "n_predict": tokens,
        "temperature": 0,
        "n_probs": TOP,
        "repeat_penalty": 1,
        "return_tokens": true,
        "cache_prompt": false,
        "stream": false,
    })
}

fn llama_answer(answer: &Value) -> Continuation {
    let list = |name: &str| answer[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut tokens: Vec<Said> = list("completion_probabilities").iter().map(said).collect();
    // If probabilities are missing, there may still be ids.
    let ids: Vec<Option<u32>> = list("tokens").iter().map(id).collect();
    if tokens.iter().any(|token| token.id.is_none()) || tokens.len() < ids.len() {
        tokens.resize(ids.len(), Said::default());
        tokens.iter_mut().zip(&ids).for_each(|(token, &id)| token.id = token.id.or(id));
    }
    let ended = answer["stop_type"] == "eos" || answer["stopped_eos"] == true;
    let text = answer["content"].as_str().unwrap_or_default().to_owned();
    Continuation { tokens, text, ended }
}

fn id(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|id| u32::try_from(id).ok())
}

/// A token with its log-probabilities. Both servers use the same format, except that Ollama returns no ids.
fn said(token: &Value) -> Said {
    let logprob = |token: &Value| token["logprob"].as_f64().map(|logprob| logprob as f32);
    let top = token["top_logprobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let top: Vec<(Option<u32>, f32)> =
        top.iter().filter_map(|token| Some((id(&token["id"]), logprob(token)?))).collect();
    let margin = match top[..] {
        [(_, first), (_, second), ..] => Some(first - second),
        _ => None,
    };
    let text = token["token"].as_str().unwrap_or_default().to_owned();
    Said { id: id(&token["id"]), text, top, margin }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood() {
        let found = ollama_answer(&json!({ "response": "Hi", "done_reason": "stop" }));
        assert_eq!(found, Continuation { tokens: Vec::new(), text: "Hi".to_owned(), ended: true });
        let top = json!([{ "token": "Hi", "logprob": -0.5 }, { "token": "Ho", "logprob": -2.5 }]);
        let found = ollama_answer(&json!({
            "response": "Hi",
            "done_reason": "length",
            "logprobs": [{ "token": "Hi", "logprob": -0.1, "top_logprobs": top }],
        }));
        assert_eq!((found.tokens[0].margin, found.ids(), found.ended), (Some(2.0), None, false));

        let top = json!([{ "id": 7, "logprob": -0.5 }, { "id": 8, "logprob": -0.75 }]);
        let found = llama_answer(&json!({
            "content": "Hi",
            "tokens": [7],
            "stop_type": "limit",
            "completion_probabilities": [{ "id": 7, "token": "Hi", "logprob": -0.5, "top_logprobs": top }],
        }));
        assert_eq!((found.ids(), found.tokens[0].margin), (Some(vec![7]), Some(0.25)));
        let found = llama_answer(&json!({ "content": "Hi", "tokens": [7, 1], "stop_type": "eos" }));
        assert_eq!((found.ids(), found.ended), (Some(vec![7, 1]), true));
        let found = llama_answer(&json!({ "content": "Hi" }));
        assert_eq!(found.ids(), None);
    }
}
