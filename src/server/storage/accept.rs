//! Accepts creates: each becomes durable in the log, together with all others that arrive at the same time.

use crate::crash_points::{self, Point};
use crate::domain::names::{Hash, Timestamp};
use crate::server::storage::index::{IndexEntry, QueueKind};
use crate::server::storage::log::group_commit;
use crate::server::storage::log::ledger::LogLine;
use crate::server::storage::record_meta::{Callee, RecordMeta};
use crate::server::storage::transcriptions::TranscriptionStore;
use crate::server::webhooks::policy;
use crate::wire::record::Status;
use crate::wire::result::File;
use serde_json::value::RawValue;
use std::io;
use std::sync::Arc;
use tokio::sync::oneshot;
use uuid::Uuid;

/// A checked create.
#[derive(Debug)]
pub struct CreateCommand {
    pub owner: Hash,
    /// The audio that is transcribed.
    pub audio: CreateAudio,
    /// The parameters as given, in the present names; an object.
    pub params: Box<RawValue>,
    /// The metadata, as it was sent.
    pub metadata: Option<Box<RawValue>>,
    /// The address that is called at its end.
    pub callback: Option<Callee>,
}

/// Where the audio of a create is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateAudio {
    Upload(Uuid),
    /// At this http or https address.
    Elsewhere(String),
}

/// The result of a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    Accepted(Uuid),
    /// The owner has no such upload.
    NoUpload,
    /// Not accepted: this many transcriptions of the owner have not ended.
    Full(usize),
}

/// The audio of a create.
struct HeldAudio {
    upload: Uuid,
    source: Option<String>,
}

impl TranscriptionStore {
    /// Accepts a create; it is durable when [`Acceptance::Accepted`] is returned. Once begun it is completed, whether
    /// somebody waits for the result or not; `guard` is held until it is complete.
    ///
    /// # Errors
    /// Errors of the file system; then nothing was accepted.
    pub async fn accept<G: Send + 'static>(
        self: &Arc<Self>,
        request: CreateCommand,
        guard: G,
    ) -> io::Result<Acceptance> {
        let (id, owner) = (Uuid::new_v4(), request.owner);
        let Some(audio) = self.hold_audio(id, &request) else { return Ok(Acceptance::NoUpload) };
        let (upload, queue) = (audio.upload, audio.queue());
        let limit = self.rules.running.saturating_add(self.rules.queue);
        let Some(created) = self.index().reserve(owner, limit, self.clock.now()) else {
            self.upload_store.release_unused(upload);
            return Ok(Acceptance::Full(limit));
        };
        let (status, ended, metadata) = (Status::Queued, None, request.metadata.clone());
        let entry = IndexEntry { id, owner, upload, status, ended, metadata, bytes: 0, set_aside: false };
        let reservation = Reservation { store: Arc::clone(self), created, queue, entry: Some(entry) };
        crash_points::point(Point::Accepting);
        let creation = policy::creation_delivery(self.rules.webhook, created);
        let line = LogLine::acceptance(id, &RecordMeta { creation, ..record_meta(request, audio, created) })?;
        let (reply, answer) = oneshot::channel();
        let accept = move |written: io::Result<()>| {
            // The receiver may be gone.
            drop(reply.send(written.map(|()| reservation.commit())));
            drop(guard);
        };
        self.committer.enqueue(&line, Box::new(accept));
        answer.await.unwrap_or_else(|_| Err(group_commit::stopped_error()))?;
        Ok(Acceptance::Accepted(id))
    }

    /// Holds the upload of a request; returns `None` if there is no such upload.
    fn hold_audio(&self, id: Uuid, request: &CreateCommand) -> Option<HeldAudio> {
        match &request.audio {
            CreateAudio::Upload(upload) => {
                let is_there = self.upload_store.hold(*upload, &request.owner);
                is_there.then_some(HeldAudio { upload: *upload, source: None })
            }
            // Fetched audio gets the transcription's id, so that it is found again after a crash.
            CreateAudio::Elsewhere(url) => Some(HeldAudio { upload: id, source: Some(url.clone()) }),
        }
    }
}

/// What was reserved for a create. When dropped before [`commit`](Reservation::commit), it gives all of it back.
struct Reservation {
    store: Arc<TranscriptionStore>,
    created: Timestamp,
    queue: QueueKind,
    entry: Option<IndexEntry>,
}

impl Reservation {
    /// Adds the create to the index, because its record is durable.
    fn commit(mut self) {
        crash_points::point(Point::Accepted);
        if let Some(entry) = self.entry.take() {
            let mut index = self.store.index();
            index.accept(self.created, entry, self.queue);
            if self.store.rules.webhook {
                index.report_creation(self.created, self.created);
            }
            drop(index);
            if self.store.rules.webhook {
                self.store.calling.notify_one();
            }
            self.store.notify_workers(self.queue);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.store.upload_store.release_unused(entry.upload);
            self.store.index().unreserve(entry.owner);
        }
    }
}

impl HeldAudio {
    fn queue(&self) -> QueueKind {
        if self.source.is_some() { QueueKind::ToBeFetched } else { QueueKind::ToBeHeard }
    }
}

fn record_meta(request: CreateCommand, audio: HeldAudio, created: Timestamp) -> RecordMeta<Box<RawValue>> {
    let CreateCommand { owner, params, metadata, callback, .. } = request;
    let HeldAudio { upload, source } = audio;
    // Until the transcription ends, the upload store knows the audio's properties.
    let (file, ended, creation, calls, set_aside) = (File::default(), None, None, Vec::new(), false);
    let upload = upload.to_string();
    RecordMeta {
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
    }
}
