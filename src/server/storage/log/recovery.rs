//! What a ledger's folder holds after whatever befell it: a process that was killed, power that failed in
//! the middle of a write, a disk that gives back something else than it was given.

use crate::server::storage::files;
use crate::server::storage::log::framing;
use crate::server::storage::log::framing::{BLANK, Frame};
use crate::server::storage::log::ledger;
use crate::server::storage::log::ledger::{LogRecord, TranscriptionLog, overwrite_blank};
use crate::server::storage::log::segment_index::{RecordLocation, SegmentIndex};
use crate::server::storage::open::{StoreOpenError, Version};
use crate::server::storage::record_meta::RecordMeta;
use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Opens the ledger in a folder, made if it is not there. What is in it is durable when it returns.
///
/// What is damaged is blotted out; what may have been a record is set aside in a file beside the volume
/// and told in the log, no error.
///
/// # Errors
/// Those of the file system, and a line that a newer release wrote.
pub fn open(folder: PathBuf, limit: u64) -> Result<TranscriptionLog, StoreOpenError> {
    let failed = |error| StoreOpenError::Io { path: folder.clone(), error };
    files::make_folder(&folder).map_err(failed)?;
    files::remove_leftovers(&folder).map_err(failed)?;
    let (mut book, mut last, mut gone) = (SegmentIndex::default(), None, HashSet::new());
    for volume in volumes(&folder).map_err(failed)? {
        let path = ledger::volume_path(&folder, volume);
        let bytes = fs::read(&path).map_err(failed)?;
        let lines = read(&bytes, &mut gone);
        if let Some(version) = lines.newer {
            return Err(StoreOpenError::Newer { path, version });
        }
        fix(&path, &bytes, &lines).map_err(failed)?;
        note(&mut book, volume, &lines.sound);
        let end = lines.sound.last().map_or(0, |(range, ..)| range.end as u64);
        book.set_volume_bytes(volume, end);
        last = Some((volume, end));
    }
    let own = folder.clone();
    TranscriptionLog::new(own, limit, book, last).map_err(failed)
}

/// The lines of a volume.
#[derive(Default)]
struct Lines {
    /// Where each is, its id, and whether that is gone.
    sound: Vec<(Range<usize>, Uuid, bool)>,
    damaged: Vec<Range<usize>>,
    /// Copies of what was gone already: this was stopped before they were blotted out. What says that
    /// they are gone may be cleared away before them.
    copies: Vec<Range<usize>>,
    /// The version of a line that is newer than this release.
    newer: Option<u32>,
}

/// `gone` are the ids that are gone by what stands before these bytes, and then by them too.
fn read(bytes: &[u8], gone: &mut HashSet<Uuid>) -> Lines {
    let mut lines = Lines::default();
    for piece in framing::split_frames(bytes) {
        let Frame::Whole(range) = piece else {
            let Frame::Damaged(range) = piece else { continue };
            lines.damaged.push(range);
            continue;
        };
        let json = framing::decode(&bytes[range.clone()]).unwrap_or_default();
        match understood(json) {
            Some((id, false)) if gone.contains(&id) => lines.copies.push(range),
            Some((id, goes)) => {
                gone.extend(goes.then_some(id));
                lines.sound.push((range, id, goes));
            }
            None => match newer(json) {
                Some(version) => lines.newer = Some(version),
                None => lines.damaged.push(range),
            },
        }
    }
    lines
}

/// The id of a line that is whole down to its head, and whether that is gone.
fn understood(json: &[u8]) -> Option<(Uuid, bool)> {
    let line: LogRecord<RecordMeta> = serde_json::from_slice(json).ok()?;
    if line.v != 1 || line.head.is_some_and(|head| head.v != 1) {
        return None;
    }
    Some((files::parse_id(&line.id)?, line.gone))
}

/// The version of a line, or of the head in it, if that is a newer one.
fn newer(json: &[u8]) -> Option<u32> {
    let line = serde_json::from_slice::<Version>(json).ok().map(|line| line.v);
    let head = || Some(serde_json::from_slice::<LogRecord<Version>>(json).ok()?.head?.v);
    line.filter(|version| *version != 1).or_else(|| head().filter(|version| *version != 1))
}

fn note(book: &mut SegmentIndex, volume: u64, lines: &[(Range<usize>, Uuid, bool)]) {
    for (range, id, gone) in lines {
        if *gone {
            book.mark_deleted(*id);
        } else {
            book.insert(*id, RecordLocation { volume, at: range.start as u64, len: range.len() as u64 });
        }
    }
}

/// Sets aside and blots out what is damaged, and blots out copies. All of the volume is durable when it
/// returns.
fn fix(path: &Path, bytes: &[u8], lines: &Lines) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    for range in &lines.copies {
        overwrite_blank(&file, range.start as u64, range.len() as u64)?;
    }
    for range in &lines.damaged {
        let lost = &bytes[range.clone()];
        // Without the end of a line it is less than a record: it was being written when the power failed,
        // and nobody was told that it is accepted.
        if lost.contains(&BLANK) {
            let aside = path.with_extension(format!("{}.damaged", range.start));
            files::write_whole(&aside, lost)?;
            tracing::error!(
                volume = %path.display(), at = range.start, bytes = lost.len(), aside = %aside.display(),
                "a part of the log of transcriptions was damaged; the service renamed it. A transcription that \
                 had not ended may be in it"
            );
        } else {
            tracing::warn!(
                volume = %path.display(), at = range.start, bytes = lost.len(),
                "the service discarded a create that was being written when the machine stopped; no client was \
                 told that it was accepted"
            );
        }
        overwrite_blank(&file, range.start as u64, range.len() as u64)?;
    }
    // What a killed process had written and not synced is taken as accepted.
    file.sync_all()
}

/// The numbers of the volumes in a folder, oldest first.
fn volumes(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".log")?.parse().ok());
        // Only in the spelling that they are written in.
        numbers
            .extend(number.filter(|number| ledger::volume_path(folder, *number).file_name() == Some(name.as_os_str())));
    }
    numbers.sort_unstable();
    Ok(numbers)
}
