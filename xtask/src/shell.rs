//! Starting other programs, and saying what happens.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Command, Stdio},
};

/// The folder of the project.
pub(crate) fn root() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    own.parent().map(PathBuf::from).unwrap_or(own)
}

/// Prints a line for people.
pub(crate) fn say(text: &str) {
    // Nobody is left to be told when this fails.
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints a line about something that went wrong.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A program to be started in the project's folder.
pub(crate) fn command(words: &[&str]) -> Command {
    let (program, arguments) = words.split_first().expect("a command has a first word");
    // The cargo that runs this, whatever the search path says.
    let program = if *program == "cargo" { env!("CARGO") } else { program };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// Runs a program and shows what it prints. Whether it succeeded.
pub(crate) fn run(words: &[&str]) -> bool {
    say(&format!("$ {}", words.join(" ")));
    match command(words).status() {
        Ok(status) => status.success(),
        Err(error) => {
            complain(&format!("error: can't start `{}`: {error}", words[0]));
            false
        }
    }
}

/// Runs a program, shows what it prints and hands each line to `each`. Whether it succeeded.
pub(crate) fn run_reading(mut command: Command, mut each: impl FnMut(&str)) -> bool {
    // Both streams into one pipe, so that lines keep their order.
    let Ok((reader, writer)) = std::io::pipe() else { return false };
    let Ok(second) = writer.try_clone() else { return false };
    let child = command.stdin(Stdio::null()).stdout(writer).stderr(second).spawn();
    // The command holds the pipe's other end open until it is gone.
    drop(command);
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            complain(&format!("error: can't start the program: {error}"));
            return false;
        }
    };
    for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        say(&line);
        each(&line);
    }
    child.wait().is_ok_and(|status| status.success())
}

/// What a program prints, if it can be started and succeeds.
pub(crate) fn output(words: &[&str]) -> Option<String> {
    let output = command(words).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
