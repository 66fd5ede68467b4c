//! `cargo xtask run`: builds rullama and runs it; `serve` gets the web app as it is now.

use crate::{
    app, setup,
    shell::{complain, run as shell_run},
};

/// Flags of rullama itself; all others belong to `serve`.
const OWN_FLAGS: [&str; 4] = ["--help", "-h", "--version", "-V"];

/// Where the app is built.
const APP: &str = "packages/app/dist";

/// Without arguments, or with flags alone, serves; otherwise runs the command line program with the arguments.
pub(crate) fn run(arguments: &[&str]) -> bool {
    let words = words(arguments);
    // The help of `serve` needs no app.
    let serves = words.first() == Some(&"serve") && !words.iter().any(|word| ["--help", "-h"].contains(word));
    // Without the app, cargo is all that is needed.
    if serves && !(setup::for_running() && app::build()) {
        complain("error: the web app could not be built");
        return false;
    }
    // A build of its own shows cargo's progress, which `start` hides. The first build takes minutes.
    let build = ["cargo", "build", "--release", "--package", "rullama", "--no-default-features"];
    if serves && !shell_run(&build) {
        return false;
    }
    let own_app = words.iter().any(|word| *word == "--app" || word.starts_with("--app="));
    if serves && !own_app { start(&[&words[..], &["--app", APP]].concat()) } else { start(&words) }
}

/// Runs the program without an embedded app: linking it again whenever the app changes would take minutes.
pub(crate) fn start(words: &[&str]) -> bool {
    let cargo =
        ["cargo", "run", "--quiet", "--release", "--package", "rullama", "--no-default-features", "--"];
    shell_run(&[&cargo[..], words].concat())
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
