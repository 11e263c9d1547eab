//! Finds the subtitle tracks in the header of a Matroska, WebM, MP4 or QuickTime file. Only tracks of text that show
//! what is said count: not forced ones, which translate single signs, and not images (PGS, VobSub, DVB), which nobody
//! can search or edit.

use super::container::matroska::{Elements, MatroskaSegment, first as first_element, segment, unsigned};
use super::container::mp4::{Boxes, first as first_box};
use super::container::{Extent, ReadAt, be16, be32, read};
use crate::domain::language_codes::short_code;
use std::collections::BTreeSet;
use std::io;

/// A subtitle track of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubtitleTrack {
    /// Its language, as ISO 639-1 where that has a code; `None` if the file does not say.
    pub language: Option<String>,
}

impl SubtitleTrack {
    fn new(code: &str) -> Self {
        let known = !matches!(code, "" | "und" | "mul" | "mis" | "zxx");
        Self { language: known.then(|| short_code(code)) }
    }

    /// Whether the track may be in this language; without one, whether it is in any.
    pub fn may_be_in(&self, language: Option<&str>) -> bool {
        let language = language.map(short_code);
        self.language.is_none() || language.is_none() || self.language == language
    }
}

/// Returns the subtitle tracks of a file of `size` bytes; none for any other kind of file. Reads a bounded number of
/// bytes, however long the file is.
///
/// # Errors
/// Returns the file system's error.
pub fn subtitle_tracks<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Vec<SubtitleTrack>> {
    match read::<8, R>(file, 0)? {
        Some([0x1A, 0x45, 0xDF, 0xA3, ..]) => of_matroska(file),
        Some([_, _, _, _, b'f', b't', b'y', b'p']) => of_mp4(file, size),
        _ => Ok(Vec::new()),
    }
}

const TRACKS: u32 = 0x1654_AE6B;
const TRACK_ENTRY: u32 = 0xAE;
const TRACK_TYPE: u32 = 0x83;
const TYPE_SUBTITLE: u64 = 0x11;
const FLAG_FORCED: u32 = 0x55AA;
const CODEC_ID: u32 = 0x86;
const LANGUAGE: u32 = 0x22_B59C;
const LANGUAGE_BCP47: u32 = 0x22_B59D;
const CLUSTER: u32 = 0x1F43_B675;

/// The codecs of Matroska whose subtitles are images.
const IMAGE_CODECS: [&str; 4] = ["S_VOBSUB", "S_HDMV/PGS", "S_DVBSUB", "S_IMAGE"];

fn of_matroska<R: ReadAt + ?Sized>(file: &R) -> io::Result<Vec<SubtitleTrack>> {
    let MatroskaSegment::Found { content, .. } = segment(file)? else { return Ok(Vec::new()) };
    for element in Elements::within(file, content..u64::MAX) {
        let element = element?;
        match element.id {
            TRACKS => return matroska_tracks(file, element.content),
            CLUSTER => break,
            _ => {}
        }
    }
    Ok(Vec::new())
}

fn matroska_tracks<R: ReadAt + ?Sized>(file: &R, tracks: Extent) -> io::Result<Vec<SubtitleTrack>> {
    let mut found = Vec::new();
    for element in Elements::within(file, tracks) {
        let track = element?;
        if track.id == TRACK_ENTRY {
            found.extend(matroska_track(file, track.content)?);
        }
    }
    Ok(found)
}

fn matroska_track<R: ReadAt + ?Sized>(file: &R, track: Extent) -> io::Result<Option<SubtitleTrack>> {
    let number = |id| first_element(file, track.clone(), id)?.map_or(Ok(None), |content| unsigned(file, &content));
    if number(TRACK_TYPE)? != Some(TYPE_SUBTITLE) || number(FLAG_FORCED)? == Some(1) {
        return Ok(None);
    }
    let text = |id| first_element(file, track.clone(), id)?.map_or(Ok(None), |content| text(file, content).map(Some));
    let codec: String = text(CODEC_ID)?.unwrap_or_default();
    if IMAGE_CODECS.iter().any(|image| codec.starts_with(image)) {
        return Ok(None);
    }
    // A track without a language is in English (RFC 9559, Language).
    let language = text(LANGUAGE_BCP47)?.or(text(LANGUAGE)?).unwrap_or_else(|| "eng".to_owned());
    Ok(Some(SubtitleTrack::new(&language)))
}

