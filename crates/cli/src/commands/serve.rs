//! `rullama serve`: reads the arguments and starts the server.

use std::{
    collections::BTreeSet,
    io,
    net::IpAddr,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use rullama_gguf::ollama::Store;

use crate::{
    arguments::ServeArguments,
    demo::{self, Demo},
    failure::Failure,
    model, output,
    server::{
        self, App, Catalogue, Certificate, Guard, Limits, Listener, LogFile, ModelFile, Reach, Ring, Shared,
        Token,
    },
    signals,
};

pub(super) async fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    let host =
        if arguments.lan { IpAddr::from([0, 0, 0, 0]) } else { arguments.host.unwrap_or(server::LOOPBACK) };
    let app = App::find(arguments.app.as_deref())?;
    let demo = if arguments.no_demo { None } else { Some(demo::find()) };
    let catalogue = catalogue(arguments, demo.as_ref().and_then(|found| found.as_ref().ok())).await?;
    let log_file = arguments.log_file.as_deref().map(LogFile::open).transpose()?;
    let addresses = server::default_route_first();
    // From now on Ctrl-C does not end the program at once: not while the certificate is written, and not after the address
    // has been printed.
    let interrupted = signals::end()?;
    let certificate = arguments.https.then(|| certificate(arguments, host, &addresses)).transpose()?;
    let tls = certificate.as_ref().map(Certificate::tls).transpose()?;
    let socket = server::bind(host, arguments.port).await?;
    let bound = socket.local_addr();
    let bound = bound.map_err(|error| Failure::new("the server's address is unknown").caused_by(error))?;
    let (own, mut others) = server::page_urls(bound, arguments.https, &addresses);
    let token = (!host.is_loopback()).then(|| Token::random(bound.port(), arguments.https)).transpose()?;

    // The first line is for programs: the address and nothing else.
    output::line(&own)?;
    describe(&app, &catalogue, matches!(demo, Some(Ok(_))));
    if let Some(certificate) = &certificate {
        output::note(format_args!("trust   SHA-256 {}", certificate.fingerprint()?));
    }
    if let Some(Err(missing)) = demo {
        output::note(format_args!("note: {}", missing.message()));
    }
    if let Some(note) = other_port(arguments.port, bound.port()) {
        output::note(format_args!("{note}"));
    }
    if let Some(token) = &token {
        output::note(format_args!("log     {}", token.in_address(&own)));
        advise(&others, arguments.https);
        others.iter_mut().for_each(|url| *url = token.in_address(url));
        invite(&mut anstream::stdout().lock(), &others)?;
    }
    let opened = token.as_ref().map_or(own.clone(), |token| token.in_address(&own));
    let limits = Limits::default();
    let shared = Arc::new(Shared {
        app,
        catalogue,
        log: Mutex::new(Ring::new(log_file)),
        guard: Guard {
            reach: if host.is_loopback() { Reach::Loopback } else { Reach::Network },
            origins: arguments.cors.clone(),
            patience: limits.patience,
        },
        token,
        authority: certificate.as_ref().map(Certificate::authority).transpose()?,
    });
    if arguments.open {
        open_browser(&opened);
    }
    let listener = Listener { socket, tls, limits };
    tokio::select! {
        () = server::run(listener, server::router(shared)) => {}
        () = interrupted => output::note("server stopped"),
    }
    Ok(())
}

/// The models to serve: those of the given stores or of Ollama's own, the given files, and the demo model.
async fn catalogue(arguments: &ServeArguments, demo: Option<&Demo>) -> Result<Catalogue, Failure> {
    let mut files: Vec<ModelFile> = Vec::new();
    let mut names = BTreeSet::new();
    for path in &arguments.model {
        let file = ModelFile::read(path).await?;
        if !names.insert(file.name.clone()) {
            return Err(
                Failure::new(format!("two files have the name `{}`", file.name)).hint("rename one of them")
            );
        }
        files.push(file);
    }
    if let Some(demo) = demo {
        let advise =
            |failure: Failure| failure.hint("this file replaces the demo model; --no-demo serves without it");
        let demo = ModelFile::demo(demo).await.map_err(advise)?;
        if !names.contains(&demo.name) {
            files.push(demo);
        }
    }
    let stores: Vec<Store> = arguments.models.iter().map(Store::new).collect();
    for store in &stores {
        // A store that was given must exist. Ollama's own need not.
        store.list().map_err(|error| Failure::from(error).hint("check the folder given with --models"))?;
    }
    Ok(Catalogue { stores: if stores.is_empty() { vec![model::store()] } else { stores }, files })
}

