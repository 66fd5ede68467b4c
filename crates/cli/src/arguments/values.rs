//! Values of several commands, and how they are read.

use clap::ValueEnum;

/// Token ids.
#[derive(Debug, Clone)]
pub(crate) struct IdList(pub(crate) Vec<u32>);

/// Reads ids with commas between them; spaces, and a comma at the end, do no harm.
pub(super) fn id_list(text: &str) -> Result<IdList, String> {
    let ids = text.split(',').map(str::trim).filter(|id| !id.is_empty());
    let ids = ids.map(|id| id.parse().map_err(|_| format!("`{id}` is not a token id")));
    ids.collect::<Result<_, _>>().map(IdList)
}

/// A number, and no infinity or worse.
pub(super) fn finite(text: &str) -> Result<f32, String> {
    let number: f32 = text.parse().map_err(|_| "a number was expected".to_owned())?;
    if number.is_finite() { Ok(number) } else { Err("a finite number was expected".to_owned()) }
}

/// A seed that fits 64 bits, or a negative number for none.
pub(super) fn seed(text: &str) -> Result<i128, String> {
    let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
    let seed = text.parse().ok().filter(|seed| range.contains(seed));
    seed.ok_or_else(|| "a whole number below 2⁶⁴ was expected, or -1".to_owned())
}

/// What computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendChoice {
    /// The CPU reference: exact and slow
    Cpu,
    /// The GPU, through Vulkan, Metal or DX12
    Gpu,
}

/// How keys and values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KvChoice {
    /// Exactly
    F32,
    /// In half precision
    F16,
    /// In eight bits
    Q8,
}

/// `on` or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}
