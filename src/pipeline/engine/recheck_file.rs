//! Checks at the end of a job whether its file is still the one that the job handled.

use super::Engine;
use crate::domain::job::Job;
use crate::domain::stage::{Skip, Stage};
use crate::pipeline::media_file::MediaFile;
use crate::source::metadata::file_look::FileLook;
use crate::store::contract::{Admission, StoreError};

impl Engine {
    /// Starts a job over if its file was replaced while the job was under way. The watcher and the scans reopen only
    /// jobs that have ended, so nobody acts on such a change. Therefore the file is looked at after the end is
    /// committed.
    pub(super) async fn check_file_at_end(&self, job: &Job) -> Result<(), StoreError> {
        let parts = self.parts();
        // A plan is carried out as it was planned, and nothing else is done.
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
            // The scan that finds the folder again looks at all files.
            _ = mount.wait_until_away() => return Ok(()),
        };
        let Ok(FileLook::File(stamp)) = looked else { return Ok(()) };
        // What was gone may be back as it was, and a scan may have seen it while the job had not ended.
        let is_back = matches!(job.stage, Stage::Skipped { why } if why.ends_when_file_found());
        // The bare mount point of a share that is away may show another file.
        if job.matches_file(&stamp) && !is_back || mount.check_now().await.is_err() {
            return Ok(());
        }
        let now = parts.clock.now();
        if let Admission::Reopened(_) = parts.store.admit(&job.key, stamp, now, now).await? {
            let words = match is_back {
                true => "the file is back; its job continues",
                false => "the file changed while scribed processed it; scribed processes its new content",
            };
            tracing::info!(job = %job.id, path = %job.key.path, "{words}");
            self.wake();
        }
        Ok(())
    }
}

/// Whether a change of its file makes the job start over.
fn is_about_a_file(job: &Job) -> bool {
    match &job.stage {
        Stage::Skipped { why } => {
            let is_about_content =
                matches!(why, Skip::Empty | Skip::Subtitled | Skip::SubtitledInside | Skip::NoSound | Skip::Holes);
            is_about_content || matches!(why, Skip::Vanished | Skip::RecordingGone)
        }
        stage => stage.is_end(),
    }
}
