//! The door to a transcription service. Faults come as data; what becomes of them is not decided here.

use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::{ServiceName, Timestamp, TranscriptionId, UploadId};
use crate::domain::remote_url::RemoteUrl;
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

/// Whom we speak to, and as whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its name in `jobs.toml`.
    pub service: ServiceName,
    /// Scheme, host and port; for the embedded service its store's id.
    pub origin: String,
    /// A hash of the key that does not tell it.
    pub key: String,
    /// Whether it is a part of this program: what is sent to it never leaves the machine.
    pub is_own: bool,
}

/// A file to be uploaded. It may be opened again when the upload is repeated.
#[derive(Clone)]
pub struct UploadFile {
    /// The name it is sent under.
    pub name: String,
    /// Bytes, known beforehand.
    pub size: u64,
    /// Its content from the start, in pieces.
    pub open: Arc<dyn Fn() -> BoxStream<'static, std::io::Result<Bytes>> + Send + Sync>,
}

/// What the service took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedUpload {
    /// How a create names it.
    pub upload: UploadId,
    /// What the service found in it.
    pub audio: AudioAmount,
    /// How many bytes it says it has.
    pub size: Option<u64>,
}

/// A turn to send one create within the limit of requests a second. Taken before the intent, so that
/// the create leaves right after it; used up by the create.
#[derive(Debug)]
pub struct CreatePermit(());

impl CreatePermit {
    /// For clients, when the turn has come.
    pub fn come() -> Self {
        Self(())
    }
}

/// What a create asks to be transcribed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestAudio {
    Upload(UploadId),
    /// What the service fetches.
    Url(RemoteUrl),
}

/// What a create asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateRequest {
    pub audio: RequestAudio,
    /// The rendered parameters, without `audio_url` and `custom_metadata`.
    pub params: Map<String, Value>,
    /// The rendered metadata, our token included.
    pub metadata: Map<String, Value>,
    /// Whom the service is to call when it has ended. Its address is a secret.
    pub callback: Option<CallbackConfig>,
}

/// What became of a create (design, section 5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Creation {
    /// There is a transcription.
    Accepted(TranscriptionId),
    /// There is none, and there will be none: nothing left, or a complete refusal.
    NotAccepted(Fault),
    Unknown(Fault),
}

/// What a read says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordState {
    /// Not ended. The status in the service's words.
    Pending(String),
    /// The whole answer as it came.
    Done {
        raw: Vec<u8>,
        audio: AudioAmount,
        /// From its acceptance to its end, by the service's own dates.
        took: Option<Duration>,
    },
    /// Ended badly ([`crate::domain::fault::FaultKind::Dead`]), or not there any more
    /// ([`crate::domain::fault::FaultKind::Gone`]).
    Lost(Fault),
}

/// An item of the list, without its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListItem {
    pub id: TranscriptionId,
    /// When it was created, by the service's clock.
    pub created: Option<Timestamp>,
    /// Our token, if it carries one.
    pub token: Option<Token>,
    /// Milliseconds that it was billed at, where the list says so.
    pub billed: Option<u64>,
    /// Where it is, as the list has it: a list may lag.
    pub status: Status,
    /// Whether it carries any `custom_metadata`: a service that drops it drops our token with it.
    pub has_metadata: bool,
}

/// An item of the list that cannot be read: it may be ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableItem {
    /// Its place among all items of the page, from 0.
    pub index: usize,
    /// Its id, where at least that can be read.
    pub id: Option<TranscriptionId>,
    /// When it was created, where at least that can be read.
    pub created: Option<Timestamp>,
    /// What is wrong with it.
    pub why: String,
}

/// A page of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListPage {
    /// Those that can be read, in the service's order.
    pub items: Vec<ListItem>,
    pub unreadable: Vec<UnreadableItem>,
    /// Whether the service says that more follow.
    pub more: bool,
}

/// Which of the service's two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    PreRecorded,
    Live,
}

impl ListKind {
    /// As in `kind` of a record, and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreRecorded => "pre-recorded",
            Self::Live => "live",
        }
    }
}

/// An item of a list, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullListItem {
    pub id: TranscriptionId,
    pub status: Status,
    /// When it was created, by the service's clock.
    pub created: Option<Timestamp>,
    /// Whether its result is in it.
    pub has_result: bool,
    /// Whether it carries a token of ours.
    pub has_token: bool,
    /// JSON as it came.
    pub raw: Vec<u8>,
}

/// A page of a list, each item whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullListPage {
    /// In the service's order; in words why one of them cannot be used.
    pub items: Vec<Result<FullListItem, String>>,
    /// Whether the service says that more follow.
    pub more: bool,
}

/// How a page of whole items cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageFault {
    List(ListFault),
    /// It is longer than is read of an answer: fewer items at a time may be had.
    TooLong(Fault),
}

/// What became of an order to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// It is gone by it.
    Gone,
    /// It was not there.
    GoneBefore,
    /// It is there still: only what has ended is deleted.
    NotEnded,
}

/// How a list cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListFault {
    /// There is no such list (404, 405, 501).
    None(Fault),
    /// Not now.
    Now(Fault),
}

#[async_trait::async_trait]
pub trait Client: Send + Sync {
    /// Whom we speak to.
    fn identity(&self) -> &Identity;

    /// Requests a second that it was found to take; infinity where nothing limits them.
    fn rate(&self) -> f64 {
        f64::INFINITY
    }

    /// For how long it has given no sign of life to all that is under way; `None` where nothing is.
    fn silent_for(&self) -> Option<Duration> {
        None
    }

    /// The service's own clock as last heard.
    fn last_date(&self) -> Option<Timestamp>;

    /// Uploads. May be repeated inside; costs bandwidth, not money. A fault of the file itself
    /// ([`crate::domain::fault::FaultKind::Unreadable`]) is the file's, not the service's.
    async fn upload(&self, file: UploadFile) -> Result<AcceptedUpload, Fault>;

    /// Waits for a turn to create.
    async fn turn(&self) -> CreatePermit;

    /// Creates, once: no layer below repeats it.
    async fn create(&self, turn: CreatePermit, request: CreateRequest) -> Creation;

    async fn read(&self, id: &TranscriptionId) -> Result<RecordState, Fault>;

    /// Reads a page of the list of pre-recorded transcriptions.
    async fn list(&self, query: &ListQuery) -> Result<ListPage, ListFault>;

    /// Reads a page of either list with all that stands in it.
    async fn whole_page(&self, _kind: ListKind, _query: &ListQuery) -> Result<FullListPage, PageFault> {
        Err(PageFault::List(ListFault::None(cannot())))
    }

    /// Reads one record of either list, whole.
    async fn whole(&self, _kind: ListKind, _id: &TranscriptionId) -> Result<FullListItem, Fault> {
        Err(cannot())
    }

    /// Deletes an ended transcription. May be repeated.
    async fn delete(&self, _id: &TranscriptionId) -> Result<Deletion, Fault> {
        Err(cannot())
    }
}

/// Of those that only buy and read.
fn cannot() -> Fault {
    Fault::new(FaultKind::Refused { status: 501 }, "the service does not support this request", Timestamp(0))
}
