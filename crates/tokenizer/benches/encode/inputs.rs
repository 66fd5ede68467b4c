//! The texts to encode, a mebibyte each, the same in every run.

use rullama_tokenizer::{TokenKind, Tokenizer};

const SIZE: usize = 1 << 20;

/// What the prose is spun from.
const PARAGRAPHS: &str = "\
The harbour lay under a thin mist when the first boats came in, and the women on the quay had already \
begun to sort the baskets. Nobody spoke much before the sun was over the lighthouse; it was a custom, or \
perhaps only a habit that had grown old enough to be mistaken for one. Old Marten, who had repaired nets \
there for forty years, said that a word spoken too early would bring wind by noon. His daughter laughed at \
him, but she kept her voice down all the same.\n\
What makes a good measurement? One might answer that it is close to the truth, but the truth is precisely \
what we do not have. It is better to say that a measurement is good if others, working elsewhere with \
different instruments, would obtain the same figure within the error we have stated. This shifts the \
burden from the number to the statement about it: a rough value with an honest uncertainty is worth more \
than five decimals without one. In the laboratory this is taught during the first week and forgotten by \
the second.\n\
She had been elected by a narrow majority, against the advice of her own party, and she knew that the \
council would resist every proposal that cost money. So she began with something cheap. The park behind \
the railway station was opened at night, two lamps were repaired, and a baker was allowed to sell bread \
from a cart beside the gate. Within a month people were walking there again. Nothing had been built; the \
city had merely been given back a place that it already owned.\n\
When the river rises above the third mark, the miller opens the lower sluice and closes the upper one, so \
that the wheel turns slowly and the stones are not damaged. Flour ground in those weeks is coarser than \
usual, and the bakers complain. They have complained for three hundred years. In the account books of the \
monastery you can find a letter from 1687 in which the abbot asks, politely but firmly, whether the \
miller could not simply stop the rain.\n\
A program is read far more often than it is written, and mostly by people in a hurry. They do not want to \
admire it; they want to find the place where something goes wrong, change it without breaking anything \
else, and go home. Names should therefore say what a thing is for, functions should do what their names \
promise, and comments should explain why rather than how. Everything else is a matter of taste, although \
taste, as usual, is where the quarrels come from.\n\
My grandmother cooked without recipes and could not explain what she did. Enough salt, she would say, and \
then leave it until it is ready. We tried to learn by watching her hands, which were small and quick and \
never seemed to be doing anything in particular. After she died my brother found a notebook at the back of \
the cupboard, wrapped in a cloth. It was full of numbers: grams, minutes, temperatures, dates, each dish \
written down dozens of times with slight corrections, year after year, from 1951 to the week before her \
illness.\n";

/// A small generator of random numbers; the benchmark must not depend on anything but itself.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Low numbers more often than high ones, roughly as words are used.
    fn rank_below(&mut self, limit: usize) -> usize {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        ((limit as f64).powf(uniform) as usize).saturating_sub(1).min(limit - 1)
    }
}

/// English prose on a single line.
///
/// Most words follow the paragraphs above, each chosen among those that follow the word before somewhere in
/// them. One word in five is a rarer one: a word of the vocabulary, drawn so that a mebibyte uses about
/// ten thousand of them; a name or an inflection put together from two; a number. That is about the variety
/// of a book, so a cache of words has something to miss.
pub(crate) fn prose(tokenizer: &Tokenizer) -> String {
    let text = PARAGRAPHS.replace('\n', " ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let rare: Vec<&str> = (0..tokenizer.len() as u32)
        .filter_map(|id| str::from_utf8(tokenizer.token_text(id)?).ok()?.strip_prefix('\u{2581}'))
        .filter(|word| word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_lowercase()))
        .take(30_000)
        .collect();
    let mut random = Random::new(1);
    let mut prose = String::with_capacity(SIZE + 64);
    let mut at = 0;
    while prose.len() < SIZE {
        if !prose.is_empty() {
            prose.push(' ');
        }
        match random.below(40) {
            0..6 => prose.push_str(rare[random.rank_below(rare.len())]),
            6 => {
                let (stem, ending) = (rare[random.below(rare.len())], rare[random.below(2000)]);
                let name = format!("{}{}", &stem[..3], &ending[1..]);
                prose.push(name.as_bytes()[0].to_ascii_uppercase() as char);
                prose.push_str(&name[1..]);
            }
            7 => prose.push_str(&format!("{},{:03}", random.below(90), random.below(1000))),
            _ => {
                prose.push_str(words[at]);
                let following: Vec<usize> =
                    (1..words.len()).filter(|&next| words[next - 1] == words[at]).collect();
                at = if following.is_empty() { 0 } else { following[random.below(following.len())] };
            }
        }
    }
    prose.truncate(SIZE);
    prose
}

/// Texts made to be hard, with their names: endless runs, and characters without order.
pub(crate) fn adversarial() -> Vec<(&'static str, String)> {
    let bytes: Vec<u8> = {
        let mut random = Random::new(2);
        (0..SIZE).map(|_| random.next() as u8).collect()
    };
    vec![
        ("one letter", "a".repeat(SIZE)),
        ("two letters, alternating", "ab".repeat(SIZE / 2)),
        ("spaces", " ".repeat(SIZE)),
        ("newlines", "\n".repeat(SIZE)),
        ("one emoji", "🦙".repeat(SIZE / 4)),
        ("emoji", scattered(0x1F300, 0x350)),
        ("random bytes as Latin-1", scattered(0, 256)),
        ("random bytes, made UTF-8", String::from_utf8_lossy(&bytes).into_owned()),
        ("random printable ASCII", scattered(0x20, 0x5F)),
        ("random Chinese", scattered(0x4E00, 0x1000)),
        ("random characters", scattered(0x80, 0xD700)),
        ("`<`", "<".repeat(SIZE)),
        ("`<|turn`", "<|turn".repeat(SIZE / 6)),
        ("special tokens", "<|turn>".repeat(SIZE / 7)),
    ]
}

/// Texts in which everything merges and nothing was seen before, with their names.
pub(crate) fn unrepeated(tokenizer: &Tokenizer) -> Vec<(&'static str, String)> {
    vec![
        ("random letters", scattered(u32::from('a'), 26)),
        ("tokens in random order", shuffled_tokens(tokenizer)),
    ]
}

/// Characters from a range, in no order.
fn scattered(first: u32, count: usize) -> String {
    let mut random = Random::new(3);
    let mut text = String::with_capacity(SIZE + 4);
    while text.len() < SIZE {
        text.extend(char::from_u32(first + random.below(count) as u32));
    }
    text
}

/// Every piece new, every boundary between two tokens that belong to different words or languages.
fn shuffled_tokens(tokenizer: &Tokenizer) -> String {
    let mut random = Random::new(4);
    let mut text = String::with_capacity(SIZE + 128);
    while text.len() < SIZE {
        let id = random.below(tokenizer.len()) as u32;
        if tokenizer.token_kind(id) == Some(TokenKind::Normal) {
            let token = tokenizer.token_text(id).unwrap_or_default();
            text.push_str(&String::from_utf8_lossy(token).replace('\u{2581}', " "));
        }
    }
    text
}
