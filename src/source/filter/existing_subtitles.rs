//! Finds the subtitles beside a recording, whoever wrote them.

use crate::clock::{Clock, Uptime};
use crate::domain::language_codes::LanguageCode;
use crate::domain::path::RelPath;
use crate::rooted_path::RootedPath;
use crate::wire::languages::code_of;
use rustix::fs::FileType;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The endings of text subtitles that Plex, Jellyfin and Kodi read beside a recording. Not `.sub`, which may also be
/// images (VobSub), and not formats that players do not read beside a recording (TTML, SBV).
const ENDINGS: [&str; 6] = [".srt", ".vtt", ".ass", ".ssa", ".smi", ".sami"];

/// Words that may stand in a subtitle's name besides a language code, between the recording's stem and the ending.
const FLAGS: [&str; 8] = ["forced", "sdh", "cc", "hi", "default", "foreign", "full", "auto"];

/// The words that say that a subtitle shows only signs and speech in other languages.
const FORCED: [&str; 2] = ["forced", "foreign"];

/// Names of languages that stand in for a language code.
const LANGUAGES: [&str; 24] = [
    "english",
    "german",
    "deutsch",
    "french",
    "francais",
    "spanish",
    "espanol",
    "italian",
    "italiano",
    "portuguese",
    "dutch",
    "nederlands",
    "danish",
    "swedish",
    "norwegian",
    "finnish",
    "polish",
    "czech",
    "russian",
    "turkish",
    "arabic",
    "hebrew",
    "chinese",
    "japanese",
];

/// The number of folders whose listings are cached: those in which jobs are handled now. A folder may hold a million
/// names.
const CACHED_FOLDERS: usize = 4;

/// A listing stays valid for this many times as long as it took: a folder of a million files is not listed again for
/// each of them, and a small folder nearly always is.
const VALID_FACTOR: u32 = 20;

/// A cache of the subtitles of the folders that were listed last.
pub struct ExistingSubtitles {
    clock: Arc<dyn Clock>,
    listings: Mutex<VecDeque<Listing>>,
    /// Serialises listings: a caller that waited finds the listing of the one before it.
    listing_turn: Mutex<()>,
}

struct Listing {
    folder: RootedPath,
    until: Uptime,
    /// Sorted.
    subtitles: Arc<Vec<OsString>>,
}

impl ExistingSubtitles {
    /// Makes an empty cache.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, listings: Mutex::default(), listing_turn: Mutex::default() }
    }

    /// Returns the subtitles for the recording at `path` below the folder `root`, as paths below `root`. Blocks.
    pub fn subtitles(&self, root: &RootedPath, path: &RelPath) -> io::Result<Vec<RelPath>> {
        let path = Path::new(OsStr::from_bytes(path.as_bytes()));
        let (parent, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
        let folder = root.join(parent);
        let listed = self.listed(&folder)?;
        let stem = Path::new(name).file_stem().unwrap_or_default().as_bytes();
        let first = listed.partition_point(|subtitle| subtitle.as_bytes() < stem);
        let near = listed[first..].iter().take_while(|subtitle| subtitle.as_bytes().starts_with(stem));
        let is_folder =
            |name: &OsStr| folder.join(name).stat().is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir());
        let fitting = near.filter(|subtitle| is_subtitle_of(subtitle.as_bytes(), name) && !is_folder(subtitle));
        Ok(fitting.map(|subtitle| RelPath::new(parent.join(subtitle).into_os_string().into_vec())).collect())
    }

    fn listed(&self, folder: &RootedPath) -> io::Result<Arc<Vec<OsString>>> {
        self.listed_by(folder, list)
    }

    fn listed_by(
        &self,
        folder: &RootedPath,
        list: impl FnOnce(&RootedPath) -> io::Result<Vec<OsString>>,
    ) -> io::Result<Arc<Vec<OsString>>> {
        if let Some(subtitles) = self.cached(folder) {
            return Ok(subtitles);
        }
        let _guard = self.listing_turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(subtitles) = self.cached(folder) {
            return Ok(subtitles);
        }
        let begun = self.clock.uptime();
        let subtitles = Arc::new(list(folder)?);
        let ended = self.clock.uptime();
        let listing = Listing {
            folder: folder.clone(),
            until: ended.after(ended.since(begun) * VALID_FACTOR),
            subtitles: Arc::clone(&subtitles),
        };
        let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        listings.push_front(listing);
        listings.truncate(CACHED_FOLDERS);
        Ok(subtitles)
    }

    fn cached(&self, folder: &RootedPath) -> Option<Arc<Vec<OsString>>> {
        let now = self.clock.uptime();
        let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        listings.retain(|listing| listing.until > now);
        let listing = listings.iter().find(|listing| listing.folder == *folder)?;
        Some(Arc::clone(&listing.subtitles))
    }
}

