//! Submitting ▷ Submitted or Uploaded. Decides what a list scan says of one unknown create. `engine/schedule_list_scan.rs`
//! decides when the list is scanned, once for all unknown creates, and commits the results.

use crate::client::contract::{Identity, ListItem};
use crate::domain::charge::Sighted;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::stage::{Intent, Stage};
use crate::domain::token::{PurchaseKey, Token};
use crate::pipeline::recovery::absence;
use crate::pipeline::recovery::absence::WitnessSight;
use crate::pipeline::recovery::list_scan::{ListScan, ScanFault};
use crate::store::contract::KnownPurchase;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a scan says of one unknown create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The service accepted it: this is its transcription.
    Adopt(ListItem),
    /// The service did not accept it, and will not.
    Absent,
    /// The scan does not show it, and does not prove that it was not accepted. The text says why.
    Unproven(&'static str),
    /// Only a person can tell.
    Ask(Fault),
}

/// Returns the time, by the service's clock, back to which the list has to be scanned for these jobs: the oldest
/// service date of their intents; `None` (the whole list) if an intent has none.
pub fn oldest(jobs: &[Job]) -> Option<Timestamp> {
    let dates = jobs.iter().filter_map(|job| intent(job).map(|intent| intent.service_date));
    dates.collect::<Option<Vec<Timestamp>>>()?.into_iter().min()
}

/// Returns the intent of a job whose create is unknown.
pub fn intent(job: &Job) -> Option<&Intent> {
    match &job.stage {
        Stage::Submitting { intent, .. } => Some(intent),
        _ => None,
    }
}

/// Returns our items by token, and how many items repeat a token. Of those with one token the oldest is kept. Both
/// were paid for, so each repetition is logged as an error.
pub fn by_token(items: Vec<ListItem>) -> (BTreeMap<Token, ListItem>, u64) {
    let mut found: BTreeMap<Token, ListItem> = BTreeMap::new();
    let mut doubles = 0;
    for item in items {
        let Some(token) = item.token.clone() else { continue };
        let Some(known) = found.get_mut(&token) else {
            found.insert(token, item);
            continue;
        };
        doubles += 1;
        let age = |listed: &ListItem| (listed.created.unwrap_or(Timestamp(i64::MAX)), listed.id.clone());
        let (keep, other) = if age(&item) < age(known) { (item.clone(), known.clone()) } else { (known.clone(), item) };
        tracing::error!(kept = %keep.id, other = %other.id, %token, "two transcriptions have the same token; scribed keeps the older one");
        *known = keep;
    }
    (found, doubles)
}

/// Returns what was bought for each purchase key: the newest transcription, since another one is bought only when the
/// one before is worth nothing. Its purchase number is the highest of all jobs', so that no job uses a number twice.
pub fn by_purchase_key(found: &BTreeMap<Token, ListItem>, identity: &Identity) -> BTreeMap<PurchaseKey, KnownPurchase> {
    let mut newest: BTreeMap<PurchaseKey, (&Token, &ListItem)> = BTreeMap::new();
    let mut numbers: BTreeMap<PurchaseKey, u32> = BTreeMap::new();
    for (token, item) in found {
        let purchase_key = token.purchase_key(&identity.service);
        let age = |(token, item): &(&Token, &ListItem)| (item.created, token.purchase_number);
        let purchase_number = numbers.entry(purchase_key.clone()).or_default();
        *purchase_number = token.purchase_number.max(*purchase_number);
        let known = newest.entry(purchase_key).or_insert((token, item));
        if age(&(token, item)) > age(known) {
            *known = (token, item);
        }
    }
    let origin = || Some(identity.origin.clone());
    let bought = |item: &ListItem, purchase_number| {
        let sighted = item.created.map(|at| Sighted { at, billed: item.billed, is_uncounted: false });
        KnownPurchase {
            transcription: item.id.clone(),
            purchase_number,
            by: None,
            origin: origin(),
            sighted,
            confirmed: false,
        }
    };
    newest
        .into_iter()
        .zip(numbers.into_values())
        .map(|((purchase_key, (_, item)), purchase_number)| (purchase_key, bought(item, purchase_number)))
        .collect()
}

