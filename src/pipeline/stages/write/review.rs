//! Checks a result against its recording before its outputs are made. Whatever goes wrong here fails no job: then the
//! result is checked without the audio, or not at all.

use crate::blocking::blocking;
use crate::clock::Clock;
use crate::domain::job::Job;
use crate::domain::names::TranscriptionId;
use crate::domain::review::Review;
use crate::domain::sent_audio::{ExtractedPart, SentAudio};
use crate::domain::token::PurchaseKey;
use crate::media::mixed_sound::SoundPart;
use crate::media::speech::{FoundSpeech, find_speech};
use crate::output::results::{RESULT_LIMIT, Results};
use crate::output::time_offset::{sent_part, shift_to_recording};
use crate::pipeline::stages::hear_recording::{hear, sent_channels};
use crate::pipeline::stages::write::WriteContext;
use crate::pipeline::stages::write::render::request_of;
use crate::review::{ReviewInput, ReviewRules, TimeSpan, UnreadSound, review};
use crate::source::mount::source_mount::Mount;
use crate::store::params::ParamFiles;
use crate::wire::record::Record;
use crate::wire::transcript_reader::ReadTranscript;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Checks the kept result of a job as the settings of its source say; `None` if it cannot be read, or if no check is
/// switched on.
pub(super) async fn review_result(
    context: &WriteContext<'_>,
    mount: &Mount,
    job: &Job,
    purchase_key: &PurchaseKey,
    transcription: &TranscriptionId,
) -> Option<Box<Review>> {
    let rules = mount.source().review;
    if rules.thresholds.checks.is_empty() {
        return None;
    }
    let kept = KeptResult {
        results: Arc::clone(context.results),
        params: Arc::clone(context.params),
        purchase_key: purchase_key.clone(),
        transcription: transcription.clone(),
        own: job.sent.clone(),
    };
    let sent = {
        let kept = kept.clone();
        unless_it_panics(job, move || kept.sent()).await.flatten()?
    };
    let begin = sent.part.map_or(0.0, |part| part.start_ms as f64 / 1e3);
    let length = job.stage.audio().map_or(0, |audio| audio.millis) as f64 / 1e3;
    let found = match without_audio(&rules, length) {
        Some(why) => Err(why.to_owned()),
        None => listen(context.clock, mount, job, sent.sound(length)).await,
    };
    // Only now is the result read whole: it may be large, and many jobs may have waited for their turn to listen.
    let checked = move || {
        let CheckedTranscript { speech, requested } = kept.transcript()?;
        let spans = found.as_ref().ok().map(|found| later(found, begin));
        // What was decoded is known better than what a service or a header says.
        let end = found.as_ref().map_or(length, |found| found.seconds) + begin;
        let none = UnreadSound::default();
        let heard = ReviewInput {
            transcript: speech.transcript(),
            requested: &requested,
            length: Some(end).filter(|end| *end > begin),
            speech: spans.as_deref(),
            unread: found.as_ref().map_or(&none, |found| &found.unread),
        };
        Some(Review::of(review(&heard, &rules.thresholds), found.err()))
    };
    unless_it_panics(job, checked).await.flatten().map(Box::new)
}

/// Runs work on text and numbers that others made. If it panics, that is logged, and the job goes on.
async fn unless_it_panics<T: Send + 'static>(job: &Job, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let done = blocking(move || catch_unwind(AssertUnwindSafe(work)).ok()).await;
    if done.is_none() {
        let (id, path) = (job.id, &job.key.path);
        tracing::warn!(job = %id, %path, "the check of a result broke off, which is a fault in scribed; the outputs are written without it");
    }
    done
}

/// The kept result of a job. Where it cannot be read, the rendering of the outputs says so.
#[derive(Clone)]
struct KeptResult {
    results: Arc<Results>,
    params: Arc<ParamFiles>,
    purchase_key: PurchaseKey,
    transcription: TranscriptionId,
    /// What the job itself sent: nothing if it uses what another job bought.
    own: Option<SentAudio>,
}

/// The sound that was sent.
struct SentSound {
    /// `None` if the whole file was sent.
    part: Option<ExtractedPart>,
    /// The channels, from 1; empty if all were sent.
    channels: Vec<u32>,
}

/// What is checked.
struct CheckedTranscript {
    /// With the times of the recording.
    speech: ReadTranscript,
    /// The languages of the request.
    requested: Vec<String>,
}

impl KeptResult {
    fn open(&self) -> Option<Vec<u8>> {
        self.results.open(&self.transcription, RESULT_LIMIT).ok()
    }

    fn own_part(&self) -> Option<ExtractedPart> {
        self.own.as_ref().and_then(SentAudio::cut)
    }

    fn sent(&self) -> Option<SentSound> {
        let part = sent_part(&Record::<IgnoredAny, _>::of_kept(&self.open()?).ok()?, self.own_part());
        let channels = sent_channels(self.own.as_ref(), &self.params, &self.purchase_key);
        Some(SentSound { part, channels })
    }

    fn transcript(&self) -> Option<CheckedTranscript> {
        let (_, record) = shift_to_recording(Cow::Owned(self.open()?), self.own_part()).ok()?;
        let requested =
            request_of(&self.params, &self.purchase_key, record.request_params.as_ref()).languages().to_vec();
        let speech = record.result.unwrap_or_default().transcription.unwrap_or_default();
        Some(CheckedTranscript { speech, requested })
    }
}

impl SentSound {
    fn sound(self, seconds: f64) -> SoundPart {
        SoundPart { track: self.part.map(|part| part.track), only: self.channels, seconds }
    }
}

fn without_audio(rules: &ReviewRules, length: f64) -> Option<&'static str> {
    let shortest = rules.thresholds.shortest_audio();
    match () {
        () if !rules.audio => Some("the setting `review.audio` is false"),
        () if shortest == Duration::MAX => Some("no check that is switched on needs it"),
        () if length > 0.0 && length < shortest.as_secs_f64() => Some("it is too short for a warning"),
        () => None,
    }
}

fn later(found: &FoundSpeech, begin: f64) -> Vec<TimeSpan> {
    found.spans.iter().map(|span| TimeSpan::new(span.start + begin, span.end + begin)).collect()
}

/// Searches the audio that was sent for speech; says why where that is not possible.
async fn listen(clock: &dyn Clock, mount: &Mount, job: &Job, part: SoundPart) -> Result<FoundSpeech, String> {
    let seconds = part.seconds;
    hear(clock, mount, job, seconds, move |file| async move { find_speech(file, &part).await }).await
}
