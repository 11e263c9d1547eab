//! Transcriptions that are not there any more: looked for by token, in one walk for all that are missed
//! at the same time.

use super::{Engine, EngineParts, LEASE};
use crate::backpressure::Permit;
use crate::backpressure::service_gate::RequestKind;
use crate::client::contract::{Identity, ListItem};
use crate::clock::Uptime;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::TranscriptionId;
use crate::domain::token::{PurchaseKey, Token};
use crate::pipeline::recovery::list_scan::ScanFault;
use crate::pipeline::recovery::lost_transcription::{LostTranscription, selection_hash};
use crate::pipeline::recovery::unknown_create::by_token;
use crate::pipeline::stages::outcome::{StageOutcome, StageStop};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Our items of a list by their tokens.
type Ours = Arc<BTreeMap<Token, ListItem>>;

/// The list as it was walked last: when that walk began, and as whom it was.
#[derive(Default)]
pub(super) struct ScannedList(tokio::sync::Mutex<Option<(Uptime, Identity, Ours)>>);

impl Engine {
    /// Looks for a transcription that a read says is `gone`.
    pub(super) async fn find_lost(
        &self,
        parts: &EngineParts,
        job: &Job,
        bought: (&PurchaseKey, &TranscriptionId),
        gone: Fault,
    ) -> Result<StageOutcome, StageStop> {
        let (missed, lag) = (self.missing_for(job.id), self.parts().terms.lag);
        // What lists show late, reads may show late too, and the wall clock may have jumped. And while the
        // service wants nothing it is asked nothing.
        if missed < lag || self.gate.permit(RequestKind::Read) != Permit::Granted {
            let at =
                self.parts().clock.now().saturating_add(lag.saturating_sub(missed).max(self.parts().terms.poll.min));
            let words = format!("{}; scribed searches the service's list for it", gone.words);
            return Ok(StageOutcome::Rest(Some(at), Fault { kind: FaultKind::Broken, words, ..gone }));
        }
        let walked = self.listing(parts, missed - lag).await;
        let now = self.parts().clock.now();
        match selection_hash(job, bought, walked.as_deref(), gone, now) {
            Ok(event) => {
                if self.log_limit.has_line("another id", self.parts().clock.now()) {
                    tracing::warn!(job = %job.id, lost = %bought.1, "the service lists the transcription of a job under another id; scribed continues with that one");
                }
                Ok(StageOutcome::Step(event))
            }
            Err(LostTranscription::Fault(fault)) => Err(StageStop::Fault(fault)),
            Err(LostTranscription::Unread(fault)) => {
                self.observe_fault(&parts.client, &fault);
                let at = now.saturating_add(self.gate.longest_wait(self.count_failure(job, false).earlier));
                Ok(StageOutcome::Rest(Some(at), fault))
            }
        }
    }

    /// Ours in the list, as it was not longer than `since` ago. Whoever asks while it is walked, or soon
    /// after, shares that walk: a service that lost a thousand records is not walked a thousand times.
    async fn listing(&self, parts: &EngineParts, since: Duration) -> Result<Ours, ScanFault> {
        let mut listing = self.listing.0.lock().await;
        let now = self.parts().clock.uptime();
        if let Some((began, identity, found)) = &*listing
            && identity == parts.client.identity()
            && now.since(*began) < since.min(LEASE)
        {
            return Ok(Arc::clone(found));
        }
        *listing = None;
        let scan = self.scan_list(parts, None, false).await?;
        let (found, doubles) = by_token(scan.ours);
        self.doubles.fetch_add(doubles, Ordering::Relaxed);
        let found = Arc::new(found);
        *listing = Some((now, parts.client.identity().clone(), Arc::clone(&found)));
        Ok(found)
    }
}
