//! Limits the bytes of all uploads and of each key, and chooses the idle uploads that are removed when space is short.
//! An upload over the limit of a single one is refused (413 in `http/upload.rs`).

use super::UploadStore;
use super::index::Index;
use crate::domain::names::Hash;
use crate::server::fair_share;
use crate::server::recognition::transcribe::LONGEST;
use std::io;
use std::sync::PoisonError;
use std::time::Duration;
use uuid::Uuid;

/// The size limits, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadLimits {
    pub upload: u64,
    /// Of all uploads, including incomplete ones and the records with their results.
    pub disk: u64,
}

/// The used and the allowed size, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Uploads, including incomplete ones, and records with their results.
    pub used: u64,
    /// The allowed size.
    pub limit: u64,
}

/// Why an upload is refused.
#[derive(Debug, thiserror::Error)]
pub enum UploadStoreError {
    /// The upload is over the limit of a single one; a repetition would fail too.
    #[error("the file is larger than the {limit} bytes that this service takes")]
    TooLarge {
        /// Bytes.
        limit: u64,
    },
    /// Little space is left, and this key holds more than its share; its own transcriptions free space when they end.
    #[error(
        "the service's disk is nearly full, and this key keeps more than its share of it ({share} of {limit} bytes); \
         try again when transcriptions of it have ended, or delete some"
    )]
    OverShare {
        /// Bytes.
        share: u64,
        /// Bytes.
        limit: u64,
    },
    /// All uploads together reach the limit; transcriptions free space when they end.
    #[error("the service keeps as much as it may ({limit} bytes); try again later")]
    Full {
        /// Bytes.
        limit: u64,
    },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The settings that can change while the store is open.
#[derive(Debug, Clone, Copy)]
pub struct UploadRules {
    /// Keys that share the disk, at least 1.
    pub keys: usize,
    /// The longest recording that is accepted.
    pub length_limit: Duration,
}

impl Default for UploadRules {
    fn default() -> Self {
        Self { keys: 1, length_limit: LONGEST }
    }
}

impl UploadStore {
    /// Sets how many keys share the store and what is accepted; before the first call one key has all of it.
    pub fn set_rules(&self, sharing: UploadRules) {
        *self.sharing.lock().unwrap_or_else(PoisonError::into_inner) = sharing;
    }

    /// Sets how many keys share the store.
    pub fn set_key_count(&self, keys: usize) {
        self.set_rules(UploadRules { keys, ..self.rules() });
    }

    pub(super) fn rules(&self) -> UploadRules {
        *self.sharing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this key has to free space: it holds more than its share, or no key does.
    pub fn must_free_space(&self, owner: &Hash) -> bool {
        let (state, share) = (self.state(), self.share_per_key());
        state.bytes_of(owner) > share || state.owners.values().all(|held| *held <= share)
    }

    pub(super) fn share_per_key(&self) -> u64 {
        fair_share::disk_share(self.limits.disk, self.rules().keys)
    }

    /// Whether more than nine tenths of the disk quota are used.
    pub fn is_nearly_full(&self) -> bool {
        let state = self.state();
        state.total_bytes() > self.limits.disk / 10 * 9
    }

    /// Returns how much of the disk quota is used.
    pub fn usage(&self) -> Usage {
        Usage { used: self.state().total_bytes(), limit: self.limits.disk }
    }

    /// Counts `more` bytes of an upload that has `size` bytes already. Removes idle uploads if there is no space for
    /// them.
    ///
    /// # Errors
    /// The bytes do not fit.
    pub(crate) fn reserve(&self, owner: &Hash, size: u64, more: u64) -> Result<(), UploadStoreError> {
        loop {
            let mut state = self.state();
            let (own, all) = (state.bytes_of(owner).saturating_sub(size), state.total_bytes().saturating_sub(size));
            let fits = self.check(size + more, own, all);
            let Err(UploadStoreError::Full { .. } | UploadStoreError::OverShare { .. }) = fits else {
                fits?;
                state.bytes += more;
                state.add(owner, more);
                return Ok(());
            };
            let oldest = self.next_to_remove(&state, owner, own + size + more);
            drop(state);
            match oldest {
                Some(oldest) => self.remove(oldest),
                None => return fits,
            };
        }
    }

    /// Returns the idle upload to remove so that `owner` can have `held` bytes. An owner within its share keeps its own
    /// uploads while another key holds more than its share.
    fn next_to_remove(&self, state: &Index, owner: &Hash, held: u64) -> Option<Uuid> {
        let (now, share) = (self.clock.now(), self.share_per_key());
        let is_over = |other: &Hash| held <= share && other != owner && state.bytes_of(other) > share;
        let of_others = state.oldest_idle(now, is_over);
        of_others.or_else(|| state.oldest_idle(now, |other| self.may_remove_for(state, other, owner, held)))
    }

    /// Whether idle uploads of `of` may be removed so that `owner` can have `held` bytes: its own may, and those of a
    /// key that holds more than its share. Others' may only if no other key does and `owner` stays within its share.
    fn may_remove_for(&self, state: &Index, of: &Hash, owner: &Hash, held: u64) -> bool {
        let share = self.share_per_key();
        let nobody_over = || state.owners.iter().all(|(other, bytes)| other == owner || *bytes <= share);
        of == owner || state.bytes_of(of) > share || (held <= share && nobody_over())
    }

    /// Checks whether this much fits when all idle uploads that may be removed for it are removed. Nothing is removed
    /// before bytes arrive.
    pub(super) fn check_without_idle(&self, owner: &Hash, announced: u64) -> Result<(), UploadStoreError> {
        let (state, now) = (self.state(), self.clock.now());
        let (own, all) = (state.bytes_of(owner), state.total_bytes());
        match self.check(announced, own, all) {
            Err(UploadStoreError::Full { .. } | UploadStoreError::OverShare { .. }) => {}
            // The announced length may be any number up to here.
            known => return known,
        }
        let idle = |of: &Hash| -> u64 {
            let ids =
                state.idle.get(of).into_iter().flatten().map(|(_, id)| id).filter(|id| state.is_removable(**id, now));
            ids.filter_map(|id| state.uploads.get(id)).map(|kept| kept.size).sum()
        };
        let own_idle = idle(owner);
        let gives_way = |of: &&Hash| *of != owner && self.may_remove_for(&state, of, owner, own + announced - own_idle);
        let others_idle: u64 = state.idle.keys().filter(gives_way).map(idle).sum();
        self.check(announced, own - own_idle, all.saturating_sub(own_idle + others_idle))
    }

    /// Releases bytes that were reserved and are not kept.
    pub(crate) fn free(&self, owner: &Hash, size: u64) {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(size);
        state.subtract(owner, size);
    }

    /// Checks an upload against the limits. The last tenth of the disk is for keys within their share, so that others
    /// can send something, whatever one key sends.
    fn check(&self, upload: u64, own_others: u64, all_others: u64) -> Result<(), UploadStoreError> {
        let UploadLimits { upload: per_upload, disk } = self.limits;
        if upload > per_upload.min(disk) {
            return Err(UploadStoreError::TooLarge { limit: per_upload.min(disk) });
        }
        let (all, own, share) =
            (all_others.saturating_add(upload), own_others.saturating_add(upload), self.share_per_key());
        if all > disk / 10 * 9 && self.rules().keys > 1 && own > share {
            return Err(UploadStoreError::OverShare { share, limit: disk });
        }
        if all <= disk { Ok(()) } else { Err(UploadStoreError::Full { limit: disk }) }
    }
}
