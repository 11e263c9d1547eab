//! Who works in a folder: one installation at a time, which says so in the folder's marker and gives a sign of life
//! there now and again. Pure: what is decided of an owner that was found.
//!
//! The clocks of two machines are not compared. A lease is over when whoever looks at it has seen no change of it
//! for its term, by a clock of its own that nobody sets.

use crate::domain::zone::Zone;
use crate::wire::timestamps;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Who works in a folder, as its marker says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Owner {
    /// The identity of its state directory.
    pub state: String,
    /// Tells that very directory from its copies.
    pub directory: String,
    pub host: String,
    /// Where its state directory lies there.
    pub path: String,
    pub pid: u32,
    /// Tells that process from all others of that machine.
    pub process: String,
    /// Random: tells this run of it from all others.
    pub run: String,
    /// Since when; for people.
    pub since: String,
    /// Its last sign of life, by its own clock; for people.
    pub alive: String,
    /// How many signs of life it gave.
    pub renewals: u64,
    /// Who sees no sign of life for so long may take it to be dead.
    pub term_seconds: u64,
    /// It has ended in good order.
    pub released: bool,
    /// This run of it took the folder over: another installation may have bought there before.
    pub took_over: bool,
}

/// Why a folder must not be worked in. In words, the first after "the folder /srv/media".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnershipRefusal {
    pub why: String,
    /// What is done about it, and by whom.
    pub then: String,
    /// It is over by itself after so long, whatever others do.
    pub waits: Option<Duration>,
}

impl Owner {
    /// Who it is, for people.
    pub fn described(&self) -> String {
        let Self { path, host, pid, .. } = self;
        let moment = |written: &str| timestamps::parse(written).map(|at| Zone::UTC.format_second(at));
        let [since, alive] = [&self.since, &self.alive].map(|at| moment(at).unwrap_or_else(|| at.clone()));
        format!(
            "the state directory {path} on the machine {host} (process {pid}, since {since}, last sign of life {alive})"
        )
    }
}

/// What a marker says of who works in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkerOwner {
    /// There is no marker.
    Nothing,
    /// A person has emptied it.
    Blank,
    /// Nobody has said so, or it cannot be read any more.
    Nobody {
        /// It cannot be read any more.
        damaged: bool,
    },
    Owned(Box<Owner>),
}

/// What is known of an owner's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs on this machine.
    Lives,
    /// It ran on this machine.
    Dead,
    /// It runs elsewhere, if it does.
    Unknown,
}

/// What an installation remembers of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FolderPast {
    /// Its last runs that worked there, the last one first; none where another installation was met since.
    pub runs: Vec<String>,
    /// The folder had a marker before this installation came.
    pub met: bool,
}

#[derive(Debug)]
pub struct ClaimingInstallation<'a> {
    /// As it would be named in the marker.
    pub me: &'a Owner,
    pub past: &'a FolderPast,
    /// Whether this run has worked in the folder.
    pub held: bool,
}

/// How long something was seen as it is, and how long it is watched before anything follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// So long it has not changed, by the clock of who asks.
    pub unchanged: Duration,
    /// So long another installation has to take over a marker that was emptied under the one that works there.
    pub yields: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnershipDecision {
    /// The folder is this run's.
    Held,
    /// It can be had.
    Free {
        /// Another one may have bought there what this one knows nothing of.
        doubtful: bool,
    },
    /// Somebody else works there.
    Taken {
        /// When this is taken to be over unless there is a sign of life; `None`: it is known to live.
        left: Option<Duration>,
        /// It is a copy of the same state directory.
        copy: bool,
    },
    /// A person has emptied the marker under this run: another installation may want it.
    Yielded { left: Duration },
}

