//! `rullama synth`: a model with random weights.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use rullama_gguf::WriteError;
use rullama_synth::{SynthError, SynthOptions};

use super::written;
use crate::{
    arguments::SynthArguments,
    failure::Failure,
    model, signals,
    whole_file::{self, Readers},
};

pub(super) async fn run(arguments: &SynthArguments) -> Result<(), Failure> {
    let path = &arguments.output;
    let options = SynthOptions {
        mix: arguments.format,
        seed: arguments.seed,
        vocabulary: arguments.vocab,
        towers: arguments.towers,
    };
    let target = whole_file::target(path)?;
    let started = Instant::now();
    let plan = rullama_synth::plan(arguments.preset, &options)
        .map_err(|error| Failure::new("the model can't be made").caused_by(error))?;
    let (tensors, parameters, needed) = (plan.tensors().len(), plan.parameters(), plan.data_bytes());
    let bar = model::progress(&path.display().to_string(), needed);

    let stop = signals::stop_flag()?;
    let (in_writer, its_bar) = (Arc::clone(&stop), bar.clone());
    let writing = tokio::task::spawn_blocking(move || {
        let write = |output: &mut whole_file::Output<'_>| {
            plan.write(output, move |done, _| its_bar.set_position(done))
        };
        whole_file::create(&target, Readers::Usual, &in_writer, write, |_| Ok(()))
    });
    let result = writing.await;
    bar.finish_and_clear();
    let bytes = match result {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) if stop.load(Ordering::Relaxed) => {
            return Err(written::stopped(path));
        }
        Ok(Err(SynthError::Write(WriteError::Io(error)))) => {
            return Err(written::refused(path, error, needed));
        }
        Ok(Err(error)) => return Err(Failure::new("the model can't be made").caused_by(error)),
        Err(error) => return Err(Failure::new("the model can't be made").caused_by(error)),
    };

    written::describe(path, tensors, parameters, bytes, started.elapsed())
}
