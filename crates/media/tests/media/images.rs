//! Sizes, resampling and patches.

use rullama_media::{Budget, MediaError, Patches, Pixels, Vision};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::common::{distance, integers, noise, png, read, tensor};

fn prepared() -> Value {
    serde_json::from_slice(&read("prepared.json")).expect("JSON")
}

fn number(value: &Value) -> u32 {
    value.as_u64().and_then(|value| value.try_into().ok()).expect("a small number")
}

fn budget(tokens: u32) -> Budget {
    Budget::new(tokens).expect("a budget")
}

#[test]
fn sizes_are_those_of_hugging_face() {
    let prepared = prepared();
    let fits = prepared["fits"].as_array().expect("a list");
    assert!(fits.len() > 200);
    for fit in fits {
        let [width, height, tokens, fitted @ ..] = [0, 1, 2, 3, 4].map(|at| number(&fit[at]));
        assert_eq!(
            budget(tokens).fit(width, height).expect("a size"),
            fitted,
            "{width}×{height} at {tokens}"
        );
    }
}

/// torchvision resamples bytes with integers; ours are the same, so that not one bit differs.
#[test]
fn resized_noise_is_that_of_torchvision() {
    let prepared = prepared();
    for case in prepared["resized"].as_array().expect("a list") {
        let [width, height] = [0, 1].map(|at| number(&case["from"][at]));
        let image =
            Pixels::from_rgb(width, height, noise(width as usize * height as usize * 3)).expect("an image");
        let fitted = image.fitted(budget(number(&case["budget"]))).expect("a size");
        assert_eq!([fitted.width(), fitted.height()], [0, 1].map(|at| number(&case["to"][at])));
        let digest: String =
            Sha256::digest(fitted.bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(case["sha256"], digest, "{width}×{height}");
    }
}

#[test]
fn resized_pictures_are_those_of_hugging_face() {
    for (from, to) in [("301x200", "480x288"), ("750x563", "432x336")] {
        let expected = png(&format!("tiny-12b-{from}-to-{to}.png"));
        let found = png(&format!("tiny-12b-{from}.png")).fitted(budget(70)).expect("a size");
        assert!(found == expected, "{from} to {to}");
    }
}

#[test]
fn only_trained_budgets_are_accepted() {
    for tokens in [0, 69, 256, 281, 1121, u32::MAX] {
        let refused = Budget::new(tokens).expect_err("no such budget");
        assert_eq!(refused.code(), "media.image.budget");
        assert!(refused.to_string().ends_with("(expected one of 70, 140, 280, 560, 1120)"), "{refused}");
    }
    assert_eq!(Budget::ALL.map(Budget::soft_tokens), [70, 140, 280, 560, 1120]);
    assert_eq!(Budget::default().soft_tokens(), 280);
}

/// Values of patches in Hugging Face's order: row, column, channel. Ours has the channels outermost.
fn reordered(patches: &[f32], side: usize) -> Vec<f32> {
    let area = side * side;
    let patch = |patch: &[f32]| -> Vec<f32> {
        (0..3).flat_map(|channel| (0..area).map(move |at| at * 3 + channel)).map(|at| patch[at]).collect()
    };
    patches.chunks(area * 3).flat_map(patch).collect()
}

fn positions(patches: &Patches) -> Vec<i32> {
    patches.positions().flatten().map(|position| position as i32).collect()
}

#[test]
fn patches_of_towers_are_those_of_hugging_face() {
    let file = read("towers.safetensors");
    // Pillow resized the second picture, whose filter rounds some bytes to a neighbour of what torchvision gives.
    let pictures =
        [("image", "tiny-e2b.png", 1e-6), ("image_small", "tiny-e2b-small.png", 2.0 / 255.0 + 1e-6)];
    for (name, picture, allowed) in pictures {
        let image = png(picture).fitted(Budget::default()).expect("a size");
        let patches = Patches::new(&image, Vision::Tower).expect("patches");
        let (shape, expected) = tensor(&file, &format!("tiny-e2b.{name}.patches_first8"));
        assert_eq!(shape, [8, 768]);
        // Hugging Face's tower stretches the range itself.
        let expected: Vec<f32> = reordered(&expected, 16).iter().map(|value| 2.0 * (value - 0.5)).collect();
        let difference = distance(&patches.values()[..8 * 768], &expected);
        assert!(difference <= allowed, "{name}: {difference}");
        let all = integers(&file, &format!("tiny-e2b.{name}.position_ids"));
        let (real, padding) = all.split_at(2 * patches.count() as usize);
        assert_eq!(positions(&patches), real, "{name}");
        assert!(padding.iter().all(|&position| position == -1), "{name}");
        assert_eq!(patches.values().len(), patches.count() as usize * 768);
        assert_eq!(patches.soft_tokens().iter().product::<u32>() * 9, patches.count());
    }
}

#[test]
fn patches_of_12b_are_those_of_hugging_face() {
    let file = read("towers.safetensors");
    let pictures = [("image", "960x672"), ("image70", "480x336"), ("image70b", "336x480")];
    for (name, picture) in pictures {
        let image = png(&format!("tiny-12b-{picture}.png"));
        let patches = Patches::new(&image, Vision::EncoderFree).expect("patches");
        let (shape, expected) = tensor(&file, &format!("tiny-12b.{name}.patches_first2"));
        assert_eq!(shape, [2, 6912]);
        let difference = distance(&patches.values()[..2 * 6912], &reordered(&expected, 48));
        assert!(difference <= 1e-6, "{name}: {difference}");
        assert_eq!(positions(&patches), integers(&file, &format!("tiny-12b.{name}.position_ids")), "{name}");
        assert_eq!(patches.soft_tokens(), [patches.columns(), patches.rows()]);
    }
}

/// Red counts columns, green rows: a mistake in the order of patches or of values cannot hide.
#[test]
fn values_of_a_patch_are_channel_by_channel() {
    let pixels = (0..96).flat_map(|y| (0..48).flat_map(move |x| [x, y, 255]));
    let image = Pixels::from_rgb(48, 96, pixels.collect()).expect("an image");
    let patches = Patches::new(&image, Vision::Tower).expect("patches");
    assert_eq!((patches.columns(), patches.rows()), (3, 6));
    // The patch in column 1 and row 2 begins at pixel (16, 32).
    let patch = &patches.values()[(2 * 3 + 1) * 768..][..768];
    let byte = |value: f32| ((value + 1.0) * 127.5).round() as usize;
    for (at, &value) in patch.iter().enumerate() {
        let (channel, row, column) = (at / 256, at / 16 % 16, at % 16);
        assert_eq!(byte(value), [16 + column, 32 + row, 255][channel], "value {at}");
    }
}

#[test]
fn sizes_that_make_no_image_are_refused() {
    let error = |width, height, bytes| Pixels::from_rgb(width, height, bytes).expect_err("no image").code();
    assert_eq!(error(0, 5, vec![]), "media.image.empty");
    assert_eq!(error(5, 0, vec![]), "media.image.empty");
    assert_eq!(error(2, 2, vec![0; 11]), "media.image.size");
    assert_eq!(error(2, 2, vec![0; 16]), "media.image.size");
    assert_eq!(error(10_001, 10_000, vec![]), "media.image.too_large");
    assert_eq!(error(1_000_001, 1, vec![]), "media.image.too_large");
    assert_eq!(error(u32::MAX, u32::MAX, vec![]), "media.image.too_large");
    assert_eq!(Budget::default().fit(0, 1), Err(MediaError::EmptyImage { width: 0, height: 1 }));
    // Neither a multiple of 48, nor within the largest budget.
    for (width, height) in [(50, 48), (48, 16), (48 * 1121, 48)] {
        let image =
            Pixels::from_rgb(width, height, vec![0; (width * height * 3) as usize]).expect("an image");
        assert_eq!(Patches::new(&image, Vision::Tower), Err(MediaError::NotFitted { width, height }));
    }
}

#[test]
fn opacity_is_dropped() {
    let image = Pixels::from_rgba(2, 1, &[1, 2, 3, 0, 4, 5, 6, 128]).expect("an image");
    assert_eq!(image.bytes(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(Pixels::from_rgba(2, 1, &[0; 6]).expect_err("too short").code(), "media.image.size");
}

#[test]
fn digests_tell_images_apart() {
    let image =
        |width, height, bytes: [u8; 6]| Pixels::from_rgb(width, height, bytes.to_vec()).expect("an image");
    let digest = image(2, 1, [1, 2, 3, 4, 5, 6]).digest();
    assert_eq!(digest, image(2, 1, [1, 2, 3, 4, 5, 6]).digest());
    assert_ne!(digest, image(1, 2, [1, 2, 3, 4, 5, 6]).digest());
    assert_ne!(digest, image(2, 1, [1, 2, 3, 4, 5, 7]).digest());
    assert_eq!(digest.to_string().len(), 64);
}
