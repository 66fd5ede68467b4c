//! Four-bit formats whose codes name a value of a table. The layouts are those of `rullama_gguf::format`.

use super::{Packed, Unpacked, blocks32::blocks_of_32, field, half, k_quants::blocks_of_256};
use crate::kernels::Instructions;

blocks_of_32!(
    /// Signed bytes.
    Iq4Nl, 18, |block| (look_up(field(block, 2)), half::<I>(block, 0), 0.0)
);
blocks_of_256!(Iq4Xs, 136, iq4_xs);

/// The levels of IQ4_NL and IQ4_XS: denser around zero, where weights are.
const CURVE: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// One half float, eight six-bit scales in two parts, 128 bytes of nibbles in runs of 16.
#[inline(always)]
fn iq4_xs<I: Instructions>(block: &[u8; 136], out: &mut Unpacked) {
    let d = half::<I>(block, 0);
    let high = u16::from_le_bytes(*field(block, 2));
    let low: &[u8; 4] = field(block, 4);
    for (run, quants) in out.quants.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let low = (low[run / 2] >> (4 * (run % 2))) & 15;
        let scale = u16::from(low) | (((high >> (2 * run)) & 3) << 4);
        out.scales[run] = d * (f32::from(scale) - 32.0);
        *quants = look_up(field(block, 8 + 16 * run));
    }
}

/// Low nibbles fill the first half of the values, high nibbles the second.
#[inline(always)]
fn look_up(packed: &[u8; 16]) -> [u8; 32] {
    let mut values = [0; 32];
    for i in 0..16 {
        values[i] = CURVE[usize::from(packed[i] & 15)] as u8;
        values[16 + i] = CURVE[usize::from(packed[i] >> 4)] as u8;
    }
    values
}
