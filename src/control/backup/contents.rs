//! Which files of a state directory are backed up: all but those that can be made again, and those of the running
//! process. What a later release keeps there is backed up, too.

use crate::durable_file::TEMPORARY;
use crate::permission_errors::explain_state_at;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The files and folders of the state directory that are left out, each for its reason.
const LEFT_OUT: [&str; 17] = [
    // Copied row by row; its large values are files, and are not left out.
    "queue",
    // Of the process that uses the directory.
    "queue.lock",
    "control.sock",
    "restore-unfinished",
    // What was read or sent in this moment: it is read again.
    "in-progress",
    "spool",
    // Made again, faster than it is copied.
    "measured",
    "last-lists.json",
    // Made again from the kept results.
    "search",
    // How far the history was compared with the rows of that directory.
    "history/compared",
    // Of the embedded service: its lock, what it works on, and what it had recognised of that.
    "service/lock",
    "service/started",
    "service/recognition",
    // For monitoring: it is about a pass on another machine.
    "last-pass.json",
    // When old results and old history were last removed there: looked for again.
    "last-retention.json",
    "last-history-retention.json",
    // A queue that was set aside was damaged; whoever needs it copies it.
    "damaged",
];

/// The part of the queue's folder that is backed up as files.
const LARGE_VALUES: &str = "queue/large";

const LEDGER: &str = "service/ledger";
const TRANSCRIPTIONS: &str = "service/transcriptions";
const RESULTS: &str = "service/results";
const UPLOADS: &str = "service/uploads";

/// Whether a file or folder below the state directory is backed up.
pub(super) fn is_backed_up(below: &Path) -> bool {
    if below.starts_with(LARGE_VALUES) {
        return !is_unfinished(below);
    }
    let first = below.iter().next().map(std::ffi::OsStr::as_encoded_bytes).unwrap_or_default();
    let is_aside = first.starts_with(b"damaged-") || first.starts_with(b".plan-");
    !is_aside && !is_unfinished(below) && !LEFT_OUT.iter().any(|name| below.starts_with(name))
}

/// Whether this is the temporary name of a file that is being written.
fn is_unfinished(below: &Path) -> bool {
    let name = below.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(TEMPORARY.as_bytes()) || name.ends_with(b".scribed-tmp")
}

/// Passes the files to `take`, each opened and with its path below the state directory. A file that is removed in this
/// moment is left out.
///
/// The embedded service goes on working meanwhile. Its folders are read in the order in which it writes and removes:
/// an upload stays until its transcription has ended, a transcription is in the log until then, and its result is
/// there before its end is. Uploads are read before and after the log, so that each that the copy of the log needs is
/// among them, or the end of its transcription is. Such a file may be passed twice.
///
/// # Errors
/// Errors of the file system, with the path, and of `take`.
pub(super) fn each_file<E: From<UnreadableFile>>(
    state: &Path,
    take: &mut dyn FnMut(&Path, File) -> Result<(), E>,
) -> Result<(), E> {
    let is_later = |below: &Path| [LEDGER, TRANSCRIPTIONS, RESULTS].iter().any(|later| below.starts_with(later));
    walk(state, Path::new(""), &|below| is_backed_up(below) && !is_later(below), take)?;
    walk(state, Path::new(LARGE_VALUES), &is_backed_up, take)?;
    let log = opened_together(state, Path::new(LEDGER))?;
    log.into_iter().try_for_each(|(below, file)| take(&below, file))?;
    for folder in [UPLOADS, TRANSCRIPTIONS, RESULTS] {
        walk(state, Path::new(folder), &is_backed_up, take)?;
    }
    Ok(())
}

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {error}", path.display())]
pub struct UnreadableFile {
    pub path: PathBuf,
    pub error: io::Error,
}

