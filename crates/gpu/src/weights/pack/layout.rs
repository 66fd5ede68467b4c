//! What a format says about its planes.

/// The three planes of a row: quants, scales, extra bits.
pub(super) type Planes<'a> = [&'a [u32]; 3];

/// The three planes of a row, to write to.
pub(super) type PlanesMut<'a> = [&'a mut [u32]; 3];

/// The planes of one format, from both sides.
///
/// Constants and the two `group_` functions are the format's WGSL fragment in Rust, line by line.
pub(super) trait Layout {
    /// How many values share scale and offset.
    const GROUP: usize;
    /// Whether the offset of a group can be other than zero.
    const HAS_OFFSET: bool;

    /// How many words each plane takes for a row of this many blocks; `None` if that exceeds a `u32`.
    fn plane_words(blocks: u32) -> Option<[u32; 3]>;

    /// Writes every word of a row's planes.
    fn pack_row(blocks: &[u8], planes: PlanesMut<'_>);

    /// Scale and offset of a group.
    fn group_scale(planes: Planes<'_>, group: usize) -> [f32; 2];

    /// The quants of values `4 · word` to `4 · word + 3` of a group.
    fn group_quants(planes: Planes<'_>, group: usize, word: usize) -> [f32; 4];
}
