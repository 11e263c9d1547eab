//! Names that are never media: producers' temporary files, system junk, our own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The ending of our own outputs until they are whole.
const LEFTOVER: &[u8] = b".scribed-tmp";

/// Endings of files that somebody is still writing.
const UNFINISHED: [&[u8]; 8] =
    [b".tmp", b".part", b".partial", b".crdownload", b".download", b".filepart", LEFTOVER, b"~"];

/// Folders and files that operating systems and network disks leave about.
const JUNK: [&[u8]; 7] =
    [b"desktop.ini", b"Thumbs.db", b"@eaDir", b"__MACOSX", b"#recycle", b"$RECYCLE.BIN", b"System Volume Information"];

/// Whether a file or folder of this name is passed over whatever the patterns say. A leading dot
/// covers rsync's and Syncthing's temporary names and most system junk.
pub fn is_ignored(name: &OsStr) -> bool {
    let name = name.as_bytes();
    let hidden = name.starts_with(b".") || name.starts_with(b"~$") || name.starts_with(b"~syncthing~");
    hidden || UNFINISHED.iter().any(|ending| name.ends_with(ending)) || JUNK.contains(&name)
}

/// Whether this may be an output of ours that is not whole.
pub fn is_leftover(name: &OsStr) -> bool {
    name.as_bytes().ends_with(LEFTOVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_of_known_producers_are_passed_over() {
        let ignored = [".talk.mp4.a8Xk2P", "talk.mp4.k3j2h1g0.partial", "~syncthing~talk.mp4.tmp", "talk.mp4.filepart"];
        assert!(ignored.iter().all(|name| is_ignored(OsStr::new(name))));
        assert!(!is_ignored(OsStr::new("talk.mp4")));
        assert!(!is_ignored(OsStr::new("-talk.part.mp4")));
    }
}
