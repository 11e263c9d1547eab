//! Decides how much of a recording is sent at a time: all of it, or a part of it where the service accepts no more.

use super::extraction::{Extraction, NotExtracted, reopen};
use crate::domain::job::Job;
use crate::domain::split::{
    CutWindow, PartRange, RecordingLimits, SHORTEST_PART_MS, Split, cut_windows, may_last, quietest_second, ranges,
};
use crate::media::decode::DecodeError;
use crate::media::extract::{Sound, loudness, measure_track};
use std::fs::File;
use std::sync::{Mutex, PoisonError};

/// How much is sent.
pub(super) enum Amount {
    /// All of the recording; its sound track alone if `as_track`.
    Whole { as_track: bool },
    /// This part of the recording.
    Part(PartRange),
    /// It has to be sent in these parts.
    Split(Box<Split>),
}

/// What the service's refusals taught since scribed started: it costs one upload of one recording, not of each.
#[derive(Default)]
pub(super) struct LearnedLength(Mutex<Option<Refusal>>);

#[derive(Clone, Copy)]
struct Refusal {
    /// The length of the shortest recording that was refused, in milliseconds.
    refused_ms: u64,
    /// The longest part that was sent in its place.
    part_ms: u64,
}

impl LearnedLength {
    fn refusal(&self) -> Option<Refusal> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, new: Refusal) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = known.filter(|known| known.refused_ms < new.refused_ms).or(Some(new));
    }

    /// Whether a file of this size may be as long as one that was refused.
    pub(super) fn may_be_refused(&self, size: u64) -> bool {
        self.refusal().is_some_and(|refusal| may_last(size, refusal.refused_ms))
    }

    /// Returns the longest part of a recording of this length, in milliseconds.
    fn longest_ms(&self, total_ms: u64) -> Option<u64> {
        self.refusal().filter(|refusal| total_ms >= refusal.refused_ms).map(|refusal| refusal.part_ms)
    }
}

/// The share of the largest size that a part may be estimated to have.
const OF_THE_SIZE: f64 = 0.95;

/// Decides how much of the sound of a file is sent next.
pub(super) async fn amount(
    extraction: &Extraction<'_>,
    (limits, learned): (RecordingLimits, &LearnedLength),
    sound: &Sound,
    from: &File,
) -> Result<Amount, NotExtracted> {
    if let Some(part) = extraction.part {
        return Ok(Amount::Part(part));
    }
    let is_too_large = limits.size.is_some_and(|size| extraction.job.seen.size > size);
    let whole = Amount::Whole { as_track: is_too_large };
    let by_size = longest_by_size(limits, sound).filter(|_| is_too_large || extraction.pick.is_some());
    let halvings = extraction.job.halvings();
    let longest = |total_ms: u64| {
        let known = [limits.longest_ms(total_ms, halvings), learned.longest_ms(total_ms), by_size];
        known.into_iter().flatten().min()
    };
    let is_short = |total_ms: u64| longest(total_ms).is_none_or(|longest| total_ms <= longest);
    if sound.most_seconds().is_some_and(|most| is_short(millis(most))) {
        return Ok(whole);
    }
    let total_ms = total_millis(extraction, sound, from).await?;
    let Some(longest_ms) = longest(total_ms).filter(|_| !is_short(total_ms)) else { return Ok(whole) };
    if halvings > 0 {
        learned.learn(Refusal { refused_ms: total_ms, part_ms: longest_ms });
    }
    let windows = cut_windows(total_ms, longest_ms);
    let mut cuts = Vec::with_capacity(windows.len());
    for window in windows {
        cuts.push(cut(extraction.job, sound, window, from).await);
    }
    let split = Split::of(&ranges(total_ms, &cuts), sound.sent());
    Ok(split.map_or(whole, |split| Amount::Split(Box::new(split))))
}

/// Returns the longest part that fits into the size, in milliseconds; `None` if the whole track fits.
fn longest_by_size(limits: RecordingLimits, sound: &Sound) -> Option<u64> {
    let (size, method) = (limits.size?, *sound.part_methods().first()?);
    let fits = sound.most_seconds().is_some_and(|all| sound.estimate_of(method, all) <= size);
    let longest = millis(size as f64 * OF_THE_SIZE / sound.most_bytes_a_second(method));
    (!fits).then_some(longest.max(SHORTEST_PART_MS))
}

/// Returns the length of the sound track. One that the file only guesses is measured.
async fn total_millis(extraction: &Extraction<'_>, sound: &Sound, from: &File) -> Result<u64, NotExtracted> {
    if let Some(seconds) = sound.known_seconds() {
        return Ok(millis(seconds));
    }
    let from = reopen(from).await.map_err(|error| extraction.failed(DecodeError::Io(error).into()))?;
    let seconds = measure_track(from, sound).await.map_err(|error| extraction.failed(error.into()))?;
    Ok(millis(seconds))
}

/// Returns the second at which the sound is cut: the quietest one. The same file is always cut at the same second, so
/// that a part that was bought is found again.
async fn cut(job: &Job, sound: &Sound, window: CutWindow, from: &File) -> u64 {
    let heard = match reopen(from).await {
        Ok(from) => loudness(from, sound, window).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let levels = heard.unwrap_or_else(|error| {
        tracing::debug!(job = %job.id, %error, "cannot look for a pause; scribed cuts where the parts are equally long");
        Vec::new()
    });
    quietest_second(window, &levels)
}

fn millis(seconds: f64) -> u64 {
    (seconds * 1_000.0).ceil() as u64
}
