//! Uploaded ▷ Submitting ▷ Submitted: the one move that spends money. The intent is durable before the
//! create leaves; what became of the create decides where the job rests (design, section 5).

use crate::client::contract::{Client, CreateRequest, Creation, RequestAudio};
use crate::clock::Clock;
use crate::crash::{self, Point};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Timestamp, TranscriptionId};
use crate::domain::sent_audio::SentAudio;
use crate::domain::stage::{AudioAt, Intent, JobEvent};
use crate::domain::token::{PurchaseKey, RESERVED_KEY, Token};
use crate::pipeline::budget::gate::{BudgetGate, Deferral};
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::request::build::look_around;
use crate::pipeline::request::callback_address::CallbackAddresses;
use crate::pipeline::request::refresh::{kept, remade};
use crate::pipeline::stages::outcome::{StageOutcome, StageStop};
use crate::pipeline::stages::output_folders::OutputFolders;
use crate::pipeline::stages::remote_audio;
use crate::pipeline::stages::remote_audio::suppressed;
use crate::pipeline::stages::settle::{folder_away, grew, missing};
use crate::pipeline::stages::upload::without_buying;
use crate::pipeline::windows;
use crate::source::metadata::stamp::FileLook;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{Hold, Lease, Store};
use crate::store::params::ParamFiles;
use serde_json::Map;
use std::sync::Arc;
use std::time::Duration;

/// From the intent's commit to the create at most so long, on a clock that counts suspension; later,
/// the intent is written anew (design, section 5).
const FRESH: Duration = Duration::from_secs(5);

/// An upload older than this is sent again: the service may have dropped what nobody used (the
/// embedded one does after a day).
const UPLOAD_LASTS: Duration = Duration::from_secs(12 * 3600);

/// What became of an attempt to buy.
pub enum Submission {
    /// No create was sent.
    Unsent(StageOutcome),
    /// No create was sent: it does not fit into a budget.
    Over(Deferral),
    /// Accepted. The job as of its intent.
    Accepted(Box<Job>, TranscriptionId),
    /// Definitely not accepted. The job as of its intent.
    NotAccepted(Box<Job>, Fault),
    /// Nobody knows. The job as of its intent.
    Unknown(Box<Job>, Fault),
}

/// The doors this move goes through.
pub struct SubmitContext<'a> {
    /// The queue.
    pub store: &'a dyn Store,
    /// The service.
    pub client: &'a dyn Client,
    /// Time.
    pub clock: &'a dyn Clock,
    /// The kept parameters.
    pub params: &'a Arc<ParamFiles>,
    /// What may still be bought.
    pub budget_gate: &'a BudgetGate,
    /// Where the service is to call.
    pub callbacks: Option<&'a CallbackAddresses>,
    /// Whether outputs can be written.
    pub folders: &'a OutputFolders,
}

/// Buys, unless it is bought already or the file has changed. `lease` is left as of the last commit.
pub async fn run(
    context: &SubmitContext<'_>,
    mount: &Arc<Mount>,
    lease: &mut Lease,
    job: &Job,
    order: &PurchaseKey,
    upload: &AudioAt,
) -> Result<Submission, StageStop> {
    let now = context.clock.now();
    // Only this may hang in the folder; what follows must not be dropped half-way.
    let unfit = tokio::select! {
        biased;
        unfit = unfit(context, mount, job, (order, upload), now) => unfit,
        away = mount.lost() => Err(folder_away(&away, now)),
    };
    if let Some(outcome) = unfit? {
        return Ok(Submission::Unsent(outcome));
    }
    if let Some(outcome) = without_buying(context.store, order, job, now).await? {
        return Ok(Submission::Unsent(outcome));
    }
    let hindered = tokio::select! {
        biased;
        hindered = context.folders.hindered(context.store, context.clock, mount, job) => hindered,
        away = mount.lost() => Err(folder_away(&away, now)),
    };
    if let Some(Deferral { until, fault }) = hindered? {
        return Ok(Submission::Unsent(StageOutcome::Rest(until, fault)));
    }
    let token = Token::new(order, job.key.tag(), job.round);
    let request = request(context, mount, job, order, upload, &token, now).await?;
    loop {
        // The turn first: waiting for it must not make the intent old.
        let turn = context.client.turn().await;
        let until = context.clock.now();
        if context.store.pauses().await.map_err(StageStop::Store)?.of(&job.key.source, until).is_some() {
            return Ok(Submission::Unsent(StageOutcome::Sleep { until, reason: None }));
        }
        // What is sent at the last moment could leave after it. By then the window keeps it, whose clock may be set
        // back meanwhile.
        if !windows::has_time(mount.source(), FRESH, context.clock.wall()) {
            return Ok(Submission::Unsent(StageOutcome::Sleep { until: until.after(FRESH), reason: None }));
        }
        let written = context.clock.uptime();
        let (service, at) = ((&order.service, context.client.last_date()), context.clock.now());
        let reserved = context.budget_gate.before_create(context.store, mount, lease, job, service, at).await;
        if let Some(rest) = reserved.map_err(StageStop::Store)? {
            return Ok(Submission::Over(rest));
        }
        crash::point(Point::Reserved);
        let intended = intend(context, job, &token)?;
        crash::point(Point::Intending);
        context.store.commit(lease, &intended, Hold::Keep).await.map_err(StageStop::Store)?;
        *lease = lease.seeing(&intended);
        crash::point(Point::Intended);
        let shut = || !windows::has_time(mount.source(), Duration::ZERO, context.clock.wall());
        if context.clock.uptime().since(written) > FRESH || shut() {
            continue; // nothing was sent under it
        }
        let intended = Box::new(intended);
        let creation = context.client.create(turn, request).await;
        crash::point(Point::CreateAnswered);
        return Ok(match creation {
            Creation::Accepted(transcription) => Submission::Accepted(intended, transcription),
            Creation::NotAccepted(fault) => {
                let fault = suppressed(job, fault);
                Submission::NotAccepted(intended, fault)
            }
            Creation::Unknown(fault) => {
                let fault = suppressed(job, fault);
                Submission::Unknown(intended, fault)
            }
        });
    }
}

