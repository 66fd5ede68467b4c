//! Images and sound on the command line: rows and logits beside those of Hugging Face, replies, chats, and every mistake.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{fs, path::Path};

use common::program;
use safetensors::SafeTensors;
use serde_json::{Value, json};

/// Reads like a caller of the program: relative paths begin at the test data.
fn rullama(arguments: &[&str]) -> std::process::Command {
    let mut command = program(arguments);
    command.current_dir(DATA);
    command
}

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
const TEXT_12B: &str = "gguf/tiny-12b-Q8_0.gguf";
const TOWERS_12B: &str = "gguf/tiny-12b-mmproj-f16.gguf";
const SETTINGS: [&str; 6] = ["--think", "off", "--temperature", "0", "--backend", "cpu"];

fn data(path: &str) -> Vec<u8> {
    fs::read(Path::new(DATA).join(path)).unwrap()
}

/// The question about a file of the demo model, and the answer.
fn question(file: &str) -> Value {
    let all: Value = serde_json::from_slice(&data("demo/demo.media.json")).unwrap();
    let found = all["media"].as_array().unwrap().iter().find(|question| question["file"] == file);
    found.unwrap().clone()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|value| f32::from_le_bytes(value.try_into().unwrap())).collect()
}

fn tensor(file: &str, name: &str) -> Vec<f32> {
    let bytes = data(file);
    floats(SafeTensors::deserialize(&bytes).unwrap().tensor(name).unwrap().data())
}

/// The shape and the values of a NumPy file.
fn npy(path: &str) -> (String, Vec<f32>) {
    let bytes = fs::read(path).unwrap();
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let text = std::str::from_utf8(&bytes[10..header]).unwrap();
    let shape = text.split("'shape': ").nth(1).unwrap().split(", }").next().unwrap();
    (shape.to_owned(), floats(&bytes[header..]))
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Rows of the demo model's images and recordings, of its file alone; and 12B's, from a projector file.
#[test]
fn encoded_rows_are_those_of_transformers() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("rows.npy");
    let out = out.to_str().unwrap();
    let encode = |arguments: &[&str]| {
        let arguments = [&["encode"], arguments, &["--out", out, "--json"]].concat();
        let told = common::json_of(&mut rullama(&arguments), "");
        let (shape, values) = npy(out);
        assert_eq!(shape, format!("({}, {})", told["rows"], told["width"]));
        assert_eq!(told["path"], out);
        values
    };
    let demo = "demo/demo.media.safetensors";
    let reference = ["--backend", "reference"];
    for (option, name, ending) in [("--image", "demo-image-1", "png"), ("--audio", "demo-audio-5", "wav")] {
        let file = format!("demo/{name}.{ending}");
        let budget: &[&str] = if option == "--image" { &["--budget", "70"] } else { &[] };
        let expected = tensor(demo, &format!("{name}.rows"));
        let found = encode(&[&["demo", option, &file], budget, &reference].concat());
        let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(found.len() == expected.len() && worst < 1e-4, "{name}: off by {worst}");
        let found = encode(&[&["demo", option, &file], budget].concat());
        let cosine = cosine(&found, &expected);
        assert!(cosine > 0.999, "{name} on the CPU: {cosine}");
    }
    // Options take what messages take.
    let url = format!("data:image/png;base64,{}", base64(&data("media/tiny-12b-480x336.png")));
    let towers = ["--projector", TOWERS_12B];
    let found = encode(&[&[TEXT_12B, "--image", &url, "--budget", "70"], &towers[..]].concat());
    assert!(cosine(&found, &tensor("media/tiny-12b.safetensors", "image70.soft_rows0")) > 0.999);

    // The largest image of the demo model needs no --budget.
    let found = encode(&["demo", "--image", "demo/demo-image-4.png"]);
    assert!(cosine(&found, &tensor(demo, "demo-image-4.rows")) > 0.999);

    for (arguments, name) in [
        (["--image", "media/tiny-12b-480x336.png", "--budget", "70"], "image70.soft_rows0"),
        (["--audio", "media/tiny-12b-rise.wav", "--backend", "cpu"], "audio.soft_rows0"),
    ] {
        let found = encode(&[&[TEXT_12B][..], &towers, &arguments].concat());
        let expected = tensor("media/tiny-12b.safetensors", name);
        assert!(cosine(&found, &expected) > 0.999, "{name}");
    }
}

