//! Ends replies that go round in circles.
//!
//! A model that has lost its way may write one token for ever. Ollama gives up on such a reply; so does
//! this, at the same place.

/// Repetitions that are still accepted.
const LIMIT: u32 = 30;

/// Watches for one piece of text coming again and again.
///
/// A piece is the text of one token. White space around it does not count, so that all pieces of nothing
/// but white space are the same.
///
/// ```
/// use rullama_engine::RepetitionGuard;
///
/// let mut guard = RepetitionGuard::default();
/// assert!((0..31).all(|_| !guard.push(" ha")));
/// assert!(guard.push("ha"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct RepetitionGuard {
    // Empty at the start, as in Ollama: a reply may begin with one piece of white space less.
    last: String,
    repetitions: u32,
}

impl RepetitionGuard {
    /// Takes the next piece; says whether the same piece has now come again more than 30 times in a row.
    #[must_use = "the reply should end if this is true"]
    pub fn push(&mut self, piece: &str) -> bool {
        let piece = piece.trim();
        if piece == self.last {
            self.repetitions = self.repetitions.saturating_add(1);
        } else {
            self.last.clear();
            self.last.push_str(piece);
            self.repetitions = 0;
        }
        self.repetitions > LIMIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many pieces are accepted before the guard speaks up.
    fn accepted<'a>(pieces: impl IntoIterator<Item = &'a str>) -> usize {
        let mut guard = RepetitionGuard::default();
        pieces.into_iter().take_while(|piece| !guard.push(piece)).count()
    }

    #[test]
    fn a_piece_may_come_again_thirty_times() {
        assert_eq!(accepted(["no"; 31]), 31);
        assert_eq!(accepted(["no"; 40]), 31);
        assert_eq!(accepted(["no", " no", "no\n", "\u{a0}no"].into_iter().cycle().take(100)), 31);
        assert_eq!(accepted([" "; 100]), 30, "the start counts as white space");
    }

    #[test]
    fn another_piece_starts_the_count_again() {
        let mut pieces = vec!["a"; 30];
        pieces.push("b");
        pieces.extend(["a"; 40]);
        assert_eq!(accepted(pieces), 62);
        assert_eq!(accepted(["a", "b"].into_iter().cycle().take(1000)), 1000);
        assert_eq!(accepted(["A", "a"].into_iter().cycle().take(1000)), 1000);
    }

    #[test]
    fn it_goes_on_warning() {
        let mut guard = RepetitionGuard::default();
        assert!((0..31).all(|_| !guard.push("x")));
        assert!(guard.push("x") && guard.push("x"));
        assert!(!guard.push("y"));
    }
}
