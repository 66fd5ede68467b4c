//! Log-mel frames, raw frames and clips.

use std::f32::consts::TAU;

use rullama_media::{Clip, Frames, LogMel, MAX_CLIP, MAX_SECONDS, MelFloor, SAMPLE_RATE, Samples};

use crate::common::{distance, integers, noise, read, tensor, wav};

/// The first clip of a sound.
fn first(sound: &Samples) -> Clip<'_> {
    sound.clips().next().expect("a clip")
}

fn mel(samples: Vec<f32>) -> Frames {
    LogMel::new().frames(first(&Samples::new(samples).expect("a sound")))
}

#[test]
fn mel_frames_of_speech_are_those_of_hugging_face() {
    let file = read("towers.safetensors");
    let (shape, expected) = tensor(&file, "tiny-e2b.mel");
    assert_eq!(shape, [235, 128]);
    let sound = wav("tiny-e2b.wav");
    let frames = LogMel::new().frames(first(&sound));
    // Hugging Face fills the waveform up, and then masks the frame that this adds.
    let valid = integers(&file, "tiny-e2b.mel_mask").iter().filter(|&&valid| valid != 0).count();
    assert_eq!((frames.rows() as usize, frames.width()), (valid, 128));
    let difference = distance(frames.values(), &expected[..valid * 128]);
    assert!(difference <= TOLERANCE, "{difference}");
    assert_eq!(LogMel::soft_tokens(valid), 59);
}

/// Hugging Face computes the transform in f32, which shows where a band is quiet beside loud ones.
const TOLERANCE: f32 = 1e-3;

#[test]
fn mel_frames_of_signals_are_those_of_hugging_face() {
    let file = read("mel.safetensors");
    let signals: [(&str, Vec<f32>); 6] = [
        ("noise", noise(8000).iter().map(|&byte| f32::from(byte) / 128.0 - 1.0).collect()),
        ("clipped", (0..6000).map(|at| if at / 40 % 2 == 1 { 1.0 } else { -1.0 }).collect()),
        (
            "tone",
            (0..4000).map(|at| (0.5 * (f64::from(at) * 0.055 * std::f64::consts::PI).sin()) as f32).collect(),
        ),
        ("silence", vec![0.0; 1600]),
        ("frame", vec![0.25; 161]),
        ("two", vec![0.25; 321]),
    ];
    for (name, samples) in signals {
        let (shape, expected) = tensor(&file, name);
        let frames = mel(samples);
        assert_eq!([frames.rows() as usize, 128], *shape, "{name}");
        let difference = distance(frames.values(), &expected);
        assert!(difference <= TOLERANCE, "{name}: {difference}");
    }
}

/// Values of the specification, which came from Hugging Face's extractor.
#[test]
fn a_tone_has_the_known_frames() {
    let tone = (0..16_000).map(|at| (0.5 * (f64::from(at) * 0.055 * std::f64::consts::PI).sin()) as f32);
    let frames = mel(tone.collect());
    assert_eq!(frames.rows(), 99);
    let bands = [0, 10, 20, 24, 25, 26, 27, 28, 30, 64, 127];
    let known = [
        (
            0,
            [
                -6.90776, 0.04963, 1.60782, 2.83757, 2.63492, 2.32149, 2.21784, 2.11421, 1.08699, -1.24126,
                -2.15303,
            ],
        ),
        (
            1,
            [
                -6.90776, -3.91425, -0.33679, 3.52731, 3.19789, 2.60356, 2.13980, 0.34974, -1.35002,
                -6.39755, -6.90178,
            ],
        ),
        (
            50,
            [
                -6.90776, -3.93387, -0.33793, 3.52727, 3.19791, 2.60359, 2.13984, 0.34899, -1.34832,
                -6.45938, -6.90165,
            ],
        ),
    ];
    for (row, expected) in known {
        let found = bands.map(|band| frames.values()[row * 128 + band]);
        let difference = distance(&found, &expected);
        assert!(difference <= 1e-4, "frame {row}: {difference}");
    }
}

