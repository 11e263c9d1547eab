//! Admission: for scans, manifests and `scribed add`.

use super::StoreError;
use crate::domain::job::{JobKey, Stamp};
use crate::domain::manifest_row::{ManifestRow, RowSight};
use crate::domain::names::{JobId, SourceName, Timestamp};
use crate::domain::path::RelPath;

/// Result of [`Jobs::admit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    New(JobId),
    Known(JobId),
    /// The job waited for this file, or for its folder, and is due now.
    Awaited(JobId),
    /// The job had ended, and its file has changed since: it starts over.
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

    /// Whether a job became due: the engine sleeps until the due moment that it knows of.
    pub fn is_news(self) -> bool {
        !matches!(self, Self::Known(_))
    }
}

/// Admits recordings to the queue. A key has one job, whoever admits it and however often.
#[async_trait::async_trait]
pub trait Jobs: Send + Sync {
    /// Admits a file that was seen. A new file gets a job that is due at `due`. If the file's job has ended and the
    /// file looks different now, the job starts over. If the job waits for its folder, it is due now. A crash before
    /// this is durable costs a rescan.
    async fn admit(&self, key: &JobKey, seen: Stamp, now: Timestamp, due: Timestamp) -> Result<Admission, StoreError>;

    /// Returns the files, of those that were seen in a source, for which [`Jobs::admit`] might do something. For the
    /// others it would do nothing, and nothing of them is read: so a scan of a million known files stays cheap.
    async fn new_or_changed(
        &self,
        _source: &SourceName,
        seen: Vec<(RelPath, Stamp)>,
    ) -> Result<Vec<(RelPath, Stamp)>, StoreError> {
        Ok(seen)
    }

    /// Admits a row of a manifest. A new row gets a job. If the row now orders something else, its job starts over;
    /// while something is being bought for the job, that is put off. Otherwise as [`Jobs::admit`]. A row whose file
    /// is not there gets a job that waits for it.
    async fn admit_row(
        &self,
        key: &JobKey,
        row: &ManifestRow,
        seen: RowSight,
        now: Timestamp,
        due: Timestamp,
    ) -> Result<Admission, StoreError>;
}
