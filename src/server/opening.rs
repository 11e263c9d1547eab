//! How a desk is opened: who it is, whose it is, and what is found on it.

use crate::clock::Clock;
use crate::domain::names::{Hash, Timestamp};
use crate::server::auth::Key;
use crate::server::committer::Committer;
use crate::server::desk::Rules;
use crate::server::files;
use crate::server::head::{Ended, Head, NOBODY};
use crate::server::index::{Entry, Index, Waits};
use crate::server::ledger::{LEDGER, Ledger};
use crate::server::owners::{Assigned, Owners};
use crate::server::recovery;
use crate::server::shelf::Shelf;
use crate::server::starts::{Starts, Work};
use crate::wire::record::Status;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Why a desk cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    /// Another process has the lock.
    #[error("the data directory {} is in use by another process", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// A file that this release does not understand.
    #[error("{} was written by a newer release of scribed (version {version})", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The file system.
    #[error("the data directory {}: {}", path.display(), crate::permission::said_state(error, path))]
    Io {
        /// The directory.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
}

/// A desk that nobody works at yet.
pub struct Opened {
    /// Who it is.
    pub id: Uuid,
    /// Held for as long as it is worked at.
    pub lock: fs::File,
    /// Its uploads.
    pub shelf: Shelf,
    /// Its transcriptions.
    pub index: Index,
    /// What was accepted and has not ended.
    pub ledger: Arc<Ledger>,
    /// Who writes it.
    pub committer: Committer,
    /// What was in progress when the service was killed.
    pub starts: Arc<Starts>,
    /// Whose what is.
    pub owners: Owners,
    /// The owner of each key that it was opened for.
    pub assigned: Assigned,
}

/// What every file says, whatever else a newer release may write into it.
#[derive(Deserialize)]
pub(super) struct Version {
    pub(super) v: u32,
}

#[derive(Serialize, Deserialize)]
struct Identity {
    v: u32,
    id: String,
}

/// Opens the directory, made if it is not there, and removes what was left half-done. With keys, the first of them
/// has the records that say nothing of an owner.
///
/// # Errors
/// See [`DeskError`].
pub fn open(
    root: &Path,
    rules: &mut Rules,
    (keys, names): (&[Key], &BTreeSet<String>),
    clock: &Arc<dyn Clock>,
) -> Result<Opened, DeskError> {
    let failed = |error| DeskError::Io { path: root.to_owned(), error };
    files::make_folder(root).map_err(failed)?;
    let lock = lock(&root.join("lock")).map_err(failed)?;
    let lock = lock.ok_or_else(|| DeskError::InUse { path: root.to_owned() })?;
    files::sweep(root).map_err(failed)?;
    let id = identity(&root.join("desk.json"), failed)?;
    for folder in ["transcriptions", "results"] {
        files::make_folder(&root.join(folder)).map_err(failed)?;
    }
    let mut owners = Owners::open(root).map_err(failed)?;
    let assigned = owners.assign(keys, names).map_err(failed)?;
    if !keys.is_empty() {
        rules.first_owner = assigned.first;
    }
    let rules = &*rules;
    let of = owners.of();
    let whose = |owner| if owner == NOBODY { rules.first_owner } else { of(owner) };
    let shelf = Shelf::open(root.join("uploads"), (rules.limits, rules.uploads), Arc::clone(clock), &whose);
    let shelf = shelf.map_err(failed)?;
    let ledger = Arc::new(recovery::open(root.join(LEDGER), rules.volume)?);
    let starts = Arc::new(Starts::open(root).map_err(failed)?);
    let index = rebuild(root, &shelf, &whose, &ledger, &starts, failed)?;
    let committer = Committer::start(&ledger).map_err(failed)?;
    committer.tidy();
    Ok(Opened { id, lock, shelf, index, ledger, committer, starts, owners, assigned })
}

