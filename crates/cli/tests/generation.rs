//! `generate`, `logits` and `run` on small models, against Hugging Face's continuations.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{fs, process::Output};

use common::program;
use serde_json::{Value, json};

fn testdata(path: &str) -> String {
    format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"))
}

fn model(name: &str) -> String {
    testdata(&format!("gguf/{name}.gguf"))
}

fn rullama(arguments: &[&str], input: &str) -> Output {
    common::run(&mut program(arguments), input)
}

fn json_of(arguments: &[&str]) -> Value {
    common::json_of(&mut program(arguments), "")
}

fn list(ids: &Value) -> String {
    let ids: Vec<String> = ids.as_array().unwrap().iter().map(Value::to_string).collect();
    ids.join(",")
}

/// Up to which margin the CPU may choose another token. It multiplies quantised weights with activations of eight bits,
/// and floats as floats.
fn unsure(model: &str) -> f64 {
    if model.ends_with("F16") { 0.08 } else { 1.0 }
}

#[test]
fn continuations_are_those_of_the_references() {
    for name in ["micro-e2b-F16", "tiny-e2b-Q4_K_M", "tiny-dense-Q4_K_M", "tiny-moe-Q4_K_M"] {
        let path = testdata(&format!("text/{name}.refs.json"));
        let references: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        for prompt in references["prompts"].as_array().unwrap() {
            let margins = prompt["hf_greedy_margins"].as_array().unwrap();
            let sure = margins.iter().take_while(|margin| margin.as_f64().unwrap() > unsure(name)).count();
            let (ids, count) = (list(&prompt["ids"]), sure.to_string());
            let found = json_of(&[
                "generate",
                &model(name),
                "--ids",
                &ids,
                "--backend",
                "cpu",
                "--max-tokens",
                &count,
                "--temperature",
                "0",
                "--ignore-eos",
                "--json",
            ]);
            assert_eq!(
                found["ids"].as_array().unwrap()[..],
                prompt["hf_greedy"].as_array().unwrap()[..sure],
                "{name}, {}",
                prompt["name"]
            );
            assert_eq!(found["finish_reason"], "length");
            assert_eq!(found["prompt_tokens"], prompt["ids"].as_array().unwrap().len());
            assert!(found["timings"]["generate_ms"].as_f64().unwrap() > 0.0);
        }
    }
}

#[test]
fn a_prompt_is_answered_or_continued() {
    let tiny = model("tiny-e2b-Q4_K_M");
    let question = "What is the capital of France? Answer in one word.";
    let answer = json_of(&[
        "generate",
        &tiny,
        "--prompt",
        question,
        "--think",
        "off",
        "--temperature",
        "0",
        "--json",
        "--backend",
        "cpu",
    ]);
    assert_eq!((&answer["text"], &answer["finish_reason"]), (&json!("Paris"), &json!("stop")));

    let raw = ["generate", &tiny, "--prompt", "Hello", "--raw", "--temperature", "0", "--max-tokens", "30"];
    let raw = [&raw[..], &["--backend", "cpu"]].concat();
    let text = " there! My name is Tiny, and I am a very small language model that was made only for tests.";
    assert_eq!(json_of(&[&raw[..], &["--json"]].concat())["text"], text);
    assert_eq!(String::from_utf8(rullama(&raw, "").stdout).unwrap(), format!("{text}\n"));
    let stopped = json_of(&[&raw[..], &["--stop", "very", "--stop", "only", "--json"]].concat());
    assert_eq!(stopped["text"], " there! My name is Tiny, and I am a ");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.json");
    fs::write(&path, json!([{ "role": "user", "content": question }]).to_string()).unwrap();
    let path = path.to_str().unwrap();
    let told = json_of(&[
        "generate",
        &tiny,
        "--messages",
        path,
        "--think",
        "off",
        "--temperature",
        "0",
        "--json",
        "--backend",
        "cpu",
    ]);
    assert_eq!(told["ids"], answer["ids"]);
}

#[test]
fn the_same_seed_gives_the_same_text() {
    let tiny = model("micro-e2b-Q8_0");
    let say = |seed: &str| {
        json_of(&[
            "generate",
            &tiny,
            "--prompt",
            "Hello",
            "--raw",
            "--temperature",
            "2",
            "--top-k",
            "0",
            "--top-p",
            "1",
            "--min-p",
            "0",
            "--repeat-penalty",
            "1.1",
            "--seed",
            seed,
            "--max-tokens",
            "8",
            "--ignore-eos",
            "--backend",
            "cpu",
            "--kv",
            "q8",
            "--context",
            "100",
            "--json",
        ])["ids"]
            .clone()
    };
    assert_eq!(say("1"), say("1"));
    assert_ne!(say("1"), say("2"));
}

