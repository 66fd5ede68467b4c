//! How attention of one row is split along the context.

/// Into how many parts the seen context is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Splits {
    /// How far back a row sees; without it, to the beginning.
    pub(crate) window: Option<u32>,
    /// Keys that a part has at least, if there are enough.
    pub(crate) keys: u32,
    pub(crate) most: u32,
}

impl Splits {
    /// How many parts there are for a row at `position`.
    pub(crate) fn at(self, position: u32) -> u32 {
        let seen = self.window.map_or(position + 1, |window| window.min(position + 1));
        seen.div_ceil(self.keys).clamp(1, self.most)
    }
}
