//! Recovers a log's folder after a process was killed, the power failed in the middle of a write, or the disk returns
//! other bytes than were written.

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

/// Opens the log in a folder, and creates the folder if it does not exist. The content is durable when this returns.
///
/// Damaged bytes are overwritten. Those that may have been a record are copied to a file beside the volume, and the log
/// output says so; this is not an error.
///
/// # Errors
/// Errors of the file system, and a line that a newer release wrote.
pub fn open(folder: PathBuf, limit: u64) -> Result<TranscriptionLog, StoreOpenError> {
    let failed = |error| StoreOpenError::Io { path: folder.clone(), error };
    files::make_folder(&folder).map_err(failed)?;
    files::remove_leftovers(&folder).map_err(failed)?;
    let (mut index, mut last, mut gone) = (SegmentIndex::default(), None, HashSet::new());
    for volume in volumes(&folder).map_err(failed)? {
        let path = ledger::volume_path(&folder, volume);
        let bytes = fs::read(&path).map_err(failed)?;
        let lines = read(&bytes, &mut gone);
        if let Some(version) = lines.newer {
            return Err(StoreOpenError::Newer { path, version });
        }
        fix(&path, &bytes, &lines).map_err(failed)?;
        add_to_index(&mut index, volume, &lines.sound);
        let end = lines.sound.last().map_or(0, |(range, ..)| range.end as u64);
        index.set_volume_bytes(volume, end);
        last = Some((volume, end));
    }
    let own = folder.clone();
    TranscriptionLog::new(own, limit, index, last).map_err(failed)
}

/// The lines of a volume.
#[derive(Default)]
struct Lines {
    /// The place of each line, its id, and whether it is a deletion.
    sound: Vec<(Range<usize>, Uuid, bool)>,
    damaged: Vec<Range<usize>>,
    /// Copies of records that were already deleted: the process stopped before it overwrote them. They are overwritten
    /// now, because the line of the deletion may be removed before them.
    copies: Vec<Range<usize>>,
    /// The version of a line that a newer release wrote.
    newer: Option<u32>,
}

/// Reads the lines of a volume. `gone` are the ids that earlier volumes delete; the deletions of this one are added.
fn read(bytes: &[u8], gone: &mut HashSet<Uuid>) -> Lines {
    let mut lines = Lines::default();
    for piece in framing::split_frames(bytes) {
        let Frame::Whole(range) = piece else {
            let Frame::Damaged(range) = piece else { continue };
            lines.damaged.push(range);
            continue;
        };
        let json = framing::decode(&bytes[range.clone()]).unwrap_or_default();
        match parse_record(json) {
            Some((id, false)) if gone.contains(&id) => lines.copies.push(range),
            Some((id, is_deletion)) => {
                gone.extend(is_deletion.then_some(id));
                lines.sound.push((range, id, is_deletion));
            }
            None => match newer_version(json) {
                Some(version) => lines.newer = Some(version),
                None => lines.damaged.push(range),
            },
        }
    }
    lines
}

/// Parses a line with its whole record. Returns its id, and whether it is a deletion.
fn parse_record(json: &[u8]) -> Option<(Uuid, bool)> {
    let line: LogRecord<RecordMeta> = serde_json::from_slice(json).ok()?;
    if line.v != 1 || line.head.is_some_and(|head| head.v != 1) {
        return None;
    }
    Some((files::parse_id(&line.id)?, line.gone))
}

/// Returns the version of a line, or of the record in it, if it is a newer one.
fn newer_version(json: &[u8]) -> Option<u32> {
    let line = serde_json::from_slice::<Version>(json).ok().map(|line| line.v);
    let head = || Some(serde_json::from_slice::<LogRecord<Version>>(json).ok()?.head?.v);
    line.filter(|version| *version != 1).or_else(|| head().filter(|version| *version != 1))
}

fn add_to_index(index: &mut SegmentIndex, volume: u64, lines: &[(Range<usize>, Uuid, bool)]) {
    for (range, id, gone) in lines {
        if *gone {
            index.mark_deleted(*id);
        } else {
            index.insert(*id, RecordLocation { volume, at: range.start as u64, len: range.len() as u64 });
        }
    }
}

/// Copies damaged bytes to a file and overwrites them, and overwrites copies. The whole volume is durable when this
/// returns.
fn fix(path: &Path, bytes: &[u8], lines: &Lines) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    for range in &lines.copies {
        overwrite_blank(&file, range.start as u64, range.len() as u64)?;
    }
    for range in &lines.damaged {
        let lost = &bytes[range.clone()];
        // Without a line break this is less than a record: it was being written when the power failed, and no client
        // was told that it is accepted.
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
    // Lines that a killed process had written and not synced count as accepted.
    file.sync_all()
}

/// Returns the numbers of the volumes in a folder, oldest first.
fn volumes(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".log")?.parse().ok());
        // Only names in the spelling that this code writes.
        numbers
            .extend(number.filter(|number| ledger::volume_path(folder, *number).file_name() == Some(name.as_os_str())));
    }
    numbers.sort_unstable();
    Ok(numbers)
}
