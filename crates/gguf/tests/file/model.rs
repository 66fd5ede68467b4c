//! Reading models, whole and in parts; and that writing and reading are inverse.

use crate::common::sample;
use rullama_gguf::{Array, ByteSource, Format, Header, MemorySource, Model, ModelError, Value, Writer};

fn memory(bytes: Vec<u8>) -> Box<dyn ByteSource> {
    Box::new(MemorySource::new(bytes))
}

fn open(bytes: Vec<u8>) -> Model {
    pollster::block_on(Model::open(memory(bytes))).unwrap()
}

#[test]
fn a_written_file_is_read_back() {
    let model = open(sample());
    let header = model.header();
    assert_eq!(header.version(), 3);
    assert_eq!(header.entry_count(), 13);
    assert_eq!(header.get("gemma4.i8"), Some(Value::I8(-3)));
    assert_eq!(header.get("gemma4.u16"), Some(Value::U16(40_000)));
    assert_eq!(header.get("gemma4.big"), Some(Value::U64(u64::MAX)));
    assert_eq!(header.get("gemma4.flag"), Some(Value::Bool(true)));
    assert_eq!(header.get("gemma4"), None);
    let Some(Value::Array(Array::Strings(tokens))) = header.get("tokenizer.ggml.tokens") else {
        panic!("tokens are strings")
    };
    assert_eq!(tokens.iter().collect::<Vec<_>>(), [&b"<pad>"[..], b"", "▁the".as_bytes(), b"\n"]);

    let names: Vec<&str> = model.tensors().map(|tensor| tensor.name).collect();
    assert_eq!(names, ["norm", "matrix", "experts", "scalar"]);
    let matrix = model.tensor("matrix").unwrap();
    assert_eq!((matrix.shape.dims(), matrix.format, matrix.bytes), (&[256, 3][..], Format::Q4_K, 432));
    assert_eq!(matrix.range().start, header.data_start() + matrix.offset);
    assert_eq!(pollster::block_on(model.read(matrix.rows_range(1..2))).unwrap(), [0x11; 144]);
    assert_eq!(model.tensor("absent"), None);
}

/// The rows of a tensor of more than two extents, taken together as they lie.
#[test]
fn rows_are_taken_together() {
    let model = open(sample());
    let matrix = model.tensor("matrix").unwrap();
    assert_eq!(matrix.as_rows_of(256), Some(matrix));
    let whole = matrix.as_rows_of(768).unwrap();
    assert_eq!((whole.shape.dims(), whole.row_bytes(), whole.range()), (&[768, 1][..], 432, matrix.range()));
    for width in [0, 128, 512, 1536] {
        assert_eq!(matrix.as_rows_of(width), None, "{width}");
    }
}

#[test]
fn a_file_copied_through_the_writer_is_the_same() {
    let file = sample();
    let model = open(file.clone());
    let mut writer = Writer::new();
    for (key, value) in model.header().entries() {
        writer.set(key, value).unwrap();
    }
    for tensor in model.tensors() {
        writer.add_tensor(tensor.name, tensor.shape.dims(), tensor.format).unwrap();
    }
    let mut body = writer.begin(Vec::new()).unwrap();
    for tensor in model.tensors() {
        let bytes = pollster::block_on(model.read(tensor.range())).unwrap();
        let (first, rest) = bytes.split_at(bytes.len() / 3);
        body.write_some(first).unwrap();
        body.write_some(rest).unwrap();
    }
    assert!(body.finish().unwrap() == file);
}

#[test]
fn the_writer_refuses_what_no_reader_accepts() {
    let mut writer = Writer::new();
    writer.set("key", 1u32).unwrap();
    assert!(writer.set("key", 2u32).is_err());
    assert!(writer.set("", 2u32).is_err());
    assert!(writer.set("general.alignment", 64u32).is_err());
    assert!(writer.set_alignment(48).is_err());
    writer.set_alignment(64).unwrap();
    writer.add_tensor("t", &[32], Format::Q8_0).unwrap();
    assert!(writer.add_tensor("t", &[32], Format::Q8_0).is_err());
    assert!(writer.add_tensor("u", &[33], Format::Q8_0).is_err());
    assert!(writer.add_tensor("u", &[1; 5], Format::F32).is_err());
    assert!(writer.add_tensor("u", &[1 << 40, 1 << 40], Format::F32).is_err());
    assert!(writer.add_tensor(&"n".repeat(64), &[1], Format::F32).is_err());

    let mut body = writer.clone().begin(Vec::new()).unwrap();
    assert!(body.write_tensor(&[0; 33]).is_err());
    body.write_some(&[0; 30]).unwrap();
    assert!(body.write_some(&[0; 5]).is_err());
    assert!(body.finish().is_err());

    let mut body = writer.begin(Vec::new()).unwrap();
    body.write_tensor(&[7; 34]).unwrap();
    assert!(body.write_tensor(&[]).is_err());
    let model = open(body.finish().unwrap());
    assert_eq!((model.header().alignment(), model.header().data_start() % 64), (64, 0));
}

