//! Counts tests and seconds, phase by phase, and prints them as a table.

use std::time::{Duration, Instant};

use crate::shell::{command, run_reading, say};

/// What ran so far.
#[derive(Default)]
pub(super) struct Tally {
    phases: Vec<Phase>,
}

/// One line of the table.
struct Phase {
    name: String,
    counts: Counts,
    took: Duration,
}

/// Tests that passed and failed. A phase without tests of its own counts as one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    /// Whether a test runner said how many tests ran, even if none did.
    told: bool,
}

impl Tally {
    /// Runs a command as a phase and adds the tests that its output counts. Whether it succeeded.
    pub(super) fn check(&mut self, name: &str, words: &[&str]) -> bool {
        self.check_with(name, words, &[])
    }

    /// The same with environment variables.
    pub(super) fn check_with(&mut self, name: &str, words: &[&str], variables: &[(&str, &str)]) -> bool {
        let start = Instant::now();
        say(&format!("\n== {name}: {}", words.join(" ")));
        let mut command = command(words);
        command.envs(variables.iter().copied());
        let mut counts = Counts::default();
        let succeeded = run_reading(command, |line| counts.read(line));
        self.finish(name, start, counts, succeeded)
    }

    /// Runs a function as a phase that counts as one test. Whether it succeeded.
    pub(super) fn step(&mut self, name: &str, work: impl FnOnce() -> bool) -> bool {
        let start = Instant::now();
        say(&format!("\n== {name}"));
        let succeeded = work();
        self.finish(name, start, Counts::default(), succeeded)
    }

    fn finish(&mut self, name: &str, start: Instant, mut counts: Counts, succeeded: bool) -> bool {
        let mut succeeded = succeeded;
        if !counts.told {
            counts.passed = u64::from(succeeded);
        } else if succeeded && counts.passed == 0 {
            say(&format!("== {name}: no test ran"));
            succeeded = false;
        }
        // A command can fail without a failing test: it did not compile, or it was killed.
        if !succeeded && counts.failed == 0 {
            counts.failed = 1;
        }
        let took = start.elapsed();
        let verdict = if succeeded { "ok" } else { "FAILED" };
        say(&format!("== {name}: {verdict} in {} s", took.as_secs()));
        self.phases.push(Phase { name: name.to_owned(), counts, took });
        succeeded
    }

    /// Prints the table, and last the line that counts everything. Whether nothing failed.
    pub(super) fn report(&self) -> bool {
        self.table().iter().for_each(|line| say(line));
        let total = self.total();
        say(&format!("{} passed, {} failed", total.passed, total.failed));
        total.failed == 0 && total.passed > 0
    }

    fn total(&self) -> Counts {
        let sum = |count: fn(&Phase) -> u64| self.phases.iter().map(count).sum();
        let (passed, failed) = (sum(|phase| phase.counts.passed), sum(|phase| phase.counts.failed));
        Counts { passed, failed, told: true }
    }

    fn table(&self) -> Vec<String> {
        let all = Phase {
            name: "all".to_owned(),
            counts: self.total(),
            took: self.phases.iter().map(|phase| phase.took).sum(),
        };
        let width = self.phases.iter().map(|phase| phase.name.len()).max().unwrap_or_default().max(5);
        let mut lines = vec![String::new(), format!("{:width$}  passed  failed  minutes", "phase")];
        for Phase { name, counts, took } in self.phases.iter().chain([&all]) {
            let minutes = took.as_secs_f64() / 60.0;
            let mark = if counts.failed > 0 { "  FAILED" } else { "" };
            lines.push(format!(
                "{name:width$}  {:6}  {:6}  {minutes:7.1}{mark}",
                counts.passed, counts.failed
            ));
        }
        lines.push(String::new());
        lines
    }
}

impl Counts {
    /// Adds what a test runner's closing line says: `test result: ok. 3 passed; 0 failed; …`,
    /// `Summary [ 1.2s] 5 tests run: 4 passed, 1 failed, 0 skipped` or, of vitest, `Tests  1 failed | 4 passed (5)`.
    /// The first stands at the start of its line. Where it is indented, nextest repeats the output of a test that failed,
    /// which its own summary counts.
    fn read(&mut self, line: &str) {
        let plain = without_colours(line);
        let line = plain.trim_start();
        let is_summary = ["Summary [", "Tests  "].iter().any(|start| line.starts_with(start));
        if !is_summary && !plain.starts_with("test result:") {
            return;
        }
        self.told = true;
        let words: Vec<&str> = line.split([' ', ',', ';']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<u64>() else { continue };
            match pair[1] {
                "passed" => self.passed += count,
                "failed" | "timed" => self.failed += count,
                _ => {}
            }
        }
    }
}

/// The text without the escape sequences that colour it.
fn without_colours(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('\x1b') {
        plain.push_str(&rest[..at]);
        rest = rest[at..].split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn closing_lines_are_counted() {
        let mut counts = Counts::default();
        counts.read("test result: ok. 3 passed; 1 failed; 0 ignored; 0 measured; 9 filtered out; in 0.1s");
        counts.read("\x1b[32;1m     Summary\x1b[0m [   1.2s] 5 tests run: \x1b[1m4\x1b[0m passed, 1 failed, 2 skipped");
        counts.read("      Tests  2 failed | 6 passed (8)");
        counts.read("7 passed by here, 8 failed to notice");
        assert_eq!((counts.passed, counts.failed, counts.told), (13, 4, true));
    }

    #[test]
    fn output_of_a_failed_test_that_nextest_repeats_is_not_counted_again() {
        let mut counts = Counts::default();
        counts.read(
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 4 filtered out; in 0.1s",
        );
        assert_eq!(counts, Counts::default());
        counts.read("     Summary [   1.2s] 1 test run: 0 passed, 1 failed, 2 skipped");
        assert_eq!((counts.passed, counts.failed), (0, 1));
    }

    #[test]
    fn a_phase_whose_runner_ran_no_test_fails() {
        let mut counts = Counts::default();
        counts.read("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; in 0.1s");
        let mut tally = Tally::default();
        assert!(!tally.finish("tests", Instant::now(), counts, true));
        assert_eq!((tally.total().passed, tally.total().failed), (0, 1));
        // One program of several may have none.
        counts.read("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; in 0.1s");
        assert!(Tally::default().finish("tests", Instant::now(), counts, true));
    }

    #[test]
    fn a_phase_that_fails_without_a_failing_test_counts_as_one_failure() {
        let mut tally = Tally::default();
        assert!(tally.finish("lints", Instant::now(), Counts::default(), true));
        assert!(!tally.finish("tests", Instant::now(), Counts { passed: 7, failed: 0, told: true }, false));
        assert_eq!((tally.total().passed, tally.total().failed), (8, 1));
    }

    #[test]
    fn the_table_has_a_line_for_each_phase_and_one_for_all() {
        let phase = |name: &str, passed, failed, seconds| Phase {
            name: name.to_owned(),
            counts: Counts { passed, failed, told: true },
            took: Duration::from_secs(seconds),
        };
        let tally = Tally { phases: vec![phase("lints", 1, 0, 90), phase("native tests", 1200, 2, 600)] };
        let expected = [
            "",
            "phase         passed  failed  minutes",
            "lints              1       0      1.5",
            "native tests    1200       2     10.0  FAILED",
            "all             1201       2     11.5  FAILED",
            "",
        ];
        assert_eq!(tally.table(), expected);
    }
}
