//! Decides what a list scan means for one lost transcription. `engine/shared_list_scan.rs` decides when the list is
//! searched.
//!
//! A transcription that a read reports as missing was paid for. So its job does not fail before the list was searched
//! for its token, and it is never bought again without a person's consent.

use crate::client::contract::ListItem;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Timestamp, TranscriptionId};
use crate::domain::stage::JobEvent;
use crate::domain::token::{PurchaseKey, Token};
use crate::pipeline::recovery::list_scan::ScanFault;
use std::collections::BTreeMap;

/// Why a lost transcription was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LostTranscription {
    /// [`FaultKind::Gone`] if the list does not have it or can never tell; a fault of the service if the list has
    /// what the read denies.
    Fault(Fault),
    /// The list cannot be read now, and is read again later. This says nothing about the job.
    Unread(Fault),
}

/// Returns the event of a job whose transcription the list shows under another id, after a read answered 404.
/// `scanned` is what the scan found by token; `gone` is the fault of the read.
///
/// # Errors
/// [`LostTranscription`].
pub fn judge_lost(
    job: &Job,
    bought: (&PurchaseKey, &TranscriptionId),
    scanned: Result<&BTreeMap<Token, ListItem>, &ScanFault>,
    gone: Fault,
    now: Timestamp,
) -> Result<JobEvent, LostTranscription> {
    let (purchase_key, id) = bought;
    let and = |kind: FaultKind, what: &str| {
        LostTranscription::Fault(Fault { kind, words: format!("{}; {what}", gone.words), ..gone.clone() })
    };
    match scanned {
        Ok(found) => match job.tags().find_map(|tag| found.get(&Token::new(purchase_key, tag, job.purchase_number))) {
            Some(item) if item.id != *id => {
                let (purchase_key, transcription, origin) =
                    (purchase_key.clone(), item.id.clone(), job.bought_at.clone());
                Ok(JobEvent::Adopted { purchase_key, transcription, purchase_number: job.purchase_number, origin })
            }
            Some(_) => Err(and(FaultKind::Broken, "the service's list has it, so scribed polls it again")),
            None => Err(and(
                FaultKind::Gone,
                "the service's list does not have it either. scribed does not buy it again by itself",
            )),
        },
        Err(ScanFault::CutShort(fault)) => Err(later(&gone, &fault.words, fault.kind.clone(), now)),
        Err(ScanFault::Shifting) => {
            Err(later(&gone, "the list changes faster than scribed can read it", FaultKind::Broken, now))
        }
        Err(other) => {
            Err(and(FaultKind::Gone, &format!("scribed cannot search the service's list for it: {}", other.words())))
        }
    }
}

fn later(gone: &Fault, why: &str, kind: FaultKind, now: Timestamp) -> LostTranscription {
    let words =
        format!("{}; scribed searches the service's list for it, but cannot read the list now: {why}", gone.words);
    LostTranscription::Unread(Fault { request_id: gone.request_id.clone(), ..Fault::new(kind, words, now) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::contract::ListedFile;
    use crate::domain::job::{JobKey, Stamp};
    use crate::domain::names::{Hash, JobId, ServiceName, SourceName};
    use crate::domain::path::RelPath;
    use crate::wire::record::Status;

    const NOW: Timestamp = Timestamp(5);

    fn job() -> Job {
        let key = JobKey { source: SourceName::new("inbox"), path: RelPath::new(b"talk.wav") };
        let seen = Stamp { size: 1, mtime_ns: 0, ctime_ns: 0, inode: 1 };
        Job { purchase_number: 2, ..Job::found(JobId(1), key, seen, NOW, NOW) }
    }

    fn purchase_key() -> PurchaseKey {
        PurchaseKey {
            service: ServiceName::new("default"),
            content: Hash::of(b"c"),
            params: Hash::of(b"p"),
            part: None,
        }
    }

    fn listed(token: Token, id: &str) -> BTreeMap<Token, ListItem> {
        let item = ListItem {
            id: TranscriptionId::new(id),
            created: None,
            token: Some(token.clone()),
            billed: None,
            status: Status::Done,
            has_metadata: true,
            file: ListedFile::default(),
        };
        [(token, item)].into()
    }

    fn seek(walked: Result<&BTreeMap<Token, ListItem>, &ScanFault>) -> Result<JobEvent, LostTranscription> {
        let gone = Fault::new(FaultKind::Gone, "404", NOW);
        judge_lost(&job(), (&purchase_key(), &TranscriptionId::new("lost")), walked, gone, NOW)
    }

    fn is_fault(judged: Result<JobEvent, LostTranscription>, kind: &FaultKind) -> bool {
        matches!(judged, Err(LostTranscription::Fault(fault)) if fault.kind == *kind)
    }

    fn is_unread(judged: Result<JobEvent, LostTranscription>, kind: &FaultKind) -> bool {
        matches!(judged, Err(LostTranscription::Unread(fault)) if fault.kind == *kind)
    }

    #[test]
    fn only_the_token_of_this_very_round_is_this_transcription() {
        let own = Token::new(&purchase_key(), job().key.tag(), 2);
        let adopted = seek(Ok(&listed(own.clone(), "other"))).unwrap();
        let transcription = TranscriptionId::new("other");
        let expected =
            JobEvent::Adopted { purchase_key: purchase_key(), transcription, purchase_number: 2, origin: None };
        assert_eq!(adopted, expected);
        let dead_purchase = Token { purchase_number: 1, ..own.clone() };
        assert!(is_fault(seek(Ok(&listed(dead_purchase, "dead"))), &FaultKind::Gone));
        assert!(is_fault(seek(Ok(&listed(own, "lost"))), &FaultKind::Broken), "the list contradicts the read");
    }

    #[test]
    fn a_list_that_cannot_be_read_now_fails_nothing() {
        let out = Fault::new(FaultKind::Unreachable, "refused", NOW);
        assert!(is_unread(seek(Err(&ScanFault::CutShort(out.clone()))), &FaultKind::Unreachable));
        assert!(is_unread(seek(Err(&ScanFault::Shifting)), &FaultKind::Broken));
        assert!(is_fault(seek(Err(&ScanFault::NoList(out))), &FaultKind::Gone));
        assert!(is_fault(seek(Err(&ScanFault::TooLong)), &FaultKind::Gone));
    }
}
