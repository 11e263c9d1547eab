//! The interface of a client for a transcription service. Faults are returned as data; the caller decides about them.

use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::{ServiceName, Timestamp, TranscriptionId, UploadId};
use crate::domain::remote_url::RemoteUrl;
use crate::domain::request_counts::RequestTotal;
use crate::domain::stage::AudioAmount;
use crate::domain::token::Token;
use crate::wire::page::ListQuery;
use crate::wire::params::CallbackConfig;
use crate::wire::record::Status;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Which service a client uses, and with which key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The service's name in `jobs.toml`.
    pub service: ServiceName,
    /// Scheme, host and port; for the embedded service the id of its store.
    pub origin: String,
    /// A hash of the key that does not reveal it.
    pub key: String,
    /// Whether it is the embedded service: what is sent to it does not leave the machine.
    pub is_own: bool,
}

/// A file to upload. It is opened again when the upload is repeated.
#[derive(Clone)]
pub struct UploadFile {
    /// The file name that is sent.
    pub name: String,
    /// The size in bytes, which must be known beforehand.
    pub size: u64,
    /// Opens the content from the start, as a stream of chunks.
    pub open: Arc<dyn Fn() -> BoxStream<'static, std::io::Result<Bytes>> + Send + Sync>,
}

/// The result of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedUpload {
    /// The id by which a create names it.
    pub upload: UploadId,
    /// How much audio the service found.
    pub audio: AudioAmount,
    /// The number of bytes that the service reports.
    pub size: Option<u64>,
}

/// A permit to send one create within the rate limit. It is taken before the intent is recorded, so that the create can
/// be sent right after it, and is used up by the create.
#[derive(Debug)]
pub struct CreatePermit(());

impl CreatePermit {
    /// Makes a permit. Only clients call this, when the rate limit allows a request.
    pub fn come() -> Self {
        Self(())
    }
}

/// The audio of a create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestAudio {
    Upload(UploadId),
    /// An address from which the service fetches the audio.
    Url(RemoteUrl),
}

/// What a create requests.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateRequest {
    pub audio: RequestAudio,
    /// The rendered parameters, without `audio_url` and `custom_metadata`.
    pub params: Map<String, Value>,
    /// The rendered metadata, including the token.
    pub metadata: Map<String, Value>,
    /// The callback that the service is to send at the end. Its address is a secret.
    pub callback: Option<CallbackConfig>,
}

/// The outcome of a create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Creation {
    /// The service accepted it.
    Accepted(TranscriptionId),
    /// The service certainly did not accept it: nothing was sent, or the refusal is complete.
    NotAccepted(Fault),
    Unknown(Fault),
}

/// The state of a transcription as a poll found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordState {
    /// It has not ended. The text is the service's status.
    Pending(String),
    /// It has ended with a result.
    Done {
        raw: Vec<u8>,
        audio: AudioAmount,
        /// The time from the creation to the end, by the service's dates.
        took: Option<Duration>,
        /// Whose result it is, as far as the record says.
        evidence: RecordEvidence,
    },
    /// It ended in an error ([`crate::domain::fault::FaultKind::Dead`]), or does not exist any more
    /// ([`crate::domain::fault::FaultKind::Gone`]).
    Lost(Fault),
}

/// What a record says about whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordEvidence {
    pub mark: RecordMark,
    /// Every length of the audio that the record gives, in milliseconds: that of its file, and that of its result.
    pub lengths: Vec<u64>,
}

/// The mark that scribed put into the metadata of its create, as the record has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RecordMark {
    /// The record has no metadata: it does not tell whose it is.
    #[default]
    Unstated,
    /// What the record has under the key of scribed. It should be a token.
    Text(String),
    /// The record has metadata, and nothing of it is from scribed.
    Missing,
}

/// What the list says of the audio of a transcription, as far as it does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedFile {
    /// The name of the file that was uploaded.
    pub name: Option<String>,
    /// The length of the audio in milliseconds.
    pub millis: Option<u64>,
}

/// An item of the list, without its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListItem {
    pub id: TranscriptionId,
    /// When it was created, by the service's clock.
    pub created: Option<Timestamp>,
    /// The token, if the item has one.
    pub token: Option<Token>,
    /// The billed milliseconds, if the list has them.
    pub billed: Option<u64>,
    /// The status in the list, which may lag behind.
    pub status: Status,
    /// Whether it has any `custom_metadata`. A service that drops the metadata also drops the token.
    pub has_metadata: bool,
    pub file: ListedFile,
}

