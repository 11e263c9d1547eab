//! Settled ▷ Probed: worth sending, and under which parameters. The content is hashed here only where
//! another job may have the same.

use crate::beneath::{LinkInPath, RootedPath};
use crate::clock::Clock;
use crate::config::model::{Existing, Source};
use crate::config::template::text::RenderedTemplate;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, JobKey};
use crate::domain::names::{Hash, ServiceName, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::request_record::RequestRecord;
use crate::domain::stage::{JobEvent, Skip};
use crate::domain::token::PurchaseKey;
use crate::permission::said;
use crate::pipeline::blocking::blocking;
use crate::pipeline::media_file::{MediaFile, say_they_are_ours, subtitles};
use crate::pipeline::request::build;
use crate::pipeline::request::build::BesideSettings;
use crate::pipeline::stages::checksum::{ChecksumResult, inspect};
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::output_folders::NOTHING_YET;
use crate::pipeline::stages::settle::{grew, missing};
use crate::source::metadata::stamp::{FileLook, look};
use crate::source::mount::disk::Disk;
use crate::source::mount::source_mount::Mount;
use crate::source::place::outputs_beside;
use crate::store::contract::{Store, StoreError};
use crate::store::params::ParamFiles;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A file may take so long, and as much longer as it is large, to be read to its end …
const PATIENCE: Duration = Duration::from_secs(300);

/// … at so many bytes a second. One that takes longer hangs.
const SLOWEST: u64 = 1_000_000;

/// Renders, checks, and hashes where that may save an upload.
pub async fn run(
    store: &dyn Store,
    service: &ServiceName,
    params: &ParamFiles,
    mount: &Arc<Mount>,
    clock: &dyn Clock,
    job: &Job,
) -> Result<StageOutcome, Fault> {
    let now = clock.now();
    let medium = MediaFile::of(mount, job);
    let alike = store.may_have_duplicate(job.seen.size, job.id).await.map_err(|error| store_fault(&error, now))?;
    let unread = medium.unread(&job.seen);
    let wants_hash = unread.is_none() && (alike || !job.outputs.is_empty());
    let limit = PATIENCE.saturating_add(Duration::from_secs(job.seen.size / SLOWEST));
    let seen = tokio::select! {
        biased;
        seen = seen(mount, &medium, job, wants_hash) => Some(seen),
        () = clock.sleep(limit) => None,
    };
    let Some(Seen { looked, found, around, subtitles }) = seen else {
        let words = format!("the file gives nothing: it was read for {limit:?} without coming to an end");
        return Err(Fault::new(FaultKind::Unreadable, words, now));
    };
    if let Some(outcome) = unfit(mount, &medium, job, looked, now).await? {
        return Ok(outcome);
    }
    let found = found.map_err(|error| {
        Fault::new(FaultKind::Unreadable, format!("cannot read the file: {}", medium.said(&error)), now)
    })?;
    let content = unread.or(found.content(now)?);
    let (params, making) = match made(params, mount, clock, job, content, &around).await? {
        Ok(made) => made,
        Err(outcome) => return Ok(outcome),
    };
    let order = content.map(|content| PurchaseKey { service: service.clone(), content, params });
    if let Some(outcome) = subtitled(store, service, mount, job, order.as_ref(), subtitles, now).await? {
        return Ok(outcome);
    }
    Ok(StageOutcome::Step(JobEvent::Probed { params, content, making }))
}

/// The file is not what was settled, or there is nothing in it. Nobody here can look at what is elsewhere.
async fn unfit(
    mount: &Mount,
    medium: &MediaFile,
    job: &Job,
    looked: io::Result<FileLook>,
    now: Timestamp,
) -> Result<Option<StageOutcome>, Fault> {
    match looked {
        _ if matches!(medium, MediaFile::Remote(_)) => Ok(None),
        Ok(FileLook::File(stamp)) if stamp != job.seen => {
            grew(mount, stamp, now.after(mount.settle_of(job)), now).await.map(Some)
        }
        Ok(FileLook::File(stamp)) => {
            Ok((stamp.size == 0).then_some(StageOutcome::Step(JobEvent::Skipped { why: Skip::Empty })))
        }
        other => missing(mount, job, other, now).await.map(Some),
    }
}

/// What there is to see of a job's recording and around it.
struct Seen {
    looked: io::Result<FileLook>,
    /// Whether it is what its list or its bag says, where it is as it was settled.
    found: io::Result<ChecksumResult>,
    around: BesideSettings,
    subtitles: Option<Subtitles>,
}

/// Looks at all of it, in one go where it lies on this machine.
async fn seen(mount: &Arc<Mount>, medium: &MediaFile, job: &Job, wants_hash: bool) -> Seen {
    let (theirs, of) = (Arc::clone(mount), job.clone());
    let MediaFile::File { path, disk } = medium.clone() else {
        let (looked, content) = medium.looked_into(job.seen, wants_hash).await;
        let around = blocking(move || BesideSettings::look(theirs.source(), &of)).await;
        let subtitles = Subtitles::look(mount, job).await;
        return Seen { looked, found: content.map(ChecksumResult::Right), around, subtitles };
    };
    blocking(move || {
        let looked = look(&path, disk);
        let is_same = matches!(looked, Ok(FileLook::File(stamp)) if stamp == of.seen && stamp.size > 0);
        let found = match is_same {
            true => inspect(theirs.bags(), &path, of.row.as_deref(), wants_hash),
            false => Ok(ChecksumResult::Right(None)),
        };
        let around = BesideSettings::look(theirs.source(), &of);
        Seen { looked, found, around, subtitles: Subtitles::look_here(&theirs, &of) }
    })
    .await
}

/// The subtitles that lie where a job's would.
struct Subtitles {
    /// Of a bucket's source its address.
    folder: RootedPath,
    /// As paths below it.
    found: io::Result<Vec<RelPath>>,
}

impl Subtitles {
    /// Where nobody minds them nobody looks.
    fn minds(mount: &Mount, job: &Job) -> bool {
        mount.source().existing != Existing::Transcribe && job.outputs.is_empty()
    }

    async fn look(mount: &Arc<Mount>, job: &Job) -> Option<Self> {
        if !Self::minds(mount, job) {
            return None;
        }
        let (theirs, of) = (Arc::clone(mount), job.clone());
        let (folder, path) = blocking(move || beside(theirs.source(), &of)).await;
        let found = subtitles(mount, &folder, &path).await;
        Some(Self { folder, found })
    }

    /// On this machine. Blocks.
    fn look_here(mount: &Mount, job: &Job) -> Option<Self> {
        Self::minds(mount, job).then(|| {
            let (folder, path) = beside(mount.source(), job);
            let found = mount.beside().subtitles(&folder, &path);
            Self { folder, found }
        })
    }
}

type MadeOf = (Hash, Option<Box<RequestRecord>>);

/// Under which parameters it is asked for, and what else it is made with. Only another content opens a new round:
/// under the parameters that it was bought with, the same is found.
async fn made(
    files: &ParamFiles,
    mount: &Mount,
    clock: &dyn Clock,
    job: &Job,
    content: Option<Hash>,
    around: &BesideSettings,
) -> Result<Result<MadeOf, StageOutcome>, Fault> {
    let bought = job.made_from.as_ref().filter(|made| Some(made.content) == content);
    let made = match build::make(mount, clock, job, around).await {
        // What was paid for is not lost by what somebody has written beside it since.
        Err(_) if let Some(bought) = bought => return Ok(Ok((bought.params, None))),
        made => made?,
    };
    let made = match made {
        Ok(made) => made,
        Err(outcome) => return Ok(Err(outcome)),
    };
    let params = match bought {
        Some(bought) => bought.params,
        None => keep_params(files, &made.rendered, clock.now())?,
    };
    Ok(Ok((params, Some(Box::new(made.making)))))
}

/// Subtitles beside a recording that no job of this queue wrote.
pub struct ForeignSubtitles {
    /// Of a bucket's source its address.
    folder: RootedPath,
    /// As paths below it.
    paths: Vec<RelPath>,
}

impl ForeignSubtitles {
    /// Whether each of them has one of these contents. What cannot be read has none.
    pub async fn all_are(&self, mount: &Mount, contents: &BTreeSet<Hash>) -> bool {
        for path in &self.paths {
            let medium = match mount.bucket() {
                Some(_) => MediaFile::below(mount, path),
                None => {
                    let path = self.folder.join(OsStr::from_bytes(path.as_bytes()));
                    MediaFile::File { path, disk: Disk::Remote }
                }
            };
            if !medium.hash().await.is_ok_and(|hash| contents.contains(&hash)) {
                return false;
            }
        }
        true
    }
}

/// The subtitles by someone else beside a job's recording, where its source minds them (`existing`) and there are
/// any. Those that say that scribed made them do not count.
///
/// # Errors
/// A fault where nobody can tell.
pub async fn subtitles_by_others(
    store: &dyn Store,
    mount: &Arc<Mount>,
    job: &Job,
    now: Timestamp,
) -> Result<Option<ForeignSubtitles>, Fault> {
    let subtitles = Subtitles::look(mount, job).await;
    by_others(store, mount, job, subtitles, now).await
}

async fn by_others(
    store: &dyn Store,
    mount: &Mount,
    job: &Job,
    subtitles: Option<Subtitles>,
    now: Timestamp,
) -> Result<Option<ForeignSubtitles>, Fault> {
    let Some(Subtitles { folder, found }) = subtitles else { return Ok(None) };
    let found = match found {
        Ok(found) => found,
        // It is made when something is written into it.
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder.full() != mount.source().folder => {
            return Ok(None);
        }
        // Nothing can be written through it either.
        Err(error) if LinkInPath::of(&error).is_some() => {
            return Err(Fault::new(FaultKind::Unwritable, format!("{error}; {NOTHING_YET}"), now));
        }
        Err(error) => {
            let words = format!("{UNLISTED}: {}", said(&error, &folder.full()));
            return Err(Fault::new(FaultKind::Unreadable, words, now));
        }
    };
    let mut paths = Vec::new();
    for path in found {
        let key = JobKey { path: named_beside(job, &path), ..job.key.clone() };
        if !store.is_output(&key).await.map_err(|error| store_fault(&error, now))? {
            paths.push(path);
        }
    }
    let none = paths.is_empty() || say_they_are_ours(mount, &folder, paths.clone()).await;
    Ok((!none).then_some(ForeignSubtitles { folder, paths }))
}

/// A subtitle by someone else is there already (`existing`). Ours does not count; a queue that was lost
/// knows its own only when the service's list has been walked.
async fn subtitled(
    store: &dyn Store,
    service: &ServiceName,
    mount: &Arc<Mount>,
    job: &Job,
    order: Option<&PurchaseKey>,
    subtitles: Option<Subtitles>,
    now: Timestamp,
) -> Result<Option<StageOutcome>, Fault> {
    let fault = |error| store_fault(&error, now);
    if by_others(store, mount, job, subtitles, now).await?.is_none() {
        return Ok(None);
    }
    if store.is_suspect(service).await.map_err(fault)? {
        let until = now.after(now.since(job.since).clamp(SUSPECT_MIN, SUSPECT_MAX));
        return Ok(Some(StageOutcome::Sleep { until, reason: None }));
    }
    if let Some(order) = order
        && store.purchase(order).await.map_err(fault)?.is_some()
    {
        return Ok(None); // it costs nothing, and may well be ours: the write compares them
    }
    Ok(Some(StageOutcome::Step(JobEvent::Skipped { why: Skip::Subtitled })))
}

/// The name by which the queue knows what a job wrote: beside the recording, wherever a row's outputs go.
pub fn named_beside(job: &Job, path: &RelPath) -> RelPath {
    match (&job.row, job.key.path.as_bytes().iter().rposition(|byte| *byte == b'/')) {
        (Some(_), Some(end)) => RelPath::new([&job.key.path.as_bytes()[..=end], path.as_bytes()].concat()),
        _ => path.clone(),
    }
}

/// Where subtitles would lie, as a folder and the path below it that they would be named after. Blocks.
pub fn beside(source: &Source, job: &Job) -> (RootedPath, RelPath) {
    let path = outputs_beside(source, job);
    if job.row.is_none() && path.below_folder(&source.folder).is_some_and(|below| is_path(&below, &job.key.path)) {
        return (RootedPath::new(&source.folder, ""), job.key.path.clone());
    }
    (path.parent(), RelPath::new(path.file_name().as_bytes()))
}

fn is_path(below: &Path, path: &RelPath) -> bool {
    below.as_os_str().as_bytes() == path.as_bytes()
}

const UNLISTED: &str = "cannot look for subtitles beside the file";

/// How soon, and how late, it is looked whether the service's list has been walked.
const SUSPECT_MIN: Duration = Duration::from_millis(200);
const SUSPECT_MAX: Duration = Duration::from_secs(60);

/// In place: a template gives few different ones, and all but the first time they are kept already.
pub fn keep_params(files: &ParamFiles, rendered: &RenderedTemplate, now: Timestamp) -> Result<Hash, Fault> {
    files.keep(&rendered.canonical()).map_err(|error| {
        Fault::new(FaultKind::Unwritable, format!("cannot keep the parameters in the state directory: {error}"), now)
    })
}

/// A store that cannot answer stops the engine; the job only waits for it.
pub fn store_fault(error: &StoreError, now: Timestamp) -> Fault {
    Fault::new(FaultKind::Unwritable, error.to_string(), now)
}
