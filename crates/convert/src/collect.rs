//! Finds the tensors of the table in a checkpoint: those that must be there, in the right shape, and no others.

use std::collections::HashSet;

use rullama_gemma::KvSource;

use crate::{
    ConvertError, TensorShape,
    config::{Audio, Described, Vision},
    table::{self, Dim, Kind, Line, Need, Transform},
    weights::{Stored, Weights},
};

/// Mel bands that the audio tower's convolutions leave, each of which halves them.
const BANDS_LEFT: u64 = 128 / 4;
const CHANNELS: u64 = 3;

/// Where a checkpoint keeps its decoder: with towers, and alone.
const TEXT_PREFIXES: [&str; 2] = ["model.language_model.", "model."];

/// Where a checkpoint keeps what makes soft tokens.
const TOWER_PREFIXES: [&str; 5] = [
    "model.vision_tower.",
    "model.vision_embedder.",
    "model.audio_tower.",
    "model.embed_vision.",
    "model.embed_audio.",
];

/// A tensor of the file that a tensor of the checkpoint becomes.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) stored: Stored,
    pub(crate) kind: Kind,
    pub(crate) transform: Transform,
    /// The decoder's layer it belongs to.
    pub(crate) layer: Option<usize>,
}

/// Finds all tensors. Without `towers`, those that make soft tokens are left out.
pub(crate) fn collect(
    weights: &Weights,
    described: &Described,
    towers: bool,
) -> Result<Vec<Found>, ConvertError> {
    let mut collector = Collector { weights, used: HashSet::new(), found: Vec::new() };
    let prefix = text_prefix(weights);
    let text = Scope { described, part: Part::Text, block: None };
    collector.lines(table::TEXT, &text, prefix, "")?;
    collector.line(&table::HEAD, &text, "", "")?;
    for block in 0..described.text.layers.len() {
        let scope = Scope { block: Some(block), ..text };
        collector.lines(
            table::TEXT_LAYER,
            &scope,
            &format!("{prefix}layers.{block}."),
            &format!("blk.{block}."),
        )?;
    }
    if towers {
        collector.vision(described)?;
        collector.audio(described)?;
    }
    collector.check_others(described, towers)?;
    Ok(collector.found)
}

fn text_prefix(weights: &Weights) -> &'static str {
    let has = |prefix: &&str| weights.names().any(|name| name.starts_with(*prefix));
    TEXT_PREFIXES.into_iter().find(has).unwrap_or(TEXT_PREFIXES[0])
}

struct Collector<'w> {
    weights: &'w Weights,
    used: HashSet<&'w str>,
    found: Vec<Found>,
}

impl<'w> Collector<'w> {
    fn vision(&mut self, described: &Described) -> Result<(), ConvertError> {
        let Some(vision) = described.vision else { return Ok(()) };
        let scope = Scope { described, part: Part::Vision, block: None };
        let Vision::Tower { keys, .. } = vision else {
            return self.lines(table::DIRECT_VISION, &scope, "model.", "");
        };
        self.lines(table::VISION, &scope, "model.", "")?;
        for block in 0..keys.blocks {
            let (from, to) =
                (format!("model.vision_tower.encoder.layers.{block}."), format!("v.blk.{block}."));
            self.lines(table::VISION_BLOCK, &scope, &from, &to)?;
            self.linears(table::VISION_LINEAR, &scope, &from, &to)?;
        }
        Ok(())
    }

    fn audio(&mut self, described: &Described) -> Result<(), ConvertError> {
        let Some(audio) = described.audio else { return Ok(()) };
        let scope = Scope { described, part: Part::Audio, block: None };
        let Audio::Tower { keys, .. } = audio else {
            return self.lines(table::DIRECT_AUDIO, &scope, "model.", "");
        };
        self.lines(table::AUDIO, &scope, "model.", "")?;
        for block in 0..keys.blocks {
            let (from, to) = (format!("model.audio_tower.layers.{block}."), format!("a.blk.{block}."));
            self.lines(table::AUDIO_BLOCK, &scope, &from, &to)?;
            self.linears(table::AUDIO_LINEAR, &scope, &from, &to)?;
        }
        Ok(())
    }