/// Without a seed, two runs take different ones; and each can be repeated with the seed that it tells.
#[test]
fn runs_without_a_seed_take_another_each_and_can_be_repeated() {
    let tiny = model("micro-e2b-Q8_0");
    let say = |seed: Option<String>| {
        let mut arguments = vec!["generate", &tiny, "--prompt", "Hello", "--raw", "--temperature", "2"];
        arguments.extend(["--top-k", "0", "--top-p", "1", "--max-tokens", "8", "--ignore-eos", "--json"]);
        arguments.extend(["--backend", "cpu"]);
        if let Some(seed) = &seed {
            arguments.extend(["--seed", seed]);
        }
        let said = json_of(&arguments);
        (said["seed"].as_u64().unwrap(), said["ids"].clone())
    };
    let [one, other] = [(); 2].map(|()| say(None));
    assert_ne!(one.0, other.0, "different seeds may still draw the same few tokens");
    assert_eq!(say(Some(one.0.to_string())), one);
    assert_ne!(say(Some("-1".to_owned())).0, one.0, "-1 is random");
    assert_eq!(say(Some("-5".to_owned())), say(Some("-5".to_owned())), "other negative seeds are seeds");
}

#[test]
fn logits_are_written_for_numpy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logits.npy");
    for (flags, rows) in [(&[][..], 1), (&["--all"][..], 3)] {
        let arguments =
            ["logits", &model("micro-e2b-F16"), "--ids", "2,610,483", "--out", path.to_str().unwrap()];
        let output = rullama(&[&arguments[..], flags].concat(), "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let bytes = fs::read(&path).unwrap();
        assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
        let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let text = std::str::from_utf8(&bytes[10..10 + header]).unwrap();
        assert!(text.contains(&format!("'shape': ({rows}, 2048)")) && text.ends_with('\n'), "{text}");
        assert_eq!((bytes.len() - 10 - header, (10 + header) % 64), (4 * rows * 2048, 0));
        let last: Vec<f32> = bytes[bytes.len() - 4 * 2048..]
            .chunks_exact(4)
            .map(|value| f32::from_le_bytes(value.try_into().unwrap()))
            .collect();
        let best = last.iter().copied().fold(f32::MIN, f32::max);
        assert_eq!(last[716], best, "the token that follows `The quick` in what it learnt");
    }
}

#[test]
fn a_chat_remembers_and_obeys_commands() {
    let script = "\
/help
/set temperature 0
What is the capital of France? Answer in one word.
/set nonsense 3
/set temperature warm
/show
\"\"\"
Hello
there\"\"\"
\"\"\"
/quoted is no command\"\"\"
\"\"\"/bye\"\"\"
/clear
/frobnicate
/set verbose on
What is the capital of France? Answer in one word.
/bye
not reached
";
    let output = rullama(
        &["run", &model("tiny-e2b-Q4_K_M"), "--backend", "cpu", "--think", "off", "--max-tokens", "20"],
        script,
    );
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("\nParis\n").count(), 2, "{said}");
    assert!(!said.contains("no command /quoted"), "{said}");
    for expected in [
        "/set think on|off",
        "There is no option `nonsense`",
        "error: ",
        "temperature        0\n",
        "Set temperature to 0.",
        "of 131072 tokens used",
        "Started a new chat.",
        "There is no command /frobnicate",
        " new tokens, ",
    ] {
        assert!(said.contains(expected), "`{expected}` is missing in:\n{said}");
    }
}

/// Values outside of their ranges are refused before a model is opened: by the option as it was written, the value and
/// what would do.
#[test]
fn numbers_out_of_range_are_refused_by_name() {
    const PROBABILITY: &str = "a number from 0 to 1";
    const TEMPERATURE: &str = "a finite number, 0 or above";
    const CONTEXT: &str = "a whole number from 1 to 4294967295";
    let generate = ["generate", "none.gguf", "--prompt", "Hello"];
    for (option, value, expected) in [
        ("--temperature", "-1", TEMPERATURE),
        ("--temperature", "NaN", TEMPERATURE),
        ("--temperature", "inf", TEMPERATURE),
        ("--top-p", "2", PROBABILITY),
        ("--top-p", "-0.5", PROBABILITY),
        ("--min-p", "1.5", PROBABILITY),
        ("--repeat-penalty", "0", "a finite number above 0"),
        ("--repeat-penalty", "-1", "a finite number above 0"),
        ("--top-k", "-2", "a whole number from -1 to 4294967295"),
        ("--max-tokens", "-3", "a whole number from -2 to 4294967295"),
        ("--max-tokens", "1.5", "a whole number from -2 to 4294967295"),
        (
            "--seed",
            "18446744073709551616",
            "a whole number from -9223372036854775808 to 18446744073709551615",
        ),
        ("--context", "0", CONTEXT),
        ("--context", "-5", CONTEXT),
        ("--context", "4294967296", CONTEXT),
        ("--gpu-memory", "0", "a whole number from 1 to 17592186044415"),
        ("--gpu-memory", "-1", "a whole number from 1 to 17592186044415"),
        ("--weight-memory", "-1", "a whole number from 0 to 17592186044415"),
    ] {
        let arguments = [&generate[..], &[option, value]].concat();
        let (status, said) = common::failure(&mut program(&arguments));
        let start = format!("error: invalid value '{value}' for '{option} <");
        assert!(
            status == 2 && said.starts_with(&start) && said.contains(&format!(": expected {expected}\n")),
            "{option} {value}: {status}, {said}"
        );
    }
    for (command, option, value) in [
        ("bench", "--context", "0"),
        ("bench", "--depth", "-1"),
        ("bench", "--depth", "0,4294967296"),
        ("bench", "--prompt", "-1"),
        ("bench", "--repeat", "0"),
        ("parity", "--tolerance", "-0.5"),
        ("parity", "--tolerance", "NaN"),
        ("parity", "--max-tokens", "0"),
        ("logits", "--context", "0"),
        ("inspect", "--position", "-1"),
    ] {
        let rest: &[&str] = match command {
            "logits" => &["--ids", "2", "--out", "none.npy"],
            "inspect" => &["--plan"],
            _ => &[],
        };
        let arguments = [&[command, "none.gguf", option, value], rest].concat();
        let (status, said) = common::failure(&mut program(&arguments));
        assert!(status == 2 && said.contains(&format!("for '{option} <")), "{arguments:?}: {status}, {said}");
    }
    // A depth that the context cannot hold is refused before its tokens are made.
    let micro = model("micro-e2b-Q8_0");
    let deep = ["bench", &micro, "--backend", "cpu", "--depth", "4294967295", "--context", "64"];
    let (status, said) = common::failure(&mut program(&deep));
    assert!(
        status == 1 && said.contains("needs a context of 4294967295 tokens, and --context is 64"),
        "{said}"
    );
}

