//! How keys and values of each format lie in a cache buffer, and which kernel fragments read and write them.

use crate::{CacheFormat, Fragment, KernelSpec};

/// The layout of a [`CacheFormat`] on the GPU.
///
/// | format | layout of a head |
/// |---|---|
/// | F32 | the values |
/// | F16 | two values in each word |
/// | Q8 | signed bytes, then a half-precision scale for each group of 32, padded to sixteen bytes |
pub trait CacheLayout {
    /// Vectors of sixteen bytes that one head of a row takes.
    fn head_vectors(self, head_width: u32) -> u32;

    /// Bytes of a row of keys, or of values.
    fn row_bytes(self, kv_heads: u32, head_width: u32) -> u64;

    /// Completes the general kernel that stores heads of this width.
    fn store(self, spec: KernelSpec, head_width: u32) -> KernelSpec;

    /// Columns of a head that one invocation of that kernel stores.
    fn stored_at_once(self, head_width: u32) -> u32;

    /// Completes the general kernel that reads heads of this width.
    fn load(self, spec: KernelSpec, head_width: u32) -> KernelSpec;

    /// Whether heads of this width are a whole number of the format's groups.
    fn divides(self, head_width: u32) -> bool;

    /// Whether the fast kernels support heads of this width.
    fn fits(self, head_width: u32) -> bool;

    /// The fragment with which the fast kernels read a cache.
    fn reader(self) -> Fragment;

    /// The fragment with which the fast kernels write a cache.
    fn writer(self) -> Fragment;
}

impl CacheLayout for CacheFormat {
    fn head_vectors(self, head_width: u32) -> u32 {
        match self {
            Self::F32 => head_width / 4,
            Self::F16 => head_width / 8,
            Self::Q8 => head_width / 16 + head_width.div_ceil(256),
        }
    }

    fn row_bytes(self, kv_heads: u32, head_width: u32) -> u64 {
        match self {
            Self::Q8 => 16 * u64::from(kv_heads) * u64::from(self.head_vectors(head_width)),
            Self::F16 => 2 * u64::from(kv_heads) * u64::from(head_width),
            Self::F32 => 4 * u64::from(kv_heads) * u64::from(head_width),
        }
    }

    fn store(self, spec: KernelSpec, head_width: u32) -> KernelSpec {
        let spec = spec.with(Fragment::Halves).constant("UNIT", self.stored_at_once(head_width));
        match self {
            Self::F32 => spec.with(Fragment::StoreF32),
            Self::F16 => spec.with(Fragment::StoreF16),
            Self::Q8 => spec.with(Fragment::StoreQ8).constant("HEAD_VECTORS", self.head_vectors(head_width)),
        }
    }

    fn stored_at_once(self, head_width: u32) -> u32 {
        if self == Self::Q8 { head_width } else { 2 }
    }

    fn load(self, spec: KernelSpec, head_width: u32) -> KernelSpec {
        match self {
            Self::F32 => spec.with(Fragment::LoadF32),
            Self::F16 => spec.with(Fragment::LoadF16),
            Self::Q8 => spec
                .with(Fragment::LoadQ8)
                .constant("HEAD_WIDTH", head_width)
                .constant("HEAD_VECTORS", self.head_vectors(head_width)),
        }
    }

    fn divides(self, head_width: u32) -> bool {
        self != Self::Q8 || head_width.is_multiple_of(32)
    }

    fn fits(self, head_width: u32) -> bool {
        (1..=512).contains(&head_width) && head_width.is_multiple_of(8) && self.divides(head_width)
    }

    fn reader(self) -> Fragment {
        match self {
            Self::F32 => Fragment::ReadF32,
            Self::F16 => Fragment::ReadF16,
            Self::Q8 => Fragment::ReadQ8,
        }
    }

    fn writer(self) -> Fragment {
        match self {
            Self::F32 => Fragment::PackF32,
            Self::F16 => Fragment::PackF16,
            Self::Q8 => Fragment::PackQ8,
        }
    }
}
