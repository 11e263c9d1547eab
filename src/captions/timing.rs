//! When cues appear and disappear.
//!
//! A cue appears when its first word is said. It stays as long as it takes to read, at least the minimum and at most the
//! maximum duration, as far as the next cue leaves room. Gaps are then closed or left clearly open, as the layout says.

use super::layout::{Layout, millis};

/// The times of a cue and the length of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CueSpan {
    /// In milliseconds.
    pub start: u64,
    /// In milliseconds; after `start` once [`settle`] has run.
    pub end: u64,
    /// The length of the text in units of the layout.
    pub units: u32,
    pub words: usize,
}

/// What has times.
pub(super) trait Timed {
    fn span(&mut self) -> &mut CueSpan;
}

impl Timed for CueSpan {
    fn span(&mut self) -> &mut CueSpan {
        self
    }
}

/// Makes every cue begin after the start of the previous one and end before the next. The cues are ordered by start. If
/// two people speak at once, their cues share the time in proportion to their length.
pub(super) fn separate(cues: &mut [impl Timed]) {
    for i in 1..cues.len() {
        let (left, right) = cues.split_at_mut(i);
        let (Some(current), Some(next)) = (left.last_mut(), right.first_mut()) else { return };
        let (current, next) = (current.span(), next.span());
        if next.start < current.end {
            next.start = next.start.max(fair_end(current, next).min(current.end));
        }
        next.start = next.start.max(current.start + 1);
        next.end = next.end.max(next.start);
        current.end = current.end.min(next.start);
    }
}

/// Returns when the first of two overlapping cues ends if they share their time by length, in milliseconds.
fn fair_end(current: &CueSpan, next: &CueSpan) -> u64 {
    let both = current.end.max(next.end).saturating_sub(current.start);
    let (first, all) = (u64::from(current.units), u64::from(current.units) + u64::from(next.units));
    current.start + (u128::from(both) * u128::from(first) / u128::from(all.max(1))) as u64
}

/// Sets the ends. The starts ascend strictly. Applied twice it changes nothing more.
pub(super) fn settle(cues: &mut [impl Timed], layout: &Layout) {
    for i in 0..cues.len() {
        let next = cues.get_mut(i + 1).map(|next| next.span().start);
        let span = cues[i].span();
        span.end = end_of(span, next, layout);
    }
}

/// Returns when a cue ends, in milliseconds. `next`: when the next one begins.
fn end_of(span: &CueSpan, next: Option<u64>, layout: &Layout) -> u64 {
    let wanted = span.start.saturating_add(layout.wanted_time(span.units, span.words));
    let latest = span.start.saturating_add(layout.longest());
    let end = span.end.max(wanted).min(latest);
    let Some(next) = next else { return end };
    // Between two cues that follow each other at once, the gap takes at most half of the first.
    let half = span.start + (next.saturating_sub(span.start)).div_ceil(2);
    let closed = next.saturating_sub(millis(layout.gap.minimum)).max(half).max(span.start + 1);
    let end = end.min(closed);
    let (gap, open) = (next.saturating_sub(end), millis(layout.gap.open_from));
    if end >= closed || gap >= open {
        end
    } else if closed <= latest {
        closed
    } else {
        next.saturating_sub(open).clamp(wanted.min(end), end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captions::Profile;
    use proptest::prelude::*;

    fn spans(times: &[(u64, u64, u32)]) -> Vec<CueSpan> {
        times.iter().map(|(start, end, units)| CueSpan { start: *start, end: *end, units: *units, words: 2 }).collect()
    }

    fn settled(times: &[(u64, u64, u32)], profile: Profile) -> Vec<(u64, u64)> {
        let mut spans = spans(times);
        settle(&mut spans, &profile.layout("en"));
        spans.iter().map(|span| (span.start, span.end)).collect()
    }

    #[test]
    fn netflix_closes_gaps_of_3_to_11_frames_to_2() {
        let times = [(0, 2000, 10), (2400, 4000, 10), (4000, 6000, 10), (6500, 8000, 10)];
        assert_eq!(settled(&times, Profile::Netflix), [(0, 2317), (2400, 3917), (4000, 6000), (6500, 8000)]);
    }

    #[test]
    fn the_bbc_wants_no_gap_or_one_of_a_second() {
        let times = [(0, 2000, 10), (2900, 4000, 10), (5000, 6000, 10)];
        assert_eq!(settled(&times, Profile::Bbc), [(0, 2900), (2900, 4000), (5000, 6000)]);
    }

    #[test]
    fn a_cue_stays_as_long_as_it_takes_to_read() {
        // 40 characters at 20 a second; the second has less room.
        let times = [(0, 500, 40), (4000, 4500, 40), (5000, 5100, 4)];
        assert_eq!(settled(&times, Profile::Netflix), [(0, 2000), (4000, 4917), (5000, 5833)]);
    }

    #[test]
    fn a_cue_is_never_shown_for_too_long() {
        assert_eq!(settled(&[(0, 20_000, 10)], Profile::Netflix), [(0, 7000)]);
        assert_eq!(settled(&[(0, 7000, 10), (7300, 9000, 10)], Profile::Netflix), [(0, 6800), (7300, 9000)]);
    }

    #[test]
    fn two_who_speak_at_once_share_the_time() {
        let mut both = spans(&[(0, 4000, 9), (0, 4000, 3)]);
        separate(&mut both);
        assert_eq!((both[0].end, both[1].start), (3000, 3000));
        let mut late = spans(&[(0, 4000, 1), (3500, 5000, 1)]);
        separate(&mut late);
        assert_eq!((late[0].end, late[1].start), (3500, 3500), "the second begins when it is said");
    }

    proptest! {
        #[test]
        fn times_ascend_and_settle_at_once(
            times in prop::collection::vec((0..20_000_u64, 0..20_000_u64, 0..90_u32), 0..20),
            profile in prop::sample::select(Profile::ALL.to_vec()),
        ) {
            let layout = profile.layout("en");
            let mut cues = spans(&times);
            cues.sort_by_key(|span| span.start);
            cues.iter_mut().for_each(|span| span.end = span.end.max(span.start));
            separate(&mut cues);
            settle(&mut cues, &layout);
            for pair in cues.windows(2) {
                prop_assert!(pair[0].start < pair[0].end && pair[0].end <= pair[1].start, "{pair:?}");
                let room = pair[1].start - pair[0].start;
                let gap = pair[1].start - pair[0].end;
                prop_assert!(gap >= millis(layout.gap.minimum).min(room / 2), "{pair:?}");
            }
            for span in &cues {
                prop_assert!(span.end - span.start <= layout.longest());
            }
            let once = cues.clone();
            separate(&mut cues);
            settle(&mut cues, &layout);
            prop_assert_eq!(cues, once);
        }
    }
}
