//! Small types for names and numbers, so that one cannot be taken for another.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Milliseconds since 1970-01-01 UTC by the machine's wall clock. It is stored and shown, and never used to measure a
/// duration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Adds `span`; returns the latest possible timestamp instead of an overflow.
    #[must_use]
    pub fn saturating_add(self, span: std::time::Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// Subtracts `span`; returns the earliest possible timestamp instead of an overflow.
    #[must_use]
    pub fn saturating_sub(self, span: std::time::Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// Returns the time from `earlier` to this; zero if `earlier` is later.
    #[must_use]
    pub fn duration_since(self, earlier: Self) -> std::time::Duration {
        let millis = self.0.saturating_sub(earlier.0).max(0);
        std::time::Duration::from_millis(millis.unsigned_abs())
    }
}

/// The number of a job in this store. It has no meaning elsewhere: outside the store it occurs only in callback
/// addresses, under a seal, and the token names a job by its source and path instead.
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
    /// A service's name in `jobs.toml`. That of `[service]` is `default`, also if it is the embedded service.
    ServiceName
);
impl ServiceName {
    /// The name of `[service]`, and of the embedded service if none is configured.
    pub const DEFAULT: &str = "default";
}

text_name!(
    /// An upload at a service: its `audio_url` as received (interface, "Upload response"). Older releases kept only the
    /// last part of the address.
    UploadId
);
text_name!(
    /// A transcription's id at the service.
    TranscriptionId
);

impl TranscriptionId {
    /// The beginning of ids that no service gave.
    const ACCEPTED: &str = "accepted-";
    const JOINED: &str = "joined-";

    /// Returns the id that stands for a text that a person accepted, by the name of its recording's job.
    pub fn accepted(name: impl fmt::Display) -> Self {
        Self(format!("{}{name}", Self::ACCEPTED))
    }

    /// Whether no service has this transcription: a person accepted a text in its place.
    pub fn is_accepted(&self) -> bool {
        self.0.starts_with(Self::ACCEPTED)
    }

    /// Returns the id of a result that was joined from the results of a recording's parts.
    pub fn joined(parts: &Hash) -> Self {
        Self(format!("{}{parts}", Self::JOINED))
    }

    /// Whether no service has this transcription: it was joined from those of a recording's parts.
    pub fn is_joined(&self) -> bool {
        self.0.starts_with(Self::JOINED)
    }

    /// Whether no service has this transcription.
    pub fn is_own(&self) -> bool {
        self.is_accepted() || self.is_joined()
    }
}

/// A blake3 hash of 32 bytes, shown as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// What no content has: it stands for content that is not known, or that was not written by scribed.
    pub const OF_NOTHING: Self = Self([0; 32]);

    /// Computes the hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Parses 64 lower-case hexadecimal digits; `None` for anything else.
    pub fn parse(hex: &str) -> Option<Self> {
        let is_lower_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if hex.len() != 64 || !hex.bytes().all(is_lower_hex) {
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
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a hash of 64 digits"))
    }
}
