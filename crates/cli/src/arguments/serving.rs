//! Arguments of `rullama serve`.

use std::{net::IpAddr, path::PathBuf};

use clap::Args;

use super::values::port;

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Address to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", value_parser = host, conflicts_with = "lan")]
    pub(crate) host: Option<IpAddr>,
    /// Port to listen on; 0 picks a free one [default: 11435, or the next free port]
    #[arg(long, value_name = "PORT", value_parser = port, allow_negative_numbers = true)]
    pub(crate) port: Option<u16>,
    /// Allow other machines on the network to connect, and print a QR code for phones. The address in the code contains
    /// the token for the log
    #[arg(long)]
    pub(crate) lan: bool,
    /// Use HTTPS. Browsers on other machines need it for WebGPU
    #[arg(long)]
    pub(crate) https: bool,
    /// Folder for the HTTPS certificate [default: rullama in your data folder]
    #[arg(long, value_name = "DIR", requires = "https")]
    pub(crate) certificate: Option<PathBuf>,
    /// Folder of the built web app [default: the folder app beside the program, or else the app inside the program]
    #[arg(long, value_name = "DIR")]
    pub(crate) app: Option<PathBuf>,
    /// Folder of an Ollama store; can be repeated [default: Ollama's own]
    #[arg(long, value_name = "DIR")]
    pub(crate) models: Vec<PathBuf>,
    /// Also serve this GGUF file; can be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) model: Vec<PathBuf>,
    /// Do not serve the demo model
    #[arg(long)]
    pub(crate) no_demo: bool,
    /// Let pages from this origin read the models, such as http://localhost:5173, or * for any; can be repeated
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub(crate) cors: Vec<String>,
    /// Append messages from pages to this file as JSON lines, up to 16 MiB
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
    /// Open the app in your browser
    #[arg(long)]
    pub(crate) open: bool,
}

/// An address of this machine.
fn host(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
        _ => text.parse().map_err(|_| "expected an IP address such as 127.0.0.1".to_owned()),
    }
}

/// An origin as browsers write it: a scheme, a host and an optional port, without a path.
fn origin(text: &str) -> Result<String, String> {
    let bare = text.strip_suffix('/').unwrap_or(text);
    let host = bare.split_once("://").map_or("", |(_, host)| host);
    if bare == "*"
        || (!host.is_empty() && !host.contains('/') && bare.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        return Ok(bare.to_ascii_lowercase());
    }
    Err("expected an origin such as http://localhost:5173".to_owned())
}
