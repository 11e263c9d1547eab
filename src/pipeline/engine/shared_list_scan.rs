//! Decides when the list is searched for lost transcriptions, and shares one scan among all jobs that need it at the
//! same time. `recovery/lost_transcription.rs` decides what such a scan means for one job.

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
use crate::pipeline::recovery::lost_transcription::{LostTranscription, judge_lost};
use crate::pipeline::recovery::unknown_create::by_token;
use crate::pipeline::stages::outcome::{StageOutcome, StageStop};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The list's items with our tokens.
type ItemsByToken = Arc<BTreeMap<Token, ListItem>>;

/// The last scan of the list: when it began, with which identity, and what it found.
#[derive(Default)]
pub(super) struct ScannedList(tokio::sync::Mutex<Option<(Uptime, Identity, ItemsByToken)>>);

impl Engine {
    /// Searches the list for a transcription that a read reported as `gone`.
    pub(super) async fn find_lost(
        &self,
        parts: &EngineParts,
        job: &Job,
        bought: (&PurchaseKey, &TranscriptionId),
        gone: Fault,
    ) -> Result<StageOutcome, StageStop> {
        let (missed, lag) = (self.missing_for(job.id), self.parts().terms.lag);
        // Reads may be late like lists, and the wall clock may have jumped, so the search waits for the lag. It also
        // waits while the gate grants no reads.
        if missed < lag || self.gate.permit(RequestKind::Read) != Permit::Granted {
            let at =
                self.parts().clock.now().saturating_add(lag.saturating_sub(missed).max(self.parts().terms.poll.min));
            let words = format!("{}; scribed searches the service's list for it", gone.words);
            return Ok(StageOutcome::Rest(Some(at), Fault { kind: FaultKind::Broken, words, ..gone }));
        }
        let scanned = self.listing(parts, missed - lag).await;
        let now = self.parts().clock.now();
        match judge_lost(job, bought, scanned.as_deref(), gone, now) {
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

    /// Returns our items of the list as of at most `since` (and at most a lease) ago. Calls during a scan or soon
    /// after it share it: a service that lost a thousand records is not scanned a thousand times.
    async fn listing(&self, parts: &EngineParts, since: Duration) -> Result<ItemsByToken, ScanFault> {
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
