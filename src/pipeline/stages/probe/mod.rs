//! Settled ▷ Probed: decides whether a recording is worth sending, and under which parameters. The content is hashed
//! here only if that may save an upload.

mod checksum;

use crate::blocking::blocking;
use crate::client::contract::Identity;
use crate::clock::Clock;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Hash, Timestamp};
use crate::domain::request_record::RequestRecord;
use crate::domain::stage::{JobEvent, Skip};
use crate::domain::token::PurchaseKey;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::request::{BesideSettings, build_unless_held, stored_params};
use crate::pipeline::stages::faults::{self, store_fault};
use crate::pipeline::stages::foreign_subtitles::{FoundSubtitles, contains_subtitles, exclude_ours};
use crate::pipeline::stages::known_purchase::known_purchase;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::probe::checksum::{ChecksumResult, inspect};
use crate::pipeline::stages::source_changes::{file_changed, file_missing};
use crate::source::metadata::file_look::{FileLook, stat};
use crate::source::mount::source_mount::Mount;
use crate::store::contract::Store;
use crate::store::params::ParamFiles;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A read may take this long …
const PATIENCE: Duration = Duration::from_secs(300);

/// … and longer by the file's size at this rate, in bytes a second. A read that takes longer hangs.
const SLOWEST: u64 = 1_000_000;

/// Checks the file and builds its request. Hashes the file if that may save an upload.
pub async fn run(
    store: &dyn Store,
    identity: &Identity,
    params: &ParamFiles,
    mount: &Arc<Mount>,
    clock: &dyn Clock,
    job: &Job,
) -> Result<StageOutcome, Fault> {
    let now = clock.now();
    let medium = MediaFile::of(mount, job);
    let alike = store.may_have_duplicate(job.seen.size, job.id).await.map_err(|error| store_fault(&error, now))?;
    let unread = medium.unread(&job.seen);
    let was_bought = job.made_from.is_some() || !job.outputs.is_empty();
    let wants_hash = unread.is_none() && (alike || was_bought);
    let limit = PATIENCE.saturating_add(Duration::from_secs(job.seen.size / SLOWEST));
    let seen = tokio::select! {
        biased;
        seen = read_file(mount, &medium, job, wants_hash) => Some(seen),
        () = clock.sleep(limit) => None,
    };
    let Some(ProbedFile { looked, found, beside, subtitles, has_tracks }) = seen else {
        let words = format!(
            "scribed gave up reading the file after {limit:?}: the disk or share is too slow, or does not answer"
        );
        return Err(Fault::new(FaultKind::Unreadable, words, now));
    };
    if let Some(outcome) = check_file(mount, job, looked, now).await? {
        return Ok(outcome);
    }
    let found = found.map_err(|error| faults::unread(&medium, &error, now))?;
    let content = unread.or(found.content(now)?);
    let (params, record) = match build_request(params, mount, clock, job, content, &beside).await? {
        Ok(built) => built,
        Err(outcome) => return Ok(outcome),
    };
    let purchase_key =
        content.map(|content| PurchaseKey { service: identity.service.clone(), content, params, part: None });
    if let Some(outcome) =
        skip_subtitled(store, identity, mount, job, purchase_key.as_ref(), (subtitles, has_tracks), now).await?
    {
        return Ok(outcome);
    }
    Ok(StageOutcome::Step(JobEvent::Probed { params, content, request_record: record }))
}

/// Returns the outcome for a file that is not what was settled, or that is empty. Remote audio cannot be looked at
/// here.
async fn check_file(
    mount: &Mount,
    job: &Job,
    looked: io::Result<FileLook>,
    now: Timestamp,
) -> Result<Option<StageOutcome>, Fault> {
    match looked {
        _ if job.is_remote() => Ok(None),
        Ok(FileLook::File(stamp)) if stamp != job.seen => {
            file_changed(mount, stamp, now.saturating_add(mount.settle_of(job)), now).await.map(Some)
        }
        Ok(FileLook::File(stamp)) => {
            Ok((stamp.size == 0).then_some(StageOutcome::Step(JobEvent::Skipped { why: Skip::Empty })))
        }
        other => file_missing(mount, job, other, now).await.map(Some),
    }
}

