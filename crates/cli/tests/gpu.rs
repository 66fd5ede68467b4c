//! What needs a GPU: the default backend, `inspect --plan`, `bench`, `doctor`, and how it is told that there is none.
//!
//! Software adapters compile each kernel for long, so there are few of these; whether the GPU is right is a matter for
//! the engine's tests.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::process::{Command, Output};

use common::program;
use serde_json::{Value, json};

fn model(name: &str) -> String {
    format!("{}/../../testdata/gguf/{name}.gguf", env!("CARGO_MANIFEST_DIR"))
}

fn rullama(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    common::run(program(arguments).envs(environment.iter().copied()), "")
}

fn json_of(arguments: &[&str]) -> Value {
    common::json_of(&mut program(arguments), "")
}

#[test]
fn replies_of_both_backends_are_alike() {
    let micro = model("micro-e2b-Q8_0");
    let say = |more: &[&str]| {
        let arguments = ["generate", &micro, "--ids", "2,610,483", "--temperature", "0", "--max-tokens", "4"];
        json_of(&[&arguments[..], &["--ignore-eos", "--json"], more].concat())["ids"].clone()
    };
    let ids = say(&["--backend", "gpu"]);
    assert_eq!(ids.as_array().unwrap().len(), 4);
    assert_eq!(ids, say(&["--backend", "cpu"]));
    assert_eq!(ids, say(&["--backend", "auto"]));
}

/// 12B has few kernels for images, and they come from a second file. The text model is not uploaded.
#[test]
fn rows_of_both_backends_are_alike() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("rows.npy");
    let image = format!("{}/../../testdata/media/tiny-12b-480x336.png", env!("CARGO_MANIFEST_DIR"));
    let encode = |backend: &str| {
        let (text, towers) = (model("tiny-12b-Q8_0"), model("tiny-12b-mmproj-f16"));
        let arguments = ["encode", &text, "--projector", &towers, "--image", &image, "--budget", "70"];
        let out = out.to_str().unwrap();
        let told = json_of(&[&arguments[..], &["--backend", backend, "--out", out, "--json"]].concat());
        assert_eq!((&told["rows"], &told["width"]), (&json!(70), &json!(192)));
        let bytes = std::fs::read(out).unwrap();
        let values = bytes[bytes.len() - 4 * 70 * 192..].as_chunks::<4>().0.iter();
        values.map(|&value| f64::from(f32::from_le_bytes(value))).collect::<Vec<f64>>()
    };
    let (gpu, cpu) = (encode("gpu"), encode("cpu"));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let cosine = dot(&gpu, &cpu) / (dot(&gpu, &gpu) * dot(&cpu, &cpu)).sqrt();
    assert!(cosine > 0.999, "{cosine}");
}

#[test]
fn weights_stay_in_the_file_where_memory_is_short() {
    let micro = model("micro-e2b-Q8_0");
    let say = |more: &[&str]| {
        let arguments = ["generate", &micro, "--ids", "2,610,483", "--temperature", "0", "--max-tokens", "4"];
        let all = ["--ignore-eos", "--json", "--context", "64", "--backend", "gpu"];
        rullama(&[&arguments[..], &all, more].concat(), &[])
    };
    let ids = |output: &Output| serde_json::from_slice::<Value>(&output.stdout).unwrap()["ids"].clone();
    let said = |output: &Output| String::from_utf8(output.stderr.clone()).unwrap();
    let all = say(&[]);
    let asked = say(&["--residency", "rows"]);
    assert_eq!(ids(&asked), ids(&all));
    assert!(!said(&asked).contains("stay in the file"), "{}", said(&asked));
    let tight = say(&["--gpu-memory", "1"]);
    assert!(!tight.status.success() && said(&tight).contains("of GPU memory"), "{}", said(&tight));
    assert!(said(&tight).contains("hint: use a larger --gpu-memory,"), "{}", said(&tight));
    assert_eq!(say(&["--residency", "attic"]).status.code(), Some(2));
    // The error tells what the most frugal way needs, which leaves the tables in the file.
    let error = said(&tight);
    let needed = error.split_once("needs ").and_then(|(_, rest)| rest.split_once(" MiB of GPU memory"));
    let needed: f64 = needed.unwrap_or_else(|| panic!("{error}")).0.parse().unwrap();
    let noted = say(&["--gpu-memory", &(needed as u64 + 1).to_string()]);
    assert!(noted.status.success(), "{}", said(&noted));
    assert!(said(&noted).contains("so embedding tables stay in the file"), "{}", said(&noted));
    assert_eq!(ids(&noted), ids(&all));
}

