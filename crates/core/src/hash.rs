//! Content addresses: SHA-256, written as 64 hex digits.
//!
//! One hash serves the journal's chains, the blobs beside the log, and the before/after marks of file edits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// The SHA-256 of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Hashes one run of bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(bytes.as_ref()).into())
    }

    /// An identity that follows from the content alone.
    pub fn uuid(&self) -> uuid::Uuid {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ..] = self.0;
        uuid::Builder::from_custom_bytes([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]).into_uuid()
    }

    /// Hashes several fields so that no two different lists collide: each is preceded by its length.
    pub fn of_fields(fields: &[&[u8]]) -> Self {
        let mut sha = Sha256::new();
        for field in fields {
            sha.update((field.len() as u64).to_le_bytes());
            sha.update(field);
        }
        Self(sha.finalize().into())
    }
}

impl Hash {
    /// Its digits, made at once: every intent names several hashes, and a formatter per digit would show.
    fn digits(&self) -> [u8; 64] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |half: u8| DIGITS.get(usize::from(half)).copied().unwrap_or_default();
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 0xf)]);
        }
        digits
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::str::from_utf8(&self.digits()).map_or(Err(fmt::Error), |digits| f.write_str(digits))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not 64 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a SHA-256 in 64 hex digits")]
pub struct HashError(pub String);

impl FromStr for Hash {
    type Err = HashError;

    fn from_str(text: &str) -> Result<Self, HashError> {
        let mut hash = [0; 32];
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(HashError(text.to_owned()));
        }
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = std::str::from_utf8(pair)
                .ok()
                .filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()))
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                .ok_or_else(|| HashError(text.to_owned()))?;
        }
        Ok(Self(hash))
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        // Not through a formatter: every intent is written with several of them.
        s.serialize_str(std::str::from_utf8(&self.digits()).map_err(serde::ser::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digest_round_trips() {
        let hash = Hash::of("abc");
        let text = hash.to_string();
        assert_eq!(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(text.parse(), Ok(hash));
        assert!("+a".repeat(32).parse::<Hash>().is_err());
    }

    #[test]
    fn fields_do_not_run_together() {
        assert_ne!(Hash::of_fields(&[b"ab", b"c"]), Hash::of_fields(&[b"a", b"bc"]));
    }
}
