//! Opens a store: its identity, its owners, and its content.

use crate::clock::Clock;
use crate::domain::names::{Hash, Timestamp};
use crate::server::http::auth::ApiKey;
use crate::server::storage::files;
use crate::server::storage::index::{IndexEntry, QueueKind, StoredDeliveries, TranscriptionIndex};
use crate::server::storage::kill_count::{Starts, TranscriptionWork};
use crate::server::storage::log::group_commit::GroupCommit;
use crate::server::storage::log::ledger::{LEDGER, TranscriptionLog};
use crate::server::storage::log::recovery;
use crate::server::storage::owners::{Assigned, Owners};
use crate::server::storage::record_meta::{NOBODY, RecordMeta, TranscriptionEnd};
use crate::server::storage::transcriptions::StoreRules;
use crate::server::storage::uploads::UploadStore;
use crate::wire::record::Status;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreOpenError {
    /// Another process has the lock.
    #[error("the data directory {} is in use by another process", path.display())]
    InUse { path: PathBuf },
    /// A newer release wrote this file.
    #[error("a newer release of scribed wrote {} (version {version}); use that release or a later one", path.display())]
    Newer { path: PathBuf, version: u32 },
    #[error("cannot use the data directory {}: {}", path.display(), crate::permission_errors::describe_state_error(error, path))]
    Io { path: PathBuf, error: io::Error },
}

/// An opened store that is not in use yet.
pub struct OpenedStore {
    pub id: Uuid,
    /// Held as long as the store is in use.
    pub lock: fs::File,
    pub upload_store: UploadStore,
    pub index: TranscriptionIndex,
    /// The log of accepted transcriptions that have not ended.
    pub ledger: Arc<TranscriptionLog>,
    pub committer: GroupCommit,
    /// The work that was in progress when the service was killed.
    pub starts: Arc<Starts>,
    pub owners: Owners,
    /// The owner of each key that the store was opened with.
    pub assigned: Assigned,
}

/// The version field that every file has, whatever else a newer release writes into it.
#[derive(Deserialize)]
pub(crate) struct Version {
    pub(crate) v: u32,
}

#[derive(Serialize, Deserialize)]
struct Identity {
    v: u32,
    id: String,
}

/// Opens the data directory, creates it if it does not exist, and removes incomplete files. With keys, records without
/// an owner belong to the first key.
///
/// # Errors
/// See [`StoreOpenError`].
pub fn open(
    root: &Path,
    rules: &mut StoreRules,
    (keys, names): (&[ApiKey], &BTreeSet<String>),
    clock: &Arc<dyn Clock>,
) -> Result<OpenedStore, StoreOpenError> {
    let failed = |error| StoreOpenError::Io { path: root.to_owned(), error };
    files::make_folder(root).map_err(failed)?;
    let lock = lock(&root.join("lock")).map_err(failed)?;
    let lock = lock.ok_or_else(|| StoreOpenError::InUse { path: root.to_owned() })?;
    files::remove_leftovers(root).map_err(failed)?;
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
    let present_owner = owners.mapping();
    let owner_of = |owner| if owner == NOBODY { rules.first_owner } else { present_owner(owner) };
    let upload_store =
        UploadStore::open(root.join("uploads"), (rules.limits, rules.uploads), Arc::clone(clock), &owner_of);
    let upload_store = upload_store.map_err(failed)?;
    let ledger = Arc::new(recovery::open(root.join(LEDGER), rules.volume)?);
    let starts = Arc::new(Starts::open(root).map_err(failed)?);
    let index = rebuild(root, &upload_store, &owner_of, &ledger, &starts, failed)?;
    let committer = GroupCommit::start(&ledger).map_err(failed)?;
    committer.request_compaction();
    Ok(OpenedStore { id, lock, upload_store, index, ledger, committer, starts, owners, assigned })
}

