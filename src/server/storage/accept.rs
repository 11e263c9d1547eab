//! How a create is accepted: it becomes durable in the ledger, together with all that come at the same time.

use crate::crash_points::{self, Point};
use crate::domain::names::{Hash, Timestamp};
use crate::server::storage::index::{IndexEntry, QueueKind};
use crate::server::storage::log::group_commit;
use crate::server::storage::log::ledger::LogLine;
use crate::server::storage::record_meta::{Callee, RecordMeta};
use crate::server::storage::transcriptions::TranscriptionStore;
use crate::wire::record::Status;
use crate::wire::result::File;
use serde_json::value::RawValue;
use std::io;
use std::sync::Arc;
use tokio::sync::oneshot;
use uuid::Uuid;

/// What a create asks for, once it is checked.
#[derive(Debug)]
pub struct CreateOrder {
    pub owner: Hash,
    /// What it is made from.
    pub audio: CreateAudio,
    /// The parameters as given, in the present names; an object.
    pub params: Box<RawValue>,
    /// As it was sent.
    pub metadata: Option<Box<RawValue>>,
    /// Who wants to be called about its end.
    pub callback: Option<Callee>,
}

/// Where the audio of a create is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateAudio {
    Upload(Uuid),
    /// At this address, http or https.
    Elsewhere(String),
}

/// What became of a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    Accepted(Uuid),
    /// The owner has no such upload.
    NoUpload,
    /// So many of the owner's have not ended already.
    Full(usize),
}

/// What a create is made from.
struct Made {
    upload: Uuid,
    source: Option<String>,
}

impl TranscriptionStore {
    /// Accepts a create; durable when it returns [`Acceptance::Accepted`]. Once begun it is seen to its end,
    /// whether somebody waits for the answer or not; `until_then` is held as long.
    ///
    /// # Errors
    /// Those of the file system; then nothing was accepted.
    pub async fn accept<G: Send + 'static>(
        self: &Arc<Self>,
        request: CreateOrder,
        until_then: G,
    ) -> io::Result<Acceptance> {
        let (id, owner) = (Uuid::new_v4(), request.owner);
        let Some(made) = self.made_from(id, &request) else { return Ok(Acceptance::NoUpload) };
        let (upload, waits) = (made.upload, made.waits());
        let most = self.rules.running.saturating_add(self.rules.queue);
        let Some(created) = self.index().reserve(owner, most, self.clock.now()) else {
            self.upload_store.release_unused(upload);
            return Ok(Acceptance::Full(most));
        };
        let (status, ended, metadata) = (Status::Queued, None, request.metadata.clone());
        let entry = IndexEntry { id, owner, upload, status, ended, metadata, bytes: 0, set_aside: false };
        let place = Place { store: Arc::clone(self), created, waits, entry: Some(entry) };
        crash_points::point(Point::Accepting);
        let line = LogLine::acceptance(id, &head(request, made, created))?;
        let (told, answer) = oneshot::channel();
        let accept = move |written: io::Result<()>| {
            // Nobody may be waiting any more.
            drop(told.send(written.map(|()| place.take())));
            drop(until_then);
        };
        self.committer.enqueue(&line, Box::new(accept));
        answer.await.unwrap_or_else(|_| Err(group_commit::stopped_error()))?;
        Ok(Acceptance::Accepted(id))
    }

    /// Holds the upload of a request; `None` when there is none.
    fn made_from(&self, id: Uuid, request: &CreateOrder) -> Option<Made> {
        match &request.audio {
            CreateAudio::Upload(upload) => {
                let is_there = self.upload_store.hold(*upload, &request.owner);
                is_there.then_some(Made { upload: *upload, source: None })
            }
            // What is fetched gets the transcription's id: after a crash it is found again.
            CreateAudio::Elsewhere(url) => Some(Made { upload: id, source: Some(url.clone()) }),
        }
    }
}

/// What was reserved for a create. Dropped before it is taken, all of it is given back.
struct Place {
    store: Arc<TranscriptionStore>,
    created: Timestamp,
    waits: QueueKind,
    entry: Option<IndexEntry>,
}

impl Place {
    /// What it is for is durable.
    fn take(mut self) {
        crash_points::point(Point::Accepted);
        if let Some(entry) = self.entry.take() {
            self.store.index().accept(self.created, entry, self.waits);
            self.store.notify_workers(self.waits);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.store.upload_store.release_unused(entry.upload);
            self.store.index().unreserve(entry.owner);
        }
    }
}

impl Made {
    fn waits(&self) -> QueueKind {
        if self.source.is_some() { QueueKind::ToBeFetched } else { QueueKind::ToBeHeard }
    }
}

fn head(request: CreateOrder, made: Made, created: Timestamp) -> RecordMeta<Box<RawValue>> {
    let CreateOrder { owner, params, metadata, callback, .. } = request;
    let Made { upload, source } = made;
    // As long as it has not ended, the upload store says what the audio is.
    let (file, ended, calls, set_aside) = (File::default(), None, Vec::new(), false);
    let upload = upload.to_string();
    RecordMeta { v: 1, owner, upload, source, created, ended, file, params, metadata, callback, calls, set_aside }
}
