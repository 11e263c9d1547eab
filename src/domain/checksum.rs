//! Checksums that others gave for a file.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A checksum algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// 128 bits.
    Md5,
    /// 160 bits.
    Sha1,
    /// 256 bits.
    Sha256,
    /// 512 bits.
    Sha512,
}

impl Algorithm {
    /// All algorithms, the stronger ones first.
    pub const ALL: [Self; 4] = [Self::Sha512, Self::Sha256, Self::Sha1, Self::Md5];

    /// Returns the name as in a column's head and in the name of a bag's manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn digits(self) -> usize {
        match self {
            Self::Md5 => 32,
            Self::Sha1 => 40,
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

/// A checksum of a whole file: its algorithm, and lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checksum {
    algorithm: Algorithm,
    digits: String,
}

impl Checksum {
    /// Parses hexadecimal digits of either case; `None` if their number is not that of the algorithm.
    pub fn parse(algorithm: Algorithm, digits: &str) -> Option<Self> {
        let fits = digits.len() == algorithm.digits() && digits.bytes().all(|c| c.is_ascii_hexdigit());
        fits.then(|| Self { algorithm, digits: digits.to_ascii_lowercase() })
    }

    /// Formats the output of an algorithm.
    pub fn of_bytes(algorithm: Algorithm, bytes: &[u8]) -> Self {
        Self { algorithm, digits: bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
    }

    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub fn digits(&self) -> &str {
        &self.digits
    }
}

/// `sha256:…`
impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.digits)
    }
}

impl Serialize for Checksum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Checksum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed = text.split_once(':').and_then(|(name, digits)| {
            let algorithm = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)?;
            Self::parse(algorithm, digits)
        });
        parsed.ok_or_else(|| serde::de::Error::custom("no checksum"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_either_case_and_of_one_length() {
        let sum = Checksum::parse(Algorithm::Md5, "D41D8CD98F00B204E9800998ECF8427E").unwrap();
        assert_eq!(sum.to_string(), "md5:d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(serde_json::from_str::<Checksum>(&serde_json::to_string(&sum).unwrap()).unwrap(), sum);
        assert_eq!(Checksum::parse(Algorithm::Sha256, sum.digits()), None);
        assert_eq!(Checksum::parse(Algorithm::Md5, &"g".repeat(32)), None);
    }
}
