//! The formats in which executors store keys and values.

use std::{error::Error, fmt, str::FromStr};

/// The format in which an executor stores the keys and values of a cache.
///
/// There is no default: the CPU reference stores F32 to be exact, a GPU stores F16 to be fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheFormat {
    /// Single precision: values are stored exactly.
    F32,
    /// Half precision, as in most engines.
    F16,
    /// Signed bytes in blocks of 32 values that share a scale.
    Q8,
}

impl CacheFormat {
    /// All formats, the most exact first.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Q8];

    /// The format's name on command lines and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Q8 => "q8",
        }
    }
}

/// The name of a cache format that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCacheFormat(String);

impl fmt::Display for UnknownCacheFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a format for keys and values; expected f32, f16 or q8", self.0)
    }
}

impl Error for UnknownCacheFormat {}

impl FromStr for CacheFormat {
    type Err = UnknownCacheFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|format| format.as_str() == name);
        found.ok_or_else(|| UnknownCacheFormat(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name() {
        for format in CacheFormat::ALL {
            assert_eq!(format.as_str().parse(), Ok(format));
        }
        let error = "Q8".parse::<CacheFormat>().unwrap_err();
        assert_eq!(error.to_string(), "`Q8` is not a format for keys and values; expected f32, f16 or q8");
    }
}