/// Whoever is just leaving writes to the end what it has begun: that is waited for.
fn lock(path: &Path) -> io::Result<Option<fs::File>> {
    const LOOKS: u32 = 40;
    for _ in 1..LOOKS {
        if let Some(lock) = files::lock(path)? {
            return Ok(Some(lock));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    files::lock(path)
}

fn identity(path: &Path, failed: impl Fn(io::Error) -> DeskError) -> Result<Uuid, DeskError> {
    let kept = match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(error.into()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let new = Identity { v: 1, id: Uuid::new_v4().to_string() };
            let bytes = serde_json::to_vec(&new).map_err(|error| failed(error.into()))?;
            files::write_whole(path, &bytes).map_err(&failed)?;
            new
        }
        Err(error) => return Err(failed(error)),
    };
    check_version(path, kept.v)?;
    files::parse_id(&kept.id).ok_or_else(|| failed(io::Error::other("desk.json holds no id")))
}

fn check_version(path: &Path, version: u32) -> Result<(), DeskError> {
    match version {
        1 => Ok(()),
        _ => Err(DeskError::Newer { path: path.to_owned(), version }),
    }
}

fn rebuild(
    root: &Path,
    shelf: &Shelf,
    whose: &impl Fn(Hash) -> Hash,
    ledger: &Ledger,
    starts: &Starts,
    failed: impl Fn(io::Error) -> DeskError,
) -> Result<Index, DeskError> {
    let (folder, results) = (root.join("transcriptions"), root.join("results"));
    // Results are written before their end is: what has none with it was cut short.
    let mut strays: HashSet<Uuid> = files::ids(&results).map_err(&failed)?.into_iter().collect();
    let mut index = Index::default();
    let kills = starts.kills();
    let kills = |id| kills.get(&id).map_or(0, |kills| kills.count);
    for id in files::ids(&folder).map_err(&failed)? {
        let path = folder.join(format!("{id}.json"));
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            // One record that the disk does not give back must not keep all others from being served.
            Err(error) => {
                tracing::error!(
                    path = %path.display(), %error,
                    "a transcription's record cannot be read; it is left as it is and not served until a start can read it"
                );
                strays.remove(&id);
                continue;
            }
        };
        if let Ok(Version { v }) = serde_json::from_slice(&bytes) {
            check_version(&path, v)?;
        }
        let result = results.join(format!("{id}.json"));
        match serde_json::from_slice::<Head>(&bytes) {
            Ok(head) => {
                let size = bytes.len() as u64 + fs::metadata(&result).map_or(0, |found| found.len());
                strays.remove(&id);
                // What has a file of its own is newer there.
                ledger.settle(id);
                restore(&mut index, id, head, (size, kills(id)), shelf, whose);
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "a damaged transcription is set aside");
                fs::rename(&path, path.with_extension("damaged")).map_err(&failed)?;
                // A person may mend it: its result stays.
                strays.remove(&id);
            }
        }
    }
    for id in ledger.needed() {
        // That it can be read, and by this release, was seen when the ledger was opened.
        let Some(head) = ledger.read(id).map_err(&failed)? else { continue };
        restore(&mut index, id, head, (0, kills(id)), shelf, whose);
    }
    // What has ended since, or was removed, needs no count.
    let is_open = |id: &Uuid| index.get(*id).is_some_and(|entry| entry.ended.is_none());
    let over = starts.kills().into_iter().filter(|(id, kills)| kills.work != Work::Delivery && !is_open(id));
    over.for_each(|(id, _)| starts.forget(id));
    for id in strays {
        files::remove(&results.join(format!("{id}.json"))).map_err(&failed)?;
    }
    Ok(index)
}

fn restore(
    index: &mut Index,
    id: Uuid,
    head: Head,
    (size, kills): (u64, u32),
    shelf: &Shelf,
    whose: &impl Fn(Hash) -> Hash,
) {
    let status = match &head.ended {
        None => Status::Queued,
        Some(Ended { failure: None, .. }) => Status::Done,
        Some(Ended { failure: Some(_), .. }) => Status::Error,
    };
    let upload = files::parse_id(&head.upload).unwrap_or_default();
    let last_use = head.ended.as_ref().map_or(head.created, |ended| ended.at);
    let has_audio = shelf.remember(upload, head.ended.is_none() || head.set_aside, last_use);
    let waits = if head.source.is_some() && !has_audio { Waits::ToBeFetched } else { Waits::ToBeHeard };
    let owner = whose(head.owner);
    let ended: Option<Timestamp> = head.ended.map(|ended| ended.at);
    let bytes = if ended.is_some() { size } else { 0 };
    shelf.add_records(&owner, bytes);
    let (metadata, set_aside) = (head.metadata, head.set_aside);
    let entry = Entry { id, owner, upload, status, ended, metadata, bytes, set_aside };
    index.restore(head.created, entry, waits, &head.calls, kills);
}
