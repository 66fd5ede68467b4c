//! The measures of the released models and of their tiny siblings.
//!
//! A tiny sibling keeps what makes its model special: how often a layer is global, which layers borrow, how
//! heads are shared, and which rows are whole K-blocks (256 values) and which are not.

/// All measures of a model.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) text: Text,
    pub(crate) vision: Vision,
    pub(crate) audio: Option<Audio>,
}

/// The decoder.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) layers: u32,
    /// The last of this many layers is global, the others are sliding.
    pub(crate) period: u32,
    pub(crate) width: u64,
    pub(crate) heads: u64,
    pub(crate) sliding: Heads,
    pub(crate) global: Heads,
    /// Global layers have no values of their own and use their keys.
    pub(crate) keys_as_values: bool,
    /// How many layers, at the end, use the keys and values of earlier ones.
    pub(crate) borrowing: u32,
    pub(crate) feed_forward: u64,
    /// Whether the layers that borrow have a feed-forward of twice the width.
    pub(crate) wide_tail: bool,
    pub(crate) experts: Option<Experts>,
    /// Width of the per-layer embeddings, or zero.
    pub(crate) per_layer: u64,
    pub(crate) window: u32,
    pub(crate) context: u32,
}

/// The heads for keys and values of a kind of layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heads {
    pub(crate) count: u64,
    pub(crate) width: u64,
}

/// The expert branch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Experts {
    pub(crate) count: u64,
    pub(crate) used: u32,
    pub(crate) width: u64,
}

/// What makes soft tokens of images.
#[derive(Debug)]
pub(crate) enum Vision {
    Tower(VisionTower),
    /// One linear layer over patches, as wide as the decoder.
    Direct {
        /// Rows of the position table of each axis.
        positions: u64,
    },
}

/// A transformer over patches.
#[derive(Debug)]
pub(crate) struct VisionTower {
    pub(crate) blocks: u32,
    pub(crate) width: u64,
    pub(crate) heads: u64,
    pub(crate) feed_forward: u64,
    /// Rows of the position table of each axis.
    pub(crate) positions: u64,
    /// Linear layers clamp what comes in and what goes out. Otherwise the output is standardised.
    pub(crate) clamped: bool,
}

/// What makes soft tokens of sound.
#[derive(Debug)]
pub(crate) enum Audio {
    Tower(AudioTower),
    /// One linear layer over samples.
    Direct,
}

/// A conformer over mel frames.
#[derive(Debug)]
pub(crate) struct AudioTower {
    pub(crate) blocks: u32,
    pub(crate) width: u64,
    pub(crate) heads: u64,
    /// Width of what the tower gives to the projection.
    pub(crate) output: u64,
}

impl Text {
    pub(crate) fn is_global(&self, layer: u32) -> bool {
        layer % self.period == self.period - 1
    }

    pub(crate) fn key_heads(&self, layer: u32) -> Heads {
        if self.is_global(layer) { self.global } else { self.sliding }
    }

    pub(crate) fn has_values(&self, layer: u32) -> bool {
        !(self.keys_as_values && self.is_global(layer))
    }

    pub(crate) fn feed_forward(&self, layer: u32) -> u64 {
        let borrows = layer >= self.layers - self.borrowing;
        if self.wide_tail && borrows { 2 * self.feed_forward } else { self.feed_forward }
    }
}

const SMALL_VISION: Vision = Vision::Tower(VisionTower {
    blocks: 16,
    width: 768,
    heads: 12,
    feed_forward: 3072,
    positions: 10_240,
    clamped: true,
});
const LARGE_VISION: Vision = Vision::Tower(VisionTower {
    blocks: 27,
    width: 1152,
    heads: 16,
    feed_forward: 4304,
    positions: 10_240,
    clamped: false,
});
const AUDIO: Audio = Audio::Tower(AudioTower { blocks: 12, width: 1024, heads: 8, output: 1536 });

// Enough positions for any image within the usual budget of soft tokens.
const TINY_SMALL_VISION: Vision = Vision::Tower(VisionTower {
    blocks: 2,
    width: 192,
    heads: 3,
    feed_forward: 384,
    positions: 1024,
    clamped: true,
});
const TINY_LARGE_VISION: Vision = Vision::Tower(VisionTower {
    blocks: 2,
    width: 144,
    heads: 2,
    feed_forward: 304,
    positions: 1024,
    clamped: false,
});
const TINY_AUDIO: Audio = Audio::Tower(AudioTower { blocks: 2, width: 128, heads: 4, output: 256 });

pub(crate) static E2B: Shape = Shape {
    text: Text {
        layers: 35,
        period: 5,
        width: 1536,
        heads: 8,
        sliding: Heads { count: 1, width: 256 },
        global: Heads { count: 1, width: 512 },
        keys_as_values: false,
        borrowing: 20,
        feed_forward: 6144,
        wide_tail: true,
        experts: None,
        per_layer: 256,
        window: 512,
        context: 131_072,
    },
    vision: SMALL_VISION,
    audio: Some(AUDIO),
};

