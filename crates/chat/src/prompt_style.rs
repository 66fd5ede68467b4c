//! The two prompt styles of the family.

/// The two styles of prompt in the Gemma 4 family.
///
/// They differ in one thing: with thinking off, a large model's prompt ends with an empty thought, which keeps the model
/// from thinking; a small model's prompt ends with the open turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PromptStyle {
    /// E2B and E4B.
    Small,
    /// 12B, 26B and 31B.
    Large,
}

impl PromptStyle {
    /// The style that a renderer of Ollama states by its name, if it states one. The renderer `gemma4` does not: it leaves
    /// the choice to the model.
    ///
    /// ```
    /// use rullama_chat::PromptStyle;
    ///
    /// assert_eq!(PromptStyle::from_renderer("gemma4-large"), Some(PromptStyle::Large));
    /// assert_eq!(PromptStyle::from_renderer("gemma4"), None);
    /// ```
    #[must_use]
    pub fn from_renderer(renderer: &str) -> Option<Self> {
        match renderer {
            "gemma4-small" => Some(Self::Small),
            "gemma4-large" => Some(Self::Large),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_renderers_state_a_style() {
        for (renderer, style) in [
            ("gemma4-small", Some(PromptStyle::Small)),
            ("gemma4-large", Some(PromptStyle::Large)),
            ("gemma4", None),
            ("gemma3", None),
            ("", None),
        ] {
            assert_eq!(PromptStyle::from_renderer(renderer), style, "{renderer}");
        }
    }
}
