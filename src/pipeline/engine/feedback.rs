//! What the engine tells the gate of its service, and what is said in the log of what that changes.

use super::Engine;
use crate::backpressure::service_gate::{GateChange, Observation};
use crate::client::contract::Client;
use crate::domain::fault::Fault;
use crate::domain::job::Job;
use crate::domain::stage::{JobEvent, StageKind};
use crate::pipeline::recovery::list_scan::ScanFault;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::wait::PollResult;
use crate::store::contract::StoreError;
use std::sync::Arc;
use std::time::Duration;

impl Engine {
    /// Tells the gate, and says what that changes.
    pub(super) fn observe(&self, observation: Observation<'_>) {
        let service = self.service();
        match self.gate.observe(observation) {
            Some(GateChange::OutageBegan(reason)) => {
                tracing::warn!(%service, %reason, "scribed sends nothing to the service until it answers again");
            }
            // At the level at which the outage was logged.
            Some(GateChange::OutageEnded) => tracing::warn!(%service, "the service answers again"),
            Some(GateChange::Slower(running)) => {
                tracing::info!(%service, running, "transcriptions take longer and longer; scribed runs fewer at once");
            }
            None => {}
        }
    }

    /// A stage that asked the service got its answer.
    pub(super) fn observe_answer(&self, job: &Job) {
        self.observe(Observation::Answered(job.stage.kind()));
        self.forget_faults(job.id);
    }

    /// A stage came to this event.
    pub(super) fn observe_event(&self, job: &Job, event: &JobEvent) {
        let is_uploaded = matches!(event, JobEvent::Uploaded { upload, .. } if upload.is_upload());
        if is_uploaded {
            self.observe(Observation::Uploaded);
        }
        // Other steps from there asked nobody: a twin was found, or the file has changed.
        if is_uploaded || matches!(event, JobEvent::Fetched { .. }) {
            self.observe_answer(job);
        }
    }

    /// A poll that saw the end of a transcription, where the service tells how long it took.
    pub(super) fn observe_poll(&self, polled: PollResult) -> StageOutcome {
        if let (StageOutcome::Step(JobEvent::Fetched { audio }), Some(took)) = (&polled.outcome, polled.took) {
            self.observe(Observation::Ended { took, audio: Duration::from_millis(audio.millis) });
        }
        polled.outcome
    }

    /// A fault, unless it was met with a client that is not used any more: what a key or an address met that was
    /// changed since says nothing of the new one.
    pub(super) fn observe_fault(&self, client: &Arc<dyn Client>, fault: &Fault) {
        if self.is_current(client) {
            self.observe(Observation::Failed(fault));
        }
    }

    /// A scan that could not be completed. A list that changes while it is read is no fault of the service's.
    pub(super) fn observe_scan_fault(&self, client: &Arc<dyn Client>, fault: &ScanFault) {
        if let ScanFault::CutShort(fault) = fault {
            self.observe_fault(client, fault);
        }
    }

    /// An upload or a create, told by its stage, that may have been too much at once.
    pub(super) async fn observe_push_back(&self, stage: StageKind, fault: &Fault) -> Result<(), StoreError> {
        match stage {
            StageKind::Probed => self.observe(Observation::UploadFailed(fault)),
            StageKind::Uploaded => {
                self.observe(Observation::CreateFailed { fault, running: self.running().await? });
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the service is still reached by this client.
    pub(super) fn is_current(&self, client: &Arc<dyn Client>) -> bool {
        Arc::ptr_eq(client, &self.parts().client)
    }

    /// Accepted transcriptions that have not ended, and creates that may have been.
    pub(super) async fn running(&self) -> Result<usize, StoreError> {
        let counts = self.parts().store.counts_of(&|group| self.owns(group)).await?;
        Ok(usize::try_from(counts.running()).unwrap_or(usize::MAX))
    }
}
