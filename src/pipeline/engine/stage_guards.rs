//! Conditions under which a stage runs: its source's folder is there, and work that could end the process is
//! recorded.

use super::{Engine, EngineParts};
use crate::domain::fault::Fault;
use crate::domain::job::Job;
use crate::pipeline::stages::faults::folder_away;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::poison_guard::ContentWork;
use crate::source::mount::source_mount::{Away, Mount};

impl Engine {
    /// Runs a stage that works in the source's folder. The stage does not begin while the folder is away, or a mount
    /// below it that contains the recording, and is dropped when the folder goes: a share whose server is dead would
    /// block it for ever.
    pub(super) async fn run_in_folder<E: From<Fault>>(
        &self,
        mount: &Mount,
        job: &Job,
        stage_run: impl Future<Output = Result<StageOutcome, E>>,
    ) -> Result<StageOutcome, E> {
        let parts = self.parts();
        let away = |away: Away| folder_away(&away, parts.clock.now());
        mount.there().await.map_err(away)?;
        mount.check_mounts_above(job).map_err(away)?;
        tokio::select! {
            biased;
            outcome = stage_run => outcome,
            lost = mount.wait_until_away() => Err(away(lost).into()),
        }
    }

    /// As [`Engine::run_in_folder`], for work that could end the process.
    pub(super) async fn run_content_work<E: From<Fault>>(
        &self,
        parts: &EngineParts,
        mount: &Mount,
        (job, work): (&Job, ContentWork),
        stage_run: impl Future<Output = Result<StageOutcome, E>>,
    ) -> Result<StageOutcome, E> {
        self.run_in_folder(mount, job, self.guard_content_work(parts, (job, work), stage_run)).await
    }

    /// Records that work is under way that could end the process. Only a step shows that the work was done: a stage that
    /// waits, fails or is dropped may not have reached it.
    pub(super) async fn guard_content_work<E: From<Fault>>(
        &self,
        parts: &EngineParts,
        (job, work): (&Job, ContentWork),
        stage_run: impl Future<Output = Result<StageOutcome, E>>,
    ) -> Result<StageOutcome, E> {
        let under_way = parts.in_progress.begin(job.id, work, &*parts.clock).await?;
        let outcome = stage_run.await;
        if let Ok(StageOutcome::Step(_) | StageOutcome::StepThen(..)) = outcome {
            under_way.ended();
        }
        outcome
    }
}
