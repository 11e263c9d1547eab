//! Uploaded ▷ Submitting ▷ Submitted: the one stage that spends money. The intent is durable before the create is
//! sent. What became of the create decides the next stage. See `docs/explanation/guarantees.md`, "Nothing is paid
//! twice".

use crate::client::contract::{Client, Creation};
use crate::clock::Clock;
use crate::crash_points::{self, Point};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Timestamp, TranscriptionId};
use crate::domain::stage::{AudioAt, Intent, JobEvent};
use crate::domain::token::{PurchaseKey, Token};
use crate::pipeline::budget::{BudgetGate, Deferral};
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::request::callback_address::CallbackAddresses;
use crate::pipeline::request::{create_request, look_with_settings, refresh};
use crate::pipeline::stages::faults::folder_away;
use crate::pipeline::stages::known_purchase::reuse_purchase;
use crate::pipeline::stages::outcome::{StageOutcome, StageStop};
use crate::pipeline::stages::output_folders::OutputFolders;
use crate::pipeline::stages::remote_audio::redact_address;
use crate::pipeline::stages::source_changes::{file_changed, file_missing};
use crate::pipeline::windows;
use crate::source::metadata::file_look::FileLook;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{Hold, Lease, Store, StoreError};
use crate::store::params::ParamFiles;
use std::sync::Arc;
use std::time::Duration;

/// Longest time from the commit of the intent to the create, on a clock that counts suspension. After it, the intent
/// is recorded again.
const FRESH: Duration = Duration::from_secs(5);

/// An upload older than this is sent again: the service may have dropped it as unused (the embedded service does so
/// after a day).
const UPLOAD_LASTS: Duration = Duration::from_secs(12 * 3600);

/// Outcome of an attempt to buy.
pub enum Submission {
    /// No create was sent.
    Unsent(Box<StageOutcome>),
    /// The create was accepted. Has the job as of its intent.
    Accepted(Box<Job>, TranscriptionId),
    /// The create was definitely not accepted. Has the job as of its intent.
    NotAccepted(Box<Job>, Fault),
    /// It is not known whether the create was accepted. Has the job as of its intent.
    Unknown(Box<Job>, Fault),
}

/// What the stage handler works with.
pub struct SubmitContext<'a> {
    pub store: &'a dyn Store,
    pub client: &'a dyn Client,
    pub clock: &'a dyn Clock,
    pub params: &'a Arc<ParamFiles>,
    pub budget_gate: &'a BudgetGate,
    /// Where the service sends its callbacks.
    pub callbacks: Option<&'a CallbackAddresses>,
    /// Whether outputs can be written.
    pub folders: &'a OutputFolders,
}

/// Buys, unless the result is bought already or the file has changed. `lease` is left as of the last commit.
pub async fn run(
    context: &SubmitContext<'_>,
    mount: &Arc<Mount>,
    lease: &mut Lease,
    job: &Job,
    purchase_key: &PurchaseKey,
    upload: &AudioAt,
) -> Result<Submission, StageStop> {
    if let Some(outcome) = buys_nothing(context, mount, job, (purchase_key, upload)).await? {
        return Ok(Submission::Unsent(outcome.into()));
    }
    let token = Token::new(purchase_key, job.key.tag(), job.purchase_number);
    let of = (purchase_key, upload, &token);
    let request = create_request(context.params, context.callbacks, mount, job, of, context.clock.now()).await?;
    loop {
        // The turn comes first: the intent must not grow old while the turn is awaited.
        let turn = context.client.turn().await;
        if let Some(outcome) = may_not_submit_now(context, mount, job).await? {
            return Ok(Submission::Unsent(outcome.into()));
        }
        let (written, budget) = (context.clock.uptime(), context.budget_gate.edition());
        if let Some(outcome) = reserve(context, mount, lease, job, purchase_key).await.map_err(StageStop::Store)? {
            return Ok(Submission::Unsent(outcome.into()));
        }
        crash_points::point(Point::Reserved);
        let intended = intend(context, job, &token)?;
        crash_points::point(Point::Intending);
        context.store.commit(lease, &intended, Hold::Keep).await.map_err(StageStop::Store)?;
        *lease = lease.seeing(&intended);
        crash_points::point(Point::Intended);
        let is_closed = || !windows::has_time(mount.source(), Duration::ZERO, context.clock.wall());
        let is_replaced = || context.budget_gate.edition() != budget;
        if context.clock.uptime().since(written) > FRESH || is_closed() || is_replaced() {
            continue; // nothing was sent with this intent
        }
        let creation = context.client.create(turn, request).await;
        crash_points::point(Point::CreateAnswered);
        return Ok(match creation {
            Creation::Accepted(transcription) => Submission::Accepted(Box::new(intended), transcription),
            Creation::NotAccepted(fault) => Submission::NotAccepted(Box::new(intended), redact_address(job, fault)),
            Creation::Unknown(fault) => Submission::Unknown(Box::new(intended), redact_address(job, fault)),
        });
    }
}

