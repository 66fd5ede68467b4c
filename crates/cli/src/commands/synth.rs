//! `rullama synth`.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use rullama_gguf::WriteError;
use rullama_synth::{SynthError, SynthOptions};

use crate::{
    arguments::SynthArguments,
    failure::Failure,
    model,
    new_file::{self, Readers},
};

pub(super) async fn run(arguments: &SynthArguments) -> Result<(), Failure> {
    let path = &arguments.output;
    let options = SynthOptions {
        mix: arguments.format,
        seed: arguments.seed,
        vocabulary: arguments.vocab,
        towers: arguments.towers,
    };
    let target = new_file::target(path)?;
    let started = Instant::now();
    let plan = rullama_synth::plan(arguments.preset, &options)
        .map_err(|error| Failure::new("the model cannot be made").caused_by(error))?;
    let (tensors, parameters, needed) = (plan.tensors().len(), plan.parameters(), plan.data_bytes());
    let bar = model::progress(&path.display().to_string(), needed);

    let stop = new_file::stop_on_signal()?;
    let (in_writer, its_bar) = (Arc::clone(&stop), bar.clone());
    let writing = tokio::task::spawn_blocking(move || {
        let write =
            |output: &mut new_file::Output<'_>| plan.write(output, move |done, _| its_bar.set_position(done));
        new_file::create(&target, Readers::Usual, &in_writer, write, |_| Ok(()))
    });
    let result = writing.await;
    bar.finish_and_clear();
    let bytes = match result {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) if stop.load(Ordering::Relaxed) => {
            return Err(new_file::stopped(path));
        }
        Ok(Err(SynthError::Write(WriteError::Io(error)))) => {
            return Err(new_file::refused(path, error, needed));
        }
        Ok(Err(error)) => return Err(Failure::new("the model cannot be made").caused_by(error)),
        Err(error) => return Err(Failure::new("the model cannot be made").caused_by(error)),
    };

    new_file::describe(path, tensors, parameters, bytes, started.elapsed())
}
