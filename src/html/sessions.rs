//! The sessions of browsers: who has signed in. Kept in memory only, so that a restart ends all of
//! them; of a session's id only the hash is kept. The limits follow the OWASP Session Management Cheat Sheet: a random
//! id, an end after idle time and an absolute one, and an end on request.

use crate::clock::Uptime;
use crate::domain::names::Hash;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a session lasts in any case: a working day.
pub const LONGEST: Duration = Duration::from_secs(12 * 3600);

/// How long a session lasts without a request. A recording that plays sends requests, but a browser may have loaded a
/// long one in advance.
pub const IDLE: Duration = Duration::from_secs(3 * 3600);

/// The most sessions of one person; the one that was used least recently ends first.
const PER_PERSON: usize = 50;

/// The sessions, by the hash of their id. `T` says who signed in.
#[derive(Debug)]
pub struct Sessions<T>(Mutex<HashMap<Hash, Session<T>>>);

#[derive(Debug)]
struct Session<T> {
    who: T,
    begun: Uptime,
    used: Uptime,
}

impl<T> Session<T> {
    fn has_expired(&self, now: Uptime) -> bool {
        now.since(self.begun) >= LONGEST || now.since(self.used) >= IDLE
    }
}

impl<T> Default for Sessions<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Sessions<T> {
    /// Begins a session and returns its id: 64 hexadecimal digits. `is_same` says which other sessions are of the same
    /// person.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn begin(&self, who: T, is_same: impl Fn(&T) -> bool, now: Uptime) -> Result<String, getrandom::Error> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes)?;
        let id = Hash(bytes).to_string();
        let mut sessions = self.sessions();
        sessions.retain(|_, session| !session.has_expired(now));
        let own = sessions.iter().filter(|(_, session)| is_same(&session.who));
        let (count, oldest) = (own.clone().count(), own.min_by_key(|(_, session)| session.used).map(|(id, _)| *id));
        if let Some(oldest) = oldest.filter(|_| count >= PER_PERSON) {
            sessions.remove(&oldest);
        }
        sessions.insert(Hash::of(id.as_bytes()), Session { who, begun: now, used: now });
        Ok(id)
    }

    /// Returns who has the session with this id, if it has not expired and `is_accepted` still holds.
    pub fn who(&self, id: &str, is_accepted: impl Fn(&T) -> bool, now: Uptime) -> Option<T> {
        let mut sessions = self.sessions();
        let hash = Hash::of(id.as_bytes());
        let session = sessions.get_mut(&hash)?;
        if session.has_expired(now) || !is_accepted(&session.who) {
            sessions.remove(&hash);
            return None;
        }
        session.used = now;
        Some(session.who.clone())
    }

    pub fn end(&self, id: &str) {
        self.sessions().remove(&Hash::of(id.as_bytes()));
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<Hash, Session<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Uptime {
        Uptime(Duration::from_secs(seconds))
    }

    fn begin(sessions: &Sessions<&'static str>, who: &'static str, now: u64) -> String {
        sessions.begin(who, |other| *other == who, at(now)).unwrap()
    }

    #[test]
    fn a_session_ends_by_time_by_request_and_with_its_credential() {
        let sessions = Sessions::default();
        let who = |id: &str, now| sessions.who(id, |_| true, at(now));
        let id = begin(&sessions, "one", 0);
        assert_eq!((id.len(), who(&id, 1)), (64, Some("one")));
        assert_eq!(who(&id[1..], 1), None);
        assert_eq!(who(&id, 1 + IDLE.as_secs()), None, "idle");
        let id = begin(&sessions, "one", 0);
        for hours in 1..12 {
            assert!(who(&id, hours * 3600).is_some(), "in use after {hours} h");
        }
        assert_eq!(who(&id, LONGEST.as_secs()), None, "the longest time");
        let id = begin(&sessions, "two", 0);
        sessions.end(&id);
        assert_eq!(who(&id, 1), None, "on request");
        let (one, two) = (begin(&sessions, "one", 0), begin(&sessions, "two", 0));
        let is_kept = |who: &&str| *who == "two";
        assert_eq!(sessions.who(&one, is_kept, at(1)), None, "its credential was revoked");
        assert_eq!(who(&one, 1), None, "and stays so");
        assert_eq!(sessions.who(&two, is_kept, at(1)), Some("two"));
    }

    #[test]
    fn the_sessions_of_one_person_are_bounded_and_the_idle_one_ends_first() {
        let sessions = Sessions::default();
        let other = begin(&sessions, "two", 0);
        let ids: Vec<String> = (0..=PER_PERSON as u64).map(|second| begin(&sessions, "one", second)).collect();
        let is_there = |id: &String| sessions.who(id, |_| true, at(60)).is_some();
        assert!(!is_there(&ids[0]) && ids[1..].iter().all(is_there) && is_there(&other));
        assert!(ids.iter().all(|id| *id != other));
    }
}
