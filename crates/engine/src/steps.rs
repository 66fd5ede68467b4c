//! The one place that cuts prompts into steps.

use std::slice::Chunks;

/// A prompt, or the unread end of one, cut into steps of at most a given number of rows.
///
/// The last step stands apart: its logits are needed, or the backend chooses a token after it. It has at least one row;
/// the steps before it are full.
#[derive(Debug)]
pub(crate) struct Steps<'i> {
    pub(crate) before_last: Chunks<'i, u32>,
    pub(crate) last: &'i [u32],
}

impl<'i> Steps<'i> {
    /// Cuts `ids`, which are not empty, into steps of at most `rows` rows.
    pub(crate) fn cut(ids: &'i [u32], rows: usize) -> Self {
        let (before_last, last) = ids.split_at(ids.len().saturating_sub(1) / rows * rows);
        Self { before_last: before_last.chunks(rows), last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_steps_but_the_last_are_full() {
        for (count, rows, before_last, last) in [
            (1, 4, &[][..], 1),
            (4, 4, &[], 4),
            (5, 4, &[4], 1),
            (8, 4, &[4], 4),
            (11, 4, &[4, 4], 3),
            (3, 1, &[1, 1], 1),
        ] {
            let ids: Vec<u32> = (0..count).collect();
            let steps = Steps::cut(&ids, rows);
            assert_eq!(steps.last.len(), last, "{count} in steps of {rows}");
            let full: Vec<&[u32]> = steps.before_last.collect();
            assert_eq!(full.iter().map(|ids| ids.len()).collect::<Vec<_>>(), before_last);
            assert_eq!([full.concat(), steps.last.to_vec()].concat(), ids);
        }
    }
}
