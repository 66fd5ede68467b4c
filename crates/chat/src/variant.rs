//! Which of the two prompt styles a model was trained with, told from its name or its size.

/// The two styles of prompt in the Gemma 4 family.
///
/// They differ in one thing: with thinking off, a large model's prompt ends with an empty thought, which
/// keeps it from thinking anyway; a small model's prompt ends with the open turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// E2B and E4B.
    Small,
    /// 12B, 26B and 31B.
    Large,
}

impl Variant {
    /// The parameter count from which a model without a size in its name is a large one.
    const LARGE_FROM: f64 = 12e9;

    /// Resolves the renderer named in a model's config.
    ///
    /// `gemma4-small` and `gemma4-large` say it themselves. For anything else, `names` are searched in
    /// order (Ollama gives the short name, then the full one), and then the parameter count in `model_type`
    /// decides. A model nothing is known about is small.
    ///
    /// ```
    /// use rullama_chat::Variant;
    ///
    /// assert_eq!(Variant::resolve("gemma4", &["gemma4:e2b"], "5.1B"), Variant::Small);
    /// assert_eq!(Variant::resolve("gemma4", &["gemma4:latest"], "25.8B"), Variant::Large);
    /// ```
    #[must_use]
    pub fn resolve(renderer: &str, names: &[&str], model_type: &str) -> Self {
        match renderer {
            "gemma4-small" => Self::Small,
            "gemma4-large" => Self::Large,
            _ => names
                .iter()
                .find_map(|name| Self::from_name(name))
                .or_else(|| Self::from_model_type(model_type))
                .unwrap_or(Self::Small),
        }
    }

    /// The variant a model name tells by its size, if it does.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let has = |sizes: &[&str]| sizes.iter().any(|size| name.contains(size));
        if has(&["e2b", "e4b"]) {
            Some(Self::Small)
        } else if has(&["12b", "26b", "31b"]) {
            Some(Self::Large)
        } else {
            None
        }
    }

    /// The variant for a parameter count as configs write it: "8.0B", "270M", "500K".
    #[must_use]
    pub fn from_model_type(model_type: &str) -> Option<Self> {
        let model_type = model_type.trim();
        let (unit_at, unit) = model_type.char_indices().next_back()?;
        let unit = match unit.to_ascii_uppercase() {
            'B' => 1e9,
            'M' => 1e6,
            'K' => 1e3,
            _ => return None,
        };
        let count = model_type[..unit_at].trim_end().parse::<f64>().ok().filter(|count| count.is_finite())?;
        Some(if count * unit >= Self::LARGE_FROM { Self::Large } else { Self::Small })
    }
}

#[cfg(test)]
mod tests {
    use super::Variant::{self, Large, Small};

    #[test]
    fn names_come_before_sizes_and_short_names_before_full_ones() {
        for (renderer, names, model_type, expected) in [
            ("gemma4", &["gemma4:e2b"][..], "", Small),
            ("gemma4", &["gemma4:E4B-it-q8_0"], "31B", Small),
            ("gemma4", &["gemma4:12b"], "", Large),
            ("gemma4", &["gemma4:26b-a4b"], "5.1B", Large),
            ("gemma4", &["Gemma4-31B"], "", Large),
            ("gemma4", &["mine:latest", "hf.co/someone/gemma-4-26B/mine"], "8.0B", Large),
            ("gemma4", &["mine:e2b", "hf.co/someone/gemma-4-26B/mine"], "", Small),
            ("gemma4", &["gemma4:latest"], "8.0B", Small),
            ("gemma4", &["gemma4:latest"], "25.8B", Large),
            ("gemma4", &["gemma4:latest"], "12B", Large),
            ("gemma4", &["gemma4:latest"], "11.9b", Small),
            ("gemma4", &["gemma4:latest"], "270M", Small),
            ("gemma4", &["gemma4:latest"], "12000M", Large),
            ("gemma4", &["gemma4:latest"], "", Small),
            ("gemma4", &[], "many", Small),
            ("gemma4", &[], "B", Small),
            ("gemma4", &[], "12é", Small),
            ("gemma4-large", &["gemma4:e2b"], "5.1B", Large),
            ("gemma4-small", &["gemma4:31b"], "31B", Small),
            ("", &["gemma4:31b"], "", Large),
        ] {
            let found = Variant::resolve(renderer, names, model_type);
            assert_eq!(found, expected, "{renderer} {names:?} {model_type}");
        }
    }
}
