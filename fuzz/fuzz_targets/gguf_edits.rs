//! A real GGUF file with some of its bytes changed, inserted or cut off.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};

#[global_allocator]
static ALLOCATOR: rullama_fuzz::Counting = rullama_fuzz::Counting;

#[derive(Debug, Arbitrary)]
enum Edit {
    Set { at: u16, value: u8 },
    SetWord { at: u16, value: u64 },
    Insert { at: u16, bytes: Vec<u8> },
    Cut { at: u16 },
}

libfuzzer_sys::fuzz_target!(|edits: Vec<Edit>| {
    let mut file = rullama_fuzz::sample();
    for edit in edits {
        let len = file.len();
        if len < 8 {
            break;
        }
        match edit {
            Edit::Set { at, value } => file[at as usize % len] = value,
            Edit::SetWord { at, value } => {
                let at = at as usize % (len - 7);
                file[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
            Edit::Insert { at, bytes } => {
                let at = at as usize % len;
                file.splice(at..at, bytes);
            }
            Edit::Cut { at } => file.truncate(at as usize % len),
        }
    }
    rullama_fuzz::read_within_bounds(&file);
});
