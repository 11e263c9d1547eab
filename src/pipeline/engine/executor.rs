//! Runs the stage of one claimed job and commits the result.

use super::recognise_shortage::recognise_shortage;
use super::{Engine, EngineParts, LEASE};
use crate::backpressure::service_gate::Observation;
use crate::client::contract::RecordEvidence;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Hash, TranscriptionId};
use crate::domain::stage::{AudioAmount, AudioAt, JobEvent, Stage};
use crate::domain::token::PurchaseKey;
use crate::domain::track_selection::TrackSelection;
use crate::pipeline::budget::Deferral;
use crate::pipeline::request::{refresh_before_upload, stored_params};
use crate::pipeline::stages::check_answer::{self, AnswerCheck};
use crate::pipeline::stages::lost_recording::outcome_of_lost_recording;
use crate::pipeline::stages::outcome::{StageOutcome, StageStop};
use crate::pipeline::stages::outputs_as_written::are_outputs_as_written;
use crate::pipeline::stages::poison_guard::ContentWork;
use crate::pipeline::stages::submit::{Submission, SubmitContext};
use crate::pipeline::stages::{join_parts, probe, settle, share_result, submit, upload, wait, write};
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{Claimed, Lease, StoreError};
use std::sync::Arc;

impl Engine {
    /// Runs the stage of a claimed job and commits what came of it.
    pub(super) async fn run_claim(self: Arc<Self>, claim: Claimed) -> Result<(), StoreError> {
        let Claimed { lease, job } = claim;
        tracing::debug!(job = %job.id, path = %job.key.path, stage = job.stage.kind().name(), "moving");
        // The stage works with these parts to its end, even if the configuration is reloaded meanwhile.
        let parts = self.parts();
        let client = Arc::clone(&parts.client);
        let run = {
            let (engine, job) = (Arc::clone(&self), job.clone());
            tokio::select! {
                biased;
                run = catch(async move { engine.run_unless_lost(&parts, &lease, &job).await }) => run,
                lost = self.renew_lease(&lease) => return lost,
            }
        };
        let run = recognise_shortage(run, self.parts().clock.now());
        self.commit_run(&lease, job, run, &client).await
    }

