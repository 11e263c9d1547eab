//! Decides which files a source takes, and by which rule it passes over the others. The scan, the watch and the
//! commands that explain all ask here, so that they agree.

use crate::config::model::Source;
use crate::manifests::format::find::is_manifest;
use crate::source::filter::builtin::{MARKER, Pattern, ignored};
use crate::source::filter::scribedignore::IgnoreFiles;
use globset::Candidate;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The longest path that the system can open, in bytes.
pub const LONGEST_PATH: usize = 4095;

/// The kind of a directory entry. Links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Folder,
    /// A symbolic link, whatever its target is.
    Link,
    Pipe,
    Socket,
    /// A block or character device.
    Device,
}

impl From<std::fs::FileType> for EntryKind {
    fn from(file_type: std::fs::FileType) -> Self {
        match file_type {
            file_type if file_type.is_file() => Self::File,
            file_type if file_type.is_dir() => Self::Folder,
            file_type if file_type.is_symlink() => Self::Link,
            file_type if file_type.is_fifo() => Self::Pipe,
            file_type if file_type.is_socket() => Self::Socket,
            _ => Self::Device,
        }
    }
}

/// The result of the filter for a file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterResult {
    /// A file becomes a job; a folder is scanned.
    Taken,
    /// The source does not take it.
    PassedOver(Rule),
}

/// The rule by which a file is passed over. Its text stands after the path: "talk.mp4: …".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// The name is on the built-in ignore list.
    Ignored(&'static Pattern),
    /// A folder above it is passed over.
    Below {
        /// The folder, relative to the source's folder.
        folder: PathBuf,
        rule: Box<Rule>,
    },
    /// The marker in the source's folder.
    Marker,
    /// The file is in scribed's state directory, in the embedded service's data or in a source's output folder, or it
    /// is the configuration or a key.
    OwnFolder,
    /// An output of scribed. [`filter_path`] does not return it: only the store knows the outputs.
    OurOutput,
    NotAFile(EntryKind),
    /// A line of a `.scribedignore` excludes it. [`filter_path`] does not return it: see
    /// [`crate::source::filter::scribedignore`].
    Line {
        /// The `.scribedignore`, relative to the source's folder.
        file: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// The pattern as it is written there.
        pattern: String,
    },
    /// A `.scribedignore` in a folder above cannot be read, so that it is not known whether it excludes the file.
    Unread {
        /// The `.scribedignore`, relative to the source's folder.
        file: PathBuf,
        /// The reason, in words that stand after the file's path.
        why: String,
    },
    /// No `include` pattern of the source matches.
    NotIncluded,
    /// An `exclude` pattern of the source matches.
    Excluded,
    /// The path is too long to be opened.
    TooLong,
    /// A manifest: its rows become jobs, the file itself does not.
    Manifest,
    /// The source has manifests and takes only the recordings that they name.
    NotListed,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignored(pattern) => write!(f, "ignored: {pattern}"),
            Self::Below { folder, rule } => write!(f, "in the folder {}, which is {rule}", folder.display()),
            Self::Marker => f.write_str("ignored: the marker by which scribed recognises this folder"),
            Self::OwnFolder => f.write_str(
                "ignored: a file of scribed (state, configuration, a key or service data), or in an output folder (`place`)",
            ),
            Self::OurOutput => f.write_str("ignored: an output that scribed wrote"),
            Self::NotAFile(kind) => write!(f, "ignored: {}, not a regular file", kind.describe()),
            Self::Line { file, line, pattern } => {
                write!(f, "ignored: line {line} of {} ({pattern})", file.display())
            }
            Self::Unread { file, why } => {
                write!(f, "ignored, to be safe: {} {why}", file.display())
            }
            Self::NotIncluded => f.write_str("ignored: no `include` pattern of the source matches it"),
            Self::Excluded => f.write_str("ignored: an `exclude` pattern of the source matches it"),
            Self::Manifest => f.write_str("ignored: a manifest; scribed transcribes what its rows name"),
            Self::NotListed => f.write_str("ignored: the source transcribes only what its manifests name"),
            Self::TooLong => write!(f, "ignored: its path is longer than {LONGEST_PATH} bytes; {LONG_PATH_FIX}"),
        }
    }
}

/// Advice for paths that are too long.
pub const LONG_PATH_FIX: &str = "move it to a higher folder, or make a lower folder a source";

impl EntryKind {
    pub fn describe(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Link => "a symbolic link (scribed does not follow links)",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
        }
    }
}

/// Applies the source's settings to the entry at `path`, relative to the source's folder. For a folder, `Taken` means
/// that the entries below it are looked at; a rule excludes all of them.
pub fn filter_path(source: &Source, path: &Path, kind: EntryKind) -> FilterResult {
    let above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let above: Vec<&Path> = above.collect();
    for folder in above.into_iter().rev() {
        if let FilterResult::PassedOver(rule) = filter_entry(source, folder, EntryKind::Folder) {
            return FilterResult::PassedOver(Rule::Below { folder: folder.to_owned(), rule: Box::new(rule) });
        }
    }
    filter_entry(source, path, kind)
}

/// Like [`filter_path`], for an entry of a folder that was itself taken: the folders above are not checked.
pub fn filter_entry(source: &Source, path: &Path, kind: EntryKind) -> FilterResult {
    match rule(source, path, kind) {
        Some(rule) => FilterResult::PassedOver(rule),
        None => FilterResult::Taken,
    }
}

