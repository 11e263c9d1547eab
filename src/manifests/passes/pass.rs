//! One pass over a manifest: each row becomes a job or is rejected with a reason, and is repeated in the receipt.

use super::keys::{AssignedNames, Name, OwnName, candidates, job_beside_own_name, own_key};
use super::receipt::{Draft, RowResult};
use super::removed::NamedJobs;
use super::repeats::RepeatedRows;
use super::rows::{ReadRow, collect_repeats, items, sight};
use super::{Known, PassContext, RowCounts, SourceManifests, Taken};
use crate::blocking::{blocking, joined, spawn};
use crate::clock::Uptime;
use crate::domain::fault::FaultKind;
use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::manifest_row::{ManifestRow, RowMedia, RowSight};
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::scheduling::is_bought;
use crate::domain::stage::StageKind;
use crate::manifests::format::record::{Form, RowError};
use crate::pipeline::budget::plan_allowlist::PlanAllowlist;
use crate::pipeline::windows::with_window_fault_of;
use crate::shortage::{self, SHORTAGE_PATIENCE, SHORTAGE_WAIT, Shortage};
use crate::source::path_policy::Denied;
use crate::source::recording_place::resolve_below;
use crate::store::contract::StoreError;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Whether a manifest is to be read again, because this machine lacked something to read it: that says nothing about
/// the manifest. Returns after a wait then.
async fn may_read_again(context: PassContext<'_>, begun: Uptime, problem: Option<&String>) -> bool {
    let Some(shortage) = problem.and_then(|words| Shortage::in_words(words)) else { return false };
    if context.clock.uptime().since(begun) >= SHORTAGE_PATIENCE {
        return false;
    }
    shortage::report(&shortage.to_string(), SHORTAGE_WAIT);
    context.clock.sleep(SHORTAGE_WAIT).await;
    true
}

/// The number of rows that are processed at once.
const PORTION: usize = 256;

/// The most invalid rows that are logged for one pass; the receipt contains all.
const MAX_LOGGED: u64 = 20;

/// How long a job waits before it checks for a missing file itself; normally the next pass finds the file.
const RECHECK_MISSING: Duration = Duration::from_secs(3600);

/// What the first reading of a manifest gives: its format and the repeated rows.
type Gathered = (Form, Arc<RepeatedRows>);

impl SourceManifests {
    /// Makes one pass over a manifest; `None` if the manifest cannot be used.
    pub(crate) async fn pass(
        self: &Arc<Self>,
        context: PassContext<'_>,
        manifest: &RelPath,
        admitted: &mut u64,
    ) -> Result<Option<RowCounts>, StoreError> {
        let begun = context.clock.uptime();
        let Some((stamp, before)) = self.before(manifest) else { return Ok(None) };
        let is_first = before.is_none();
        let gathered = match before {
            Some(before) => Ok(before),
            None => loop {
                let gathered = self.gather(manifest, stamp).await;
                if !may_read_again(context, begun, gathered.as_ref().err()).await {
                    break gathered;
                }
            },
        };
        let (form, repeats) = match gathered {
            Ok(gathered) => gathered,
            Err(problem) => {
                self.record_problem(manifest, stamp, problem).await;
                return Ok(None);
            }
        };
        let source = &self.mount.source().name;
        let read = loop {
            let read = self.rows(context, manifest, stamp, &form, &repeats, is_first, admitted).await?;
            if !may_read_again(context, begun, read.as_ref().err()).await {
                break read;
            }
        };
        let (sum, draft, named) = match read {
            Ok(pass_result) => pass_result,
            Err(problem) => {
                self.record_problem(manifest, stamp, problem).await;
                return Ok(None);
            }
        };
        self.record_receipt(manifest, draft.end().await);
        if is_first {
            self.record_reading(manifest).await;
            self.end_removed_rows(context, manifest, &named).await?;
            let RowCounts { rows, wrong, repeated, awaited, .. } = sum;
            let encoding = form.encoding.name();
            tracing::info!(%source, %manifest, rows, wrong, repeated, awaited, encoding, "scribed has read a manifest");
        }
        let counts = context.store.counts_of(&|group| group.source == *source).await?;
        let (at, wall, took) = (context.clock.uptime(), context.clock.wall(), context.clock.uptime().since(begun));
        if let Some(known) = self.known().get_mut(manifest).filter(|known| known.stamp == stamp) {
            known.taken = Some(Taken { form, repeats, sum, counts, at, wall, took });
            known.problem = None;
        }
        Ok(Some(sum))
    }