/// Whose a folder is.
pub fn decide_ownership(
    found: &MarkerOwner,
    asker: &ClaimingInstallation<'_>,
    life: Life,
    watched: Watched,
) -> OwnershipDecision {
    let ClaimingInstallation { me, past, held } = asker;
    let owner = match found {
        MarkerOwner::Nothing => return OwnershipDecision::Held,
        MarkerOwner::Blank | MarkerOwner::Nobody { .. } if *held => {
            let left = watched.yields.saturating_sub(watched.unchanged);
            return if left.is_zero() {
                OwnershipDecision::Free { doubtful: false }
            } else {
                OwnershipDecision::Yielded { left }
            };
        }
        MarkerOwner::Nobody { damaged: true } => return OwnershipDecision::Free { doubtful: true },
        MarkerOwner::Blank | MarkerOwner::Nobody { damaged: false } => {
            return OwnershipDecision::Free { doubtful: past.met && past.runs.is_empty() };
        }
        MarkerOwner::Owned(owner) => owner,
    };
    if owner.run == me.run {
        return OwnershipDecision::Held;
    }
    let is_same_state = owner.state == me.state && !me.state.is_empty();
    // The queue's lock keeps all others out of a state directory: whoever worked with it has ended. By its place alone
    // it is the same one only where its process is not known to live: it may be moved while a copy takes its place.
    let is_same_place = (&owner.host, &owner.path) == (&me.host, &me.path) && life != Life::Lives;
    let is_same_directory = is_same_state && (owner.directory == me.directory || is_same_place);
    // A copy of the state directory that was put back knows nothing of what came after it.
    let doubtful = !(is_same_state && past.runs.contains(&owner.run));
    if is_same_directory || owner.released || life == Life::Dead {
        return OwnershipDecision::Free { doubtful };
    }
    let term = Duration::from_secs(owner.term_seconds).max(SHORTEST_TERM.min(watched.yields));
    let left = term.saturating_sub(watched.unchanged);
    match life {
        Life::Unknown if left.is_zero() => OwnershipDecision::Free { doubtful },
        Life::Unknown => OwnershipDecision::Taken { left: Some(left), copy: is_same_state },
        Life::Lives | Life::Dead => OwnershipDecision::Taken { left: None, copy: is_same_state },
    }
}

