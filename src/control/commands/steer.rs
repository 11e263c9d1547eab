//! Commands that change single jobs: retry, cancel, bump.

use super::read_again::{ReadAgain, read_again};
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, JobSelector, Retried, RetryCost};
use crate::domain::fault::FaultKind;
use crate::domain::job::Job;
use crate::domain::names::{JobId, Timestamp};
use crate::domain::reason::reason;
use crate::domain::stage::{JobEvent, Skip, Stage, StageKind};
use crate::domain::zone::Zone;

/// What a command does with a job in its present state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// The event is applied to the job.
    Take(Box<JobEvent>, RetryCost),
    /// The job is processed now instead of when it is due.
    Look,
    /// The command is refused; the message says why.
    Decline(String),
}

/// How often a command is tried on a job that changes between the decision and the change.
const TRIES: u32 = 100;

/// Continues a job now. What is incomplete is read from the service again first: it may be whole there by now.
///
/// # Errors
/// [`CommandRefusal::Declined`] if there is nothing to retry, or if the job might be paid for twice.
pub async fn retry(handler: &CommandHandler, wanted: &JobSelector, pay_again: bool) -> Result<Retried, CommandRefusal> {
    let job = handler.job(wanted).await?;
    let read = if job.is_incomplete() { Some(read_again(handler, &job).await) } else { None };
    let decide = |job: &Job| match &read {
        Some(read) if job.is_incomplete() => retry_incomplete(job, read),
        _ => compare_retry(job, pay_again),
    };
    let (job, cost) = decide_and_apply(handler, wanted, &decide).await?;
    Ok(Retried { job: Box::new(job), cost })
}

/// Cancels a job.
///
/// # Errors
/// [`CommandRefusal::Declined`] if the job has ended, or if the service may just be accepting its create.
pub async fn cancel(handler: &CommandHandler, wanted: &JobSelector) -> Result<Job, CommandRefusal> {
    let (job, _) = decide_and_apply(handler, wanted, &|job| decide_cancel(job)).await?;
    Ok(job)
}

/// Moves a job to the front of the queue, also after restarts. If the job waits for anything but its turn, it still
/// waits for that.
///
/// # Errors
/// [`CommandRefusal::Declined`] if the job has ended.
pub async fn bump(handler: &CommandHandler, wanted: &JobSelector) -> Result<Job, CommandRefusal> {
    let job = handler.job(wanted).await?;
    if !handler.store.bump(job.id, handler.clock.now()).await?.is_done() {
        let words = format!("job {} has ended ({}), so it cannot be processed earlier", job.id, reason(&job));
        return Err(CommandRefusal::Declined(words));
    }
    tracing::info!(job = %job.id, path = %job.key.path, "a person moved a job before all others");
    handler.wake_engines();
    Ok(handler.for_display(handler.job(&JobSelector::Number(job.id)).await?).await?)
}

/// Decides with `decide` what to do with a job, and does it. If the job changes in between, starts again.
///
/// # Errors
/// [`CommandRefusal::Declined`] if `decide` declines, or if the job keeps changing; errors of the store.
pub(crate) async fn decide_and_apply(
    handler: &CommandHandler,
    wanted: &JobSelector,
    decide: &(dyn Fn(&Job) -> Step + Sync),
) -> Result<(Job, RetryCost), CommandRefusal> {
    for _ in 0..TRIES {
        let job = handler.job(wanted).await?;
        let now = handler.clock.now();
        let cost = match decide(&job) {
            Step::Decline(words) => return Err(CommandRefusal::Declined(words)),
            Step::Look => handler.store.wake(job.id, now).await?.is_done().then_some(RetryCost::Nothing),
            Step::Take(event, cost) => apply(handler, &job, *event, now).await?.then_some(cost),
        };
        let Some(cost) = cost else { continue };
        handler.wake_engines();
        return Ok((handler.job(&JobSelector::Number(job.id)).await?, cost));
    }
    let words = format!("{} keeps changing; nothing was done, try again", describe(wanted));
    Err(CommandRefusal::Declined(words))
}

