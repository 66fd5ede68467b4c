//! Files are written whole or not at all: on a full disk, and when the program is asked to end.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use common::names;

const PROGRAM: &str = env!("CARGO_BIN_EXE_rullama");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-Q8_0.gguf");

/// Runs a script of the shell in a folder.
fn shell(script: &str, folder: &Path) -> Output {
    let mut command = Command::new("sh");
    for variable in ["OLLAMA_MODELS", "XDG_DATA_HOME", "HOME"] {
        command.env(variable, "/nonexistent");
    }
    command.args(["-c", script]).current_dir(folder).output().unwrap()
}

/// Files may have 4 KiB, as on a disk with no more room; the logits need twice that.
#[test]
fn logits_on_a_full_disk_leave_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("l.npy"), "precious").unwrap();
    let script =
        format!("trap '' XFSZ; ulimit -f 8; exec '{PROGRAM}' logits '{MODEL}' --ids 2,3 --out l.npy");
    let output = shell(&script, folder);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("`l.npy` can't be written") && said.contains("the incomplete file was deleted"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(folder.join("l.npy")).unwrap(), "precious");
    assert_eq!(names(folder), ["l.npy"]);
}

/// A file that is replaced keeps its readers; a new one has those that the user's settings allow.
#[test]
fn a_file_has_the_usual_readers() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("old.npy"), "").unwrap();
    fs::set_permissions(folder.join("old.npy"), fs::Permissions::from_mode(0o640)).unwrap();
    for (name, mode) in [("old.npy", 0o640), ("new.npy", 0o604)] {
        let script = format!("umask 062; exec '{PROGRAM}' logits '{MODEL}' --ids 2 --out {name}");
        assert!(shell(&script, folder).status.success());
        let found = fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{name}: {found:o}");
    }
}

/// Each of these signals ends the program, and what it had begun to write is gone.
#[test]
fn a_signal_leaves_nothing_behind() {
    for signal in ["TERM", "INT", "HUP"] {
        if signal == "HUP" && !cfg!(target_os = "linux") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("m.gguf"), "precious").unwrap();
        // Large enough not to be done before it is stopped, and limited so that a program that ignores the signal does not fill
        // the disk. The tests may run with SIGHUP ignored, as under `nohup`; `env` restores the default for this program.
        let script = format!(
            "ulimit -f 8000000; exec env --default-signal=HUP '{PROGRAM}' synth 31b m.gguf --format bf16"
        );
        let mut child = Command::new("sh").args(["-c", &script]).current_dir(folder).spawn().unwrap();
        let begun = Instant::now();
        while names(folder).len() < 2 {
            assert!(child.try_wait().unwrap().is_none(), "the program ended by itself");
            assert!(begun.elapsed() < Duration::from_secs(120), "nothing is written");
            std::thread::sleep(Duration::from_millis(5));
        }
        let id = child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(1), "{signal}");
        assert_eq!(names(folder), ["m.gguf"], "{signal}");
        assert_eq!(fs::read_to_string(folder.join("m.gguf")).unwrap(), "precious");
    }
}

/// A program that was started with hang-ups ignored, as by `nohup`, goes on.
#[cfg(target_os = "linux")]
#[test]
fn a_hang_up_that_is_ignored_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "trap '' HUP; '{PROGRAM}' synth tiny-12b m.gguf --format q8_0 --vocab 512 >said 2>&1 & id=$!; \
         until [ -s .m.gguf.*.partial ] || [ -e m.gguf ]; do :; done; kill -HUP $id; wait $id"
    );
    let output = shell(&script, folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(names(folder.path()), ["m.gguf", "said"]);
}

/// A link under the name that a temporary file used to have, made from the number of the process, is not written through.
#[test]
fn temporary_names_cannot_be_foreseen() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("victim"), "precious").unwrap();
    let script = format!(
        "ln -s victim .m.gguf.$$.partial; exec '{PROGRAM}' synth tiny-12b m.gguf --format q8_0 --vocab 512"
    );
    assert!(shell(&script, folder).status.success());
    assert_eq!(fs::read_to_string(folder.join("victim")).unwrap(), "precious");
    assert!(fs::symlink_metadata(folder.join("m.gguf")).unwrap().is_file());

    // The keys of the certificate: nobody must learn them by a file of theirs.
    let script = format!(
        "mkdir keys; ln -s ../victim keys/certificate.$$.new; \
         exec '{PROGRAM}' serve --no-demo --port 0 --https --certificate keys >said 2>said"
    );
    let mut child = Command::new("sh").args(["-c", &script]).current_dir(folder).spawn().unwrap();
    let begun = Instant::now();
    while !folder.join("keys/certificate.json").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no certificate is written");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_to_string(folder.join("victim")).unwrap(), "precious");
    assert!(fs::symlink_metadata(folder.join("keys/certificate.json")).unwrap().is_file());
}