/// The file, its upload, or what is said of the recording is not what would be bought.
async fn unfit(
    context: &SubmitContext<'_>,
    mount: &Mount,
    job: &Job,
    (order, upload): (&PurchaseKey, &AudioAt),
    now: Timestamp,
) -> Result<Option<StageOutcome>, Fault> {
    let origin = &context.client.identity().origin;
    if let AudioAt::Upload(upload) = upload
        && (upload.origin.as_ref().is_some_and(|place| place != origin) || now.since(upload.at) > UPLOAD_LASTS)
    {
        return Ok(Some(StageOutcome::Step(JobEvent::UploadLost)));
    }
    let medium = MediaFile::of(mount, job);
    let is_seen = !matches!(medium, MediaFile::Remote(_));
    let (looked, around) = look_around(mount, medium, job).await;
    match looked {
        _ if !is_seen => {}
        Ok(FileLook::File(stamp)) if stamp == job.seen => {}
        Ok(FileLook::File(stamp)) => return grew(mount, stamp, now.after(mount.settle_of(job)), now).await.map(Some),
        other => return missing(mount, job, other, now).await.map(Some),
    }
    remade(context.params, mount, context.clock, (job, &order.params), &around).await
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
    // Whoever finds this after a crash cannot know whether the create left: it looks like an unknown one.
    let waits = Fault::new(FaultKind::Unknown, "a create may have been sent; the service's list is asked for it", now);
    let intended = job.clone().on(JobEvent::Intended { intent }, now).map_err(bug)?;
    Ok(intended.resting(Some(now), Some(waits)))
}

async fn request(
    context: &SubmitContext<'_>,
    mount: &Mount,
    job: &Job,
    order: &PurchaseKey,
    upload: &AudioAt,
    token: &Token,
    now: Timestamp,
) -> Result<CreateRequest, Fault> {
    let (params, pick) = kept(context.params, &order.params, now)?;
    let mut metadata = match &job.making {
        Some(making) => making.metadata.clone(),
        // Nothing is sent before it is made: see `remade`.
        None => Map::new(),
    };
    let cut = job.sent.as_ref().and_then(SentAudio::cut);
    metadata.insert(RESERVED_KEY.to_owned(), token.carrying(cut).into());
    let callback = context.callbacks.map(|callbacks| callbacks.of(job));
    let audio = match upload {
        AudioAt::Upload(upload) => RequestAudio::Upload(upload.id.clone()),
        AudioAt::Remote { .. } if pick.is_some() => {
            let words = "all of what the service fetches was to be bought in place of what is picked of it";
            return Err(Fault::new(FaultKind::Bug, words, now));
        }
        AudioAt::Remote { .. } => RequestAudio::Url(remote_audio::url(mount, job, now).await?),
    };
    Ok(CreateRequest { audio, params, metadata, callback })
}
