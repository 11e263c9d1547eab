//! Pages through a list that shifts while it is read. Pure.

use crate::wire::page::ListQuery;
use std::collections::HashSet;

/// Most pages in a row without anything new: more records came in than one page holds, or the service ignores the
/// offset.
const STALE_PAGES: u32 = 10;

/// A position in a list.
#[derive(Debug)]
pub struct PageCursor {
    offset: u64,
    limit: u32,
    /// The limit when no page is too long.
    most: u32,
    last: HashSet<String>,
    /// The id of the last record on the last page.
    last_id: Option<String>,
    /// The index after the last known record.
    end: u64,
    probe: Probe,
    /// Whether the next page should begin within the last one.
    overlaps: bool,
    stale: u32,
}

/// How it is checked that the list has ended, if more is announced and nothing new comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    No,
    /// The page after the last known record is read.
    PastLast,
    /// The last known record is read again: records before it may have been removed meanwhile.
    AtLast,
}

/// What follows after a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextPage {
    /// The next page can be read.
    More,
    End,
    /// Records may have been missed: the list must be read again from its start.
    Shifted,
}

impl PageCursor {
    /// Starts at the beginning, with `limit` records at a time (1 or more).
    pub fn new(limit: u32) -> Self {
        let most = limit.max(1);
        let last = HashSet::new();
        Self { offset: 0, limit: most, most, last, last_id: None, end: 0, probe: Probe::No, overlaps: false, stale: 0 }
    }

    /// Returns the query for the next page.
    pub fn query(&self, asked: &ListQuery) -> ListQuery {
        ListQuery { offset: self.offset, limit: self.limit, ..asked.clone() }
    }

    /// Whether a record was not on the last page.
    pub fn is_fresh(&self, id: &str) -> bool {
        !self.last.contains(id)
    }

    /// Takes the ids of a page, and returns what follows.
    pub fn take(&mut self, ids: Vec<String>, more: bool) -> NextPage {
        match self.probe {
            Probe::PastLast => {
                // If nothing is there: is the last record still in its place? If something is there: it is read
                // together with the last one.
                self.probe = if ids.is_empty() { Probe::AtLast } else { Probe::No };
                (self.offset, self.overlaps) = (self.end.saturating_sub(1), !self.last.is_empty());
                self.stale += 1;
                return if self.stale > STALE_PAGES { NextPage::Shifted } else { NextPage::More };
            }
            Probe::AtLast if ids.is_empty() && self.last.is_empty() => return NextPage::End,
            Probe::AtLast if ids.len() == 1 && ids.first() == self.last_id.as_ref() => return NextPage::End,
            Probe::AtLast | Probe::No => self.probe = Probe::No,
        }
        let joins = ids.iter().any(|id| self.last.contains(id));
        if self.overlaps && !joins {
            return NextPage::Shifted;
        }
        let is_stale = ids.iter().all(|id| self.last.contains(id));
        self.stale = if is_stale { self.stale + 1 } else { 0 };
        if !more {
            return NextPage::End;
        }
        if self.stale > STALE_PAGES {
            return NextPage::Shifted; // that proves nothing
        }
        let received = ids.len() as u64;
        self.end = self.offset + received;
        // A page of one that was asked for as such does not say what follows it.
        let is_whole = self.limit > 1 || ids.is_empty();
        let is_at_end = is_stale && is_whole && (ids.is_empty() || self.last_id.as_ref() == ids.last());
        self.last_id = ids.last().cloned().or(self.last_id.take());
        if is_at_end {
            // More is announced, and nothing came after the last record. The probe finds out whether there is nothing
            // at all.
            (self.offset, self.probe) = (self.end, Probe::PastLast);
            if !ids.is_empty() {
                self.last = ids.into_iter().collect();
            }
            return NextPage::More;
        }
        // Pages overlap by a quarter of the records that came, at least by one. A page of one cannot overlap.
        let step = (received - (received / 4).max(1)).max(1);
        self.overlaps = step < received;
        self.offset += step;
        self.last = ids.into_iter().collect();
        NextPage::More
    }

    /// Asks for fewer records at a time from here on; `false` if that is one already.
    pub fn shrink(&mut self) -> bool {
        let can = self.limit > 1;
        self.limit = (self.limit / 2).max(1);
        can
    }

    /// Skips the one record that cannot be read. The records after it may be shorter.
    pub fn pass(&mut self) {
        self.offset += 1;
        self.limit = self.most;
        self.overlaps = false;
        self.last.clear();
        (self.last_id, self.probe) = (None, Probe::No);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns what was seen or removed; `None` if the list must be read again from its start.
    fn walk(
        mut list: Vec<u32>,
        (limit, cap): (u32, usize),
        is_dangling: bool,
        changes: &[(bool, u8)],
    ) -> Option<HashSet<String>> {
        let (mut pages, mut seen) = (PageCursor::new(limit), HashSet::new());
        let mut changes = changes.iter();
        let mut number = 1_000;
        loop {
            let query = pages.query(&ListQuery::default());
            let from = usize::try_from(query.offset).unwrap().min(list.len());
            let ids: Vec<String> = list[from..].iter().take((limit as usize).min(cap)).map(u32::to_string).collect();
            let more = is_dangling || from + ids.len() < list.len();
            seen.extend(ids.iter().cloned());
            match pages.take(ids, more) {
                NextPage::More => {}
                NextPage::End => return Some(seen),
                NextPage::Shifted => return None,
            }
            match changes.next() {
                Some((true, _)) => {
                    list.insert(0, number);
                    number += 1;
                }
                Some((false, at)) if !list.is_empty() => {
                    seen.insert(list.remove(usize::from(*at) % list.len()).to_string());
                }
                _ => {}
            }
        }
    }

    proptest! {
        /// Whatever changes: a record that stays on the list is seen, or it is known that it may not have been.
        #[test]
        fn nothing_slips_past(
            count in 0_u32..60, limit in 2_u32..20, cap in 2_usize..20,
            is_dangling: bool, changes in proptest::collection::vec((any::<bool>(), any::<u8>()), 0..30),
        ) {
            let list: Vec<u32> = (0..count).collect();
            if let Some(seen) = walk(list.clone(), (limit, cap), is_dangling, &changes) {
                let missed: Vec<&u32> = list.iter().filter(|n| !seen.contains(&n.to_string())).collect();
                prop_assert!(missed.is_empty(), "missed {missed:?} of {count}");
            }
        }
    }

    #[test]
    fn a_list_that_stands_still_is_seen_whole() {
        for (limit, cap) in [(1, 1), (2, 2), (20, 20), (20, 7), (100, 1)] {
            let seen = walk((0..55).collect(), (limit, cap), false, &[]).expect("it did not shift");
            assert_eq!(seen.len(), 55, "{limit} at a time, {cap} given");
        }
    }

    #[test]
    fn a_next_page_with_nothing_on_it_is_the_end() {
        for count in [0, 1, 2, 19, 20, 21, 55] {
            let seen = walk((0..count).collect(), (20, 20), true, &[]).expect("it did not shift");
            assert_eq!(seen.len(), count as usize, "of {count}");
        }
    }

    #[test]
    fn a_service_that_does_not_heed_the_offset_is_not_asked_for_ever() {
        let mut pages = PageCursor::new(3);
        let turns = (0..50).map(|_| pages.take(vec!["a".into(), "b".into()], true));
        assert!(turns.into_iter().any(|turn| turn == NextPage::Shifted));
    }
}
