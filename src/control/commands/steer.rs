//! Orders to single jobs, and to the queue as a whole.

use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, JobSelector, Retried, RetryCost};
use crate::domain::fault::FaultKind;
use crate::domain::job::Job;
use crate::domain::names::{JobId, Timestamp};
use crate::domain::reason::reason;
use crate::domain::stage::{JobEvent, Skip, Stage, StageKind};
use crate::domain::zone::Zone;

/// What a person's order comes to for a job as it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// This happens to it.
    Take(JobEvent, RetryCost),
    /// It is looked at now.
    Look,
    /// Nothing; why, in words.
    Decline(String),
}

/// A job that moves so often between being looked at and being told is not waited for any longer.
const TRIES: u32 = 100;

/// A job goes on now.
///
/// # Errors
/// [`CommandRefusal::Declined`] where there is nothing to retry, or where it might be paid for twice.
pub async fn retry(handler: &CommandHandler, wanted: &JobSelector, pay_again: bool) -> Result<Retried, CommandRefusal> {
    let (job, cost) = decide_and_apply(handler, wanted, &|job| compare_retry(job, pay_again)).await?;
    Ok(Retried { job: Box::new(job), cost })
}

/// A job is given up.
///
/// # Errors
/// [`CommandRefusal::Declined`] where it has ended, or a create of it may be on its way.
pub async fn cancel(handler: &CommandHandler, wanted: &JobSelector) -> Result<Job, CommandRefusal> {
    let (job, _) = decide_and_apply(handler, wanted, &|job| weigh_cancel(job)).await?;
    Ok(job)
}

/// A job comes before all others, also over restarts. What it waits for beside its turn it goes on to wait for.
///
/// # Errors
/// [`CommandRefusal::Declined`] where it has ended.
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

/// Weighs and tells, again where the job has moved in between.
pub(crate) async fn decide_and_apply(
    handler: &CommandHandler,
    wanted: &JobSelector,
    compare: &(dyn Fn(&Job) -> Step + Sync),
) -> Result<(Job, RetryCost), CommandRefusal> {
    for _ in 0..TRIES {
        let job = handler.job(wanted).await?;
        let now = handler.clock.now();
        let cost = match compare(&job) {
            Step::Decline(words) => return Err(CommandRefusal::Declined(words)),
            Step::Look => handler.store.wake(job.id, now).await?.is_done().then_some(RetryCost::Nothing),
            Step::Take(event, cost) => take(handler, &job, event, now).await?.then_some(cost),
        };
        let Some(cost) = cost else { continue };
        handler.wake_engines();
        return Ok((handler.job(&JobSelector::Number(job.id)).await?, cost));
    }
    let words = format!("{} keeps changing; nothing was done, try again", named(wanted));
    Err(CommandRefusal::Declined(words))
}

async fn take(handler: &CommandHandler, job: &Job, event: JobEvent, now: Timestamp) -> Result<bool, CommandRefusal> {
    let name = event.name();
    let taken = handler.store.overrule(job, event, now).await?.is_done();
    if taken {
        tracing::info!(job = %job.id, path = %job.key.path, from = job.stage.kind().name(), order = name, "a person's command changed a job");
        handler.wake_executor();
    }
    Ok(taken)
}

fn named(wanted: &JobSelector) -> String {
    match wanted {
        JobSelector::Number(id) => format!("job {id}"),
        JobSelector::Path(place) | JobSelector::Typed { place, .. } => place.to_string(),
    }
}

