//! `cargo xtask fuzz`: every fuzz target, each for some seconds, on the stable toolchain.
//!
//! The targets are linked with libFuzzer and instrumented by LLVM's coverage pass, which rustc's stable flags reach, so
//! neither cargo-fuzz nor a nightly toolchain is needed. The address sanitiser is left out: it does need nightly, and the
//! parsers under test are safe Rust.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
    thread,
};

use crate::shell::{command, complain, output, root, say};

/// Edge counters that libFuzzer reads, and the operands of comparisons, which lead it to magic numbers. Assertions and
/// overflow checks stay on in optimised code.
const INSTRUMENTATION: [&str; 8] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
    "-Ccodegen-units=1",
    "--cfg=fuzzing",
];

/// No input may keep a target busy for longer than this many seconds, or use more than this many megabytes.
const LIMITS: [&str; 2] = ["-timeout=10", "-rss_limit_mb=2048"];

/// Runs every target in `fuzz/fuzz_targets` for `seconds`, as many at a time as there are cores.
pub(crate) fn run(seconds: u64) -> bool {
    let Some(programs) = build() else { return false };
    let targets = targets();
    let waiting = Mutex::new(targets.iter());
    let failed = Mutex::new(Vec::new());
    let work = || {
        // The lock is free again before the target runs.
        while let Some(target) = { waiting.lock().expect("no thread panics with the lock").next() } {
            match fuzz(&programs, target, seconds) {
                Ok(true) => {}
                Ok(false) => failed.lock().expect("no thread panics with the lock").push(target),
                Err(error) => {
                    complain(&format!("{target} cannot be run: {error}"));
                    failed.lock().expect("no thread panics with the lock").push(target);
                }
            }
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner().expect("no thread panicked");
    for target in &failed {
        complain(&format!("{target} failed: the input is in fuzz/artifacts/{target}"));
    }
    let passed = targets.len() - failed.len();
    say(&format!("test result: fuzz targets. {passed} passed; {} failed", failed.len()));
    failed.is_empty() && !targets.is_empty()
}

/// Compiles all targets; gives the folder of the programs.
fn build() -> Option<PathBuf> {
    // Naming the target, even if it is this machine, keeps the flags away from build scripts and macros.
    let version = output(&["rustc", "--version", "--verbose"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "))?.to_owned();
    let words = ["cargo", "build", "--release", "--bins", "--manifest-path", "fuzz/Cargo.toml"];
    let words = [&words[..], &["--target-dir", "target/fuzz", "--target", &host]].concat();
    say(&format!("$ {}", words.join(" ")));
    let mut build = command(&words);
    build.env("CARGO_ENCODED_RUSTFLAGS", INSTRUMENTATION.join("\x1f"));
    let built = build.status().is_ok_and(|status| status.success());
    built.then(|| root().join("target/fuzz").join(host).join("release"))
}

/// Runs one target. It starts from the inputs that earlier runs found, and adds to them. Whether it found no fault.
fn fuzz(programs: &Path, target: &str, seconds: u64) -> io::Result<bool> {
    let [corpus, artifacts] =
        ["corpus", "artifacts"].map(|folder| root().join("fuzz").join(folder).join(target));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    for (number, seed) in seeds(target)?.iter().enumerate() {
        fs::write(corpus.join(format!("testdata-{number}")), seed)?;
    }
    let log = root().join("target/fuzz").join(format!("{target}.log"));
    let file = File::create(&log)?;
    let succeeded = Command::new(programs.join(target))
        .arg(format!("-max_total_time={seconds}"))
        .args(LIMITS)
        .args(["-print_final_stats=1", &format!("-artifact_prefix={}/", artifacts.display())])
        .arg(&corpus)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()?
        .success();
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let runs = executed(&text);
    if succeeded && runs > 0 {
        say(&format!("ok      {target}: {runs} inputs"));
    } else if succeeded {
        say(&format!("FAILED  {target}: it ran no input"));
    } else {
        let lines: Vec<&str> = text.lines().collect();
        let end = lines[lines.len().saturating_sub(40)..].join("\n        ");
        say(&format!("FAILED  {target}\n        {end}"));
    }
    Ok(succeeded && runs > 0)
}

/// Inputs from the test data, with which a target starts: arbitrary bytes would seldom become a file that is almost right.
/// Other targets make such files of their own.
fn seeds(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let read = |path: &str| fs::read(root().join("testdata").join(path));
    match target {
        "gguf_header" => ["micro-e2b-Q8_0", "micro-e2b-Q8_0-ollama", "tiny-moe-Q4_K_M"]
            .iter()
            // The start is enough: whole files would be changed where it does not matter.
            .map(|name| Ok(read(&format!("gguf/{name}.gguf"))?.into_iter().take(4096).collect()))
            .collect(),
        "convert_plan" => {
            let weights = read("convert/nano-e2b/model-00003-of-00003.safetensors")?;
            let header =
                safetensors_header(&weights).ok_or_else(|| io::Error::other("no header of weights"))?;
            let others = ["config.json", "model.safetensors.index.json", "tokenizer.json"];
            let [config, index, tokenizer] = others.map(|name| read(&format!("convert/nano-e2b/{name}")));
            let files = [config?, header.to_vec(), index?, tokenizer?];
            Ok((0..).zip(files).map(|(choice, bytes)| [vec![choice], bytes].concat()).collect())
        }
        "media_image" => {
            ["rgb.png", "progressive.jpg", "turned-6.jpg", "lossy.webp", "animated.gif", "packed.bmp"]
                .iter()
                .map(|name| read(&format!("media/files/{name}")))
                .collect()
        }
        "media_sound" => ["u8-8000.wav", "tagged.mp3", "stereo.flac", "stereo.ogg", "stereo.m4a"]
            .iter()
            // Short, because a few bytes of FLAC can be a second of silence.
            .map(|name| Ok(read(&format!("media/files/{name}"))?.into_iter().take(6144).collect()))
            .collect(),
        _ => Ok(Vec::new()),
    }
}

/// The JSON at the start of a file of weights, whose length comes before it.
fn safetensors_header(file: &[u8]) -> Option<&[u8]> {
    let (length, rest) = file.split_first_chunk()?;
    rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

/// How many inputs a target ran, by the statistics that libFuzzer prints at its end.
fn executed(log: &str) -> u64 {
    let runs = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    runs.and_then(|runs| runs.trim().parse().ok()).unwrap_or(0)
}

fn targets() -> Vec<String> {
    let files = fs::read_dir(root().join("fuzz/fuzz_targets")).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        files.filter_map(|file| file.file_name().to_str()?.strip_suffix(".rs").map(str::to_owned)).collect();
    names.sort();
    names
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn first_inputs_come_from_the_test_data() {
        let headers = seeds("gguf_header").expect("the test data");
        assert!(
            headers.len() == 3 && headers.iter().all(|seed| seed.starts_with(b"GGUF") && seed.len() == 4096)
        );
        let checkpoint = seeds("convert_plan").expect("the test data");
        assert_eq!(checkpoint.iter().map(|seed| seed[0]).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(checkpoint.iter().all(|seed| seed[1] == b'{' && seed.trim_ascii_end().ends_with(b"}")));
        assert!(seeds("media_image").expect("the test data").iter().any(|seed| seed.starts_with(b"GIF8")));
        assert!(seeds("media_sound").expect("the test data").iter().any(|seed| seed.starts_with(b"OggS")));
        assert!(targets().iter().any(|target| target == "convert_plan"));
    }

    #[test]
    fn a_log_without_inputs_counts_none() {
        assert_eq!(
            executed("Done 12 runs\nstat::number_of_executed_units: 12345\nstat::new_units_added: 3"),
            12345
        );
        assert_eq!(executed("stat::number_of_executed_units: 0"), 0);
        assert_eq!(executed("INFO: Running with entropic power schedule"), 0);
    }
}