/// Judges one unknown create after a complete scan. `found` has the scan's items by token.
pub fn judge(
    job: &Job,
    found: &BTreeMap<Token, ListItem>,
    (scan, sight): (&ListScan, WitnessSight),
    identity: &Identity,
    retention: Duration,
    now: Timestamp,
) -> Finding {
    let Some(intent) = intent(job) else {
        return Finding::Ask(Fault::new(FaultKind::Bug, "internal error: the job has no record of its create", now));
    };
    if let Some(item) = found.get(&intent.token) {
        return Finding::Adopt(item.clone());
    }
    let ask = |words: &str| Finding::Ask(ask(words, now));
    if intent.origin != identity.origin {
        return ask(&format!(
            "scribed sent the create to {}, which is not the service that is configured now",
            intent.origin
        ));
    }
    if intent.key != identity.key {
        return ask("scribed sent the create with another key, and each key sees only its own transcriptions");
    }
    if now.duration_since(intent.sent_at) >= retention {
        return ask("the create is older than the service keeps records (`retention`)");
    }
    match absence::proven(intent, scan, sight) {
        Ok(()) => Finding::Absent,
        Err(why) => Finding::Unproven(why),
    }
}

/// Returns the question to a person after several scans that proved nothing.
pub fn unproven_for_good(why: &str, now: Timestamp) -> Fault {
    ask(why, now)
}

/// Returns what a scan that proves nothing means for the jobs that wait for it: a question to a person, or a fault
/// after which the list is scanned again.
pub fn unproven(fault: ScanFault, now: Timestamp) -> Fault {
    match fault {
        ScanFault::CutShort(fault) => fault,
        ScanFault::Shifting => {
            let words = "the service's list changes faster than scribed can read it; scribed reads it again";
            Fault::new(FaultKind::Broken, words, now)
        }
        other => ask(&other.words(), now),
    }
}

fn ask(why: &str, now: Timestamp) -> Fault {
    let words = format!(
        "the service may have accepted the create, and scribed cannot find out: {why}. Check at the service \
         whether it has this recording; scribed buys nothing for it until you decide"
    );
    Fault::new(FaultKind::Asks, words, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::contract::ListedFile;
    use crate::domain::job::JobTag;
    use crate::domain::names::{Hash, ServiceName, TranscriptionId};
    use crate::wire::record::Status;

    fn listed(id: &str, job: u8, purchase_number: u32, created: i64) -> ListItem {
        let token = Token {
            content: Hash::of(b"c"),
            params: Hash::of(b"p"),
            job: JobTag([job; 16]),
            purchase_number,
            part: None,
        };
        ListItem {
            id: TranscriptionId::new(id),
            created: Some(Timestamp(created)),
            token: Some(token),
            billed: None,
            status: Status::Done,
            has_metadata: true,
            file: ListedFile::default(),
        }
    }

    #[test]
    fn the_newest_of_an_order_counts_and_no_round_is_used_twice() {
        // The first job's transcription failed twice, then its duplicate took over.
        let items = vec![listed("dead", 1, 0, 10), listed("dead too", 1, 1, 20), listed("good", 2, 0, 30)];
        let (found, doubles) = by_token(items);
        let (service, origin) = (ServiceName::new("default"), "https://stt.example.org".to_owned());
        let identity = Identity { service, origin: origin.clone(), key: String::new(), is_own: false };
        let bought = by_purchase_key(&found, &identity);
        assert_eq!(doubles, 0);
        let sighted = Some(Sighted { at: Timestamp(30), billed: None, is_uncounted: false });
        let transcription = TranscriptionId::new("good");
        let expected = KnownPurchase {
            transcription,
            purchase_number: 1,
            by: None,
            origin: Some(origin),
            sighted,
            confirmed: false,
        };
        assert_eq!(bought.into_values().collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn of_two_with_one_token_the_oldest_is_kept_and_the_other_counted() {
        let (found, doubles) = by_token(vec![listed("b", 1, 0, 20), listed("a", 1, 0, 10)]);
        assert_eq!(doubles, 1);
        assert_eq!(found.into_values().map(|item| item.id).collect::<Vec<_>>(), [TranscriptionId::new("a")]);
    }
}
