//! How fast the tokenizer loads and encodes, beside the `tokenizers` crate with the same vocabulary.
//!
//! `cargo bench -p rullama-tokenizer` ends with a table: megabytes a second on prose for both, and for texts
//! made to be hard the ratio to prose. The first ones, which anybody might type, must not fall below a third.
//! In the second part nothing ever repeats, so these show what merging costs when no cache helps.

#![expect(clippy::print_stdout, reason = "a benchmark's results are its output")]

mod inputs;

use std::{
    fs,
    hint::black_box,
    time::{Duration, Instant},
};

use criterion::{Criterion, Throughput};
use rullama_gguf::{Header, MemorySource, Strings};
use rullama_tokenizer::{EncodeOptions, Tokenizer};
use serde_json::json;

fn main() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/tokenizer/gemma4-vocab.gguf");
    let file = fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let read_header = || pollster::block_on(Header::read(&MemorySource::new(file.clone()))).expect(path);
    let header = read_header();
    let load = || Tokenizer::from_gguf(&header).expect(path);
    let ours = load();
    let theirs = hugging_face(&header);

    let prose = inputs::prose(&ours);
    let encode = |text: &str| ours.encode(text, EncodeOptions::PART);
    let encode_theirs = |text: &str| theirs.encode_fast(text, false).expect("prose can be encoded");
    let ids = encode(&prose);
    assert_eq!(ids, encode_theirs(&prose).get_ids(), "both encode prose alike");

    let mut criterion = Criterion::default()
        .configure_from_args()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    let mut group = criterion.benchmark_group("load");
    group.bench_function("header", |b| b.iter(read_header));
    group.bench_function("tokenizer", |b| b.iter(load));
    group.finish();
    let mut group = criterion.benchmark_group("prose");
    group.throughput(Throughput::Bytes(prose.len() as u64));
    group.bench_function("rullama", |b| b.iter(|| encode(black_box(&prose))));
    group.bench_function("tokenizers", |b| b.iter(|| encode_theirs(black_box(&prose))));
    group.finish();

    println!("\n{} tokens, {:.1} MiB of memory", ours.len(), ours.memory() as f64 / (1 << 20) as f64);
    println!(
        "loading      {:7.1} ms, after {:.1} ms for the header",
        millis(5, load),
        millis(5, read_header)
    );
    let speed = |text: &str| text.len() as f64 / 1e3 / millis(20, || encode(text));
    let prose_speed = speed(&prose);
    let their_speed = prose.len() as f64 / 1e3 / millis(3, || encode_theirs(&prose));
    println!("prose        {prose_speed:7.1} MB/s  ({} ids)", ids.len());
    println!(
        "tokenizers   {their_speed:7.1} MB/s  rullama is {:.1} times as fast",
        prose_speed / their_speed
    );
    let sentence = &prose[..200];
    let sentence_speed = sentence.len() as f64 / 1e3 / millis(2000, || encode(sentence));
    println!("200 bytes    {sentence_speed:7.1} MB/s");
    for (title, texts) in
        [("1 MiB of", inputs::adversarial()), ("1 MiB without repetition", inputs::unrepeated(&ours))]
    {
        println!("\n{title:28} {:>9} {:>8}", "MB/s", "of prose");
        for (name, text) in texts {
            let speed = speed(&text);
            println!("{name:28} {speed:9.1} {:8.2}", speed / prose_speed);
        }
    }
}

/// The shortest of several runs: whatever else the machine does only adds to it.
fn millis<T>(runs: usize, mut run: impl FnMut() -> T) -> f64 {
    let times = (0..runs).map(|_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    });
    times.min().unwrap_or_default().as_secs_f64() * 1e3
}

/// The `tokenizers` crate with the vocabulary of `header`, set up as Gemma 4's own `tokenizer.json`.
fn hugging_face(header: &Header) -> tokenizers::Tokenizer {
    let keys = header.metadata().section("tokenizer.ggml");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("token texts are UTF-8");
    let strings = |key: &str| -> Strings<'_> { keys.strings(key).expect("the vocabulary is complete") };
    let types = keys.i32s("token_type").expect("the vocabulary is complete");
    let vocab: serde_json::Map<_, _> =
        strings("tokens").iter().zip(0..).map(|(token, id)| (text(token), json!(id))).collect();
    let merges: Vec<[String; 2]> = strings("merges")
        .iter()
        .map(|merge| {
            let space = 1 + merge[1..].iter().position(|&byte| byte == b' ').expect("merges have two parts");
            [text(&merge[..space]), text(&merge[space + 1..])]
        })
        .collect();
    let added: Vec<_> = strings("tokens")
        .iter()
        .enumerate()
        .filter(|&(id, _)| matches!(types[id], 3 | 4))
        .map(|(id, token)| {
            json!({
                "id": id, "content": text(token), "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true,
            })
        })
        .collect();
    let description = json!({
        "version": "1.0",
        "added_tokens": added,
        "normalizer": { "type": "Replace", "pattern": { "String": " " }, "content": "\u{2581}" },
        "pre_tokenizer": {
            "type": "Split", "pattern": { "String": " " }, "behavior": "MergedWithPrevious", "invert": false,
        },
        "model": {
            "type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
            "vocab": vocab, "merges": merges,
        },
    });
    tokenizers::Tokenizer::from_bytes(description.to_string()).expect("the description is complete")
}