/// A marker that says less is not believed.
const SHORTEST_TERM: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(state: &str, run: &str, host: &str) -> Owner {
        Owner {
            state: state.to_owned(),
            directory: format!("directory of {state} on {host}"),
            host: host.to_owned(),
            path: "/state".to_owned(),
            run: run.to_owned(),
            term_seconds: 2700,
            ..Owner::default()
        }
    }

    fn past(runs: &[&str], met: bool) -> FolderPast {
        FolderPast { runs: runs.iter().map(ToString::to_string).collect(), met }
    }

    fn asked(found: &MarkerOwner, past: &FolderPast, life: Life, unchanged: u64) -> OwnershipDecision {
        let me = owner("mine", "now", "here");
        let watched = Watched { unchanged: Duration::from_secs(unchanged), yields: Duration::from_secs(60) };
        decide_ownership(found, &ClaimingInstallation { me: &me, past, held: false }, life, watched)
    }

    fn free(doubtful: bool) -> OwnershipDecision {
        OwnershipDecision::Free { doubtful }
    }

    #[test]
    fn another_one_is_let_work_while_it_may_live() {
        let other = MarkerOwner::Owned(Box::new(owner("other", "its", "there")));
        let (past, minutes) = (past(&["now"], false), |n: u64| Some(Duration::from_secs(n * 60)));
        let taken = |left| OwnershipDecision::Taken { left, copy: false };
        assert_eq!(asked(&other, &past, Life::Lives, u64::MAX), taken(None), "however long it says nothing");
        assert_eq!(asked(&other, &past, Life::Unknown, 0), taken(minutes(45)));
        assert_eq!(asked(&other, &past, Life::Unknown, 40 * 60), taken(minutes(5)));
        assert_eq!(asked(&other, &past, Life::Unknown, 45 * 60), free(true));
        assert_eq!(asked(&other, &past, Life::Dead, 0), free(true));
        let MarkerOwner::Owned(other) = other else { unreachable!() };
        let released = MarkerOwner::Owned(Box::new(Owner { released: true, ..*other.clone() }));
        assert_eq!(asked(&released, &past, Life::Unknown, 0), free(true));
        let hasty = MarkerOwner::Owned(Box::new(Owner { term_seconds: 0, ..*other }));
        assert_eq!(asked(&hasty, &past, Life::Unknown, 0), taken(minutes(1)), "no term is that short");
    }

    #[test]
    fn ones_own_state_goes_on_wherever_it_lies() {
        let killed = |host: &str| MarkerOwner::Owned(Box::new(owner("mine", "before", host)));
        let past = past(&["before"], false);
        assert_eq!(asked(&killed("here"), &past, Life::Unknown, 0), free(false), "the queue's lock says it has ended");
        let MarkerOwner::Owned(there) = killed("there") else { unreachable!() };
        let moved = MarkerOwner::Owned(Box::new(Owner { released: true, ..*there.clone() }));
        assert_eq!(asked(&moved, &past, Life::Unknown, 0), free(false));
        let renamed = Owner { path: "/old".to_owned(), ..owner("mine", "before", "here") };
        assert_eq!(
            asked(&MarkerOwner::Owned(Box::new(renamed)), &past, Life::Unknown, 0),
            free(false),
            "the same directory"
        );
        let copied = MarkerOwner::Owned(there);
        let taken = OwnershipDecision::Taken { left: Some(Duration::from_secs(2700)), copy: true };
        assert_eq!(asked(&copied, &past, Life::Unknown, 0), taken, "a copy of it may run there");
        assert_eq!(asked(&copied, &past, Life::Unknown, 2700), free(false));
    }

    #[test]
    fn a_copy_in_the_place_of_a_state_directory_that_is_still_worked_with_is_a_copy() {
        let renamed = Owner { directory: "that was renamed".to_owned(), ..owner("mine", "before", "here") };
        let (found, past) = (MarkerOwner::Owned(Box::new(renamed)), past(&["before"], false));
        assert_eq!(asked(&found, &past, Life::Lives, 9_999), OwnershipDecision::Taken { left: None, copy: true });
        assert_eq!(asked(&found, &past, Life::Dead, 0), free(false));
    }

    #[test]
    fn an_old_copy_of_the_state_that_was_put_back_is_doubtful() {
        let later = MarkerOwner::Owned(Box::new(owner("mine", "a later run", "here")));
        assert_eq!(asked(&later, &past(&["before"], false), Life::Unknown, 0), free(true));
    }

    #[test]
    fn a_marker_without_an_owner_is_for_who_comes() {
        let nobody = MarkerOwner::Nobody { damaged: false };
        assert_eq!(asked(&nobody, &past(&[], false), Life::Unknown, 0), free(false), "of an older release");
        assert_eq!(asked(&nobody, &past(&[], true), Life::Unknown, 0), free(true), "somebody else was there before");
        assert_eq!(asked(&MarkerOwner::Nobody { damaged: true }, &past(&["now"], false), Life::Unknown, 0), free(true));
        assert_eq!(asked(&MarkerOwner::Blank, &past(&["before"], true), Life::Unknown, 0), free(false));
        assert_eq!(asked(&MarkerOwner::Nothing, &past(&[], false), Life::Unknown, 0), OwnershipDecision::Held);
    }

    #[test]
    fn who_works_there_leaves_an_emptied_marker_to_another_one_first() {
        let (me, past) = (owner("mine", "now", "here"), past(&["now"], false));
        let at = |seconds| {
            let watched = Watched { unchanged: Duration::from_secs(seconds), yields: Duration::from_secs(60) };
            decide_ownership(
                &MarkerOwner::Blank,
                &ClaimingInstallation { me: &me, past: &past, held: true },
                Life::Unknown,
                watched,
            )
        };
        assert_eq!(at(0), OwnershipDecision::Yielded { left: Duration::from_secs(60) });
        assert_eq!(at(60), free(false));
    }
}
