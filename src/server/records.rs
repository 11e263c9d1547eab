//! What is read at a desk: records as they stand, and lists of them.

use crate::domain::names::{Hash, Timestamp};
use crate::server::desk::{Desk, Ended, Head, Taken};
use crate::wire::page::ListQuery;
use crate::wire::record::Status;
use serde_json::value::RawValue;
use std::fs;
use std::io;
use uuid::Uuid;

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
        let head = self.with_file(upload, self.head(id)?);
        // It may have ended since the index was asked: what is written is newer.
        let status = match &head.ended {
            None => status,
            Some(Ended { failure: None, .. }) => Status::Done,
            Some(Ended { failure: Some(_), .. }) => Status::Error,
        };
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
