//! Files made byte by byte, so that they can be wrong in any way.

use rullama_gguf::{Header, HeaderError, MemorySource};

/// Builds a file without checking anything.
#[derive(Clone)]
pub(crate) struct Raw(pub(crate) Vec<u8>);

impl Raw {
    /// Magic, version 3, and the two counts.
    pub(crate) fn new(tensors: u64, entries: u64) -> Self {
        Self(b"GGUF".to_vec()).u32(3).u64(tensors).u64(entries)
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn string(self, text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        self.u64(text.len() as u64).bytes(text)
    }

    /// A tensor entry.
    pub(crate) fn tensor(self, name: impl AsRef<[u8]>, dims: &[u64], format: u32, offset: u64) -> Self {
        let start = self.string(name).u32(dims.len() as u32);
        dims.iter().fold(start, |raw, &dim| raw.u64(dim)).u32(format).u64(offset)
    }

    /// Padding to the default alignment and a data section of `bytes` zeros.
    pub(crate) fn data(mut self, bytes: usize) -> Self {
        let start = self.0.len().next_multiple_of(32);
        self.0.resize(start + bytes, 0);
        self
    }

    pub(crate) fn read(self) -> Result<Header, HeaderError> {
        read(self.0)
    }
}

pub(crate) fn read(bytes: Vec<u8>) -> Result<Header, HeaderError> {
    pollster::block_on(Header::read(&MemorySource::new(bytes)))
}

/// A file with a bit of everything: entries of each type, arrays, tensors of several formats.
pub(crate) fn sample() -> Vec<u8> {
    use rullama_gguf::{Format, Writer};
    let mut writer = Writer::new();
    let set = "every value was given once";
    writer.set("general.architecture", "gemma4").expect(set);
    writer.set("gemma4.block_count", 3u32).expect(set);
    writer.set("gemma4.eps", 1e-6f32).expect(set);
    writer.set("gemma4.ratio", 0.25f64).expect(set);
    writer.set("gemma4.flag", true).expect(set);
    writer.set("gemma4.i8", -3i8).expect(set);
    writer.set("gemma4.u16", 40_000u16).expect(set);
    writer.set("gemma4.big", u64::MAX).expect(set);
    writer.set("gemma4.pattern", [true, false, true].as_slice()).expect(set);
    writer.set("gemma4.ffn", [1i32, 2, 3].as_slice()).expect(set);
    writer.set("tokenizer.ggml.tokens", ["<pad>", "", "▁the", "\n"].as_slice()).expect(set);
    writer.set("tokenizer.ggml.merges", ["▁ the", "t h"].as_slice()).expect(set);
    writer.set("empty", [0u32; 0].as_slice()).expect(set);
    let tensors: [(&str, &[u64], Format); 4] = [
        ("norm", &[5], Format::F32),
        ("matrix", &[256, 3], Format::Q4_K),
        ("experts", &[32, 2, 2], Format::Q8_0),
        ("scalar", &[1], Format::F32),
    ];
    for (name, dims, format) in tensors {
        writer.add_tensor(name, dims, format).expect(set);
    }
    let mut body = writer.begin(Vec::new()).expect("memory can be written");
    for (_, dims, format) in tensors {
        let values: u64 = dims.iter().product();
        let bytes = format.row_bytes(values).expect("whole blocks");
        body.write_tensor(&vec![0x11; bytes as usize]).expect("right length");
    }
    body.finish().expect("all tensors were given")
}
