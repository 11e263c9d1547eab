//! Decides which installation may work in a folder. One works there at a time, names itself in the folder's marker and
//! gives signs of life there. Pure: the marker is read elsewhere.
//!
//! The clocks of two machines are not compared. A lease ends when an observer has seen it unchanged for its term, by
//! the observer's own monotonic clock.

use crate::domain::zone::Zone;
use crate::wire::timestamps;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The installation that works in a folder, as the marker names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Owner {
    /// The id of the state directory.
    pub state: String,
    /// Distinguishes that directory from its copies.
    pub directory: String,
    pub host: String,
    /// The path of the state directory on that machine.
    pub path: String,
    pub pid: u32,
    /// Distinguishes that process from all others of that machine.
    pub process: String,
    /// A random id of the run.
    pub run: String,
    /// When it claimed the folder; for people.
    pub since: String,
    /// The last sign of life by that machine's clock; for people.
    pub alive: String,
    /// The number of signs of life.
    pub renewals: u64,
    /// An observer that sees no sign of life for this long may take over.
    pub term_seconds: u64,
    /// The run has ended normally.
    pub released: bool,
    /// This run took the folder over: another installation may have bought for it before.
    pub took_over: bool,
}

/// Why this installation may not work in a folder. `why` stands after "the folder /srv/media".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnershipRefusal {
    pub why: String,
    /// What happens next, and what a person can do.
    pub then: String,
    /// The wait after which the refusal ends, whatever others do.
    pub waits: Option<Duration>,
}

impl Owner {
    /// Describes the owner for people.
    pub fn described(&self) -> String {
        let Self { path, host, pid, .. } = self;
        let moment = |written: &str| timestamps::parse(written).map(|at| Zone::UTC.format_second(at));
        let [since, alive] = [&self.since, &self.alive].map(|at| moment(at).unwrap_or_else(|| at.clone()));
        format!(
            "the state directory {path} on the machine {host} (process {pid}, since {since}, last sign of life {alive})"
        )
    }
}

/// What a marker says about the owner of its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkerOwner {
    /// There is no marker.
    Nothing,
    /// The marker is empty: a person emptied it.
    Blank,
    /// The marker has no owner, or an unreadable one.
    Nobody {
        /// The owner's line is damaged.
        damaged: bool,
    },
    Owned(Box<Owner>),
}

/// Whether the owner's process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs on this machine.
    Lives,
    /// It ran on this machine.
    Dead,
    /// It runs elsewhere, if it does.
    Unknown,
}

/// What an installation has recorded about a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FolderPast {
    /// The last runs that worked there, newest first; empty if another installation was met since.
    pub runs: Vec<String>,
    /// The folder had a marker before this installation came.
    pub met: bool,
}

#[derive(Debug)]
pub struct ClaimingInstallation<'a> {
    /// The owner as it would be written into the marker.
    pub me: &'a Owner,
    pub past: &'a FolderPast,
    /// Whether this run has worked in the folder.
    pub held: bool,
}

/// How long a marker was seen unchanged, and how long an emptied one is left to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// The time without a change, by the observer's clock.
    pub unchanged: Duration,
    /// How long another installation may take over a marker that was emptied while this run worked there.
    pub yields: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnershipDecision {
    /// This run owns the folder.
    Held,
    /// The folder may be claimed.
    Free {
        /// Another installation may have bought for the folder, unknown to this one.
        doubtful: bool,
    },
    /// Another installation works there.
    Taken {
        /// The time until it counts as dead without a sign of life; `None` if it is known to run.
        left: Option<Duration>,
        /// The other installation is a copy of the same state directory.
        copy: bool,
    },
    /// A person has emptied the marker while this run worked there: another installation may take over.
    Yielded { left: Duration },
}

/// Decides whether the asking installation may work in a folder.
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
    // The queue's lock admits one process to a state directory, so an earlier run with it has ended. If only host and
    // path match, the owner's process must not be known to run: the directory may have been moved and a copy put in its
    // place.
    let is_same_place = (&owner.host, &owner.path) == (&me.host, &me.path) && life != Life::Lives;
    let is_same_directory = is_same_state && (owner.directory == me.directory || is_same_place);
    // A restored backup of the state directory does not know later runs.
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

/// The shortest term that is accepted from a marker.
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
