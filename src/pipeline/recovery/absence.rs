//! Decides what a complete scan of a service's list proves about a create that it does not show. Pure.

use crate::domain::names::{Timestamp, TranscriptionId};
use crate::domain::stage::Intent;
use crate::pipeline::recovery::list_scan::{ListScan, MARGIN};
use crate::store::contract::NewestPurchase;
use std::time::Duration;

/// A service may date a record this much earlier than its own clock said.
const SKEW: Duration = Duration::from_secs(60);

/// A transcription of ours that the service is known to have accepted, long enough ago that its list should show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    pub id: TranscriptionId,
    /// The service's own clock, as last seen before the create was accepted.
    pub date: Option<Timestamp>,
}

impl Witness {
    /// Returns the purchase that a queue knows to be accepted last.
    pub fn of(newest: NewestPurchase) -> Option<Self> {
        newest.accepted.map(|(at, date, id)| Self { id, date: Some(date.unwrap_or(at)) })
    }

    /// Whether this scan shows the transcription, with a token.
    pub fn is_in(&self, scan: &ListScan) -> bool {
        scan.ours.iter().any(|item| item.id == self.id)
    }
}

/// Whether a scan showed a transcription that is known to be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WitnessSight {
    /// The scan showed it. So it shows everything that was accepted in its scope.
    Shown,
    /// The scan did not show it. So it may hide other accepted transcriptions too.
    Hidden,
    /// No transcription is known to be accepted yet: this is the first purchase.
    NoWitness,
}

/// Returns `Ok` if it is proven that the service did not accept a create that the scan does not show.
///
/// # Errors
/// Why the scan does not prove that, in words.
pub fn proven(intent: &Intent, scan: &ListScan, sight: WitnessSight) -> Result<(), &'static str> {
    let reaches = |latest: crate::pipeline::recovery::list_scan::LatestCreation, margin| match intent.service_date {
        Some(date) => latest.reaches(date.saturating_sub(margin)),
        None => latest.reaches(Timestamp(i64::MIN)),
    };
    if reaches(scan.unreadable, MARGIN) {
        return Err("the service's list has an unreadable record of that time, which may be the one of this create");
    }
    match sight {
        WitnessSight::Shown => Ok(()),
        WitnessSight::Hidden => Err("the service's list does not show a transcription that the service accepted \
                                     before"),
        WitnessSight::NoWitness if reaches(scan.bare, SKEW) => {
            Err("records of that time in the service's list have no `custom_metadata`, so any of them may be the \
                 one of this create")
        }
        WitnessSight::NoWitness => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::contract::{ListItem, ListedFile};
    use crate::domain::job::JobTag;
    use crate::domain::names::Hash;
    use crate::domain::token::Token;
    use crate::pipeline::recovery::list_scan::LatestCreation;
    use crate::wire::record::Status;

    const DATE: Timestamp = Timestamp(1_000_000_000);

    fn token() -> Token {
        Token { content: Hash::of(b"c"), params: Hash::of(b"p"), job: JobTag([1; 16]), purchase_number: 0, part: None }
    }

    fn intent(service_date: Option<Timestamp>) -> Intent {
        Intent { token: token(), origin: String::new(), key: String::new(), service_date, sent_at: DATE }
    }

    fn reaching(unreadable: LatestCreation, bare: LatestCreation) -> ListScan {
        ListScan { unreadable, bare, ..ListScan::default() }
    }

    #[test]
    fn a_scan_that_shows_what_was_accepted_proves_absence() {
        assert_eq!(proven(&intent(Some(DATE)), &ListScan::default(), WitnessSight::Shown), Ok(()));
        assert_eq!(
            proven(&intent(Some(DATE)), &ListScan::default(), WitnessSight::NoWitness),
            Ok(()),
            "the first purchase"
        );
        assert!(proven(&intent(Some(DATE)), &ListScan::default(), WitnessSight::Hidden).is_err());
    }

    #[test]
    fn an_unreadable_record_prevents_the_proof_for_its_time_and_for_no_other() {
        let before = LatestCreation::At(DATE.saturating_sub(MARGIN + Duration::from_secs(1)));
        let then = LatestCreation::At(DATE.saturating_sub(Duration::from_secs(60)));
        for (latest, is_proof) in [(before, true), (then, false), (LatestCreation::Unknown, false)] {
            let scan = reaching(latest, LatestCreation::Never);
            assert_eq!(proven(&intent(Some(DATE)), &scan, WitnessSight::Shown).is_ok(), is_proof, "{latest:?}");
        }
        let scan = reaching(before, LatestCreation::Never);
        assert!(proven(&intent(None), &scan, WitnessSight::Shown).is_err(), "nobody knows when the create was sent");
    }

    #[test]
    fn records_without_metadata_count_only_where_no_token_was_ever_seen() {
        let scan = reaching(LatestCreation::Never, LatestCreation::At(DATE));
        assert_eq!(proven(&intent(Some(DATE)), &scan, WitnessSight::Shown), Ok(()), "others use the account, too");
        assert!(proven(&intent(Some(DATE)), &scan, WitnessSight::NoWitness).is_err());
        let earlier = reaching(LatestCreation::Never, LatestCreation::At(DATE.saturating_sub(Duration::from_secs(61))));
        assert_eq!(proven(&intent(Some(DATE)), &earlier, WitnessSight::NoWitness), Ok(()));
    }

    #[test]
    fn a_witness_is_known_by_its_id() {
        let listed = |id: &str| ListItem {
            id: TranscriptionId::new(id),
            created: None,
            token: Some(token()),
            billed: None,
            status: Status::Done,
            has_metadata: true,
            file: ListedFile::default(),
        };
        let scan = ListScan { ours: vec![listed("a")], ..ListScan::default() };
        let witness = |id: &str| Witness { id: TranscriptionId::new(id), date: None };
        assert!(witness("a").is_in(&scan) && !witness("b").is_in(&scan));
    }
}
