//! Which towers are accepted, how they are described, and what is said of those that are not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use rullama_gemma::{AudioConfig, Medium, Patches, TowerError, VisionConfig, audio, vision};
use rullama_gguf::{Format, MemorySource, Model, Writer};
use rullama_graph::{Graph, Op};

fn open(bytes: Vec<u8>) -> Model {
    pollster::block_on(Model::open(Box::new(MemorySource::new(bytes)))).unwrap()
}

fn file(path: &str) -> Model {
    open(std::fs::read(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap())
}

/// The model without towers, as far as these look at the text model.
fn joined() -> Model {
    file("testdata/gguf/tiny-12b-Q8_0.gguf").join(file("testdata/gguf/tiny-12b-mmproj-f16.gguf")).unwrap()
}

fn see(model: &Model) -> Result<Graph, TowerError> {
    let config = pollster::block_on(VisionConfig::read(model))?.unwrap();
    Ok(vision(model, &config)?)
}

fn hear(model: &Model) -> Result<Graph, TowerError> {
    let config = pollster::block_on(AudioConfig::read(model))?.unwrap();
    Ok(audio(model, &config)?)
}

/// A file written again: entries set anew, and tensors changed to another name and shape with other bytes, or left out.
fn changed(
    model: &Model,
    set: impl Fn(&mut Writer),
    tensor: impl Fn(&str, &[u64], Vec<u8>) -> Vec<(String, Vec<u64>, Format, Vec<u8>)>,
) -> Model {
    let mut writer = Writer::new();
    set(&mut writer);
    for (key, value) in model.header().entries() {
        // What was set before stays.
        let _ = writer.set(key, value);
    }
    let mut data = Vec::new();
    for found in model.tensors() {
        let bytes = pollster::block_on(model.read(found.range())).unwrap();
        let same = bytes.clone();
        for (name, dims, format, bytes) in tensor(found.name, found.shape.dims(), bytes) {
            let format = if bytes == same { found.format } else { format };
            writer.add_tensor(&name, &dims, format).unwrap();
            data.push(bytes);
        }
    }
    let mut body = writer.begin(Vec::new()).unwrap();
    data.iter().for_each(|bytes| body.write_tensor(bytes).unwrap());
    open(body.finish().unwrap())
}

fn same(name: &str, dims: &[u64], bytes: Vec<u8>) -> Vec<(String, Vec<u64>, Format, Vec<u8>)> {
    vec![(name.to_owned(), dims.to_vec(), Format::F32, bytes)]
}

#[test]
fn configurations_are_read() {
    let model = file("models/demo.gguf");
    let seen = pollster::block_on(VisionConfig::read(&model)).unwrap().unwrap();
    assert_eq!((seen.text_width, seen.width, seen.positions), (256, 256, 160));
    assert_eq!((seen.patch_side(), seen.cell_side(), seen.patch_width()), (16, 3, 768));
    let tower = seen.tower.unwrap();
    assert_eq!((tower.blocks, tower.heads, tower.feed_forward_width), (3, 4, 512));
    let heard = pollster::block_on(AudioConfig::read(&model)).unwrap().unwrap();
    assert_eq!((heard.text_width, heard.width, heard.frame_width()), (256, 256, 128));
    assert_eq!([1, 4, 5, 99, 2999].map(|frames| heard.soft_rows(frames)), [1, 1, 2, 25, 750]);
    let tower = heard.tower.unwrap();
    assert_eq!((tower.blocks, tower.heads, tower.feed_forward_width), (2, 4, 1024));
    assert_eq!((tower.kernel, tower.channels, tower.output), (5, [128, 32], 256));

    let model = joined();
    let seen = pollster::block_on(VisionConfig::read(&model)).unwrap().unwrap();
    assert_eq!((seen.text_width, seen.width, seen.positions), (192, 192, 288));
    for medium in [Medium::Vision, Medium::Audio] {
        assert_eq!(medium.projected_width(&model), Some(192));
    }
    assert_eq!((seen.patch_side(), seen.cell_side(), seen.patch_width()), (48, 1, 6912));
    assert!(seen.tower.is_none());
    let heard = pollster::block_on(AudioConfig::read(&model)).unwrap().unwrap();
    assert_eq!((heard.frame_width(), heard.soft_rows(59), heard.tower), (640, 59, None));

    let text = file("testdata/gguf/tiny-e2b-Q4_K_M.gguf");
    assert_eq!(Medium::of(&text), []);
    assert_eq!(pollster::block_on(VisionConfig::read(&text)).unwrap(), None);
    assert_eq!(pollster::block_on(AudioConfig::read(&text)).unwrap(), None);
}

/// Queries, keys and values have the same bounds, so that their input is clamped once.
#[test]
fn siblings_share_their_clamped_input() {
    let graph = see(&file("models/demo.gguf")).unwrap();
    let clamps = graph.nodes().iter().filter(|node| matches!(node.op, Op::Clamp { .. })).count();
    // Of each block the inputs of queries, attention's result, gate, and the way back; and the outputs of all seven.
    assert_eq!(clamps, 3 * (4 + 7));
}

/// Early files of Ollama have the bounds of all linear layers in one tensor, with zeros where there are none.
#[test]
fn packed_bounds_are_those_beside_the_weights() {
    let model = file("models/demo.gguf");
    let linears = ["attn_q", "attn_k", "attn_v", "attn_out", "ffn_gate", "ffn_up", "ffn_down"];
    let bounds = ["input_min", "input_max", "output_min", "output_max"];
    let mut packed: Vec<u8> = Vec::new();
    for name in (0..3).flat_map(|block| linears.map(|linear| format!("v.blk.{block}.{linear}"))) {
        for bound in bounds {
            let tensor = model.tensor(&format!("{name}.{bound}")).unwrap();
            packed.extend(pollster::block_on(model.read(tensor.range())).unwrap());
        }
    }
    packed.extend([0; 16]);
    let early = |packed: Vec<u8>| {
        changed(
            &model,
            |_| {},
            |name, dims, bytes| match name {
                _ if name.starts_with("v.blk.") && bounds.iter().any(|bound| name.ends_with(bound)) => {
                    Vec::new()
                }
                "v.patch_embd.weight" => {
                    let count = packed.len() as u64 / 4;
                    let packed = ("v.clamp_data".to_owned(), vec![count], Format::F32, packed.clone());
                    same(name, dims, bytes).into_iter().chain([packed]).collect()
                }
                _ => same(name, dims, bytes),
            },
        )
    };
    assert_eq!(see(&early(packed.clone())).unwrap().to_string(), see(&model).unwrap().to_string());
    // The first layer without any: its input has others than its siblings' then.
    packed[..16].fill(0);
    let graph = see(&early(packed)).unwrap();
    let clamps = graph.nodes().iter().filter(|node| matches!(node.op, Op::Clamp { .. })).count();
    assert_eq!(clamps, 3 * (4 + 7) - 1);
}

#[test]
fn what_is_no_tower_of_gemma_4_is_refused() {
    let projector = file("testdata/gguf/tiny-12b-mmproj-f16.gguf");
    let with = |set: &dyn Fn(&mut Writer)| changed(&projector, set, same);
    let refused = |model: &Model| see(model).unwrap_err();

    let other = with(&|writer| writer.set("clip.vision.projector_type", "gemma3").unwrap());
    assert_eq!(
        refused(&other).to_string(),
        "the projector is of type `gemma3`, and rullama runs those of Gemma 4 only"
    );
    assert_eq!(refused(&other).code(), "model.unsupported");
    for (key, value, said) in [
        ("clip.vision.block_count", 2000u32, "`block_count` is 2000 (expected at most 1024 blocks)"),
        ("clip.vision.patch_size", 0, "`patch_size` is 0 (expected 1 to 256 pixels)"),
    ] {
        assert_eq!(refused(&with(&|writer| writer.set(key, value).unwrap())).to_string(), said);
    }
    let narrow = with(&|writer| writer.set("clip.vision.embedding_length", 96u32).unwrap());
    assert_eq!(
        refused(&narrow).to_string(),
        "tensor `v.position_embd.weight` has shape [192, 288, 2] (expected [96, 288, 2])"
    );

    let without = |left: &str| {
        changed(
            &projector,
            |_| {},
            |name, dims, bytes| {
                if name == left { Vec::new() } else { same(name, dims, bytes) }
            },
        )
    };
    for left in ["v.patch_norm.2.bias", "mm.input_projection.weight", "v.position_embd.weight"] {
        assert_eq!(refused(&without(left)).to_string(), format!("tensor `{left}` is missing"));
    }
    let more = changed(
        &projector,
        |_| {},
        |name, dims, bytes| {
            let mut all = same(name, dims, bytes);
            if name == "mm.a.input_projection.weight" {
                all.push(("mm.a.soft_emb_norm.weight".to_owned(), vec![1], Format::F32, vec![0; 4]));
            }
            all
        },
    );
    let error = hear(&more).unwrap_err();
    assert!(error.to_string().starts_with("tensor `mm.a.soft_emb_norm.weight` does not belong"), "{error}");
    // Only what belongs to the medium is looked at.
    see(&more).unwrap();
}

#[test]
fn bounds_that_no_number_lies_between_are_refused() {
    let model = file("models/demo.gguf");
    let wrong = changed(
        &model,
        |_| {},
        |name, dims, bytes| match name {
            "a.blk.1.ffn_up.output_max" => same(name, dims, f32::NAN.to_le_bytes().to_vec()),
            _ => same(name, dims, bytes),
        },
    );
    let error = hear(&wrong).unwrap_err();
    assert!(error.to_string().starts_with("the bounds of `a.blk.1.ffn_up` are"), "{error}");
    assert_eq!(error.code(), "model.invalid");
}

/// Numbers that no tower has are refused, or describe the tower all the same: nothing overflows or panics.
#[test]
fn awkward_numbers_are_refused() {
    let towers = changed(
        &file("models/demo.gguf"),
        |_| {},
        |name, dims, bytes| {
            if name.starts_with("blk.") || name.contains("token_embd") {
                return Vec::new();
            }
            same(name, dims, bytes)
        },
    );
    let keys: Vec<String> = towers.header().entries().map(|(key, _)| key.to_owned()).collect();
    let mut refused = 0;
    for key in keys.iter().filter(|key| key.starts_with("gemma4.vision.") || key.starts_with("gemma4.audio."))
    {
        for value in [0, 3, 65_536, u32::MAX] {
            let model = changed(&towers, |writer| writer.set(key, value).unwrap(), same);
            for error in [see(&model).err(), hear(&model).err()].into_iter().flatten() {
                let known = ["model.", "metadata."].iter().any(|kind| error.code().starts_with(kind));
                assert!(known, "{key} = {value}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 30, "only {refused} were refused");
    for name in ["v.clamp_data", "a.blk.0.attn_q.input_min"] {
        let long = changed(
            &towers,
            |_| {},
            |tensor, dims, bytes| {
                let mut all = same(tensor, dims, bytes);
                all.retain(|(tensor, ..)| tensor != name);
                if tensor == "mm.a.fc.bias" {
                    all.push((name.to_owned(), vec![5], Format::F32, vec![0; 20]));
                }
                all
            },
        );
        let error = [see(&long).err(), hear(&long).err()].into_iter().flatten().next().unwrap();
        assert!(error.to_string().starts_with(&format!("tensor `{name}` has shape [5]")), "{error}");
    }
}

/// Norms that are counted from zero are those that are counted from one.
#[test]
fn other_numbers_of_norms_are_known() {
    let projector = file("testdata/gguf/tiny-12b-mmproj-f16.gguf");
    let from_zero = changed(
        &projector,
        |_| {},
        |name, dims, bytes| {
            let number = (1..4).find(|number| name.starts_with(&format!("v.patch_norm.{number}.")));
            let name = number.map_or(name.to_owned(), |number| {
                name.replace(&format!("norm.{number}."), &format!("norm.{}.", number - 1))
            });
            same(&name, dims, bytes)
        },
    );
    assert_eq!(see(&from_zero).unwrap().nodes().len(), see(&projector).unwrap().nodes().len());
}

#[test]
fn pictures_that_do_not_fit_are_refused() {
    let model = file("models/demo.gguf");
    let config = pollster::block_on(VisionConfig::read(&model)).unwrap().unwrap();
    assert_eq!(config.soft_rows(159, 3).unwrap(), 53);
    for (columns, rows) in [(0, 3), (3, 4), (162, 3), (3, u32::MAX)] {
        let patches = Patches { columns, rows, values: &[] };
        let error = pollster::block_on(config.inputs(&model, patches)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "a picture of {columns} × {rows} patches can't be encoded (both must be multiples of 3, up to 160)"
            )
        );
        assert_eq!(error.code(), "input.picture");
    }
    let patches = Patches { columns: 3, rows: 3, values: &[0.0; 8] };
    let error = pollster::block_on(config.inputs(&model, patches)).unwrap_err();
    assert_eq!(error.to_string(), "a picture has 8 values (expected 768 for each of 9 patches)");
}

/// The patches of a cell are neighbours: pooling takes rows that follow each other.
#[test]
fn patches_come_cell_by_cell() {
    let model = file("models/demo.gguf");
    let config = pollster::block_on(VisionConfig::read(&model)).unwrap().unwrap();
    let values: Vec<f32> = (0..6 * 3).flat_map(|patch| [patch as f32; 768]).collect();
    let patches = Patches { columns: 6, rows: 3, values: &values };
    let inputs = pollster::block_on(config.inputs(&model, patches)).unwrap();
    let order: Vec<f32> = inputs.patches.chunks(768).map(|patch| patch[0]).collect();
    let expected = [0, 1, 2, 6, 7, 8, 12, 13, 14, 3, 4, 5, 9, 10, 11, 15, 16, 17].map(|patch| patch as f32);
    assert_eq!(order, expected);
    // The first patch is turned nowhere; the last is in column 5 and row 2, and the first pair of each half turns once.
    let turns: Vec<&[f32]> = inputs.turns.chunks(64).collect();
    assert_eq!((turns[0][0], turns[0][16], turns[0][32], turns[0][48]), (1.0, 0.0, 1.0, 0.0));
    let last = [turns[17][0], turns[17][16], turns[17][32], turns[17][48]];
    assert_eq!(last, [5f64.cos(), 5f64.sin(), 2f64.cos(), 2f64.sin()].map(|value| value as f32));
}
