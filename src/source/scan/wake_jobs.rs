//! Wakes jobs whose reason to wait is over: a setting was changed, a folder is back.

use crate::blocking::blocking;
use crate::clock::Clock;
use crate::config::model::{Existing, Source};
use crate::domain::fault::FaultKind;
use crate::domain::job::{Job, Stamp};
use crate::domain::path::RelPath;
use crate::domain::stage::{Skip, Stage, StageKind};
use crate::source::mount::source_mount::{Mount, Storage};
use crate::source::recording_place::outputs_beside;
use crate::store::contract::{Filter, JobSubset, Store, StoreError};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The number of jobs that are read from the store at once.
const PAGE: usize = 1_000;

/// Makes jobs due that wait for the source's folder, also those whose file is gone.
pub async fn resume_waiting_for_folder(
    source: &Source,
    store: &dyn Store,
    clock: &dyn Clock,
) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let jobs = store.jobs_in(JobSubset::Away, after, PAGE).await?;
        let Some(last) = jobs.last() else { return Ok(()) };
        after = Some(last.id);
        for job in jobs.iter().filter(|job| job.key.source == source.name && !is_awaited_by_row(job)) {
            store.wake(job.id, clock.now()).await?;
        }
    }
}

/// Whether the reading of its manifest looks for the job's file and continues the job when the file exists.
fn is_awaited_by_row(job: &Job) -> bool {
    job.row.is_some() && job.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Awaited)
}

/// Makes jobs due that wait for a sidecar to be corrected: it may be correct now.
pub async fn resume_waiting_for_fix(source: &Source, store: &dyn Store, clock: &dyn Clock) -> Result<(), StoreError> {
    // Sidecars are read in these stages only.
    let stages = vec![StageKind::Settled, StageKind::Uploaded];
    let mut filter = Filter { stages, limit: PAGE, ..Filter::default() };
    loop {
        let jobs = store.page(&filter).await?;
        let Some(last) = jobs.last() else { return Ok(()) };
        filter.after = Some(last.id);
        let waits = |job: &&Job| job.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Sidecar);
        for job in jobs.iter().filter(waits).filter(|job| job.key.source == source.name) {
            store.wake(job.id, clock.now()).await?;
        }
    }
}

/// Admits jobs again that were skipped because of an existing subtitle, if that is gone or `existing` is "transcribe"
/// now. If the folder is away, nothing changes.
pub async fn readmit_without_subtitle(
    mount: &Arc<Mount>,
    store: &dyn Store,
    clock: &dyn Clock,
) -> Result<(), StoreError> {
    let source = mount.source();
    if mount.check_now().await.is_err() {
        return Ok(()); // it may be a bare mount point that has no subtitles in it
    }
    let mut filter = Filter { stages: vec![StageKind::Skipped], limit: PAGE, ..Filter::default() };
    loop {
        let jobs = store.page(&filter).await?;
        let Some(last) = jobs.last() else { return Ok(()) };
        filter.after = Some(last.id);
        let is_for_subtitle = |job: &&Job| matches!(job.stage, Stage::Skipped { why } if why.is_for_subtitles());
        for job in jobs.iter().filter(is_for_subtitle).filter(|job| job.key.source == source.name) {
            // A track inside the file is gone only when the file changes.
            let is_inside = matches!(job.stage, Stage::Skipped { why: Skip::SubtitledInside });
            if source.existing == Existing::Skip && (is_inside || has_subtitle(mount, job).await) {
                continue;
            }
            // A stamp that differs makes the store treat the file as changed; it is checked again before anything else.
            let seen = Stamp { ctime_ns: !job.seen.ctime_ns, ..job.seen };
            let now = clock.now();
            store.admit(&job.key, seen, now, now).await?;
        }
    }
}

/// Whether a subtitle exists, by whomever; true if that cannot be found out.
async fn has_subtitle(mount: &Arc<Mount>, job: &Job) -> bool {
    if let Storage::Bucket(bucket) = mount.storage() {
        return !matches!(bucket.subtitles(&job.key.path).await, Ok(subtitles) if subtitles.is_empty());
    }
    let (mount, owned_job) = (Arc::clone(mount), job.clone());
    let list = move || {
        let beside = outputs_beside(mount.source(), &owned_job);
        let name = RelPath::new(beside.file_name().as_bytes());
        mount.beside().subtitles(&beside.parent(), &name)
    };
    let found = blocking(list).await;
    !matches!(found, Ok(subtitles) if subtitles.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::config::load::read;
    use crate::domain::job::JobKey;
    use crate::store::contract::{ALL, ClaimLimit, Claims, Hold, Jobs, Queries};
    use crate::store::memory;
    use std::path::Path;
    use std::time::Duration;
    use tempfile::TempDir;

    #[tokio::test]
    async fn what_was_skipped_is_found_again_once_its_folder_is_there() {
        let (top, clock, store) = (TempDir::new().unwrap(), SystemClock, memory::empty());
        let folder = top.path().join("share");
        let text = format!("[[source]]\nname = \"s\"\nfolder = {folder:?}\nexisting = \"transcribe\"\n");
        let source = read::parse(Path::new("/etc/jobs.toml"), &text, &|_| None).unwrap().sources.remove(0);
        let key = JobKey { source: source.name.clone(), path: RelPath::new("talk.wav") };
        let mount = Arc::new(Mount::new(Arc::new(source), top.path(), Arc::new(clock)));
        let (seen, now) = (Stamp { size: 1, mtime_ns: 0, ctime_ns: 0, inode: 1 }, clock.now());
        store.admit(&key, seen, now, now).await.unwrap();
        let until = now.saturating_add(Duration::from_secs(60));
        let claimed = store.claim(&[StageKind::Found], ALL, now, until, ClaimLimit::of(1)).await.unwrap().remove(0);
        let skipped = Job { stage: Stage::Skipped { why: Skip::Subtitled }, ..claimed.job };
        store.commit(&claimed.lease, &skipped, Hold::Release).await.unwrap();
        for (is_there, kind) in [(false, StageKind::Skipped), (true, StageKind::Found)] {
            if is_there {
                std::fs::create_dir(&folder).unwrap();
            }
            readmit_without_subtitle(&mount, &store, &clock).await.unwrap();
            assert_eq!(store.find(&key).await.unwrap().unwrap().stage.kind(), kind);
        }
    }
}
