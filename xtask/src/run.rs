//! `cargo xtask run`: builds rullama and starts it; where it is to serve, with the web app as it is now.

use crate::{
    app, setup,
    shell::{complain, run as shell_run},
};

/// Flags that are about rullama itself; all others are about serving.
const OWN_FLAGS: [&str; 4] = ["--help", "-h", "--version", "-V"];

/// Without arguments, or with flags alone, serves; otherwise runs the command line program with the arguments.
pub(crate) fn run(arguments: &[&str]) -> bool {
    let words = words(arguments);
    // Whoever only wants to know the options need not wait for an app.
    let serves = words.first() == Some(&"serve") && !words.iter().any(|word| ["--help", "-h"].contains(word));
    // What cargo builds alone needs no set-up.
    if serves && !(setup::for_running() && app::build()) {
        complain("error: the web app could not be built, so nothing is served");
        return false;
    }
    start(&words)
}

/// Starts the command line program.
pub(crate) fn start(words: &[&str]) -> bool {
    shell_run(&[&["cargo", "run", "--quiet", "--release", "--package", "rullama", "--"], words].concat())
}

/// The words for rullama.
fn words<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    match arguments {
        [] => vec!["serve", "--open"],
        [first, ..] if first.starts_with('-') && !OWN_FLAGS.contains(first) => {
            [&["serve"], arguments].concat()
        }
        _ => arguments.to_vec(),
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn flags_alone_are_those_of_serving() {
        assert_eq!(words(&[]), ["serve", "--open"]);
        assert_eq!(words(&["--lan", "--https"]), ["serve", "--lan", "--https"]);
        assert_eq!(words(&["serve", "--port", "0"]), ["serve", "--port", "0"]);
        assert_eq!(words(&["generate", "m.gguf", "--prompt", "Hello"])[0], "generate");
        assert_eq!(words(&["--help"]), ["--help"]);
    }
}