/// The ids have a placeholder for each row, and the logits follow.
#[test]
fn logits_of_messages_have_an_id_for_each_row() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (messages, out) = (at("messages.json"), at("logits.npy"));
    let logits = |model: &[&str], content: Value, flags: &[&str]| {
        fs::write(&messages, json!([content]).to_string()).unwrap();
        let arguments = ["--messages", &messages, "--budget", "70", "--out", &out, "--json"];
        let told = common::json_of(&mut rullama(&[&["logits"], model, &arguments[..], flags].concat()), "");
        let (shape, values) = npy(&out);
        assert_eq!(shape, format!("({}, {})", told["rows"], told["vocabulary"]));
        (told, values)
    };
    let path = |file: &str| format!("demo/{file}");
    let data_url = |file: &str| format!("data:image/png;base64,{}", base64(&data(&path(file))));
    let bare = |file: &str| base64(&data(&path(file)));
    for (file, field, given) in [
        ("demo-image-1.png", "images", path("demo-image-1.png")),
        ("demo-image-1.png", "images", data_url("demo-image-1.png")),
        ("demo-audio-5.wav", "audio", bare("demo-audio-5.wav")),
    ] {
        let question = question(file);
        let message = json!({ "role": "user", "content": question["prompt"], field: [given] });
        let (told, values) = logits(&["demo"], message, &[]);
        assert_eq!(told["ids"], question["ids"], "{file}");
        assert_eq!(told["rows"], 1);
        let best = (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap();
        assert_eq!(best, question["greedy"][0].as_u64().unwrap() as usize, "{file}");
    }
    let message = json!({ "role": "user", "content": "What is this?", "images": [path("demo-image-1.png")] });
    let (all, _) = logits(&["demo"], message.clone(), &["--all"]);
    assert_eq!(all["rows"].as_u64().unwrap() as usize, all["ids"].as_array().unwrap().len());
    // Only when asked to, the model thinks.
    let thinking = logits(&["demo"], message, &["--think", "on"]).0;
    assert_ne!(thinking["ids"], all["ids"]);

    let prompts: Value = serde_json::from_slice(&data("media/tiny-12b.json")).unwrap();
    for (prompt, field, file) in [
        (&prompts["prompts"][0], "images", "media/tiny-12b-480x336.png"),
        (&prompts["prompts"][1], "audio", "media/tiny-12b-rise.wav"),
    ] {
        let ids: Vec<u64> = prompt["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
        let run = &prompt["runs"][0];
        let text = ids[(run["start"].as_u64().unwrap() + run["length"].as_u64().unwrap()) as usize + 1..]
            .split(|&id| id == 16)
            .next()
            .unwrap();
        let text: Vec<String> = text.iter().map(u64::to_string).collect();
        let content = common::success(&mut rullama(&["detokenize", TEXT_12B, "--ids", &text.join(",")]), "");
        let message = json!({ "role": "user", "content": content, field: [file] });
        let (told, values) = logits(&[TEXT_12B, "--projector", TOWERS_12B], message, &[]);
        assert_eq!(told["ids"], prompt["ids"], "{file}");
        let name = format!("{}.logits_last8", prompt["name"].as_str().unwrap());
        let expected = tensor("media/tiny-12b.safetensors", &name);
        assert!(cosine(&values, &expected[expected.len() - values.len()..]) > 0.999, "{file}");
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |group: &[u8]| {
        let bits =
            group.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        let letter = |at: usize| match at <= group.len() {
            true => char::from(LETTERS[(bits >> (18 - 6 * at) & 63) as usize]),
            false => '=',
        };
        (0..4).map(letter).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

#[test]
fn questions_about_files_are_answered() {
    for (file, option) in [("demo-image-1.png", "--image"), ("demo-audio-5.wav", "--audio")] {
        let (question, path) = (question(file), format!("demo/{file}"));
        let (prompt, answer) = (question["prompt"].as_str().unwrap(), question["text"].as_str().unwrap());
        let answer = answer.strip_suffix("<turn|>").unwrap();
        let attach = [option, &path, "--budget", "70"];
        for command in ["generate", "run"] {
            let arguments = [&[command, "demo", prompt], &attach[..], &SETTINGS].concat();
            let said = common::success(&mut rullama(&arguments), "");
            assert_eq!(said, format!("{answer}\n"), "{command} {file}");
        }
        // A path in a question is a file, as in Ollama.
        let asked = format!("{prompt} ./{path}");
        let arguments = [&["run", "demo", &asked, "--budget", "70"], &SETTINGS[..]].concat();
        assert_eq!(common::success(&mut rullama(&arguments), ""), format!("{answer}\n"), "{asked}");
        let field = if option == "--image" { "images" } else { "audio" };
        let messages = json!({ "messages": [{ "role": "user", "content": prompt, field: [path] }] });
        let arguments = ["generate", "demo", "--messages", "-", "--json", "--budget", "70"];
        let told = common::json_of(&mut rullama(&[&arguments[..], &SETTINGS].concat()), messages.to_string());
        assert_eq!(told["ids"], question["greedy"], "{file}");
        assert_eq!(told["prompt_tokens"], question["ids"].as_array().unwrap().len(), "{file}");
    }
}

/// Attachments go with the next message, stay in the chat, and are gone when it starts over.
#[test]
fn a_chat_attaches_files() {
    let image = question("demo-image-1.png");
    let url = format!("data:;base64,{}", base64(&data("demo/demo-image-1.png")));
    let script = format!(
        "/help\n/image\n/image demo/missing.png\n/image https://example.org/cat.png\n/image {url}\n/clear\n/image demo/demo-audio-5.wav\n/image demo/demo-image-1.png\n{}\n\
         /set verbose on\nWhich colour is it?\n/clear\n'{DATA}/demo/demo-audio-5.wav'\n\
         Write down what you hear in this audio.\n/image demo/demo-image-1.png\n/clear\nWhat is 7 + 5?\n/bye\n",
        image["prompt"].as_str().unwrap()
    );
    let arguments = [&["run", "demo", "--budget", "70"], &SETTINGS[..]].concat();
    let said = common::success(&mut rullama(&arguments), &script);
    for expected in [
        "/image FILE          Attach an image",
        "/image takes the path of a file.\n",
        "error: `demo/missing.png` can't be read: ",
        "error: `https://example.org/cat.png` is on the web, and rullama downloads no attachments\n",
        &format!("Attached `{}…` to your next message: 384×384 pixels, 64 tokens.\n", &url[..40]),
        "hint: it is a sound: attach it as audio\n",
        "Attached `demo/demo-image-1.png` to your next message: 384×384 pixels, 64 tokens.\nThere are four.\n",
        "They are blue.\nprompt: 15 new tokens, ",
        "demo-audio-5.wav` to your next message: 1.0 s, 25 tokens.\nzero\n",
        "7 + 5 = 12.\n",
    ] {
        assert!(said.contains(expected), "`{expected}` is missing in:\n{said}");
    }
    // What was attached and not sent is forgotten.
    let last = said.split("7 + 5 = 12.\n").nth(1).unwrap();
    let read: usize = last.strip_prefix("prompt: ").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(read < 64, "{last}");
}

/// Of several files, those that can't be read are named, and the chat says which are attached.
#[test]
fn some_of_several_files_are_attached() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.png");
    fs::write(&broken, "no image").unwrap();
    let (good, broken) = (format!("{DATA}/demo/demo-image-1.png"), broken.to_str().unwrap());
    let arguments = [&["run", "demo", "--budget", "70"], &SETTINGS[..]].concat();
    let chat = |script: String| common::success(&mut rullama(&arguments), script);
    let attached = format!("Attached `{good}` to your next message: 384×384 pixels, 64 tokens.\n");
    let error = format!("error: `{broken}` can't be used: ");
    for order in [format!("'{good}' '{broken}'"), format!("'{broken}' '{good}'")] {
        let said = chat(format!("{order}\n/bye\n"));
        let (first, last) = said.split_at(said.len() - attached.len());
        assert!(first.starts_with(&error) && last == attached, "{order}: {said}");
        // With a text they are one message: it is not sent, and nothing of it is kept.
        let said = chat(format!("Compare {order}\n/set verbose on\nWhat is 7 + 5?\n/bye\n"));
        assert!(said.starts_with(&error) && !said.contains("Attached "), "{order}: {said}");
        assert!(said.contains("The message was not sent, and nothing was attached"), "{order}: {said}");
        let read = said.split("7 + 5 = 12.\nprompt: ").nth(1).unwrap().split(' ').next().unwrap();
        assert!(read.parse::<usize>().unwrap() < 64, "{order}: {said}");
    }
}

/// Without its image, the question would be another one.
#[cfg(target_os = "linux")]
#[test]
fn a_question_whose_image_is_not_encoded_is_not_asked() {
    use std::process::{Command, Stdio};
    let arguments =
        ["run", "demo", "How many?", "--image", "demo/demo-image-4.png", "--backend", "reference"];
    let mut command = rullama(&arguments);
    let mut asked =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = asked.id().to_string();
    // Encoding begins by catching Ctrl-C, which is signal 2.
    let catches = || {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        u64::from_str_radix(caught.trim(), 16).unwrap_or(0) >> 1 & 1 == 1
    };
    while asked.try_wait().unwrap().is_none() && !catches() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = asked.wait_with_output().unwrap();
    let said = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1), "{said:?}");
    assert_eq!(said, (String::new(), "error: stopped\n".to_owned()));
}

/// A model whose towers are another layer of the store, like gemma4:12b.
fn store(folder: &Path) {
    let blobs = folder.join("blobs");
    fs::create_dir_all(&blobs).unwrap();
    let blob = |kind: &str, content: &[u8]| common::blob(&blobs, kind, content);
    let manifest =
        |layers: Value| json!({ "schemaVersion": 2, "config": blob("config", b"{}"), "layers": layers });
    let names = folder.join("manifests/registry.ollama.ai/library/tiny");
    fs::create_dir_all(&names).unwrap();
    let (text, towers) = (blob("model", &data(TEXT_12B)), blob("projector", &data(TOWERS_12B)));
    fs::write(names.join("latest"), manifest(json!([text, towers])).to_string()).unwrap();
    let micro = blob("model", &data("gguf/micro-e2b-F16.gguf"));
    fs::write(names.join("other"), manifest(json!([micro, towers])).to_string()).unwrap();
    let broken = blob("projector", b"no towers");
    fs::write(names.join("broken"), manifest(json!([text, broken])).to_string()).unwrap();
}

#[test]
fn towers_of_the_store_are_used() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let out = folder.path().join("rows.npy");
    let out = out.to_str().unwrap();
    let stored = |arguments: &[&str]| {
        let mut command = rullama(arguments);
        command.env("OLLAMA_MODELS", folder.path());
        command
    };
    let encode = ["encode", "tiny", "--image", "media/tiny-12b-480x336.png", "--budget", "70", "--out", out];
    common::success(&mut stored(&encode), "");
    let expected = tensor("media/tiny-12b.safetensors", "image70.soft_rows0");
    assert!(cosine(&npy(out).1, &expected) > 0.999);
    let shown = common::success(&mut stored(&["show", "tiny"]), "");
    assert!(shown.contains("images  70, 140, 280 (default), 560, 1120 tokens\n"), "{shown}");
    assert!(shown.contains("audio   clips of 30 s, 25 tokens a second\n"), "{shown}");
    let media = json!({
        "images": { "budgets": [70, 140, 280, 560, 1120], "default_budget": 280 },
        "audio": { "clip_seconds": 30, "tokens_per_second": 25 },
    });
    for command in ["show", "inspect"] {
        assert_eq!(common::json_of(&mut stored(&[command, "tiny", "--json"]), "")["media"], media);
        assert_eq!(common::json_of(&mut stored(&[command, "demo", "--json"]), "")["media"], media);
        assert_eq!(common::json_of(&mut stored(&[command, TEXT_12B, "--json"]), "")["media"], json!({}));
    }
    // Towers that can't be used are no reason not to answer.
    for (name, why) in
        [("tiny:broken", ""), ("tiny:other", "belongs to another model (width 192; this one has 128)")]
    {
        let arguments = [&["generate", name, "Hello", "--max-tokens", "1"], &SETTINGS[..]].concat();
        let output = common::run(&mut stored(&arguments), "");
        let said = String::from_utf8(output.stderr).unwrap();
        let warning = format!("warning: the towers of `{name}` can't be used: ");
        assert!(output.status.success() && said.contains(&warning) && said.contains(why), "{said}");
    }
}

