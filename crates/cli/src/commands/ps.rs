//! `rullama ps`: the rullama servers on this machine.

use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};

use crate::{arguments::PsArguments, failure::Failure, output, server};

/// A server on this machine answers at once, or is busy with something else than a health check.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn run(arguments: &PsArguments) -> Result<(), Failure> {
    let ports = match arguments.port {
        Some(port) => port..=port,
        None => server::DEFAULT_PORTS,
    };
    // Fails only if a provider is installed already, and then that one is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Nothing is sent to a server, and what it answers is only shown, so its own certificate need not be trusted.
    let client = Client::builder().timeout(PATIENCE).tls_danger_accept_invalid_certs(true).no_proxy().build();
    let client = client.map_err(|error| Failure::new("the HTTP client can't be set up").caused_by(error))?;
    let mut servers = Vec::new();
    for port in ports {
        servers.extend(ask(&client, port).await);
    }
    if arguments.json {
        return Ok(output::json(&json!({ "servers": servers }))?);
    }
    if servers.is_empty() {
        let place = arguments.port.map_or(String::new(), |port| format!(" on port {port}"));
        return Ok(output::line(&format!(
            "No rullama server is running{place}. `rullama serve` starts one.\n\n\
             rullama keeps no model loaded in the background: a model runs in the browser tab, or in the\n\
             `rullama run` or `rullama generate` process, that loaded it.",
        ))?);
    }
    let mut rows = vec![["ADDRESS", "VERSION", "MODELS"].map(String::from).to_vec()];
    for server in &servers {
        let text = |key: &str| server[key].as_str().map_or(server[key].to_string(), str::to_owned);
        rows.push(["url", "version", "models"].map(text).to_vec());
    }
    output::table(&rows)?;
    Ok(output::line("\nThese servers send models to browsers. A model runs in the tab that loaded it.")?)
}

/// The rullama server at a port, by HTTP or by HTTPS.
async fn ask(client: &Client, port: u16) -> Option<Value> {
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://127.0.0.1:{port}/");
        let answer = match get(client, &format!("{url}api/health")).await {
            Err(error) if error.is_connect() && scheme == "http" => return None,
            Err(_) => continue,
            Ok(answer) => answer,
        };
        let Some(version) = answer["version"].as_str().filter(|_| answer["status"] == "ok") else { continue };
        let models = get(client, &format!("{url}api/models")).await.unwrap_or_default();
        let models = models["models"].as_array().map_or(0, Vec::len);
        return Some(json!({ "url": url, "version": version, "models": models }));
    }
    None
}

/// An answer as JSON; null if it is something else.
async fn get(client: &Client, url: &str) -> Result<Value, reqwest::Error> {
    let bytes = client.get(url).send().await?.bytes().await?;
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}
