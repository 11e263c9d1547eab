//! Admission.

use super::{Queue, QueueStore};
use crate::domain::job::{Job, JobKey, JobTag, Stamp};
use crate::domain::manifest_row::{ManifestRow, RowSight};
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::stage::{JobEvent, Stage};
use crate::store::contract::{Admission, Jobs, StoreError};
use crate::store::row_change::{RowChange, compare};

#[async_trait::async_trait]
impl Jobs for QueueStore {
    async fn admit(&self, key: &JobKey, seen: Stamp, now: Timestamp, due: Timestamp) -> Result<Admission, StoreError> {
        self.queue().admit(key, seen, now, due)
    }

    async fn new_or_changed(
        &self,
        source: &SourceName,
        mut seen: Vec<(RelPath, Stamp)>,
    ) -> Result<Vec<(RelPath, Stamp)>, StoreError> {
        // Hashed before the lock is taken, so that others need not wait.
        let tags: Vec<JobTag> = seen.iter().map(|(path, _)| JobTag::of(source, path)).collect();
        let (queue, mut tags) = (self.queue(), tags.iter());
        seen.retain(|(_, stamp)| tags.next().is_some_and(|tag| !queue.index.roll.is_known(tag, stamp)));
        Ok(seen)
    }

    async fn admit_row(
        &self,
        key: &JobKey,
        row: &ManifestRow,
        seen: RowSight,
        now: Timestamp,
        due: Timestamp,
    ) -> Result<Admission, StoreError> {
        self.queue().admit_row(key, row, seen, now, due)
    }
}

impl Queue {
    fn admit(&mut self, key: &JobKey, seen: Stamp, now: Timestamp, due: Timestamp) -> Result<Admission, StoreError> {
        let Some(id) = self.index.roll.find(&key.tag()) else {
            let job = Job::found(self.index.next_id(), key.clone(), seen, now, due);
            self.put(None, &job)?;
            return Ok(Admission::New(job.id));
        };
        let old = self.load(id)?;
        // A file that was missing may come back just as it was.
        let is_back = matches!(old.stage, Stage::Skipped { why } if why.ends_when_file_found());
        if !old.stage.is_end() {
            if old.awaits_file() && old.due.is_some_and(|due| due > now) {
                self.bring_forward(id, now)?;
                return Ok(Admission::Awaited(id));
            }
            return Ok(Admission::Known(id));
        }
        if old.matches_file(&seen) && !is_back {
            return Ok(Admission::Known(id));
        }
        let Ok(new) = old.clone().apply(JobEvent::Grew { stamp: seen }, now) else {
            return Ok(Admission::Known(id));
        };
        self.put(Some(&old), &new.deferred(Some(due), None))?;
        Ok(Admission::Reopened(id))
    }

    fn admit_row(
        &mut self,
        key: &JobKey,
        row: &ManifestRow,
        seen: RowSight,
        now: Timestamp,
        due: Timestamp,
    ) -> Result<Admission, StoreError> {
        let Some(id) = self.index.roll.find(&key.tag()) else {
            let found = Job::found(self.index.next_id(), key.clone(), seen.stamp().unwrap_or_default(), now, due);
            let job = Job { row: Some(Box::new(row.clone())), fault: row.wait_fault(seen, now), ..found };
            self.put(None, &job)?;
            return Ok(Admission::New(job.id));
        };
        let old = self.load(id)?;
        match compare(&old, row, seen, now, due) {
            RowChange::Reordered(new) => {
                self.settle_purchase(&old, &new)?;
                // Released first: the holder must not put back what was ordered before.
                self.index.release(id);
                self.put(Some(&old), &new)?;
                self.wake_followers(&new)?;
                return Ok(Admission::Reopened(id));
            }
            RowChange::Noted(new) => drop(self.put(Some(&old), &new)?),
            RowChange::Same | RowChange::Later => {}
        }
        match seen.stamp() {
            Some(seen) => self.admit(key, seen, now, due),
            None => Ok(Admission::Known(id)),
        }
    }
}
