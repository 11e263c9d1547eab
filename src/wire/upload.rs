//! `POST /v2/upload`: the answer (interface, "Upload response").

use crate::domain::names::UploadId;
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The path of uploads.
pub const PATH: &str = "/v2/upload";

/// The name of the multipart part with the file.
pub const PART_NAME: &str = "audio";

/// What the service says of a file that it has taken.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Uploaded {
    /// `{base_url}/file/<file_id>`; to be given to the create.
    pub audio_url: String,
    /// What was found in the file.
    pub audio_metadata: AudioMetadata,
}

/// What the service found in an uploaded file.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct AudioMetadata {
    /// The file's id at the service.
    pub id: String,
    /// The name it was sent under.
    pub filename: String,
    /// Where it was fetched from, when it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Without a dot.
    pub extension: String,
    /// Bytes.
    pub size: Option<u64>,
    /// Seconds.
    pub audio_duration: Option<f64>,
    /// Counted in the file, equal ones included.
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
