//! One pass over a manifest: each row becomes a job, or says why not, and comes back in the receipt.

use super::keys::{AssignedNames, Name, OwnName, candidates, own_key};
use super::receipt::{Draft, RowResult};
use super::removed::NamedJobs;
use super::repeats::RepeatedRows;
use super::rows::{ReadRow, collect_repeats, items, sight};
use super::{Known, PassContext, RowCounts, SourceManifests, Taken};
use crate::blocking::{blocking, joined, spawn};
use crate::domain::fault::FaultKind;
use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::manifest_row::{ManifestRow, RowMedia, RowSight};
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::scheduling::is_bought;
use crate::domain::stage::StageKind;
use crate::manifests::format::record::{Form, RowError};
use crate::pipeline::budget::plan_allowlist::PlanAllowlist;
use crate::source::path_policy::Denied;
use crate::store::contract::StoreError;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Rows are taken in portions.
const PORTION: usize = 256;

/// So many rows that are wrong are told in the log; the receipt has them all.
const TOLD: u64 = 20;

/// The next pass looks for a file that is not there; a job is looked at by itself after so long.
const AWAITED: Duration = Duration::from_secs(3600);

/// What is known of a manifest before its rows are taken.
type Gathered = (Form, Arc<RepeatedRows>);

impl SourceManifests {
    /// Goes through a manifest; `None` where nothing of it is believed.
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
            None => self.gather(manifest, stamp).await,
        };
        let (form, repeats) = match gathered {
            Ok(gathered) => gathered,
            Err(problem) => {
                self.disbelieve(manifest, stamp, problem);
                return Ok(None);
            }
        };
        let source = &self.mount.source().name;
        let (sum, draft, named) = match self.rows(context, manifest, stamp, &form, &repeats, is_first, admitted).await?
        {
            Ok(gone_through) => gone_through,
            Err(problem) => {
                self.disbelieve(manifest, stamp, problem);
                return Ok(None);
            }
        };
        self.answered(manifest, draft.end().await);
        if is_first {
            if context.plan_allowlist.is_none() {
                self.end_removed_rows(context, manifest, &named).await?;
            }
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

    fn before(&self, manifest: &RelPath) -> Option<(Stamp, Option<Gathered>)> {
        let known = self.known();
        let Known { stamp, taken, .. } = known.get(manifest)?;
        Some((*stamp, taken.as_ref().map(|taken| (taken.form.clone(), Arc::clone(&taken.repeats)))))
    }

    /// Said once, until the manifest is another.
    fn disbelieve(&self, manifest: &RelPath, stamp: Stamp, problem: String) {
        let source = &self.mount.source().name;
        let mut known = self.known();
        let Some(known) = known.get_mut(manifest).filter(|known| known.stamp == stamp) else { return };
        if known.problem.as_ref() != Some(&problem) {
            let reason = &problem;
            tracing::error!(%source, %manifest, %reason, "cannot use a manifest; jobs of its earlier content continue");
        }
        known.problem = Some(problem);
    }

    fn answered(&self, manifest: &RelPath, written: Result<(), String>) {
        let source = &self.mount.source().name;
        let mut known = self.known();
        let Some(known) = known.get_mut(manifest) else { return };
        let trouble = written.err();
        if let Some(reason) = trouble.as_ref().filter(|trouble| known.receipt.as_ref() != Some(trouble)) {
            tracing::warn!(%source, %manifest, %reason, "cannot write the receipt of a manifest; its jobs continue");
        }
        known.receipt = trouble;
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
        tells: bool,
        admitted: &mut u64,
    ) -> Result<Result<(RowCounts, Draft, NamedJobs), String>, StoreError> {
        let (to, mut items) = mpsc::channel(4 * PORTION);
        let (lists, of) = (Arc::clone(self), manifest.clone());
        let reading = spawn(move || lists.read_rows(&of, stamp, &to));
        let mut draft = Draft::begin(self, manifest, form);
        let (mut sum, mut given, mut portion) = (RowCounts::default(), AssignedNames::default(), Vec::new());
        let (mut held, mut named) = (0, NamedJobs::default());
        while items.recv_many(&mut portion, PORTION).await > 0 {
            for item in portion.drain(..) {
                let answer = self.take(context, &item, repeats, (&mut given, &mut named), admitted).await?;
                sum.add(&answer);
                if let Some(media) = &item.names {
                    named.add_recording(&self.mount.source().name, manifest, media);
                }
                if let RowResult::Wrong(wrong) = &answer
                    && tells
                    && sum.wrong <= TOLD
                {
                    self.tell_wrong(manifest, wrong);
                }
                if let (Some(denied), Ok(row)) = (&item.denied, &item.row) {
                    held += 1;
                    if tells && held <= TOLD {
                        self.tell_held(manifest, row, denied);
                    }
                }
                draft.push(&item.record, &answer);
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

    fn tell_wrong(&self, manifest: &RelPath, wrong: &[RowError]) {
        let source = &self.mount.source().name;
        for reason in wrong {
            tracing::warn!(%source, %manifest, row = reason.row, %reason, "a row of a manifest is wrong and orders nothing; other rows continue");
        }
    }

    fn tell_held(&self, manifest: &RelPath, row: &ManifestRow, denied: &Denied) {
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
        (given, named): (&mut AssignedNames, &mut NamedJobs),
        admitted: &mut u64,
    ) -> Result<RowResult<'i>, StoreError> {
        let row = match &item.row {
            Ok(row) => row,
            Err(wrong) => {
                return Ok(self.bought_before(context, item, given).await?.unwrap_or(RowResult::Wrong(wrong)));
            }
        };
        let source = &self.mount.source().name;
        let known = context.store.find(&own_key(source, row)).await?.and_then(|job| job.row);
        let own_name = OwnName::of(known.as_deref(), &row.manifest);
        let key = match given.name(source, row, own_name, repeats) {
            Name::Key(key) => key,
            Name::Repeats(first) => return Ok(RowResult::Repeats(first)),
        };
        let seen = item.seen();
        let key = context.plan_allowlist.and_then(|chosen| as_planned(chosen, source, row, seen)).unwrap_or(key);
        named.add(&key);
        if let Some(chosen) =
            context.plan_allowlist.filter(|chosen| !chosen.has(&key, &seen.unwrap_or_default(), Some(row)))
        {
            match context.store.find(&key).await? {
                None => return Ok(RowResult::LeftOut),
                // It is not as it was planned: that is noted, so that nothing is bought for it.
                Some(_) if chosen.names(&key) => {}
                Some(job) => return Ok(self.of_job(job, item)),
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
            judged_anew(context, &job, item).await?;
        }
        Ok(self.of_job(job, item))
    }

    /// What became of a row that orders nothing any more, since its recording has no ending of one, and was bought by
    /// an older release: that stays so.
    async fn bought_before<'i>(
        &self,
        context: PassContext<'_>,
        item: &'i ReadRow,
        given: &mut AssignedNames,
    ) -> Result<Option<RowResult<'i>>, StoreError> {
        let Some(row) = &item.row_any_extension else { return Ok(None) };
        for key in candidates(&self.mount.source().name, row) {
            let Some(job) = context.store.find(&key).await? else { continue };
            let is_theirs = |known: &ManifestRow| known.manifest == row.manifest && known.requests_same_as(row);
            if job.row.as_deref().is_some_and(is_theirs) && has_bought(&job) {
                let earlier = given.earlier(row).map(RowResult::Repeats);
                return Ok(Some(earlier.unwrap_or_else(|| RowResult::Job(Box::new(job), false))));
            }
        }
        Ok(None)
    }

    fn first_look(&self, context: PassContext<'_>, seen: RowSight) -> (Timestamp, Timestamp) {
        // The engine looks with what the file's own disk needs.
        let root = RelPath::new("");
        let (at, settle, disk) = (context.clock.moment(), self.mount.settle_at(&root), self.mount.disk_at(&root));
        let quiet = |stamp| disk.quiet_at(&stamp, at, settle);
        let due = match seen {
            RowSight::File(stamp) => quiet(stamp).map_or(at.now.saturating_add(settle), |quiet| quiet.max(at.now)),
            RowSight::Nothing => at.now.saturating_add(AWAITED),
            RowSight::Unknown => at.now,
        };
        (at.now, due)
    }

    fn of_job<'i>(&self, job: Job, item: &ReadRow) -> RowResult<'i> {
        let is_file = item.row.as_ref().is_ok_and(|row| matches!(row.media, RowMedia::File(_)));
        let waits = job.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Awaited);
        let is_missed = waits || item.seen().is_none() && item.denied.is_none();
        let awaited = !job.stage.is_end() && is_file && is_missed;
        RowResult::Job(Box::new(job), awaited)
    }
}