    /// Records that the manifest was read, so that its disappearance is noticed.
    async fn record_reading(self: &Arc<Self>, manifest: &RelPath) {
        let (lists, of) = (Arc::clone(self), manifest.clone());
        if let Err(error) = blocking(move || lists.note_read(&of)).await {
            let source = &self.mount.source().name;
            tracing::warn!(%source, %manifest, %error, "cannot record in the state directory that a manifest was read: scribed will not notice if the manifest disappears");
        }
    }

    fn before(&self, manifest: &RelPath) -> Option<(Stamp, Option<Gathered>)> {
        let known = self.known();
        let Known { stamp, taken, .. } = known.get(manifest)?;
        Some((*stamp, taken.as_ref().map(|taken| (taken.form.clone(), Arc::clone(&taken.repeats)))))
    }

    /// Records why a manifest cannot be used, and logs it once until the manifest changes. A manifest that has
    /// disappeared meanwhile has no problem: the next search ends its rows.
    async fn record_problem(&self, manifest: &RelPath, stamp: Stamp, problem: String) {
        let source = &self.mount.source().name;
        let path = resolve_below(&self.mount.source().folder, manifest).full();
        let is_gone = blocking(move || matches!(path.try_exists(), Ok(false))).await;
        let mut known = self.known();
        if is_gone {
            known.remove(manifest);
            return;
        }
        let Some(known) = known.get_mut(manifest).filter(|known| known.stamp == stamp) else { return };
        if known.problem.as_ref() != Some(&problem) {
            let reason = &problem;
            tracing::error!(%source, %manifest, %reason, "cannot use a manifest; jobs of its earlier content continue");
        }
        known.problem = Some(problem);
    }

    fn record_receipt(&self, manifest: &RelPath, written: Result<(), String>) {
        let source = &self.mount.source().name;
        let mut known = self.known();
        let Some(known) = known.get_mut(manifest) else { return };
        let problem = written.err();
        if let Some(reason) = problem.as_ref().filter(|problem| known.receipt.as_ref() != Some(problem)) {
            tracing::warn!(%source, %manifest, %reason, "cannot write the receipt of a manifest; its jobs continue");
        }
        known.receipt = problem;
    }

    async fn gather(self: &Arc<Self>, manifest: &RelPath, stamp: Stamp) -> Result<Gathered, String> {
        let (lists, manifest) = (Arc::clone(self), manifest.clone());
        let gathered = blocking(move || collect_repeats(&lists.mount, &manifest, stamp, &mut |_, _| {})).await;
        gathered.map(|(form, repeats)| (form, Arc::new(repeats)))
    }

    #[expect(clippy::too_many_arguments, reason = "a manifest as it was gathered, and what is told of it")]
    async fn rows(
        self: &Arc<Self>,
        context: PassContext<'_>,
        manifest: &RelPath,
        stamp: Stamp,
        form: &Form,
        repeats: &RepeatedRows,
        logs: bool,
        admitted: &mut u64,
    ) -> Result<Result<(RowCounts, Draft, NamedJobs), String>, StoreError> {
        let (to, mut items) = mpsc::channel(4 * PORTION);
        let (lists, of) = (Arc::clone(self), manifest.clone());
        let reading = spawn(move || lists.read_rows(&of, stamp, &to));
        let mut draft = Draft::begin(self, manifest, form);
        let (mut sum, mut assigned, mut portion) = (RowCounts::default(), AssignedNames::default(), Vec::new());
        let (mut held, mut named) = (0, NamedJobs::default());
        while items.recv_many(&mut portion, PORTION).await > 0 {
            for item in portion.drain(..) {
                let answer = self.take(context, &item, repeats, (&mut assigned, &mut named), admitted).await?;
                sum.add(&answer);
                if let Some(media) = &item.names {
                    named.add_recording(&self.mount.source().name, manifest, media);
                }
                if let RowResult::Wrong(wrong) = &answer
                    && logs
                    && sum.wrong <= MAX_LOGGED
                {
                    self.log_wrong(manifest, wrong);
                }
                if let (Some(denied), Ok(row)) = (&item.denied, &item.row) {
                    held += 1;
                    if logs && held <= MAX_LOGGED {
                        self.log_held(manifest, row, denied);
                    }
                }
                draft.push(&item.record, &self.as_shown(context, answer).await?);
            }
            draft.flush().await;
        }
        Ok(match joined(reading).await {
            Ok(_) => Ok((sum, draft, named)),
            Err(problem) => {
                draft.discard().await;
                Err(problem)
            }
        })
    }

