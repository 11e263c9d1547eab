//! Reads records and lists from a store.

use crate::domain::names::{Hash, Timestamp};
use crate::server::http::streamed::StoredResult;
use crate::server::storage::files;
use crate::server::storage::transcriptions::{RecordMeta, TakenTranscription, TranscriptionStore};
use crate::wire::page::ListQuery;
use crate::wire::record::Status;
use crate::wire::result::File;
use serde_json::json;
use std::fs;
use std::io;
use uuid::Uuid;

/// The message of a transcription that ends because its record is damaged.
pub const LOST: &str = "the service's record of what was asked for was damaged on its disk, so this cannot be \
                        transcribed; create the transcription again";

/// Whether the error means that a record is lost for good. A missing file is not lost for good: a disk that is away
/// comes back.
pub fn is_lost(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// The current state of a transcription.
#[derive(Debug)]
pub struct TranscriptionState {
    pub id: Uuid,
    pub head: RecordMeta,
    pub status: Status,
    /// Present if the status is `done`.
    pub result: Option<StoredResult>,
}

impl TranscriptionStore {
    /// Returns the record of a transcription, with the properties of its audio from the upload store.
    pub fn record_meta(&self, id: Uuid) -> io::Result<RecordMeta> {
        let head = match self.ledger.read(id)? {
            Some(head) => head,
            None => serde_json::from_slice(&fs::read(self.head_path(id))?)?,
        };
        if head.ended.is_some() || head.file != File::default() {
            return Ok(head);
        }
        let file =
            files::parse_id(&head.upload).and_then(|upload| self.upload_store.file_info(upload)).unwrap_or_default();
        Ok(RecordMeta { file, ..head })
    }

    /// Returns what is left of a damaged record, so that the transcription can end: everything except its parameters,
    /// the address of its audio and its callback.
    ///
    /// # Errors
    /// Returns `error` if the record is not lost for good.
    pub(crate) fn partial_record(&self, taken: &TakenTranscription, error: io::Error) -> io::Result<RecordMeta> {
        if !is_lost(&error) {
            return Err(error);
        }
        let aside = self.ledger.set_aside(taken.id).ok().flatten();
        tracing::error!(
            id = %taken.id, %error, aside = ?aside,
            "cannot read the parameters of a transcription any more; the transcription ends with an error, \
             without parameters and without a callback"
        );
        let metadata = self.index().get(taken.id).and_then(|entry| entry.metadata.clone());
        let TakenTranscription { owner, upload, created, .. } = *taken;
        let file = self.upload_store.file_info(upload).unwrap_or_default();
        let (source, ended, callback, calls, params) = (None, None, None, Vec::new(), json!({}));
        let creation = None;
        let upload = upload.to_string();
        let set_aside = false;
        Ok(RecordMeta {
            v: 1,
            owner,
            upload,
            source,
            created,
            ended,
            file,
            params,
            metadata,
            callback,
            creation,
            calls,
            set_aside,
        })
    }

    /// Returns a transcription of this owner; `None` if there is none.
    pub fn read(&self, id: Uuid, owner: &Hash) -> io::Result<Option<TranscriptionState>> {
        let Some((status, _)) = self.status_and_upload(id, owner) else { return Ok(None) };
        match self.current_state(id, status) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_deleted(id, owner) => Ok(None),
            state => state.map(Some),
        }
    }

    /// Whether a transcription whose file is missing was deleted. Waits for a deletion in progress: it removes the file
    /// before the entry of the index.
    fn is_deleted(&self, id: Uuid, owner: &Hash) -> bool {
        drop(self.settle_lock(id));
        self.status_and_upload(id, owner).is_none()
    }

    /// Returns the status and the upload of a transcription of this owner.
    pub fn status_and_upload(&self, id: Uuid, owner: &Hash) -> Option<(Status, Uuid)> {
        self.index().get_owned(id, owner).map(|entry| (entry.status.clone(), entry.upload))
    }

    fn current_state(&self, id: Uuid, status: Status) -> io::Result<TranscriptionState> {
        let mut head = self.record_meta(id)?;
        // The transcription may be ending just now. The index decides, as it does for deletions: it changes after the
        // end is written.
        let status = self.index().get(id).map_or(status, |entry| entry.status.clone());
        match (matches!(status, Status::Done | Status::Error), &head.ended) {
            (true, None) => head = self.record_meta(id)?,
            (false, Some(_)) => head.ended = None,
            _ => {}
        }
        let result = match status {
            Status::Done => Some(StoredResult::open(fs::File::open(self.result_path(id))?)?),
            _ => None,
        };
        Ok(TranscriptionState { id, head, status, result })
    }

    /// Returns the creation times and ids of a list, newest first.
    pub fn list(&self, owner: &Hash, query: &ListQuery, most: usize) -> Vec<(Timestamp, Uuid)> {
        self.index().list(owner, query).take(most).collect()
    }
}
