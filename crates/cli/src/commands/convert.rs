//! `rullama convert`: a Hugging Face checkpoint as a GGUF file.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use rullama_convert::{ConvertError, ConvertOptions};
use rullama_gemma::{Config, GemmaError, Outputs, text};
use rullama_gguf::{ModelError, WriteError, open_path};
use rullama_tokenizer::{Tokenizer, TokenizerError};

use super::written;
use crate::{
    arguments::ConvertArguments,
    failure::Failure,
    model, signals,
    whole_file::{self, Readers},
};

pub(super) async fn run(arguments: &ConvertArguments) -> Result<(), Failure> {
    let path = &arguments.output;
    let target = whole_file::target(path)?;
    if target.exists() && !arguments.force {
        let message = format!("`{}` already exists", path.display());
        return Err(Failure::new(message).hint("use --force to replace it"));
    }
    let options = ConvertOptions {
        mix: arguments.format,
        rules: arguments.tensor.clone(),
        towers: !arguments.text_only,
        name: arguments.name.clone(),
    };
    let started = Instant::now();
    let plan = rullama_convert::plan(&arguments.folder, &options)?;
    let (tensors, parameters, needed) = (plan.tensors().len(), plan.parameters(), plan.data_bytes());
    let bar = model::progress(&path.display().to_string(), needed);

    let stop = signals::stop_flag()?;
    let (in_writer, its_bar) = (Arc::clone(&stop), bar.clone());
    let writing = tokio::task::spawn_blocking(move || {
        let write = |output: &mut whole_file::Output<'_>| -> Result<(), Stopped> {
            Ok(plan.write(output, move |done, _| its_bar.set_position(done))?)
        };
        whole_file::create(&target, Readers::Usual, &in_writer, write, check)
    });
    let result = writing.await;
    bar.finish_and_clear();
    let bytes = match result {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) if stop.load(Ordering::Relaxed) => {
            return Err(written::stopped(path));
        }
        Ok(Err(Stopped::Convert(ConvertError::Write(WriteError::Io(error))))) => {
            return Err(written::refused(path, error, needed));
        }
        Ok(Err(Stopped::Convert(error))) => return Err(error.into()),
        Ok(Err(Stopped::Unusable(error))) => {
            let failure = Failure::new(format!(
                "`{}` was not written, because rullama could not run it",
                path.display()
            ));
            return Err(failure.caused_by(error).hint("check that the checkpoint is complete and unchanged"));
        }
        Err(error) => return Err(Failure::new("the model can't be converted").caused_by(error)),
    };

    written::describe(path, tensors, parameters, bytes, started.elapsed())
}

/// Why no file was written.
enum Stopped {
    Convert(ConvertError),
    /// The engine refuses the converted file.
    Unusable(Unusable),
}

impl From<ConvertError> for Stopped {
    fn from(error: ConvertError) -> Self {
        Self::Convert(error)
    }
}

impl From<WriteError> for Stopped {
    fn from(error: WriteError) -> Self {
        Self::Convert(error.into())
    }
}

/// The engine's error for a file.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum Unusable {
    Model(#[from] ModelError),
    Gemma(#[from] GemmaError),
    Tokenizer(#[from] TokenizerError),
}

/// Opens the file as the engine does, before it gets its name. Only the header is read.
fn check(path: &Path) -> Result<(), Stopped> {
    let look = || -> Result<(), Unusable> {
        let model = tokio::runtime::Handle::current().block_on(open_path(path))?;
        Tokenizer::from_gguf(model.header())?;
        text(&model, &Config::read(&model)?, Outputs::Last)?;
        Ok(())
    };
    look().map_err(Stopped::Unusable)
}
