//! What an upload is, by its first bytes: the media type that a browser is told. Only types of this list are given out,
//! so that no upload is ever taken for a page.

/// How a recording is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaType {
    /// The media type (IANA) for the header `Content-Type`.
    pub name: &'static str,
    /// Whether it may have a picture.
    pub is_video: bool,
}

/// How many bytes decide.
pub const HEAD: usize = 64;

/// Returns the type of a recording that begins with these bytes; `None` if no browser is known to play it.
pub fn media_type(head: &[u8]) -> Option<MediaType> {
    let at = |offset: usize, tag: &[u8]| head.get(offset..).is_some_and(|rest| rest.starts_with(tag));
    let audio = |name| Some(MediaType { name, is_video: false });
    let video = |name| Some(MediaType { name, is_video: true });
    match head {
        _ if (at(0, b"RIFF") || at(0, b"RF64")) && at(8, b"WAVE") => audio("audio/wav"),
        _ if at(0, b"fLaC") => audio("audio/flac"),
        // The first page of a picture names its codec: Theora.
        _ if at(0, b"OggS") && at(28, b"\x80theora") => video("video/ogg"),
        _ if at(0, b"OggS") => audio("audio/ogg"),
        _ if at(4, b"ftyp") && (at(8, b"M4A ") || at(8, b"M4B ")) => audio("audio/mp4"),
        _ if at(4, b"ftyp") => video("video/mp4"),
        _ if at(0, b"\x1a\x45\xdf\xa3") => video("video/webm"),
        _ if at(0, b"ID3") => audio("audio/mpeg"),
        // Frames of MPEG audio: eleven bits of ones. Layer 0 is AAC (ADTS); only layers II and III are taken for MPEG audio,
        // because text in UTF-16 begins like layer I.
        [0xff, second, ..] if second & 0xf6 == 0xf0 => audio("audio/aac"),
        [0xff, second, ..] if second & 0xe0 == 0xe0 && matches!(second & 0x06, 0x02 | 0x04) => audio("audio/mpeg"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(head: &[u8]) -> Option<&'static str> {
        media_type(head).map(|found| found.name)
    }

    #[test]
    fn recordings_by_their_first_bytes() {
        assert_eq!(name(b"RIFF\0\0\0\0WAVEfmt "), Some("audio/wav"));
        assert_eq!(name(b"fLaC\0"), Some("audio/flac"));
        assert_eq!(name(b"\0\0\0\x20ftypM4A "), Some("audio/mp4"));
        assert_eq!(name(b"\0\0\0\x20ftypisom"), Some("video/mp4"));
        assert_eq!(name(b"\x1a\x45\xdf\xa3\x01"), Some("video/webm"));
        assert_eq!(name(b"ID3\x04"), Some("audio/mpeg"));
        assert_eq!((name(b"\xff\xfb\x90"), name(b"\xff\xf1\x50")), (Some("audio/mpeg"), Some("audio/aac")));
        let mut theora = b"OggS".to_vec();
        theora.resize(28, 0);
        assert_eq!(name(&theora), Some("audio/ogg"));
        theora.extend(b"\x80theora");
        assert_eq!(name(&theora), Some("video/ogg"));
    }

    #[test]
    fn nothing_else_has_a_type() {
        for other in [
            &b""[..],
            b"\xff",
            b"RIFF\0\0\0\0AVI ",
            b"<!doctype html>",
            b"<svg",
            b"%PDF-",
            b"FORM\0\0\0\0AIFF",
            b"\xff\xfe<\0",
        ] {
            assert_eq!(media_type(other), None, "{other:?}");
        }
    }
}
