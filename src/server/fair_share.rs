//! Shares the places of one kind of work (recognition, fetching, deliveries) among the keys that have work. Pure.
//!
//! A free place goes to the key that holds the fewest; keys that hold equally many take turns. While one key waits and
//! another key holds at least two places more, the other key gives up a place: at once, or after a minimum time where
//! the work has to start again from the beginning. Where there are more keys than places, each place is held for a
//! slice of time. With a single key none of this happens.

use crate::clock::Uptime;
use crate::domain::names::Hash;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The places of one kind of work, and which key holds each.
#[derive(Debug)]
pub struct FairShare<J> {
    places: usize,
    slice: Option<Duration>,
    min_hold: Duration,
    held: BTreeMap<J, Held>,
    /// The key that was given a place last.
    last: Option<Hash>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    owner: Hash,
    since: Uptime,
}

/// The next step for the keys that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareDecision<J> {
    /// Give this key a place.
    Start(Hash),
    /// Take the place from this piece of work.
    Yield(J),
    /// Nothing changes before this time has passed.
    In(Duration),
    /// Nothing changes until work arrives or ends.
    Nothing,
}

impl<J: Copy + Ord> FairShare<J> {
    /// Creates `places` places, at least one. `slice` is how long work keeps its place while another key holds none and
    /// waits; without a slice, a key's only place is kept until its work ends.
    pub fn new(places: usize, slice: Option<Duration>) -> Self {
        // A slice of length zero would pass a place back and forth at one moment.
        let slice = slice.map(|slice| slice.max(Duration::from_millis(1)));
        Self { places: places.max(1), slice, min_hold: Duration::ZERO, held: BTreeMap::new(), last: None }
    }

    /// For work that starts again from the beginning after it gave up its place: it keeps its place for at least
    /// `min_hold`, so that only slow work is repeated.
    #[must_use]
    pub fn with_min_hold(self, min_hold: Duration) -> Self {
        Self { min_hold, ..self }
    }

    /// Returns the next step for the keys in `waiting`.
    pub fn decide(&self, waiting: &BTreeSet<Hash>, now: Uptime) -> ShareDecision<J> {
        let Some(owner) = self.next_owner(waiting) else { return ShareDecision::Nothing };
        if self.held.len() < self.places {
            return ShareDecision::Start(owner);
        }
        let own_count = self.count(&owner);
        let is_over = |held: &&Held| self.count(&held.owner) >= own_count + 2;
        let largest_count = self.held.values().filter(is_over).map(|held| self.count(&held.owner)).max();
        if let Some(largest_count) = largest_count {
            let largest_holders = self.held.iter().filter(|(_, held)| self.count(&held.owner) == largest_count);
            let remaining = |held: &Held| self.min_hold.saturating_sub(now.since(held.since));
            let yieldable = largest_holders.clone().filter(|(_, held)| remaining(held).is_zero());
            // The newest work loses the least progress.
            return match yieldable.max_by_key(|(_, held)| held.since) {
                Some((job, _)) => ShareDecision::Yield(*job),
                None => largest_holders
                    .map(|(_, held)| remaining(held))
                    .min()
                    .map_or(ShareDecision::Nothing, ShareDecision::In),
            };
        }
        match (self.slice, self.held.iter().min_by_key(|(_, held)| held.since)) {
            (Some(slice), Some((job, held))) if own_count == 0 => {
                let remaining = slice.saturating_sub(now.since(held.since));
                if remaining.is_zero() { ShareDecision::Yield(*job) } else { ShareDecision::In(remaining) }
            }
            _ => ShareDecision::Nothing,
        }
    }

    /// Returns the waiting key that holds the fewest places; among equals, the next one in turn.
    fn next_owner(&self, waiting: &BTreeSet<Hash>) -> Option<Hash> {
        let in_turn = |owner: &Hash| self.last.is_some_and(|last| *owner <= last);
        waiting.iter().min_by_key(|owner| (self.count(owner), in_turn(owner), **owner)).copied()
    }

    /// Returns how many places nobody holds.
    pub fn free_places(&self) -> usize {
        self.places.saturating_sub(self.held.len())
    }

    fn count(&self, owner: &Hash) -> usize {
        self.held.values().filter(|held| held.owner == *owner).count()
    }

    /// Records that `job` of this key has a place.
    pub fn start(&mut self, job: J, owner: Hash, now: Uptime) {
        self.held.insert(job, Held { owner, since: now });
        self.last = Some(owner);
    }

    /// Records that a piece of work has ended or has given up its place.
    pub fn end(&mut self, job: J) {
        self.held.remove(&job);
    }
}

/// How long a fetch or a delivery keeps its place at least: quick work ends by itself and is not repeated.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Returns how many bytes of a nearly full disk one key may hold, when `keys` keys share `limit` bytes.
pub fn disk_share(limit: u64, keys: usize) -> u64 {
    limit / (keys.max(1) as u64)
}

