//! `rullama rm`: deletes models from the Ollama store.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    path::Path,
};

use rullama_gguf::ollama::{Name, Store, StoreError};

use crate::{arguments::RmArguments, demo, failure::Failure, model, output};

pub(super) fn run(arguments: &RmArguments) -> Result<(), Failure> {
    let store = model::store();
    // All names are checked before anything is deleted.
    let names = arguments.names.iter().map(|name| find(&store, name)).collect::<Result<Vec<_>, _>>()?;
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !arguments.yes && !can_ask {
        return Err(Failure::new("rm asks before it deletes, and there is no terminal to ask on")
            .hint("add --yes to delete without asking")
            .usage());
    }
    for name in &names {
        let removal = store.removal(name)?;
        let question = format!("Delete {}? This frees {}.", removal.name, output::size(removal.bytes()));
        if !arguments.yes && !confirmed(&question)? {
            output::line(&format!("{} was not deleted", removal.name))?;
            continue;
        }
        let removed = store.remove(name)?;
        output::line(&format!("deleted {}, {} freed", removed.name, output::size(removed.bytes())))?;
    }
    Ok(())
}

/// The model of the store with this name.
fn find(store: &Store, argument: &str) -> Result<Name, Failure> {
    let parsed = argument.parse::<Name>();
    let found = parsed.and_then(|name| store.removal(&name).map(|removal| removal.name));
    found.map_err(|error| {
        if !matches!(
            error,
            StoreError::NoStore { .. } | StoreError::ModelNotFound { .. } | StoreError::InvalidName { .. }
        ) {
            return error.into();
        }
        if demo::is_called(argument) {
            return Failure::new("the demo model is part of rullama and can't be deleted");
        }
        if Path::new(argument).is_file() {
            return Failure::new(format!("`{argument}` is a file, not a model of the Ollama store"))
                .hint("delete the file itself; `rullama list` shows the models of the store");
        }
        Failure::from(error).hint("`rullama list` shows the models that you can delete")
    })
}

/// Asks on the terminal; anything but yes is no.
fn confirmed(question: &str) -> Result<bool, Failure> {
    output::error(format_args!("{question} [y/N] "));
    let _ = io::stderr().flush();
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Failure::new("the answer can't be read").caused_by(error))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
