//! Whatever the image or the sound: sizes, counts and ranges hold.

use proptest::prelude::*;
use rullama_media::{Budget, Clip, Frames, LogMel, Patches, Pixels, Samples, TOKEN_SIDE, Vision};

use crate::common::noise;

fn budgets() -> impl Strategy<Value = Budget> {
    prop::sample::select(Budget::ALL.to_vec())
}

/// Sides of all orders of magnitude.
fn sides() -> impl Strategy<Value = u32> {
    prop_oneof![1..4_u32, 1..100_u32, 40..60_u32, 1..10_000_u32]
}

proptest! {
    #[test]
    fn sizes_fill_the_budget(width in sides(), height in sides(), budget in budgets()) {
        let [across, down] = budget.fit(width, height).expect("a size");
        prop_assert!(across > 0 && across.is_multiple_of(TOKEN_SIDE));
        prop_assert!(down > 0 && down.is_multiple_of(TOKEN_SIDE));
        let tokens = (across / TOKEN_SIDE) * (down / TOKEN_SIDE);
        prop_assert!(tokens <= budget.soft_tokens());
        // One more column or row would break the budget or the aspect ratio by more than rounding does.
        prop_assert!(tokens + across / TOKEN_SIDE + down / TOKEN_SIDE + 1 >= budget.soft_tokens());
        prop_assert_eq!(budget.fit(height, width).expect("a size"), [down, across]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A resampled image keeps the one colour that it has, and its patches have all values in range.
    #[test]
    fn one_colour_stays(width in 1..200_u32, height in 1..200_u32, colour in any::<[u8; 3]>()) {
        let pixels = (0..width * height).flat_map(|_| colour).collect();
        let image = Pixels::from_rgb(width, height, pixels).expect("an image");
        let fitted = image.fitted(Budget::ALL[0]).expect("a size");
        let (pixels, _) = fitted.bytes().as_chunks::<3>();
        let differs = |pixel: &&[u8; 3]| pixel.iter().zip(colour).any(|(&one, other)| one.abs_diff(other) > 1);
        prop_assert_eq!(pixels.iter().find(differs), None);
    }

    #[test]
    fn noise_becomes_patches(width in sides(), height in 1..60_u32, turned in any::<bool>()) {
        let [width, height] = if turned { [height, width] } else { [width, height] };
        let bytes = noise(width as usize * height as usize * 3);
        let image = Pixels::from_rgb(width, height, bytes).expect("an image").fitted(Budget::ALL[0]).expect("a size");
        for (vision, least) in [(Vision::Tower, -1.0), (Vision::EncoderFree, 0.0)] {
            let patches = Patches::new(&image, vision).expect("patches");
            prop_assert_eq!(patches.values().len(), patches.count() as usize * vision.patch_width() as usize);
            prop_assert!(patches.values().iter().all(|value| (least..=1.0).contains(value)));
            prop_assert_eq!(patches.positions().count(), patches.count() as usize);
            prop_assert!(patches.soft_tokens().iter().product::<u32>() <= 70);
        }
    }

    #[test]
    fn sound_becomes_frames(samples in prop::collection::vec(-2.0_f32..2.0, 1..3000)) {
        let length = samples.len();
        let sound = Samples::new(samples).expect("a sound");
        let clips: Vec<Clip<'_>> = sound.clips().collect();
        prop_assert_eq!(clips.len(), 1);
        let mel = LogMel::new().frames(clips[0]);
        prop_assert_eq!(mel.rows() as usize, LogMel::frame_count(length));
        // Never below the floor, never above what the loudest sound has.
        prop_assert!(mel.values().iter().all(|value| (-6.908..10.0).contains(value)));
        prop_assert_eq!(Frames::of_wave(clips[0]).rows() as usize, length.div_ceil(640));
    }
}