async fn apply(handler: &CommandHandler, job: &Job, event: JobEvent, now: Timestamp) -> Result<bool, CommandRefusal> {
    let name = event.name();
    let taken = handler.store.overrule(job, event, now).await?.is_done();
    if taken {
        tracing::info!(job = %job.id, path = %job.key.path, from = job.stage.kind().name(), order = name, "a person's command changed a job");
        handler.wake_executor();
    }
    Ok(taken)
}

fn describe(wanted: &JobSelector) -> String {
    match wanted {
        JobSelector::Number(id) => format!("job {id}"),
        JobSelector::Path(place) | JobSelector::Typed { place, .. } => place.to_string(),
    }
}

pub(crate) fn compare_retry(job: &Job, pay_again: bool) -> Step {
    if pay_again && may_be_paid_twice(job) {
        return Step::Take(JobEvent::PaidAgain.into(), RetryCost::PerhapsTwice);
    }
    match &job.stage {
        // The service's list is read once more: it may have the transcription now. This buys nothing.
        Stage::Submitting { .. } if job.due.is_none() => Step::Look,
        Stage::Submitting { .. } => Step::Decline(unresolved(job)),
        Stage::Failed { .. } if may_be_paid_twice(job) => Step::Decline(gone(job.id)),
        Stage::Failed { .. } | Stage::Cancelled { .. } => {
            let cost = if job.stage.retry_buys() { RetryCost::Another } else { RetryCost::Nothing };
            Step::Take(JobEvent::Revived.into(), cost)
        }
        // The job starts from the beginning: the subtitle may be gone, or the setting may have changed.
        Stage::Skipped { why } if why.is_for_subtitles() => {
            Step::Take(JobEvent::Grew { stamp: job.seen }.into(), RetryCost::Nothing)
        }
        // Nothing is bought: what was bought before is on record, and its transcription is gone.
        Stage::Skipped { why: Skip::Erased } => {
            Step::Take(JobEvent::Grew { stamp: job.seen }.into(), RetryCost::Nothing)
        }
        Stage::Skipped { why: why @ (Skip::Vanished | Skip::RecordingGone) } => Step::Decline(format!(
            "job {} is skipped ({}): there is nothing to retry until its file is back",
            job.id,
            why.describe()
        )),
        Stage::Written { .. } | Stage::Skipped { .. } => {
            let what = format!("{} ({})", job.stage.kind().name(), reason(job));
            Step::Decline(
                format!("job {} is {what}: there is nothing to retry until its file changes", job.id)
                    + again(job).as_deref().unwrap_or_default(),
            )
        }
        _ => Step::Look,
    }
}

/// Returns what a retry does with an incomplete job, once its transcription was read from the service again. This buys
/// nothing. A kept result that could not be read is read again in any case: a later release may be able to.
fn retry_incomplete(job: &Job, read: &ReadAgain) -> Step {
    match read {
        ReadAgain::NoBetter | ReadAgain::Unread(_) if job.unread().is_none() => Step::Decline(incomplete(job, read)),
        _ => Step::Take(JobEvent::Revived.into(), RetryCost::Nothing),
    }
}

/// Says why an incomplete job stays as it is, and how to buy it again.
fn incomplete(job: &Job, read: &ReadAgain) -> String {
    let read = match read {
        ReadAgain::Unread(why) => format!("scribed could not read it from the service again: {why}"),
        _ => "scribed has read it from the service again, which has no more of it".to_owned(),
    };
    format!(
        "job {0} is {1}. {read}. It is paid for, and `retry` alone does not buy it again. To request what jobs.toml \
         says now, with another purchase if that differs: scribed retry --fresh {0}. To buy the same again: scribed \
         retry --fresh --pay-again {0}. To leave it as it is: scribed acknowledge {0}",
        job.id,
        reason(job)
    )
}

/// Says how to request a written job again with other settings.
fn again(job: &Job) -> Option<String> {
    let words =
        |id| format!(". To request it again with the current jobs.toml and sidecars: scribed retry --fresh {id}");
    matches!(job.stage, Stage::Written { .. }).then(|| words(job.id))
}

