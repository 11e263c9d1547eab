//! `POST /v2/upload`: the answer (interface, "Upload response").

use crate::domain::names::UploadId;
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The path of uploads.
pub const PATH: &str = "/v2/upload";

/// The name of the multipart part with the file.
pub const PART_NAME: &str = "audio";

/// Answer to an upload.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Uploaded {
    /// URL of the uploaded file, for the field `audio_url` of a create. It has the form `{base_url}/file/{id}`.
    pub audio_url: String,
    /// Properties of the file.
    pub audio_metadata: AudioMetadata,
}

/// Properties of an uploaded file.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct AudioMetadata {
    /// Id of the file, for `GET /file/{id}`.
    pub id: String,
    /// Name of the file, without folders.
    pub filename: String,
    /// URL that the service fetched the file from; absent if the request contained the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Extension of the name, in lower case and without the dot; empty if the name has none.
    pub extension: String,
    /// Size in bytes; null if unknown.
    pub size: Option<u64>,
    /// Duration of the audio in seconds; null if unknown.
    pub audio_duration: Option<f64>,
    /// Number of channels in the file, equal channels included; null if unknown.
    pub number_of_channels: Option<u32>,
}

/// The most bytes of an `audio_url`.
const MAX_URL_BYTES: usize = 8 << 10;

/// Returns the id by which an uploaded file is named later: its `audio_url` as it is, on any host. `None` if it is not
/// a web address.
pub fn upload_id(audio_url: &str) -> Option<UploadId> {
    let is_address = Url::parse(audio_url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    // The parser would drop line ends, and blanks at both ends.
    let is_plain = audio_url.len() <= MAX_URL_BYTES && !audio_url.chars().any(|c| c.is_control() || c.is_whitespace());
    (is_address && is_plain).then(|| UploadId::new(audio_url))
}

/// Returns the address of an uploaded file for a create. Older releases stored only the last part of its path; such a
/// file is below the service's base address, which has no slash at its end.
pub fn audio_url(base: &str, id: &UploadId) -> String {
    match id.as_str().contains("://") {
        true => id.to_string(),
        false => format!("{base}/file/{id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_named_as_it_was_received_and_what_older_releases_kept_lies_at_the_service() {
        for url in [
            "https://eu.blobs.example:8443/x?sig=a%2Fb+c==#part",
            "http://10.0.0.7/file/1",
            "HTTPS://h/\u{e9}t\u{e9}.wav",
        ] {
            assert_eq!(audio_url("https://stt.example.org/p", &upload_id(url).unwrap()), url);
        }
        for wrong in ["file:///etc/passwd", "/file/1", "", "https://h/a b", "https://h/\n", "ftp://h/x"] {
            assert_eq!(upload_id(wrong), None, "{wrong}");
        }
        let old = UploadId::new("6f1c");
        assert_eq!(audio_url("https://stt.example.org/p", &old), "https://stt.example.org/p/file/6f1c");
    }
}
