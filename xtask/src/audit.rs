//! `cargo xtask audit`: what the project depends on, checked without a network.
//!
//! cargo-deny checks licences, sources and banned crates by `deny.toml`, and the lock files against RustSec's advisories.
//! Those come from `tools/advisories/advisories.tsv`, a dated table of their facts, which is laid out here as the git
//! repository that cargo-deny expects. With a network, `cargo deny check` asks for today's advisories instead.
//!
//! npm would ask its registry about what the package and the app ship. `tools/advisories/npm.mjs` compares their lock files
//! with `tools/advisories/npm.tsv` instead; with a network, `npm audit --omit=dev` asks for today's advisories.

use std::{fs, io, path::Path};

use crate::{
    setup,
    shell::{command, complain, output, root, run as shell_run, say},
    web::clear,
};

const TABLE: &str = "tools/advisories/advisories.tsv";
const RULES: &str = "deny.toml";
const DATABASE: &str = "database";
/// Where the rules say that advisories come from.
const ONLINE: &str = "https://github.com/RustSec/advisory-db";

/// Every workspace with a lock file of its own.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];

/// Checks all dependencies. Whether nothing is wrong with them.
pub(crate) fn run() -> bool {
    // Both run, also after one has failed.
    let [crates, packages] = [crates(), packages()];
    crates && packages
}

/// Checks the npm packages that are shipped, against the table of advisories. Needs no packages installed.
fn packages() -> bool {
    shell_run(&["node", "tools/advisories/npm.mjs"])
}

fn crates() -> bool {
    let folder = root().join("target/advisories");
    if let Err(error) = prepare(&folder) {
        complain(&format!("advisories cannot be prepared: {error}"));
        return false;
    }
    let rules = folder.join(RULES).display().to_string();
    // Git, which cargo-deny calls, then fetches from here what it is told to fetch from there.
    let instead = format!("url.file://{}.insteadOf", folder.join(DATABASE).display());
    let git = [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", &instead), ("GIT_CONFIG_VALUE_0", ONLINE)];
    let deny = setup::cargo_deny();
    // Every workspace is checked, also after one has failed.
    let checked = MANIFESTS.map(|manifest| {
        let options = ["--config", rules.as_str(), "--manifest-path", manifest];
        let words = [&[deny.as_str()], &options[..], &["check", "--hide-inclusion-graph"]].concat();
        say(&format!("$ {}", words.join(" ")));
        command(&words).envs(git).status().is_ok_and(|status| status.success())
    });
    checked.iter().all(|&clean| clean)
}

/// Lays out the database, and rules that keep their copy of it away from the user's own.
fn prepare(folder: &Path) -> io::Result<()> {
    let table = fs::read_to_string(root().join(TABLE))?;
    let database = folder.join(DATABASE);
    if !clear(folder) {
        return Err(io::Error::other("an earlier database is in the way"));
    }
    let (title, advisories) = table.split_once('\n').unwrap_or_default();
    say(title.trim_start_matches("# "));
    for line in advisories.lines() {
        let [id, package, ..] = columns(line)?;
        let crate_folder = database.join("crates").join(package);
        fs::create_dir_all(&crate_folder)?;
        fs::write(crate_folder.join(format!("{id}.md")), advisory(columns(line)?))?;
    }
    let path = database.display().to_string();
    let git = ["git", "-C", &path, "-c", "user.name=rullama", "-c", "user.email=rullama@localhost"];
    let done = output(&["git", "init", "--quiet", "--initial-branch=main", &path]).is_some()
        && output(&[&git[..], &["add", "."]].concat()).is_some()
        && output(&[&git[..], &["commit", "--quiet", "--message", title]].concat()).is_some();
    if !done {
        return Err(io::Error::other(format!("git cannot make a repository of {path}")));
    }
    let rules = fs::read_to_string(root().join(RULES))?;
    if !rules.contains(ONLINE) {
        return Err(io::Error::other(format!("{RULES} does not name {ONLINE}")));
    }
    let section = format!("[advisories]\ndb-path = \"{}\"", folder.display());
    fs::write(folder.join(RULES), rules.replace("[advisories]", &section))
}

/// A line's six columns: id, package, date, kind, and the versions that are patched and unaffected.
fn columns(line: &str) -> io::Result<[&str; 6]> {
    let columns: Vec<&str> = line.split('\t').collect();
    columns
        .try_into()
        .map_err(|_| io::Error::other(format!("{TABLE} has a line without six columns: {line}")))
}

/// An advisory as a file of RustSec's database.
fn advisory([id, package, date, kind, patched, unaffected]: [&str; 6]) -> String {
    let ranges = |text: &str| {
        let quoted = text.split('|').filter(|range| !range.is_empty()).map(|range| format!("\"{range}\""));
        quoted.collect::<Vec<_>>().join(", ")
    };
    let informational =
        if kind == "vulnerability" { String::new() } else { format!("informational = \"{kind}\"\n") };
    format!(
        "```toml\n[advisory]\nid = \"{id}\"\npackage = \"{package}\"\ndate = \"{date}\"\n{informational}\n\
         [versions]\npatched = [{}]\nunaffected = [{}]\n```\n\n# {kind} in {package}\n",
        ranges(patched),
        ranges(unaffected)
    )
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn an_advisory_reads_as_in_the_database() {
        let line = "RUSTSEC-2020-0001\tsome-crate\t2020-01-02\tunsound\t>= 1.2.3|^0.9\t< 0.5";
        let expected = "```toml\n[advisory]\nid = \"RUSTSEC-2020-0001\"\npackage = \"some-crate\"\ndate = \"2020-01-02\"\n\
                        informational = \"unsound\"\n\n[versions]\npatched = [\">= 1.2.3\", \"^0.9\"]\n\
                        unaffected = [\"< 0.5\"]\n```\n\n# unsound in some-crate\n";
        assert_eq!(advisory(columns(line).expect("six columns")), expected);
        assert!(columns("RUSTSEC-2020-0001\tsome-crate").is_err());
    }
}
