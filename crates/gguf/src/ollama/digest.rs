//! The sha256 digests by which blobs are named.

use std::{fmt, io, str::FromStr};

use sha2::{Digest as _, Sha256};

/// A sha256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of everything `input` gives, telling `progress` the bytes done so far.
    pub fn of_reader(mut input: impl io::Read, mut progress: impl FnMut(u64)) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        let mut done = 0;
        loop {
            match input.read(&mut buffer) {
                Ok(0) => return Ok(Self(hasher.finalize().into())),
                Ok(count) => {
                    hasher.update(&buffer[..count]);
                    done += count as u64;
                    progress(done);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The name of the blob with this digest.
    pub fn blob_name(&self) -> String {
        format!("sha256-{}", self.hex())
    }

    /// The digest in hexadecimal, without a prefix.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Reads `sha256:` or `sha256-` and 64 hexadecimal digits.
impl FromStr for Digest {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let hex = text.strip_prefix("sha256:").or_else(|| text.strip_prefix("sha256-")).ok_or(())?;
        if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(());
        }
        let mut digest = [0; 32];
        for (index, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).map_err(|_| ())?;
        }
        Ok(Self(digest))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_nothing_is_the_published_one() {
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").hex(), hex);
        assert_eq!(format!("sha256:{hex}").parse(), Ok(Digest::of(b"")));
        assert_eq!(Digest::of(b"").blob_name().parse(), Ok(Digest::of(b"")));
    }

    #[test]
    fn reading_in_pieces_gives_the_same_digest() {
        let bytes: Vec<u8> = (0..3_000_000u32).map(|i| i as u8).collect();
        let mut seen = 0;
        assert_eq!(Digest::of_reader(&bytes[..], |done| seen = done).unwrap(), Digest::of(&bytes));
        assert_eq!(seen, bytes.len() as u64);
    }

    #[test]
    fn other_texts_are_no_digests() {
        let hex = "0".repeat(63);
        for text in [String::new(), hex.clone(), format!("sha256:{hex}"), format!("sha256:{hex}é")] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