/// An interrupt ends the reply, and the chat goes on.
#[test]
#[cfg(unix)]
fn a_reply_can_be_interrupted() {
    use std::io::{Read as _, Write as _};
    let micro = model("micro-e2b-Q8_0");
    let mut chat = program(&["run", &micro, "--ignore-eos", "--context", "4096", "--seed", "1"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut input = chat.stdin.take().unwrap();
    input.write_all(b"hello\n").unwrap();
    // It has begun to answer.
    let mut output = chat.stdout.take().unwrap();
    output.read_exact(&mut [0; 16]).unwrap();
    let interrupt = Command::new("kill").args(["-INT", &chat.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    input.write_all(b"/bye\n").unwrap();
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).unwrap();
    let status = chat.wait().unwrap();
    assert!(status.success(), "{status}");
    // Without an interrupt it would go on until the context is full: about four thousand tokens, most of them words.
    assert!(rest.len() < 4000, "the reply went on for {} bytes", rest.len());
}

#[test]
fn plans_are_listed_with_their_totals() {
    let micro = model("micro-e2b-Q8_0");
    let plan = |more: &[&str]| {
        let arguments = [&["inspect", &micro, "--plan", "--json"], more].concat();
        json_of(&arguments)["plan"].clone()
    };
    let decode = plan(&[]);
    let dispatches = decode["dispatches"].as_array().unwrap();
    assert_eq!((&decode["rows"], &decode["position"]), (&json!(1), &json!(0)));
    assert_eq!(decode["dispatch_count"], dispatches.len());
    let bytes: u64 = dispatches.iter().map(|dispatch| dispatch["weight_bytes"].as_u64().unwrap()).sum();
    assert_eq!(decode["weight_bytes"], bytes);
    assert_eq!(decode["fallbacks"], json!([]));
    assert!(bytes > 1_000_000 && decode["scratch_bytes"].as_u64().unwrap() > 0);
    let per_layer = decode["dispatches_per_layer"].as_f64().unwrap();
    assert!(per_layer > 4.0 && per_layer < 10.0, "{per_layer}");
    for dispatch in dispatches {
        assert!(!dispatch["what"].as_str().unwrap().is_empty());
        assert!(!dispatch["kernel"].as_str().unwrap().is_empty());
        assert_eq!(dispatch["workgroups"].as_array().unwrap().len(), 3);
    }

    let prompt = plan(&["--rows", "100", "--position", "40"]);
    assert_eq!((&prompt["rows"], &prompt["position"]), (&json!(100), &json!(40)));
    assert!(prompt["scratch_bytes"].as_u64() > decode["scratch_bytes"].as_u64());

    let output = rullama(&["inspect", &micro, "--plan", "--rows", "4"], &[]);
    let said = String::from_utf8(output.stdout).unwrap();
    for expected in
        ["WORKGROUPS", "logits", "\nstep        4 tokens at position 0\n", "\ndispatches  ", "\nscratch  "]
    {
        assert!(said.contains(expected), "`{expected}` is missing in:\n{said}");
    }
    for wrong in [&["--rows", "0"][..], &["--rows", "513"], &["--position", "999999999"]] {
        let output = rullama(&[&["inspect", &micro, "--plan"], wrong].concat(), &[]);
        assert!(!output.status.success() && output.stdout.is_empty(), "{wrong:?}");
    }
    assert_eq!(rullama(&["inspect", &micro, "--rows", "4"], &[]).status.code(), Some(2), "rows of what?");
}

#[test]
fn speed_is_measured_at_each_depth() {
    let micro = model("micro-e2b-Q8_0");
    let small = ["--prompt", "16", "--generate", "4", "--depth", "0,8", "--repeat", "2", "--json"];
    let found = json_of(&[&["bench", &micro, "--profile", "--backend", "gpu"], &small[..]].concat());
    assert_eq!((&found["model"], &found["backend"]), (&json!("micro-e2b-Q8_0"), &json!("gpu")));
    assert!(!found["device"].as_str().unwrap().is_empty());
    assert!(
        found["load_ms"].as_f64().unwrap() > 0.0 && found["bandwidth_bytes_per_s"].as_f64().unwrap() > 0.0
    );
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.iter().map(|result| &result["depth"]).collect::<Vec<_>>(), [&json!(0), &json!(8)]);
    for result in results {
        assert_eq!((&result["prompt_tokens"], &result["generate_tokens"]), (&json!(16), &json!(4)));
        for rate in [&result["prompt_tps"], &result["generate_tps"]] {
            assert!(
                rate["mean"].as_f64().unwrap() > 0.0 && rate["stddev"].as_f64().unwrap() >= 0.0,
                "{result}"
            );
        }
        // The time to the first token is that of the prompt. The mean of times is at least the inverse of the mean of
        // rates, however much repetitions differ.
        let (first, rate) = (&result["first_token_ms"], &result["prompt_tps"]["mean"]);
        assert!(first.as_f64().unwrap() * rate.as_f64().unwrap() / 16e3 > 0.999, "{result}");
        assert!(result["dispatches_per_token"].as_u64().unwrap() > 20);
        let share = result["weight_bytes_per_token"].as_f64().unwrap()
            * result["generate_tps"]["mean"].as_f64().unwrap()
            / found["bandwidth_bytes_per_s"].as_f64().unwrap();
        assert!((result["bandwidth_share"].as_f64().unwrap() - share).abs() < 1e-9);
    }
    let profiles = found["profile"].as_array().unwrap();
    let sizes: Vec<_> =
        profiles.iter().map(|profile| (profile["depth"].as_u64(), profile["rows"].as_u64())).collect();
    assert_eq!(sizes, [(0, 1), (0, 16), (8, 1), (8, 16)].map(|(depth, rows)| (Some(depth), Some(rows))));
    let kernels = profiles[0]["kernels"].as_array().unwrap();
    let count: u64 = kernels.iter().map(|kernel| kernel["count"].as_u64().unwrap()).sum();
    assert_eq!(results[0]["dispatches_per_token"], count);
    let times: Vec<f64> = kernels.iter().map(|kernel| kernel["seconds"].as_f64().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
}

#[test]
fn speed_is_measured_on_the_cpu() {
    let micro = model("micro-e2b-Q8_0");
    let small = ["bench", &micro, "--backend", "cpu", "--prompt", "0", "--generate", "4", "--repeat", "1"];
    let arguments = [&small[..], &["--depth", "0"]].concat();
    let found = json_of(&[&arguments[..], &["--json"]].concat());
    let result = &found["results"][0];
    assert_eq!((&found["backend"], &found["bandwidth_bytes_per_s"]), (&json!("cpu"), &Value::Null));
    assert_eq!((&result["prompt_tps"], &result["first_token_ms"]), (&Value::Null, &Value::Null));
    assert!(result["generate_tps"]["mean"].as_f64().unwrap() > 0.0);
    assert_eq!(result["generate_tps"]["stddev"], 0.0);
    let said = String::from_utf8(rullama(&arguments, &[]).stdout).unwrap();
    assert!(said.contains("GENERATE 4") && said.contains(" tok/s"), "{said}");
    let output = rullama(&[&arguments[..], &["--profile"]].concat(), &[]);
    assert_eq!(output.status.code(), Some(2));
    let output = rullama(&["bench", &micro, "--prompt", "0", "--generate", "0"], &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("nothing to measure"), "{said}");
    // What is measured has to fit, and what to change is what was given.
    for (more, hint) in [
        (&["--depth", "40", "--context", "32"][..], "hint: leave out --context"),
        (&["--depth", "9999999"], "hint: use a smaller --depth"),
        (&["--depth", "0", "--context", "9999999"], "hint: use --context "),
    ] {
        let output = rullama(&[&small[..], more].concat(), &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains(hint), "{more:?}: {said}");
    }
}

#[test]
fn the_doctor_describes_the_gpu() {
    let found = json_of(&["doctor", "--json"]);
    assert_eq!(found["ok"], true);
    let name = found["adapter"]["name"].as_str().unwrap();
    assert!(!name.is_empty());
    assert!(found["adapter"]["software"].is_boolean());
    assert!(found["adapter"]["software"] == true || !name.contains("llvmpipe"));
    assert!(found["limits"]["largest_binding"].as_u64().unwrap() >= 128 << 20);
    assert!(found["features"]["half_precision"].is_boolean());
    assert!(found["bandwidth_bytes_per_s"].as_f64().unwrap() > 0.0);
    let tests = found["self_tests"].as_array().unwrap();
    assert!(tests.len() > 10 && tests.iter().all(|test| test["passed"] == true), "{tests:?}");
    assert_eq!(found["fallbacks"], json!([]));
    let kernels = found["kernels"].as_array().unwrap();
    for step in ["decode", "prompt"] {
        assert!(kernels.iter().any(|kernel| kernel["step"] == step), "{step}");
    }
    let said = String::from_utf8(rullama(&["doctor"], &[]).stdout).unwrap();
    let verdict = said.lines().next().unwrap();
    let expected = match found["adapter"]["software"] == true {
        true => "rullama uses the CPU here: there is no GPU, only an emulated one",
        false => "all kernels pass",
    };
    assert!(verdict.contains(name) && verdict.contains(expected), "{said}");
    assert!(said.contains("memory bandwidth ") && !said.contains("KERNEL"), "{said}");
    let said = String::from_utf8(rullama(&["doctor", "--verbose"], &[]).stdout).unwrap();
    assert!(
        said.contains("KERNEL") && said.contains("SELF-TEST") && said.contains("largest binding"),
        "{said}"
    );
}

/// A GPU that is emulated is slower than the CPU, and so is used only where it was asked for. Who computes is told.
#[test]
fn the_cpu_computes_where_the_gpu_is_emulated() {
    let found: Value = serde_json::from_slice(&rullama(&["doctor", "--json"], &[]).stdout).unwrap();
    let software = found["adapter"]["software"].as_bool().unwrap();
    let question = ["generate", "--prompt", "What is 7 + 5?", "--think", "off", "--temperature", "0"];
    for (asked, on_cpu) in [(&[][..], software), (&["--backend", "gpu"], false)] {
        let output = rullama(&[&question[..], asked].concat(), &[]);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "7 + 5 = 12.\n");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.contains("so rullama uses the CPU"), on_cpu, "{said}");
    }
}

/// Drivers are found by these variables, of which older loaders know the second only.
#[cfg(target_os = "linux")]
#[test]
fn where_there_is_no_gpu_that_is_said() {
    let micro = model("micro-e2b-Q8_0");
    let hidden = [("VK_DRIVER_FILES", "/nonexistent"), ("VK_ICD_FILENAMES", "/nonexistent")];
    for (arguments, hint) in [
        (&["generate", &micro, "--ids", "2", "--backend", "gpu"][..], "--backend cpu"),
        (&["run", &micro, "--backend", "gpu"], "--backend cpu"),
        (&["bench", &micro, "--backend", "gpu"], "--backend cpu"),
        (&["logits", &micro, "--ids", "2", "--out", "/nonexistent", "--backend", "gpu"], "--backend cpu"),
        (&["inspect", &micro, "--plan"], "install a Vulkan driver"),
        (&["parity", &micro], "install a Vulkan driver"),
        (&["doctor"], "install a Vulkan driver"),
    ] {
        let output = rullama(arguments, &hidden);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        let verdict = if arguments == ["doctor"] { "No GPU found; rullama will use the CPU\n" } else { "" };
        assert_eq!(String::from_utf8(output.stdout).unwrap(), verdict, "{arguments:?}");
        assert!(said.contains("error: no GPU found\n") && said.contains("\nhint: "), "{said}");
        assert!(said.contains(hint) && !said.contains("not compiled in"), "{said}");
        // Nobody is told of an option that there is not.
        assert_eq!(said.contains("--backend"), hint.contains("--backend"), "{said}");
    }
    // A file that cannot run is found out without one.
    let other = format!("{}/../../testdata/tokenizer/gemma4-vocab.gguf", env!("CARGO_MANIFEST_DIR"));
    for arguments in [&["generate", &other, "--ids", "2"][..], &["run", &other], &["bench", &other]] {
        let said = String::from_utf8(rullama(arguments, &hidden).stderr).unwrap();
        assert!(said.starts_with("error: ") && !said.contains("adapter"), "{arguments:?}: {said}");
    }
    let output = rullama(&["doctor", "--json"], &hidden);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!((&found["ok"], &found["problem"]["code"]), (&json!(false), &json!("device.unavailable")));
    // What needs no GPU goes on.
    let logits = tempfile::tempdir().unwrap();
    let path = logits.path().join("logits.npy");
    let arguments = ["logits", &micro, "--ids", "2", "--out", path.to_str().unwrap()];
    assert!(rullama(&arguments, &hidden).status.success());
    let generate = ["generate", &micro, "--ids", "2", "--max-tokens", "1"];
    assert!(rullama(&[&generate[..], &["--backend", "cpu"]].concat(), &hidden).status.success());
    // Without --backend the CPU takes over, with a note.
    let output = rullama(&generate, &hidden);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && said.contains("note: no GPU found, so rullama uses the CPU"),
        "{said}"
    );
}

/// Numbers that are not finite end a reply with the same error on both backends, and not with garbage.
#[test]
fn a_damaged_model_fails_as_on_the_cpu() {
    let micro = model("micro-e2b-Q8_0");
    let report = json_of(&["inspect", &micro, "--tensors", "--json"]);
    let tensors = report["tensors"].as_array().unwrap();
    let tensor = tensors.iter().find(|tensor| tensor["name"] == "blk.1.ffn_down.weight").unwrap();
    let at = (report["data_start"].as_u64().unwrap() + tensor["offset"].as_u64().unwrap()) as usize;
    let mut bytes = std::fs::read(&micro).unwrap();
    // The scale of the first block, as a half float: not a number.
    bytes[at..at + 2].copy_from_slice(&0x7e00u16.to_le_bytes());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.gguf");
    std::fs::write(&path, bytes).unwrap();
    for backend in ["gpu", "cpu"] {
        let arguments = ["generate", path.to_str().unwrap(), "--ids", "2,610,483", "--context", "64"];
        let output = rullama(&[&arguments[..], &["--backend", backend]].concat(), &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{backend}: {said}");
        assert!(said.contains("is not finite"), "{backend}: {said}");
    }
}
