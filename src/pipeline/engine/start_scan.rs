//! Scans a service's list before the first create there: a queue that was restored from an older copy, repaired or
//! newly created does not know what was bought since. Then looks for the first accepted create in the list: a list that
//! does not show it cannot prove that another one is absent.

use super::list_view::{ListLook, ListQuestion};
use super::scheduler::{Busy, WorkKind};
use super::{Engine, EngineParts, Walked, earlier};
use crate::backpressure::service_gate::Observation;
use crate::client::contract::{ListItem, ListKind};
use crate::crash_points::{self, Point};
use crate::domain::count::count;
use crate::domain::fault::Blame;
use crate::domain::names::Timestamp;
use crate::domain::stage::StageKind;
use crate::domain::time_span::time_span;
use crate::domain::token::Token;
use crate::domain::zone::Zone;
use crate::pipeline::recovery::absence::Witness;
use crate::pipeline::recovery::list_scan::{ListScan, ScanFault, ScanProgress};
use crate::pipeline::recovery::unknown_create::{by_purchase_key, by_token, unproven};
use crate::store::contract::{NewestPurchase, StoreError};
use crate::wire::record::Status;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;

/// Why a queue is suspect.
pub const NEW: &str = "the queue is new, repaired or restored";

impl Engine {
    /// Whether creates may be sent, as far as the list is concerned. If not, starts the scan that this needs.
    pub(super) async fn may_buy(
        self: &Arc<Self>,
        may_submit: bool,
        running: &mut JoinSet<Walked>,
        busy: &mut Busy,
        wake: &mut Option<Duration>,
    ) -> Result<bool, StoreError> {
        let is_suspect = self.parts().store.is_suspect(self.service()).await?;
        if !is_suspect && self.list_view().is_scanned {
            self.look_for_accepted(may_submit, running, busy, wake);
            return Ok(true);
        }
        let is_asked = self.list_view().question.is_some();
        if !may_submit || is_asked || busy.of(WorkKind::Trust) > 0 {
            return Ok(false);
        }
        if !is_suspect && !self.wants_to_buy().await? {
            return Ok(false);
        }
        let left = self.until_scan(is_suspect);
        if !left.is_zero() {
            *wake = earlier(*wake, Some(left));
            return Ok(false);
        }
        let engine = Arc::clone(self);
        let scan = async move { (WorkKind::Trust.into(), engine.scan_at_start(is_suspect).await) };
        busy.begin(WorkKind::Trust, running.spawn(scan));
        Ok(false)
    }

    async fn wants_to_buy(&self) -> Result<bool, StoreError> {
        let counts = self.parts().store.counts_of(&|group| self.owns(group)).await?;
        Ok(counts.of(StageKind::Probed) + counts.of(StageKind::Uploaded) > 0)
    }

    /// Returns how long until the scan may start. A create that an earlier process sent in its last moment may not be
    /// listed yet: a queue that knows its intent searches for it by itself, a suspect queue waits for the lag.
    fn until_scan(&self, is_suspect: bool) -> Duration {
        let now = self.parts().clock.uptime();
        let predecessor = if is_suspect { self.started.after(self.parts().terms.lag) } else { now };
        self.list_view().scan_from.unwrap_or(predecessor).since(now)
    }

    /// Says why and for how long purchases wait for the list, if nothing else holds them up.
    pub async fn list_awaited(&self) -> Result<Option<String>, StoreError> {
        let is_suspect = self.parts().store.is_suspect(self.service()).await?;
        let is_scanned = self.list_view().is_scanned;
        if self.trouble().is_some() || (!is_suspect && (is_scanned || !self.wants_to_buy().await?)) {
            return Ok(None);
        }
        let left = self.until_scan(is_suspect);
        let service = self.service();
        let view = self.list_view();
        let state = match (&view.progress, &view.cut) {
            (Some(progress), _) => {
                format!("scribed is reading the list: {}", scanned_so_far(*progress))
            }
            // To the second, since a shorter wait is over when this is read.
            (None, Some(cut)) => format!("{}; scribed reads the list again in {}", cut.words, seconds(left)),
            (None, None) if !left.is_zero() => format!("scribed starts to read it in {}", seconds(left)),
            (None, None) => return Ok(None),
        };
        let why = if is_suspect { NEW } else { "as after each start" };
        Ok(Some(format!("before it submits anything, scribed reads the list of service {service} ({why}): {state}")))
    }

