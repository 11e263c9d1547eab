//! One claim, one move, one commit.

use super::{Engine, EngineParts, LEASE};
use crate::client::contract::Client;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::Hash;
use crate::domain::stage::{JobEvent, Stage, StageKind};
use crate::domain::track_selection::TrackSelection;
use crate::pipeline::blocking::blocking;
use crate::pipeline::budget::gate::Deferral;
use crate::pipeline::request::refresh;
use crate::pipeline::stages::in_progress::ContentWork;
use crate::pipeline::stages::outcome::{StageOutcome, StageStop};
use crate::pipeline::stages::settle::folder_away;
use crate::pipeline::stages::submit::{Submission, SubmitContext};
use crate::pipeline::stages::{probe, remote_audio, settle, share_result, submit, upload, wait, write};
use crate::source::mount::source_mount::{Away, Mount};
use crate::source::path_policy;
use crate::source::place::{Recording, recording};
use crate::store::contract::{Claimed, Lease, StoreError};
use std::sync::Arc;

impl Engine {
    /// One claim, one move, one commit.
    pub(super) async fn walk(self: Arc<Self>, claim: Claimed) -> Result<(), StoreError> {
        let Claimed { lease, job } = claim;
        tracing::debug!(job = %job.id, path = %job.key.path, stage = job.stage.kind().name(), "moving");
        let way = Arc::clone(&self.parts().client);
        let moved = {
            let engine = Arc::clone(&self);
            let job = job.clone();
            tokio::select! {
                biased;
                moved = catch(async move { engine.make_move(&lease, &job).await }) => moved,
                lost = self.keep(&lease) => return lost,
            }
        };
        let now = self.parts().clock.now();
        match moved {
            Some(Ok(StageRun::Outcome(outcome))) => self.commit_outcome(&lease, job, *outcome).await,
            Some(Ok(StageRun::Committed)) => Ok(()),
            Some(Err(StageStop::Fault(fault))) => {
                // Not as it was claimed: what was about to be placed may have been written down since.
                let job = self.parts().store.job(job.id).await?.unwrap_or(job);
                let (fault, id) = (remote_audio::suppressed(&job, fault), job.id);
                self.commit_fault(&lease.seeing(&job), job, (fault, &way)).await?;
                let parts = self.parts();
                if parts.in_progress.is_set_aside(id) {
                    // Else the end of the process would lose both.
                    parts.store.flush().await?;
                    parts.in_progress.acquit(id);
                }
                Ok(())
            }
            Some(Err(StageStop::Store(error))) => Err(error),
            None => {
                let fault =
                    Fault::new(FaultKind::Bug, "scribed met a bug of its own with this file (see the log)", now);
                // Not as it was claimed: its intent may have been committed since.
                let job = self.parts().store.job(job.id).await?.unwrap_or(job);
                self.commit_bug(&lease.seeing(&job), job, fault).await
            }
        }
    }

    /// Renews the lease until it is lost.
    async fn keep(&self, lease: &Lease) -> Result<(), StoreError> {
        let clock = Arc::clone(&self.parts().clock);
        loop {
            tokio::select! {
                () = clock.sleep(LEASE / 3) => {}
                () = self.recalled.notified() => {}
            }
            let until = self.parts().clock.now().after(LEASE);
            if !self.parts().store.renew(&[*lease], until).await?.is_empty() {
                return Err(StoreError::LeaseLost(lease.job));
            }
        }
    }

