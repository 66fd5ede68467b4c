//! Values that several commands take, and their parsers.

use clap::ValueEnum;
use rullama_engine::OptionRange;

/// Token ids.
#[derive(Debug, Clone)]
pub(crate) struct IdList(pub(crate) Vec<u32>);

/// Reads ids separated by commas. Spaces and a trailing comma are allowed.
pub(super) fn id_list(text: &str) -> Result<IdList, String> {
    let ids = text.split(',').map(str::trim).filter(|id| !id.is_empty());
    let ids = ids.map(|id| id.parse().map_err(|_| format!("`{id}` is not a token id")));
    ids.collect::<Result<_, _>>().map(IdList)
}

/// Reads a number in `range`. clap puts the option and the value before the message.
pub(super) fn number(
    range: OptionRange,
) -> impl Fn(&str) -> Result<f32, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|&number| range.holds(number));
        number.ok_or_else(|| format!("expected {range}"))
    }
}

/// Reads a whole number in `range`; `T` must be able to hold all of them.
pub(super) fn whole<T: TryFrom<i128> + Clone + Send + Sync + 'static>(
    range: OptionRange,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let whole = text.parse().ok().filter(|&whole| range.holds_whole(whole));
        whole.and_then(|whole| T::try_from(whole).ok()).ok_or_else(|| format!("expected {range}"))
    }
}

/// Reads a port. clap puts the option and the value before the message.
pub(super) fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "expected a whole number from 0 to 65535".to_owned())
}

/// Where a model runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendChoice {
    /// The GPU, unless there is none, it is emulated in software, or it gives wrong results; then the CPU, with a note
    Auto,
    /// The CPU
    Cpu,
    /// The GPU, with Vulkan, Metal or DirectX 12
    Gpu,
}

/// `on` or `off`; `true` and `false` mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    #[value(alias = "true")]
    On,
    #[value(alias = "false")]
    Off,
}