pub(crate) fn compare_retry(job: &Job, pay_again: bool) -> Step {
    if pay_again && may_be_paid_twice(job) {
        return Step::Take(JobEvent::PaidAgain, RetryCost::PerhapsTwice);
    }
    match &job.stage {
        // The list is asked once more: it may tell now what it could not tell then. Nothing is bought by that.
        Stage::Submitting { .. } if job.due.is_none() => Step::Look,
        Stage::Submitting { .. } => Step::Decline(unresolved(job)),
        Stage::Failed { .. } if may_be_paid_twice(job) => Step::Decline(gone(job.id)),
        Stage::Failed { .. } | Stage::Cancelled { .. } => {
            let cost = if job.stage.retry_buys() { RetryCost::Another } else { RetryCost::Nothing };
            Step::Take(JobEvent::Revived, cost)
        }
        // It is looked at anew; the subtitle may be gone, or the setting another.
        Stage::Skipped { why: Skip::Subtitled } => Step::Take(JobEvent::Grew { stamp: job.seen }, RetryCost::Nothing),
        // The answer is kept: it is read again, by a later release perhaps. Nothing is bought by that.
        Stage::Written { .. } if job.unread().is_some() => Step::Take(JobEvent::Revived, RetryCost::Nothing),
        Stage::Written { .. } if job.is_incomplete() => Step::Decline(incomplete(job)),
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

/// Of what lacks something: how it is bought again. What it was bought with would only bring the same result again.
fn incomplete(job: &Job) -> String {
    format!(
        "job {0} is {1}. It is paid for, and `retry` alone does not buy it again. To request what jobs.toml says \
         now, with another purchase if that differs: scribed retry --fresh {0}. To buy the same again: scribed \
         retry --fresh --pay-again {0}. To accept it as it is: scribed acknowledge {0}",
        job.id,
        reason(job)
    )
}

/// Of what is done: how it is done otherwise.
fn again(job: &Job) -> Option<String> {
    let words =
        |id| format!(". To request it again with the current jobs.toml and sidecars: scribed retry --fresh {id}");
    matches!(job.stage, Stage::Written { .. }).then(|| words(job.id))
}

/// Something was, or may have been, bought for it that may be worth its money after all: an unknown
/// create, a transcription that is stuck or gone.
pub(crate) fn may_be_paid_twice(job: &Job) -> bool {
    match &job.stage {
        Stage::Submitting { .. } => true,
        Stage::Submitted { .. } => job.is_parked(),
        Stage::Failed { from, fault } => from.kind() == StageKind::Submitted && fault.kind == FaultKind::Gone,
        _ => false,
    }
}

fn weigh_cancel(job: &Job) -> Step {
    match &job.stage {
        Stage::Submitting { .. } => Step::Decline(unresolved(job)),
        Stage::Failed { .. } => Step::Decline(format!(
            "job {0} has already ended: it failed. `scribed acknowledge {0}` acknowledges the failure",
            job.id
        )),
        stage if stage.is_end() => {
            Step::Decline(format!("job {} has already ended: it is {}", job.id, stage.kind().name()))
        }
        _ => Step::Take(JobEvent::Cancelled, RetryCost::Nothing),
    }
}

/// What is awaited, and until when.
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
        let order = PurchaseKey { service: ServiceName::new("x"), content: Hash::of(b"c"), params: Hash::of(b"p") };
        let token = Token::new(&order, key.tag(), 0);
        let (origin, key_hash) = ("https://stt.example.org".to_owned(), String::new());
        let intent = Intent { token, origin, key: key_hash, service_date: None, sent_at: now };
        let upload = AudioAt::Upload(UploadedAudio { id: UploadId::new("u"), at: now, origin: None });
        let stage = Stage::Submitting { order, audio: AudioAmount::default(), upload, intent };
        let asks = Fault::new(FaultKind::Asks, "the list was asked under another key", now);
        Job { stage, ..Job::found(JobId(1), key, stamp, now, now) }.deferred(due, Some(asks))
    }

    #[test]
    fn a_person_who_was_asked_can_have_the_list_asked_again() {
        assert!(matches!(compare_retry(&unknown(None), false), Step::Look), "it buys nothing by itself");
        assert!(matches!(compare_retry(&unknown(Some(Timestamp(9))), false), Step::Decline(_)), "it is being asked");
        assert!(matches!(
            compare_retry(&unknown(None), true),
            Step::Take(JobEvent::PaidAgain, RetryCost::PerhapsTwice)
        ));
    }
}
