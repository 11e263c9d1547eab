//! The service's durable desk: what it has accepted, in one data directory.
//!
//! ```text
//! desk.json                  who this desk is
//! lock                       held by the one process that works here
//! key                        the embedded service's own key (see `auth`)
//! uploads/ID, uploads/ID.json
//! transcriptions/ID.json     one accepted create, and how it ended
//! results/ID.json            what was made of it, as the interface writes it
//! ```
//!
//! `processing` is written nowhere: what has not ended is queued again at the next start.

use crate::clock::Clock;
use crate::crash::{self, Point};
use crate::domain::names::{Hash, Timestamp};
use crate::server::files;
use crate::server::shelf::{Limits, Shelf};
use crate::wire::page::ListQuery;
use crate::wire::record::Status;
use crate::wire::result::File;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
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
    #[error("the data directory {}: {error}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
}

/// One accepted create, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Head {
    /// 1.
    v: u32,
    /// Whose it is.
    pub owner: Hash,
    /// The upload it is made from.
    pub upload: String,
    /// Unlike that of any other on this desk.
    pub created: Timestamp,
    /// How it ended; absent until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// The upload, as it was found.
    pub file: File,
    /// The parameters as the record shows them.
    pub params: Value,
    /// As it was sent, to the letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Box<RawValue>>,
}

/// How a transcription ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Never before its creation.
    pub at: Timestamp,
    /// Absent: well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Why a transcription ended badly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// 400 to 599 (interface, "Errors", 1).
    pub code: u16,
    /// In words.
    pub message: String,
}

/// What a create asks for, once it is checked.
#[derive(Debug)]
pub struct Request {
    /// Whose it is.
    pub owner: Hash,
    /// What it is made from.
    pub upload: Uuid,
    /// The parameters as the record will show them.
    pub params: Value,
    /// As it was sent.
    pub metadata: Option<Box<RawValue>>,
}

/// A transcription as it stands.
#[derive(Debug)]
pub struct Standing {
    /// Its id.
    pub id: Uuid,
    /// What is kept of it.
    pub head: Head,
    /// Where it is.
    pub status: Status,
    /// When it is done.
    pub result: Option<Box<RawValue>>,
}

/// What a list holds from an offset on.
#[derive(Debug, PartialEq, Eq)]
pub struct Listed {
    /// Newest first.
    pub ids: Vec<Uuid>,
    /// Whether there are more after these.
    pub more: bool,
}

/// A transcription that was taken to be worked on.
#[derive(Debug)]
pub struct Taken {
    /// Its id.
    pub id: Uuid,
    /// Its upload's id.
    pub upload: Uuid,
    created: Timestamp,
}

/// The desk. Its methods block on the disk: call them from a thread that may.
pub struct Desk {
    root: PathBuf,
    id: Uuid,
    clock: Arc<dyn Clock>,
    index: Mutex<Index>,
    /// Rung once for every accepted create.
    pub bell: Notify,
    /// The uploads.
    pub shelf: Arc<Shelf>,
    lock: fs::File,
}

#[derive(Default)]
struct Index {
    /// In the order of creation.
    entries: BTreeMap<Timestamp, Entry>,
    by_id: HashMap<Uuid, Timestamp>,
    queue: BTreeSet<Timestamp>,
    /// The newest creation time that was given out.
    last: Option<Timestamp>,
}

struct Entry {
    id: Uuid,
    owner: Hash,
    upload: Uuid,
    status: Status,
    metadata: Option<Box<RawValue>>,
}

/// What every file says, whatever else a newer release may write into it.
#[derive(Deserialize)]
struct Version {
    v: u32,
}

#[derive(Serialize, Deserialize)]
struct Identity {
    v: u32,
    id: String,
}

