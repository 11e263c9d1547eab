//! Forgetting jobs of files that are gone: they are no longer listed and counted. Their rows stay in the store with
//! what was bought, so that content that comes back costs nothing.

use crate::blocking::{blocking, within};
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, ForgetPiece, ForgetQuery, Forgettable, JobSelector};
use crate::domain::job::Job;
use crate::domain::names::{JobId, SourceName};
use crate::domain::path::RelPath;
use crate::domain::reason::reason;
use crate::domain::stage::{JobEvent, StageKind};
use crate::manifests::passes::keys::{job_beside_own_name, job_of_row};
use crate::manifests::passes::rows_naming::{JobRow, rows_of_paths};
use crate::pipeline::media_file::{MediaFile, presence_in};
use crate::rooted_path::RootedPath;
use crate::source::metadata::presence::Presence;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{Filter, StoreError};
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
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
        mount.check_now().await.map_err(|away| CommandRefusal::Declined(format!("job {id} stays: {away}")))?;
        if let Some(why) = added_again(handler, mount, &job).await? {
            return Err(CommandRefusal::Declined(format!("job {id} stays: {why}")));
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

/// Returns a function that says why the job of a vanished file stays; `None` if no row of a manifest makes it. The
/// manifests are read once, and only if a file is gone.
async fn named_again(mount: &Arc<Mount>, looked: &[(Job, Presence)]) -> impl Fn(&Job) -> Option<String> + use<> {
    let gone = looked.iter().filter(|(_, presence)| matches!(presence, Presence::Gone));
    let paths: BTreeSet<RelPath> = gone.map(|(job, _)| job.key.path.clone()).collect();
    let job_rows = if paths.is_empty() { Ok(Vec::new()) } else { rows_of(mount, paths).await };
    let job_rows = job_rows.map(|rows| rows.into_iter().map(|row| (row.path, row.place)).collect::<BTreeMap<_, _>>());
    move |job| match &job_rows {
        Ok(rows) => {
            rows.get(&job.key.path).map(|place| format!("{place} names it: remove the row or the manifest first"))
        }
        Err(unread) => Some(unread.clone()),
    }
}

/// Returns why the next scan would add the job again; `None` if it would not. Where manifests are read, only a row adds
/// a job, whether or not its recording exists.
async fn added_again(
    handler: &CommandHandler,
    mount: &Arc<Mount>,
    job: &Job,
) -> Result<Option<String>, CommandRefusal> {
    if mount.source().reads_manifests() {
        let paths = BTreeSet::from([job.key.path.clone()]);
        let job_rows = match rows_of(mount, paths).await {
            Ok(job_rows) => job_rows,
            Err(unread) => return Ok(Some(unread)),
        };
        for row in job_rows {
            if !has_another_job(handler, job, &row).await? {
                return Ok(Some(row_message(&row)));
            }
        }
        return Ok(None);
    }
    if job.is_remote() {
        return Ok(None); // a person added the address, and no scan finds it
    }
    let looked = look(handler, mount, std::slice::from_ref(job)).await;
    let is_there = matches!(looked.as_deref(), Some([Presence::There]));
    Ok(is_there.then(|| "its recording exists, and the next scan would add it again".to_owned()))
}

fn row_message(JobRow { place, row, .. }: &JobRow) -> String {
    match row {
        Some(_) => format!("{place} requests it, and the next scan would add it again; remove the row first"),
        None => format!(
            "{place} names its recording, and would add it again when the mistakes of the row are corrected; remove \
             the row first"
        ),
    }
}

/// Whether a row already has a job, and not this one.
async fn has_another_job(handler: &CommandHandler, job: &Job, row: &JobRow) -> Result<bool, StoreError> {
    let Some(row) = &row.row else { return Ok(false) };
    let (store, source) = (&*handler.store, &job.key.source);
    let others = [job_of_row(store, source, row).await?, job_beside_own_name(store, source, row).await?];
    // A job that is this one, as the row is now, is made by this row and no other.
    let is_this = |other: &Option<Job>| other.as_ref().is_some_and(|other| other.id == job.id);
    Ok(!others.iter().any(is_this) && others.iter().any(Option::is_some))
}

/// Returns the rows of a source's manifests that may make jobs of these paths; none if the source reads no manifests.
async fn rows_of(mount: &Arc<Mount>, paths: BTreeSet<RelPath>) -> Result<Vec<JobRow>, String> {
    if !mount.source().reads_manifests() {
        return Ok(Vec::new());
    }
    let mount = Arc::clone(mount);
    blocking(move || rows_of_paths(&mount, &paths)).await
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
    let mount = Arc::clone(mount);
    let of = move |path: &Option<RootedPath>| path.as_ref().map_or(Presence::There, |path| presence_in(&mount, path));
    let look = move || paths.iter().map(of).collect();
    within(&*handler.clock, TIME_OUT, look).await
}

async fn presence_of(mount: &Arc<Mount>, job: &Job) -> Presence {
    MediaFile::of(mount, job).presence(mount).await
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
