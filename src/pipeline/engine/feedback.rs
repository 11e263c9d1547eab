//! What the service bears at once, learned from how it answers.

use super::Engine;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::stage::{JobEvent, StageKind};
use crate::pipeline::backpressure::aimd::PushBack;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::wait::PollResult;
use crate::store::contract::StoreError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// An upload that is under way.
pub(super) struct Uploading<'a>(&'a AtomicUsize);

impl Drop for Uploading<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Engine {
    pub(super) fn uploading(&self) -> Uploading<'_> {
        self.uploading.fetch_add(1, Ordering::Relaxed);
        Uploading(&self.uploading)
    }

    /// Accepted transcriptions that have not ended, and creates that may have been.
    pub(super) async fn running(&self) -> Result<usize, StoreError> {
        let counts = self.parts().store.counts_of(&|group| self.owns(group)).await?;
        Ok(usize::try_from(counts.running()).unwrap_or(usize::MAX))
    }

    /// A create was accepted while so many, it included, were running.
    pub(super) fn bore_create(&self, running: usize) {
        self.found().running.got_through(running);
    }

    /// What an upload that got through says of it.
    pub(super) fn bore(&self, event: &JobEvent) {
        if matches!(event, JobEvent::Uploaded { upload, .. } if upload.is_upload()) {
            // This one is not under way any more.
            let under_way = self.uploading.load(Ordering::Relaxed) + 1;
            self.found().uploads.got_through(under_way);
        }
    }

    /// What a transcription that has ended says of it, where the service tells how long it took.
    pub(super) fn bore_end(&self, looked: PollResult) -> StageOutcome {
        if let (StageOutcome::Step(JobEvent::Fetched { audio }), Some(took)) = (&looked.outcome, looked.took) {
            let mut found = self.found();
            if found.slowness.ended(took, Duration::from_millis(audio.millis)) {
                found.running.slowed(self.parts().clock.uptime());
                let running = found.running.now();
                tracing::info!(service = %self.service(), running, "transcriptions take longer and longer; scribed runs fewer at once");
            }
        }
        looked.outcome
    }

    /// An upload or a create that went wrong by the service's doing, or that it pushed back.
    pub(super) async fn pushed_back(&self, asked: StageKind, fault: &Fault) -> Result<(), StoreError> {
        let push = match fault.kind {
            FaultKind::Throttled { .. } => PushBack::Said,
            FaultKind::Broken | FaultKind::Unknown => PushBack::Guessed,
            _ => return Ok(()),
        };
        let now = self.parts().clock.uptime();
        match asked {
            StageKind::Probed => {
                let under_way = self.uploading.load(Ordering::Relaxed) + 1;
                self.found().uploads.pushed_back(under_way, push, now);
            }
            StageKind::Uploaded => {
                let running = self.running().await?;
                self.found().running.pushed_back(running, push, now);
            }
            _ => {}
        }
        Ok(())
    }
}
