//! The commands, one file each.

mod bench;
mod convert;
mod detokenize;
mod doctor;
mod encode;
mod generate;
mod inspect;
mod list;
mod logits;
mod npy;
mod ollama;
mod parity;
mod plan;
mod prompt;
mod ps;
mod render;
mod rm;
mod run;
mod serve;
mod show;
mod synth;
mod tokenize;
mod written;

use std::{fs, io::Read as _, path::Path};

use crate::{
    arguments::{Arguments, Command},
    failure::Failure,
};

/// Runs the command.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let has_backend = arguments.command.has_backend();
    let result = match arguments.command {
        Command::List(arguments) => list::run(&arguments),
        Command::Show(arguments) => show::run(&arguments).await,
        Command::Ps(arguments) => ps::run(&arguments).await,
        Command::Rm(arguments) => rm::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments).await,
        Command::Tokenize(arguments) => tokenize::run(&arguments).await,
        Command::Detokenize(arguments) => detokenize::run(&arguments).await,
        Command::Render(arguments) => render::run(&arguments).await,
        Command::Run(arguments) => run::run(&arguments).await,
        Command::Serve(arguments) => serve::run(&arguments).await,
        Command::Generate(arguments) => generate::run(&arguments).await,
        Command::Logits(arguments) => logits::run(&arguments).await,
        Command::Encode(arguments) => encode::run(&arguments).await,
        Command::Bench(arguments) => bench::run(&arguments).await,
        Command::Parity(arguments) => parity::run(&arguments).await,
        Command::Doctor(arguments) => doctor::run(&arguments).await,
        Command::Synth(arguments) => synth::run(&arguments).await,
        Command::Convert(arguments) => convert::run(&arguments).await,
        Command::Pull(arguments) => Err(ollama::pull(&arguments)),
        Command::Stop(_) => Err(ollama::stop()),
        Command::Create(_) => Err(ollama::create()),
        Command::Cp(arguments) => Err(ollama::cp(&arguments)),
    };
    result.map_err(|failure| if has_backend { failure } else { failure.without_backend() })
}

/// Reads a file, or standard input for `-`.
pub(crate) fn read_input(path: &Path) -> Result<Vec<u8>, Failure> {
    if path == Path::new("-") {
        return read_standard_input();
    }
    fs::read(path)
        .map_err(|error| Failure::new(format!("`{}` can't be read", path.display())).caused_by(error))
        .map_err(|failure| failure.hint("check the path, or use - for standard input"))
}

fn read_standard_input() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new("standard input can't be read").caused_by(error))?;
    Ok(bytes)
}
