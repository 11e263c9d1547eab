//! Names of things: small types so that one cannot be taken for another.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Milliseconds since 1970-01-01 UTC, by the machine's wall clock. What is stored and shown; never
/// used to measure how long something took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This moment and `span` more; the far end of time instead of an overflow.
    #[must_use]
    pub fn saturating_add(self, span: std::time::Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// This moment less `span`; the far beginning of time instead of an overflow.
    #[must_use]
    pub fn saturating_sub(self, span: std::time::Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// How long from `earlier` to this; zero when `earlier` is later.
    #[must_use]
    pub fn duration_since(self, earlier: Self) -> std::time::Duration {
        let millis = self.0.saturating_sub(earlier.0).max(0);
        std::time::Duration::from_millis(millis.unsigned_abs())
    }
}

/// The number of a job in this store. Outside of it it means nothing, and stands only in the address of a
/// callback, under a seal of our own: the token names a job by its source and path instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

macro_rules! text_name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes the text as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_name!(
    /// A source's name in `jobs.toml`.
    SourceName
);
text_name!(
    /// A service's name in `jobs.toml`: `default` for `[service]`, also when it is the embedded one.
    ServiceName
);
impl ServiceName {
    /// The name of `[service]`, and of the embedded one where nothing is said.
    pub const DEFAULT: &str = "default";
}

text_name!(
    /// An uploaded file at a service: its `audio_url` as received (interface, "Upload response"). Older releases kept
    /// the last part of the address.
    UploadId
);
text_name!(
    /// A transcription's id at the service.
    TranscriptionId
);

/// A blake3 hash of 32 bytes, shown as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// 64 lower-case hexadecimal digits back into a hash; `None` for anything else.
    pub fn parse(hex: &str) -> Option<Self> {
        let lower = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if hex.len() != 64 || !hex.bytes().all(lower) {
            return None;
        }
        blake3::Hash::from_hex(hex).ok().map(|hash| Self(*hash.as_bytes()))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a hash of 64 digits"))
    }
}
