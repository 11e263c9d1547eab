//! The sessions of browsers: who has entered a key into the form. Kept in memory only, so that a restart ends all of
//! them; of a session's id only the hash is kept. The limits follow the OWASP Session Management Cheat Sheet: a random
//! id, an end after idle time and an absolute one, and an end on request.

use crate::clock::Uptime;
use crate::domain::names::Hash;
use crate::server::http::auth::{Credential, KeyCheck};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a session lasts in any case: a working day.
pub const LONGEST: Duration = Duration::from_secs(12 * 3600);

/// How long a session lasts without a request. A recording that plays sends requests, but a browser may have loaded a
/// long one in advance.
pub const IDLE: Duration = Duration::from_secs(3 * 3600);

/// The most sessions of one owner; the one that was used least recently ends first.
const PER_OWNER: usize = 50;

/// The sessions of all owners, by the hash of their id.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<HashMap<Hash, Session>>);

#[derive(Debug, Clone, Copy)]
struct Session {
    credential: Credential,
    begun: Uptime,
    used: Uptime,
}

impl Session {
    fn has_expired(&self, now: Uptime) -> bool {
        now.since(self.begun) >= LONGEST || now.since(self.used) >= IDLE
    }
}

impl Sessions {
    /// Begins a session and returns its id: 64 hexadecimal digits.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn begin(&self, credential: Credential, now: Uptime) -> Result<String, getrandom::Error> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes)?;
        let id = Hash(bytes).to_string();
        let mut sessions = self.sessions();
        sessions.retain(|_, session| !session.has_expired(now));
        let own = sessions.iter().filter(|(_, session)| session.credential.owner == credential.owner);
        let (count, oldest) = (own.clone().count(), own.min_by_key(|(_, session)| session.used).map(|(id, _)| *id));
        if let Some(oldest) = oldest.filter(|_| count >= PER_OWNER) {
            sessions.remove(&oldest);
        }
        sessions.insert(Hash::of(id.as_bytes()), Session { credential, begun: now, used: now });
        Ok(id)
    }

    /// Returns the owner whose session has this id, if it has not expired and its key is still accepted.
    pub fn owner(&self, id: &str, key_check: &KeyCheck, now: Uptime) -> Option<Hash> {
        let mut sessions = self.sessions();
        let hash = Hash::of(id.as_bytes());
        let session = sessions.get_mut(&hash)?;
        if session.has_expired(now) || !key_check.accepts(&session.credential) {
            sessions.remove(&hash);
            return None;
        }
        session.used = now;
        Some(session.credential.owner)
    }

    pub fn end(&self, id: &str) {
        self.sessions().remove(&Hash::of(id.as_bytes()));
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<Hash, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::server::http::auth::ApiKey;

    fn at(seconds: u64) -> Uptime {
        Uptime(Duration::from_secs(seconds))
    }

    fn check(keys: &[ApiKey]) -> KeyCheck {
        KeyCheck::new(keys, &keys.iter().map(ApiKey::owner).collect::<Vec<_>>(), vec!["x-service-key".to_owned()])
    }

    #[test]
    fn a_session_ends_by_time_by_request_and_with_its_key() {
        let keys = [ApiKey::new("one"), ApiKey::new("two")];
        let (sessions, key_check) = (Sessions::default(), check(&keys));
        let begin = |key: &str, now| sessions.begin(key_check.credential(key.as_bytes()).unwrap(), now).unwrap();
        let id = begin("one", at(0));
        assert_eq!((id.len(), sessions.owner(&id, &key_check, at(1))), (64, Some(keys[0].owner())));
        assert_eq!(sessions.owner(&id[1..], &key_check, at(1)), None);
        assert_eq!(sessions.owner(&id, &key_check, at(1 + IDLE.as_secs())), None, "idle");
        let id = begin("one", at(0));
        for hours in 1..12 {
            assert!(sessions.owner(&id, &key_check, at(hours * 3600)).is_some(), "in use after {hours} h");
        }
        assert_eq!(sessions.owner(&id, &key_check, at(LONGEST.as_secs())), None, "the longest time");
        let id = begin("two", at(0));
        sessions.end(&id);
        assert_eq!(sessions.owner(&id, &key_check, at(1)), None, "on request");
        let (one, two) = (begin("one", at(0)), begin("two", at(0)));
        key_check.retain_keys(&keys[1..]);
        assert_eq!(sessions.owner(&one, &key_check, at(1)), None, "its key was revoked");
        assert_eq!(sessions.owner(&two, &key_check, at(1)), Some(keys[1].owner()));
    }

    #[test]
    fn the_sessions_of_an_owner_are_bounded_and_the_idle_one_ends_first() {
        let keys = [ApiKey::new("one"), ApiKey::new("two")];
        let (sessions, key_check) = (Sessions::default(), check(&keys));
        let begin = |key: &str, now| sessions.begin(key_check.credential(key.as_bytes()).unwrap(), now).unwrap();
        let other = begin("two", at(0));
        let ids: Vec<String> = (0..=PER_OWNER as u64).map(|second| begin("one", at(second))).collect();
        let is_there = |id: &String| sessions.owner(id, &key_check, at(60)).is_some();
        assert!(!is_there(&ids[0]) && ids[1..].iter().all(is_there) && is_there(&other));
        assert!(ids.iter().all(|id| *id != other));
    }
}