    /// Says what people should know about the service, although it stops nothing.
    pub fn notice(&self) -> Option<String> {
        self.list_view().notice.clone()
    }

    /// Takes a person's word that the queue knows everything that was bought at the service.
    pub async fn trust(&self) -> Result<(), StoreError> {
        self.parts().store.trust(self.service()).await?;
        let mut view = self.list_view();
        view.ask_again();
        view.go_on();
        drop(view);
        self.wake();
        Ok(())
    }

    /// Scans the list, records everything of ours in it, and then trusts the queue.
    async fn scan_at_start(&self, is_suspect: bool) -> Result<(), StoreError> {
        let parts = &*self.parts();
        let newest = parts.store.newest_purchase(self.service()).await?;
        let since = if is_suspect { None } else { since(&newest, parts) };
        let scanned = match self.scan_list(parts, since, false).await {
            // With its filter, a list that is not sorted newest first may be short enough.
            Err(ScanFault::TooLong) => self.scan_list(parts, since, true).await,
            scanned => scanned,
        };
        if !self.is_current(&parts.client) {
            // The scan was made with another key or address. The new one's list is scanned next.
            self.wake();
            return Ok(());
        }
        match scanned {
            Ok(scan) => self.learn(parts, scan, newest, is_suspect).await,
            Err(cut) => self.not_scanned(parts, cut, is_suspect).await,
        }
    }

    async fn learn(
        &self,
        parts: &EngineParts,
        scan: ListScan,
        newest: NewestPurchase,
        is_suspect: bool,
    ) -> Result<(), StoreError> {
        let store = &parts.store;
        let has_bought = newest.accepted.is_some();
        let (witness, has_shown) = self.newest_known(parts, newest, &scan).await;
        let has_lost = is_suspect && store.may_have_lost(self.service()).await?;
        let (mut found, doubles) = by_token(scan.ours);
        self.doubles.fetch_add(doubles, Ordering::Relaxed);
        self.leave_out_known(parts, &mut found, is_suspect).await?;
        let mut unknown = 0_usize;
        for (purchase_key, bought) in &mut by_purchase_key(&found, parts.client.identity()) {
            // Another installation may have bought it under the same account. Then it does not count against the
            // budgets here.
            bought.sighted.iter_mut().for_each(|sighted| sighted.is_uncounted = !has_lost);
            unknown += usize::from(store.purchase(purchase_key).await?.is_none());
            crash_points::point(Point::Sighting);
            store.record_found(purchase_key, bought).await?;
            crash_points::point(Point::Sighted);
        }
        if !self.is_current(&parts.client) {
            self.wake(); // the new client has another list
            return Ok(());
        }
        if is_suspect && scan.lacks_metadata && !parts.client.identity().is_own {
            self.observe(Observation::Listed);
            return self.ask_what_is_ours(parts, scan.records).await;
        }
        if is_suspect {
            crash_points::point(Point::Trusting);
            store.trust(self.service()).await?;
            crash_points::point(Point::Trusted);
            tracing::info!(
                found = found.len(),
                records = scan.records,
                "scribed has read the service's list; the queue is complete, and purchases continue"
            );
        }
        // A new queue knows nothing, so unknown transcriptions are no surprise.
        if unknown > 0 && (has_bought || !is_suspect) {
            tracing::warn!(service = %self.service(), found = unknown, "the service has transcriptions of this installation that the queue does not know: the queue may be an older copy, or another installation may use the account; scribed does not buy them again");
        }
        if !has_bought && scan.lacks_metadata {
            self.doubt_metadata(scan.records);
        }
        let was_awaited = self.list_view().cuts > 0 || self.list_view().question.is_some();
        if was_awaited {
            // Warn, like the message that the list could not be read.
            tracing::warn!(service = %self.service(), "scribed has read the service's list; purchases continue");
        }
        self.list_view().scanned(witness, has_shown);
        self.observe(Observation::Listed);
        Ok(())
    }

