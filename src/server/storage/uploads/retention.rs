//! How long uploads are kept after their last use.

use super::UploadStore;
use super::index::Kept;
use crate::domain::names::{Hash, Timestamp};
use std::time::Duration;
use uuid::Uuid;

/// How long an upload is kept after its last use. Uses are its arrival, a create that names it, the end of one of its
/// transcriptions, and a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadRetention {
    /// For an upload that no create has named.
    pub unnamed: Duration,
    /// For an upload that a create has named. Zero: it is removed when its last transcription ends.
    pub named: Duration,
}

/// How long uploads are kept unless `[serve] uploads` says otherwise.
pub const A_DAY: Duration = Duration::from_secs(24 * 3600);

impl UploadRetention {
    /// No longer than uploads are needed: for a client that uploads each recording for one create.
    pub const UNTIL_TRANSCRIBED: Self = Self { unnamed: A_DAY, named: Duration::ZERO };

    /// This long after the last use; zero means [`UploadRetention::UNTIL_TRANSCRIBED`].
    pub const fn for_span(span: Duration) -> Self {
        if span.is_zero() { Self::UNTIL_TRANSCRIBED } else { Self { unnamed: span, named: span } }
    }

    /// Returns how often to check for expired uploads.
    pub fn check_interval(self) -> Duration {
        let shortest = if self.named.is_zero() { self.unnamed } else { self.unnamed.min(self.named) };
        (shortest / 4).clamp(Duration::from_secs(1), Duration::from_secs(3600))
    }
}

impl UploadStore {
    /// Removes expired uploads that no unfinished transcription holds.
    pub fn remove_expired(&self) {
        let now = self.clock.now();
        let is_expired_entry = |(_, kept): &(&Uuid, &Kept)| self.is_expired(kept, now);
        let expired: Vec<Uuid> = self.state().uploads.iter().filter(is_expired_entry).map(|(id, _)| *id).collect();
        expired.into_iter().for_each(|id| _ = self.remove(id));
    }

    pub(super) fn is_expired(&self, kept: &Kept, now: Timestamp) -> bool {
        let (span, since) =
            (if kept.named { self.keeping.named } else { self.keeping.unnamed }, now.duration_since(kept.used));
        kept.open == 0 && (span.is_zero() || since > span)
    }

    /// Removes idle uploads, those with the oldest last use first, until at most eight tenths of the disk quota are
    /// used, and returns how many. This leaves space for new uploads and for imports. Only keys that have to free space
    /// lose uploads.
    pub fn free_space(&self) -> usize {
        let mut removed = 0;
        while let Some(oldest) = self.next_to_free() {
            removed += usize::from(self.remove(oldest));
        }
        removed
    }

    fn next_to_free(&self) -> Option<Uuid> {
        let (state, share) = (self.state(), self.share_per_key());
        if state.total_bytes() <= self.limits.disk / 10 * 8 {
            return None;
        }
        let is_over = |owner: &Hash| state.bytes_of(owner) > share;
        let any_over = state.owners.keys().any(is_over);
        state.oldest_idle(self.clock.now(), |owner| is_over(owner) || !any_over)
    }
}
