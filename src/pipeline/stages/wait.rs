//! Submitted ▷ Fetched: polls a transcription. The read that answers `done` brings the result.

use crate::backpressure::poll_schedule::PollSchedule;
use crate::blocking::{blocking, in_place_if};
use crate::client::contract::{Client, Identity, RecordEvidence, RecordState};
use crate::client::record_evidence::evidence;
use crate::clock::Clock;
use crate::config::model::ServiceTerms;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Timestamp, TranscriptionId};
use crate::domain::stage::{AudioAmount, JobEvent};
use crate::domain::time_span::time_span;
use crate::output::results::{RESULT_LIMIT, Results, describe_removal};
use crate::permission_errors::describe_error_at;
use crate::pipeline::log_limit::LogLimit;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::wire::bounded_value::BoundedValue;
use crate::wire::record::{Record, Status};
use crate::wire::result::ResultHead;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Up to this many bytes, a result is packed and saved sooner than another thread would begin.
const LITTLE: usize = 32 << 10;

/// Transcriptions that were seen `processing`, so that a step back is noticed. Kept only while the process lives, and
/// only for those that have not ended.
#[derive(Debug, Default)]
pub struct SeenProcessing(Mutex<HashSet<TranscriptionId>>);

impl SeenProcessing {
    fn ids(&self) -> MutexGuard<'_, HashSet<TranscriptionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this status is a step back. Notes a transcription that is `processing`.
    fn goes_back(&self, id: &TranscriptionId, status: &Status) -> bool {
        if *status == Status::Processing {
            self.ids().insert(id.clone());
        }
        *status == Status::Queued && self.ids().contains(id)
    }
}

/// What the stage handler works with.
pub struct WaitContext<'a> {
    pub client: &'a dyn Client,
    pub clock: &'a dyn Clock,
    pub results: &'a Arc<Results>,
    /// The configured terms of the service.
    pub terms: &'a ServiceTerms,
    /// Decides when to poll again.
    pub poll_schedule: &'a PollSchedule,
    /// The transcriptions that were seen `processing`.
    pub seen_processing: &'a SeenProcessing,
    /// Whether the service was asked for callbacks.
    pub calls: bool,
    /// Decides what has a log line of its own.
    pub log_limit: &'a LogLimit,
}

/// Result of a poll.
pub struct PollResult {
    pub outcome: StageOutcome,
    /// How long the service took from its acceptance to its end, by its own dates; `None` if it has not ended, or
    /// does not tell the dates. Our own outages and late polls do not count.
    pub took: Option<Duration>,
    /// Whose result was fetched, as far as its record says; `None` if none was, or if no service made it.
    pub evidence: Option<RecordEvidence>,
}

impl From<StageOutcome> for PollResult {
    fn from(outcome: StageOutcome) -> Self {
        Self { outcome, took: None, evidence: None }
    }
}

/// Polls a transcription, unless its result is kept here already. The result of parts is joined elsewhere (`join_parts`).
/// An answer that is in doubt is read again when a person asks for that; the kept one counts if the service does not
/// answer with a result.
pub async fn run(context: &WaitContext<'_>, job: &Job, transcription: &TranscriptionId) -> Result<PollResult, Fault> {
    match kept(context.results, transcription).await {
        Some(kept) if job.awaits_confirmation() => Ok(match poll(context, job, transcription).await {
            Ok(again) if again.evidence.is_some() => again,
            _ => kept,
        }),
        Some(kept) => Ok(kept),
        None => poll(context, job, transcription).await,
    }
}

