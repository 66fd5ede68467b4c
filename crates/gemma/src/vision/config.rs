//! What a file says of its vision, read once.

use rullama_gguf::Model;

use crate::{
    GemmaError, Medium, TowerError,
    clip::{self, Clips},
    config::{positive, within},
    media::text_width,
    names,
};

/// How pictures become soft rows.
#[derive(Debug, Clone, PartialEq)]
pub struct VisionConfig {
    /// Columns of a soft row: those of the text model.
    pub text_width: u32,
    /// Columns of a row before it is projected to the text model.
    pub width: u32,
    /// The side of what a file calls a patch, in pixels.
    patch: u32,
    /// How many of these lie along each side of a cell. A cell becomes one soft row.
    pooled: u32,
    /// Patches that a picture may have along each axis.
    pub positions: u32,
    /// Keeps norms away from zero.
    pub eps: f32,
    /// The tower; without one, cells are projected as they are.
    pub tower: Option<VisionTower>,
}

/// A vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct VisionTower {
    /// Blocks.
    pub blocks: u32,
    /// Attention heads of a block.
    pub heads: u32,
    /// Hidden columns of a block's feed-forward.
    pub feed_forward_width: u32,
    /// Which form of gelu the feed-forwards use.
    pub gelu: Gelu,
    pub(crate) clips: Clips,
}

/// A form of gelu.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gelu {
    /// With a hyperbolic tangent, as the models were trained.
    #[default]
    Tanh,
    /// The coarse form that llama.cpp uses: for comparisons with it.
    Quick,
}

/// Colours of a pixel.
pub(super) const CHANNELS: u32 = 3;

/// Axes along which patches are placed.
pub(super) const AXES: u32 = 2;

impl VisionConfig {
    /// Most soft rows of a picture, from coarse to fine.
    pub const BUDGETS: [u32; 5] = [70, 140, 280, 560, 1120];

    /// The maximum number of soft rows of a picture, unless a request sets another.
    pub const DEFAULT_BUDGET: u32 = 280;

    /// Reads and checks the description of a model's vision. `None` if the model has none.
    pub async fn read(model: &Model) -> Result<Option<Self>, TowerError> {
        if !Medium::of(model).contains(&Medium::Vision) {
            return Ok(None);
        }
        let mut config = Self::numbers(model)?;
        if let Some(tower) = &mut config.tower {
            let linears = &names::VISION_LINEARS;
            tower.clips = clip::read(model, names::VISION_BLOCKS, tower.blocks, linears).await?;
        }
        Ok(Some(config))
    }

    fn numbers(model: &Model) -> Result<Self, GemmaError> {
        let meta = Medium::Vision.metadata(model)?;
        let blocks = within(&meta, "block_count", 0..=1024, "at most 1024 blocks")?;
        let width = within(&meta, "embedding_length", 1..=65_536, "1 to 65536 columns")?;
        let patch = within(&meta, "patch_size", 1..=256, "1 to 256 pixels")?;
        let pooled = match meta.contains("projector.scale_factor") {
            true => within(&meta, "projector.scale_factor", 1..=16, "1 to 16 patches")?,
            false => 3,
        };
        if meta.contains("num_channels") {
            within(&meta, "num_channels", CHANNELS..=CHANNELS, "3: red, green and blue")?;
        }
        let eps = positive(&meta, "attention.layer_norm_epsilon")?;
        let tower = match blocks {
            0 => None,
            blocks => {
                let heads =
                    within(&meta, "attention.head_count", 1..=width, "at least one, and at most columns")?;
                // Each axis turns a half of a head, in pairs of columns.
                if !width.is_multiple_of(2 * AXES * heads) {
                    let (key, found) = ("attention.head_count", heads.to_string());
                    let expected = "heads of a multiple of four columns";
                    return Err(GemmaError::OutOfRange { key, found, expected });
                }
                let feed_forward_width =
                    within(&meta, "feed_forward_length", 1..=1 << 20, "1 to 1048576 columns")?;
                let (gelu, clips) = (Gelu::default(), Clips::new());
                Some(VisionTower { blocks, heads, feed_forward_width, gelu, clips })
            }
        };
        let (text_width, positions) =
            (text_width(model, names::VISION_PROJECTION)?, positions(model, width)?);
        Ok(Self { text_width, width, patch, pooled, positions, eps, tower })
    }

    /// The side of a patch, in pixels; without a tower, a cell is one patch.
    pub fn patch_side(&self) -> u32 {
        if self.tower.is_some() { self.patch } else { self.patch * self.pooled }
    }

    /// Values of a patch. They are from -1 to 1 for a tower, and from 0 to 1 without one.
    pub fn patch_width(&self) -> u32 {
        CHANNELS * self.patch_side() * self.patch_side()
    }

    /// The side of a cell, in patches.
    pub fn cell_side(&self) -> u32 {
        if self.tower.is_some() { self.pooled } else { 1 }
    }
}

impl VisionTower {
    pub(super) fn head_width(&self, width: u32) -> u32 {
        width / self.heads
    }
}

/// Entries of each position table.
fn positions(model: &Model, width: u32) -> Result<u32, GemmaError> {
    let name = names::PLACES;
    let tensor = model.tensor(name).ok_or_else(|| GemmaError::MissingTensor { name: name.to_owned() })?;
    match *tensor.shape.dims() {
        [columns, positions @ 1..=0x10_0000, 2] if columns == u64::from(width) => Ok(positions as u32),
        _ => {
            let rows = tensor.shape.dims().get(1).copied().unwrap_or(1);
            let expected = rullama_gguf::Shape::new(&[width.into(), rows, 2]).unwrap_or(tensor.shape);
            Err(GemmaError::WrongShape { name: name.to_owned(), found: tensor.shape, expected })
        }
    }
}
