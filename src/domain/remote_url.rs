//! Remote recordings: audio that the service fetches from an address, and the hash that stands for its content.

use super::names::Hash;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// An http or https address of a remote recording. Its query may contain a signature that gives access to anybody who
/// reads it. Only its [`name`](RemoteUrl::name) is therefore shown, logged and hashed.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct RemoteUrl(String);

/// The longest address in bytes; common servers refuse longer ones.
pub const LONGEST_URL: usize = 8_000;

impl RemoteUrl {
    /// Parses an address, and removes its fragment.
    ///
    /// # Errors
    /// What is wrong with the address, as text.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let scheme = ["http://", "https://"].into_iter().find(|scheme| starts_with(text, scheme));
        let Some(scheme) = scheme else { return Err("must begin with http:// or https://") };
        if text.len() > LONGEST_URL {
            return Err("must be at most 8000 bytes long");
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err("must not contain blanks: write %20 instead");
        }
        let host = text[scheme.len()..].split(['/', '?', '#']).next().unwrap_or_default();
        match host {
            _ if host.contains('@') => Err("must not contain a user or a password: the request would show them"),
            "" => Err("must name a host"),
            _ => Ok(Self(text.split('#').next().unwrap_or_default().to_owned())),
        }
    }

    /// Returns the whole address as it is sent. It is a secret.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the address without its signature. It identifies the recording and may be shown; a signature is new each
    /// time the address is handed out.
    pub fn name(&self) -> String {
        let Some((address, query)) = self.0.split_once('?') else { return self.0.clone() };
        let is_azure = query.split('&').any(|pair| key_of(pair) == "sig");
        let kept: Vec<&str> = query.split('&').filter(|pair| !is_signature(&key_of(pair), is_azure)).collect();
        if kept.is_empty() { address.to_owned() } else { format!("{address}?{}", kept.join("&")) }
    }

    /// Returns text of others with this address replaced by its name, and its query replaced wherever it contains a
    /// signature.
    pub fn redacted(&self, text: &str) -> String {
        let (name, secret) = (self.name(), self.0.split_once('?').map(|(_, query)| query));
        let text = text.replace(&self.0, &name);
        match secret {
            Some(secret) if name.len() < self.0.len() => text.replace(secret, "…"),
            _ => text,
        }
    }

    /// Returns the decoded last part of the path as a plain file name; `audio` if there is none.
    pub fn file_name(&self) -> String {
        let path = self.0.split('?').next().unwrap_or_default();
        let below_host = path.splitn(4, '/').nth(3).unwrap_or_default();
        let last = below_host.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let plain: String = String::from_utf8_lossy(&percent_decode(last.as_bytes()))
            .chars()
            .map(|c| if c == '/' || c.is_control() { '_' } else { c })
            .collect();
        match plain.as_str() {
            "" | "." | ".." => "audio".to_owned(),
            _ => plain,
        }
    }
}

/// Returns text of others without the queries of addresses that were signed for a bucket.
pub fn without_signatures(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | ')');
    let without_query = |word: &str| match word.split_once('?') {
        Some((address, query)) if query.contains("X-Amz-") => {
            let end = query.find(ends).unwrap_or(query.len());
            format!("{address}{}", &query[end..])
        }
        _ => word.to_owned(),
    };
    text.split_inclusive(ends).map(without_query).collect()
}

/// Returns a hash that stands for the content of a remote recording. It never equals the hash of a file. `name`:
/// [`RemoteUrl::name`] or another lasting identifier; `etag` and `size` (bytes), if they are known.
pub fn surrogate_hash(name: &str, etag: Option<&str>, size: Option<u64>) -> Hash {
    let (etag, size) = (etag.unwrap_or_default(), size.map(|size| size.to_string()).unwrap_or_default());
    let parts = [name, etag, &size];
    // Each part is preceded by its length, so that different parts never give the same text.
    let text: String = parts.iter().map(|part| format!("{}:{part},", part.len())).collect();
    Hash(blake3::derive_key("scribed 2026 audio that a service fetches", text.as_bytes()))
}

impl fmt::Debug for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteUrl({})", self.name())
    }
}

impl<'de> Deserialize<'de> for RemoteUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

fn starts_with(text: &str, scheme: &str) -> bool {
    text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

fn key_of(pair: &str) -> String {
    pair.split('=').next().unwrap_or_default().to_ascii_lowercase()
}

/// Whether S3, Google, Azure, CloudFront and similar services use this key to sign an address or to grant access.
fn is_signature(key: &str, is_azure: bool) -> bool {
    const KEYS: [&str; 10] = [
        "signature",
        "sig",
        "expires",
        "policy",
        "key-pair-id",
        "awsaccesskeyid",
        "googleaccessid",
        "ossaccesskeyid",
        "token",
        "access_token",
    ];
    const AZURE: [&str; 14] =
        ["sv", "ss", "srt", "sr", "sp", "se", "st", "spr", "skoid", "sktid", "skt", "ske", "sks", "skv"];
    let prefixes = ["x-amz-", "x-goog-", "x-oss-"];
    KEYS.contains(&key) || prefixes.iter().any(|prefix| key.starts_with(prefix)) || (is_azure && AZURE.contains(&key))
}

/// Decodes `%20` and other percent escapes. Invalid ones stay as they are.
pub fn percent_decode(bytes: &[u8]) -> Vec<u8> {
    let (mut decoded, mut position) = (Vec::with_capacity(bytes.len()), 0);
    while position < bytes.len() {
        let hex = (bytes[position] == b'%')
            .then(|| std::str::from_utf8(bytes.get(position + 1..position + 3)?).ok())
            .flatten()
            // `from_str_radix` would take a sign.
            .filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                position += 3;
            }
            None => {
                decoded.push(bytes[position]);
                position += 1;
            }
        }
    }
    decoded
}