/// Whether another purchase might pay twice for a job: its create is unknown, or its transcription is stuck or lost and
/// may still come.
pub(crate) fn may_be_paid_twice(job: &Job) -> bool {
    match &job.stage {
        Stage::Submitting { .. } => true,
        Stage::Submitted { .. } => job.is_parked(),
        Stage::Failed { from, fault } => from.kind() == StageKind::Submitted && fault.kind == FaultKind::Gone,
        _ => false,
    }
}

fn decide_cancel(job: &Job) -> Step {
    match &job.stage {
        Stage::Submitting { .. } => Step::Decline(unresolved(job)),
        Stage::Failed { .. } => Step::Decline(format!(
            "job {0} has already ended: it failed. `scribed acknowledge {0}` acknowledges the failure",
            job.id
        )),
        stage if stage.is_end() => {
            Step::Decline(format!("job {} has already ended: it is {}", job.id, stage.kind().name()))
        }
        _ => Step::Take(JobEvent::Cancelled.into(), RetryCost::Nothing),
    }
}

/// Says what a job with an unknown create waits for, and until when.
pub(crate) fn unresolved(job: &Job) -> String {
    let until = match job.due {
        Some(due) => {
            let at = Zone::UTC.format_second(due);
            format!(
                "scribed reads the service's list for it at {at} or soon after, and the job then continues by \
                 itself"
            )
        }
        None => {
            format!("only a person can decide: {}. `scribed retry {}` reads the list once more", reason(job), job.id)
        }
    };
    format!(
        "job {}: the service may have accepted its create, which is not known yet; {until}. To buy it again now, \
         and perhaps pay twice: scribed retry --pay-again {}",
        job.id, job.id
    )
}

pub(crate) fn gone(id: JobId) -> String {
    format!(
        "job {id}: the service accepted its transcription but does not have it any more, so another purchase may \
         be paid for twice. To buy it anyway: scribed retry --pay-again {id}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fault::{Fault, FaultKind};
    use crate::domain::job::{JobKey, Stamp};
    use crate::domain::names::{Hash, ServiceName, SourceName, Timestamp, UploadId};
    use crate::domain::path::RelPath;
    use crate::domain::stage::{AudioAmount, AudioAt, Intent, UploadedAudio};
    use crate::domain::token::{PurchaseKey, Token};

    fn unknown(due: Option<Timestamp>) -> Job {
        let now = Timestamp(0);
        let key = JobKey { source: SourceName::new("s"), path: RelPath::new("a.wav") };
        let stamp = Stamp { size: 1, mtime_ns: 0, ctime_ns: 0, inode: 1 };
        let purchase_key =
            PurchaseKey { service: ServiceName::new("x"), content: Hash::of(b"c"), params: Hash::of(b"p"), part: None };
        let token = Token::new(&purchase_key, key.tag(), 0);
        let (origin, key_hash) = ("https://stt.example.org".to_owned(), String::new());
        let intent = Intent { token, origin, key: key_hash, service_date: None, sent_at: now };
        let upload = AudioAt::Upload(UploadedAudio { id: UploadId::new("u"), at: now, origin: None });
        let stage = Stage::Submitting { purchase_key, audio: AudioAmount::default(), upload, intent };
        let asks = Fault::new(FaultKind::Asks, "the list was asked under another key", now);
        Job { stage, ..Job::found(JobId(1), key, stamp, now, now) }.deferred(due, Some(asks))
    }

    #[test]
    fn a_person_who_was_asked_can_have_the_list_asked_again() {
        assert!(matches!(compare_retry(&unknown(None), false), Step::Look), "it buys nothing by itself");
        assert!(matches!(compare_retry(&unknown(Some(Timestamp(9))), false), Step::Decline(_)), "it is being asked");
        assert!(matches!(
            compare_retry(&unknown(None), true),
            Step::Take(event, RetryCost::PerhapsTwice) if matches!(*event, JobEvent::PaidAgain)
        ));
    }
}
