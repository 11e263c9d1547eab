//! What this process knows of a service's list: whether it was scanned since the start, and whether it shows
//! transcriptions that are known to be accepted. Losing this costs a scan, never money.

use crate::backpressure::backoff::Growth;
use crate::clock::Uptime;
use crate::domain::fault::Fault;
use crate::domain::names::{JobId, Timestamp, TranscriptionId};
use crate::pipeline::recovery::absence::Witness;
use crate::pipeline::recovery::list_scan::ScanProgress;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Most accepted creates that are remembered.
const REMEMBERED: usize = 64;

/// Most scans for the first accepted create.
const LOOKS: u32 = 8;

/// A list that does not show a create after this time, or after its lag if that is longer, is reported as late.
const LATE: Duration = Duration::from_secs(5);

/// A create that was accepted.
#[derive(Debug, Clone)]
struct Accepted {
    witness: Witness,
    at: Uptime,
}

/// Result of a scan that did not show an accepted create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListLook {
    /// It was the first scan.
    First,
    /// The list may still be late.
    Early,
    /// The list had more time than it should need, and that was not reported yet.
    Late,
}

/// What a person must decide before anything is bought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListQuestion {
    /// The list of a suspect queue's service cannot be read to its end.
    Unreadable(String),
    /// The list of a suspect queue's service has records, and none shows whose it is.
    Unmarked(String),
}