    fn lines(&mut self, lines: &[Line], scope: &Scope<'_>, from: &str, to: &str) -> Result<(), ConvertError> {
        lines.iter().try_for_each(|line| self.line(line, scope, from, to))
    }

    /// Linear layers and their bounds. The matrix is a layer inside the one that clamps, or in its place.
    fn linears(
        &mut self,
        lines: &[Line],
        scope: &Scope<'_>,
        from: &str,
        to: &str,
    ) -> Result<(), ConvertError> {
        for line in lines {
            let (from, to) = (format!("{from}{}", line.from), format!("{to}{}", line.to));
            let plain = format!("{from}.weight");
            let inner = format!("{from}.linear.weight");
            let name = if self.weights.get(&plain).is_some() { plain } else { inner };
            self.tensor(line, scope, name, format!("{to}.weight"))?;
            for bound in table::BOUNDS {
                self.line(bound, scope, &format!("{from}."), &format!("{to}."))?;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &Line, scope: &Scope<'_>, from: &str, to: &str) -> Result<(), ConvertError> {
        self.tensor(line, scope, format!("{from}{}", line.from), format!("{to}{}", line.to))
    }

    /// Takes a tensor, if the model has it.
    fn tensor(
        &mut self,
        line: &Line,
        scope: &Scope<'_>,
        from: String,
        to: String,
    ) -> Result<(), ConvertError> {
        let presence = scope.presence(line.need);
        if presence == Presence::No {
            return Ok(());
        }
        let Some((name, stored)) = self.weights.get_key_value(&from) else {
            return match presence {
                Presence::Maybe => Ok(()),
                _ => Err(ConvertError::MissingTensor { name: from }),
            };
        };
        let expected: Vec<u64> = line.shape.iter().map(|&dim| scope.extent(dim)).collect();
        // A scalar may also be written as a list of one.
        let scalar = expected.is_empty() && stored.shape == [1];
        if stored.shape != expected && !scalar {
            let (found, expected) = (TensorShape(stored.shape.clone()), TensorShape(expected));
            return Err(ConvertError::WrongShape { name: from, found, expected });
        }
        if stored.format().is_none() {
            return Err(ConvertError::WrongType { name: from, found: stored.type_name() });
        }
        self.used.insert(name);
        let layer = scope.block.filter(|_| scope.part == Part::Text);
        let (kind, transform) = (line.kind, line.transform);
        self.found.push(Found { name: to, stored: stored.clone(), kind, transform, layer });
        Ok(())
    }

    /// Refuses tensors that were not taken: they would silently be missing from the file.
    fn check_others(&self, described: &Described, towers: bool) -> Result<(), ConvertError> {
        let left_out = |name: &str| {
            // Made anew by every reader, or the same as the embedding table.
            let redundant =
                name.ends_with(".rotary_emb.inv_freq") || (described.tied && name == table::HEAD.from);
            redundant || (!towers && TOWER_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        };
        let mut others = self.weights.names().filter(|name| !self.used.contains(name) && !left_out(name));
        match others.next() {
            Some(name) => {
                let name = name.to_owned();
                Err(ConvertError::UnknownTensor { name, others: others.count() })
            }
            None => Ok(()),
        }
    }
}

/// Whether a model has a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Yes,
    Maybe,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Text,
    Vision,
    Audio,
}

/// What the words of the table mean at a place of the model.
#[derive(Clone, Copy)]
struct Scope<'d> {
    described: &'d Described,
    part: Part,
    block: Option<usize>,
}

impl Scope<'_> {
    fn presence(&self, need: Need) -> Presence {
        let Described { text, vision, audio, .. } = self.described;
        let layer = self.block.and_then(|block| text.layers.get(block));
        let owns = layer.is_none_or(|layer| layer.kv == KvSource::Own);
        let keys_as_values =
            self.described.keys_as_values && layer.is_some_and(|layer| layer.window.is_none());
        let yes = match need {
            Need::Always => true,
            Need::OwnKeys if !owns => return Presence::Maybe,
            Need::OwnKeys => true,
            Need::OwnValues if keys_as_values => false,
            Need::OwnValues if !owns => return Presence::Maybe,
            Need::OwnValues => true,
            Need::PerLayerEmbeddings => text.per_layer_width.is_some(),
            Need::MixtureOfExperts => text.experts.is_some(),
            Need::Untied => !self.described.tied,
            Need::Clipped => match self.part {
                Part::Vision => matches!(vision, Some(Vision::Tower { clipped: true, .. })),
                Part::Audio => matches!(audio, Some(Audio::Tower { clipped: true, .. })),
                Part::Text => false,
            },
            Need::Standardised => matches!(vision, Some(Vision::Tower { standardised: true, .. })),
        };
        if yes { Presence::Yes } else { Presence::No }
    }

