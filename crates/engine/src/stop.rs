//! Texts that end a reply, found while it is written.
//!
//! A stop string may come in pieces, so text that could be its beginning is held back until it is certain
//! that it is not. Each stop string has its matcher after Knuth, Morris and Pratt, which looks at every
//! byte once and knows at any time how much of the text's end is a beginning of the stop string.

/// Cuts a text that comes in chunks before the first of several stop strings.
///
/// However the text is cut into chunks, what is released is the text up to the earliest place where any
/// stop string begins. Of stop strings that overlap, the one that begins first wins, even if another is
/// complete earlier.
///
/// ```
/// use rullama_engine::StopStrings;
///
/// let mut stop = StopStrings::new(&["\nUser:".into(), "END".into()]);
/// assert_eq!(stop.push("Hello.\nUs").text, "Hello.");
/// assert_eq!(stop.push("ed to").text, "\nUsed to");
///
/// let last = stop.push(" it. EN");
/// assert_eq!((last.text, last.stopped), (" it. ", false));
/// let last = stop.push("D of the reply");
/// assert_eq!((last.text, last.stopped), ("", true));
/// ```
#[derive(Debug, Clone, Default)]
pub struct StopStrings {
    matchers: Vec<Matcher>,
    /// Text that was released, up to `released`, and after it text that is held back.
    text: String,
    released: usize,
    /// How much of the text's end is the beginning of a stop string.
    held: usize,
    /// Where in `text` a complete stop string begins, while one that began earlier may still follow.
    found: Option<usize>,
    stopped: bool,
}

/// Text that is certainly part of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Released<'a> {
    /// The text that follows what was released before; it may be empty.
    pub text: &'a str,
    /// Whether a stop string was met, and this is the end.
    pub stopped: bool,
}

impl StopStrings {
    /// Looks for these strings; empty ones are ignored.
    #[must_use]
    pub fn new(strings: &[String]) -> Self {
        let strings = strings.iter().filter(|string| !string.is_empty());
        Self { matchers: strings.map(|string| Matcher::new(string)).collect(), ..Self::default() }
    }

    /// Adds a chunk and returns what is now certain. After a stop string nothing more comes.
    pub fn push(&mut self, chunk: &str) -> Released<'_> {
        self.forget_released();
        if !self.stopped {
            let first = self.text.len();
            self.text.push_str(chunk);
            self.search(first);
        }
        self.release(self.text.len() - self.held)
    }

    /// Returns what was held back, as no more text comes. Ready for another text afterwards.
    pub fn finish(&mut self) -> Released<'_> {
        self.forget_released();
        if let Some(found) = self.found {
            self.stop_at(found);
        }
        for matcher in &mut self.matchers {
            matcher.matched = 0;
        }
        self.held = 0;
        let stopped = std::mem::take(&mut self.stopped);
        Released { stopped, ..self.release(self.text.len()) }
    }

    /// Shows the matchers the text from `first` on.
    fn search(&mut self, first: usize) {
        if self.matchers.is_empty() {
            return;
        }
        for end in first + 1..=self.text.len() {
            let byte = self.text.as_bytes()[end - 1];
            self.held = 0;
            for matcher in &mut self.matchers {
                if matcher.step(byte) {
                    let start = end - matcher.string.len();
                    self.found = Some(self.found.map_or(start, |found| found.min(start)));
                }
                self.held = self.held.max(matcher.matched);
            }
            // It is the first once everything that began before it has come to nothing.
            if let Some(found) = self.found
                && end - self.held >= found
            {
                return self.stop_at(found);
            }
        }
    }

    fn stop_at(&mut self, found: usize) {
        self.text.truncate(found);
        self.held = 0;
        self.found = None;
        self.stopped = true;
    }

    /// Releases the text up to `end`, which is the boundary of a character: stop strings begin at one.
    fn release(&mut self, end: usize) -> Released<'_> {
        let start = std::mem::replace(&mut self.released, end);
        Released { text: &self.text[start..end], stopped: self.stopped }
    }

    /// Drops released text when it outweighs what has to be moved for it, so that no text is moved often.
    fn forget_released(&mut self) {
        if self.released >= self.text.len() / 2 {
            self.text.drain(..self.released);
            self.found = self.found.map(|found| found - self.released);
            self.released = 0;
        }
    }
}

/// Looks for one stop string.
#[derive(Debug, Clone)]
struct Matcher {
    string: Box<[u8]>,
    /// For each beginning of the string, by its length less one: how long a shorter beginning it ends with.
    fallback: Box<[usize]>,
    /// How much of the string the text ends with.
    matched: usize,
}

impl Matcher {
    fn new(string: &str) -> Self {
        let string: Box<[u8]> = string.as_bytes().into();
        let mut fallback = vec![0; string.len()].into_boxed_slice();
        let mut shorter = 0;
        for at in 1..string.len() {
            while shorter > 0 && string[at] != string[shorter] {
                shorter = fallback[shorter - 1];
            }
            if string[at] == string[shorter] {
                shorter += 1;
            }
            fallback[at] = shorter;
        }
        Self { string, fallback, matched: 0 }
    }

    /// Takes the next byte; says whether the string is now complete.
    fn step(&mut self, byte: u8) -> bool {
        while self.matched > 0 && self.string[self.matched] != byte {
            self.matched = self.fallback[self.matched - 1];
        }
        if self.string[self.matched] == byte {
            self.matched += 1;
        }
        let complete = self.matched == self.string.len();
        if complete {
            self.matched = self.fallback[self.matched - 1];
        }
        complete
    }
}
