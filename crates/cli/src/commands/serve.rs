//! `rullama serve`.

use std::{
    collections::BTreeSet,
    io::{self, Write as _},
    net::IpAddr,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use rullama_gguf::ollama::Store;

use crate::{
    arguments::ServeArguments,
    failure::Failure,
    model, output,
    server::{self, App, Catalogue, Certificate, Guard, Listener, LogFile, ModelFile, Reach, Ring, Shared},
};

pub(super) async fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    let host =
        if arguments.lan { IpAddr::from([0, 0, 0, 0]) } else { arguments.host.unwrap_or(server::LOOPBACK) };
    let app = App::find(arguments.app.as_deref())?;
    let catalogue = catalogue(arguments).await?;
    let log_file = arguments.log_file.as_deref().map(LogFile::open).transpose()?;
    let addresses = server::default_route_first();
    let certificate = arguments.https.then(|| certificate(arguments, host, &addresses)).transpose()?;
    let tls = certificate.as_ref().map(Certificate::tls).transpose()?;
    let socket = server::bind(host, arguments.port).await?;
    let bound = socket.local_addr();
    let bound = bound.map_err(|error| Failure::new("the server has no address").caused_by(error))?;
    let (own, others) = server::page_urls(bound, arguments.https, &addresses);

    let interrupted =
        interrupt().map_err(|error| Failure::new("Ctrl-C cannot be waited for").caused_by(error))?;
    // The first line is for programs: the address and nothing else.
    output::line(&own)?;
    describe(&app, &catalogue);
    if !host.is_loopback() {
        invite(&others, arguments.https)?;
    }
    let shared = Arc::new(Shared {
        app,
        catalogue,
        log: Mutex::new(Ring::new(log_file)),
        guard: Guard {
            reach: if host.is_loopback() { Reach::Loopback } else { Reach::Network },
            origins: arguments.cors.clone(),
        },
        authority: certificate.as_ref().map(Certificate::authority).transpose()?,
    });
    if arguments.open {
        open_browser(&own);
    }
    tokio::select! {
        () = server::run(Listener { socket, tls }, server::router(shared)) => {}
        () = interrupted => anstream::eprintln!("the server ends"),
    }
    Ok(())
}

/// What can be read: the stores that were named, or Ollama's own, and the files that were named.
async fn catalogue(arguments: &ServeArguments) -> Result<Catalogue, Failure> {
    let mut files: Vec<ModelFile> = Vec::new();
    let mut names = BTreeSet::new();
    for path in &arguments.model {
        let file = ModelFile::read(path).await?;
        if !names.insert(file.name.clone()) {
            return Err(Failure::new(format!("two files are called `{}`", file.name))
                .hint("rename one of them: a name leads to one file"));
        }
        files.push(file);
    }
    let stores: Vec<Store> = arguments.models.iter().map(Store::new).collect();
    for store in &stores {
        // What was asked for must be there; the default need not.
        store.list()?;
    }
    Ok(Catalogue { stores: if stores.is_empty() { vec![model::store()] } else { stores }, files })
}

fn certificate(
    arguments: &ServeArguments,
    host: IpAddr,
    addresses: &[IpAddr],
) -> Result<Certificate, Failure> {
    let folder = arguments.certificate.clone().or_else(server::certificate_folder).ok_or_else(|| {
        Failure::new("there is no home folder to keep the certificate in")
            .hint("--certificate names a folder")
    })?;
    // Addresses of the sixth version change by the day, and with them the certificate would.
    let stable = addresses.iter().copied().filter(IpAddr::is_ipv4);
    let all: Vec<IpAddr> = stable.chain(Some(host).filter(|host| !host.is_unspecified())).collect();
    Certificate::load_or_make(&folder, &all)
}

/// Says on standard error what is served.
fn describe(app: &App, catalogue: &Catalogue) {
    match app.folder() {
        Some(folder) => anstream::eprintln!("app     {}", folder.display()),
        None => anstream::eprintln!("app     not built; `cargo xtask run` in the project builds it"),
    }
    anstream::eprintln!("models  {}", catalogue.entries().len());
    for store in &catalogue.stores {
        anstream::eprintln!("store   {}", store.root().display());
    }
}

/// Tells how a phone gets here.
fn invite(others: &[String], https: bool) -> Result<(), Failure> {
    let Some(first) = others.first() else {
        anstream::eprintln!("note: this machine has no address on a network");
        return Ok(());
    };
    let mut screen = anstream::stdout().lock();
    writeln!(screen, "\nOn this network:")?;
    for url in others {
        writeln!(screen, "  {url}")?;
    }
    if let Some(code) = server::half_blocks(first) {
        write!(screen, "\n{code}")?;
    }
    screen.flush()?;
    if https {
        anstream::eprintln!(
            "A phone warns of the certificate until it trusts {first}certificate.crt; docs/guide/serving.md says how."
        );
    } else {
        anstream::eprintln!("note: browsers give WebGPU to other machines by HTTPS only: add --https");
    }
    Ok(())
}

/// Opens the browser that this user prefers. Without one, the address is on the screen.
fn open_browser(url: &str) {
    let command: &[&str] = if cfg!(windows) {
        &["rundll32", "url.dll,FileProtocolHandler"]
    } else if cfg!(target_os = "macos") {
        &["open"]
    } else {
        &["xdg-open"]
    };
    let mut browser = Command::new(command[0]);
    browser.args(&command[1..]).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match browser.spawn() {
        // Waited for on a thread of its own, because some systems' browsers are started in the foreground.
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(error) => anstream::eprintln!("note: `{}` cannot be started: {error}", command[0]),
    }
}

/// Ctrl-C, or what a service manager sends instead. From now on neither ends the program by itself, so this is had
/// before anybody is told that the server runs.
#[cfg(unix)]
fn interrupt() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupted, mut ended) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = ended.recv() => {}
        }
    })
}

/// Ctrl-C. From now on it does not end the program by itself.
#[cfg(windows)]
fn interrupt() -> io::Result<impl Future<Output = ()>> {
    let mut interrupted = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupted.recv().await;
    })
}