    fn extent(&self, dim: Dim) -> u64 {
        if let Dim::Fixed(extent) = dim {
            return extent;
        }
        if dim == Dim::TextWidth {
            return self.described.text.width.into();
        }
        let extent = match self.part {
            Part::Text => self.text_extent(dim),
            Part::Vision => self.vision_extent(dim),
            Part::Audio => self.audio_extent(dim),
        };
        extent.unwrap_or_else(|| unreachable!("the table asks for {dim:?} where there is none"))
    }

    fn text_extent(&self, dim: Dim) -> Option<u64> {
        let text = &self.described.text;
        let layer = self.block.and_then(|block| text.layers.get(block));
        let per_layer = text.per_layer_width.map(u64::from);
        Some(match dim {
            Dim::Vocabulary => text.vocabulary.into(),
            Dim::Width => text.width.into(),
            Dim::PerLayer => per_layer?,
            Dim::AllLayers => per_layer? * text.layers.len() as u64,
            Dim::Head => layer?.head_width.into(),
            Dim::Queries => u64::from(layer?.heads) * u64::from(layer?.head_width),
            Dim::Keys => u64::from(layer?.kv_heads) * u64::from(layer?.head_width),
            Dim::Inner => layer?.feed_forward_width.into(),
            Dim::Experts => text.experts?.count.into(),
            Dim::ExpertInner => text.experts?.width.into(),
            Dim::ExpertInnerTwice => 2 * u64::from(text.experts?.width),
            _ => return None,
        })
    }

    fn vision_extent(&self, dim: Dim) -> Option<u64> {
        let vision = self.described.vision?;
        let (Vision::Tower { keys, positions, .. } | Vision::Direct { keys, positions }) = vision;
        let patch = u64::from(keys.patch);
        let side = patch * u64::from(keys.pooled);
        Some(match dim {
            Dim::Width => keys.width.into(),
            Dim::Inner => keys.feed_forward_width.into(),
            Dim::Positions => positions.into(),
            Dim::Patch => patch * patch * CHANNELS,
            Dim::LargePatch => side * side * CHANNELS,
            Dim::Head => match vision {
                Vision::Tower { head_width, .. } => head_width.into(),
                Vision::Direct { .. } => return None,
            },
            _ => return None,
        })
    }

    fn audio_extent(&self, dim: Dim) -> Option<u64> {
        let (keys, channels, output) = match self.described.audio? {
            Audio::Tower { keys, channels, output, .. } => (keys, channels.map(u64::from), output),
            Audio::Direct { keys } => return (dim == Dim::Samples).then_some(keys.width.into()),
        };
        let width = u64::from(keys.width);
        Some(match dim {
            Dim::Width => width,
            Dim::TwiceWidth => 2 * width,
            Dim::FourWidth => 4 * width,
            Dim::Head => width / u64::from(keys.heads),
            Dim::FirstChannels => channels[0],
            Dim::SecondChannels => channels[1],
            Dim::Subsampled => channels[1] * BANDS_LEFT,
            Dim::Kernel => keys.kernel.into(),
            Dim::Output => output.into(),
            _ => return None,
        })
    }
}