/// Like [`filter_entry`], and applies the `.scribedignore` files. Blocks if one has to be read.
pub fn filter_entry_with_ignore_files(
    source: &Source,
    ignoring: &mut IgnoreFiles,
    path: &Path,
    kind: EntryKind,
) -> FilterResult {
    match filter_entry(source, path, kind) {
        FilterResult::Taken => {
            ignoring.rule(path, kind == EntryKind::Folder).map_or(FilterResult::Taken, FilterResult::PassedOver)
        }
        passed_over => passed_over,
    }
}

/// Like [`filter_path`], and applies the `.scribedignore` files. Blocks.
pub fn filter_path_with_ignore_files(source: &Source, path: &Path, kind: EntryKind) -> FilterResult {
    match filter_path(source, path, kind) {
        FilterResult::Taken => {
            let rule = IgnoreFiles::new(&source.folder).rule_anywhere(path, kind == EntryKind::Folder);
            rule.map_or(FilterResult::Taken, FilterResult::PassedOver)
        }
        passed_over => passed_over,
    }
}

fn rule(source: &Source, path: &Path, kind: EntryKind) -> Option<Rule> {
    let name = path.file_name().unwrap_or_else(|| OsStr::new(""));
    if source.own_folders.iter().any(|own| path.starts_with(own)) {
        return Some(Rule::OwnFolder);
    }
    if path.as_os_str() == MARKER && kind == EntryKind::File {
        return Some(Rule::Marker);
    }
    if let Some(pattern) = ignored(name, kind == EntryKind::Folder) {
        return Some(Rule::Ignored(pattern));
    }
    if let Some(manifests) = source.manifests().filter(|_| kind == EntryKind::File) {
        return Some(if is_manifest(manifests, path) { Rule::Manifest } else { Rule::NotListed });
    }
    let length = source.folder.as_os_str().len() + 1 + path.as_os_str().as_bytes().len();
    match kind {
        _ if length > LONGEST_PATH => Some(Rule::TooLong),
        EntryKind::Folder => None,
        EntryKind::File => rule_by_patterns(source, path),
        kind => Some(Rule::NotAFile(kind)),
    }
}

fn rule_by_patterns(source: &Source, path: &Path) -> Option<Rule> {
    let candidate = Candidate::new(path);
    if source.exclude.is_match_candidate(&candidate) {
        return Some(Rule::Excluded);
    }
    (!source.include.is_match_candidate(&candidate)).then_some(Rule::NotIncluded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::read;

    fn source(lines: &str) -> Source {
        let text = format!("[state]\nstore = \"sled:/srv/media/.state\"\n[[source]]\nfolder = \"/srv/media\"\n{lines}");
        read::parse(Path::new("/etc/jobs.toml"), &text, &|_| None).unwrap().sources.remove(0)
    }

    fn filtered(source: &Source, path: &str, kind: EntryKind) -> String {
        match filter_path(source, Path::new(path), kind) {
            FilterResult::Taken => "taken".to_owned(),
            FilterResult::PassedOver(rule) => rule.to_string(),
        }
    }

    #[test]
    fn every_rule_says_what_it_is() {
        let source = source("include = [\"**/*.wav\"]\nexclude = [\"**/rushes/**\"]\n");
        let files = [
            "talk.wav",
            "a/b/talk.WAV",
            "talk.txt",
            "a/rushes/talk.wav",
            ".scribed",
            "a/.scribed",
            "a/.talk.wav.a8Xk2P",
            "@eaDir/talk.wav/SYNOAUDIO.wav",
            "a/.git/b/c.wav",
            ".state/uploads/x.wav",
        ];
        let kinds = [EntryKind::Folder, EntryKind::Link, EntryKind::Pipe, EntryKind::Socket, EntryKind::Device];
        let of_files = files.iter().map(|path| format!("{path}: {}", filtered(&source, path, EntryKind::File)));
        let of_kinds = kinds.iter().map(|kind| format!("{kind:?}: {}", filtered(&source, "x.wav", *kind)));
        insta::assert_snapshot!(of_files.chain(of_kinds).collect::<Vec<_>>().join("\n"), @"
        talk.wav: taken
        a/b/talk.WAV: taken
        talk.txt: ignored: no `include` pattern of the source matches it
        a/rushes/talk.wav: ignored: an `exclude` pattern of the source matches it
        .scribed: ignored: the marker by which scribed recognises this folder
        a/.scribed: ignored: scribed's marker of this folder (.scribed)
        a/.talk.wav.a8Xk2P: ignored: a temporary file of rsync (.NAME.XXXXXX)
        @eaDir/talk.wav/SYNOAUDIO.wav: in the folder @eaDir, which is ignored: previews and metadata of a Synology (@eaDir)
        a/.git/b/c.wav: in the folder a/.git, which is ignored: hidden: its name begins with a dot (.*)
        .state/uploads/x.wav: in the folder .state, which is ignored: a file of scribed (state, configuration, a key or service data), or in an output folder (`place`)
        Folder: taken
        Link: ignored: a symbolic link (scribed does not follow links), not a regular file
        Pipe: ignored: a named pipe, not a regular file
        Socket: ignored: a socket, not a regular file
        Device: ignored: a device, not a regular file
        ");
    }

    #[test]
    fn a_path_that_cannot_be_opened_is_named() {
        let source = source("");
        let deep = ["x".repeat(200).as_str(); 21].join("/");
        assert!(filtered(&source, &format!("{deep}/a.wav"), EntryKind::File).contains("longer than 4095 bytes"));
        assert_eq!(filtered(&source, &deep[..3000], EntryKind::Folder), "taken");
    }

    #[test]
    fn the_roots_own_name_is_not_asked() {
        let source = source("");
        assert_eq!(filtered(&source, "", EntryKind::Folder), "taken");
    }
}
