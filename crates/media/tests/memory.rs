//! Memory stays within bounds: of thin images while they are resampled, and of damaged files while they are decoded.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use rullama_media::{Budget, Pixels};

/// Counts the bytes in use and the most there ever were, for each thread on its own.
struct Counting;

thread_local! {
    static USED: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "an allocator cannot be written without it")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.get().wrapping_add(layout.size());
        USED.set(used);
        MOST.set(MOST.get().max(used));
        // SAFETY: the caller keeps the contract of `alloc`, which is passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // Wrapping, because what was allocated before the count began is freed too.
        USED.set(USED.get().wrapping_sub(layout.size()));
        // SAFETY: as above. `realloc` is the default: a new block, a copy, and this.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that `work` had in use at once.
fn most_during<T>(work: impl FnOnce() -> T) -> (usize, T) {
    USED.set(0);
    MOST.set(0);
    let result = work();
    (MOST.get(), result)
}

/// The rows of a tall image are dropped after their last use, and the table of a wide one grows with its width only.
#[test]
fn thin_images_need_little_memory() {
    let largest = Budget::ALL[4];
    for (width, height) in [(1, 1_000_000), (1_000_000, 1), (100, 1_000_000 / 100)] {
        let image = Pixels::from_rgb(width, height, vec![200; 3_000_000]).expect("an image");
        let (most, fitted) = most_during(|| image.fitted(largest).expect("a size"));
        // The result has at most 8 MB, the tables at most 50 bytes for each pixel of a side.
        assert!(most <= fitted.bytes().len() + 60_000_000, "{width}×{height}: {most} bytes");
    }
}

/// Sound is bounded by its length, which is no longer in a damaged file.
#[cfg(all(feature = "decode", not(target_family = "wasm")))]
#[test]
fn damaged_sounds_need_little_memory() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/media/files/");
    let mut state = 17_u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    let mut decoded = 0;
    for name in ["u8-8000.wav", "stereo.flac", "tagged.mp3", "stereo.ogg", "stereo.m4a"] {
        let whole = std::fs::read(format!("{folder}{name}")).expect("the test data");
        for _ in 0..100 {
            let mut bytes = whole.clone();
            // Headers are at both ends.
            for _ in 0..=random(3) {
                let at = random(600.min(bytes.len()));
                let at = if random(4) == 0 { bytes.len() - 1 - at } else { at };
                bytes[at] = [0, 0x7F, 0xFF, random(256) as u8][random(4)];
            }
            let (most, result) = most_during(|| rullama_media::decode_sound(&bytes));
            // Some claim a rate at which their samples last for minutes.
            let sound = result.as_ref().map_or(0, |sound| 4 * sound.as_slice().len());
            decoded += usize::from(result.is_ok());
            assert!(most <= 32_000_000 + 3 * sound, "{name}: {most} bytes, {result:?}");
        }
    }
    assert!(decoded > 0);
}
