//! The rows of a prompt: token ids, and rows that towers made of pictures and sounds.
//!
//! A row made by a tower has an id too, a placeholder, so that prompts are compared, cut into steps and sampled by their ids.
//! [`MediaSpan`]s say which ids are placeholders.

use std::{ops::Range, rc::Rc};

/// The rows that a tower made of one picture or sound.
#[derive(Debug, Clone, PartialEq)]
pub struct MediaRows {
    /// The values, row by row.
    pub values: Vec<f32>,
    /// Values of a row: the width of the model.
    pub width: usize,
    /// Whether these rows see each other in layers whose mask says so. They are then never cut into several steps.
    pub joined: bool,
}

impl MediaRows {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.width.max(1)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Where the rows of a picture or sound are in a conversation.
///
/// Two spans hold the same medium if they share its rows: a medium that was encoded before keeps its [`MediaRows`].
#[derive(Debug, Clone)]
pub struct MediaSpan {
    /// The position of the first row.
    pub at: usize,
    /// The rows.
    pub rows: Rc<MediaRows>,
}

impl MediaSpan {
    /// Its positions.
    pub fn range(&self) -> Range<usize> {
        self.at..self.at + self.rows.len()
    }

    fn is(&self, other: &Self) -> bool {
        self.at == other.at && Rc::ptr_eq(&self.rows, &other.rows)
    }
}

/// A whole prompt.
#[derive(Debug, Clone, Default)]
pub struct PromptRows {
    /// An id for each row.
    pub ids: Vec<u32>,
    /// The rows made by towers, in order and without overlap.
    pub media: Vec<MediaSpan>,
}

impl PromptRows {
    /// All rows.
    pub fn rows(&self) -> StepRows<'_> {
        StepRows { ids: &self.ids, at: 0, media: &self.media }
    }
}

impl From<Vec<u32>> for PromptRows {
    fn from(ids: Vec<u32>) -> Self {
        Self { ids, media: Vec::new() }
    }
}

impl From<&[u32]> for PromptRows {
    fn from(ids: &[u32]) -> Self {
        ids.to_vec().into()
    }
}

impl From<&Vec<u32>> for PromptRows {
    fn from(ids: &Vec<u32>) -> Self {
        ids.clone().into()
    }
}

impl<const N: usize> From<&[u32; N]> for PromptRows {
    fn from(ids: &[u32; N]) -> Self {
        ids.to_vec().into()
    }
}

/// Some rows of a conversation, one after another.
#[derive(Debug, Clone, Copy)]
pub struct StepRows<'a> {
    /// An id for each row.
    pub ids: &'a [u32],
    /// The position of the first row.
    pub at: usize,
    /// The rows made by towers of the whole conversation.
    pub media: &'a [MediaSpan],
}

/// What stands in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepRow<'a> {
    /// A token.
    Token(u32),
    /// A row made by a tower.
    Soft(&'a [f32]),
}

impl<'a> StepRows<'a> {
    /// Tokens alone.
    pub fn tokens(ids: &'a [u32]) -> Self {
        Self { ids, at: 0, media: &[] }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The first `count` rows, and the others.
    pub fn split_at(self, count: usize) -> (Self, Self) {
        let (first, rest) = self.ids.split_at(count);
        (Self { ids: first, ..self }, Self { ids: rest, at: self.at + count, ..self })
    }

    /// What stands in each row.
    pub fn iter(self) -> impl Iterator<Item = StepRow<'a>> {
        let spans = self.media;
        self.ids.iter().zip(self.at..).map(move |(&id, at)| match span_at(spans, at) {
            Some(span) => {
                let width = span.rows.width;
                StepRow::Soft(&span.rows.values[(at - span.at) * width..][..width])
            }
            None => StepRow::Token(id),
        })
    }

    /// The rows that see each other, as ranges of these rows.
    pub fn joined(self) -> impl Iterator<Item = Range<usize>> {
        let own = self.at..self.at + self.len();
        self.media.iter().filter(|span| span.rows.joined).filter_map(move |span| {
            let range = span.range();
            let (start, end) = (range.start.max(own.start), range.end.min(own.end));
            (start < end).then(|| start - own.start..end - own.start)
        })
    }

    /// How many rows a conversation of `history` shares with these, which begin where it began. Rows that see each other are
    /// shared all or not at all.
    pub(crate) fn shared_with(self, history: Self) -> usize {
        let same = self.ids.iter().zip(history.ids).take_while(|(a, b)| a == b).count();
        let differs = |spans: &[MediaSpan], others: &[MediaSpan]| {
            let new = spans.iter().find(|span| !others.iter().any(|other| span.is(other)));
            new.map_or(usize::MAX, |span| span.at)
        };
        let same = same.min(differs(self.media, history.media)).min(differs(history.media, self.media));
        self.whole(same)
    }

    /// The largest number of first rows up to `count` that cuts no rows apart that see each other.
    pub(crate) fn whole(self, count: usize) -> usize {
        match span_at(self.media, self.at + count) {
            Some(span) if span.rows.joined => span.at.saturating_sub(self.at).min(count),
            _ => count,
        }
    }
}

fn span_at(spans: &[MediaSpan], at: usize) -> Option<&MediaSpan> {
    let index = spans.partition_point(|span| span.range().end <= at);
    spans.get(index).filter(|span| span.at <= at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medium(rows: usize, joined: bool) -> Rc<MediaRows> {
        Rc::new(MediaRows { values: (0..2 * rows).map(|value| value as f32).collect(), width: 2, joined })
    }

    fn prompt(ids: &[u32], media: &[(usize, &Rc<MediaRows>)]) -> PromptRows {
        let media = media.iter().map(|&(at, rows)| MediaSpan { at, rows: rows.clone() }).collect();
        PromptRows { ids: ids.to_vec(), media }
    }

    #[test]
    fn placeholders_stand_for_rows_of_towers() {
        let picture = medium(2, true);
        let prompt = prompt(&[5, 0, 0, 6], &[(1, &picture)]);
        let found: Vec<StepRow<'_>> = prompt.rows().iter().collect();
        let expected =
            [StepRow::Token(5), StepRow::Soft(&[0.0, 1.0]), StepRow::Soft(&[2.0, 3.0]), StepRow::Token(6)];
        assert_eq!(found, expected);
        let (_, rest) = prompt.rows().split_at(2);
        assert_eq!(rest.iter().collect::<Vec<_>>(), expected[2..]);
        assert_eq!(rest.joined().next(), Some(0..1));
    }

    #[test]
    fn another_picture_in_the_same_place_is_another_prompt() {
        let (one, other, sound) = (medium(2, true), medium(2, true), medium(2, false));
        let ids = [5, 0, 0, 6, 7];
        let shared = |a: &PromptRows, b: &PromptRows| a.rows().shared_with(b.rows());
        assert_eq!(shared(&prompt(&ids, &[(1, &one)]), &prompt(&ids, &[(1, &one)])), 5);
        assert_eq!(shared(&prompt(&ids, &[(1, &one)]), &prompt(&ids, &[(1, &other)])), 1);
        assert_eq!(shared(&prompt(&ids, &[(1, &one)]), &prompt(&ids, &[])), 1);
        // A picture is read whole or not at all; sound can be cut.
        assert_eq!(shared(&prompt(&ids, &[(1, &one)]), &prompt(&ids[..2], &[(1, &one)])), 1);
        assert_eq!(shared(&prompt(&ids, &[(1, &sound)]), &prompt(&ids[..2], &[(1, &sound)])), 2);
    }
}