#[test]
fn lengths_give_the_known_counts() {
    let known = [(160, 0, 0), (161, 1, 1), (320, 1, 1), (321, 2, 1), (8000, 49, 13), (12_345, 77, 20)];
    for (samples, frames, tokens) in known.into_iter().chain([(16_000, 99, 25), (480_000, 2999, 750)]) {
        assert_eq!(LogMel::frame_count(samples), frames, "{samples} samples");
        assert_eq!(LogMel::soft_tokens(frames), tokens, "{samples} samples");
    }
    assert_eq!(mel(vec![0.1; 160]).rows(), 0);
    assert_eq!(mel(vec![0.1; 12_345]).rows(), 77);
}

/// llama.cpp's floor differs in quiet bands only.
#[test]
fn the_floor_can_be_that_of_llama_cpp() {
    let sound = Samples::new(vec![0.0; 1600]).expect("a sound");
    let frames = LogMel::with_floor(MelFloor::Least).frames(first(&sound));
    assert!(frames.values().iter().all(|&value| value == 0.001_f64.ln() as f32));
    let loud = wav("tiny-e2b.wav");
    let (added, least) = (LogMel::new(), LogMel::with_floor(MelFloor::Least));
    let (added, least) = (added.frames(first(&loud)), least.frames(first(&loud)));
    let differences = added.values().iter().zip(least.values()).map(|(added, least)| added - least);
    assert!(differences.clone().all(|difference| (-1e-6..=0.6932).contains(&difference)));
    assert!(differences.clone().any(|difference| difference > 0.1));
}

#[test]
fn raw_frames_end_with_zeros() {
    let file = read("towers.safetensors");
    for (name, sound, rows) in [("audio", "tiny-12b-rise.wav", 59), ("audio2", "tiny-12b-fade.wav", 30)] {
        let sound = wav(sound);
        let frames = Frames::of_wave(first(&sound));
        assert_eq!((frames.rows(), frames.width()), (rows, 640));
        let (_, expected) = tensor(&file, &format!("tiny-12b.{name}.last_frame"));
        assert_eq!(&frames.values()[frames.values().len() - 640..], expected, "{name}");
        assert_eq!(&frames.values()[..sound.as_slice().len()], sound.as_slice());
    }
}

#[test]
fn long_sound_is_cut_into_clips_without_loss() {
    let samples: Vec<f32> = (0..2 * MAX_CLIP + 1000).map(|at| (at % 100) as f32 / 100.0).collect();
    let sound = Samples::new(samples.clone()).expect("a sound");
    assert!((sound.seconds() - 60.0625).abs() < 1e-9);
    let clips: Vec<&[f32]> = sound.clips().map(Clip::as_slice).collect();
    assert_eq!(clips.iter().map(|clip| clip.len()).collect::<Vec<_>>(), [MAX_CLIP, MAX_CLIP, 1000]);
    assert_eq!(clips.concat(), samples);
    let tokens: u32 = sound.clips().map(|clip| Frames::of_wave(clip).rows()).sum();
    assert_eq!(tokens, 750 + 750 + 2);
}

#[test]
fn samples_that_make_no_sound_are_refused() {
    let error = |samples| Samples::new(samples).expect_err("no sound");
    assert_eq!(error(vec![]).code(), "media.sound.empty");
    assert_eq!(error(vec![0.0; (MAX_SECONDS * SAMPLE_RATE) as usize + 1]).code(), "media.sound.too_long");
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let refused = error(vec![0.0, 0.5, value]);
        assert_eq!(refused.code(), "media.sound.not_finite");
        assert_eq!(refused.to_string(), "sample 2 of the sound is not a finite number");
    }
}

#[test]
fn digests_tell_sounds_apart() {
    let digest = |samples: &[f32]| Samples::new(samples.to_vec()).expect("a sound").digest();
    assert_eq!(digest(&[0.5, 0.25]), digest(&[0.5, 0.25]));
    assert_ne!(digest(&[0.5, 0.25]), digest(&[0.25, 0.5]));
    assert_ne!(digest(&[0.5]), digest(&[0.5, 0.0]));
}

/// Loud samples stay finite: sums are f64.
#[test]
fn the_loudest_sound_has_finite_frames() {
    let tone = (0..1600).map(|at| f32::MAX * (at as f32 / 36.0 * TAU).sin().clamp(-1.0, 1.0));
    assert!(mel(tone.collect()).values().iter().all(|value| value.is_finite()));
}
