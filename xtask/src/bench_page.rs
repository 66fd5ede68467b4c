//! `cargo xtask bench-page`: the page that measures a model in a browser, served as the app is.

use std::{fs, path::Path};

use crate::{
    run::start,
    setup,
    shell::{complain, root, say},
    web,
};

/// Builds the package and serves the page with it, and with the model if one is named. What else is said goes to
/// `rullama serve`.
pub(crate) fn run(arguments: &[&str]) -> bool {
    let (model, rest) = match arguments {
        [model, rest @ ..] if !model.starts_with('-') => (Some(*model), rest),
        _ => (None, arguments),
    };
    // The server is started in the project's folder, wherever the user is.
    let model = match model.map(fs::canonicalize).transpose() {
        Ok(model) => model.map(|path| path.display().to_string()),
        Err(error) => {
            complain(&format!("error: the model cannot be found: {error}"));
            return false;
        }
    };
    let page = root().join("target/bench-page");
    if !(setup::for_web() && web::build() && assemble(&page)) {
        return false;
    }
    say("\nThe page shows what it finds, and /api/log?tag=bench keeps it.\n");
    let page = page.display().to_string();
    let mut words = vec!["serve", "--app", &page];
    // The page measures the only model there is without being told which.
    words.extend(model.iter().flat_map(|model| ["--no-demo", "--model", model.as_str()]));
    start(&[&words, rest].concat())
}

/// Puts the page and the package into one folder, as they lie beside each other in the project.
fn assemble(page: &Path) -> bool {
    let package = root().join("packages/npm");
    // The server wants a first page. Browsers leave out steps above the root, so the page at the root finds `../dist` too.
    web::clear(page)
        && web::copy(&package.join("bench"), page)
        && web::copy(&package.join("dist"), &page.join("dist"))
}
