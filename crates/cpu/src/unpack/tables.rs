//! Four-bit formats whose codes name a value of a table. The layouts are those of `rullama_gguf::format`.

use super::{Block, field, half};

/// The levels of IQ4_NL and IQ4_XS: denser around zero, where weights are.
const CURVE: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

#[inline(always)]
pub(super) fn iq4_nl(block: &[u8; 18], out: Block<'_, 32, 2>) {
    look_up(field(block, 2), out.quants);
    *out.scales = [half(block, 0); 2];
}

/// One half float, eight six-bit scales in two parts, 128 bytes of nibbles in runs of 16.
#[inline(always)]
pub(super) fn iq4_xs(block: &[u8; 136], out: Block<'_, 256, 16>) {
    let d = half(block, 0);
    let high = u16::from_le_bytes(*field(block, 2));
    let low: &[u8; 4] = field(block, 4);
    let runs = out.quants.as_chunks_mut::<32>().0.iter_mut().zip(out.scales.as_chunks_mut::<2>().0);
    for (run, (quants, scales)) in runs.enumerate() {
        let low = (low[run / 2] >> (4 * (run % 2))) & 15;
        let scale = u16::from(low) | (((high >> (2 * run)) & 3) << 4);
        *scales = [d * (f32::from(scale) - 32.0); 2];
        look_up(field(block, 8 + 16 * run), quants);
    }
}

/// Low nibbles fill the first half of `quants`, high nibbles the second.
#[inline(always)]
fn look_up(packed: &[u8; 16], quants: &mut [u8; 32]) {
    for i in 0..16 {
        quants[i] = CURVE[usize::from(packed[i] & 15)] as u8;
        quants[16 + i] = CURVE[usize::from(packed[i] >> 4)] as u8;
    }
}