    fn log_wrong(&self, manifest: &RelPath, wrong: &[RowError]) {
        let source = &self.mount.source().name;
        for reason in wrong {
            tracing::warn!(%source, %manifest, row = reason.row, %reason, "a row of a manifest is wrong and requests nothing; other rows continue");
        }
    }

    fn log_held(&self, manifest: &RelPath, row: &ManifestRow, denied: &Denied) {
        let source = self.mount.source();
        let (name, number, reason) = (&source.name, row.number, denied.describe(source));
        tracing::warn!(source = %name, %manifest, row = number, %reason, "a row of a manifest waits for a setting in jobs.toml; other rows continue");
    }

    fn read_rows(&self, manifest: &RelPath, stamp: Stamp, to: &mpsc::Sender<ReadRow>) -> Result<Form, String> {
        items(&self.mount, manifest, stamp, &mut |item| match to.blocking_send(item) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        })
    }

    async fn take<'i>(
        &self,
        context: PassContext<'_>,
        item: &'i ReadRow,
        repeats: &RepeatedRows,
        (assigned, named): (&mut AssignedNames, &mut NamedJobs),
        admitted: &mut u64,
    ) -> Result<RowResult<'i>, StoreError> {
        let row = match &item.row {
            Ok(row) => row,
            Err(wrong) => {
                return Ok(self.bought_before(context, item, assigned).await?.unwrap_or(RowResult::Wrong(wrong)));
            }
        };
        let source = &self.mount.source().name;
        let own = context.store.find(&own_key(source, row)).await?;
        let is_own_free = own.is_none();
        let known = own.and_then(|job| job.row);
        let own_name = OwnName::of(known.as_deref(), &row.manifest);
        let key = match assigned.name(source, row, own_name, repeats) {
            Name::Key(key) => key,
            Name::Repeats(first) => return Ok(RowResult::Repeats(first)),
        };
        let seen = item.seen();
        let key = match is_own_free && key == own_key(source, row) {
            // Perhaps the job that had the recording's own name was forgotten: a row with another job keeps that job.
            true => job_beside_own_name(context.store, source, row).await?.map_or(key, |job| job.key),
            false => key,
        };
        let key = context.plan_allowlist.and_then(|chosen| planned_key(chosen, source, row, seen)).unwrap_or(key);
        named.add(&key);
        if context.plan_allowlist.is_some() {
            // Rows that the plan left out may give this row's job another name than without the plan.
            candidates(source, row).iter().for_each(|key| named.add(key));
        }
        if let Some(chosen) =
            context.plan_allowlist.filter(|chosen| !chosen.has(&key, &seen.unwrap_or_default(), Some(row)))
        {
            match context.store.find(&key).await? {
                None => return Ok(RowResult::LeftOut),
                // It is not as it was planned: that is noted, so that nothing is bought for it.
                Some(_) if chosen.names(&key) => {}
                Some(job) => return Ok(self.result_of_job(job, item)),
            }
        }
        let sight = if item.denied.is_some() { RowSight::Unknown } else { sight(item.file_look.as_ref()) };
        let (now, due) = self.first_look(context, sight);
        let admission = context.store.admit_row(&key, row, sight, now, due).await?;
        let id = admission.id();
        *admitted += u64::from(admission.begins());
        if admission.is_news() {
            (context.admitted)();
        }
        let job = context.store.job(id).await?;
        let job = job.ok_or_else(|| StoreError::Damaged(format!("the row of job {id} is missing")))?;
        if !admission.is_news() {
            wake_if_decision_changed(context, &job, item).await?;
        }
        Ok(self.result_of_job(job, item))
    }

    /// Returns the result of a row that is rejected now for the extension of its recording, but was bought by an older
    /// release: its job stays valid.
    async fn bought_before<'i>(
        &self,
        context: PassContext<'_>,
        item: &'i ReadRow,
        assigned: &mut AssignedNames,
    ) -> Result<Option<RowResult<'i>>, StoreError> {
        let Some(row) = &item.row_any_extension else { return Ok(None) };
        for key in candidates(&self.mount.source().name, row) {
            let Some(job) = context.store.find(&key).await? else { continue };
            let is_same_request = |known: &ManifestRow| known.manifest == row.manifest && known.requests_same_as(row);
            if job.row.as_deref().is_some_and(is_same_request) && has_bought(&job) {
                let earlier = assigned.earlier(row).map(RowResult::Repeats);
                return Ok(Some(earlier.unwrap_or_else(|| RowResult::Job(Box::new(job), false))));
            }
        }
        Ok(None)
    }

    fn first_look(&self, context: PassContext<'_>, seen: RowSight) -> (Timestamp, Timestamp) {
        // The engine checks again with the settings of the file's own disk.
        let root = RelPath::new("");
        let (at, settle, disk) = (context.clock.moment(), self.mount.settle_at(&root), self.mount.disk_at(&root));
        let quiet = |stamp| disk.quiet_at(&stamp, at, settle);
        let due = match seen {
            RowSight::File(stamp) => quiet(stamp).map_or(at.now.saturating_add(settle), |quiet| quiet.max(at.now)),
            RowSight::Nothing => at.now.saturating_add(RECHECK_MISSING),
            RowSight::Unknown => at.now,
        };
        (at.now, due)
    }

    fn result_of_job<'i>(&self, job: Job, item: &ReadRow) -> RowResult<'i> {
        let is_file = item.row.as_ref().is_ok_and(|row| matches!(row.media, RowMedia::File(_)));
        let waits = job.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Awaited);
        let is_missed = waits || item.seen().is_none() && item.denied.is_none();
        let awaited = !job.stage.is_end() && is_file && is_missed;
        RowResult::Job(Box::new(job), awaited)
    }
}

