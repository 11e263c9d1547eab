//! Reads the bytes of a file that a person accepts. Pure.

use super::apply::Unusable;
use crate::captions::{DecodedText, is_forbidden};
use crate::domain::format::Format;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What a file contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    pub text: String,
    /// The file itself in base64, if it is not UTF-8.
    pub original: Option<String>,
    /// The encoding, if it is not UTF-8.
    pub encoding: Option<&'static str>,
}

impl FileContent {
    /// Reads UTF-8; also UTF-16 with its mark and Windows-1252, except in JSON, which is UTF-8 by definition.
    ///
    /// # Errors
    /// [`Unusable::NotText`] if the bytes are text in none of them.
    pub fn of(bytes: Vec<u8>, format: Format) -> Result<Self, Unusable> {
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => return Ok(Self { text, original: None, encoding: None }),
            Err(_) if format == Format::Json => return Err(Unusable::NotText),
            Err(error) => error.into_bytes(),
        };
        let DecodedText { text, encoding, is_whole } = DecodedText::of(&bytes);
        // Nearly any bytes have a meaning in Windows-1252, but text has no control characters.
        if !is_whole || text.chars().any(is_forbidden) {
            return Err(Unusable::NotText);
        }
        Ok(Self { text, original: Some(STANDARD.encode(bytes)), encoding: Some(encoding) })
    }
}

/// Returns the bytes of a file that is not UTF-8; nothing if what is kept of it is damaged.
pub(super) fn original_bytes(original: &str) -> Vec<u8> {
    STANDARD.decode(original).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], format: Format) -> Result<(String, Option<&'static str>), Unusable> {
        let content = FileContent::of(bytes.to_vec(), format)?;
        let kept = content.original.as_deref().map_or(content.text.clone().into_bytes(), original_bytes);
        assert_eq!(kept, bytes, "as the person wrote it");
        Ok((content.text, content.encoding))
    }

    #[test]
    fn texts_are_read_in_the_encodings_of_backlogs() {
        let utf16: Vec<u8> = "\u{feff}ß\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&utf16, Format::Srt), Ok(("ß\n".into(), Some("UTF-16LE"))));
        assert_eq!(read(b"stra\xdfe\r\n", Format::Txt), Ok(("straße\n".into(), Some("windows-1252"))));
        assert_eq!(read("\u{feff}aß".as_bytes(), Format::Txt), Ok(("\u{feff}aß".into(), None)));
        assert_eq!(read(b"\"\xdf\"", Format::Json), Err(Unusable::NotText));
        assert_eq!(read(b"\x89PNG\r\n\x1a\n\xff\0", Format::Txt), Err(Unusable::NotText));
        assert_eq!(read(&[0xff, 0xfe, 0x00], Format::Vtt), Err(Unusable::NotText));
    }
}
