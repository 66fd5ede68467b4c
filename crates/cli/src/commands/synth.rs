//! `rullama synth`.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use rullama_gguf::WriteError;
use rullama_synth::{SynthError, SynthOptions};

use crate::{arguments::SynthArguments, failure::Failure, model, new_file, output};

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

    let stop = new_file::stop_on_interrupt();
    let (in_writer, its_bar) = (Arc::clone(&stop), bar.clone());
    let writing = tokio::task::spawn_blocking(move || {
        let write =
            |output: &mut new_file::Output<'_>| plan.write(output, move |done, _| its_bar.set_position(done));
        new_file::create(&target, &in_writer, write, |_| Ok(()))
    });
    let result = writing.await;
    bar.finish_and_clear();
    let bytes = match result {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) if stop.load(Ordering::Relaxed) => {
            return Err(Failure::new(format!("`{}` was not written: you stopped it", path.display())));
        }
        Ok(Err(SynthError::Write(WriteError::Io(error)))) => {
            return Err(new_file::refused(path, error, needed));
        }
        Ok(Err(error)) => return Err(Failure::new("the model cannot be made").caused_by(error)),
        Err(error) => return Err(Failure::new("the model cannot be made").caused_by(error)),
    };

    let took = started.elapsed().max(Duration::from_millis(1)).as_secs_f64();
    let rate = output::size((bytes as f64 / took) as u64);
    Ok(output::table(&[
        vec!["file".to_owned(), path.display().to_string()],
        vec!["holds".to_owned(), format!("{tensors} tensors, {} parameters", output::count(parameters))],
        vec!["size".to_owned(), output::size(bytes)],
        vec!["took".to_owned(), format!("{took:.1} s, {rate}/s")],
    ])?)
}
