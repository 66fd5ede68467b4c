//! What was encoded before, so that an image of an earlier turn is not encoded again.

use rullama_media::{Budget, Digest};

use super::Attachment;

/// Bytes of rows that are remembered: some hundred images.
const MOST_BYTES: usize = 256 << 20;

/// What an attachment was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Image(Digest, Budget),
    Sound(Digest),
}

/// Attachments, the one used last at the end. The first are forgotten when there are too many.
#[derive(Debug, Default)]
pub(crate) struct Remembered(Vec<(Origin, Attachment)>);

impl Remembered {
    pub(crate) fn find(&mut self, origin: Origin) -> Option<Attachment> {
        let index = self.0.iter().position(|(other, _)| *other == origin)?;
        let found = self.0.remove(index);
        let attachment = found.1.clone();
        self.0.push(found);
        Some(attachment)
    }

    pub(crate) fn add(&mut self, origin: Origin, attachment: Attachment) {
        self.add_within(origin, attachment, MOST_BYTES);
    }

    fn add_within(&mut self, origin: Origin, attachment: Attachment, most: usize) {
        self.0.retain(|(other, _)| *other != origin);
        self.0.push((origin, attachment));
        let bytes = |(_, attachment): &(Origin, Attachment)| 4 * attachment.rows.values.len();
        let mut all: usize = self.0.iter().map(bytes).sum();
        while all > most && self.0.len() > 1 {
            all -= bytes(&self.0.remove(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use rullama_gemma::Medium;
    use rullama_media::Samples;

    use super::*;
    use crate::MediaRows;

    #[test]
    fn what_was_not_used_for_longest_is_forgotten() {
        let origin = |value| Origin::Sound(Samples::new(vec![value]).unwrap().digest());
        let rows = Rc::new(MediaRows { values: vec![0.0; 4], width: 2, joined: false });
        let attachment = Attachment { medium: Medium::Audio, rows };
        let mut remembered = Remembered::default();
        for value in [0.1, 0.2] {
            remembered.add_within(origin(value), attachment.clone(), 32);
        }
        assert!(remembered.find(origin(0.1)).is_some());
        remembered.add_within(origin(0.3), attachment, 32);
        let known = [0.1, 0.2, 0.3].map(|value| remembered.find(origin(value)).is_some());
        assert_eq!(known, [true, false, true]);
    }
}