    /// The whole business on one page.
    async fn make_move(&self, lease: &Lease, job: &Job) -> Result<StageRun, StageStop> {
        // The same ones to its end, whatever is configured meanwhile.
        let parts = &*self.parts();
        let EngineParts { store, client, clock, results, params, syncs, budget_gate, writing, .. } = parts;
        let (store, client, clock) = (&**store, &**client, &**clock);
        // What is being bought is waited for and kept all the same.
        let is_bought = matches!(job.stage, Stage::Submitting { .. } | Stage::Submitted { .. });
        if let Some(row) = job.row.as_ref().filter(|row| row.lost && !is_bought) {
            return Err(StageStop::Fault(row.unknown(clock.now())));
        }
        let outcome = match &job.stage {
            Stage::Found => {
                let mount = parts.mount(job)?;
                let settling = async {
                    Self::row_is_allowed(parts, mount, job).await?;
                    settle::run(mount, store, clock, job).await
                };
                self.in_folder(mount, settling).await?
            }
            Stage::Settled => {
                let (mount, service) = (parts.mount(job)?, &client.identity().service);
                let probing = async {
                    Self::row_is_allowed(parts, mount, job).await?;
                    probe::run(store, service, params, mount, clock, job).await
                };
                self.watched(parts, mount, (job, ContentWork::Probe), probing).await?
            }
            Stage::Probed { params, content } => {
                let (mount, known) = (parts.mount(job)?, (*params, *content));
                self.may_be_sent(parts, mount, job).await?;
                if let (Recording::Remote(_), Some(content)) = (recording(mount.source(), job), content) {
                    let reserving = self.reserved(parts, mount, lease, (job, None));
                    let known = (*params, *content);
                    let fetched = remote_audio::run(store, clock, self.service(), job, known, reserving).await?;
                    return Ok(StageRun::Outcome(fetched.into()));
                }
                let _under_way = self.uploading();
                self.in_folder(mount, self.uploaded(parts, mount, lease, job, known)).await?
            }
            Stage::Uploaded { order, upload, .. } => {
                let mount = parts.mount(job)?;
                match self.may_be_sent(parts, mount, job).await {
                    // It was uploaded before its source was kept here, or its row was not allowed.
                    Err(fault) if matches!(fault.kind, FaultKind::Asks | FaultKind::NotAllowed) => {
                        return Ok(StageRun::Outcome(StageOutcome::Step(JobEvent::UploadLost).into()));
                    }
                    may => may?,
                }
                let callbacks = parts.callbacks.as_ref();
                let context =
                    SubmitContext { store, client, clock, params, budget_gate, callbacks, folders: &writing.folders };
                let on_its_way = self.on_its_way(job.id);
                let mut lease = *lease;
                let submission = submit::run(&context, mount, &mut lease, job, order, upload).await;
                drop(on_its_way);
                return self.submitted(&lease, job, submission?, &parts.client).await;
            }
            // What is at the service needs no folder: it is awaited whatever became of its source.
            Stage::Submitted { order, transcription } => {
                let looked = {
                    let _one = self.reads.acquire().await.ok(); // never closed
                    wait::run(&self.wait_doors(parts), job, transcription).await
                };
                match looked {
                    Err(gone) if gone.kind == FaultKind::Gone => {
                        return self.seek(parts, (lease, job), (order, transcription), gone).await;
                    }
                    looked => {
                        self.say_elsewhere(job, looked.as_ref().err());
                        self.bore_end(looked?)
                    }
                }
            }
            Stage::Fetched { order, transcription, .. } => {
                let mount = parts.mount(job)?;
                let context = write::WriteContext { store, clock, results, params, syncs, writing };
                let writing = write::run(&context, mount, lease, job, order, transcription);
                self.watched(parts, mount, (job, ContentWork::Render), writing).await?
            }
            Stage::Following { order, owner } => share_result::run(store, clock, job, order, *owner).await?,
            Stage::Submitting { .. }
            | Stage::Written { .. }
            | Stage::Skipped { .. }
            | Stage::Failed { .. }
            | Stage::Cancelled { .. } => {
                let words = "a job was claimed that nobody moves alone";
                return Err(StageStop::Fault(Fault::new(FaultKind::Bug, words, clock.now())));
            }
        };
        Ok(StageRun::Outcome(outcome.into()))
    }

    pub(super) fn wait_doors<'d>(&'d self, parts: &'d EngineParts) -> wait::WaitContext<'d> {
        let EngineParts { client, clock, results, terms, callbacks, .. } = parts;
        let (client, clock, calls) = (&**client, &**clock, callbacks.is_some());
        let (asking, begun, log_limit) = (&self.asking, &self.begun, &self.log_limit);
        wait::WaitContext { client, clock, results, terms, asking, begun, calls, log_limit }
    }

