//! Reports to the gate of the service what the stages observe, and logs what changes.

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
    /// Reports an observation to the gate, and logs the change that follows.
    pub(super) fn observe(&self, observation: Observation<'_>) {
        let service = self.service();
        match self.gate.observe(observation) {
            Some(GateChange::OutageBegan(reason)) => {
                tracing::warn!(%service, %reason, "scribed sends nothing to the service until it answers again");
            }
            // Warn, like the beginning of the outage.
            Some(GateChange::OutageEnded) => tracing::warn!(%service, "the service answers again"),
            Some(GateChange::Slower(running)) => {
                tracing::info!(%service, running, "transcriptions take longer and longer; scribed runs fewer at once");
            }
            None => {}
        }
    }

    /// Reports that the service answered the request of a stage.
    pub(super) fn observe_answer(&self, job: &Job) {
        self.observe(Observation::Answered(job.stage.kind()));
        self.forget_faults(job.id);
    }

    /// Reports an event that ended a stage.
    pub(super) fn observe_event(&self, job: &Job, event: &JobEvent) {
        let is_uploaded = matches!(event, JobEvent::Uploaded { upload, .. } if upload.is_upload());
        if is_uploaded {
            self.observe(Observation::Uploaded);
        }
        // Other steps from these stages sent no request: a duplicate was found, or the file has changed.
        if is_uploaded || matches!(event, JobEvent::Fetched { .. }) {
            self.observe_answer(job);
        }
    }

    /// Returns the outcome of a poll, and reports the end of a transcription if the service says how long it took.
    pub(super) fn observe_poll(&self, polled: PollResult) -> StageOutcome {
        if let (StageOutcome::Step(JobEvent::Fetched { audio }), Some(took)) = (&polled.outcome, polled.took) {
            self.observe(Observation::Ended { took, audio: Duration::from_millis(audio.millis) });
        }
        polled.outcome
    }

    /// Reports a fault, unless the client that met it is no longer used: a fault of an old key or address says
    /// nothing about the new one.
    pub(super) fn observe_fault(&self, client: &Arc<dyn Client>, fault: &Fault) {
        if self.is_current(client) {
            self.observe(Observation::Failed(fault));
        }
    }

    /// Reports why a scan could not be completed. A list that changes while it is read is not the service's fault.
    pub(super) fn observe_scan_fault(&self, client: &Arc<dyn Client>, fault: &ScanFault) {
        if let ScanFault::CutShort(fault) = fault {
            self.observe_fault(client, fault);
        }
    }

    /// Reports a failed upload or create, which may have been one too many at once. `stage` tells which of the two it
    /// was.
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

    /// Whether the engine still uses this client.
    pub(super) fn is_current(&self, client: &Arc<dyn Client>) -> bool {
        Arc::ptr_eq(client, &self.parts().client)
    }

    /// Counts accepted transcriptions that have not ended, and creates that may have been accepted.
    pub(super) async fn running(&self) -> Result<usize, StoreError> {
        let counts = self.parts().store.counts_of(&|group| self.owns(group)).await?;
        Ok(usize::try_from(counts.running()).unwrap_or(usize::MAX))
    }
}