    /// Removes the transcriptions that a job has paid for, since they are known. If they no longer count as bought,
    /// they ended in an error, or a person wanted another purchase. A suspect queue may have lost what it recorded of
    /// those that did not fail, so these stay.
    async fn leave_out_known(
        &self,
        parts: &EngineParts,
        found: &mut BTreeMap<Token, ListItem>,
        is_suspect: bool,
    ) -> Result<(), StoreError> {
        let mut known = BTreeSet::new();
        for (token, item) in &*found {
            let may_be_lost = is_suspect && item.status != Status::Error;
            if !may_be_lost && parts.store.has_charge(&item.id).await? {
                known.insert(token.clone());
            }
        }
        found.retain(|token, _| !known.contains(token));
        Ok(())
    }

    /// Returns the newest purchase that the queue knows to be accepted, if it can be a witness, and whether the scan
    /// shows it.
    async fn newest_known(
        &self,
        parts: &EngineParts,
        newest: NewestPurchase,
        scan: &ListScan,
    ) -> (Option<Witness>, bool) {
        let Some(witness) = Witness::of(newest) else { return (None, false) };
        if witness.is_in(scan) {
            return (Some(witness), true);
        }
        match self.is_there(parts, &witness).await {
            // It was deleted, or it is at another address or under another key.
            Ok(false) => (None, false),
            Ok(true) => {
                self.say_hidden(parts, &witness).await;
                (Some(witness), false)
            }
            Err(_) => (Some(witness), false),
        }
    }

    /// Warns that the list does not show a transcription that the service has.
    async fn say_hidden(&self, parts: &EngineParts, witness: &Witness) {
        let (service, id) = (self.service(), &witness.id);
        let what = match self.shows_token(parts, witness).await {
            Some(false) => format!("service {service} does not return `custom_metadata` (transcription {id})"),
            _ => format!("the list of service {service} does not show the accepted transcription {id}"),
        };
        self.warn_unfindable(&format!("{what}:"));
    }

    /// Has a person decide: the queue may not know what was bought, and the list does not show what of it is ours.
    async fn ask_what_is_ours(&self, parts: &EngineParts, records: u64) -> Result<(), StoreError> {
        let service = self.service();
        if !parts.store.is_suspect(service).await? {
            return Ok(()); // a person has decided meanwhile
        }
        // The commands come first: monitoring cuts long texts off.
        let words = format!(
            "scribed submits nothing until you decide: `scribed reconcile --service {service} --adopt-by \
             duration,name,date` takes transcriptions of the list for recordings, `scribed reconcile --service \
             {service} --trust` buys without them. Reason: {NEW}, and the list of service {service} has {}, none with \
             `custom_metadata`, by which scribed recognises what it bought",
            count(records, "transcription")
        );
        tracing::error!(%service, reason = %words, "scribed submits nothing to the service until a person decides");
        self.list_view().question = Some(ListQuestion::Unmarked(words));
        Ok(())
    }

    /// Warns that no record in the list has `custom_metadata`, at a service where nothing was bought yet.
    fn doubt_metadata(&self, records: u64) {
        let service = self.service();
        self.warn_unfindable(&format!(
            "none of the {records} transcriptions in the list of service {service} has `custom_metadata`. If the \
             service does not return it,"
        ));
    }

    fn warn_unfindable(&self, why: &str) {
        let words = format!(
            "{why} scribed cannot find a create there again after its answer is lost. It sends one create at a \
             time, and asks you when an answer is lost"
        );
        tracing::warn!(service = %self.service(), "{words}");
        self.list_view().notice = Some(words);
    }

    /// Whether the record of an accepted create has our token; `None` if it cannot be read now.
    async fn shows_token(&self, parts: &EngineParts, witness: &Witness) -> Option<bool> {
        let record = parts.client.whole(ListKind::PreRecorded, &witness.id).await.ok()?;
        Some(record.has_token)
    }

