//! The built-in ignore list: names that are never media, and what they stand for: temporary files of other programs,
//! files of operating systems and network disks, and scribed's own files.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

/// The ending of scribed's outputs while they are written.
const TEMPORARY_SUFFIX: &str = ".scribed-tmp";

/// The marker: the file by which scribed tells a source's folder from an empty mount point.
pub const MARKER: &str = ".scribed";

/// One line of the default ignore list.
#[derive(Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The pattern as a person writes it: `*.part`.
    pub shown: &'static str,
    /// What such a file is, for messages: "a temporary file of rsync".
    pub whose: &'static str,
    shape: Shape,
    applies_to: AppliesTo,
}

/// How a name is matched. Case is ignored.
#[derive(Debug, PartialEq, Eq)]
enum Shape {
    Whole(&'static str),
    Starts(&'static str),
    Ends(&'static str),
    /// A dot, a name, a dot and six letters or digits.
    Rsync,
    /// A name, a dot, eight letters or digits, and `.partial`.
    Rclone,
}

/// What a pattern applies to.
#[derive(Debug, PartialEq, Eq)]
enum AppliesTo {
    Files,
    Anything,
}

const fn files(shown: &'static str, shape: Shape, whose: &'static str) -> Pattern {
    Pattern { shown, whose, shape, applies_to: AppliesTo::Files }
}

const fn anything(shown: &'static str, shape: Shape, whose: &'static str) -> Pattern {
    Pattern { shown, whose, shape, applies_to: AppliesTo::Anything }
}

const fn named(name: &'static str, whose: &'static str) -> Pattern {
    anything(name, Shape::Whole(name), whose)
}

/// The built-in ignore list; the first pattern that matches gives the message. Patterns for unfinished files apply to
/// files only: a folder `concert.part` may be a person's.
const PATTERNS: &[Pattern] = &[
    // Files of scribed.
    files(MARKER, Shape::Whole(MARKER), "scribed's marker of this folder"),
    files(".scribed.toml", Shape::Whole(".scribed.toml"), "settings for the recordings of this folder"),
    files(".scribedignore", Shape::Whole(".scribedignore"), "rules for ignored files"),
    files("*.toml", Shape::Ends(".toml"), "settings for the recording beside it"),
    files("*.scribed-tmp", Shape::Ends(TEMPORARY_SUFFIX), "an incomplete output of scribed"),
    // Before rsync's: `icloud` has six letters.
    files(".*.icloud", Shape::Ends(".icloud"), "an iCloud placeholder of a file that is not on this disk"),
    // Copies in progress: each is renamed when it is complete.
    files(".NAME.XXXXXX", Shape::Rsync, "a temporary file of rsync"),
    files("*.XXXXXXXX.partial", Shape::Rclone, "a temporary file of rclone"),
    files(".syncthing.*", Shape::Starts(".syncthing."), "a temporary file of Syncthing"),
    files("~syncthing~*", Shape::Starts("~syncthing~"), "a temporary file of Syncthing"),
    named(".stfolder", "Syncthing's folder marker"),
    named(".stversions", "Syncthing's file versions"),
    files("*.!sync", Shape::Ends(".!sync"), "a temporary file of Resilio Sync"),
    files("*.filepart", Shape::Ends(".filepart"), "a temporary file of WinSCP"),
    files("*.unmanic.part", Shape::Ends(".unmanic.part"), "a temporary file of Unmanic"),
    // Downloads in progress.
    files("*.crdownload", Shape::Ends(".crdownload"), "an unfinished download of a browser"),
    anything("*.download", Shape::Ends(".download"), "an unfinished download of a browser"),
    files("*.opdownload", Shape::Ends(".opdownload"), "an unfinished download of a browser"),
    files("*.!qB", Shape::Ends(".!qb"), "an unfinished download of qBittorrent"),
    files("*.!ut", Shape::Ends(".!ut"), "an unfinished download of uTorrent"),
    files("*.aria2", Shape::Ends(".aria2"), "the control file of an unfinished aria2 download"),
    files("*.ytdl", Shape::Ends(".ytdl"), "the control file of an unfinished yt-dlp download"),
    files("*.part", Shape::Ends(".part"), "an unfinished download or copy"),
    files("*.partial", Shape::Ends(".partial"), "an unfinished download or copy"),
    anything("*.tmp", Shape::Ends(".tmp"), "a temporary file"),
    // Other tools that work in the same folder.
    files("*.processing", Shape::Ends(".processing"), "the lock file of a program that is processing a file"),
    files("*.aai.json", Shape::Ends(".aai.json"), "a transcript cached by AssemblyAI's tool"),
    // Editors.
    anything("~$*", Shape::Starts("~$"), "the lock file of an open office document"),
    files(".~lock*", Shape::Starts(".~lock"), "the lock file of an open office document"),
    files("*~", Shape::Ends("~"), "a backup copy of an editor"),
    // Systems and network disks.
    named(".DS_Store", "folder settings of the macOS Finder"),
    files("._*", Shape::Starts("._"), "macOS file attributes beside the file they belong to"),
    named(".localized", "macOS folder settings"),
    named(".Trashes", "the macOS trash"),
    named(".Spotlight-V100", "the macOS search index"),
    named("__MACOSX", "macOS file attributes from an archive"),
    named("desktop.ini", "folder settings of Windows"),
    named("Thumbs.db", "Windows' previews"),
    named("ehthumbs.db", "Windows' previews"),
    named("$RECYCLE.BIN", "the Windows recycle bin"),
    named("RECYCLER", "the Windows recycle bin"),
    named("System Volume Information", "a Windows system folder"),
    named("@eaDir", "previews and metadata of a Synology"),
    named("#recycle", "the recycle bin of a network disk"),
    named("#snapshot", "snapshots of a network disk"),
    named("~snapshot", "snapshots of a network disk"),
    named("@tmp", "temporary files of a Synology"),
    named("@Recycle", "the recycle bin of a QNAP"),
    named("@Recently-Snapshot", "a QNAP's snapshots"),
    named("lost+found", "files recovered by a disk check"),
    files(".nfs*", Shape::Starts(".nfs"), "a deleted file that another machine still has open"),
    anything(".*", Shape::Starts("."), "hidden: its name begins with a dot"),
];

/// Returns the pattern that excludes a file or folder of this name, whatever the source's own patterns say; `None` if
/// the name may be that of media.
pub fn ignored(name: &OsStr, is_folder: bool) -> Option<&'static Pattern> {
    let name = name.as_bytes();
    if !may_be_ignored(name) {
        return None;
    }
    PATTERNS
        .iter()
        .find(|pattern| (!is_folder || pattern.applies_to == AppliesTo::Anything) && pattern.shape.fits(name))
}

/// The bytes that a name may begin or end with if a pattern fits it. A scan asks about every file, and few are ignored.
static EDGES: Edges = Edges::of_patterns();

struct Edges {
    first: [bool; 256],
    last: [bool; 256],
}

impl Edges {
    const fn of_patterns() -> Self {
        let mut edges = Self { first: [false; 256], last: [false; 256] };
        let mut at = 0;
        while at < PATTERNS.len() {
            match &PATTERNS[at].shape {
                Shape::Starts(text) => set_both_cases(&mut edges.first, text.as_bytes()[0]),
                Shape::Whole(text) | Shape::Ends(text) => {
                    set_both_cases(&mut edges.last, text.as_bytes()[text.len() - 1]);
                }
                Shape::Rsync => edges.first[b'.' as usize] = true,
                Shape::Rclone => set_both_cases(&mut edges.last, b'l'),
            }
            at += 1;
        }
        edges
    }
}

const fn set_both_cases(set: &mut [bool; 256], byte: u8) {
    set[byte.to_ascii_lowercase() as usize] = true;
    set[byte.to_ascii_uppercase() as usize] = true;
}

fn may_be_ignored(name: &[u8]) -> bool {
    let is_edge = |set: &[bool; 256], byte: Option<&u8>| byte.is_some_and(|byte| set[usize::from(*byte)]);
    is_edge(&EDGES.first, name.first()) || is_edge(&EDGES.last, name.last())
}

/// Whether this is the name of an output of scribed that is not complete.
pub fn is_leftover(name: &OsStr) -> bool {
    name.as_bytes().ends_with(TEMPORARY_SUFFIX.as_bytes())
}

impl Shape {
    fn fits(&self, name: &[u8]) -> bool {
        match self {
            Self::Whole(whole) => name.eq_ignore_ascii_case(whole.as_bytes()),
            Self::Starts(start) => {
                name.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
            }
            // At least one byte must stand before the ending.
            Self::Ends(end) => strip_end(name, end).is_some_and(|stem| !stem.is_empty()),
            Self::Rsync => name.strip_prefix(b".").and_then(|rest| random_end(rest, 6)).is_some(),
            Self::Rclone => strip_end(name, ".partial").and_then(|rest| random_end(rest, 8)).is_some(),
        }
    }
}

fn strip_end<'n>(name: &'n [u8], end: &str) -> Option<&'n [u8]> {
    let (stem, tail) = name.split_at_checked(name.len().checked_sub(end.len())?)?;
    tail.eq_ignore_ascii_case(end.as_bytes()).then_some(stem)
}

