//! The one place that cuts prompts into steps.

use crate::{EngineError, StepRows};

/// A prompt, or the unread end of one, cut into steps of at most a given number of rows.
///
/// The last step stands apart: its logits are needed, or the backend chooses a token after it. It has at least one row.
/// Rows that see each other, such as those of a picture, are in one step; apart from that, the steps before the last are full.
#[derive(Debug)]
pub(crate) struct Steps<'i> {
    pub(crate) before_last: Vec<StepRows<'i>>,
    pub(crate) last: StepRows<'i>,
}

impl<'i> Steps<'i> {
    /// Cuts `rows`, of which there is at least one, into steps of at most `most`, or of rows that see each other and are at
    /// most `together`.
    pub(crate) fn cut(rows: StepRows<'i>, most: usize, together: usize) -> Result<Self, EngineError> {
        let (mut before_last, mut last) = (Vec::new(), rows);
        while last.len() > most {
            let count = match last.whole(most) {
                0 => {
                    let rows = last.joined().next().map_or(0, |span| span.len());
                    if rows > together {
                        return Err(EngineError::MediaTooLarge { rows, most: together });
                    }
                    rows
                }
                count => count,
            };
            if count == last.len() {
                break;
            }
            let (step, rest) = last.split_at(count);
            before_last.push(step);
            last = rest;
        }
        Ok(Self { before_last, last })
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::{MediaRows, MediaSpan};

    fn lengths(rows: StepRows<'_>, most: usize) -> Vec<usize> {
        let steps = Steps::cut(rows, most, 4).unwrap();
        let all: Vec<StepRows<'_>> = steps.before_last.into_iter().chain([steps.last]).collect();
        let ids: Vec<u32> = all.iter().flat_map(|step| step.ids).copied().collect();
        assert_eq!(ids, rows.ids);
        all.iter().map(|step| step.len()).collect()
    }

    #[test]
    fn all_steps_but_the_last_are_full() {
        for (count, rows, expected) in [
            (1, 4, &[1][..]),
            (4, 4, &[4]),
            (5, 4, &[4, 1]),
            (8, 4, &[4, 4]),
            (11, 4, &[4, 4, 3]),
            (3, 1, &[1, 1, 1]),
        ] {
            let ids: Vec<u32> = (0..count).collect();
            assert_eq!(lengths(StepRows::tokens(&ids), rows), expected, "{count} in steps of {rows}");
        }
    }

    #[test]
    fn a_picture_is_in_one_step() {
        let ids = [0; 12];
        let rows = |joined| Rc::new(MediaRows { values: vec![0.0; 4], width: 1, joined });
        let picture = [MediaSpan { at: 3, rows: rows(true) }];
        let cut = |most| Steps::cut(StepRows { ids: &ids, at: 0, media: &picture }, most, most);
        assert_eq!(lengths(StepRows { ids: &ids, at: 0, media: &picture }, 5), [3, 5, 4]);
        assert!(matches!(cut(3), Err(EngineError::MediaTooLarge { rows: 4, most: 3 })));
        // More rows than others, where the backend can.
        assert_eq!(lengths(StepRows { ids: &ids, at: 0, media: &picture }, 3), [3, 4, 3, 2]);
        assert_eq!(lengths(StepRows { ids: &ids[..7], at: 0, media: &picture }, 3), [3, 4]);
        let sound = [MediaSpan { at: 3, rows: rows(false) }];
        assert_eq!(lengths(StepRows { ids: &ids, at: 0, media: &sound }, 5), [5, 5, 2]);
    }
}