impl ListQuestion {
    pub(super) fn words(&self) -> &str {
        match self {
            Self::Unreadable(words) | Self::Unmarked(words) => words,
        }
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct ListView {
    /// Whether the scan at the start is done.
    pub(super) is_scanned: bool,
    /// No scan is made before this time, since the last one could not be completed.
    pub(super) scan_from: Option<Uptime>,
    /// How many scans in a row could not be completed.
    pub(super) cuts: u32,
    /// Why the last scan could not be completed.
    pub(super) cut: Option<Fault>,
    /// Why a person must act before anything is bought.
    pub(super) question: Option<ListQuestion>,
    /// What people should know about this service, although it stops nothing.
    pub(super) notice: Option<String>,
    /// How far the running scan has come.
    pub(super) progress: Option<ScanProgress>,
    /// Whether the list showed a transcription that is known to be accepted.
    pub(super) has_shown: bool,
    /// Whether purchases continue without a scan, because the list cannot be scanned.
    went_on: bool,
    /// The newest purchase that the queue knew to be accepted when this process began. `None` until the queue was
    /// asked.
    earlier: Option<Option<Witness>>,
    /// Accepted creates of this process, oldest first. Creates that followed each other too closely are left out.
    accepted: VecDeque<Accepted>,
    /// Scans for the first accepted create: how many were made, and when the next one is due.
    looks: u32,
    look_from: Option<Uptime>,
    /// Number of scans that did not prove what became of a create, by job.
    unproven: HashMap<JobId, u32>,
}

impl ListView {
    /// Notes that the list was scanned. `earlier` is the newest purchase that the queue knew to be accepted.
    pub(super) fn scanned(&mut self, earlier: Option<Witness>, has_shown: bool) {
        self.is_scanned = true;
        self.earlier = Some(earlier);
        self.has_shown |= has_shown;
        (self.cuts, self.cut, self.scan_from) = (0, None, None);
    }

    /// Lets purchases continue although the list was not scanned.
    pub(super) fn go_on(&mut self) {
        (self.is_scanned, self.went_on) = (true, true);
        (self.cuts, self.cut, self.scan_from) = (0, None, None);
    }

    /// Sets the newest purchase that the queue knows to be accepted, unless it is set.
    pub(super) fn knew(&mut self, earlier: Option<Witness>) {
        self.earlier.get_or_insert(earlier);
    }

    /// Whether the queue was asked what it knows to be accepted.
    pub(super) fn has_asked_queue(&self) -> bool {
        self.earlier.is_some()
    }

    /// Notes an accepted create. Creates that follow within an eighth of the lag are left out, since they prove
    /// nothing more.
    pub(super) fn accepted(&mut self, id: TranscriptionId, date: Option<Timestamp>, at: Uptime, lag: Duration) {
        if self.accepted.back().is_some_and(|last| !lag.is_zero() && at.since(last.at) < lag / 8) {
            return;
        }
        self.accepted.push_back(Accepted { witness: Witness { id, date }, at });
        if self.accepted.len() > REMEMBERED {
            self.accepted.pop_front();
        }
        if !self.has_shown && self.look_from.is_none() {
            (self.looks, self.look_from) = (0, Some(at));
        }
    }

    /// Returns the newest accepted transcription that a scan which begins now should show.
    pub(super) fn witness(&self, now: Uptime, lag: Duration) -> Option<Witness> {
        let listed = self.accepted.iter().rev().find(|accepted| accepted.at.after(lag) <= now);
        listed.map(|accepted| &accepted.witness).or(self.earlier.as_ref().and_then(Option::as_ref)).cloned()
    }

    /// Removes a witness that the service no longer has.
    pub(super) fn drop_witness(&mut self, id: &TranscriptionId) {
        self.accepted.retain(|accepted| accepted.witness.id != *id);
        if let Some(earlier) = &mut self.earlier {
            earlier.take_if(|earlier| earlier.id == *id);
        }
    }

    /// Returns the newest accepted create if the list has not shown any yet and a scan for it is due; else the time
    /// at which the next scan is due, if there is one.
    pub(super) fn to_look_for(&self, now: Uptime) -> Result<Witness, Option<Uptime>> {
        let Some(from) = self.look_from.filter(|_| !self.has_shown) else { return Err(None) };
        match self.accepted.back() {
            None => Err(None),
            Some(accepted) if from <= now => Ok(accepted.witness.clone()),
            Some(_) => Err(Some(from)),
        }
    }

    /// Notes that a scan did not show the accepted create.
    pub(super) fn not_shown(&mut self, now: Uptime, lag: Duration) -> ListLook {
        self.looks += 1;
        let wait = Growth::doubling((lag / 4).max(Duration::from_secs(1)), Duration::MAX).wait(self.looks - 1);
        self.look_from = (self.looks < LOOKS).then(|| now.after(wait));
        let first = self.accepted.back().map_or(now, |accepted| accepted.at);
        let is_late = self.notice.is_none() && now.since(first) >= lag.max(LATE);
        match self.looks {
            1 => ListLook::First,
            _ if is_late => ListLook::Late,
            _ => ListLook::Early,
        }
    }

    /// Notes that the list showed a transcription that is known to be accepted.
    pub(super) fn shown(&mut self) {
        (self.has_shown, self.look_from, self.notice) = (true, None, None);
    }

    /// Counts one more scan that proved nothing about this job's create. Returns how many there were before.
    pub(super) fn count_unproven(&mut self, job: JobId) -> u32 {
        let count = self.unproven.entry(job).or_default();
        *count += 1;
        *count - 1
    }

    /// Forgets the count of a job whose outcome is known.
    pub(super) fn forget(&mut self, job: JobId) {
        self.unproven.remove(&job);
    }

    /// Starts over after a person has acted or the configuration has changed: drops the question, and has the list
    /// scanned again if that had been given up.
    pub(super) fn ask_again(&mut self) {
        (self.question, self.scan_from, self.cuts) = (None, None, 0);
        if std::mem::take(&mut self.went_on) {
            (self.is_scanned, self.notice) = (false, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAG: Duration = Duration::from_secs(120);

    fn at(seconds: u64) -> Uptime {
        Uptime(Duration::from_secs(seconds))
    }

    fn id(n: u64) -> TranscriptionId {
        TranscriptionId::new(format!("t{n}"))
    }

    #[test]
    fn a_witness_had_the_lag_to_be_listed() {
        let mut view = ListView::default();
        view.scanned(Some(Witness { id: id(0), date: None }), true);
        for n in 1..=1000 {
            view.accepted(id(n), None, at(n), LAG);
        }
        assert_eq!(view.witness(at(60), LAG).unwrap().id, id(0), "only the queue's own is old enough");
        assert!(view.accepted.len() <= REMEMBERED);
        let witness = view.witness(at(1000), LAG).unwrap().id;
        let n: u64 = witness.as_str()[1..].parse().unwrap();
        assert!((860..=880).contains(&n), "accepted at least the lag ago, and not much longer: {witness}");
        view.drop_witness(&witness);
        assert_ne!(view.witness(at(1000), LAG).unwrap().id, witness);
    }

    #[test]
    fn the_first_accepted_create_is_looked_for_until_it_is_shown() {
        let mut view = ListView::default();
        assert_eq!(view.to_look_for(at(0)), Err(None));
        view.accepted(id(1), None, at(10), LAG);
        assert_eq!(view.to_look_for(at(10)).unwrap().id, id(1));
        assert_eq!(view.not_shown(at(10), LAG), ListLook::First);
        assert_eq!(view.to_look_for(at(11)), Err(Some(at(40))));
        assert_eq!(view.not_shown(at(40), LAG), ListLook::Early, "it may be late");
        assert_eq!(view.not_shown(at(140), LAG), ListLook::Late, "it is later than it may be");
        view.shown();
        assert_eq!(view.to_look_for(at(10_000)), Err(None));
    }

    #[test]
    fn looks_end() {
        let mut view = ListView::default();
        view.accepted(id(1), None, at(0), LAG);
        let mut looks = 0;
        let mut now = at(0);
        while let Ok(_) | Err(Some(_)) = view.to_look_for(now) {
            now = view.look_from.unwrap();
            view.not_shown(now, LAG);
            looks += 1;
        }
        assert_eq!(looks, LOOKS);
    }
}