impl SourceManifests {
    /// Returns a row's result with the reason that commands show: that a window is closed is not stored with a job.
    async fn as_shown<'i>(&self, context: PassContext<'_>, answer: RowResult<'i>) -> Result<RowResult<'i>, StoreError> {
        let RowResult::Job(job, awaited) = answer else { return Ok(answer) };
        let now = context.clock.now();
        let job = match context.budgets.is_for_next_run(&job, now) {
            true => *job,
            false => context.budgets.with_budget_fault(context.store, *job, now).await?,
        };
        Ok(RowResult::Job(Box::new(with_window_fault_of(self.mount.source(), job, context.clock.moment())), awaited))
    }
}

/// Whether something was or may have been bought for the job.
fn has_bought(job: &Job) -> bool {
    let is_under_way = matches!(job.stage.kind(), StageKind::Submitting | StageKind::Following);
    is_under_way || job.stage.transcription().is_some() || !job.outputs.is_empty()
}

/// Wakes a job if a row was not allowed before and is now, or the reverse: the configuration or a link may have
/// changed. A job that is due already (its source may be paused) is not woken.
async fn wake_if_decision_changed(context: PassContext<'_>, job: &Job, item: &ReadRow) -> Result<(), StoreError> {
    let (kind, now) = (job.fault.as_ref().map(|fault| &fault.kind), context.clock.now());
    let is_over = job.stage.is_end() || is_bought(job.stage.kind());
    if is_over || job.due.is_some_and(|due| due <= now) {
        return Ok(());
    }
    // A held job is not woken: waking it would mean that its file is complete.
    let is_other = kind != Some(&FaultKind::Held) && (kind == Some(&FaultKind::NotAllowed)) != item.denied.is_some();
    if is_other && context.store.wake(job.id, now).await?.is_done() {
        (context.admitted)();
    }
    Ok(())
}

/// Returns the name that a plan gave to the job of a row, if the row is as planned. The name can differ from the
/// assigned one if rows before it are not in the plan.
fn planned_key(chosen: &PlanAllowlist, source: &SourceName, row: &ManifestRow, seen: Option<Stamp>) -> Option<JobKey> {
    let has = |key: &JobKey| chosen.has(key, &seen.unwrap_or_default(), Some(row));
    candidates(source, row).into_iter().find(has)
}

impl RowCounts {
    fn add(&mut self, answer: &RowResult<'_>) {
        self.rows += 1;
        match answer {
            RowResult::Wrong(_) => self.wrong += 1,
            RowResult::LeftOut => {}
            RowResult::Repeats(_) => self.repeated += 1,
            RowResult::Job(job, awaited) => {
                self.awaited += u64::from(*awaited);
                self.open += u64::from(!job.stage.is_end());
            }
        }
    }
}
