//! The token: a mark in a transcription's metadata, by which it is found again in a service's lists.

use crate::domain::job::JobTag;
use crate::domain::names::{Hash, ServiceName};
use crate::domain::sent_audio::ExtractedPart;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The key in `custom_metadata` that scribed uses.
pub const RESERVED_KEY: &str = "scribed";

/// The mark in `custom_metadata` of a recording that must not leave the site (`local_only`): an embedded service gives it
/// only to recognisers that are local.
pub const LOCAL_MARK: &str = "scribed_local";

/// What is bought: this content with these parameters from this service. Jobs with the same key share one
/// transcription.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PurchaseKey {
    pub service: ServiceName,
    /// The hash of the whole file, whatever part of it is sent: a changed `upload` setting buys nothing again.
    pub content: Hash,
    /// The hash of the rendered parameters without `audio_url`, `custom_metadata` and the callback, but with the track
    /// selection.
    pub params: Hash,
}

/// Written as `1.<content>.<parameters>.<job>.<purchase>`: both hashes whole, and the job as 32 digits of the hash of
/// its source's name and path, because a path may be longer than the metadata may be. About 170 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Token {
    pub content: Hash,
    pub params: Hash,
    pub job: JobTag,
    pub round: u32,
}

impl Token {
    /// The longest text of a token, without an extracted part.
    #[cfg(test)]
    pub const MAX_LEN: usize = 2 + 64 + 1 + 64 + 1 + 32 + 1 + 10;

    /// Makes the token for a purchase of a job.
    pub fn new(order: &PurchaseKey, job: JobTag, round: u32) -> Self {
        Self { content: order.content, params: order.params, job, round }
    }

    /// Returns the form in the metadata if only a sound track was sent: `2.…`, followed by how it was extracted. It is
    /// the same token: what was sent does not change what is bought.
    pub fn encode_with_part(&self, cut: Option<ExtractedPart>) -> String {
        match (self.to_string().strip_prefix("1."), cut) {
            (Some(rest), Some(cut)) => format!("2.{rest}.{cut}"),
            _ => self.to_string(),
        }
    }

    /// Parses the form in the metadata; `None` for anything that is not exactly a token.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_with_part(text).map(|(token, _)| token)
    }

    /// Like [`Token::parse`], and also returns the extracted part.
    pub fn parse_with_part(text: &str) -> Option<(Self, Option<ExtractedPart>)> {
        let Some(rest) = text.strip_prefix("2.") else { return Some((Self::parse_bare(text)?, None)) };
        let (rest, cut) = rest.rsplit_once('.')?;
        Some((Self::parse_bare(&format!("1.{rest}"))?, Some(ExtractedPart::parse(cut)?)))
    }

    fn parse_bare(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('.').collect();
        let ["1", content, params, job, round] = parts.as_slice() else { return None };
        let token = Self {
            content: Hash::parse(content)?,
            params: Hash::parse(params)?,
            job: JobTag(u128::from_str_radix(job, 16).ok()?.to_be_bytes()),
            round: round.parse().ok()?,
        };
        (token.to_string() == text).then_some(token)
    }

    /// Returns what the token's transcription bought at this service.
    pub fn purchase_key(&self, service: &ServiceName) -> PurchaseKey {
        PurchaseKey { service: service.clone(), content: self.content, params: self.params }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}.{}.{}.{}", self.content, self.params, self.job, self.round)
    }
}

impl From<Token> for String {
    fn from(token: Token) -> Self {
        token.to_string()
    }
}

impl TryFrom<String> for Token {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not a token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::sent_audio::Codec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_token_comes_back(content: [u8; 32], params: [u8; 32], job: [u8; 16], round: u32) {
            let token = Token { content: Hash(content), params: Hash(params), job: JobTag(job), round };
            let text = token.to_string();
            prop_assert!(text.len() <= Token::MAX_LEN);
            prop_assert_eq!(Token::parse(&text), Some(token));
        }

        #[test]
        fn what_was_sent_is_said_along_and_makes_no_other_token(content: [u8; 32], round: u32, track: u32, start_ms: u64) {
            let token = Token { content: Hash(content), params: Hash(content), job: JobTag([7; 16]), round };
            let cut = ExtractedPart { codec: Codec::Opus, track, start_ms };
            let text = token.encode_with_part(Some(cut));
            prop_assert!(text.starts_with("2.") && text.len() <= Token::MAX_LEN + 50, "{}", text);
            prop_assert_eq!(Token::parse_with_part(&text), Some((token.clone(), Some(cut))));
            prop_assert_eq!(Token::parse(&text), Some(token.clone()));
            prop_assert_eq!(token.encode_with_part(None), token.to_string());
        }

        #[test]
        fn nothing_else_is_a_token(text in ".*") {
            prop_assert_eq!(Token::parse(&text), None);
        }
    }
}