async fn poll(context: &WaitContext<'_>, job: &Job, transcription: &TranscriptionId) -> Result<PollResult, Fault> {
    let WaitContext { client, clock, results, terms, poll_schedule, seen_processing, calls, .. } = context;
    if transcription.is_accepted() {
        if job.accepted.as_ref().is_some_and(|accepted| accepted.transcription == *transcription) {
            return Ok(StageOutcome::Step(JobEvent::Fetched { audio: AudioAmount::default() }).into());
        }
        let words = "the text that a person accepted for the recording is not in the state directory any more: accept the \
                     file again (`scribed accept`), or have the recording transcribed with `scribed retry --fresh`";
        return Err(Fault::new(FaultKind::Asks, words, clock.now()));
    }
    if let Some(words) = at_other_address(job, client.identity()) {
        return Err(Fault::new(FaultKind::Asks, words, clock.now()));
    }
    let reading = client.read(transcription).await?;
    let now = clock.now();
    if !matches!(reading, RecordState::Pending(_)) {
        seen_processing.ids().remove(transcription);
    }
    match reading {
        RecordState::Done { raw, audio, took, evidence } => {
            let (files, id) = (Arc::clone(results), transcription.clone());
            let is_little = raw.len() <= LITTLE;
            in_place_if(is_little, move || files.save(&id, &raw)).await.map_err(|error| {
                let error = describe_error_at(&error, results.folder());
                let words =
                    format!("cannot save the result in the state directory: {error}; scribed fetches it again later");
                Fault::new(FaultKind::Unwritable, words, now)
            })?;
            let age = took.unwrap_or_else(|| now.duration_since(job.since));
            poll_schedule.ended(job.id, audio, age, *calls);
            let outcome = StageOutcome::Step(JobEvent::Fetched { audio });
            Ok(PollResult { outcome, took, evidence: Some(evidence) })
        }
        RecordState::Pending(status) => {
            let goes_back = seen_processing.goes_back(transcription, &Status::parse(&status));
            Ok(pending(context, job, &status, goes_back, now).into())
        }
        // Reads may be late like lists.
        RecordState::Lost(fault) if fault.kind == FaultKind::Gone && now.duration_since(job.since) < terms.lag => {
            Ok(StageOutcome::Sleep { until: now.saturating_add(terms.poll.max.min(terms.lag)), reason: None }.into())
        }
        RecordState::Lost(fault) => {
            poll_schedule.forget(job.id);
            Err(with_removal(results, transcription, fault).await)
        }
    }
}

/// Says of a transcription that the service does not have that its result was here until it was removed for its age.
async fn with_removal(results: &Arc<Results>, transcription: &TranscriptionId, fault: Fault) -> Fault {
    let (results, id) = (Arc::clone(results), transcription.clone());
    match blocking(move || results.removed_at(&id)).await {
        Some(at) => Fault { words: format!("{}; its kept result was {}", fault.words, describe_removal(at)), ..fault },
        None => fault,
    }
}

/// Says why this service is not asked for a job's transcription: it is at another address than when the transcription
/// was bought, and what it says of an id that it may never have given means nothing. `None` if it may be asked.
pub fn at_other_address(job: &Job, identity: &Identity) -> Option<String> {
    let place = job.bought_at.as_ref().filter(|place| **place != identity.origin)?;
    let (service, id) = (&identity.service, job.id);
    Some(format!(
        "the transcription was bought at {place}, but service `{service}` is now at {}, and scribed does not ask \
         there for it. Put the old address back until the job has ended (`scribed drain`) and give the new \
         address a service name of its own; or, if it is the same service with all its transcriptions, confirm \
         that with `scribed retry {id}`",
        identity.origin
    ))
}

/// Returns the outcome for a result that is kept already; `None` if it is not.
pub async fn kept(results: &Arc<Results>, id: &TranscriptionId) -> Option<PollResult> {
    if !results.has(id) {
        return None; // the usual case
    }
    let (files, key) = (Arc::clone(results), id.clone());
    let raw = blocking(move || files.open(&key, RESULT_LIMIT)).await.ok()?;
    let record = Record::<ResultHead, BoundedValue>::of_kept(&raw).ok()?;
    let audio = record.result.as_ref()?.audio();
    let outcome = StageOutcome::Step(JobEvent::Fetched { audio });
    Some(PollResult { outcome, took: None, evidence: (!id.is_own()).then(|| evidence(&record)) })
}

/// Returns the outcome for a transcription that has not ended: when it is polled again, and what is odd about it.
pub fn pending(context: &WaitContext<'_>, job: &Job, status: &str, goes_back: bool, now: Timestamp) -> StageOutcome {
    let poll = &context.terms.poll;
    let age = now.duration_since(job.since);
    let reason = if age >= poll.give_up {
        let age = time_span(Duration::from_secs(age.as_secs()));
        let words =
            format!("the transcription is still {status} at the service after {age}; scribed polls rarely from now on");
        if !job.is_parked() && context.log_limit.has_line("stuck", now) {
            tracing::error!(job = %job.id, path = %job.key.path, reason = %words, "a transcription does not end");
        }
        Some(Fault::new(FaultKind::Stuck, words, now))
    } else {
        odd_status(status, goes_back).map(|words| Fault::new(FaultKind::Broken, words, now))
    };
    let wait = context.poll_schedule.pending(job.id, poll, age);
    StageOutcome::Sleep { until: context.poll_schedule.moment(now, wait), reason }
}

/// Describes a status that is neither on the way nor an end. Such a status is never taken for an end.
fn odd_status(status: &str, goes_back: bool) -> Option<String> {
    match Status::parse(status) {
        Status::Queued | Status::Processing if !goes_back => None,
        Status::Queued | Status::Processing => Some(format!(
            "the service reports {status} again, although the transcription was being processed; scribed polls \
             again"
        )),
        _ => Some(format!("the service reports the unknown status `{status}`; scribed polls again")),
    }
}
