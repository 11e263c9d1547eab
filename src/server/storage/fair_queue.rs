//! Decides whose turn it is: first come first served for each owner, and the owners in turn. Pure.

use crate::domain::names::{Hash, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

/// The waiting work of all owners.
#[derive(Debug, Default)]
pub struct FairQueue {
    /// Work that was tried without success (`true`) comes after work that was not tried yet.
    waiting: BTreeMap<Hash, BTreeSet<(bool, Timestamp)>>,
    /// The owner that was served last.
    last: Option<Hash>,
}

impl FairQueue {
    /// Adds work of an owner at its place by age.
    pub fn push(&mut self, owner: Hash, created: Timestamp) {
        self.waiting.entry(owner).or_default().insert((false, created));
    }

    /// As [`FairQueue::push`], for work that was tried without success: it comes after work that was not tried yet.
    pub fn push_retry(&mut self, owner: Hash, created: Timestamp) {
        self.waiting.entry(owner).or_default().insert((true, created));
    }

    /// Returns the owners that have waiting work.
    pub fn owners(&self) -> impl Iterator<Item = &Hash> {
        self.waiting.keys()
    }

    /// Removes certain work; returns whether it was there.
    pub fn remove(&mut self, owner: &Hash, created: Timestamp) -> bool {
        let Some(waiting) = self.waiting.get_mut(owner) else { return false };
        let was_there = waiting.remove(&(false, created)) || waiting.remove(&(true, created));
        if waiting.is_empty() {
            self.waiting.remove(owner);
        }
        was_there
    }

    /// Takes the oldest work of the next owner in turn for which `may` returns true.
    pub fn pop(&mut self, may: impl Fn(&Hash) -> bool) -> Option<Timestamp> {
        let after = self.last.map_or(Unbounded, Excluded);
        let later_owners = self.waiting.range((after, Unbounded)).map(|(owner, _)| *owner);
        let next = later_owners.chain(self.waiting.keys().copied()).find(|owner| may(owner))?;
        let waiting = self.waiting.get_mut(&next)?;
        let created = waiting.pop_first().map(|(_, created)| created);
        if waiting.is_empty() {
            self.waiting.remove(&next);
        }
        self.last = Some(next);
        created
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Hash = Hash([1; 32]);
    const B: Hash = Hash([2; 32]);

    #[test]
    fn owners_take_turns_and_each_ones_work_keeps_its_order() {
        let mut queue = FairQueue::default();
        for n in [3, 1, 2, 4] {
            queue.push(A, Timestamp(n));
        }
        queue.push(B, Timestamp(9));
        queue.push(B, Timestamp(8));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(|_| true)).map(|created| created.0).collect();
        assert_eq!(order, [1, 8, 2, 9, 3, 4]);
    }

    #[test]
    fn who_may_not_be_served_is_passed_over_and_keeps_its_place() {
        let mut queue = FairQueue::default();
        queue.push(A, Timestamp(1));
        queue.push(B, Timestamp(2));
        assert_eq!(queue.pop(|owner| *owner == B), Some(Timestamp(2)));
        assert_eq!(queue.pop(|owner| *owner == B), None);
        assert_eq!(queue.pop(|_| true), Some(Timestamp(1)));
    }

    #[test]
    fn what_was_tried_in_vain_comes_after_what_was_not_tried() {
        let mut queue = FairQueue::default();
        [1, 2].into_iter().for_each(|n| queue.push_retry(A, Timestamp(n)));
        [3, 4].into_iter().for_each(|n| queue.push(A, Timestamp(n)));
        assert!(queue.remove(&A, Timestamp(1)));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(|_| true)).map(|created| created.0).collect();
        assert_eq!(order, [3, 4, 2]);
    }

    #[test]
    fn what_is_taken_out_is_not_served() {
        let mut queue = FairQueue::default();
        [1, 2].into_iter().for_each(|n| queue.push(A, Timestamp(n)));
        queue.push(B, Timestamp(3));
        assert!(queue.remove(&A, Timestamp(1)) && !queue.remove(&A, Timestamp(1)) && !queue.remove(&A, Timestamp(3)));
        assert!(queue.remove(&A, Timestamp(2)));
        assert_eq!(queue.owners().collect::<Vec<_>>(), [&B]);
        assert_eq!(queue.pop(|_| true), Some(Timestamp(3)));
        assert_eq!(queue.pop(|_| true), None);
    }
}
