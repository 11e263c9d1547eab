//! How a recording that is longer than its service accepts is sent: in parts, one after the other. Each part is a
//! purchase of its own; the results are joined to one.

use crate::domain::job::Job;
use crate::domain::names::{Hash, TranscriptionId};
use crate::domain::sent_audio::ExtractedPart;
use crate::domain::stage::AudioAmount;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// How often the longest part is halved because the service refuses a recording: then it is something else that the
/// service refuses.
pub const MOST_HALVINGS: u32 = 4;

/// How much sound two neighbouring parts share, in milliseconds: the words around a cut are recognised in both. It is
/// billed twice.
pub const OVERLAP_MS: u64 = 1_000;

/// The shortest part, in milliseconds: a service that refuses even this has another reason.
pub const SHORTEST_PART_MS: u64 = 10_000;

/// The most by which a cut moves to a pause, in milliseconds, in each direction.
const MOST_SHIFT_MS: u64 = 30_000;

/// The most parts of a recording. More would be a limit that was written or learned wrongly.
pub const MOST_PARTS: u64 = 1_000;

/// A stretch of a recording's sound that is sent alone: milliseconds from the start of its sound track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartRange {
    pub from_ms: u64,
    pub to_ms: u64,
}

impl PartRange {
    pub fn millis(self) -> u64 {
        self.to_ms.saturating_sub(self.from_ms)
    }

    /// Parses the form of [`Display`](fmt::Display); `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('_')?;
        let range = Self { from_ms: from.parse().ok()?, to_ms: to.parse().ok()? };
        (range.from_ms < range.to_ms && range.to_string() == text).then_some(range)
    }
}

/// Written as `0_7200000`, which is its form in the token.
impl fmt::Display for PartRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.from_ms, self.to_ms)
    }
}

/// A recording that is sent in parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// The parts in the order of the recording; at least two.
    pub parts: Vec<Part>,
    /// The number of channels that are sent of each; 0 if not known.
    pub channels: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    #[serde(flatten)]
    pub range: PartRange,
    /// What was bought for the part, once its result is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bought: Option<BoughtPart>,
}

/// A part whose result is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoughtPart {
    pub transcription: TranscriptionId,
    /// The number of the purchase that bought it.
    pub purchase_number: u32,
    pub audio: AudioAmount,
    /// How the sound was extracted; `None` if another job bought the part: then the token in its result says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<ExtractedPart>,
}

impl Split {
    /// Makes a split of these ranges, of which nothing is bought yet. `None` for fewer than two.
    pub fn of(ranges: &[PartRange], channels: u32) -> Option<Self> {
        let part = |range: &PartRange| Part { range: *range, bought: None };
        (ranges.len() > 1).then(|| Self { parts: ranges.iter().map(part).collect(), channels })
    }

    /// Returns the part that is bought next; `None` if all are.
    pub fn next(&self) -> Option<PartRange> {
        self.unbought_ranges().next()
    }

    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// Returns the number of a part, from 1.
    pub fn number_of(&self, range: PartRange) -> Option<usize> {
        self.parts.iter().position(|part| part.range == range).map(|at| at + 1)
    }

    /// Returns the amount that a part is expected to cost, in milliseconds of billed audio. `channels`: how many channels the
    /// service is known to hear; 0 if that is not known.
    pub fn amount_of(&self, range: PartRange, channels: u32) -> u64 {
        range.millis().saturating_mul(u64::from(self.channels.max(channels).max(1)))
    }

    /// Returns what the parts that are not bought yet are expected to cost, as [`Split::amount_of`].
    pub fn unbought(&self, channels: u32) -> UnboughtParts {
        let mut amounts = self.unbought_ranges().map(|range| self.amount_of(range, channels));
        UnboughtParts { next: amounts.next().unwrap_or_default(), later: amounts.fold(0, u64::saturating_add) }
    }

    /// Whether other parts than this one are not bought yet.
    pub fn has_later(&self, range: PartRange) -> bool {
        self.unbought_ranges().any(|other| other != range)
    }

    fn unbought_ranges(&self) -> impl Iterator<Item = PartRange> {
        self.parts.iter().filter(|part| part.bought.is_none()).map(|part| part.range)
    }

    pub fn part_mut(&mut self, range: PartRange) -> Option<&mut Part> {
        self.parts.iter_mut().find(|part| part.range == range)
    }

    /// Returns the parts whose results are kept, with their ranges.
    pub fn bought(&self) -> impl Iterator<Item = (PartRange, &BoughtPart)> {
        self.parts.iter().filter_map(|part| Some((part.range, part.bought.as_ref()?)))
    }

