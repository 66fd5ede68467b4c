//! Facts about a model that several commands show.

use std::collections::BTreeMap;

use rullama_gguf::Model;

/// The members of the Gemma 4 family: layers, width and name.
const MEMBERS: [(u32, u32, &str); 5] =
    [(35, 1536, "e2b"), (42, 2560, "e4b"), (48, 3840, "12b"), (30, 2816, "26b-a4b"), (60, 5376, "31b")];

/// The released model with these measures, or `custom`.
pub(crate) fn variant(model: &Model) -> &'static str {
    let metadata = model.metadata();
    let measure = |key| metadata.section("gemma4").optional_u32(key).ok().flatten();
    let found = MEMBERS.iter().find(|(layers, width, _)| {
        metadata.optional_str("general.architecture") == Ok(Some("gemma4"))
            && measure("block_count") == Some(*layers)
            && measure("embedding_length") == Some(*width)
    });
    found.map_or("custom", |(_, _, name)| name)
}

/// Number of values in all tensors.
pub(crate) fn parameters(model: &Model) -> u64 {
    model.tensors().fold(0, |sum: u64, tensor| sum.saturating_add(tensor.shape.values()))
}

/// The format that most bytes of the weights have.
pub(crate) fn main_format(model: &Model) -> &'static str {
    let mut bytes: BTreeMap<&'static str, u64> = BTreeMap::new();
    for tensor in model.tensors() {
        *bytes.entry(tensor.format.name()).or_default() += tensor.bytes;
    }
    bytes.into_iter().max_by_key(|(_, bytes)| *bytes).map_or("", |(name, _)| name)
}