    /// Renews the lease until it is lost.
    async fn renew_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let clock = Arc::clone(&self.parts().clock);
        loop {
            tokio::select! {
                () = clock.sleep(LEASE / 3) => {}
                () = self.recalled.notified() => {}
            }
            let until = self.parts().clock.now().saturating_add(LEASE);
            if !self.parts().store.renew(&[*lease], until).await?.is_empty() {
                return Err(StoreError::LeaseLost(lease.job));
            }
        }
    }

    /// Runs the stage of the job. If it fails, or waits, because its recording is gone, that is the result instead.
    async fn run_unless_lost(&self, parts: &EngineParts, lease: &Lease, job: &Job) -> Result<StageRun, StageStop> {
        let run = self.run_stage(parts, lease, job).await;
        let Ok(mount) = parts.mount(job) else { return run };
        let fault = match &run {
            Err(StageStop::Fault(fault)) => Some(fault),
            Ok(run) => run.wait_fault(),
            Err(StageStop::Store(_)) => None,
        };
        let Some(fault) = fault else { return run };
        match outcome_of_lost_recording(mount, &*parts.clock, job, fault).await? {
            Some(outcome) => Ok(StageRun::Lost(Box::new(outcome))),
            None => run,
        }
    }

    /// Calls the handler of the job's stage.
    async fn run_stage(&self, parts: &EngineParts, lease: &Lease, job: &Job) -> Result<StageRun, StageStop> {
        // A purchase that is under way is awaited and kept even if its row is lost.
        let is_bought = matches!(job.stage, Stage::Submitting { .. } | Stage::Submitted { .. });
        if let Some(row) = job.row.as_ref().filter(|row| row.lost && !is_bought) {
            return Err(StageStop::Fault(row.unknown(parts.clock.now())));
        }
        let outcome = match &job.stage {
            Stage::Found => self.settle(parts, job).await?,
            Stage::Settled => self.probe(parts, job).await?,
            Stage::Probed { params, content } => self.upload(parts, lease, job, (*params, *content)).await?,
            Stage::Uploaded { purchase_key, upload, .. } => {
                return self.submit(parts, lease, job, (purchase_key, upload)).await;
            }
            Stage::Submitted { purchase_key, transcription } => {
                self.wait(parts, job, (purchase_key, transcription)).await?
            }
            Stage::Fetched { purchase_key, .. } if purchase_key.part.is_some() => {
                let words = "internal error: a part of a recording was bought that the job does not have";
                let bug = || Fault::new(FaultKind::Bug, words, parts.clock.now());
                StageOutcome::Step(job.after_part().ok_or_else(bug)?)
            }
            Stage::Fetched { purchase_key, transcription, .. } => {
                self.write(parts, lease, job, (purchase_key, transcription)).await?
            }
            Stage::Following { purchase_key, owner } => {
                share_result::run(&*parts.store, &*parts.clock, job, purchase_key, *owner).await?
            }
            Stage::Submitting { .. }
            | Stage::Written { .. }
            | Stage::Skipped { .. }
            | Stage::Failed { .. }
            | Stage::Cancelled { .. } => {
                let words = "internal error: a job was claimed that must be handled in a batch";
                return Err(StageStop::Fault(Fault::new(FaultKind::Bug, words, parts.clock.now())));
            }
        };
        Ok(outcome.into())
    }

    async fn settle(&self, parts: &EngineParts, job: &Job) -> Result<StageOutcome, Fault> {
        let mount = parts.mount(job)?;
        let settling = async {
            Self::check_row(parts, mount, job).await?;
            settle::run(mount, &*parts.store, &*parts.clock, job).await
        };
        self.run_in_folder(mount, job, settling).await
    }

    async fn probe(&self, parts: &EngineParts, job: &Job) -> Result<StageOutcome, Fault> {
        let (mount, identity) = (parts.mount(job)?, parts.client.identity());
        let probing = async {
            Self::check_row(parts, mount, job).await?;
            probe::run(&*parts.store, identity, &parts.params, mount, &*parts.clock, job).await
        };
        self.run_content_work(parts, mount, (job, ContentWork::Probe), probing).await
    }

    async fn upload(
        &self,
        parts: &EngineParts,
        lease: &Lease,
        job: &Job,
        (params, content): (Hash, Option<Hash>),
    ) -> Result<StageOutcome, Fault> {
        let mount = parts.mount(job)?;
        self.check_may_be_sent(parts, mount, job).await?;
        if let Some(content) = content.filter(|_| job.is_remote()) {
            let reserving = self.reserve(parts, mount, lease, (job, None));
            let known = (params, content);
            let identity = parts.client.identity();
            return upload::by_address::run(&*parts.store, &*parts.clock, identity, job, known, reserving).await;
        }
        let _under_way = self.gate.uploading();
        self.run_in_folder(mount, job, self.upload_file(parts, mount, lease, job, (params, content))).await
    }

    async fn submit(
        &self,
        parts: &EngineParts,
        lease: &Lease,
        job: &Job,
        (purchase_key, upload): (&PurchaseKey, &AudioAt),
    ) -> Result<StageRun, StageStop> {
        let EngineParts { store, client, clock, params, budget_gate, writing, .. } = parts;
        let mount = parts.mount(job)?;
        match self.check_may_be_sent(parts, mount, job).await {
            // The audio was uploaded before the source became `local_only`, or before the row was refused.
            Err(fault) if matches!(fault.kind, FaultKind::Asks | FaultKind::NotAllowed) => {
                return Ok(StageOutcome::Step(JobEvent::UploadLost).into());
            }
            may => may?,
        }
        let (store, client, clock) = (&**store, &**client, &**clock);
        let (callbacks, folders) = (parts.callbacks.as_ref(), &writing.folders);
        let context = SubmitContext { store, client, clock, params, budget_gate, callbacks, folders };
        let _on_its_way = self.begin_create(job.id);
        let mut lease = *lease;
        let submission = submit::run(&context, mount, &mut lease, job, purchase_key, upload).await?;
        Ok(StageRun::Submission(submission, lease))
    }

    /// Polls a transcription, unless nothing of its result is needed. This does not need the source's folder: the result is awaited whatever became of the
    /// source.
    async fn wait(
        &self,
        parts: &EngineParts,
        job: &Job,
        (purchase_key, transcription): (&PurchaseKey, &TranscriptionId),
    ) -> Result<StageOutcome, StageStop> {
        if let Ok(mount) = parts.mount(job)
            && are_outputs_as_written(&parts.results, mount, job, purchase_key).await
        {
            return Ok(StageOutcome::Step(JobEvent::Fetched { audio: AudioAmount::default() }));
        }
        if transcription.is_joined() {
            return Ok(self.join(parts, job, purchase_key, transcription).await?);
        }
        let polled = {
            let _permit = self.reads.acquire().await.ok(); // never closed
            wait::run(&self.wait_context(parts), job, transcription).await
        };
        match polled {
            Err(gone) if gone.kind == FaultKind::Gone => {
                self.find_lost(parts, job, (purchase_key, transcription), gone).await
            }
            polled => {
                self.log_moved_service(job, polled.as_ref().err());
                let polled = polled?;
                if let Some(evidence) = &polled.evidence {
                    self.check_answer(parts, job, (purchase_key, transcription), evidence).await?;
                }
                Ok(self.observe_poll(polled))
            }
        }
    }

    async fn check_answer(
        &self,
        parts: &EngineParts,
        job: &Job,
        (purchase_key, transcription): (&PurchaseKey, &TranscriptionId),
        evidence: &RecordEvidence,
    ) -> Result<(), StageStop> {
        let check = AnswerCheck {
            store: &*parts.store,
            clock: &parts.clock,
            lengths: &parts.budget_gate,
            decode_length: &parts.decode_length,
            mount: parts.mounts.get(&job.key.source),
        };
        check_answer::run(&check, job, purchase_key, transcription, evidence).await?;
        self.observe(Observation::Matched);
        Ok(())
    }

    /// Joins the results of a recording's parts, unless that is done. This does not need the source's folder either.
    async fn join(
        &self,
        parts: &EngineParts,
        job: &Job,
        purchase_key: &PurchaseKey,
        joined: &TranscriptionId,
    ) -> Result<StageOutcome, Fault> {
        let EngineParts { clock, results, params, .. } = parts;
        if let Some(fetched) = wait::kept(results, joined).await {
            return Ok(fetched.outcome);
        }
        let mount = parts.mounts.get(&job.key.source).map(|mount| &**mount);
        let context = join_parts::JoinContext { clock: &**clock, results, params, mount };
        let joining = join_parts::run(&context, job, purchase_key, joined);
        self.guard_content_work(parts, (job, ContentWork::Render), joining).await
    }

    async fn write(
        &self,
        parts: &EngineParts,
        lease: &Lease,
        job: &Job,
        (purchase_key, transcription): (&PurchaseKey, &TranscriptionId),
    ) -> Result<StageOutcome, StageStop> {
        let EngineParts { store, clock, results, params, syncs, writing, .. } = parts;
        let mount = parts.mount(job)?;
        let context = write::WriteContext { store: &**store, clock: &**clock, results, params, syncs, writing };
        let writing = write::run(&context, mount, lease, job, purchase_key, transcription);
        self.run_content_work(parts, mount, (job, ContentWork::Render), writing).await
    }

    pub(super) fn wait_context<'d>(&'d self, parts: &'d EngineParts) -> wait::WaitContext<'d> {
        let EngineParts { client, clock, results, terms, callbacks, .. } = parts;
        let (client, clock, calls) = (&**client, &**clock, callbacks.is_some());
        let (poll_schedule, seen_processing, log_limit) = (self.gate.polls(), &self.seen_processing, &self.log_limit);
        wait::WaitContext { client, clock, results, terms, poll_schedule, seen_processing, calls, log_limit }
    }

    /// Uploads the file of a recording, unless its settings have changed so that its request has to be built again.
    async fn upload_file(
        &self,
        parts: &EngineParts,
        mount: &Arc<Mount>,
        lease: &Lease,
        job: &Job,
        known: (Hash, Option<Hash>),
    ) -> Result<StageOutcome, Fault> {
        let EngineParts { store, client, clock, params, .. } = parts;
        let (store, client, clock) = (&**store, &**client, &**clock);
        if let Some(outcome) = refresh_before_upload(params, mount, clock, (job, &known.0)).await? {
            return Ok(outcome);
        }
        let (_, pick) = stored_params::load(params, &known.0, clock.now())?;
        let (of, extractor) = ((job, pick.as_ref()), self.extractor());
        let reserving = self.reserve(parts, mount, lease, of);
        upload::run(store, client, clock, mount, job, known, reserving, (&extractor, pick.as_ref(), &self.sent_bytes))
            .await
    }

    /// Checks that the outputs can be written, reserves from the budgets, and wakes the next job in the budget order.
    /// This comes before anything is sent.
    async fn reserve(
        &self,
        parts: &EngineParts,
        mount: &Arc<Mount>,
        lease: &Lease,
        of: (&Job, Option<&TrackSelection>),
    ) -> Result<Option<Deferral>, Fault> {
        let (store, clock) = (&*parts.store, &*parts.clock);
        let reserved = match parts.writing.folders.check_writable(store, clock, mount, of.0).await {
            Ok(None) => parts.budget_gate.reserve_for_upload((store, clock), mount, lease, of, self.service()).await,
            not_writable => not_writable,
        };
        self.wake_next_in_line();
        reserved
    }
}

