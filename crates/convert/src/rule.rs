//! Formats of single tensors, which go before the mix.

use std::str::FromStr;

use rullama_gguf::Format;

use crate::ConvertError;

/// A format for tensors whose names are like a pattern.
///
/// Written `PATTERN=FORMAT`, where `*` in the pattern stands for any text: `v.*=q8_0`. Norms, scales, bounds,
/// convolutions and position tables stay in single precision, unless a rule without `*` names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorRule {
    pattern: String,
    format: Format,
}

impl TensorRule {
    /// A rule, if its format is one that can be written.
    ///
    /// # Errors
    ///
    /// If it is only read.
    pub fn new(pattern: impl Into<String>, format: Format) -> Result<Self, ConvertError> {
        if format.can_encode() {
            Ok(Self { pattern: pattern.into(), format })
        } else {
            Err(ConvertError::CannotEncode { format, expected: written() })
        }
    }

    /// The pattern.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Whether it is about one tensor only.
    pub(crate) fn is_exact(&self) -> bool {
        !self.pattern.contains('*')
    }

    pub(crate) fn is_like(&self, name: &str) -> bool {
        is_like(&self.pattern, name)
    }
}

/// The formats that can be written, as a list in a sentence.
fn written() -> String {
    let names = Format::ALL.iter().filter(|format| format.can_encode()).map(|format| format.name());
    names.collect::<Vec<_>>().join(", ")
}

/// Whether `name` is the pattern with some text in place of each `*`.
fn is_like(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    // There is always a first part; what follows the last `*` must be the end.
    let Some(mut rest) = parts.next().and_then(|start| name.strip_prefix(start)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        // The first place is as good as any: it leaves the most for what follows.
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

impl FromStr for TensorRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (pattern, format) = text.rsplit_once('=').ok_or("expected PATTERN=FORMAT, such as v.*=q8_0")?;
        if pattern.is_empty() {
            return Err("expected a pattern before `=`, such as v.*".to_owned());
        }
        let format: Format = format
            .parse()
            .map_err(|_| format!("`{format}` is not a format (expected one of {})", written()))?;
        Self::new(pattern, format).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_like_names() {
        for (pattern, name, expected) in [
            ("token_embd.weight", "token_embd.weight", true),
            ("token_embd", "token_embd.weight", false),
            ("v.*", "v.blk.0.ln1.weight", true),
            ("v.*", "av.blk.0.ln1.weight", false),
            ("*", "anything", true),
            ("*.attn_*.weight", "blk.3.attn_q.weight", true),
            ("*.attn_*.weight", "blk.3.ffn_up.weight", false),
            ("blk.*.ffn_down.weight", "blk.10.ffn_down.weight", true),
            ("blk.*.ffn_down.weight", "blk.10.ffn_down.weight.more", false),
            ("a*a", "a", false),
            ("**", "", true),
        ] {
            assert_eq!(is_like(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn rules_are_read() {
        let rule: TensorRule = "v.*=q8_0".parse().unwrap();
        assert_eq!((rule.pattern(), rule.format()), ("v.*", Format::Q8_0));
        for wrong in ["v.*", "=q8_0", "v.*=q3_k", "v.*=nothing"] {
            assert!(wrong.parse::<TensorRule>().is_err(), "{wrong}");
        }
    }
}