impl Desk {
    /// Opens the desk in a directory, made if it is not there, and takes up what had not ended.
    ///
    /// # Errors
    /// See [`DeskError`]. A transcription's file that is damaged is set aside under another name
    /// and told in the log, no error.
    pub fn open(root: &Path, limits: Limits, clock: Arc<dyn Clock>) -> Result<Self, DeskError> {
        let failed = |error| DeskError::Io { path: root.to_owned(), error };
        files::make_folder(root).map_err(failed)?;
        let lock = files::lock(&root.join("lock")).map_err(failed)?;
        let lock = lock.ok_or_else(|| DeskError::InUse { path: root.to_owned() })?;
        files::sweep(root).map_err(failed)?;
        let id = identity(&root.join("desk.json"), failed)?;
        for folder in ["transcriptions", "results"] {
            files::make_folder(&root.join(folder)).map_err(failed)?;
        }
        let shelf = Shelf::open(root.join("uploads"), limits).map_err(failed)?;
        let index = rebuild(&root.join("transcriptions"), &shelf, failed)?;
        // Results of transcriptions are written before their end is: nothing else is half-done.
        files::sweep(&root.join("results")).map_err(failed)?;
        shelf.sweep(clock.now());
        Ok(Self {
            root: root.to_owned(),
            id,
            clock,
            index: Mutex::new(index),
            bell: Notify::new(),
            shelf: Arc::new(shelf),
            lock,
        })
    }

    /// Who this desk is: the same for ever, wherever it listens.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Accepts a create; durable when it returns. `None` when the owner has no such upload.
    ///
    /// # Errors
    /// Those of the file system; then nothing was accepted.
    pub fn accept(&self, request: Request) -> io::Result<Option<Uuid>> {
        let Some(file) = self.shelf.hold(request.upload, &request.owner) else { return Ok(None) };
        let created = self.next_created();
        let (id, Request { owner, upload, params, metadata }) = (Uuid::new_v4(), request);
        let entry = Entry { id, owner, upload, status: Status::Queued, metadata: metadata.clone() };
        let upload_id = upload.to_string();
        let head = Head { v: 1, owner, upload: upload_id, created, ended: None, file, params, metadata };
        crash::point(Point::Accepting);
        if let Err(error) = self.write_head(id, &head) {
            // The rename may have happened before the error: what was refused must not come back.
            let _ = files::remove(&self.head_path(id));
            self.shelf.give_back(upload);
            return Err(error);
        }
        crash::point(Point::Accepted);
        self.index().insert(created, entry);
        self.bell.notify_one();
        Ok(Some(id))
    }

    /// Takes the oldest that is queued; it is `processing` from now on.
    pub fn take(&self) -> Option<Taken> {
        let mut index = self.index();
        let created = index.queue.pop_first()?;
        let entry = index.entries.get_mut(&created)?;
        entry.status = Status::Processing;
        Some(Taken { id: entry.id, upload: entry.upload, created })
    }

    /// Puts back what was taken, as it was.
    pub fn put_back(&self, taken: &Taken) {
        self.index().set(taken.created, Status::Queued);
        self.bell.notify_one();
    }

    /// The moment at which a transcription that ends now has ended: never before its creation,
    /// even if the clock was set back.
    pub fn ending(&self, taken: &Taken) -> Timestamp {
        self.clock.now().max(taken.created)
    }

    /// Ends a transcription, durably, and lets go of its upload. May be repeated after an error.
    ///
    /// # Errors
    /// Those of the file system; then it has not ended.
    pub fn end(&self, taken: &Taken, ended: Ended, result: Option<&str>) -> io::Result<()> {
        let status = if ended.failure.is_some() { Status::Error } else { Status::Done };
        // The result first: a head that says `done` must find it.
        if let Some(result) = result {
            files::write_whole(&self.result_path(taken.id), result.as_bytes())?;
            crash::point(Point::EndResult);
        }
        let head = Head { ended: Some(ended), ..self.head(taken.id)? };
        self.write_head(taken.id, &head)?;
        crash::point(Point::EndWritten);
        self.index().set(taken.created, status);
        self.shelf.release(taken.upload);
        Ok(())
    }

