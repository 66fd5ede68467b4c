//! Values that several commands take, and their parsers.

use clap::ValueEnum;
use rullama_engine::OptionRange;
use rullama_media::{Budget, MAX_PIXELS};

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

/// Reads the most tokens of an image. clap puts the option and the value before the message.
pub(super) fn budget(text: &str) -> Result<Budget, String> {
    let budget = text.parse().ok().and_then(|tokens| Budget::new(tokens).ok());
    budget.ok_or_else(|| "expected 70, 140, 280, 560 or 1120".to_owned())
}

/// Reads the size of an image, such as 640x480 or 640×480. clap puts the option and the value before the message.
pub(super) fn image_size(text: &str) -> Result<ImageSize, String> {
    let sides = text.split_once(['x', 'X', '×']).and_then(|(width, height)| {
        let side = |text: &str| text.trim().parse().ok().filter(|&side: &u32| side > 0);
        Some(ImageSize { width: side(width)?, height: side(height)? })
    });
    let most = |size: &ImageSize| u64::from(size.width) * u64::from(size.height) <= MAX_PIXELS;
    sides
        .filter(most)
        .ok_or_else(|| format!("expected WIDTHxHEIGHT, such as 640x480, with at most {MAX_PIXELS} pixels"))
}

/// The size of an image in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImageSize {
    pub(crate) width: u32,
    pub(crate) height: u32,
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
    /// The exact interpreter that the others are compared with; very slow
    Reference,
}

/// `on` or `off`; `true` and `false` mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    #[value(alias = "true")]
    On,
    #[value(alias = "false")]
    Off,
}