/// Reads a content as text, at most 64 bytes.
fn text<R: ReadAt + ?Sized>(file: &R, content: Extent) -> io::Result<String> {
    let mut bytes = [0; 64];
    let length = usize::try_from(content.end - content.start).unwrap_or(usize::MAX).min(bytes.len());
    let n = file.read_at(content.start, &mut bytes[..length])?;
    Ok(String::from_utf8_lossy(&bytes[..n]).trim_end_matches('\0').to_owned())
}

fn of_mp4<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Vec<SubtitleTrack>> {
    let Some(index) = first_box(file, 0..size, b"moov")? else { return Ok(Vec::new()) };
    let (mut tracks, mut chapters) = (Vec::new(), BTreeSet::new());
    for found in Boxes::within(file, index) {
        let found = found?;
        if found.kind == *b"trak" {
            chapters.extend(chapter_tracks(file, found.content.clone())?);
            tracks.push(found.content);
        }
    }
    let mut found = Vec::new();
    for track in tracks {
        if !track_id(file, track.clone())?.is_some_and(|id| chapters.contains(&id)) {
            found.extend(mp4_track(file, track)?);
        }
    }
    Ok(found)
}

/// Returns the tracks whose text is the chapters of this one.
fn chapter_tracks<R: ReadAt + ?Sized>(file: &R, track: Extent) -> io::Result<Vec<u32>> {
    let Some(references) = first_box(file, track, b"tref")? else { return Ok(Vec::new()) };
    let Some(chapters) = first_box(file, references, b"chap")? else { return Ok(Vec::new()) };
    let mut bytes = [0; 64];
    let length = usize::try_from(chapters.end - chapters.start).unwrap_or(usize::MAX).min(bytes.len());
    let n = file.read_at(chapters.start, &mut bytes[..length])?;
    Ok((0..n / 4).map(|number| be32(&bytes, number * 4)).collect())
}

fn track_id<R: ReadAt + ?Sized>(file: &R, track: Extent) -> io::Result<Option<u32>> {
    let Some(head) = first_box(file, track, b"tkhd")? else { return Ok(None) };
    let bytes = read::<24, R>(file, head.start)?;
    Ok(bytes.map(|bytes| be32(&bytes, if bytes[0] == 0 { 12 } else { 20 })))
}

/// The bits of a timed text entry (3GPP TS 26.245) that say that all samples are forced.
const ALL_FORCED: u32 = 0x8000_0000;

fn mp4_track<R: ReadAt + ?Sized>(file: &R, track: Extent) -> io::Result<Option<SubtitleTrack>> {
    let Some(media) = first_box(file, track.clone(), b"mdia")? else { return Ok(None) };
    let Some(handler) = first_box(file, media.clone(), b"hdlr")? else { return Ok(None) };
    // `subp` are images.
    let is_text =
        matches!(read::<4, R>(file, handler.start + 8)?.as_ref(), Some(b"sbtl" | b"subt" | b"text" | b"clcp"));
    if !is_text || is_forced(file, media.clone())? || has_forced_role(file, track)? {
        return Ok(None);
    }
    let language = match first_box(file, media, b"mdhd")? {
        Some(head) => mp4_language(file, head)?,
        None => String::new(),
    };
    Ok(Some(SubtitleTrack::new(&language)))
}

fn is_forced<R: ReadAt + ?Sized>(file: &R, media: Extent) -> io::Result<bool> {
    let mut inner = media;
    for kind in [b"minf", b"stbl", b"stsd"] {
        let Some(content) = first_box(file, inner, kind)? else { return Ok(false) };
        inner = content;
    }
    let entry = read::<20, R>(file, inner.start + 8)?;
    Ok(entry.is_some_and(|entry| entry[4..8] == *b"tx3g" && be32(&entry, 16) & ALL_FORCED != 0))
}