/// Whether something was or may be bought for it.
fn has_bought(job: &Job) -> bool {
    let is_under_way = matches!(job.stage.kind(), StageKind::Submitting | StageKind::Following);
    is_under_way || job.stage.transcription().is_some() || !job.outputs.is_empty()
}

/// What was not allowed and is now, or the other way round, is looked at again: the configuration may be another one,
/// or a link. What is due already (its source may be paused) need not be told again.
async fn judged_anew(context: PassContext<'_>, job: &Job, item: &ReadRow) -> Result<(), StoreError> {
    let (kind, now) = (job.fault.as_ref().map(|fault| &fault.kind), context.clock.now());
    let is_over = job.stage.is_end() || is_bought(job.stage.kind());
    if is_over || job.due.is_some_and(|due| due <= now) {
        return Ok(());
    }
    // A look by a person's word would be that a file is whole.
    let is_other = kind != Some(&FaultKind::Held) && (kind == Some(&FaultKind::NotAllowed)) != item.denied.is_some();
    if is_other && context.store.wake(job.id, now).await?.is_done() {
        (context.admitted)();
    }
    Ok(())
}

/// The name that a plan gave to the job of a row, where it is as it was planned: what has the recording's own name is
/// another one when not all of what was planned before it is taken.
fn as_planned(chosen: &PlanAllowlist, source: &SourceName, row: &ManifestRow, seen: Option<Stamp>) -> Option<JobKey> {
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
