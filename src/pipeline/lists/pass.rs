//! One pass over a manifest: each row becomes a job, or says why not, and comes back in the receipt.

use super::keys::{Given, Name};
use super::receipt::{Answer, Draft};
use super::repeats::{Gathering, Repeats};
use super::{Doors, Known, Lists, Sum, Taken};
use crate::domain::fault::FaultKind;
use crate::domain::job::Stamp;
use crate::domain::names::{JobId, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::row::{Row, RowMedia};
use crate::pipeline::blocking::{blocking, joined};
use crate::source::manifest::columns::{Terms, order};
use crate::source::manifest::find::read;
use crate::source::manifest::record::{Form, Record, RowError};
use crate::source::place::full_path;
use crate::source::stamp::{Look, look};
use crate::store::contract::{Admission, StoreError};
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Rows are taken in portions.
const PORTION: usize = 256;

/// So many rows that are wrong are told in the log; the receipt has them all.
const TOLD: u64 = 20;

/// What is known of a manifest before its rows are taken.
type Gathered = (Form, Arc<Repeats>);

/// A row as it was read.
struct Item {
    record: Record,
    order: Result<Row, Vec<RowError>>,
    /// Its file, where that is there.
    seen: Option<Stamp>,
}

impl Lists {
    /// Goes through a manifest; `None` where nothing of it is believed.
    pub(super) async fn pass(
        self: &Arc<Self>,
        doors: Doors<'_>,
        manifest: &RelPath,
        admitted: &mut u64,
    ) -> Result<Option<Sum>, StoreError> {
        let begun = doors.clock.uptime();
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
        let (sum, draft) = match self.rows(doors, manifest, stamp, &form, &repeats, is_first, admitted).await? {
            Ok(gone_through) => gone_through,
            Err(problem) => {
                self.disbelieve(manifest, stamp, problem);
                return Ok(None);
            }
        };
        self.answered(manifest, draft.end().await);
        if is_first {
            let Sum { rows, wrong, repeated, awaited, .. } = sum;
            tracing::info!(%source, %manifest, rows, wrong, repeated, awaited, "a manifest is taken in");
        }
        let counts = doors.store.counts_of(&|group| group.source == *source).await?;
        let (at, wall, took) = (doors.clock.uptime(), doors.clock.wall(), doors.clock.uptime().since(begun));
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
            tracing::error!(%source, %manifest, %reason, "nothing of a manifest is taken; what it ordered before goes on");
        }
        known.problem = Some(problem);
    }

    fn answered(&self, manifest: &RelPath, written: Result<(), String>) {
        let source = &self.mount.source().name;
        let mut known = self.known();
        let Some(known) = known.get_mut(manifest) else { return };
        let trouble = written.err();
        if let Some(reason) = trouble.as_ref().filter(|trouble| known.receipt.as_ref() != Some(trouble)) {
            tracing::warn!(%source, %manifest, %reason, "the receipt of a manifest cannot be written; its jobs go on");
        }
        known.receipt = trouble;
    }

    /// Reads it once before anything of it is believed: half a file orders nothing.
    async fn gather(self: &Arc<Self>, manifest: &RelPath, stamp: Stamp) -> Result<Gathered, String> {
        let (lists, manifest) = (Arc::clone(self), manifest.clone());
        blocking(move || {
            let (mut gathering, source) = (Gathering::default(), lists.mount.source());
            let terms = Terms { source, manifest: &manifest };
            let form = read(source, &manifest, lists.mount.disk_at(&manifest), stamp, &mut |record, _| {
                if let Ok(row) = order(&record, &terms) {
                    gathering.add(&row);
                }
                ControlFlow::Continue(())
            })?;
            Ok((form, Arc::new(gathering.end())))
        })
        .await
    }

    #[expect(clippy::too_many_arguments, reason = "a manifest as it was gathered, and what is told of it")]
    async fn rows(
        self: &Arc<Self>,
        doors: Doors<'_>,
        manifest: &RelPath,
        stamp: Stamp,
        form: &Form,
        repeats: &Repeats,
        tells: bool,
        admitted: &mut u64,
    ) -> Result<Result<(Sum, Draft), String>, StoreError> {
        let (to, mut items) = mpsc::channel(4 * PORTION);
        let (lists, of) = (Arc::clone(self), manifest.clone());
        let reading = tokio::task::spawn_blocking(move || lists.read_rows(&of, stamp, &to));
        let mut draft = Draft::begin(self, manifest, form);
        let (mut sum, mut given, mut portion) = (Sum::default(), Given::default(), Vec::new());
        while items.recv_many(&mut portion, PORTION).await > 0 {
            for item in portion.drain(..) {
                let answer = self.take(doors, &item, repeats, &mut given, admitted).await?;
                sum.add(&answer);
                if let Answer::Wrong(wrong) = &answer
                    && tells
                    && sum.wrong <= TOLD
                {
                    self.tell_wrong(manifest, wrong);
                }
                draft.push(&item.record, &answer);
            }
            draft.flush().await;
        }
        Ok(match joined(reading).await {
            Ok(_) => Ok((sum, draft)),
            Err(problem) => {
                draft.give_up().await;
                Err(problem)
            }
        })
    }

    fn tell_wrong(&self, manifest: &RelPath, wrong: &[RowError]) {
        let source = &self.mount.source().name;
        for reason in wrong {
            tracing::warn!(%source, %manifest, row = reason.row, %reason, "a row orders nothing; the others go on");
        }
    }

    fn read_rows(&self, manifest: &RelPath, stamp: Stamp, to: &mpsc::Sender<Item>) -> Result<Form, String> {
        let source = self.mount.source();
        let terms = Terms { source, manifest };
        read(source, manifest, self.mount.disk_at(manifest), stamp, &mut |record, wrong| {
            let order = match (order(&record, &terms), wrong) {
                (Ok(row), None) => Ok(row),
                (Ok(_), Some(wrong)) => Err(vec![wrong]),
                (Err(_), Some(wrong)) if record.cells.is_empty() => Err(vec![wrong]),
                (Err(more), wrong) => Err(wrong.into_iter().chain(more).collect()),
            };
            let seen = order.as_ref().ok().and_then(|row| self.seen(row));
            match to.blocking_send(Item { record, order, seen }) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })
    }

    fn seen(&self, row: &Row) -> Option<Stamp> {
        let RowMedia::File(path) = &row.media else { return None };
        match look(&full_path(&self.mount.source().folder, path), self.mount.disk_at(path)) {
            Ok(Look::File(stamp)) => Some(stamp),
            _ => None,
        }
    }

    async fn take<'i>(
        &self,
        doors: Doors<'_>,
        item: &'i Item,
        repeats: &Repeats,
        given: &mut Given,
        admitted: &mut u64,
    ) -> Result<Answer<'i>, StoreError> {
        let row = match &item.order {
            Ok(row) => row,
            Err(wrong) => return Ok(Answer::Wrong(wrong)),
        };
        let key = match self.name(doors, row, repeats, given).await? {
            Name::Key(key) => key,
            Name::Repeats(first) => return Ok(Answer::Repeats(first)),
        };
        let (now, due) = self.first_look(doors, item.seen);
        let admission = doors.store.admit_row(&key, row, item.seen, now, due).await?;
        let (Admission::New(id) | Admission::Known(id) | Admission::Reopened(id)) = admission;
        if !matches!(admission, Admission::Known(_)) {
            *admitted += 1;
            (doors.admitted)();
        }
        self.answer(doors, id, item).await
    }

    fn first_look(&self, doors: Doors<'_>, seen: Option<Stamp>) -> (Timestamp, Timestamp) {
        // The engine looks with what the file's own disk needs.
        let root = RelPath::new("");
        let (at, settle, disk) = (doors.clock.moment(), self.mount.settle_at(&root), self.mount.disk_at(&root));
        let quiet = |stamp| disk.quiet_at(&stamp, at, settle);
        let due = seen.map_or(at.now, |stamp| quiet(stamp).map_or(at.now.after(settle), |quiet| quiet.max(at.now)));
        (at.now, due)
    }

    async fn answer<'i>(&self, doors: Doors<'_>, id: JobId, item: &Item) -> Result<Answer<'i>, StoreError> {
        let job = doors.store.job(id).await?;
        let job = job.ok_or_else(|| StoreError::Damaged(format!("the row of job {id} is missing")))?;
        let is_file = item.order.as_ref().is_ok_and(|row| matches!(row.media, RowMedia::File(_)));
        let waits = job.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Awaited);
        let awaited = !job.stage.is_end() && is_file && (waits || item.seen.is_none());
        Ok(Answer::Job(Box::new(job), awaited))
    }
}

impl Sum {
    fn add(&mut self, answer: &Answer<'_>) {
        self.rows += 1;
        match answer {
            Answer::Wrong(_) => self.wrong += 1,
            Answer::Repeats(_) => self.repeated += 1,
            Answer::Job(job, awaited) => {
                self.awaited += u64::from(*awaited);
                self.open += u64::from(!job.stage.is_end());
            }
        }
    }
}
