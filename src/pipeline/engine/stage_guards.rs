//! What a stage runs under: its source's folder is there, and work that could end the process is written down.

use super::{Engine, EngineParts};
use crate::domain::fault::Fault;
use crate::domain::job::Job;
use crate::pipeline::stages::faults::folder_away;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::poison_guard::ContentWork;
use crate::source::mount::source_mount::{Away, Mount};

impl Engine {
    /// A stage that works in the source's folder: not begun where it is away, and dropped when it goes. A
    /// share whose server is dead would hold it for ever.
    pub(super) async fn run_in_folder<E: From<Fault>>(
        &self,
        mount: &Mount,
        stage_run: impl Future<Output = Result<StageOutcome, E>>,
    ) -> Result<StageOutcome, E> {
        let parts = self.parts();
        let away = |away: Away| folder_away(&away, parts.clock.now());
        mount.there().await.map_err(away)?;
        tokio::select! {
            biased;
            outcome = stage_run => outcome,
            lost = mount.wait_until_away() => Err(away(lost).into()),
        }
    }

    /// The same for work that could end the process. Only a step shows that the work was done: what waits or fails,
    /// or is dropped since the folder goes, may never have come to it.
    pub(super) async fn run_content_work<E: From<Fault>>(
        &self,
        parts: &EngineParts,
        mount: &Mount,
        (job, work): (&Job, ContentWork),
        stage_run: impl Future<Output = Result<StageOutcome, E>>,
    ) -> Result<StageOutcome, E> {
        let working = async {
            let under_way = parts.in_progress.begin(job.id, work, &*parts.clock).await?;
            let outcome = stage_run.await;
            if let Ok(StageOutcome::Step(_) | StageOutcome::StepThen(..)) = outcome {
                under_way.ended();
            }
            outcome
        };
        self.run_in_folder(mount, working).await
    }
}
