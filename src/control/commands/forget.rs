//! Forgetting jobs of files that are gone: they are no longer listed and counted. Their rows stay in the store with
//! what was bought, so that content that comes back costs nothing.

use crate::blocking::{blocking, within};
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, ForgetPiece, ForgetQuery, Forgettable, JobSelector};
use crate::domain::job::Job;
use crate::domain::manifest_row::{ManifestRow, RowMedia};
use crate::domain::names::{JobId, SourceName};
use crate::domain::reason::reason;
use crate::domain::stage::{JobEvent, StageKind};
use crate::manifests::passes::rows_naming::{NamedRecording, files_named, rows_naming};
use crate::pipeline::media_file::MediaFile;
use crate::rooted_path::RootedPath;
use crate::source::metadata::presence::{Presence, presence};
use crate::source::mount::source_mount::Mount;
use crate::source::recording_place::{full_path, resolve_below};
use crate::store::contract::Filter;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The number of jobs that are read at once.
const PAGE_SIZE: usize = 500;

/// The number of jobs that are changed concurrently: they share the syncs of the queue's file.
const CONCURRENCY: usize = 32;

/// The time limit for looking at the files of one page: a dead file server never answers.
const TIME_OUT: Duration = Duration::from_secs(60);

/// Forgets one job, or the next piece of all jobs whose files are gone. With `dry_run`, only reports them.
///
/// # Errors
/// [`CommandRefusal::Usage`] if there is no such job; [`CommandRefusal::Declined`] if it cannot be forgotten; errors
/// of the store.
pub async fn forget(handler: &CommandHandler, query: &ForgetQuery) -> Result<ForgetPiece, CommandRefusal> {
    match &query.which {
        Forgettable::One(wanted) => forget_one(handler, wanted, query.dry_run).await,
        Forgettable::Vanished { source, older_than, after } => {
            let age = Duration::from_millis(*older_than);
            forget_vanished(handler, source.as_ref(), age, *after, query.dry_run).await
        }
    }
}

/// Forgets one job. If scribed cannot tell whether the file is gone, the command decides.
async fn forget_one(
    handler: &CommandHandler,
    wanted: &JobSelector,
    dry_run: bool,
) -> Result<ForgetPiece, CommandRefusal> {
    let job = handler.job(wanted).await?;
    let id = job.id;
    if job.stage.is_forgotten() {
        return Err(CommandRefusal::Declined(format!("job {id} was already removed with `scribed forget`")));
    }
    if !job.stage.is_end() {
        let words = format!("job {id} has not ended ({}): end it first with `scribed cancel {id}`", reason(&job));
        return Err(CommandRefusal::Declined(words));
    }
    if let Some(mount) = handler.mounts.get(&job.key.source) {
        let is_named = is_named_by_row(mount, &job).await;
        mount.check_now().await.map_err(|away| CommandRefusal::Declined(format!("job {id} stays: {away}")))?;
        let looked = look(handler, mount, std::slice::from_ref(&job)).await;
        if is_named || matches!(looked.as_deref(), Some([Presence::There])) {
            let why = if is_named { "a row of a manifest still names it" } else { "its recording exists" };
            return Err(CommandRefusal::Declined(format!(
                "job {id} stays: {why}, and the next scan would add it again"
            )));
        }
    }
    let mut piece = ForgetPiece { looked: 1, ..ForgetPiece::default() };
    finish(handler, vec![job], dry_run, &mut piece).await?;
    Ok(piece)
}

async fn forget_vanished(
    handler: &CommandHandler,
    source: Option<&SourceName>,
    age: Duration,
    after: Option<JobId>,
    dry_run: bool,
) -> Result<ForgetPiece, CommandRefusal> {
    let stages = StageKind::ALL.into_iter().filter(|kind| kind.is_end()).collect();
    let jobs = handler.store.page(&Filter { stages, after, limit: PAGE_SIZE }).await?;
    let next = jobs.last().filter(|_| jobs.len() == PAGE_SIZE).map(|job| job.id);
    let mut piece = ForgetPiece { next, ..ForgetPiece::default() };
    let now = handler.clock.now();
    let is_selected = |job: &Job| {
        source.is_none_or(|source| *source == job.key.source)
            && now.duration_since(job.since) >= age
            && is_observable(job)
    };
    let mut by_source: BTreeMap<SourceName, Vec<Job>> = BTreeMap::new();
    for job in jobs.into_iter().filter(is_selected) {
        by_source.entry(job.key.source.clone()).or_default().push(job);
    }
    for (source, jobs) in by_source {
        // If jobs.toml does not have the source, the place of its folder is unknown.
        let Some(mount) = handler.mounts.get(&source) else { continue };
        piece.looked += jobs.len() as u64;
        match gone(handler, mount, jobs, &mut piece).await {
            Ok(gone) => finish(handler, gone, dry_run, &mut piece).await?,
            Err(why) => drop(piece.unseen.insert(source, why)),
        }
    }
    Ok(piece)
}

/// Whether scribed can see that the recording of a job is gone, unlike one that the service fetches.
fn is_observable(job: &Job) -> bool {
    !job.is_remote()
}