    pub fn has_bought(&self, transcription: &TranscriptionId) -> bool {
        self.bought().any(|(_, bought)| bought.transcription == *transcription)
    }

    /// Returns the amount of all parts together, as the service billed it.
    pub fn audio(&self) -> AudioAmount {
        let amounts = || self.bought().map(|(_, bought)| bought.audio);
        let billed = amounts().map(|audio| audio.billed).sum::<Option<u64>>();
        let millis = self.parts.last().map_or(0, |part| part.range.to_ms);
        AudioAmount { millis, channels: amounts().map(|audio| audio.channels).max().unwrap_or(self.channels), billed }
    }

    /// Returns the id of the joined result. No service has it. The same results in the same order have the same id.
    pub fn joined_id(&self) -> TranscriptionId {
        let ids: Vec<&str> = self.bought().map(|(_, bought)| bought.transcription.as_str()).collect();
        let ranges: Vec<String> = self.parts.iter().map(|part| part.range.to_string()).collect();
        TranscriptionId::joined(&Hash::of(format!("{}\n{}", ids.join("\n"), ranges.join("\n")).as_bytes()))
    }
}

/// What the parts that are not bought yet are expected to cost, in milliseconds of billed audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnboughtParts {
    /// The part that is bought next.
    pub next: u64,
    /// All parts after it.
    pub later: u64,
}

impl UnboughtParts {
    pub fn all(self) -> u64 {
        self.next.saturating_add(self.later)
    }
}

/// A recording that the service refused as too long or too large.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TooLong {
    /// How often it was refused: each time, the longest part that is sent is halved.
    pub halvings: u32,
    /// What the service said last.
    pub words: String,
}

/// What a service accepts of one recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordingLimits {
    /// The longest; `None` if that is not known.
    pub duration: Option<Duration>,
    /// The most bytes of a file; `None` if that is not known.
    pub size: Option<u64>,
}

/// The fewest bytes that a second of sound has: codecs for speech begin at about twice as many. A smaller file is not
/// too long, so its length is not looked at.
const LEAST_BYTES_A_SECOND: u64 = 300;

impl RecordingLimits {
    /// Returns the longest part that is sent of a recording of this length, in milliseconds: as configured, or shorter if
    /// the service refused that. `None` if nothing is known to limit it.
    pub fn longest_ms(self, total_ms: u64, halvings: u32) -> Option<u64> {
        let halved = (halvings > 0).then(|| total_ms.checked_shr(halvings).unwrap_or(0));
        let longest = self.configured_ms().into_iter().chain(halved).min();
        longest.map(|longest| longest.max(SHORTEST_PART_MS))
    }

    fn configured_ms(self) -> Option<u64> {
        self.duration.and_then(|longest| u64::try_from(longest.as_millis()).ok())
    }

    /// Whether a file may be more than the service accepts, as far as its size tells.
    pub fn may_be_exceeded(self, job: &Job) -> bool {
        let bytes = job.seen.size;
        let is_long = self.configured_ms().is_some_and(|longest| may_last(bytes, longest));
        job.split.is_some() || job.too_long.is_some() || is_long || self.size.is_some_and(|size| bytes > size)
    }
}

/// Whether a file of this size may be longer than that.
pub fn may_last(size: u64, millis: u64) -> bool {
    size > millis / 1_000 * LEAST_BYTES_A_SECOND
}

/// Returns the fewest parts of at most `longest_ms`, with room for the overlap and for moving the cuts to pauses; 1 if
/// the recording is not longer than that.
pub fn part_count(total_ms: u64, longest_ms: u64) -> u64 {
    if total_ms <= longest_ms {
        return 1;
    }
    let longest_ms = longest_ms.max(SHORTEST_PART_MS);
    let room = (longest_ms / 10).min(2 * MOST_SHIFT_MS);
    total_ms.div_ceil(longest_ms - OVERLAP_MS - room).clamp(2, MOST_PARTS)
}

/// A stretch in which a cut is looked for: whole seconds from the start of the sound track, the end not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutWindow {
    pub from_s: u64,
    pub to_s: u64,
    /// The second that is taken if none is quieter.
    pub middle_s: u64,
}

/// Returns the windows for the cuts of a recording: the parts are about equally long, and none becomes longer than
/// `longest_ms`.
pub fn cut_windows(total_ms: u64, longest_ms: u64) -> Vec<CutWindow> {
    let count = part_count(total_ms, longest_ms);
    let even = total_ms / count;
    let spare = longest_ms.saturating_sub(even + OVERLAP_MS + 2_000) / 2;
    let shift_s = spare.min(MOST_SHIFT_MS).min(even / 4) / 1_000;
    let window = |n: u64| {
        let middle_s = total_ms * n / count / 1_000;
        CutWindow { from_s: middle_s.saturating_sub(shift_s), to_s: middle_s + shift_s + 1, middle_s }
    };
    (1..count).map(window).collect()
}