/// Waits up to two seconds for the lock, because a process that is shutting down completes its writes.
fn lock(path: &Path) -> io::Result<Option<fs::File>> {
    const ATTEMPTS: u32 = 40;
    for _ in 1..ATTEMPTS {
        if let Some(lock) = files::lock(path)? {
            return Ok(Some(lock));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    files::lock(path)
}

fn identity(path: &Path, failed: impl Fn(io::Error) -> StoreOpenError) -> Result<Uuid, StoreOpenError> {
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
    files::parse_id(&kept.id).ok_or_else(|| failed(io::Error::other("desk.json has no id")))
}

fn check_version(path: &Path, version: u32) -> Result<(), StoreOpenError> {
    match version {
        1 => Ok(()),
        _ => Err(StoreOpenError::Newer { path: path.to_owned(), version }),
    }
}

fn rebuild(
    root: &Path,
    upload_store: &UploadStore,
    owner_of: &impl Fn(Hash) -> Hash,
    ledger: &TranscriptionLog,
    starts: &Starts,
    failed: impl Fn(io::Error) -> StoreOpenError,
) -> Result<TranscriptionIndex, StoreOpenError> {
    let (folder, results) = (root.join("transcriptions"), root.join("results"));
    // A result is written before the end of its transcription: a result without an ended transcription is incomplete.
    let mut orphaned_results: HashSet<Uuid> = files::record_ids(&results).map_err(&failed)?.into_iter().collect();
    let mut index = TranscriptionIndex::default();
    let kills = starts.kill_counts();
    let kills = |id| kills.get(&id).map_or(0, |kills| kills.count);
    for id in files::record_ids(&folder).map_err(&failed)? {
        let path = folder.join(format!("{id}.json"));
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            // One unreadable record must not keep all others from being served.
            Err(error) => {
                tracing::error!(
                    path = %path.display(), %error,
                    "cannot read the record of a transcription; the service keeps the file, and serves the \
                     transcription when a later start can read it"
                );
                orphaned_results.remove(&id);
                continue;
            }
        };
        if let Ok(Version { v }) = serde_json::from_slice(&bytes) {
            check_version(&path, v)?;
        }
        let result = results.join(format!("{id}.json"));
        match serde_json::from_slice::<RecordMeta>(&bytes) {
            Ok(head) => {
                let size = bytes.len() as u64 + fs::metadata(&result).map_or(0, |found| found.len());
                orphaned_results.remove(&id);
                // A record with its own file is newer there than in the log.
                ledger.mark_settled(id);
                restore(&mut index, id, head, (size, kills(id)), upload_store, owner_of);
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "the service renamed a damaged record of a transcription");
                // Not synced: after a power loss the next start finds the damage again.
                fs::rename(&path, path.with_extension("damaged")).map_err(&failed)?;
                // A person may repair it, so its result stays.
                orphaned_results.remove(&id);
            }
        }
    }
    for id in ledger.needed_ids() {
        // Opening the log checked that each record can be read, and by this release.
        let Some(head) = ledger.read(id).map_err(&failed)? else { continue };
        restore(&mut index, id, head, (0, kills(id)), upload_store, owner_of);
    }
    // Transcriptions that have ended or were removed need no count.
    let is_open = |id: &Uuid| index.get(*id).is_some_and(|entry| entry.ended.is_none());
    let finished = starts
        .kill_counts()
        .into_iter()
        .filter(|(id, kills)| kills.work != TranscriptionWork::Delivery && !is_open(id));
    finished.for_each(|(id, _)| starts.clear(id));
    for id in orphaned_results {
        files::remove(&results.join(format!("{id}.json"))).map_err(&failed)?;
    }
    Ok(index)
}

fn restore(
    index: &mut TranscriptionIndex,
    id: Uuid,
    head: RecordMeta,
    (size, kills): (u64, u32),
    upload_store: &UploadStore,
    owner_of: &impl Fn(Hash) -> Hash,
) {
    let status = match &head.ended {
        None => Status::Queued,
        Some(TranscriptionEnd { failure: None, .. }) => Status::Done,
        Some(TranscriptionEnd { failure: Some(_), .. }) => Status::Error,
    };
    let upload = files::parse_id(&head.upload).unwrap_or_default();
    let last_use = head.ended.as_ref().map_or(head.created, |ended| ended.at);
    let has_audio = upload_store.register_use(upload, head.ended.is_none() || head.set_aside, last_use);
    let waits = if head.source.is_some() && !has_audio { QueueKind::ToBeFetched } else { QueueKind::ToBeHeard };
    let owner = owner_of(head.owner);
    let ended: Option<Timestamp> = head.ended.map(|ended| ended.at);
    let bytes = if ended.is_some() { size } else { 0 };
    upload_store.add_records(&owner, bytes);
    let (metadata, set_aside) = (head.metadata, head.set_aside);
    let entry = IndexEntry { id, owner, upload, status, ended, metadata, bytes, set_aside };
    let deliveries = StoredDeliveries { creation: head.creation.as_ref(), ends: &head.calls };
    index.restore(head.created, entry, waits, deliveries, kills);
}
