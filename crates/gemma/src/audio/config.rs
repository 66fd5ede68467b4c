//! What a file says of its hearing, read once, and what no file says.

use rullama_gguf::Model;

use crate::{
    GemmaError, Medium, TowerError,
    clip::{self, Clips},
    config::within,
    media::text_width,
    names::{self, AudioNames, PROJECTOR_AUDIO, SINGLE_FILE_AUDIO},
};

/// How sound becomes soft rows.
#[derive(Debug, Clone, PartialEq)]
pub struct AudioConfig {
    /// Columns of a soft row: those of the text model.
    pub text_width: u32,
    /// Keeps norms away from zero. Some files say something else, which the models were not trained with.
    pub eps: f32,
    /// Columns of a row before it is projected to the text model: of the tower, or samples of a frame.
    pub width: u32,
    /// The tower; without one, frames of samples are projected as they are.
    pub tower: Option<AudioTower>,
}

/// An audio tower.
#[derive(Debug, Clone, PartialEq)]
pub struct AudioTower {
    /// Blocks.
    pub blocks: u32,
    /// Attention heads of a block.
    pub heads: u32,
    /// Hidden columns of a block's feed-forwards.
    pub feed_forward_width: u32,
    /// Steps of time that a block's convolution sees.
    pub kernel: u32,
    /// Channels after each of the convolutions in front of the blocks.
    pub channels: [u32; 2],
    /// Columns after the tower's own projection.
    pub output: u32,
    pub(crate) names: AudioNames,
    pub(crate) clips: Clips,
}

/// The inputs of a sound's graph: rows of values, one after another.
#[derive(Debug, Clone, PartialEq)]
pub struct AudioInputs {
    /// Mel bands of each frame, or its samples where there is no tower.
    pub frames: Vec<f32>,
    /// What stands for each distance between two rows; none without a tower.
    pub distances: Vec<f32>,
}

impl AudioInputs {
    /// The inputs by the names that the graph has for them.
    pub fn by_name(&self) -> Vec<(&'static str, &[f32])> {
        let all = [("frames", &self.frames), ("distances", &self.distances)];
        all.into_iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(name, values)| (name, &values[..]))
            .collect()
    }
}

impl AudioConfig {
    /// Samples of a second.
    pub const RATE: u32 = 16_000;

    /// Seconds that are encoded at once.
    pub const SECONDS: u32 = 30;

    /// Mel bands of a frame of a tower.
    pub const BANDS: u32 = 128;

    /// Rows that attention sees, the row itself included.
    pub(super) const WINDOW: u32 = 12;

    /// The bound of attention's scores.
    pub(super) const SCORE_CAP: f32 = 50.0;

    /// Reads and checks the description of a model's hearing. `None` if the model has none.
    pub async fn read(model: &Model) -> Result<Option<Self>, TowerError> {
        if !Medium::of(model).contains(&Medium::Audio) {
            return Ok(None);
        }
        let mut config = Self::numbers(model)?;
        if let Some(tower) = &mut config.tower {
            let linears = &names::AUDIO_LINEARS;
            tower.clips = clip::read(model, names::AUDIO_BLOCKS, tower.blocks, linears).await?;
        }
        Ok(Some(config))
    }

    fn numbers(model: &Model) -> Result<Self, GemmaError> {
        let meta = Medium::Audio.metadata(model)?;
        let text_width = text_width(model, names::AUDIO_PROJECTION)?;
        let blocks = within(&meta, "block_count", 0..=1024, "at most 1024 blocks")?;
        // What the projection takes: samples, or columns that the tower makes.
        let projected = extent(model, names::AUDIO_PROJECTION, 0, 65_536)?;
        let eps = 1e-6;
        if blocks == 0 {
            return Ok(Self { text_width, eps, width: projected, tower: None });
        }
        let width = within(&meta, "embedding_length", 2..=65_536, "2 to 65536 columns")?;
        let heads = within(&meta, "attention.head_count", 1..=width, "at least one, and at most columns")?;
        if !width.is_multiple_of(heads) || !width.is_multiple_of(2) {
            let (key, found) = ("attention.head_count", heads.to_string());
            let expected = "a divisor of `embedding_length`, which is even";
            return Err(GemmaError::OutOfRange { key, found, expected });
        }
        let feed_forward_width = within(&meta, "feed_forward_length", 1..=1 << 20, "1 to 1048576 columns")?;
        let names =
            if model.tensor(PROJECTOR_AUDIO.input).is_some() { PROJECTOR_AUDIO } else { SINGLE_FILE_AUDIO };
        let kernel = names::of_block(names::AUDIO_BLOCKS, 0, names::CONVOLUTION_KERNEL[0]);
        // Few enough that all values of a convolution can be counted.
        let channels = |name| extent(model, name, 3, 4096);
        let tower = AudioTower {
            blocks,
            heads,
            feed_forward_width,
            kernel: extent(model, &kernel, 0, 1024)?,
            channels: [channels(names::CONVOLUTIONS[0])?, channels(names::CONVOLUTIONS[1])?],
            output: projected,
            names,
            clips: Clips::new(),
        };
        Ok(Self { text_width, eps, width, tower: Some(tower) })
    }

    /// Values of a row of the graph's input: mel bands, or samples where there is no tower.
    pub fn frame_width(&self) -> u32 {
        if self.tower.is_some() { Self::BANDS } else { self.width }
    }

    /// How many soft rows so many frames become.
    pub fn soft_rows(&self, frames: usize) -> usize {
        if self.tower.is_some() { frames.div_ceil(2).div_ceil(2) } else { frames }
    }

    /// The inputs of a sound, from its frames.
    pub fn inputs(&self, frames: Vec<f32>) -> AudioInputs {
        let distances = if self.tower.is_some() { self.distances() } else { Vec::new() };
        AudioInputs { frames, distances }
    }

    /// For each distance, nearest first, sines and then cosines of it at all frequencies.
    fn distances(&self) -> Vec<f32> {
        let half = self.width / 2;
        let step = 10_000f64.ln() / f64::from((half - 1).max(1));
        let angles = |distance: u32| {
            (0..half).map(move |index| f64::from(distance) * (-f64::from(index) * step).exp())
        };
        let row = |distance| {
            let sines = angles(distance).map(|angle| angle.sin() as f32);
            sines.chain(angles(distance).map(|angle| angle.cos() as f32))
        };
        (0..Self::WINDOW).flat_map(row).collect()
    }
}

/// One of the extents of a tensor, which is at most `most`.
fn extent(model: &Model, name: &str, index: usize, most: u32) -> Result<u32, GemmaError> {
    let tensor = model.tensor(name).ok_or_else(|| GemmaError::MissingTensor { name: name.to_owned() })?;
    let found = tensor.shape.dims().get(index).copied().unwrap_or(1);
    u32::try_from(found).ok().filter(|found| (1..=most).contains(found)).ok_or_else(|| {
        let expected = rullama_gguf::Shape::new(&[1]).unwrap_or(tensor.shape);
        GemmaError::WrongShape { name: name.to_owned(), found: tensor.shape, expected }
    })
}
