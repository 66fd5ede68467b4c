//! Models in files.

use rullama_gguf::{ByteSource as _, FileSource, SourceError, open_path};

use crate::{common::sample, model::part};

#[test]
fn files_are_read_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sample.gguf");
    std::fs::write(&path, sample()).unwrap();
    let model = pollster::block_on(open_path(&path)).unwrap();
    let norm = model.tensor("norm").unwrap();
    assert_eq!(pollster::block_on(model.read(norm.range())).unwrap(), [0x11; 20]);

    let source = FileSource::open(&path).unwrap();
    let len = source.len();
    assert!(matches!(pollster::block_on(source.read(len - 1..len + 1)), Err(SourceError::OutOfRange { .. })));
    // Cut off while it is open.
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
    let cut = pollster::block_on(source.read(0..len)).unwrap_err();
    assert!(matches!(cut, SourceError::Truncated { found: 100, .. }), "{cut:?}");

    assert!(matches!(FileSource::open(folder.path()), Err(SourceError::Io { .. })));
    assert!(matches!(FileSource::open(folder.path().join("absent")), Err(SourceError::Io { .. })));
}

#[test]
fn a_model_in_several_files_reads_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |number| folder.path().join(format!("m-0000{number}-of-00003.gguf"));
    std::fs::write(path(1), part(0, 3, 5, &["a", "b"])).unwrap();
    std::fs::write(path(2), part(1, 3, 5, &["c"])).unwrap();
    std::fs::write(path(3), part(2, 3, 5, &["d", "e"])).unwrap();
    for number in 1..=3 {
        let model = pollster::block_on(open_path(path(number))).unwrap();
        assert_eq!(model.part_count(), 3);
        assert_eq!(model.metadata().str("general.architecture").unwrap(), "gemma4");
        let names: Vec<&str> = model.tensors().map(|tensor| tensor.name).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e"]);
        for name in names {
            let tensor = model.tensor(name).unwrap();
            let bytes = pollster::block_on(model.read(tensor.range())).unwrap();
            assert_eq!(bytes, [name.as_bytes()[0]; 4]);
        }
    }
    std::fs::remove_file(path(2)).unwrap();
    let missing = pollster::block_on(open_path(path(1))).unwrap_err();
    assert!(missing.to_string().contains("m-00002-of-00003.gguf"), "{missing}");
}