/// Returns what stands before a final dot with exactly `length` letters or digits after it.
fn random_end(name: &[u8], length: usize) -> Option<&[u8]> {
    let (stem, tail) = name.split_at_checked(name.len().checked_sub(length + 1)?)?;
    let is_random = tail[0] == b'.' && tail[1..].iter().all(u8::is_ascii_alphanumeric);
    (is_random && !stem.is_empty()).then_some(stem)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.whose, self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whose(name: &str) -> &'static str {
        ignored(OsStr::new(name), false).unwrap_or_else(|| panic!("{name} is not passed over")).whose
    }

    #[test]
    fn each_producer_is_known_by_its_names() {
        let known = [
            (".talk.mp4.a8Xk2P", "rsync"),
            (".talk.00001.mp4.Zz09aA", "rsync"),
            ("talk.mp4.k3j2h1g0.partial", "rclone"),
            (".syncthing.talk.mp4.tmp", "Syncthing"),
            ("~syncthing~talk.mp4.tmp", "Syncthing"),
            (".stfolder", "Syncthing"),
            (".stversions", "Syncthing"),
            ("talk.mp4.!sync", "Resilio"),
            ("talk.mp4.filepart", "WinSCP"),
            ("talk.mp4.unmanic.part", "Unmanic"),
            ("Unconfirmed 12345.crdownload", "browser"),
            ("talk.mp4.download", "browser"),
            ("talk.mp4.opdownload", "browser"),
            ("talk.mp4.part", "download or copy"),
            ("talk.mp4.PART", "download or copy"),
            ("talk.mp4.partial", "download or copy"),
            ("talk.mp4.!qB", "qBittorrent"),
            ("talk.mp4.!ut", "uTorrent"),
            ("talk.mp4.aria2", "aria2"),
            ("talk.mp4.ytdl", "yt-dlp"),
            ("talk.mp4.tmp", "temporary"),
            ("talk.mp4.processing", "lock"),
            ("talk.mp4.aai.json", "AssemblyAI"),
            ("~$minutes.docx", "office"),
            (".~lock.minutes.odt#", "office"),
            ("talk.mp4~", "editor"),
            (".DS_Store", "Finder"),
            ("._talk.mp4", "macOS"),
            (".localized", "macOS"),
            (".Trashes", "macOS"),
            (".Spotlight-V100", "macOS"),
            ("__MACOSX", "macOS"),
            (".talk.mp4.icloud", "iCloud"),
            ("desktop.ini", "Windows"),
            ("Thumbs.db", "Windows"),
            ("thumbs.DB", "Windows"),
            ("$RECYCLE.BIN", "Windows"),
            ("RECYCLER", "Windows"),
            ("System Volume Information", "Windows"),
            ("@eaDir", "Synology"),
            ("#recycle", "network disk"),
            ("~snapshot", "network disk"),
            ("@Recycle", "QNAP"),
            ("lost+found", "disk check"),
            (".nfs000000000000a1b2", "another machine"),
            (".hidden.mp4", "hidden"),
            (".scribed", "marker"),
            (".scribed.toml", "of this folder"),
            (".scribedignore", "ignored files"),
            ("talk.toml", "beside it"),
            ("talk.TOML", "beside it"),
            (".0123456789abcdef0123456789abcdef.scribed-tmp", "incomplete"),
        ];
        for (name, words) in known {
            assert!(whose(name).contains(words), "{name}: {}", whose(name));
        }
    }

    #[test]
    fn folders_of_junk_are_passed_over_and_a_persons_are_not() {
        let is_junk = |name: &str| ignored(OsStr::new(name), true).is_some();
        for name in ["@eaDir", "#recycle", "__MACOSX", ".git", "talk.mp4.download", "System Volume Information"] {
            assert!(is_junk(name), "{name}");
        }
        for name in ["concert.part", "Vol. 1.Part", "2024~", "processing", "eaDir", "talk.mp4"] {
            assert!(!is_junk(name), "{name}");
        }
    }

    #[test]
    fn recordings_that_look_a_bit_similar_are_taken() {
        let recordings = [
            "talk.mp4",
            "-talk.part.mp4",
            "talk.tmp.wav",
            "part.mp4",
            "part",
            "talk.abcdef",
            "talk.partial.mkv",
            "~talk.mp4",
            "my.download.mp4",
            "Thumbs.db.mp4",
            "scribed.mp4",
            "room@eaDir.wav",
            "processing.mp3",
            "talk.mp4.k3j2h1g0",
            "lost+found.mp4",
        ];
        for name in recordings {
            assert_eq!(ignored(OsStr::new(name), false), None, "{name}");
        }
    }

    proptest::proptest! {
        /// A pattern that fits is never missed because of the first and last byte.
        #[test]
        fn the_edges_miss_no_pattern(before in "[.~a-z]{0,3}", at in 0..PATTERNS.len(), after in "[.~a-zA-Z0-9]{0,7}", upper: bool) {
            let (Shape::Whole(text) | Shape::Starts(text) | Shape::Ends(text)) = PATTERNS[at].shape else { return Ok(()) };
            let name = format!("{before}{text}{after}");
            let name = if upper { name.to_uppercase() } else { name };
            let fits = |name: &str| PATTERNS.iter().any(|pattern| pattern.shape.fits(name.as_bytes()));
            for name in [&name, text, &format!("{before}{text}"), &format!("{text}{after}"), &after] {
                proptest::prop_assert_eq!(ignored(OsStr::new(name), false).is_some(), fits(name), "{}", name);
            }
        }
    }

    #[test]
    fn names_of_any_bytes_are_taken_as_they_are() {
        for name in [&b"caf\xe9.wav"[..], b"\xff\xfe", b"", b"~", b"."] {
            let _ = ignored(OsStr::from_bytes(name), false);
        }
        assert!(ignored(OsStr::from_bytes(b"caf\xe9.wav.part"), false).is_some());
    }
}