fn list(folder: &RootedPath) -> io::Result<Vec<OsString>> {
    let names = folder.names()?;
    let is_subtitle = |name: &io::Result<OsString>| name.as_ref().is_ok_and(|name| ending(name.as_bytes()).is_some());
    let mut subtitles = names.filter(is_subtitle).collect::<io::Result<Vec<OsString>>>()?;
    subtitles.sort_unstable();
    Ok(subtitles)
}

fn ending(name: &[u8]) -> Option<&[u8]> {
    ENDINGS.iter().find_map(|ending| {
        let (stem, tail) = name.split_at_checked(name.len().checked_sub(ending.len())?)?;
        (tail.eq_ignore_ascii_case(ending.as_bytes()) && !stem.is_empty()).then_some(stem)
    })
}

/// Whether a file name is that of a subtitle of `recording`: for `talk.mp4` these are `talk.srt`, `talk.en.srt`,
/// `talk.pt-BR.sdh.vtt`, `talk.ass` and `talk.mp4.en.srt`, but not `talk.part2.srt`, which belongs to another recording, nor
/// `talk.en.forced.srt`, which shows only what is not in the language of the recording.
pub fn is_subtitle_of(subtitle: &[u8], recording: &OsStr) -> bool {
    let Some(suffix) = ending(subtitle).and_then(|stem| suffix_of(stem, recording)) else { return false };
    let is_forced = |part: &str| FORCED.iter().any(|flag| part.eq_ignore_ascii_case(flag));
    suffix.split('.').skip(1).all(|part| is_language_or_flag(part) && !is_forced(part))
}

/// Returns what follows the recording's name or stem in the stem of another file.
fn suffix_of<'s>(stem: &'s [u8], recording: &OsStr) -> Option<&'s str> {
    let recording_stem = Path::new(recording).file_stem().unwrap_or_default().as_bytes();
    let suffix = [recording.as_bytes(), recording_stem].into_iter().find_map(|start| {
        let rest = stem.strip_prefix(start)?;
        (rest.is_empty() || rest[0] == b'.').then_some(rest)
    });
    std::str::from_utf8(suffix?).ok()
}

/// Returns the language that the name of a text of `recording` says: `en` for `talk.en.sdh.srt`, whose `stem` is
/// `talk.en.sdh`, and `de` for `talk.German.srt`; none for `talk.hi.srt`, which may be for the hearing impaired.
pub fn named_language(stem: &[u8], recording: &OsStr) -> Option<String> {
    suffix_of(stem, recording)?.split('.').skip(1).find_map(language_of)
}

/// Whether the name of a text of `recording` has the mark `hi`, which stands for Hindi or for "hearing impaired".
pub fn has_hi_mark(stem: &[u8], recording: &OsStr) -> bool {
    let mut parts = suffix_of(stem, recording).unwrap_or_default().split('.').skip(1);
    parts.any(|part| part.eq_ignore_ascii_case("hi"))
}

/// Returns the language that a part of a name is, as it is written there if it is a code. Codes of three letters count
/// only for languages that are usual: many are words, as `new` and `old`.
fn language_of(part: &str) -> Option<String> {
    let lower = part.to_ascii_lowercase();
    if FLAGS.contains(&lower.as_str()) {
        return None;
    }
    let base = lower.split(['-', '_']).next().unwrap_or_default();
    let usual = code_of(&lower);
    match base.len() {
        2 | 3 if !is_language_or_flag(part) => None,
        2 => LanguageCode::parse(base).map(|_| part.replace('_', "-")),
        3 => usual.map(|_| part.replace('_', "-")),
        _ => usual.map(str::to_owned),
    }
}