    async fn not_scanned(&self, parts: &EngineParts, cut: ScanFault, is_suspect: bool) -> Result<(), StoreError> {
        if is_suspect && !parts.store.is_suspect(self.service()).await? {
            return Ok(()); // a person has said meanwhile that no scan is needed
        }
        self.observe_scan_fault(&parts.client, &cut);
        let service = self.service();
        let passes = matches!(cut, ScanFault::CutShort(_) | ScanFault::Shifting);
        if !is_suspect && !passes {
            let words = format!(
                "scribed cannot search the list of service {service} for purchases that this queue does not know \
                 ({}): if this state is an older copy, it buys them again",
                cut.words()
            );
            tracing::warn!(%service, "{words}");
            let mut view = self.list_view();
            view.notice = Some(words);
            view.go_on();
            return Ok(());
        }
        let what = cut.words();
        let fault = unproven(cut, self.parts().clock.now());
        let mut view = self.list_view();
        if fault.blame() == Blame::Person {
            let words = format!(
                "{NEW}, and scribed cannot find out what was bought at service {service} before: {what}. `scribed \
                 reload` reads the list again; `scribed reconcile --service {service} --trust` confirms that the \
                 queue knows everything that was bought there"
            );
            tracing::error!(%service, reason = %words, "scribed submits nothing to the service until a person decides");
            view.question = Some(ListQuestion::Unreadable(words));
        } else {
            let wait = self.gate.longest_wait(view.cuts);
            tracing::warn!(%service, reason = %fault.words, "cannot read the service's list; scribed submits nothing until it has read it, and tries again");
            view.scan_from = Some(self.parts().clock.uptime().after(wait));
            view.cut = Some(fault);
            view.cuts += 1;
        }
        Ok(())
    }

    /// Looks for the newest accepted create in the list until the list has shown one.
    fn look_for_accepted(
        self: &Arc<Self>,
        may_submit: bool,
        running: &mut JoinSet<Walked>,
        busy: &mut Busy,
        wake: &mut Option<Duration>,
    ) {
        let now = self.parts().clock.uptime();
        let looked_for = self.list_view().to_look_for(now);
        match looked_for {
            Ok(witness) if may_submit && busy.of(WorkKind::Trust) == 0 => {
                let engine = Arc::clone(self);
                let look = async move {
                    engine.look_for(&witness).await;
                    (WorkKind::Trust.into(), Ok(()))
                };
                busy.begin(WorkKind::Trust, running.spawn(look));
            }
            Ok(_) | Err(None) => {}
            Err(Some(from)) => *wake = earlier(*wake, Some(from.since(now))),
        }
    }

    async fn look_for(&self, witness: &Witness) {
        let parts = &*self.parts();
        let scanned = self.scan_list(parts, witness.date, false).await;
        if !self.is_current(&parts.client) {
            return;
        }
        if let Err(cut) = &scanned {
            self.observe_scan_fault(&parts.client, cut);
        }
        if scanned.as_ref().is_ok_and(|scan| witness.is_in(scan)) {
            self.list_view().shown();
            return;
        }
        let look = self.list_view().not_shown(parts.clock.uptime(), parts.terms.lag);
        match look {
            // The list may be late, but the record itself is not.
            ListLook::First => match self.shows_token(parts, witness).await {
                Some(true) => self.list_view().notice = None,
                Some(false) => self.say_hidden(parts, witness).await,
                None => {}
            },
            ListLook::Late if scanned.is_ok() && self.is_there(parts, witness).await == Ok(true) => {
                self.say_hidden(parts, witness).await;
            }
            ListLook::Early | ListLook::Late => {}
        }
    }
}

/// Returns the time back to which the list is scanned: the newest intent, by the service's clock where that is known.
/// Our own clock may have been ahead then.
fn since(newest: &NewestPurchase, parts: &EngineParts) -> Option<Timestamp> {
    let (at, date) = newest.intent?;
    let now = parts.client.last_date().unwrap_or(parts.clock.now());
    let intent = date.unwrap_or(at).min(now);
    // The scan must also reach the newest accepted purchase.
    let accepted = newest.accepted.as_ref().map_or(intent, |(at, date, _)| date.unwrap_or(*at));
    Some(intent.min(accepted))
}

fn scanned_so_far(ScanProgress { records, back_to }: ScanProgress) -> String {
    let back = back_to.map(|date| format!(", back to {}", Zone::UTC.format_minute(date))).unwrap_or_default();
    format!("{} read{back}", count(records, "record"))
}

/// Formats a wait in whole seconds, at least one.
fn seconds(left: Duration) -> String {
    time_span(Duration::from_secs(left.as_secs() + 1))
}
