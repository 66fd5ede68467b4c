//! Files that were written, opened again.

use std::io;

use pollster::block_on;
use rullama_gguf::{ByteSource as _, Format, MemorySource, Model};
use rullama_synth::{Mix, Preset, SynthOptions, plan, tiny, write};

/// As small as it gets, so that tests are quick without optimisation.
const SMALL: SynthOptions = SynthOptions { mix: Mix::F32, seed: 1, vocabulary: Some(512), towers: false };

const TINY: [Preset; 5] =
    [Preset::TINY_E2B, Preset::TINY_E4B, Preset::TINY_12B, Preset::TINY_26B, Preset::TINY_31B];

fn open(preset: Preset, options: &SynthOptions) -> Model {
    let file = tiny(preset.name(), options).unwrap();
    block_on(Model::open(Box::new(MemorySource::new(file)))).unwrap()
}

fn values(model: &Model, name: &str) -> Vec<f32> {
    let tensor = model.tensor(name).unwrap();
    let bytes = block_on(model.read(tensor.range())).unwrap();
    let mut values = vec![0.0; tensor.shape.values() as usize];
    tensor.format.decode(&bytes, &mut values).unwrap();
    values
}

/// Mean and standard deviation.
fn moments(values: &[f32]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().copied().map(f64::from).sum::<f64>() / count;
    let variance = values.iter().map(|&value| (f64::from(value) - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// Everything is finite; matrices keep magnitudes, norms are around their mean but not constant.
fn check(model: &Model, what: &str) {
    for tensor in model.tensors() {
        let name = tensor.name;
        let values = values(model, name);
        assert!(values.iter().all(|value| value.is_finite()), "{name} of {what}");
        if name == "rope_freqs.weight" {
            let rotated = values.len() / 4;
            assert!(values[..rotated].iter().all(|&factor| factor == 1.0), "{what}");
            assert!(values[rotated..].iter().all(|&factor| factor == 1e30), "{what}");
            continue;
        }
        let (mean, deviation) = moments(&values);
        let is_matrix = tensor.shape.dims().len() == 2 && tensor.format != Format::F32;
        if is_matrix && !name.starts_with("per_layer_token_embd") {
            let expected = (tensor.shape.row_len() as f64).powf(-0.5);
            // Four bits cost about a tenth of the deviation in noise.
            assert!(
                (deviation / expected - 1.0).abs() < 0.05,
                "{name} of {what}: {deviation}, not {expected}"
            );
            assert!(mean.abs() < 0.1 * expected, "{name} of {what}: mean {mean}");
        } else if name.ends_with("norm.weight") && name.starts_with("blk.") {
            assert!(mean > 0.0 && deviation > 0.05 * mean && deviation < 0.3 * mean, "{name} of {what}");
        }
    }
}

#[test]
fn all_formats_decode_to_sane_weights() {
    for mix in Mix::ALL {
        check(&open(Preset::TINY_E2B, &SynthOptions { mix, ..SMALL }), mix.name());
    }
}

#[test]
fn all_tiny_presets_hold_sane_weights() {
    for preset in TINY {
        for mix in [Mix::F16, Mix::Q4_K_M] {
            check(&open(preset, &SynthOptions { mix, ..SMALL }), preset.name());
        }
    }
}

#[test]
fn files_hold_what_was_planned() {
    for preset in TINY {
        let options = SynthOptions { towers: true, mix: Mix::Q8_0, ..SMALL };
        let planned = plan(preset, &options).unwrap();
        let model = open(preset, &options);
        assert_eq!(model.tensors().count(), planned.tensors().len());
        for (found, planned) in model.tensors().zip(planned.tensors()) {
            assert_eq!(found.name, planned.name());
            assert_eq!(found.shape.dims(), planned.dims());
            assert_eq!(found.format, planned.format());
            assert_eq!(found.bytes, planned.bytes());
        }
    }
}

#[test]
fn metadata_describes_the_layers() {
    let model = open(Preset::TINY_E2B, &SMALL);
    let keys = model.metadata().section("gemma4");
    assert_eq!(model.metadata().str("general.architecture").unwrap(), "gemma4");
    assert_eq!(keys.u32("attention.shared_kv_layers").unwrap(), 5);
    assert_eq!(keys.u32("attention.head_count_kv").unwrap(), 1);
    assert_eq!(keys.per_layer_u32("feed_forward_length", 10).unwrap(), [[512; 5], [1024; 5]].concat(),);
    let period = [true, true, true, true, false];
    assert_eq!(keys.per_layer_bool("attention.sliding_window_pattern", 10).unwrap(), [period; 2].concat());
    assert!(!keys.contains("vision.block_count"));

    let model = open(Preset::TINY_26B, &SynthOptions { towers: true, ..SMALL });
    let keys = model.metadata().section("gemma4");
    assert_eq!(keys.u32("expert_used_count").unwrap(), 2);
    assert_eq!(keys.per_layer_u32("attention.head_count_kv", 12).unwrap()[4..6], [4, 2]);
    assert_eq!(keys.u32("vision.block_count").unwrap(), 2);
    assert!(!keys.contains("audio.block_count"));
}

#[test]
fn bytes_do_not_depend_on_the_number_of_threads() {
    let options = SynthOptions { mix: Mix::Q8_0, ..SMALL };
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| tiny("tiny-26b-a4b", &options)).unwrap()
    };
    let alone = with(1);
    assert!(alone == with(3), "one thread and three");
    assert!(alone == tiny("tiny-26b-a4b", &options).unwrap(), "one thread and as many as there are");
}

#[test]
fn seeds_and_names_tell_weights_apart() {
    let first = open(Preset::TINY_12B, &SMALL);
    let other_seed = open(Preset::TINY_12B, &SynthOptions { seed: 2, ..SMALL });
    let with_towers = open(Preset::TINY_12B, &SynthOptions { towers: true, ..SMALL });
    let query = "blk.0.attn_q.weight";
    assert_ne!(values(&first, query), values(&other_seed, query));
    assert_ne!(values(&first, query), values(&first, "blk.1.attn_q.weight"));
    // Towers change nothing else.
    assert_eq!(values(&first, query), values(&with_towers, query));
}

#[test]
fn progress_counts_up_to_the_end() {
    let expected = plan(Preset::TINY_12B, &SMALL).unwrap().data_bytes();
    let mut reports = Vec::new();
    write(Preset::TINY_12B, &SMALL, io::sink(), |done, total| reports.push((done, total))).unwrap();
    assert!(reports.is_sorted());
    assert_eq!(reports.first(), Some(&(0, expected)));
    assert_eq!(reports.last(), Some(&(expected, expected)));
}

/// Takes a number of bytes and then no more, as a full disk does.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error() {
    for room in [0, 100_000, 5_000_000] {
        let error = write(Preset::TINY_12B, &SMALL, Full(room), |_, _| ()).unwrap_err();
        assert_eq!(error.code(), "write.io", "{room}");
    }
}

#[test]
fn a_blank_file_is_the_written_one_with_zeros_for_weights() {
    let options = SynthOptions { mix: Mix::Q4_K_M, ..SMALL };
    let file = tiny("tiny-e2b", &options).unwrap();
    let blank = plan(Preset::TINY_E2B, &options).unwrap().blank().unwrap();
    assert_eq!(blank.len(), file.len() as u64);
    let weights = file.len() - plan(Preset::TINY_E2B, &options).unwrap().data_bytes() as usize;
    let bytes = block_on(blank.read(0..blank.len())).unwrap();
    let first = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    assert!(first <= weights, "the header ends at {first}, weights begin before {weights}");
    assert_eq!(bytes[..first], file[..first]);
    // Reads across the end of the header, and beyond that of the file.
    let around = first as u64 - 3..first as u64 + 5;
    assert_eq!(
        block_on(blank.read(around.clone())).unwrap(),
        bytes[around.start as usize..around.end as usize]
    );
    assert!(block_on(blank.read(0..blank.len() + 1)).is_err());
}