/// Returns the ranges of the parts that begin at these whole seconds, besides the first, which begins at 0. A cut that
/// is not behind the one before it is left out.
pub fn ranges(total_ms: u64, cuts_s: &[u64]) -> Vec<PartRange> {
    let mut starts = vec![0];
    for cut in cuts_s.iter().map(|cut| cut * 1_000) {
        if cut >= starts[starts.len() - 1] + OVERLAP_MS && cut + OVERLAP_MS < total_ms {
            starts.push(cut);
        }
    }
    let ends = starts.iter().skip(1).map(|start| start + OVERLAP_MS).chain([total_ms]);
    starts.iter().zip(ends).map(|(from_ms, to_ms)| PartRange { from_ms: *from_ms, to_ms }).collect()
}

/// Returns the quietest second of a window: the one whose loudest tenth is the least loud. `levels` are the loudnesses of
/// tenths of a second from the start of the window; what is missing is not looked at.
pub fn quietest_second(window: CutWindow, levels: &[f32]) -> u64 {
    let loudest = |second: u64| {
        let at = usize::try_from((second - window.from_s) * 10).ok()?;
        levels.get(at..at + 10).map(|tenths| tenths.iter().copied().fold(0.0, f32::max))
    };
    // Of equally quiet ones, the nearest to the middle.
    let known = (window.from_s..window.to_s).filter_map(|second| Some((loudest(second)?, second)));
    let by_distance = |second: u64| second.abs_diff(window.middle_s);
    known
        .min_by(|(one, at), (other, beside)| one.total_cmp(other).then(by_distance(*at).cmp(&by_distance(*beside))))
        .map_or(window.middle_s, |(_, second)| second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the length and the limit: the parts cover the recording, neighbours share one second, and no part is
        /// longer than the limit, wherever in its window each cut is made.
        #[test]
        fn parts_cover_a_recording_and_none_is_too_long(
            total_ms in 1_000..40_000_000_u64,
            longest_ms in SHORTEST_PART_MS..20_000_000_u64,
            choice in 0..3_u8,
        ) {
            prop_assume!(part_count(total_ms, longest_ms) < MOST_PARTS);
            let cut = |window: CutWindow| match choice {
                0 => window.from_s,
                1 => window.middle_s,
                _ => window.to_s - 1,
            };
            let windows = cut_windows(total_ms, longest_ms);
            let cuts: Vec<u64> = windows.into_iter().map(cut).collect();
            let ranges = ranges(total_ms, &cuts);
            prop_assert_eq!(ranges.len() as u64, part_count(total_ms, longest_ms));
            prop_assert_eq!((ranges[0].from_ms, ranges[ranges.len() - 1].to_ms), (0, total_ms));
            for range in &ranges {
                prop_assert!(range.millis() <= longest_ms, "{range:?} of {longest_ms}");
                prop_assert_eq!(PartRange::parse(&range.to_string()), Some(*range));
            }
            for pair in ranges.windows(2) {
                prop_assert_eq!(pair[0].to_ms, pair[1].from_ms + OVERLAP_MS);
            }
            let sent: u64 = ranges.iter().map(|range| range.millis()).sum();
            prop_assert_eq!(sent, total_ms + (part_count(total_ms, longest_ms) - 1) * OVERLAP_MS);
        }

        #[test]
        fn nothing_else_is_a_range(text in ".*") {
            prop_assume!(PartRange::parse(&text).is_none_or(|range| range.to_string() != text));
            prop_assert_eq!(PartRange::parse(&text), None);
        }
    }

    #[test]
    fn a_recording_is_cut_at_its_quietest_second() {
        let window = CutWindow { from_s: 100, to_s: 104, middle_s: 102 };
        let mut levels = [0.5_f32; 40];
        levels[30..].fill(0.01);
        levels[5..15].fill(0.0); // no whole second
        assert_eq!(quietest_second(window, &levels), 103);
        assert_eq!(quietest_second(window, &[0.5; 40]), 102);
        assert_eq!(quietest_second(window, &[]), 102);
    }

    #[test]
    fn a_recording_of_the_longest_length_is_sent_whole() {
        assert_eq!((part_count(8_100_000, 8_100_000), part_count(8_100_001, 8_100_000)), (1, 2));
        assert_eq!(cut_windows(8_100_000, 8_100_000), []);
        assert_eq!(part_count(36_000_000, 8_100_000), 5);
    }
}
