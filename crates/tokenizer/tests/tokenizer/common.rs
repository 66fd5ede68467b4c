//! What several tests need: the vocabularies, read once, and the rule of encoding spelt out.

use std::{collections::HashMap, fs, path::PathBuf, sync::OnceLock};

use rullama_gguf::{Header, MemorySource};
use rullama_tokenizer::Tokenizer;

/// A file of the test data. A missing file is a failure, not a reason to skip.
pub(crate) fn testdata(path: &str) -> Vec<u8> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata")).join(path);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn header(path: &str) -> Header {
    pollster::block_on(Header::read(&MemorySource::new(testdata(path)))).unwrap()
}

fn gemma_header() -> &'static Header {
    static HEADER: OnceLock<Header> = OnceLock::new();
    HEADER.get_or_init(|| header("tokenizer/gemma4-vocab.gguf"))
}

/// The tokenizer of Gemma 4 with its whole vocabulary.
pub(crate) fn gemma() -> &'static Tokenizer {
    static TOKENIZER: OnceLock<Tokenizer> = OnceLock::new();
    TOKENIZER.get_or_init(|| Tokenizer::from_gguf(gemma_header()).unwrap())
}

/// Encoding step by step, with nothing clever: special tokens aside, texts instead of ids, every pair
/// looked at for every merge.
pub(crate) struct Obvious {
    ids: HashMap<&'static [u8], u32>,
    ranks: HashMap<(&'static [u8], &'static [u8]), usize>,
}

impl Obvious {
    /// For the vocabulary of [`gemma`].
    pub(crate) fn gemma() -> &'static Self {
        static OBVIOUS: OnceLock<Obvious> = OnceLock::new();
        OBVIOUS.get_or_init(|| {
            let keys = gemma_header().metadata().section("tokenizer.ggml");
            let ids = keys.strings("tokens").unwrap().iter().zip(0..).collect();
            let mut ranks = HashMap::new();
            for (rank, merge) in keys.strings("merges").unwrap().iter().enumerate() {
                let space = 1 + merge[1..].iter().position(|&byte| byte == b' ').unwrap();
                ranks.entry((&merge[..space], &merge[space + 1..])).or_insert(rank);
            }
            Obvious { ids, ranks }
        })
    }

    pub(crate) fn encode(&self, text: &str) -> Vec<u32> {
        let text = text.replace(' ', "\u{2581}");
        let mut ids = Vec::new();
        let characters: Vec<&str> = text.split_inclusive(|_| true).collect();
        for run in characters.chunk_by(|a, b| (*a == "\n") == (*b == "\n")) {
            let whole = run.concat();
            match self.ids.get(whole.as_bytes()) {
                Some(&id) if whole.starts_with('\n') => ids.push(id),
                _ => self.merge(run, &mut ids),
            }
        }
        ids
    }

    fn merge(&self, characters: &[&str], ids: &mut Vec<u32>) {
        let mut symbols: Vec<Vec<u8>> = characters.iter().map(|c| c.as_bytes().to_vec()).collect();
        let rank = |pair: &[Vec<u8>]| self.ranks.get(&(&pair[0][..], &pair[1][..])).copied();
        while let Some((_, place)) =
            symbols.windows(2).zip(0..).filter_map(|(pair, place)| Some((rank(pair)?, place))).min()
        {
            let right = symbols.remove(place + 1);
            symbols[place].extend(right);
        }
        for symbol in symbols {
            match self.ids.get(&symbol[..]) {
                Some(&id) => ids.push(id),
                None => ids.extend(symbol.iter().map(|byte| self.ids[format!("<0x{byte:02X}>").as_bytes()])),
            }
        }
    }
}