pub(crate) static E4B: Shape = Shape {
    text: Text {
        layers: 42,
        period: 6,
        width: 2560,
        heads: 8,
        sliding: Heads { count: 2, width: 256 },
        global: Heads { count: 2, width: 512 },
        keys_as_values: false,
        borrowing: 18,
        feed_forward: 10_240,
        wide_tail: false,
        experts: None,
        per_layer: 256,
        window: 512,
        context: 131_072,
    },
    vision: SMALL_VISION,
    audio: Some(AUDIO),
};

pub(crate) static DENSE_12B: Shape = Shape {
    text: Text {
        layers: 48,
        period: 6,
        width: 3840,
        heads: 16,
        sliding: Heads { count: 8, width: 256 },
        global: Heads { count: 1, width: 512 },
        keys_as_values: true,
        borrowing: 0,
        feed_forward: 15_360,
        wide_tail: false,
        experts: None,
        per_layer: 0,
        window: 1024,
        context: 262_144,
    },
    vision: Vision::Direct { positions: 1120 },
    audio: Some(Audio::Direct),
};

pub(crate) static EXPERTS_26B: Shape = Shape {
    text: Text {
        layers: 30,
        period: 6,
        width: 2816,
        heads: 16,
        sliding: Heads { count: 8, width: 256 },
        global: Heads { count: 2, width: 512 },
        keys_as_values: true,
        borrowing: 0,
        feed_forward: 2112,
        wide_tail: false,
        experts: Some(Experts { count: 128, used: 8, width: 704 }),
        per_layer: 0,
        window: 1024,
        context: 262_144,
    },
    vision: LARGE_VISION,
    audio: None,
};

pub(crate) static DENSE_31B: Shape = Shape {
    text: Text {
        layers: 60,
        period: 6,
        width: 5376,
        heads: 32,
        sliding: Heads { count: 16, width: 256 },
        global: Heads { count: 4, width: 512 },
        keys_as_values: true,
        borrowing: 0,
        feed_forward: 21_504,
        wide_tail: false,
        experts: None,
        per_layer: 0,
        window: 1024,
        context: 262_144,
    },
    vision: LARGE_VISION,
    audio: None,
};

/// Short enough that a cache for all of it costs little, and many times the windows.
const TINY_CONTEXT: u32 = 8192;
const TINY_WINDOW: u32 = 32;

pub(crate) static TINY_E2B: Shape = Shape {
    text: Text {
        layers: 10,
        period: 5,
        width: 256,
        heads: 4,
        sliding: Heads { count: 1, width: 64 },
        global: Heads { count: 1, width: 128 },
        keys_as_values: false,
        borrowing: 5,
        feed_forward: 512,
        wide_tail: true,
        experts: None,
        per_layer: 128,
        window: TINY_WINDOW,
        context: TINY_CONTEXT,
    },
    vision: TINY_SMALL_VISION,
    audio: Some(TINY_AUDIO),
};

pub(crate) static TINY_E4B: Shape = Shape {
    text: Text {
        layers: 12,
        period: 6,
        width: 256,
        heads: 4,
        sliding: Heads { count: 2, width: 64 },
        global: Heads { count: 2, width: 128 },
        keys_as_values: false,
        borrowing: 6,
        feed_forward: 768,
        wide_tail: false,
        experts: None,
        per_layer: 64,
        window: TINY_WINDOW,
        context: TINY_CONTEXT,
    },
    vision: TINY_SMALL_VISION,
    audio: Some(TINY_AUDIO),
};

pub(crate) static TINY_12B: Shape = Shape {
    text: Text {
        layers: 12,
        period: 6,
        width: 256,
        heads: 4,
        sliding: Heads { count: 2, width: 64 },
        global: Heads { count: 1, width: 128 },
        keys_as_values: true,
        borrowing: 0,
        feed_forward: 768,
        wide_tail: false,
        experts: None,
        per_layer: 0,
        window: TINY_WINDOW,
        context: TINY_CONTEXT,
    },
    vision: Vision::Direct { positions: 280 },
    audio: Some(Audio::Direct),
};

pub(crate) static TINY_26B: Shape = Shape {
    text: Text {
        layers: 12,
        period: 6,
        width: 256,
        heads: 4,
        sliding: Heads { count: 4, width: 64 },
        global: Heads { count: 2, width: 128 },
        keys_as_values: true,
        borrowing: 0,
        feed_forward: 160,
        wide_tail: false,
        experts: Some(Experts { count: 8, used: 2, width: 96 }),
        per_layer: 0,
        window: TINY_WINDOW,
        context: TINY_CONTEXT,
    },
    vision: TINY_LARGE_VISION,
    audio: None,
};

pub(crate) static TINY_31B: Shape = Shape {
    text: Text {
        layers: 12,
        period: 6,
        width: 256,
        heads: 8,
        sliding: Heads { count: 4, width: 64 },
        global: Heads { count: 2, width: 128 },
        keys_as_values: true,
        borrowing: 0,
        feed_forward: 1024,
        wide_tail: false,
        experts: None,
        per_layer: 0,
        window: TINY_WINDOW,
        context: TINY_CONTEXT,
    },
    vision: TINY_LARGE_VISION,
    audio: None,
};