#[test]
fn encoding_is_measured() {
    let arguments =
        ["bench", "demo", "--image", "48×30", "--audio", "0.5", "--budget", "70", "--repeat", "2"];
    let arguments = [&arguments[..], &["--backend", "cpu"]].concat();
    let told = common::json_of(&mut rullama(&[&arguments[..], &["--json"]].concat()), "");
    let image = &told["image"];
    assert_eq!(
        (&image["width"], &image["height"], &image["budget"], &image["rows"]),
        (&json!(48), &json!(30), &json!(70), &json!(60))
    );
    assert_eq!((&told["audio"]["seconds"], &told["audio"]["rows"]), (&json!(0.5), &json!(13)));
    for one in [image, &told["audio"]] {
        assert_eq!(one["encode_ms_all"].as_array().unwrap().len(), 2);
        assert!(
            one["encode_ms"].as_f64().unwrap() > 0.0 && one["first_ms"].as_f64().unwrap() > 0.0,
            "{told}"
        );
    }
    assert_eq!((&told["results"], &told["backend"]), (&json!([]), &json!("cpu")));
    let said = common::success(&mut rullama(&arguments), "");
    assert!(said.contains("image of 48×30, at most 70 tokens  60 ") && !said.contains("DEPTH"), "{said}");
    let text =
        ["bench", "demo", "--audio", "0.1", "--prompt", "4", "--depth", "0", "--repeat", "1", "--json"];
    let told = common::json_of(&mut rullama(&[&text[..], &["--backend", "cpu"]].concat()), "");
    assert_eq!((&told["results"][0]["prompt_tokens"], &told["audio"]["rows"]), (&json!(4), &json!(3)));
}

