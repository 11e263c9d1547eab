//! Admission: for scans, manifests and `scribed add`.

use super::StoreError;
use crate::domain::job::{JobKey, Stamp};
use crate::domain::manifest_row::{ManifestRow, RowSight};
use crate::domain::names::{JobId, SourceName, Timestamp};
use crate::domain::path::RelPath;

/// What [`Jobs::admit`] made of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    New(JobId),
    Known(JobId),
    /// Its job waited for this file, or for its folder, and is due now.
    Awaited(JobId),
    /// Its job had ended, and the file has changed since: back to the start.
    Reopened(JobId),
}

impl Admission {
    /// The job, new or known.
    pub fn id(self) -> JobId {
        let (Self::New(id) | Self::Known(id) | Self::Awaited(id) | Self::Reopened(id)) = self;
        id
    }

    /// Whether a job begins, for the first time or again.
    pub fn begins(self) -> bool {
        matches!(self, Self::New(_) | Self::Reopened(_))
    }

    /// Whether a job became due by it: the engine sleeps until the moment that it knew of.
    pub fn is_news(self) -> bool {
        !matches!(self, Self::Known(_))
    }
}

/// Takes recordings into the queue. A key has one job, whoever admits it and however often.
#[async_trait::async_trait]
pub trait Jobs: Send + Sync {
    /// A file was seen. New ones become a job that is due at `due`; one whose job has ended and that
    /// looks different now starts over. One that waits for its folder to be back is due now: it has been
    /// seen. A crash before it is kept costs a rescan.
    async fn admit(&self, key: &JobKey, seen: Stamp, now: Timestamp, due: Timestamp) -> Result<Admission, StoreError>;

    /// Of files of a source that were seen, those of which [`Jobs::admit`] might make something. Of the others it
    /// would make nothing, and nothing of them is read: it is what a look through a million known files costs.
    async fn new_or_changed(
        &self,
        _source: &SourceName,
        seen: Vec<(RelPath, Stamp)>,
    ) -> Result<Vec<(RelPath, Stamp)>, StoreError> {
        Ok(seen)
    }

    /// A row of a manifest was read. New ones become a job; one that orders otherwise now makes its job start
    /// over, where nothing is being bought for it, and is passed over until then. For the rest as
    /// [`Jobs::admit`]. One whose file is not there waits for it.
    async fn admit_row(
        &self,
        key: &JobKey,
        row: &ManifestRow,
        seen: RowSight,
        now: Timestamp,
        due: Timestamp,
    ) -> Result<Admission, StoreError>;
}