fn certificate(
    arguments: &ServeArguments,
    host: IpAddr,
    addresses: &[IpAddr],
) -> Result<Certificate, Failure> {
    let folder = arguments.certificate.clone().or_else(server::certificate_folder).ok_or_else(|| {
        Failure::new("there is no home folder to store the certificate in")
            .hint("choose a folder with --certificate")
    })?;
    // IPv6 addresses change every day, and the certificate would have to change with them.
    let stable = addresses.iter().copied().filter(IpAddr::is_ipv4);
    let all: Vec<IpAddr> = stable.chain(Some(host).filter(|host| !host.is_unspecified())).collect();
    Certificate::load_or_make(&folder, &all)
}

/// Prints what is served on standard error.
fn describe(app: &App, catalogue: &Catalogue, has_demo: bool) {
    match app {
        App::Folder(folder) => output::note(format_args!("app     {}", folder.display())),
        App::Embedded(_) => output::note("app     built in"),
        App::Missing => output::note(
            "app     not included in this build of rullama; `cargo xtask install` builds and installs both",
        ),
    }
    let count = catalogue.entries().len();
    let only_demo = count == 1 && has_demo;
    output::note(format_args!("models  {count}{}", if only_demo { " (the demo model)" } else { "" }));
    for store in &catalogue.stores {
        let missing = if store.root().exists() { "" } else { " (does not exist)" };
        output::note(format_args!("store   {}{missing}", store.root().display()));
    }
}

/// A note if the usual port is taken: to a browser, another port is another site with its own storage.
fn other_port(asked: Option<u16>, found: u16) -> Option<String> {
    let usual = server::DEFAULT_PORT;
    (asked.is_none() && found != usual).then(|| {
        format!(
            "note: port {usual} is in use, so the server uses port {found}. Browsers keep chats and models separately for \
             each port, so those from port {usual} do not appear here\n\
             hint: stop the other server and start this one again, or always use the same --port"
        )
    })
}

/// Prints the addresses for phones, and a QR code of the first.
fn invite(screen: &mut impl io::Write, others: &[String]) -> io::Result<()> {
    let Some(first) = others.first() else { return Ok(()) };
    writeln!(screen, "\nOn this network:")?;
    for url in others {
        writeln!(screen, "  {url}")?;
    }
    if let Some(code) = server::qr_code(first) {
        write!(screen, "\n{code}")?;
    }
    screen.flush()
}

/// Prints on standard error what a phone needs before it can use the app.
fn advise(others: &[String], https: bool) {
    match others.first() {
        None => output::note("note: this machine is not connected to a network"),
        Some(first) if https => output::note(format_args!(
            "A phone shows a warning until it trusts {first}certificate.crt. Compare the certificate's SHA-256 \
             fingerprint with the one above first; docs/guide/serving.md explains how."
        )),
        Some(_) => {
            output::note("note: add --https: on other machines, browsers allow WebGPU only over HTTPS");
        }
    }
}

fn note_no_browser() {
    output::note("note: no browser could be opened; open the address above in one");
}

/// Opens the user's browser. If there is none, the address is on the screen.
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
        // On a thread of its own, because on some systems the command runs as long as the browser.
        Ok(mut child) => drop(std::thread::spawn(move || {
            if child.wait().is_ok_and(|status| !status.success()) {
                note_no_browser();
            }
        })),
        Err(_) => note_no_browser(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_port_is_told_unless_it_was_asked_for() {
        let usual = server::DEFAULT_PORT;
        assert_eq!(other_port(None, usual), None);
        assert_eq!(other_port(Some(0), 40_000), None);
        assert_eq!(other_port(Some(usual + 1), usual + 1), None);
        let note = other_port(None, usual + 1).unwrap();
        assert!(note.contains("port 11435 is in use") && note.contains("hint: "), "{note}");
    }

    /// Every address is shown, and the code is that of the first.
    #[test]
    fn a_phone_is_shown_addresses_and_a_code() {
        let urls = ["https://192.168.0.2:11435/", "https://10.0.0.2:11435/"].map(str::to_owned);
        let mut screen = Vec::new();
        invite(&mut screen, &urls).unwrap();
        let screen = String::from_utf8(screen).unwrap();
        let code = server::qr_code(&urls[0]).unwrap();
        assert_eq!(screen, format!("\nOn this network:\n  {}\n  {}\n\n{code}", urls[0], urls[1]));

        let mut screen = Vec::new();
        invite(&mut screen, &[]).unwrap();
        assert!(screen.is_empty());
    }
}
