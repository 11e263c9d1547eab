//! Makes a state directory of a backup. The whole backup is checked before anything is written.

use super::check::{CheckReport, check_backup};
use super::format::{BackupHeader, MemberKind};
use super::read::{BackupError, read_backup};
use crate::crash_points::{self, Point};
use crate::domain::count::count;
use crate::permission_errors::explain_state_at;
use crate::store::contract::StoreError;
use crate::store::sled::{RestoredState, RowCheckError, may_be_filled};
use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Why a backup was not restored. The state directory is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The directory has something.
    #[error("the state directory is not empty")]
    NotEmpty,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot write {}: {error}", path.display())]
    Unwritable { path: PathBuf, error: io::Error },
}

/// Restores a backup into an empty state directory. Returns what the check of the backup found, too: a backup of an
/// incomplete state is restored as it is. Blocks.
///
/// # Errors
/// See [`RestoreError`].
pub fn restore(backup: &Path, state: &Path) -> Result<(BackupHeader, CheckReport), RestoreError> {
    let unwritable = |error| RestoreError::Unwritable { path: state.to_owned(), error: explain_state_at(state)(error) };
    if !may_be_filled(state).map_err(unwritable)? {
        return Err(RestoreError::NotEmpty);
    }
    let (header, report) = check_backup(backup)?;
    if report.damaged_rows > 0 {
        let words = format!("{} of its queue cannot be read", count(report.damaged_rows, "row"));
        return Err(BackupError::Damaged(words).into());
    }
    let mut restored = RestoredState::claim(state)?.ok_or(RestoreError::NotEmpty)?;
    restored.begin().map_err(unwritable)?;
    read_backup::<RestoreError>(backup, &mut |member| match member.kind {
        MemberKind::Rows => restored.put_rows(member.content).map_err(|error| of_rows(error, state)),
        MemberKind::File(below) => write(&state.join(below), member.content, member.modified),
        MemberKind::Header | MemberKind::Checksums => Ok(()),
    })?;
    restored.finish()?;
    Ok((header, report))
}

fn of_rows(error: RowCheckError, state: &Path) -> RestoreError {
    match error {
        RowCheckError::Io(error) => RestoreError::Unwritable { path: state.join("queue"), error },
        other => BackupError::from(other).into(),
    }
}

/// Writes a file that does not exist, readable by its owner only. It is synced at the end, with all others.
fn write(path: &Path, content: &mut dyn Read, modified: u64) -> Result<(), RestoreError> {
    let unwritable = |error| RestoreError::Unwritable { path: path.to_owned(), error: explain_state_at(path)(error) };
    let folder = path.parent().unwrap_or(path);
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unwritable)?;
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path).map_err(unwritable)?;
    io::copy(content, &mut file).map_err(unwritable)?;
    // The newest file of the history is recognised by its date. A date that the disk cannot store does no harm.
    let _ = file.set_modified(UNIX_EPOCH + Duration::from_secs(modified));
    crash_points::point(Point::RestoredFile);
    Ok(())
}