fn is_language_or_flag(part: &str) -> bool {
    let part = part.to_ascii_lowercase();
    let mut pieces = part.split(['-', '_']);
    let code = pieces.next().unwrap_or_default();
    let is_code = matches!(code.len(), 2 | 3) && code.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_region =
        |piece: &str| (2..=8).contains(&piece.len()) && piece.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_code && pieces.all(is_region)) || FLAGS.contains(&part.as_str()) || LANGUAGES.contains(&part.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn a_subtitle_is_known_by_its_recordings_stem() {
        let of = |subtitle: &str| is_subtitle_of(subtitle.as_bytes(), OsStr::new("talk.mp4"));
        let its = [
            "talk.srt",
            "talk.SRT",
            "talk.en.srt",
            "talk.en.cc.srt",
            "talk.pt-BR.vtt",
            "talk.eng.sdh.srt",
            "talk.mp4.srt",
            "talk.mp4.de.vtt",
            "talk.zh_Hans.srt",
            "talk.English.srt",
            "talk.ass",
            "talk.en.ASS",
            "talk.mp4.de.ssa",
            "talk.ko.smi",
            "talk.ko.sami",
        ];
        assert!(its.iter().all(|name| of(name)), "{:?}", its.iter().find(|name| !of(name)));
        let others = [
            "talk2.srt",
            "talk.en.forced.srt",
            "talk.Forced.srt",
            "talk.foreign.vtt",
            "talk.en.forced.ass",
            "talk.part2.srt",
            "talk.part2.ass",
            "talk.txt",
            "talk.en.txt",
            "talk.xml",
            "talk.en.xml",
            "talk.json",
            "talk.en.sub",
            "talk.en.idx",
            "talk.en.sup",
            "talk.en.ttml",
            "talk.en.sbv",
            ".ass",
            "talk.2.srt",
            "talks.en.srt",
            "talk-en.srt",
            "talk.interview.srt",
            "talk.mp4",
            ".srt",
            "tal.srt",
        ];
        assert!(others.iter().all(|name| !of(name)), "{:?}", others.iter().find(|name| of(name)));
    }

    #[test]
    fn a_name_says_its_language() {
        let of = |stem: &str| named_language(stem.as_bytes(), OsStr::new("talk.mp4"));
        let named = ["talk.fr", "talk.mp4.fr", "talk.en.sdh", "talk.sdh.eng", "talk.pt_BR", "talk.German"].map(of);
        assert_eq!(named.map(Option::unwrap_or_default), ["fr", "fr", "en", "eng", "pt-BR", "de"]);
        let others = ["talk", "talk.mp4", "talk.new", "talk.part2", "talk.sdh", "talk.xx", "talks.fr", "talk.en/.."];
        assert_eq!(others.map(of), [const { None }; 8]);
    }

    #[test]
    fn those_who_ask_at_once_list_a_folder_once() {
        let beside = ExistingSubtitles::new(Arc::new(SystemClock));
        let (asked, listed) = (std::sync::Barrier::new(4), std::sync::atomic::AtomicU32::new(0));
        let list = |_: &RootedPath| {
            listed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(200)); // it holds for twenty times as long
            Ok(Vec::new())
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    asked.wait();
                    beside.listed_by(&RootedPath::new("/srv/a", ""), list).unwrap();
                });
            }
        });
        assert_eq!(listed.into_inner(), 1);
    }

    #[test]
    fn they_are_found_in_the_recordings_own_folder() {
        let root = tempfile::TempDir::new().unwrap();
        std::fs::create_dir(root.path().join("a")).unwrap();
        for name in [
            "a/talk.en.srt",
            "a/talk.vtt",
            "a/talk.wav.srt",
            "a/talking.srt",
            "talk.srt",
            "a/talk.json",
            "a/talk.de.ass",
        ] {
            std::fs::write(root.path().join(name), "").unwrap();
        }
        // A folder is no subtitle, whatever its name is.
        std::fs::create_dir(root.path().join("a/talk.fr.srt")).unwrap();
        let (beside, folder) = (ExistingSubtitles::new(Arc::new(SystemClock)), RootedPath::new(root.path(), ""));
        let found = beside.subtitles(&folder, &RelPath::new("a/talk.wav")).unwrap();
        let found: Vec<String> = found.iter().map(|path| path.lossy().into_owned()).collect();
        assert_eq!(found, ["a/talk.de.ass", "a/talk.en.srt", "a/talk.vtt", "a/talk.wav.srt"]);
        assert!(beside.subtitles(&folder, &RelPath::new("gone/talk.wav")).is_err());
    }
}
