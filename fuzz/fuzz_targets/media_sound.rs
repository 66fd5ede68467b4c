//! Arbitrary bytes as a sound file.

#![no_main]

use rullama_media::{LogMel, decode_sound};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(sound) = decode_sound(bytes) else { return };
    let frames = sound.clips().next().map(|clip| LogMel::new().frames(clip)).expect("sounds are not empty");
    assert_eq!(
        frames.rows() as usize,
        LogMel::frame_count(sound.clips().next().map_or(0, |clip| clip.as_slice().len()))
    );
    assert!(frames.values().iter().all(|value| value.is_finite()));
});