/// What the probe sees of a job's recording and around it.
struct ProbedFile {
    looked: io::Result<FileLook>,
    /// Whether the file has its checksum, if it is as it was settled.
    found: io::Result<ChecksumResult>,
    beside: BesideSettings,
    subtitles: Option<FoundSubtitles>,
    /// Whether the file contains subtitles that matter.
    has_tracks: bool,
}

/// Reads all of it, in one blocking call if the recording is on this machine.
async fn read_file(mount: &Arc<Mount>, medium: &MediaFile, job: &Job, wants_hash: bool) -> ProbedFile {
    let (shared_mount, owned_job) = (Arc::clone(mount), job.clone());
    let MediaFile::File { path, disk } = medium.clone() else {
        let (looked, content) = medium.looked_into(job.seen, wants_hash).await;
        let beside = blocking(move || BesideSettings::read(shared_mount.source(), &owned_job)).await;
        let subtitles = FoundSubtitles::find(mount, job).await;
        return ProbedFile { looked, found: content.map(ChecksumResult::Right), beside, subtitles, has_tracks: false };
    };
    blocking(move || {
        let looked = stat(&path, disk);
        let is_same = matches!(looked, Ok(FileLook::File(stamp)) if stamp == owned_job.seen && stamp.size > 0);
        let found = match is_same {
            true => inspect(shared_mount.bags(), &path, owned_job.row.as_deref(), wants_hash),
            false => Ok(ChecksumResult::Right(None)),
        };
        let beside = BesideSettings::read(shared_mount.source(), &owned_job);
        let has_tracks = is_same && contains_subtitles(&path, shared_mount.source(), &owned_job);
        let subtitles = FoundSubtitles::find_here(&shared_mount, &owned_job);
        ProbedFile { looked, found, beside, subtitles, has_tracks }
    })
    .await
}

type ParamsAndRecord = (Hash, Option<Box<RequestRecord>>);

/// Returns the parameters that are sent, and what is stored of the request. If the content was bought before, its
/// parameters stay, so that the same purchase is found. Only other content makes a new purchase.
async fn build_request(
    files: &ParamFiles,
    mount: &Mount,
    clock: &dyn Clock,
    job: &Job,
    content: Option<Hash>,
    beside: &BesideSettings,
) -> Result<Result<ParamsAndRecord, StageOutcome>, Fault> {
    let bought = job.made_from.as_ref().filter(|made| Some(made.content) == content);
    let built = match build_unless_held(mount, clock, job, beside).await {
        // What was paid for is not lost because of settings that were written beside it since.
        Err(_) if let Some(bought) = bought => return Ok(Ok((bought.params, None))),
        built => built?,
    };
    let built = match built {
        Ok(built) => built,
        Err(outcome) => return Ok(Err(outcome)),
    };
    let params = match bought {
        Some(bought) => bought.params,
        None => stored_params::keep(files, &built.rendered, clock.now())?,
    };
    Ok(Ok((params, Some(Box::new(built.record)))))
}

/// Returns the outcome for a recording that has subtitles by someone else (`existing`). Our own outputs do not count;
/// a queue that was lost knows them only after a scan of the service's list.
async fn skip_subtitled(
    store: &dyn Store,
    identity: &Identity,
    mount: &Arc<Mount>,
    job: &Job,
    purchase_key: Option<&PurchaseKey>,
    (subtitles, has_tracks): (Option<FoundSubtitles>, bool),
    now: Timestamp,
) -> Result<Option<StageOutcome>, Fault> {
    let fault = |error| store_fault(&error, now);
    let why = match exclude_ours(store, mount, job, subtitles, now).await? {
        Some(_) => Skip::Subtitled,
        None if has_tracks => Skip::SubtitledInside,
        None => return Ok(None),
    };
    if store.is_suspect(&identity.service).await.map_err(fault)? {
        let until = now.saturating_add(now.duration_since(job.since).clamp(SUSPECT_MIN, SUSPECT_MAX));
        return Ok(Some(StageOutcome::Sleep { until, reason: None }));
    }
    if let Some(purchase_key) = purchase_key
        && known_purchase(store, purchase_key, identity, now).await?.is_some()
    {
        return Ok(None); // the result costs nothing, and the subtitles may be ours: the write compares them
    }
    Ok(Some(StageOutcome::Step(JobEvent::Skipped { why })))
}

/// How soon, and how late, the job checks again whether the service's list was scanned.
const SUSPECT_MIN: Duration = Duration::from_millis(200);
const SUSPECT_MAX: Duration = Duration::from_secs(60);