/// File `number` of a model in `count` files; each tensor holds its own name four times.
pub(crate) fn part(number: u16, count: u16, total: i32, tensors: &[&str]) -> Vec<u8> {
    let mut writer = Writer::new();
    if number == 0 {
        writer.set("general.architecture", "gemma4").unwrap();
    }
    writer.set("split.no", number).unwrap();
    writer.set("split.count", count).unwrap();
    writer.set("split.tensors.count", total).unwrap();
    for name in tensors {
        writer.add_tensor(name, &[4], Format::I8).unwrap();
    }
    let mut body = writer.begin(Vec::new()).unwrap();
    for name in tensors {
        body.write_tensor(&[name.as_bytes()[0]; 4]).unwrap();
    }
    body.finish().unwrap()
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let refuse = |parts: Vec<Vec<u8>>| {
        pollster::block_on(Model::open_parts(parts.into_iter().map(memory).collect())).unwrap_err()
    };
    let (a, b) = (part(0, 2, 2, &["a"]), part(1, 2, 2, &["b"]));
    pollster::block_on(Model::open_parts(vec![memory(a.clone()), memory(b.clone())])).unwrap();
    assert!(matches!(refuse(vec![]), ModelError::PartCount { found: 0, .. }));
    assert!(matches!(refuse(vec![a.clone()]), ModelError::PartCount { found: 1, expected: 2 }));
    assert!(matches!(
        refuse(vec![b.clone(), a.clone()]),
        ModelError::PartNumber { found: 2, expected: 1, .. }
    ));
    assert!(matches!(
        refuse(vec![part(0, 2, 9, &["a"]), b]),
        ModelError::PartTensors { found: 2, expected: 9 }
    ));
    let twin = part(1, 2, 2, &["a"]);
    assert!(matches!(refuse(vec![a.clone(), twin]), ModelError::DuplicateTensor { .. }));
    assert!(matches!(
        pollster::block_on(Model::open(memory(a))),
        Err(ModelError::PartCount { found: 1, expected: 2 })
    ));
}

/// Two models read as one, whose tensors are where they were in their own files.
#[test]
fn joined_models_have_the_tensors_of_both() {
    let whole = |tensors: &[&str]| open(part(0, 1, tensors.len() as i32, tensors));
    let text = pollster::block_on(Model::open_parts(vec![
        memory(part(0, 2, 2, &["a"])),
        memory(part(1, 2, 2, &["b"])),
    ]));
    let joined = text.unwrap().join(whole(&["c", "d"])).unwrap();
    let read = |name: &str| {
        let tensor = joined.tensor(name).unwrap();
        (tensor.part, pollster::block_on(joined.read(tensor.range())).unwrap())
    };
    for (name, part) in [("a", 0), ("b", 1), ("c", 2), ("d", 2)] {
        assert_eq!(read(name), (part, vec![name.as_bytes()[0]; 4]));
    }
    assert_eq!(joined.headers().map(Header::tensor_count).collect::<Vec<_>>(), [1, 1, 2]);
    let refused = whole(&["a"]).join(whole(&["b", "a"])).unwrap_err();
    assert_eq!(refused.to_string(), "two files of the model contain tensor `a`");
}

/// A header that arrives in pieces of any size is the header that arrives at once.
#[test]
fn the_header_is_read_in_growing_pieces() {
    // Larger than the first read, so that growth happens, with a string array across the border.
    let tokens: Vec<String> = (0..200_000).map(|i| format!("token {i}")).collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let mut writer = Writer::new();
    writer.set("before", 1u32).unwrap();
    writer.set("tokens", tokens.as_slice()).unwrap();
    writer.set("numbers", vec![7u64; 1_000_000].as_slice()).unwrap();
    writer.set("after", "end").unwrap();
    let file = writer.begin(Vec::new()).unwrap().finish().unwrap();
    let header = pollster::block_on(Header::read(&MemorySource::new(file))).unwrap();
    let found = header.metadata().strings("tokens").unwrap();
    assert_eq!(found.len(), 200_000);
    assert_eq!(&found[199_999], b"token 199999");
    assert_eq!(header.metadata().str("after").unwrap(), "end");
}