#[test]
fn mistakes_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let out = at("out.npy");
    let picture = "media/tiny-12b-480x336.png";
    fs::write(at("text.png"), "no image").unwrap();
    fs::write(at("cut.png"), &data(picture)[..1000]).unwrap();
    fs::write(at("short.wav"), short_sound()).unwrap();
    fs::create_dir(at("folder.png")).unwrap();
    let messages = |attached: &str| {
        let path = at("messages.json");
        let message = json!({ "role": "user", "content": "What is this?", "images": [attached] });
        fs::write(&path, json!([message]).to_string()).unwrap();
        path
    };
    let refuse = |arguments: &[&str], status: i32, said: &str| {
        let failed = common::failure(&mut rullama(arguments));
        assert!(failed.0 == status && failed.1.starts_with("error: "), "{arguments:?}: {}", failed.1);
        assert!(failed.1.contains(said), "{arguments:?}: {}", failed.1);
    };
    let encode = |arguments: &[&str], status: i32, said: &str| {
        refuse(&[&["encode"], arguments, &["--out", &out]].concat(), status, said);
    };
    encode(&["demo", "--image", "missing.png"], 1, "`missing.png` can't be read: ");
    encode(&["demo", "--image", &at("folder.png")], 1, "folder.png` can't be read: ");
    encode(&["demo", "--image", &at("text.png")], 1, "this is not an image that can be read (expected PNG");
    encode(&["demo", "--image", &at("cut.png")], 1, "cut.png` can't be used: the image can't be decoded: ");
    encode(&["demo", "--audio", picture], 1, "hint: it is an image");
    let web = "https://example.org/cat.png";
    encode(&["demo", "--image", web], 1, &format!("`{web}` is on the web, and rullama downloads no"));
    refuse(&["run", "demo", "What is this?", "--image", web], 1, "is on the web, and rullama downloads no");
    refuse(&["generate", "demo", "Hello", "--audio", web], 1, "is on the web, and rullama downloads no");
    for (start, fault) in [("data:,", "can't be used: this is not an image"), ("", "can't be read: ")] {
        let long = format!("{start}{}", "letter-".repeat(1000));
        encode(&["demo", "--image", &long], 1, &format!("error: `{}…` {fault}", &long[..40]));
    }
    encode(&["demo", "--audio", &at("short.wav")], 1, "short.wav` can't be used: the sound is too short");
    encode(&["demo", "--image", picture, "--budget", "100"], 2, "expected 70, 140, 280, 560 or 1120");
    encode(&["demo", "--image", picture, "--budget", "-70"], 2, "expected 70, 140, 280, 560 or 1120");
    encode(&["demo"], 2, "--image");
    encode(&["demo", "--image", picture, "--audio", picture], 2, "cannot be used with");
    encode(&[TEXT_12B, "--image", picture], 1, "this model reads no images");
    encode(&[TEXT_12B, "--audio", "media/tiny-12b-rise.wav"], 1, "this model reads no audio");
    encode(&[TOWERS_12B, "--image", picture], 1, "has vision and audio towers, but no text model");
    encode(
        &[TEXT_12B, "--image", picture, "--projector", "gguf/micro-e2b-F16.gguf"],
        1,
        "is not a projector file",
    );
    encode(
        &["demo", "--image", picture, "--projector", TOWERS_12B],
        1,
        "has vision and audio towers already",
    );
    encode(&[TEXT_12B, "--image", picture, "--projector", "missing.gguf"], 1, "missing.gguf");
    let other = format!("`{TOWERS_12B}` belongs to another model (width 192; this one has 128)");
    encode(&["gguf/micro-e2b-F16.gguf", "--image", picture, "--projector", TOWERS_12B], 1, &other);
    assert!(!Path::new(&out).exists(), "a failed command writes nothing");

    let text = [&["generate", TEXT_12B], &SETTINGS[..]].concat();
    refuse(
        &[&text[..], &["Hello", "--image", picture]].concat(),
        1,
        "hint: give the file of the model's towers",
    );
    refuse(&[&text[..], &["--ids", "2", "--image", picture]].concat(), 2, "go with a prompt");
    refuse(&[&text[..], &["--raw", "-p", "a", "--audio", picture]].concat(), 2, "go with a prompt");
    let small = ["generate", "demo", "Hello", "--image", picture, "--budget", "70", "--context", "60"];
    refuse(&[&small[..], &SETTINGS].concat(), 1, "fit in a context of 60");
    for (attached, said) in [
        ("https://example.org/cat.png", "messages[0].images[0] is on the web, and rullama downloads no"),
        ("data:image/png;base64,***", "messages[0].images[0] is not a valid data: URL"),
        ("data:image/png;base64,AAAA", "messages[0].images[0] can't be used: this is not an image"),
        ("", "messages[0].images[0] is empty"),
        ("missing.png", "`missing.png` can't be read"),
    ] {
        let path = messages(attached);
        refuse(&[&["generate", "demo", "--messages", &path], &SETTINGS[..]].concat(), 1, said);
        refuse(&["logits", "demo", "--messages", &path, "--out", &out], 1, said);
    }
    refuse(&["logits", "demo", "--out", &out], 2, "--ids");
    for size in ["48", "0x48", "48x", "-48x48", "100000x100000"] {
        refuse(&["bench", "demo", &format!("--image={size}")], 2, "expected WIDTHxHEIGHT, such as 640x480");
    }
    refuse(&["bench", "demo", "--audio", "0"], 2, "expected a number from 0.02 to 1800");
    refuse(&["bench", TEXT_12B, "--audio", "1", "--backend", "cpu"], 1, "this model reads no audio");
    refuse(&["bench", "demo", "--image", "48x48", "--parallel", "2"], 2, "none are generated unless you say");
    refuse(&["bench", "demo", "--generate", "0", "--parallel", "2"], 2, "and --generate is 0");
    refuse(&["bench", "demo", "--image", "48x48", "--profile"], 2, "the text model, which is not measured");
}