/// Returns the jobs of a source whose files are gone. The folder is checked before and after: if it went away
/// meanwhile, files that were not found prove nothing.
async fn gone(
    handler: &CommandHandler,
    mount: &Arc<Mount>,
    jobs: Vec<Job>,
    piece: &mut ForgetPiece,
) -> Result<Vec<Job>, String> {
    mount.check_not_bare().await.map_err(|away| away.to_string())?;
    let looked = look(handler, mount, &jobs).await;
    let folder = mount.source().folder.display();
    let looked = looked.ok_or_else(|| format!("the folder {folder} did not answer"))?;
    mount.check_not_bare().await.map_err(|away| away.to_string())?;
    let looked: Vec<(Job, Presence)> = jobs.into_iter().zip(looked).collect();
    let named = named_again(mount, &looked).await;
    let mut gone = Vec::new();
    for (job, presence) in looked {
        match presence {
            Presence::There => {}
            Presence::Unknown(why) => piece.kept.push((job, why)),
            Presence::Gone => match named(&job) {
                Some(why) => piece.kept.push((job, why)),
                None => gone.push(job),
            },
        }
    }
    Ok(gone)
}

/// Returns a function that says why the next scan would add the job of a file again, though the file is gone; `None` if
/// no manifest names it. The manifests are read once, and only if one of these jobs has a row.
async fn named_again(mount: &Arc<Mount>, looked: &[(Job, Presence)]) -> impl Fn(&Job) -> Option<String> + use<> {
    let has_row = |job: &Job| job.row.as_deref().is_some_and(|row| is_listed(mount, row));
    let is_asked = looked.iter().any(|(job, presence)| matches!(presence, Presence::Gone) && has_row(job));
    let files = match is_asked && mount.source().reads_manifests() {
        true => {
            let mount = Arc::clone(mount);
            Some(blocking(move || files_named(&mount)).await)
        }
        false => None,
    };
    let mount = Arc::clone(mount);
    move |job| {
        let row = job.row.as_deref().filter(|row| is_listed(&mount, row))?;
        let why = || Some(format!("its manifest {} names it: remove the row or the manifest first", row.manifest));
        match (&files, &row.media) {
            (Some(Ok(files)), RowMedia::File(path)) if !files.contains(path) => None,
            (Some(Err(unread)), RowMedia::File(_)) => Some(unread.clone()),
            _ => why(),
        }
    }
}

/// Whether a row of a manifest names the job's recording now: then the row would add the job again.
async fn is_named_by_row(mount: &Arc<Mount>, job: &Job) -> bool {
    let Some(row) = job.row.as_deref().filter(|row| is_listed(mount, row)) else { return false };
    if !mount.source().reads_manifests() {
        return true;
    }
    let (mount, path) = (
        Arc::clone(mount),
        match &row.media {
            RowMedia::File(path) => full_path(&mount.source().folder, path),
            RowMedia::Url(url) => PathBuf::from(url.name()),
        },
    );
    blocking(move || !rows_naming(&mount, &NamedRecording::from_path(&path)).is_empty()).await
}

/// Whether the manifest of a row still exists: then the row may add the job again. This blocks, but only for one
/// file system call.
pub(super) fn is_listed(mount: &Mount, row: &ManifestRow) -> bool {
    !mount.source().is_local() || resolve_below(&mount.source().folder, &row.manifest).exists()
}

/// Returns for each job whether its file is there; `None` if the folder does not answer in time.
async fn look(handler: &CommandHandler, mount: &Arc<Mount>, jobs: &[Job]) -> Option<Vec<Presence>> {
    if !mount.source().is_local() {
        let mut looked = Vec::with_capacity(jobs.len());
        for chunk in jobs.chunks(CONCURRENCY) {
            looked.extend(join_all(chunk.iter().map(|job| presence_of(mount, job))).await);
        }
        return Some(looked);
    }
    let path = |job: &Job| match MediaFile::of(mount, job) {
        MediaFile::File { path, .. } => Some(path),
        MediaFile::Object { .. } | MediaFile::Remote(_) => None,
    };
    let paths: Vec<Option<RootedPath>> = jobs.iter().map(path).collect();
    let known = mount.source().folder.clone();
    let of = move |path: &Option<RootedPath>| path.as_ref().map_or(Presence::There, |path| presence(path, &known));
    let look = move || paths.iter().map(of).collect();
    within(&*handler.clock, TIME_OUT, look).await
}

async fn presence_of(mount: &Mount, job: &Job) -> Presence {
    MediaFile::of(mount, job).presence(&mount.source().folder).await
}

/// Forgets the jobs, unless `dry_run`, and adds them to the piece.
async fn finish(
    handler: &CommandHandler,
    jobs: Vec<Job>,
    dry_run: bool,
    piece: &mut ForgetPiece,
) -> Result<(), CommandRefusal> {
    if dry_run {
        piece.forgotten.extend(jobs);
        return Ok(());
    }
    let now = handler.clock.now();
    for chunk in jobs.chunks(CONCURRENCY) {
        let done = join_all(chunk.iter().map(|job| handler.store.overrule(job, JobEvent::Forgotten, now))).await;
        for (job, done) in chunk.iter().zip(done) {
            if done?.is_done() {
                tracing::info!(job = %job.id, path = %job.key.path, "a person removed an ended job (`scribed forget`)");
                piece.forgotten.push(job.clone());
            } else {
                piece.kept.push((job.clone(), "the job has just changed: try again".to_owned()));
            }
        }
    }
    Ok(())
}