impl EngineParts {
    fn mount(&self, job: &Job) -> Result<&Arc<Mount>, Fault> {
        self.mounts.get(&job.key.source).ok_or_else(|| {
            let words = format!("jobs.toml has no source named {:?} any more", job.key.source.as_str());
            Fault::new(FaultKind::FolderAway, words, self.clock.now())
        })
    }
}

/// Result of running a stage, to be committed.
pub(super) enum StageRun {
    Outcome(Box<StageOutcome>),
    /// The outcome for a job whose recording is gone. It is committed for the job as it is stored: the stage may have
    /// committed something before it failed.
    Lost(Box<StageOutcome>),
    /// The outcome of an attempt to buy, and the lease as the stage left it.
    Submission(Submission, Lease),
}

impl StageRun {
    /// Returns the fault for which the job waits, if nothing happened otherwise.
    fn wait_fault(&self) -> Option<&Fault> {
        let (Self::Outcome(outcome) | Self::Submission(Submission::Unsent(outcome), _)) = self else { return None };
        match &**outcome {
            StageOutcome::Rest(_, fault) => Some(fault),
            _ => None,
        }
    }
}

impl From<StageOutcome> for StageRun {
    fn from(outcome: StageOutcome) -> Self {
        Self::Outcome(outcome.into())
    }
}

/// Returns `None` if the work panics: a panic in a stage fails its job and never ends the engine.
async fn catch<T>(work: impl Future<Output = T> + Send + 'static) -> Option<T> {
    use futures_util::FutureExt;
    std::panic::AssertUnwindSafe(work).catch_unwind().await.ok()
}