/// Encodes bytes for an address: letters, digits, `-`, `.`, `_`, `~` (RFC 3986, "Unreserved Characters") and those of
/// `kept` stay.
pub fn percent_encode(bytes: &[u8], kept: &[u8]) -> String {
    let mut encoded = String::with_capacity(bytes.len());
    for byte in bytes {
        let is_unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        match is_unreserved || kept.contains(byte) {
            true => encoded.push(char::from(*byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn url(text: &str) -> RemoteUrl {
        RemoteUrl::parse(text).unwrap()
    }

    #[test]
    fn the_same_recording_signed_again_has_the_same_name_and_shows_no_signature() {
        let signed = [
            "https://b.s3.amazonaws.com/a%20b.mp3?X-Amz-Signature=abc&X-Amz-Date=1&versionId=7",
            "https://b.s3.amazonaws.com/a%20b.mp3?versionId=7&X-Amz-Expires=60&x-amz-signature=def",
        ];
        let names = signed.map(|text| url(text).name());
        assert_eq!(names[0], "https://b.s3.amazonaws.com/a%20b.mp3?versionId=7");
        assert_eq!(names[0], names[1]);
        assert_eq!(url("https://h/x?se=1&sp=r&sig=zzz").name(), "https://h/x");
        assert_eq!(url("https://h/x?sp=r&id=5").name(), "https://h/x?sp=r&id=5", "these sign nothing alone");
        assert!(!format!("{:?}", url(signed[0])).contains("abc"));
    }

    #[test]
    fn what_a_service_repeats_of_it_shows_no_signature() {
        let signed = url("https://h/a.mp3?token=s3cret");
        let words = "cannot fetch https://h/a.mp3?token=s3cret (query: token=s3cret)";
        assert_eq!(signed.redacted(words), "cannot fetch https://h/a.mp3 (query: …)");
        assert_eq!(url("https://h/a?id=5").redacted("https://h/a?id=5 is gone"), "https://h/a?id=5 is gone");
    }

    #[test]
    fn what_is_no_address_is_told() {
        let wrong = |text: &str| RemoteUrl::parse(text).unwrap_err();
        assert!(wrong("ftp://h/a").contains("http"));
        assert!(wrong("https://user:pw@h/a").contains("password"));
        assert!(wrong("https:///a").contains("host"));
        assert!(wrong("https://h/a b").contains("%20"));
        assert!(RemoteUrl::parse("HTTPS://h/a@b?c=@#frag").is_ok_and(|url| url.expose() == "HTTPS://h/a@b?c=@"));
    }

    #[test]
    fn outputs_are_named_after_the_last_part() {
        let name = |text: &str| url(text).file_name();
        assert_eq!(name("https://h/a/b%20c.mp3?x=1"), "b c.mp3");
        assert_eq!(name("https://h/a/%2e%2e"), "audio");
        assert_eq!(name("https://h/a%2Fb.wav"), "a_b.wav");
        assert_eq!([name("https://h"), name("https://h/"), name("https://h/?id=1")], ["audio", "audio", "audio"]);
    }

    proptest! {
        /// Different inputs give different hashes, and none equals the hash of a file.
        #[test]
        fn identities_differ(a in ".{0,20}", b in ".{0,20}", size in proptest::option::of(any::<u64>())) {
            prop_assert_ne!(surrogate_hash(&a, None, size), Hash::of(a.as_bytes()));
            prop_assert_eq!(surrogate_hash(&a, Some(&b), size) == surrogate_hash(&b, Some(&a), size), a == b);
            if !b.is_empty() {
                prop_assert_ne!(surrogate_hash(&format!("{a}{b}"), None, size), surrogate_hash(&a, Some(&b), size));
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,60}") {
            if let Ok(url) = RemoteUrl::parse(&format!("https://{text}")) {
                prop_assert!(!url.file_name().is_empty() && !url.file_name().contains('/'));
                prop_assert_eq!(RemoteUrl::parse(&url.name()).unwrap().name(), url.name());
            }
        }
    }

    #[test]
    fn signatures_are_taken_out_of_what_a_service_says() {
        let said = "cannot fetch \"https://h/b/k.wav?X-Amz-Date=1&X-Amz-Signature=abc\": 403 (why? nobody knows)";
        assert_eq!(without_signatures(said), "cannot fetch \"https://h/b/k.wav\": 403 (why? nobody knows)");
    }
}
