//! Arbitrary bytes as an image file.

#![no_main]

use rullama_media::{Budget, Patches, Vision, decode_image};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(image) = decode_image(bytes) else { return };
    assert_eq!(image.bytes().len(), image.width() as usize * image.height() as usize * 3);
    // Large images take long to resample, and nothing new happens to them.
    if image.bytes().len() < 1 << 16 {
        let fitted = image.fitted(Budget::ALL[0]).expect("every image has a size");
        Patches::new(&fitted, Vision::EncoderFree).expect("it is fitted");
    }
});