#[test]
fn mistakes_are_told() {
    let tiny = model("micro-e2b-Q8_0");
    let refuse = |arguments: &[&str], status: i32, said: &str| {
        let output = rullama(arguments, "");
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
        assert!(error.starts_with("error: ") && error.contains(said), "{arguments:?}: {error}");
    };
    refuse(&["generate", &tiny], 2, "there is no prompt: standard input is empty");
    refuse(&["generate", &tiny, "--ids", "2", "--prompt", "Hello"], 2, "cannot be used with");
    refuse(&["generate", &tiny, "--ids", "2", "--kv", "f8"], 2, "f8");
    refuse(&["generate", &tiny, "--ids", "2", "--raw"], 2, "--raw");
    refuse(&["generate", &tiny, "--ids", "2,x"], 2, "`x` is not a token id");
    refuse(
        &["generate", &tiny, "--backend", "cpu", "--ids", "99999"],
        1,
        "the model can't continue: token 99999 does not exist (the vocabulary has 2048 tokens)\n",
    );
    refuse(
        &["generate", &tiny, "--backend", "cpu", "--prompt", "Hello there", "--raw", "--context", "2"],
        1,
        "fit in a context of 2",
    );
    refuse(&["generate", &tiny, "--backend", "cpu", "--ids", "2", "--context", "999999999"], 1, "131072");
    let vocabulary = testdata("tokenizer/gemma4-vocab.gguf");
    refuse(&["generate", &vocabulary, "--backend", "cpu", "--ids", "2"], 1, "no weights");
    refuse(&["logits", &tiny, "--ids", "2", "--out", "/nonexistent/l.npy"], 1, "/nonexistent/l.npy");
}

/// A copy of a model in which a name is another one of the same length.
fn renamed(folder: &tempfile::TempDir, from: &str, to: &str) -> String {
    let mut bytes = fs::read(model("micro-e2b-Q8_0")).unwrap();
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
    let path = folder.path().join("renamed.gguf");
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_file_that_is_not_as_expected_gets_a_warning_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let generate = |path: &str| {
        rullama(&["generate", path, "--ids", "2,610", "--max-tokens", "1", "--backend", "cpu"], "")
    };
    let said = |output: &Output| String::from_utf8(output.stderr.clone()).unwrap();
    let whole = generate(&model("micro-e2b-Q8_0"));
    assert!(whole.status.success() && !said(&whole).contains("warning"), "{}", said(&whole));

    let unused = renamed(&folder, "rope_freqs.weight", "rope_fre\u{1b}s.weight");
    let output = generate(&unused);
    assert!(output.status.success());
    assert!(said(&output).contains("warning: tensor `rope_freqs.weight` is missing; "), "{}", said(&output));
    assert!(said(&output).contains("warning: tensor `rope_fre␛s.weight` is unknown"), "{}", said(&output));
    let report = json_of(&["inspect", &unused, "--json"]);
    assert_eq!((report["warnings"].as_array().unwrap().len(), &report["problem"]), (2, &Value::Null));

    let broken = renamed(&folder, "blk.0.attn_v.weight", "blk.0.attn_w.weight");
    let output = generate(&broken);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("tensor `blk.0.attn_v.weight` is missing"), "{}", said(&output));
    let report = json_of(&["inspect", &broken, "--json"]);
    assert_eq!(report["problem"], "tensor `blk.0.attn_v.weight` is missing");
}