/// An item of the list that cannot be read. It may be one of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableItem {
    /// Its index among all items of the page.
    pub index: usize,
    /// Its id, if that can be read.
    pub id: Option<TranscriptionId>,
    /// When it was created, if that can be read.
    pub created: Option<Timestamp>,
    /// What is wrong with it.
    pub why: String,
}

/// A page of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListPage {
    /// The items that can be read, in the service's order.
    pub items: Vec<ListItem>,
    pub unreadable: Vec<UnreadableItem>,
    /// Whether there are further pages.
    pub more: bool,
}

/// One of the two lists of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    PreRecorded,
    Live,
}

impl ListKind {
    /// Returns the name in `kind` of a record and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreRecorded => "pre-recorded",
            Self::Live => "live",
        }
    }
}

/// An item of a list with its whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullListItem {
    pub id: TranscriptionId,
    pub status: Status,
    /// When it was created, by the service's clock.
    pub created: Option<Timestamp>,
    /// Whether the item contains its result.
    pub has_result: bool,
    /// Whether the item has a token.
    pub has_token: bool,
    pub file: ListedFile,
    /// The JSON text as received.
    pub raw: Vec<u8>,
}

/// A page of a list with whole items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullListPage {
    /// The items in the service's order; for an unusable one, why it cannot be used.
    pub items: Vec<Result<FullListItem, String>>,
    /// Whether there are further pages.
    pub more: bool,
}

/// Why a page with whole items could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageFault {
    List(ListFault),
    /// The page is longer than the limit for an answer: a page with fewer items may be read.
    TooLong(Fault),
}

/// The outcome of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The transcription was deleted.
    Gone,
    /// The transcription did not exist.
    GoneBefore,
    /// The transcription still exists: only ended ones can be deleted.
    NotEnded,
}

/// Why a list could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListFault {
    /// The service has no such list (404, 405, 501).
    None(Fault),
    /// The list cannot be read at the moment.
    Now(Fault),
}

#[async_trait::async_trait]
pub trait Client: Send + Sync {
    fn identity(&self) -> &Identity;

    /// Returns the current rate limit in requests per second; infinity if there is none.
    fn rate(&self) -> f64 {
        f64::INFINITY
    }

    /// Returns how many requests were sent since the process was started, also under earlier settings.
    fn request_totals(&self) -> Vec<RequestTotal> {
        Vec::new()
    }

    /// Returns for how long the service has not reacted to the requests in progress; `None` if there are none.
    fn silent_for(&self) -> Option<Duration> {
        None
    }

    /// Returns the service's clock as last seen.
    fn last_date(&self) -> Option<Timestamp>;

    /// Uploads a file. The client may repeat the upload, which costs bandwidth but no money. If the file cannot be
    /// read, the fault is [`crate::domain::fault::FaultKind::Unreadable`].
    async fn upload(&self, file: UploadFile) -> Result<AcceptedUpload, Fault>;

    /// Waits until the rate limit allows a create.
    async fn turn(&self) -> CreatePermit;

    /// Sends a create once: nothing below this method repeats it.
    async fn create(&self, turn: CreatePermit, request: CreateRequest) -> Creation;

    async fn read(&self, id: &TranscriptionId) -> Result<RecordState, Fault>;

    /// Reads a page of the list of pre-recorded transcriptions.
    async fn list(&self, query: &ListQuery) -> Result<ListPage, ListFault>;

    /// Reads a page of either list with the whole items.
    async fn whole_page(&self, _kind: ListKind, _query: &ListQuery) -> Result<FullListPage, PageFault> {
        Err(PageFault::List(ListFault::None(unsupported())))
    }

    /// Reads one record of either list with its whole text.
    async fn whole(&self, _kind: ListKind, _id: &TranscriptionId) -> Result<FullListItem, Fault> {
        Err(unsupported())
    }

    /// Deletes an ended transcription. The client may repeat the request.
    async fn delete(&self, _id: &TranscriptionId) -> Result<Deletion, Fault> {
        Err(unsupported())
    }
}

/// The fault of a client that does not support a request.
fn unsupported() -> Fault {
    Fault::new(FaultKind::Refused { status: 501 }, "the service does not support this request", Timestamp(0))
}
