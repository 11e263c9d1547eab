//! Slows down whoever tries credentials: after some failures each further one doubles the wait, per address and per user at
//! that address. Others are not held up by it: a user cannot be locked out from another address.

use crate::clock::Uptime;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// Failed attempts that cost no wait.
const FREE: u32 = 5;

const LONGEST: Duration = Duration::from_secs(15 * 60);

/// After this time without a failure, the earlier ones are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60 * 60);

/// The most keys that are remembered; beyond them the oldest go.
const MOST: usize = 10_000;

/// Who tries: an address, and the user that it names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Attempt {
    pub from: IpAddr,
    pub user: Option<String>,
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Uptime,
}

/// The failed attempts.
#[derive(Debug, Default)]
pub struct Lockout {
    failures: HashMap<Attempt, Failures>,
}

impl Lockout {
    /// Returns how long this attempt has to wait; `None` if it need not.
    pub fn wait(&self, attempt: &Attempt, now: Uptime) -> Option<Duration> {
        let failures = self.failures.get(attempt)?;
        let pause = pause_after(failures.count)?;
        pause.checked_sub(now.since(failures.last)).filter(|left| !left.is_zero())
    }

    pub fn failed(&mut self, attempt: Attempt, now: Uptime) {
        self.forget_old(now);
        let failures = self.failures.entry(attempt).or_insert(Failures { count: 0, last: now });
        (failures.count, failures.last) = (failures.count.saturating_add(1), now);
    }

    pub fn succeeded(&mut self, attempt: &Attempt) {
        self.failures.remove(attempt);
    }

    fn forget_old(&mut self, now: Uptime) {
        self.failures.retain(|_, failures| now.since(failures.last) < FORGOTTEN);
        if self.failures.len() >= MOST {
            let oldest = self.failures.iter().min_by_key(|(_, failures)| failures.last).map(|(key, _)| key.clone());
            if let Some(key) = oldest {
                self.failures.remove(&key);
            }
        }
    }
}

fn pause_after(failures: u32) -> Option<Duration> {
    let beyond = failures.checked_sub(FREE)?;
    Some(Duration::from_secs(1 << beyond.min(10)).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Uptime {
        Uptime(Duration::from_secs(seconds))
    }

    fn attempt(host: u8) -> Attempt {
        Attempt { from: IpAddr::from([192, 0, 2, host]), user: None }
    }

    #[test]
    fn after_some_failures_each_further_one_doubles_the_wait() {
        let mut lockout = Lockout::default();
        let mut waits = Vec::new();
        for _ in 0..20 {
            lockout.failed(attempt(1), at(100));
            waits.push(lockout.wait(&attempt(1), at(100)).map_or(0, |wait| wait.as_secs()));
        }
        assert_eq!(waits[..9], [0, 0, 0, 0, 1, 2, 4, 8, 16]);
        assert_eq!(waits[19], 900, "at most a quarter of an hour");
        assert_eq!(lockout.wait(&attempt(2), at(100)), None, "others are not held up");
        assert_eq!(lockout.wait(&attempt(1), at(400)), Some(Duration::from_secs(600)));
        assert_eq!(lockout.wait(&attempt(1), at(1000)), None);
        lockout.succeeded(&attempt(1));
        assert_eq!(lockout.wait(&attempt(1), at(100)), None);
    }

    #[test]
    fn it_takes_bounded_memory_and_forgets() {
        let mut lockout = Lockout::default();
        for n in 0..=u16::try_from(MOST).unwrap() {
            let [high, low] = n.to_be_bytes();
            lockout.failed(Attempt { from: IpAddr::from([10, 0, high, low]), user: None }, at(u64::from(n) / 1000));
        }
        assert_eq!(lockout.failures.len(), MOST);
        lockout.failed(attempt(1), at(10_000));
        assert_eq!(lockout.failures.len(), 1);
    }
}
