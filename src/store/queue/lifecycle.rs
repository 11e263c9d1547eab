//! Start, reload and end.

use super::{Queue, QueueStore};
use crate::domain::clock_ahead::{LongestWaits, limited};
use crate::domain::names::Timestamp;
use crate::store::contract::{Lifecycle, StoreError};

#[async_trait::async_trait]
impl Lifecycle for QueueStore {
    async fn begin_run(&self, now: Timestamp) -> Result<(), StoreError> {
        self.queue().begin_run(now)
    }

    async fn limit_waits(&self, now: Timestamp, waits: &LongestWaits) -> Result<usize, StoreError> {
        self.queue().limit_waits(now, waits)
    }

    async fn configuration_changed(&self, now: Timestamp) -> Result<(), StoreError> {
        self.queue().configuration_changed(now)
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.barrier.durable().await
    }
}

impl Queue {
    fn begin_run(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.index.spending.begin_run(now);
        self.configuration_changed(now)
    }

    fn limit_waits(&mut self, now: Timestamp, waits: &LongestWaits) -> Result<usize, StoreError> {
        let ids = match self.ahead.take() {
            Some(ids) => ids,
            None => self.rows.scan(None).map(|job| job.map(|job| job.id)).collect::<Result<_, _>>()?,
        };
        let mut count = 0;
        for id in ids {
            let old = self.load(id)?;
            if let Some(new) = limited(&old, now, waits) {
                self.replace(Some(&old), &new)?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn configuration_changed(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.index.on_settings().into_iter().try_for_each(|id| self.bring_forward(id, now))
    }
}