/// Links are followed: a person may have moved a large folder to another disk.
fn walk<E: From<UnreadableFile>>(
    state: &Path,
    below: &Path,
    is_wanted: &dyn Fn(&Path) -> bool,
    take: &mut dyn FnMut(&Path, File) -> Result<(), E>,
) -> Result<(), E> {
    let root = state.join(below);
    if !root.exists() {
        return Ok(());
    }
    let relative = |path: &Path| path.strip_prefix(state).map(Path::to_owned).unwrap_or_default();
    let entries = walkdir::WalkDir::new(&root).follow_links(true).sort_by_file_name().into_iter();
    let entries = entries.filter_entry(|entry| entry.depth() == 0 || is_wanted(&relative(entry.path())));
    for entry in entries {
        let entry = match entry {
            Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => continue,
            Err(error) => {
                let path = error.path().unwrap_or(&root).to_owned();
                return Err(UnreadableFile { path, error: error.into() }.into());
            }
            Ok(entry) => entry,
        };
        if entry.file_type().is_file()
            && let Some(file) = open(entry.path())?
        {
            take(&relative(entry.path()), file)?;
        }
    }
    Ok(())
}

/// Opens all files of a folder that are there at the same time. The service writes what it still needs of one again
/// before it removes that one: if one is gone, another has appeared.
fn opened_together(state: &Path, below: &Path) -> Result<Vec<(PathBuf, File)>, UnreadableFile> {
    loop {
        let mut files = Vec::new();
        let mut paths = Vec::new();
        walk::<UnreadableFile>(state, below, &is_backed_up, &mut |below, file| {
            paths.push(below.to_owned());
            files.push(file);
            Ok(())
        })?;
        let is_whole = paths.iter().all(|path| state.join(path).exists());
        if is_whole {
            return Ok(paths.into_iter().zip(files).collect());
        }
    }
}

fn open(path: &Path) -> Result<Option<File>, UnreadableFile> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(UnreadableFile { path: path.to_owned(), error: explain_state_at(path)(error) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn all_but_what_can_be_made_again_is_backed_up() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        };
        let kept = [
            "accepted/ab/x.json",
            "callback/key",
            "folders/f",
            "history/2026-11.jsonl",
            "history/purchases.log",
            "identity",
            "params/p.json",
            "queue/large/ab/l.json",
            "receipts/r",
            "results/default/ab/removed",
            "results/default/ab/x.json.gz",
            "service/desk.json",
            "service/key",
            "service/ledger/1",
            "service/results/r.json",
            "service/transcriptions/t.json",
            "service/uploads/u",
            "sources.json",
            "what-a-later-release-keeps",
        ];
        let left_out = [
            ".plan-x/queue/db",
            "control.sock",
            "damaged-1/queue/db",
            "history/compared",
            "in-progress/1",
            "last-lists.json",
            "last-pass.json",
            "last-retention.json",
            "last-history-retention.json",
            "measured",
            "queue/db",
            "queue/conf",
            "queue.lock",
            "spool/1",
            "results/default/ab/.x.scribed-tmp",
            "params/.tmpX",
            "service/lock",
            "service/recognition/1",
            "service/started/1",
            "restore-unfinished",
            "queue/large/ab/.tmpX",
        ];
        kept.iter().chain(&left_out).for_each(|name| make(name));
        std::os::unix::fs::symlink("nowhere", folder.path().join("dangling")).unwrap();
        let (mut found, mut order) = (Vec::new(), Vec::new());
        each_file::<UnreadableFile>(folder.path(), &mut |below, file| {
            assert_eq!(io::read_to_string(file).unwrap(), below.to_str().unwrap());
            found.push(below.to_str().unwrap().to_owned());
            order.extend(below.to_str().unwrap().strip_prefix("service/").map(str::to_owned));
            Ok(())
        })
        .unwrap();
        found.sort();
        found.dedup();
        assert_eq!(found, kept);
        let place = |name: &str| order.iter().rposition(|found| found.starts_with(name)).unwrap();
        assert!(place("ledger") < place("uploads") && place("uploads") < place("transcriptions"), "{order:?}");
        assert!(place("transcriptions") < place("results"), "{order:?}");
    }
}
