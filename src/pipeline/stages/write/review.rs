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
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::upload::stream::open_unchanged;
use crate::pipeline::stages::write::WriteContext;
use crate::pipeline::stages::write::render::request_of;
use crate::review::{ReviewInput, ReviewRules, TimeSpan, review};
use crate::source::mount::source_mount::Mount;
use crate::store::params::ParamFiles;
use crate::wire::record::Record;
use crate::wire::transcript_reader::ReadTranscript;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::sync::Semaphore;

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
        let heard = ReviewInput {
            transcript: speech.transcript(),
            requested: &requested,
            length: Some(end).filter(|end| *end > begin),
            speech: spans.as_deref(),
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
        let channels = match &self.own {
            Some(SentAudio::Audio(track)) => track.only.clone(),
            Some(SentAudio::Original { .. }) => Vec::new(),
            None => self.ordered_channels().unwrap_or_default(),
        };
        Some(SentSound { part, channels })
    }

    fn ordered_channels(&self) -> Option<Vec<u32>> {
        let (_, selection) = self.params.order(&self.purchase_key.params).ok()?;
        Some(selection?.channels()?.numbers().to_vec())
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

/// The files that are decoded at once: half of the processors, since recordings that wait for their upload are worth
/// more.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    Semaphore::new((cores / 2).max(1))
});

/// Returns how long a job waits for its turn and its decoder together: ten minutes and a twentieth of the recording.
/// A slow computer decodes sound fifty times faster than it lasts.
fn time_limit(length: f64) -> Duration {
    let share = Duration::try_from_secs_f64(length / 20.0).unwrap_or_default();
    Duration::from_secs(600).saturating_add(share)
}

/// Searches the audio that was sent for speech; says why where that is not possible.
async fn listen(clock: &dyn Clock, mount: &Mount, job: &Job, part: SoundPart) -> Result<FoundSpeech, String> {
    let MediaFile::File { path, disk } = MediaFile::of(mount, job) else {
        return Err("the recording is not on this machine".to_owned());
    };
    let (seen, limit) = (job.seen, time_limit(part.seconds));
    let work = async {
        let _turn = TURNS.acquire().await.map_err(|closed| closed.to_string())?;
        mount.check_now().await.map_err(|away| away.to_string())?;
        let opened = blocking(move || open_unchanged(&path, disk, seen).and_then(check_is_media)).await;
        let file = opened.map_err(|error| format!("the recording cannot be read: {error}"))?;
        find_speech(file, &part).await.map_err(|error| error.to_string())
    };
    tokio::select! {
        biased;
        found = work => found,
        () = clock.sleep(limit) => Err("it took too long".to_owned()),
    }
}

/// Refuses a file of text: no program need be started to see that it is no recording.
fn check_is_media(file: File) -> io::Result<File> {
    let mut head = [0; 1024];
    let read = file.read_at(&mut head, 0)?;
    let head = &head[..read];
    // A character may be cut at the end.
    let is_text = std::str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true);
    match is_text && !head.contains(&0) {
        true => Err(io::Error::other("it is no recording")),
        false => Ok(file),
    }
}