    /// Uploads, by what is said of the recording now.
    async fn uploaded(
        &self,
        parts: &EngineParts,
        mount: &Arc<Mount>,
        lease: &Lease,
        job: &Job,
        known: (Hash, Option<Hash>),
    ) -> Result<StageOutcome, Fault> {
        let EngineParts { store, client, clock, params, .. } = parts;
        let (store, client, clock) = (&**store, &**client, &**clock);
        if let Some(outcome) = refresh::rested(params, mount, clock, (job, &known.0)).await? {
            return Ok(outcome);
        }
        let (_, pick) = refresh::kept(params, &known.0, clock.now())?;
        let (of, extractor) = ((job, pick.as_ref()), self.extractor());
        let reserving = self.reserved(parts, mount, lease, of);
        upload::run(store, client, clock, mount, job, known, reserving, (&extractor, pick.as_ref(), &self.sent_bytes))
            .await
    }

    /// What is asked before anything is sent: whether its outputs can be written, and whether it fits into a budget;
    /// whoever is next in line goes on.
    async fn reserved(
        &self,
        parts: &EngineParts,
        mount: &Arc<Mount>,
        lease: &Lease,
        of: (&Job, Option<&TrackSelection>),
    ) -> Result<Option<Deferral>, Fault> {
        let context = (&*parts.store, &*parts.clock);
        let reserved = match parts.writing.folders.hindered(context.0, context.1, mount, of.0).await {
            Ok(None) => parts.budget_gate.before_upload(context, mount, lease, of, self.service()).await,
            hindered => hindered,
        };
        self.next_in_line();
        reserved
    }

    /// A move that works in the source's folder: not begun where it is away, and dropped when it goes. A
    /// share whose server is dead would hold it for ever.
    async fn in_folder<E: From<Fault>>(
        &self,
        mount: &Mount,
        moving: impl Future<Output = Result<StageOutcome, E>>,
    ) -> Result<StageOutcome, E> {
        let parts = self.parts();
        let away = |away: Away| folder_away(&away, parts.clock.now());
        mount.there().await.map_err(away)?;
        tokio::select! {
            biased;
            moved = moving => moved,
            lost = mount.lost() => Err(away(lost).into()),
        }
    }

    /// The same for work that could end the process. Only a step shows that the work was done: what waits or fails,
    /// or is dropped since the folder goes, may never have come to it.
    async fn watched<E: From<Fault>>(
        &self,
        parts: &EngineParts,
        mount: &Mount,
        (job, work): (&Job, ContentWork),
        moving: impl Future<Output = Result<StageOutcome, E>>,
    ) -> Result<StageOutcome, E> {
        let working = async {
            let under_way = parts.in_progress.begin(job.id, work, &*parts.clock).await?;
            let moved = moving.await;
            if let Ok(StageOutcome::Step(_) | StageOutcome::StepThen(..)) = moved {
                under_way.ended();
            }
            moved
        };
        self.in_folder(mount, working).await
    }

    /// The last check before anything is sent, whatever the job was taken in for: what a source keeps here goes to no
    /// service elsewhere, by whatever name it is called, and nothing goes that a row may not name.
    async fn may_be_sent(&self, parts: &EngineParts, mount: &Arc<Mount>, job: &Job) -> Result<(), Fault> {
        Self::stays_here(parts, mount, job)?;
        let away = |away: Away| folder_away(&away, parts.clock.now());
        mount.there().await.map_err(away)?;
        tokio::select! {
            biased;
            allowed = Self::is_allowed(parts, mount, job) => allowed,
            lost = mount.lost() => Err(away(lost)),
        }
    }

    /// Nothing of what a row may not name is looked at.
    async fn row_is_allowed(parts: &EngineParts, mount: &Arc<Mount>, job: &Job) -> Result<(), Fault> {
        if job.row.is_none() { Ok(()) } else { Self::is_allowed(parts, mount, job).await }
    }

    async fn is_allowed(parts: &EngineParts, mount: &Arc<Mount>, job: &Job) -> Result<(), Fault> {
        let (source, of, elsewhere) = (Arc::clone(mount.source()), job.clone(), !parts.client.identity().is_own);
        let judged = blocking(move || path_policy::of_job(&source, &of, elsewhere)).await;
        judged.map_err(|denied| denied.fault(mount.source(), job, parts.clock.now()))
    }

