//! What is looked at when a job has ended: whether its file is still the one that it was about.

use super::Engine;
use crate::domain::job::Job;
use crate::domain::stage::{Skip, Stage};
use crate::pipeline::media_file::MediaFile;
use crate::source::metadata::file_look::FileLook;
use crate::store::contract::{Admission, StoreError};

impl Engine {
    /// A file that was replaced while its job was under way was seen by nobody who could do anything about it: what is
    /// told of changes and what a scan finds is taken in for jobs that have ended. So it is looked at after the end is
    /// committed, and the job starts over where its file is another one now.
    pub(super) async fn check_file_at_end(&self, job: &Job) -> Result<(), StoreError> {
        let parts = self.parts();
        // What a plan names is done as it was planned, and nothing else.
        if !is_about_a_file(job) || parts.budget_gate.allowlist().is_some() {
            return Ok(());
        }
        let Some(mount) = parts.mounts.get(&job.key.source) else { return Ok(()) };
        let medium = MediaFile::of(mount, job);
        if job.is_remote() || mount.away().is_some() {
            return Ok(());
        }
        let looked = tokio::select! {
            biased;
            looked = medium.look() => looked,
            // The scan that finds it again looks at all.
            _ = mount.wait_until_away() => return Ok(()),
        };
        let Ok(FileLook::File(stamp)) = looked else { return Ok(()) };
        // Another one may be shown by the bare mount point of a share that is away.
        if job.matches_file(&stamp) || mount.check_now().await.is_err() {
            return Ok(());
        }
        let now = parts.clock.now();
        if let Admission::Reopened(_) = parts.store.admit(&job.key, stamp, now, now).await? {
            tracing::info!(job = %job.id, path = %job.key.path, "the file changed while scribed processed it; scribed processes its new content");
            self.nudge();
        }
        Ok(())
    }
}

/// Whether a change of its file would make it start over.
fn is_about_a_file(job: &Job) -> bool {
    match &job.stage {
        Stage::Skipped { why } => matches!(why, Skip::Empty | Skip::Subtitled | Skip::NoSound | Skip::Holes),
        stage => stage.is_end(),
    }
}