/// The role of a forced track: the scheme and the value of a box `kind` (ISO/IEC 14496-12, 8.10.4; DASH-IF role scheme).
/// ffmpeg writes it.
const FORCED_ROLE: &[u8] = b"urn:mpeg:dash:role:2011\0forced-subtitle\0";

fn has_forced_role<R: ReadAt + ?Sized>(file: &R, track: Extent) -> io::Result<bool> {
    // Version and flags.
    const HEAD: u64 = 4;
    let Some(user_data) = first_box(file, track, b"udta")? else { return Ok(false) };
    for found in Boxes::within(file, user_data) {
        let found = found?;
        let is_long_enough = found.content.end - found.content.start >= HEAD + FORCED_ROLE.len() as u64;
        if found.kind != *b"kind" || !is_long_enough {
            continue;
        }
        let role = read::<{ FORCED_ROLE.len() }, R>(file, found.content.start + HEAD)?;
        if role.is_some_and(|role| role == FORCED_ROLE) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The Macintosh language codes of QuickTime files (QuickTime File Format, "Language code values") for languages that
/// services know. 0 is English there, and is also written by programs that know no language: it counts as unknown.
const MACINTOSH_CODES: [(u32, &str); 28] = [
    (1, "fra"),
    (2, "deu"),
    (3, "ita"),
    (4, "nld"),
    (5, "swe"),
    (6, "spa"),
    (7, "dan"),
    (8, "por"),
    (9, "nor"),
    (10, "heb"),
    (11, "jpn"),
    (12, "ara"),
    (13, "fin"),
    (14, "ell"),
    (15, "isl"),
    (16, "mlt"),
    (17, "tur"),
    (18, "hrv"),
    (19, "zho"),
    (20, "urd"),
    (21, "hin"),
    (22, "tha"),
    (23, "kor"),
    (24, "lit"),
    (25, "pol"),
    (26, "hun"),
    (32, "rus"),
    (33, "zho"),
];

/// Returns the language in a media header: three letters of five bits each, from 0x60, or a Macintosh code.
fn mp4_language<R: ReadAt + ?Sized>(file: &R, head: Extent) -> io::Result<String> {
    let Some(bytes) = read::<34, R>(file, head.start)? else { return Ok(String::new()) };
    let packed = be16(&bytes, if bytes[0] == 0 { 20 } else { 32 });
    if let Some((_, code)) = MACINTOSH_CODES.iter().find(|(number, _)| *number == packed) {
        return Ok((*code).to_owned());
    }
    let letter = |shift: u32| char::from_u32((packed >> shift & 0x1F) + 0x60).unwrap_or(' ');
    let code: String = [10, 5, 0].map(letter).iter().collect();
    Ok(if code.bytes().all(|byte| byte.is_ascii_lowercase()) { code } else { String::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::languages::TARGET_LANGUAGES;
    use proptest::prelude::*;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// Makes a file with ffmpeg: a second of silence and these subtitle tracks.
    fn file(folder: &Path, name: &str, tracks: &[(&str, &str, &[&str])]) -> PathBuf {
        let (to, text) = (folder.join(name), folder.join("text.srt"));
        std::fs::write(&text, "1\n00:00:00,000 --> 00:00:00,900\nHello.\n").unwrap();
        let mut command = Command::new("ffmpeg");
        command.args(["-y", "-v", "error", "-f", "lavfi", "-i", "anullsrc=r=16000:cl=mono"]);
        for _ in tracks {
            command.arg("-i").arg(&text);
        }
        command.args(["-map", "0:a"]);
        for (number, (codec, language, more)) in tracks.iter().enumerate() {
            command.args(["-map", &format!("{}:s", number + 1), &format!("-c:s:{number}"), codec]);
            command.args([&format!("-metadata:s:s:{number}"), &format!("language={language}")]);
            for pair in more.chunks(2) {
                command.args([&format!("{}:s:{number}", pair[0]), pair[1]]);
            }
        }
        let status = command.args(["-t", "1"]).arg(&to).status().expect("this test needs ffmpeg");
        assert!(status.success(), "{name}");
        to
    }

    fn languages(path: &Path) -> Vec<Option<String>> {
        let file = std::fs::File::open(path).unwrap();
        let size = file.metadata().unwrap().len();
        subtitle_tracks(&file, size).unwrap().into_iter().map(|track| track.language).collect()
    }

    #[test]
    fn text_tracks_are_found_with_their_languages() {
        let folder = tempfile::tempdir().unwrap();
        let some = |code: &str| Some(code.to_owned());
        let forced: &[&str] = &["-disposition", "forced"];
        let tracks: &[(&str, &str, &[&str])] =
            &[("srt", "eng", &[]), ("ass", "ger", &[]), ("srt", "fre", forced), ("srt", "und", &[])];
        assert_eq!(languages(&file(folder.path(), "a.mkv", tracks)), [some("en"), some("de"), None]);
        let webm = file(folder.path(), "a.webm", &[("webvtt", "hin", &[])]);
        assert_eq!(languages(&webm), [some("hi")]);
        let mp4 = [("mov_text", "por", &[][..]), ("mov_text", "fre", forced), ("mov_text", "und", &[])];
        let mp4 = file(folder.path(), "a.mp4", &mp4);
        assert_eq!(languages(&mp4), [some("pt"), None]);
        // ffmpeg knows the Macintosh codes by their bibliographic names.
        let mov = file(folder.path(), "a.mov", &[("mov_text", "ger", &[])]);
        assert_eq!(languages(&mov), [some("de")]);
        for name in ["plain.mkv", "plain.mp4", "plain.wav"] {
            assert_eq!(languages(&file(folder.path(), name, &[])), []);
        }
    }

    #[test]
    fn images_are_no_text() {
        let folder = tempfile::tempdir().unwrap();
        // Image subtitles are made of images: ffmpeg converts a text into none, so a copy of the header is changed.
        let mkv = file(folder.path(), "a.mkv", &[("srt", "eng", &[])]);
        let mut bytes = std::fs::read(&mkv).unwrap();
        let at = memchr::memmem::find(&bytes, b"S_TEXT/UTF8").expect("the codec");
        for image in ["S_HDMV/PGS\0", "S_VOBSUB\0\0\0", "S_DVBSUB\0\0\0"] {
            bytes[at..at + 11].copy_from_slice(image.as_bytes());
            assert_eq!(subtitle_tracks(&bytes[..], bytes.len() as u64).unwrap(), []);
        }
    }

    #[test]
    fn a_track_counts_for_its_language_and_without_one_for_any() {
        let track = |code: &str| SubtitleTrack::new(code);
        assert!(track("eng").may_be_in(Some("en")) && track("en-GB").may_be_in(Some("en")));
        assert!(track("und").may_be_in(Some("en")) && track("ger").may_be_in(None));
        assert!(!track("ger").may_be_in(Some("en")));
    }

    #[test]
    fn each_language_of_the_service_keeps_its_code() {
        for code in TARGET_LANGUAGES {
            assert!(SubtitleTrack::new(code).may_be_in(Some(code)) && !SubtitleTrack::new(code).may_be_in(Some("xx")));
        }
        let long =
            ["fre", "fra", "chi", "zho", "vie", "wol", "jav"].map(|code| SubtitleTrack::new(code).language.unwrap());
        assert!(long.iter().all(|code| TARGET_LANGUAGES.contains(&code.as_str())), "{long:?}");
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_answer(
            head in proptest::sample::select(vec![
                &b"\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\xff\x16\x54\xae\x6b\xff"[..], b"\0\0\0\x08ftyp\0\0\x01\0moov", b"",
            ]),
            bytes in proptest::collection::vec(any::<u8>(), 0..600),
        ) {
            let file = [head, &bytes].concat();
            prop_assert!(subtitle_tracks(&file[..], file.len() as u64).is_ok());
        }
    }
}
