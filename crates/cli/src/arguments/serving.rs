//! What `rullama serve` takes.

use std::{net::IpAddr, path::PathBuf};

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The address to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", value_parser = host, conflicts_with = "lan")]
    pub(crate) host: Option<IpAddr>,
    /// The port to listen on; 0 for any that is free [default: 11435, or the next that is free]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Let other machines on the network connect, and show a QR code for phones; its address has the token of the log
    #[arg(long)]
    pub(crate) lan: bool,
    /// Use TLS, without which browsers on other machines have no WebGPU
    #[arg(long)]
    pub(crate) https: bool,
    /// The folder of the certificate [default: rullama in the folder of this user's data]
    #[arg(long, value_name = "DIR", requires = "https")]
    pub(crate) certificate: Option<PathBuf>,
    /// The folder of the built web app [default: app beside the program, or packages/app/dist of the checkout it was
    /// built from]
    #[arg(long, value_name = "DIR")]
    pub(crate) app: Option<PathBuf>,
    /// A folder with models as Ollama keeps them; may be given several times [default: that of Ollama]
    #[arg(long, value_name = "DIR")]
    pub(crate) models: Vec<PathBuf>,
    /// A GGUF file to offer as well; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) model: Vec<PathBuf>,
    /// Leave out the demo model that comes with rullama
    #[arg(long)]
    pub(crate) no_demo: bool,
    /// An origin whose pages may read the models too, such as http://localhost:5173, or * for all; may be given
    /// several times
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub(crate) cors: Vec<String>,
    /// Add what pages report to this file, as lines of JSON, until it has 16 MiB
    #[arg(long, value_name = "F")]
    pub(crate) log_file: Option<PathBuf>,
    /// Open the app in the browser
    #[arg(long)]
    pub(crate) open: bool,
}

/// An address of this machine.
fn host(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
        _ => text.parse().map_err(|_| "an address such as 127.0.0.1 was expected".to_owned()),
    }
}

/// An origin as browsers write it: a scheme and a host, perhaps a port, and nothing behind.
fn origin(text: &str) -> Result<String, String> {
    let bare = text.strip_suffix('/').unwrap_or(text);
    let host = bare.split_once("://").map_or("", |(_, host)| host);
    if bare == "*"
        || (!host.is_empty() && !host.contains('/') && bare.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        return Ok(bare.to_ascii_lowercase());
    }
    Err("an origin such as http://localhost:5173 was expected".to_owned())
}
