//! Pictures, sound and prompts of the test data, with what other implementations make of them. The tests of every executor
//! include this file.

#![allow(dead_code, clippy::allow_attributes, reason = "no test needs all of it")]

use std::{collections::HashMap, rc::Rc};

use rullama_gemma::{AudioConfig, Gelu, Patches, VisionConfig, audio, vision};
use rullama_gguf::{MemorySource, Model, Writer};
use rullama_graph::Graph;
use safetensors::SafeTensors;
use serde::Deserialize;

pub(crate) fn testdata(path: &str) -> String {
    format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> Vec<u8> {
    std::fs::read(testdata(path)).unwrap()
}

fn model(name: &str, bytes: Vec<u8>) -> Model {
    pollster::block_on(Model::open(Box::new(MemorySource::named(name, bytes)))).unwrap()
}

/// A model with its projector file beside it.
pub(crate) fn joined(text: &str, projector: &str) -> Rc<Model> {
    let [text, projector] = [text, projector].map(|name| model(name, read(&format!("gguf/{name}.gguf"))));
    Rc::new(text.join(projector).unwrap())
}

/// The demo model, which is one file.
pub(crate) fn demo() -> Rc<Model> {
    Rc::new(model("demo", read("../models/demo.gguf")))
}

/// The towers of a model of one file as llama.cpp's converter would write them, in a file beside a model without them.
pub(crate) fn split(single: &Model) -> Rc<Model> {
    let is_tower = |name: &str| ["v.", "a.", "mm."].iter().any(|beginning| name.starts_with(beginning));
    let text =
        rewritten(single, &|key| Some(key.to_owned()), &|name| (!is_tower(name)).then(|| name.to_owned()));
    let key = |key: &str| {
        let own = key.strip_prefix("gemma4.")?;
        (own.starts_with("vision.") || own.starts_with("audio.")).then(|| format!("clip.{own}"))
    };
    let towers = rewritten(single, &key, &|name| is_tower(name).then(|| projector_name(name)));
    Rc::new(text.join(towers).unwrap())
}

/// What llama.cpp's converter calls a tensor that Ollama's calls `name`.
fn projector_name(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    match parts[..] {
        ["a", "pre_encode", "out", part] => format!("a.input_projection.{part}"),
        ["mm", "a", "fc", part] => format!("a.pre_encode.out.{part}"),
        ["a", "blk", block, linear, part] => {
            let linear = match linear {
                "ln1" => "attn_pre_norm",
                "ln2" => "attn_post_norm",
                "layer_pre_norm" => "ln2",
                "linear_pos" => "attn_k_rel",
                other => other,
            };
            format!("a.blk.{block}.{linear}.{part}")
        }
        _ => name.to_owned(),
    }
}

/// A model's file with some of its entries and tensors, under other names. The architecture is that of the entries, or that
/// of a projector.
fn rewritten(
    from: &Model,
    key: &dyn Fn(&str) -> Option<String>,
    tensor: &dyn Fn(&str) -> Option<String>,
) -> Model {
    let mut writer = Writer::new();
    for (name, value) in from.header().entries() {
        if let Some(name) = key(name) {
            writer.set(&name, value).unwrap();
        }
    }
    // A second time where the entries have said so.
    let _ = writer.set("general.architecture", "clip");
    let mut data = Vec::new();
    for found in from.tensors() {
        if let Some(name) = tensor(found.name) {
            writer.add_tensor(&name, found.shape.dims(), found.format).unwrap();
            data.push(pollster::block_on(from.read(found.range())).unwrap());
        }
    }
    let mut body = writer.begin(Vec::new()).unwrap();
    data.iter().for_each(|bytes| body.write_tensor(bytes).unwrap());
    model("rewritten", body.finish().unwrap())
}

/// A graph with the inputs that it is to be given.
pub(crate) struct Encoding {
    pub(crate) graph: Graph,
    inputs: Vec<(&'static str, Vec<f32>)>,
}

impl Encoding {
    pub(crate) fn inputs(&self) -> Vec<(&'static str, &[f32])> {
        self.inputs.iter().map(|(name, values)| (*name, &values[..])).collect()
    }
}

/// How a model sees a picture.
pub(crate) fn picture(model: &Model, path: &str, gelu: Gelu) -> Encoding {
    let mut config = pollster::block_on(VisionConfig::read(model)).unwrap().unwrap();
    let is_signed = config.tower.is_some();
    if let Some(tower) = &mut config.tower {
        tower.gelu = gelu;
    }
    let (columns, rows, values) = patches(path, config.patch_side() as usize, is_signed);
    let patches = Patches { columns, rows, values: &values };
    let inputs = pollster::block_on(config.inputs(model, patches)).unwrap();
    let inputs = inputs.by_name().into_iter().map(|(name, values)| (name, values.to_vec())).collect();
    Encoding { graph: vision(model, &config).unwrap(), inputs }
}

/// How a model hears frames.
pub(crate) fn sound(model: &Model, frames: Vec<f32>) -> Encoding {
    let config = pollster::block_on(AudioConfig::read(model)).unwrap().unwrap();
    let inputs = config.inputs(frames);
    let inputs = inputs.by_name().into_iter().map(|(name, values)| (name, values.to_vec())).collect();
    Encoding { graph: audio(model, &config).unwrap(), inputs }
}

/// The patches of a picture whose sides need no scaling: columns, rows, and their values, colour by colour.
fn patches(path: &str, side: usize, is_signed: bool) -> (u32, u32, Vec<f32>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(read(path))).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
    let (width, height) = (info.width as usize, info.height as usize);
    let mut values = Vec::new();
    for (row, column) in (0..height / side).flat_map(|row| (0..width / side).map(move |column| (row, column)))
    {
        for (channel, y, x) in
            (0..3).flat_map(|channel| (0..side * side).map(move |at| (channel, at / side, at % side)))
        {
            let at = ((row * side + y) * width + column * side + x) * 3 + channel;
            let value = f32::from(pixels[at]) / 255.0;
            values.push(if is_signed { 2.0 * value - 1.0 } else { value });
        }
    }
    ((width / side) as u32, (height / side) as u32, values)
}

/// The samples of a file of 16 bits, in frames of `frame`, of which the last is filled up with silence.
pub(crate) fn samples(path: &str, frame: usize) -> Vec<f32> {
    let bytes = read(path);
    let at = bytes.windows(4).position(|bytes| bytes == b"data").unwrap() + 8;
    let samples = bytes[at..].chunks_exact(2);
    let mut samples: Vec<f32> =
        samples.map(|bytes| f32::from(i16::from_le_bytes([bytes[0], bytes[1]])) / 32_768.0).collect();
    samples.resize(samples.len().next_multiple_of(frame), 0.0);
    samples
}

/// Values of other implementations by name.
pub(crate) fn golden(name: &str) -> HashMap<String, Vec<f32>> {
    let bytes = read(&format!("{name}.safetensors"));
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let values = |data: &[u8]| {
        data.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
    };
    file.iter().map(|(name, tensor)| (name.to_owned(), values(tensor.data()))).collect()
}

/// A prompt with a medium, and what transformers makes of it.
#[derive(Deserialize)]
pub(crate) struct Prompt {
    pub(crate) name: String,
    pub(crate) ids: Vec<u32>,
    pub(crate) runs: Vec<Run>,
    pub(crate) argmax: Vec<u32>,
    pub(crate) margins: Vec<f32>,
    pub(crate) hf_greedy: Vec<u32>,
    pub(crate) hf_greedy_margins: Vec<f32>,
}

/// Where soft rows stand in a prompt.
#[derive(Deserialize)]
pub(crate) struct Run {
    pub(crate) start: usize,
    pub(crate) length: usize,
}

#[derive(Deserialize)]
struct Prompts {
    prompts: Vec<Prompt>,
}

pub(crate) fn prompts(model: &str) -> Vec<Prompt> {
    serde_json::from_slice::<Prompts>(&read(&format!("media/{model}.json"))).unwrap().prompts
}

/// A question about a picture or a recording, and what transformers answers.
#[derive(Deserialize)]
pub(crate) struct Question {
    pub(crate) file: String,
    /// Soft rows, which stand where the same id is repeated as often.
    pub(crate) rows: usize,
    pub(crate) ids: Vec<u32>,
    pub(crate) greedy: Vec<u32>,
}

impl Question {
    /// Where its soft rows stand.
    pub(crate) fn span(&self) -> std::ops::Range<usize> {
        let mut windows = self.ids.windows(self.rows);
        let start = windows.position(|ids| ids.iter().all(|id| *id == ids[0])).unwrap();
        start..start + self.rows
    }
}

#[derive(Deserialize)]
struct Questions {
    media: Vec<Question>,
}

/// Questions to the demo model.
pub(crate) fn questions() -> Vec<Question> {
    serde_json::from_slice::<Questions>(&read("demo/demo.media.json")).unwrap().media
}

/// The largest difference of two values, of which there are as many.
pub(crate) fn apart(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}
