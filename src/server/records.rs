//! What is read at a desk: records as they stand, and lists of them.

use crate::domain::names::{Hash, Timestamp};
use crate::server::desk::{Desk, Head, Taken};
use crate::wire::page::ListQuery;
use crate::wire::record::Status;
use serde_json::json;
use serde_json::value::RawValue;
use std::fs;
use std::io;
use uuid::Uuid;

/// What a transcription ends with whose head is lost.
pub const LOST: &str = "the service's record of what was asked for was damaged on its disk, so this cannot be \
                        transcribed; create the transcription again";

/// Whether a head was not read for something that does not pass. One that is not there may be: a disk that
/// is away comes back.
pub fn is_lost(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
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

impl Desk {
    /// What a worker needs of what it has taken; of fetched audio also what was found in it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn order(&self, taken: &Taken) -> io::Result<Head> {
        Ok(self.with_file(taken.upload, self.head(taken.id)?))
    }

    /// What is kept of a transcription.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn head(&self, id: Uuid) -> io::Result<Head> {
        match self.ledger.read(id)? {
            Some(head) => Ok(head),
            None => Ok(serde_json::from_slice(&fs::read(self.head_path(id))?)?),
        }
    }

    /// What is left of one whose head is lost, so that it can end: all but its parameters, the address of its
    /// audio and its callback.
    ///
    /// # Errors
    /// The one that the head was not read for, if it may pass.
    pub(super) fn remains(&self, taken: &Taken, error: io::Error) -> io::Result<Head> {
        if !is_lost(&error) {
            return Err(error);
        }
        let aside = self.ledger.set_aside(taken.id).ok().flatten();
        tracing::error!(
            id = %taken.id, %error, aside = ?aside,
            "what was asked of a transcription cannot be read any more; it ends without its parameters, and its \
             callback is not called"
        );
        let metadata = self.index().get(taken.id).and_then(|entry| entry.metadata.clone());
        let file = self.shelf.file(taken.upload).unwrap_or_default();
        let Taken { owner, upload, created, .. } = *taken;
        let (source, ended, callback, calls, params) = (None, None, None, Vec::new(), json!({}));
        let upload = upload.to_string();
        Ok(Head { v: 1, owner, upload, source, created, ended, file, params, metadata, callback, calls })
    }

    pub(super) fn with_file(&self, upload: Uuid, head: Head) -> Head {
        if head.source.is_none() || head.ended.is_some() {
            return head;
        }
        let file = self.shelf.file(upload).unwrap_or_default();
        Head { file, ..head }
    }

    /// A transcription of this owner; `None` when there is none.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn read(&self, id: Uuid, owner: &Hash) -> io::Result<Option<Standing>> {
        let Some((status, upload)) = self.status(id, owner) else { return Ok(None) };
        match self.standing(id, status, upload) {
            // It was deleted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.status(id, owner).is_none() => Ok(None),
            standing => standing.map(Some),
        }
    }

    /// Where a transcription of this owner is, and what it is made from.
    pub fn status(&self, id: Uuid, owner: &Hash) -> Option<(Status, Uuid)> {
        self.index().of(id, owner).map(|entry| (entry.status.clone(), entry.upload))
    }

    fn standing(&self, id: Uuid, status: Status, upload: Uuid) -> io::Result<Standing> {
        let mut head = self.with_file(upload, self.head(id)?);
        // It may be ending just now. The index has the last word, as for those who delete: it is told after
        // the end is written.
        let status = self.index().get(id).map_or(status, |entry| entry.status.clone());
        match (matches!(status, Status::Done | Status::Error), &head.ended) {
            (true, None) => head = self.head(id)?,
            (false, Some(_)) => head.ended = None,
            _ => {}
        }
        let result = match status {
            Status::Done => Some(serde_json::from_slice(&fs::read(self.result_path(id))?)?),
            _ => None,
        };
        Ok(Standing { id, head, status, result })
    }

    /// What is on a list, newest first, with the moments of creation.
    pub fn list(&self, owner: &Hash, query: &ListQuery, most: usize) -> Vec<(Timestamp, Uuid)> {
        self.index().list(owner, query).take(most).collect()
    }
}