    /// What is kept of a transcription.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn head(&self, id: Uuid) -> io::Result<Head> {
        Ok(serde_json::from_slice(&fs::read(self.head_path(id))?)?)
    }

    /// A transcription of this owner; `None` when there is none.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn read(&self, id: Uuid, owner: &Hash) -> io::Result<Option<Standing>> {
        let Some(status) = self.index().status(id, owner) else { return Ok(None) };
        let head = self.head(id)?;
        let result = match status {
            Status::Done => Some(serde_json::from_slice(&fs::read(self.result_path(id))?)?),
            _ => None,
        };
        Ok(Some(Standing { id, head, status, result }))
    }

    /// What is on a list, newest first: a choice, the interface does not say.
    pub fn list(&self, owner: &Hash, query: &ListQuery) -> Listed {
        let index = self.index();
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let offset = usize::try_from(query.offset).unwrap_or(usize::MAX);
        let mut hits = (index.entries.iter().rev())
            .filter(|(created, entry)| entry.owner == *owner && holds(query, **created, entry))
            .map(|(_, entry)| entry.id)
            .skip(offset);
        let ids: Vec<Uuid> = hits.by_ref().take(limit).collect();
        Listed { ids, more: hits.next().is_some() }
    }

    /// A moment that no other transcription of this desk was created at, so that their order is
    /// total; a clock that stands or was set back does not disturb it.
    fn next_created(&self) -> Timestamp {
        let mut index = self.index();
        let after = index.last.map_or(i64::MIN, |last| last.0.saturating_add(1));
        let created = Timestamp(self.clock.now().0.max(after));
        index.last = Some(created);
        created
    }

    fn write_head(&self, id: Uuid, head: &Head) -> io::Result<()> {
        files::write_whole(&self.head_path(id), &serde_json::to_vec(head)?)
    }

    fn head_path(&self, id: Uuid) -> PathBuf {
        self.root.join("transcriptions").join(format!("{id}.json"))
    }

    fn result_path(&self, id: Uuid) -> PathBuf {
        self.root.join("results").join(format!("{id}.json"))
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Desk {
    /// Closing the file is not enough: a child process that is just being started has it open too.
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

impl Index {
    fn insert(&mut self, created: Timestamp, entry: Entry) {
        if entry.status == Status::Queued {
            self.queue.insert(created);
        }
        self.last = self.last.max(Some(created));
        self.by_id.insert(entry.id, created);
        self.entries.insert(created, entry);
    }

    fn set(&mut self, created: Timestamp, status: Status) {
        if status == Status::Queued {
            self.queue.insert(created);
        }
        if let Some(entry) = self.entries.get_mut(&created) {
            entry.status = status;
        }
    }

    fn status(&self, id: Uuid, owner: &Hash) -> Option<Status> {
        let entry = self.entries.get(self.by_id.get(&id)?)?;
        (entry.owner == *owner).then(|| entry.status.clone())
    }
}

fn holds(query: &ListQuery, created: Timestamp, entry: &Entry) -> bool {
    if query.custom_metadata.is_empty() {
        return query.holds(created, &entry.status, None);
    }
    let metadata: Option<Value> = entry.metadata.as_ref().and_then(|text| serde_json::from_str(text.get()).ok());
    query.holds(created, &entry.status, metadata.as_ref())
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

fn rebuild(folder: &Path, shelf: &Shelf, failed: impl Fn(io::Error) -> DeskError) -> Result<Index, DeskError> {
    let mut index = Index::default();
    for id in files::ids(folder).map_err(&failed)? {
        let path = folder.join(format!("{id}.json"));
        let bytes = fs::read(&path).map_err(&failed)?;
        if let Ok(Version { v }) = serde_json::from_slice(&bytes) {
            check_version(&path, v)?;
        }
        match serde_json::from_slice::<Head>(&bytes) {
            Ok(head) => {
                let (created, entry) = entry(id, head, shelf);
                index.insert(created, entry);
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "a damaged transcription is set aside");
                fs::rename(&path, path.with_extension("damaged")).map_err(&failed)?;
            }
        }
    }
    Ok(index)
}

fn entry(id: Uuid, head: Head, shelf: &Shelf) -> (Timestamp, Entry) {
    let status = match &head.ended {
        None => Status::Queued,
        Some(Ended { failure: None, .. }) => Status::Done,
        Some(Ended { failure: Some(_), .. }) => Status::Error,
    };
    let upload = files::parse_id(&head.upload).unwrap_or_default();
    shelf.remember(upload, head.ended.is_none());
    (head.created, Entry { id, owner: head.owner, upload, status, metadata: head.metadata })
}