/// Returns the number of places for short and cheap work: one for each key, at least `least`, and not more than 64.
pub fn place_count(least: usize, keys: usize) -> usize {
    /// Connections and open files are limited.
    const MAX_PLACES: usize = 64;
    keys.clamp(least, MAX_PLACES.max(least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Hash = Hash([1; 32]);
    const B: Hash = Hash([2; 32]);
    const C: Hash = Hash([3; 32]);
    const SLICE: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> Uptime {
        Uptime(Duration::from_secs(seconds))
    }

    fn waiting<const N: usize>(owners: [Hash; N]) -> BTreeSet<Hash> {
        owners.into()
    }

    #[test]
    fn one_key_holds_all_places_and_never_yields() {
        let mut shares = FairShare::new(2, Some(SLICE));
        for job in 0..2 {
            assert_eq!(shares.decide(&waiting([A]), at(0)), ShareDecision::Start(A));
            shares.start(job, A, at(0));
        }
        assert_eq!(shares.decide(&waiting([A]), at(100_000)), ShareDecision::Nothing);
        assert_eq!(shares.decide(&waiting([]), at(0)), ShareDecision::Nothing);
    }

    #[test]
    fn who_comes_gets_its_share_at_once() {
        let mut shares = FairShare::new(4, None);
        (0..4).for_each(|job| shares.start(job, A, at(job)));
        assert_eq!(shares.decide(&waiting([A, B]), at(9)), ShareDecision::Yield(3), "the newest");
        shares.end(3);
        assert_eq!(shares.decide(&waiting([A, B]), at(9)), ShareDecision::Start(B));
        shares.start(4, B, at(9));
        assert_eq!(shares.decide(&waiting([A, B]), at(9)), ShareDecision::Yield(2));
        shares.end(2);
        shares.start(5, B, at(9));
        assert_eq!(shares.decide(&waiting([A, B]), at(9)), ShareDecision::Nothing, "two each");
        shares.end(4);
        assert_eq!(shares.decide(&waiting([A]), at(9)), ShareDecision::Start(A), "what nobody else wants");
    }

    #[test]
    fn what_would_be_begun_again_is_let_be_for_a_while() {
        let mut shares = FairShare::new(3, None).with_min_hold(Duration::from_secs(5));
        (0..3).for_each(|job| shares.start(job, A, at(job)));
        assert_eq!(shares.decide(&waiting([B]), at(3)), ShareDecision::In(Duration::from_secs(2)));
        assert_eq!(shares.decide(&waiting([B]), at(6)), ShareDecision::Yield(1), "the newest of those that last long");
    }

    #[test]
    fn more_keys_than_places_take_turns() {
        let mut shares = FairShare::new(1, Some(SLICE));
        shares.start(0, A, at(0));
        let all = waiting([B, C]);
        assert_eq!(shares.decide(&all, at(10)), ShareDecision::In(Duration::from_secs(20)));
        assert_eq!(shares.decide(&all, at(30)), ShareDecision::Yield(0));
        shares.end(0);
        let all = waiting([A, B, C]);
        assert_eq!(shares.decide(&all, at(30)), ShareDecision::Start(B));
        shares.start(1, B, at(30));
        assert_eq!(shares.decide(&all, at(60)), ShareDecision::Yield(1));
        shares.end(1);
        assert_eq!(shares.decide(&all, at(60)), ShareDecision::Start(C));
        shares.start(2, C, at(60));
        shares.end(2);
        assert_eq!(shares.decide(&all, at(90)), ShareDecision::Start(A), "and again");
    }

    #[test]
    fn a_key_with_one_place_keeps_it_where_there_are_no_slices() {
        let mut shares = FairShare::new(1, None);
        shares.start(0, A, at(0));
        assert_eq!(shares.decide(&waiting([B]), at(100_000)), ShareDecision::Nothing);
    }

    #[test]
    fn each_key_has_a_place() {
        assert_eq!([1, 4, 9, 1000].map(|keys| place_count(4, keys)), [4, 4, 9, 64]);
    }

    proptest! {
        /// Whatever was held before: when all keys have work, in the end no key holds more than its share, and every
        /// key holds its share where there are places for all.
        #[test]
        fn shares_come_about(places in 1..9_usize, keys in 1..9_u8, before in 0..9_u8) {
            let owners: Vec<Hash> = (0..keys).map(|key| Hash([key; 32])).collect();
            let all: BTreeSet<Hash> = owners.iter().copied().collect();
            let mut shares = FairShare::new(places, None);
            (0..places).for_each(|job| shares.start(job, owners[usize::from(before % keys)], at(0)));
            let mut next_job = places;
            for steps in 0.. {
                prop_assert!(steps < 100, "no end");
                match shares.decide(&all, at(0)) {
                    ShareDecision::Start(owner) => { shares.start(next_job, owner, at(0)); next_job += 1; }
                    ShareDecision::Yield(job) => shares.end(job),
                    ShareDecision::In(_) | ShareDecision::Nothing => break,
                }
            }
            let share = places.div_ceil(owners.len());
            prop_assert!(owners.iter().all(|owner| shares.count(owner) <= share));
            prop_assert!(places < owners.len() || owners.iter().all(|owner| shares.count(owner) >= places / owners.len()));
        }
    }
}