/// Returns the outcome for a job for which nothing is to be bought: its request has changed, it is bought already, or
/// its outputs cannot be written.
async fn buys_nothing(
    context: &SubmitContext<'_>,
    mount: &Arc<Mount>,
    job: &Job,
    of: (&PurchaseKey, &AudioAt),
) -> Result<Option<StageOutcome>, Fault> {
    let now = context.clock.now();
    // Only the two checks may hang in the folder. What follows them must not be dropped half-way.
    let outdated = tokio::select! {
        biased;
        outdated = check_current(context, mount, job, of, now) => outdated,
        away = mount.wait_until_away() => Err(folder_away(&away, now)),
    };
    if let Some(outcome) = outdated? {
        return Ok(Some(outcome));
    }
    if let Some(outcome) = reuse_purchase(context.store, of.0, job, context.client.identity(), now).await? {
        return Ok(Some(outcome));
    }
    let not_writable = tokio::select! {
        biased;
        not_writable = context.folders.check_writable(context.store, context.clock, mount, job) => not_writable,
        away = mount.wait_until_away() => Err(folder_away(&away, now)),
    };
    Ok(not_writable?.map(|Deferral { until, fault }| StageOutcome::Rest(until, fault)))
}

/// Returns the outcome during a pause, or if the window is closed or is about to be.
async fn may_not_submit_now(
    context: &SubmitContext<'_>,
    mount: &Mount,
    job: &Job,
) -> Result<Option<StageOutcome>, StageStop> {
    let until = context.clock.now();
    if context.store.pauses().await.map_err(StageStop::Store)?.for_source(&job.key.source, until).is_some() {
        return Ok(Some(StageOutcome::Sleep { until, reason: None }));
    }
    // A create that is begun at the last moment could be sent after it. The job rests until after that moment; then
    // the window decides, since its clock may be set back meanwhile.
    let has_time = windows::has_time(mount.source(), FRESH, context.clock.wall());
    Ok((!has_time).then(|| StageOutcome::Sleep { until: until.saturating_add(FRESH), reason: None }))
}

async fn reserve(
    context: &SubmitContext<'_>,
    mount: &Mount,
    lease: &Lease,
    job: &Job,
    purchase_key: &PurchaseKey,
) -> Result<Option<StageOutcome>, StoreError> {
    let (service, at) = ((&purchase_key.service, context.client.last_date()), context.clock.now());
    let deferral = context.budget_gate.reserve_for_create(context.store, mount, lease, job, service, at).await?;
    // The job gives up its upload: it may rest for longer than the service keeps unused uploads, and must not be in
    // the way of others.
    Ok(deferral.map(|Deferral { until, fault }| StageOutcome::StepThenRest(JobEvent::UploadLost, until, fault)))
}

/// Returns the outcome if the file, its upload or its settings are not what would be bought.
async fn check_current(
    context: &SubmitContext<'_>,
    mount: &Mount,
    job: &Job,
    (purchase_key, upload): (&PurchaseKey, &AudioAt),
    now: Timestamp,
) -> Result<Option<StageOutcome>, Fault> {
    let origin = &context.client.identity().origin;
    if let AudioAt::Upload(upload) = upload
        && (upload.origin.as_ref().is_some_and(|place| place != origin) || now.duration_since(upload.at) > UPLOAD_LASTS)
    {
        return Ok(Some(StageOutcome::Step(JobEvent::UploadLost)));
    }
    let (looked, beside) = look_with_settings(mount, MediaFile::of(mount, job), job).await;
    match looked {
        _ if job.is_remote() => {}
        Ok(FileLook::File(stamp)) if stamp == job.seen => {}
        Ok(FileLook::File(stamp)) => {
            return file_changed(mount, stamp, now.saturating_add(mount.settle_of(job)), now).await.map(Some);
        }
        other => return file_missing(mount, job, other, now).await.map(Some),
    }
    refresh(context.params, mount, context.clock, (job, &purchase_key.params), &beside).await
}

fn intend(context: &SubmitContext<'_>, job: &Job, token: &Token) -> Result<Job, StageStop> {
    let now = context.clock.now();
    let identity = context.client.identity();
    let intent = Intent {
        token: token.clone(),
        origin: identity.origin.clone(),
        key: identity.key.clone(),
        service_date: context.client.last_date(),
        sent_at: now,
    };
    let bug = |error: crate::domain::stage::IllegalTransition| Fault::new(FaultKind::Bug, error.to_string(), now);
    // Whoever finds this after a crash cannot know whether the create was sent: it counts as an unknown create.
    let words = "scribed sends a create; if its answer is lost, scribed searches the service's list for it";
    let waits = Fault::new(FaultKind::Unknown, words, now);
    let intended = job.clone().apply(JobEvent::Intended { intent }, now).map_err(bug)?;
    Ok(intended.deferred(Some(now), Some(waits)))
}
