//! Characters as the merges see them, and the token each one starts as.
//!
//! Encoding begins with one symbol per character. A space counts as U+2581 throughout, because that is
//! how the vocabulary writes it; here both are the character `SPACE`. Bytes that are not UTF-8 form
//! broken characters: they have no token, take part in no merge, and leave as byte tokens.

/// What a space and U+2581 are both read as.
pub(crate) const SPACE: u32 = b' ' as u32;

/// Stands for every broken character; above all Unicode scalar values.
pub(crate) const BROKEN: u32 = u32::MAX;

/// No token.
pub(crate) const NONE: u32 = u32::MAX;

const SPACE_MARK: u32 = 0x2581;

/// U+2581 in UTF-8: the vocabulary's space.
pub(crate) const SPACE_MARK_UTF8: &[u8] = "\u{2581}".as_bytes();

/// The character at `at` and its length in bytes; `at` must be inside `text`.
///
/// A lead byte announces the length, an impossible lead byte stands alone, and a tail cut short is taken
/// as it is. A newline always ends a character, because text is cut at newlines first.
#[inline]
pub(crate) fn character_at(text: &[u8], at: usize) -> (u32, usize) {
    let lead = text[at];
    if lead < 0x80 { (u32::from(lead), 1) } else { wide_character(&text[at..]) }
}

fn wide_character(text: &[u8]) -> (u32, usize) {
    let bits = |byte: u8| u32::from(byte & 0x3F);
    let follows = |byte: u8| byte & 0xC0 == 0x80;
    match *text {
        [a @ 0xC2..=0xDF, b, ..] if follows(b) => ((u32::from(a) & 0x1F) << 6 | bits(b), 2),
        [a @ 0xE0..=0xEF, b, c, ..] if follows(b) && follows(c) => {
            let scalar = (u32::from(a) & 0x0F) << 12 | bits(b) << 6 | bits(c);
            match scalar {
                SPACE_MARK => (SPACE, 3),
                0..0x800 | 0xD800..0xE000 => (BROKEN, 3),
                _ => (scalar, 3),
            }
        }
        [a @ 0xF0..=0xF4, b, c, d, ..] if follows(b) && follows(c) && follows(d) => {
            let scalar = (u32::from(a) & 0x07) << 18 | bits(b) << 12 | bits(c) << 6 | bits(d);
            if (0x1_0000..0x11_0000).contains(&scalar) { (scalar, 4) } else { (BROKEN, 4) }
        }
        _ => (BROKEN, broken_length(text)),
    }
}

fn broken_length(text: &[u8]) -> usize {
    let announced = match text[0] {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    let taken = &text[..announced.min(text.len())];
    memchr::memchr(b'\n', taken).unwrap_or(taken.len())
}

/// The last character of a token's text; `BROKEN` if it does not end in a whole character.
pub(crate) fn last_character(text: &[u8]) -> u32 {
    for back in 1..=text.len().min(4) {
        let at = text.len() - back;
        if text[at] & 0xC0 != 0x80 {
            let (character, length) = character_at(text, at);
            return if length == back { character } else { BROKEN };
        }
    }
    BROKEN
}

/// From a character to the token that is exactly this character.
///
/// Pages of 256 characters, so that a lookup is two loads and scripts the vocabulary lacks cost nothing.
pub(crate) struct CharacterTable {
    page_of: Vec<u16>,
    pages: Vec<[u32; 256]>,
}

impl CharacterTable {
    /// A table without characters. Page 0 stays empty and serves every absent script.
    pub(crate) fn new() -> Self {
        Self { page_of: vec![0; 0x1100], pages: vec![[NONE; 256]] }
    }

    /// Notes `text` if it is one character. A token that is a literal space can never be met, because
    /// spaces are read as U+2581.
    pub(crate) fn add(&mut self, text: &[u8], id: u32) {
        if text.is_empty() || text == b" " {
            return;
        }
        let (character, length) = character_at(text, 0);
        if length != text.len() || character == BROKEN {
            return;
        }
        let page_of = &mut self.page_of[(character >> 8) as usize];
        if *page_of == 0 {
            // At most 0x1100 pages exist, so the count fits.
            *page_of = self.pages.len() as u16;
            self.pages.push([NONE; 256]);
        }
        self.pages[usize::from(*page_of)][(character & 0xFF) as usize] = id;
    }

    /// The token for a character, or `NONE`.
    #[inline]
    pub(crate) fn get(&self, character: u32) -> u32 {
        match self.page_of.get((character >> 8) as usize) {
            Some(&page) => self.pages[usize::from(page)][(character & 0xFF) as usize],
            None => NONE,
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.page_of.capacity() * 2 + self.pages.capacity() * 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On every scalar value, `character_at` agrees with the standard library.
    #[test]
    fn characters_match_the_standard_library() {
        for character in ('\0'..=char::MAX).filter(|&c| c != '\u{2581}') {
            let mut buffer = [0; 4];
            let text = character.encode_utf8(&mut buffer).as_bytes();
            assert_eq!(character_at(text, 0), (character as u32, text.len()));
            assert_eq!(last_character(text), character as u32);
        }
        assert_eq!(character_at(SPACE_MARK_UTF8, 0), (SPACE, 3));
    }

    #[test]
    fn broken_characters_take_what_their_lead_announces() {
        for (text, length) in [
            (&b"\x80abc"[..], 1),     // a continuation byte on its own
            (b"\xFFabc", 1),          // never a lead byte
            (b"\xC0\x80", 1),         // overlong, never a lead byte
            (b"\xC3(ab", 2),          // announces two
            (b"\xE2\x96", 2),         // cut short by the end
            (b"\xE2\n\x96", 1),       // cut short by a newline
            (b"\xED\xA0\x80", 3),     // a surrogate
            (b"\xF0\x80\x80\x80", 4), // overlong
            (b"\xF4\x90\x80\x80", 4), // above the last scalar value
            (b"\xF0\x9F\xA6", 3),     // cut short by the end
        ] {
            assert_eq!(character_at(text, 0), (BROKEN, length), "{text:x?}");
        }
    }
}