    /// What a source keeps here goes to no service elsewhere.
    fn stays_here(parts: &EngineParts, mount: &Mount, job: &Job) -> Result<(), Fault> {
        let (source, identity) = (mount.source(), parts.client.identity());
        if source.local_only && matches!(recording(source, job), Recording::Remote(_)) {
            let words = format!(
                "it is elsewhere, and the source {} asks nothing of anybody elsewhere (`local_only`): download it, and \
                 name the file",
                source.name
            );
            return Err(Fault::new(FaultKind::Asks, words, parts.clock.now()));
        }
        if !source.local_only || identity.is_own {
            return Ok(());
        }
        let words = format!(
            "nothing of the source {} leaves this machine (`local_only`), and service `{}` is elsewhere: give the \
             source a `service` that has no `url`",
            source.name, identity.service
        );
        Err(Fault::new(FaultKind::Asks, words, parts.clock.now()))
    }

    /// What became of a create is committed at once, by the lease as the stage left it.
    async fn submitted(
        &self,
        lease: &Lease,
        job: &Job,
        submission: Submission,
        way: &Arc<dyn Client>,
    ) -> Result<StageRun, StageStop> {
        let now = self.parts().clock.now();
        match submission {
            Submission::Unsent(outcome) => {
                self.commit_outcome(lease, job.clone(), outcome).await.map_err(StageStop::Store)?;
            }
            // It may rest for longer than the service keeps what nobody uses, and is not in the way of others.
            Submission::Over(Deferral { until, fault }) => {
                let job = self.step(job.clone(), JobEvent::UploadLost, now)?.resting(until, Some(fault));
                self.commit(lease, &job).await.map_err(StageStop::Store)?;
            }
            Submission::Accepted(job, transcription) => {
                let over = self.line().accepted(self.parts().clock.uptime());
                self.say_over(over);
                self.got_through(StageKind::Uploaded);
                self.forget(job.id);
                let (date, at, lag) = (way.last_date(), self.parts().clock.uptime(), self.parts().terms.lag);
                if self.is_way(way) {
                    self.list_view().accepted(transcription.clone(), date, at, lag);
                }
                let due = self.first_look(&job, &transcription, now).await.map_err(StageStop::Store)?;
                let job = self.step(*job, JobEvent::Created { transcription }, now)?.resting(Some(due), None);
                self.commit(lease, &job).await.map_err(StageStop::Store)?;
                self.bore_create(self.running().await.map_err(StageStop::Store)?);
                self.forget_create(job.id);
                self.hinted_early(&job);
            }
            Submission::NotAccepted(job, fault) => {
                let job = self.step(*job, JobEvent::NotAccepted, now)?;
                let id = job.id;
                self.commit_fault(lease, job, (fault, way)).await.map_err(StageStop::Store)?;
                self.forget_create(id);
            }
            Submission::Unknown(job, fault) => {
                self.heard_fault_on(way, &fault);
                self.pushed_back(StageKind::Uploaded, &fault).await.map_err(StageStop::Store)?;
                let due = now.after(self.parts().terms.lag);
                self.commit(lease, &job.resting(Some(due), Some(fault))).await.map_err(StageStop::Store)?;
            }
        }
        Ok(StageRun::Committed)
    }
}

impl EngineParts {
    fn mount(&self, job: &Job) -> Result<&Arc<Mount>, Fault> {
        self.mounts.get(&job.key.source).ok_or_else(|| {
            let words = format!("no source in jobs.toml is named {:?} any more", job.key.source.as_str());
            Fault::new(FaultKind::FolderAway, words, self.clock.now())
        })
    }
}

/// What a walk has done.
pub(super) enum StageRun {
    /// To be committed.
    Outcome(Box<StageOutcome>),
    /// Committed already.
    Committed,
}

/// A panic in a move is that job's fault, never the engine's death: `None`.
async fn catch<T>(work: impl Future<Output = T> + Send + 'static) -> Option<T> {
    use futures_util::FutureExt;
    std::panic::AssertUnwindSafe(work).catch_unwind().await.ok()
}
