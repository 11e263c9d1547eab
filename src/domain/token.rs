//! The token: a mark in a transcription's metadata, by which it is found again in a service's lists.

use crate::domain::job::JobTag;
use crate::domain::names::{Hash, ServiceName};
use crate::domain::sent_audio::ExtractedPart;
use crate::domain::split::PartRange;
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
    /// The part of the recording; `None` if it is bought whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartRange>,
}

impl PurchaseKey {
    /// Returns the key of the whole recording.
    #[must_use]
    pub fn whole(&self) -> Self {
        Self { part: None, ..self.clone() }
    }
}

/// Written as `1.<content>.<parameters>.<job>.<purchase>`: both hashes whole, and the job as 32 digits of the hash of
/// its source's name and path, because a path may be longer than the metadata may be. About 170 characters. A part of a
/// recording is written as `3.….<from>_<to>`, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Token {
    pub content: Hash,
    pub params: Hash,
    pub job: JobTag,
    pub purchase_number: u32,
    /// The part of the recording, if it is sent in parts.
    pub part: Option<PartRange>,
}

impl Token {
    /// The longest text of a token, without an extracted part.
    #[cfg(test)]
    pub const MAX_LEN: usize = 2 + 64 + 1 + 64 + 1 + 32 + 1 + 10 + 1 + 41;

    /// Makes the token for a purchase of a job.
    pub fn new(purchase_key: &PurchaseKey, job: JobTag, purchase_number: u32) -> Self {
        let PurchaseKey { content, params, part, .. } = *purchase_key;
        Self { content, params, job, purchase_number, part }
    }

    /// Returns the form in the metadata if only a sound track was sent: `2.…`, or `4.…` of a part of the recording,
    /// followed by how it was extracted. It is the same token: what was sent does not change what is bought.
    pub fn encode_with_part(&self, cut: Option<ExtractedPart>) -> String {
        let bare = self.to_string();
        let Some(cut) = cut else { return bare };
        match bare.split_once('.') {
            Some(("1", rest)) => format!("2.{rest}.{cut}"),
            Some(("3", rest)) => format!("4.{rest}.{cut}"),
            _ => bare,
        }
    }

    /// Parses the form in the metadata; `None` for anything that is not exactly a token.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_with_part(text).map(|(token, _)| token)
    }

    /// Like [`Token::parse`], and also returns the extracted part.
    pub fn parse_with_part(text: &str) -> Option<(Self, Option<ExtractedPart>)> {
        let (bare, rest) = match text.split_once('.') {
            Some(("2", rest)) => ("1", rest),
            Some(("4", rest)) => ("3", rest),
            _ => return Some((Self::parse_bare(text)?, None)),
        };
        let (rest, cut) = rest.rsplit_once('.')?;
        Some((Self::parse_bare(&format!("{bare}.{rest}"))?, Some(ExtractedPart::parse(cut)?)))
    }

    fn parse_bare(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split('.').collect();
        let (content, params, job, purchase_number, part) = match fields.as_slice() {
            ["1", content, params, job, purchase_number] => (content, params, job, purchase_number, None),
            ["3", content, params, job, purchase_number, part] => {
                (content, params, job, purchase_number, Some(PartRange::parse(part)?))
            }
            _ => return None,
        };
        let token = Self {
            content: Hash::parse(content)?,
            params: Hash::parse(params)?,
            job: JobTag(u128::from_str_radix(job, 16).ok()?.to_be_bytes()),
            purchase_number: purchase_number.parse().ok()?,
            part,
        };
        (token.to_string() == text).then_some(token)
    }

    /// Returns what the token's transcription bought at this service.
    pub fn purchase_key(&self, service: &ServiceName) -> PurchaseKey {
        PurchaseKey { service: service.clone(), content: self.content, params: self.params, part: self.part }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { content, params, job, purchase_number, part } = self;
        match part {
            None => write!(f, "1.{content}.{params}.{job}.{purchase_number}"),
            Some(part) => write!(f, "3.{content}.{params}.{job}.{purchase_number}.{part}"),
        }
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
        fn a_token_comes_back(
            content: [u8; 32],
            params: [u8; 32],
            job: [u8; 16],
            purchase_number: u32,
            from_ms in proptest::option::of(0..u64::MAX - 1),
        ) {
            let (content, params, job) = (Hash(content), Hash(params), JobTag(job));
            let part = from_ms.map(|from_ms| PartRange { from_ms, to_ms: from_ms + 1 });
            let token = Token { content, params, job, purchase_number, part };
            let text = token.to_string();
            prop_assert!(text.len() <= Token::MAX_LEN);
            prop_assert_eq!(Token::parse(&text), Some(token));
        }

        #[test]
        fn what_was_sent_is_said_along_and_makes_no_other_token(
            content: [u8; 32],
            purchase_number: u32,
            track: u32,
            start_ms: u64,
            is_part: bool,
        ) {
            let (content, job) = (Hash(content), JobTag([7; 16]));
            let part = is_part.then_some(PartRange { from_ms: 0, to_ms: 7_200_000 });
            let token = Token { content, params: content, job, purchase_number, part };
            let cut = ExtractedPart { codec: Codec::Opus, track, start_ms };
            let text = token.encode_with_part(Some(cut));
            prop_assert!(text.starts_with(if is_part { "4." } else { "2." }) && text.len() <= Token::MAX_LEN + 50, "{}", text);
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