/// Five milliseconds.
fn short_sound() -> Vec<u8> {
    let mut bytes = b"RIFF\xc4\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00".to_vec();
    bytes.extend([16_000u32.to_le_bytes(), 32_000u32.to_le_bytes()].concat());
    bytes.extend(b"\x02\x00\x10\x00data\xa0\x00\x00\x00");
    bytes.resize(bytes.len() + 160, 1);
    bytes
}

/// Runs the examples of the guide, greedily and on the CPU, and compares what they print.
#[cfg(unix)]
#[test]
fn the_guide_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = fs::read_to_string(root.join("docs/guide/media.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut examples = 0;
    let blocks = guide.split("```console\n$ ").skip(1).map(|block| block.split("```").next().unwrap());
    for example in blocks.flat_map(|block| block.split("\n$ ")) {
        let (line, printed) = example.split_once('\n').unwrap();
        // What is typed in a chat comes from standard input, where there is no prompt.
        let typed: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix(">>> ")).collect();
        let expected: Vec<&str> = printed.lines().filter(|line| !line.starts_with(">>> ")).collect();
        let arguments = if line.contains(" encode ") { "--backend cpu" } else { &SETTINGS.join(" ") };
        let line = line.replace("rows.npy", "FOLDER/rows.npy").replace("rullama ", "\"$RULLAMA\" ");
        let line = line.replace("FOLDER", folder.path().to_str().unwrap());
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("{line} {arguments}")]).current_dir(&root);
        shell.env("RULLAMA", env!("CARGO_BIN_EXE_rullama")).env("OLLAMA_MODELS", "/nonexistent");
        let said = common::success(&mut shell, typed.join("\n"));
        let said = said.replace(&format!("{}/", folder.path().display()), "");
        assert_eq!(said.trim_end().lines().collect::<Vec<_>>(), expected, "{line}");
        examples += 1;
    }
    assert_eq!(examples, 6);
}
