//! Submitted ▷ Fetched: asks whether it has ended. The read that answers `done` is the fetch.

use crate::client::contract::{Client, Reading};
use crate::clock::Clock;
use crate::config::meant::{Poll, Terms};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Timestamp, TranscriptionId};
use crate::domain::stage::{Audio, Event};
use crate::output::results::Results;
use crate::pipeline::blocking::blocking;
use crate::pipeline::outcome::Outcome;
use std::sync::Arc;
use std::time::Duration;

/// A result larger than this is not one.
pub const RESULT_LIMIT: u64 = 256 << 20;

/// Reads it, unless it is kept here already.
pub async fn run(
    client: &dyn Client,
    clock: &dyn Clock,
    results: &Arc<Results>,
    terms: &Terms,
    job: &Job,
    transcription: &TranscriptionId,
) -> Result<Outcome, Fault> {
    if let Some(audio) = kept(results, transcription).await {
        return Ok(Outcome::Step(Event::Fetched { audio }));
    }
    let reading = client.read(transcription).await?;
    let now = clock.now();
    match reading {
        Reading::Done { raw, audio } => {
            let (files, id) = (Arc::clone(results), transcription.clone());
            blocking(move || files.keep(&id, &raw)).await.map_err(|error| {
                let words = format!("cannot keep the result in the state directory: {error}; it is fetched again");
                Fault::new(FaultKind::Unwritable, words, now)
            })?;
            Ok(Outcome::Step(Event::Fetched { audio }))
        }
        Reading::Pending(status) => Ok(pending(&terms.poll, job, &status, now)),
        // What lists show late, reads may show late too.
        Reading::Lost(fault) if fault.kind == FaultKind::Gone && now.since(job.since) < terms.lag => {
            Ok(Outcome::Sleep { until: now.after(terms.poll.max.min(terms.lag)), reason: None })
        }
        Reading::Lost(fault) => Err(fault),
    }
}

async fn kept(results: &Arc<Results>, id: &TranscriptionId) -> Option<Audio> {
    let (files, id) = (Arc::clone(results), id.clone());
    let raw = blocking(move || files.open(&id, RESULT_LIMIT)).await.ok()?;
    let record: crate::wire::record::Record<crate::wire::result::ResultHead> = serde_json::from_slice(&raw).ok()?;
    Some(record.result?.audio())
}

fn pending(poll: &Poll, job: &Job, status: &str, now: Timestamp) -> Outcome {
    let age = now.since(job.since);
    let until = now.after(interval(poll, age));
    let reason = (age >= poll.give_up).then(|| {
        let age = humantime::format_duration(Duration::from_secs(age.as_secs()));
        let words = format!("still {status} at the service after {age}; it is asked rarely from now on");
        Fault::new(FaultKind::Stuck, words, now)
    });
    Outcome::Sleep { until, reason }
}

/// A quarter of the age, between `min` and `max`; past `give_up` ten times `max`.
fn interval(poll: &Poll, age: Duration) -> Duration {
    if age >= poll.give_up { poll.max * 10 } else { (age / 4).clamp(poll.min, poll.max) }
}
