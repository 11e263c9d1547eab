//! The laws of the queue for stores of one process: rows below, the index beside them.

use crate::blocking::blocking;
use crate::crash::{self, Point};
use crate::domain::budget::{Account, BudgetExceeded, BudgetLimit, judge};
use crate::domain::charge::{Charge, Sighted, State, carried};
use crate::domain::due_limit::{LongestWaits, is_ahead, limited};
use crate::domain::format::Format;
use crate::domain::job::{Job, JobKey, JobTag, Output, Stamp};
use crate::domain::manifest_row::{ManifestRow, RowSight};
use crate::domain::names::{JobId, ServiceName, SourceName, Timestamp, TranscriptionId};
use crate::domain::path::RelPath;
use crate::domain::pause::{Pause, PauseScope, Pauses};
use crate::domain::reason::waits_for;
use crate::domain::scheduling::SchedulingPolicies;
use crate::domain::stage::{JobEvent, Stage, StageKind};
use crate::domain::token::PurchaseKey;
use crate::store::contract::{
    Admission, Bought, BudgetLine, ClaimLimit, Claimed, DuplicateCheck, Filter, GroupFilter, HistoryEntry, Hold,
    InLine, JobCounts, JobSubset, Lease, NewestPurchase, Renamed, Store, StoreError, WaitingGroup,
};
use crate::store::index::budget_queue::NextInLine;
use crate::store::index::job_index::{JobIndex, split};
use crate::store::journal::Purchases;
use crate::store::row_change::{RowChange, compare};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Where the rows are: memory or sled.
pub trait Rows: Send {
    /// A job.
    fn load(&self, id: JobId) -> Result<Option<Job>, StoreError>;
    /// Puts a job; kept in order, durable after [`Barrier::durable`].
    fn save(&mut self, job: &Job) -> Result<(), StoreError>;
    /// Every job, by number: once, when the queue is opened.
    fn each(&self, take: &mut (dyn FnMut(Job) + Send)) -> Result<(), StoreError>;
    /// Jobs with a number above `after`, by number.
    fn scan(&self, after: Option<JobId>) -> Box<dyn Iterator<Item = Result<Job, StoreError>> + '_>;
    /// What is known to have been bought.
    fn bought(&self, order: &PurchaseKey) -> Result<Option<Bought>, StoreError>;
    /// Everything that is known to have been bought.
    fn each_bought(&self, see: &mut dyn FnMut(&Bought)) -> Result<(), StoreError>;
    /// Writes down that it was bought; with `None`, that it was worth nothing.
    fn put_bought(&mut self, order: &PurchaseKey, bought: Option<&Bought>) -> Result<(), StoreError>;
    /// Whether anything was ever sighted that no job of this store bought.
    fn has_sightings(&self) -> Result<bool, StoreError>;
    /// From now on so.
    fn set_sightings(&mut self) -> Result<(), StoreError>;
    /// Whether nothing may be bought at this service yet.
    fn suspect(&self, service: &ServiceName) -> Result<bool, StoreError>;
    /// See [`Store::has_lost`].
    fn has_lost(&self, service: &ServiceName) -> Result<bool, StoreError>;
    /// From now on so, or no longer.
    fn set_trusted(&mut self, service: &ServiceName, trusted: bool) -> Result<(), StoreError>;
    /// The orders that nothing new is uploaded or submitted.
    fn pauses(&self) -> Result<Pauses, StoreError>;
    /// From now on these.
    fn set_pauses(&mut self, pauses: &Pauses) -> Result<(), StoreError>;
}

/// The history. Beside the rows and not below their lock: reading a long one holds nobody up.
pub trait Journal: Send + Sync {
    /// One more line.
    fn note(&self, note: &HistoryEntry) -> Result<(), StoreError>;
    /// A job's lines, oldest first.
    fn history(&self, job: JobId) -> Result<Vec<HistoryEntry>, StoreError>;
    /// These transcriptions were paid for; and these have another id now. Beside the rows, so that rows that come back
    /// as they were earlier are found out.
    fn paid(&self, _paid: &[TranscriptionId], _renamed: &[TranscriptionId]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// What a commit changed of what is paid for.
#[derive(Default)]
struct Paid {
    new: Vec<TranscriptionId>,
    renamed: Vec<TranscriptionId>,
}

impl Paid {
    fn between(old: &[Charge], new: &[Charge]) -> Self {
        let ids = |charges: &[Charge]| charges.iter().filter_map(|charge| charge.transcription.clone()).collect();
        let (old, mut new): (Vec<TranscriptionId>, Vec<TranscriptionId>) = (ids(old), ids(new));
        let renamed = old.iter().filter(|id| !new.contains(id)).cloned().collect();
        new.retain(|id| !old.contains(id));
        Self { new, renamed }
    }

    fn is_none(&self) -> bool {
        self.new.is_empty() && self.renamed.is_empty()
    }
}

/// Makes what was put durable.
#[async_trait::async_trait]
pub trait Barrier: Send + Sync {
    /// Returns when everything put before the call is safe from power loss.
    async fn durable(&self) -> Result<(), StoreError>;
}

/// A store of one process.
pub struct QueueStore {
    queue: Mutex<Queue>,
    journal: Arc<dyn Journal>,
    barrier: Box<dyn Barrier>,
}

/// A line of the history is written before its row, and a killed process may leave no more than that. A row that was
/// to be durable was so when other lines came so long after it.
const HISTORY_AHEAD: Duration = Duration::from_secs(60);

/// What the history says of [`Store::acknowledge`].
const ACKNOWLEDGED: &str = "a person acknowledged a job";

/// So many rows are read before the others get their turn.
const ROWS_AT_A_TIME: usize = 512;

impl QueueStore {
    /// Opens: scans the rows once and rebuilds the index.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where a row cannot be read.
    pub fn open(rows: Box<dyn Rows>, journal: Arc<dyn Journal>, barrier: Box<dyn Barrier>) -> Result<Self, StoreError> {
        Self::open_at(None, rows, journal, barrier)
    }

    /// The same; with the time, so that [`Store::limit_waits`] need not read all rows once more.
    ///
    /// # Errors
    /// As [`QueueStore::open`].
    pub fn open_at(
        now: Option<Timestamp>,
        rows: Box<dyn Rows>,
        journal: Arc<dyn Journal>,
        barrier: Box<dyn Barrier>,
    ) -> Result<Self, StoreError> {
        let queue = Queue::open(rows, Arc::clone(&journal), now)?;
        Ok(Self { queue: Mutex::new(queue), journal, barrier })
    }

    /// Why these rows are not the newest that there were, by what stands beside them: transcriptions that were paid
    /// for, and steps that were made durable. Both name jobs and purchases that the rows must know.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where a row cannot be read.
    pub fn outdated(&self, paid: &Purchases, last: &[HistoryEntry]) -> Result<Option<String>, StoreError> {
        let queue = self.queue();
        let lost = paid.iter().filter(|id| !queue.index.spending.has_paid_hash(id)).count();
        if lost > 0 {
            return Ok(Some(format!("it lacks {lost} of {} purchases that the history has", paid.len())));
        }
        let newest = last.iter().map(|note| note.at).max().unwrap_or(Timestamp(0));
        let was_durable = |note: &&HistoryEntry| is_durable_at(note.stage) && note.at.after(HISTORY_AHEAD) <= newest;
        for note in last.iter().filter(was_durable) {
            let row = queue.rows.load(note.job)?;
            let is_known = row.is_some_and(|row| {
                let is_same = (row.stage.kind(), row.round) == (note.stage, note.round);
                is_same || row.since >= note.at
            });
            if !is_known {
                let (job, stage) = (note.job, note.stage.name());
                return Ok(Some(format!(
                    "the history is newer: it has job {job} at {stage}, which the queue does not have"
                )));
            }
        }
        Ok(None)
    }

    /// As [`Store::has_paid`].
    pub fn knows_paid(&self, transcription: &TranscriptionId) -> bool {
        self.queue().index.spending.has_paid(transcription)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A panic in here would be a bug of ours; rows and index are each whole between statements.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Queue {
    rows: Box<dyn Rows>,
    journal: Arc<dyn Journal>,
    index: JobIndex,
    /// The jobs with a moment ahead of the time at which the queue was opened; `None` where that is not known.
    ahead: Option<Vec<JobId>>,
}

impl Queue {
    fn open(rows: Box<dyn Rows>, journal: Arc<dyn Journal>, now: Option<Timestamp>) -> Result<Self, StoreError> {
        let mut index = JobIndex::default();
        let mut ahead = now.map(|_| Vec::new());
        rows.each(&mut |job| {
            if let (Some(now), Some(ahead)) = (now, &mut ahead)
                && is_ahead(&job, now)
            {
                ahead.push(job.id);
            }
            index.add(&job);
        })?;
        if rows.has_sightings()? {
            rows.each_bought(&mut |bought| index.spending.sight(bought))?;
        }
        Ok(Self { rows, journal, index, ahead })
    }

    fn load(&self, id: JobId) -> Result<Job, StoreError> {
        let missing = || StoreError::Damaged(format!("the row of job {id} is missing"));
        self.rows.load(id)?.ok_or_else(missing)
    }

    fn put(&mut self, old: Option<&Job>, new: &Job) -> Result<Paid, StoreError> {
        let paid = new.stage.transcription().is_some_and(|id| self.index.spending.has_paid(id));
        let sighted = if paid { None } else { self.sighted(new)? };
        let charges = old.map(|old| carried(old, new, paid, sighted)).unwrap_or_default();
        let new = &Job { charges, ..new.clone() };
        let news = old.is_none_or(|old| {
            old.stage.kind() != new.stage.kind() || old.round != new.round || words(old) != words(new)
        });
        // Before the row: another's sync may keep the row at once, and a process that is killed between
        // the two would leave a step that nobody heard of. A line whose row was lost is told again.
        if news {
            self.note(new);
        }
        self.replace(old, new)?;
        Ok(Paid::between(old.map_or(&[], |old| &old.charges), &new.charges))
    }

    /// What the service's list said of a job's transcription, where that was found there again.
    fn sighted(&self, job: &Job) -> Result<Option<Sighted>, StoreError> {
        let Stage::Submitted { order, transcription } = &job.stage else { return Ok(None) };
        let bought = self.rows.bought(order)?.filter(|bought| bought.transcription == *transcription);
        Ok(bought.and_then(|bought| bought.sighted))
    }

    fn replace(&mut self, old: Option<&Job>, new: &Job) -> Result<(), StoreError> {
        self.rows.save(new)?;
        if let Some(old) = old {
            self.index.remove(old);
        }
        self.index.add(new);
        Ok(())
    }

    fn begin_run(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.index.spending.begin_run(now);
        self.configured_anew(now)
    }

    fn limit_waits(&mut self, now: Timestamp, waits: &LongestWaits) -> Result<usize, StoreError> {
        let ids = match self.ahead.take() {
            Some(ids) => ids,
            None => self.rows.scan(None).map(|job| job.map(|job| job.id)).collect::<Result<_, _>>()?,
        };
        let mut count = 0;
        for id in ids {
            let old = self.load(id)?;
            if let Some(new) = limited(&old, now, waits) {
                self.replace(Some(&old), &new)?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn configured_anew(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.index.on_settings().into_iter().try_for_each(|id| self.bring_forward(id, now))
    }

    fn reserve(
        &mut self,
        lease: &Lease,
        charge: &Charge,
        wall: &[BudgetLimit],
    ) -> Result<Result<(), BudgetExceeded>, StoreError> {
        if !self.index.holds(lease) {
            return Err(StoreError::LeaseLost(lease.job));
        }
        self.index.has_asked(lease.job);
        let old = self.load(lease.job)?;
        let mut new = old.clone();
        new.charges.retain(|charge| charge.state != State::Held);
        let need = charge.reserved.unwrap_or_default();
        let before: Vec<u64> = wall.iter().map(|limit| self.index.spending.used(limit)).collect();
        // What was put by for this very job is not in its way.
        self.index.spending.remove(&old);
        self.index.spending.add(&new);
        let used = wall.iter().map(|limit| (limit.clone(), self.index.spending.used(limit)));
        // What takes no more of a limit than the job has of it by now is not refused, whatever others were billed
        // meanwhile: it was reserved.
        let more = used.zip(before).filter(|((_, without), with)| without.saturating_add(need) > *with);
        let judged = judge(more.map(|(used, _)| used), need);
        self.index.spending.remove(&new);
        self.index.spending.add(&old);
        if judged.is_ok() {
            let run = self.index.spending.run().unwrap_or(charge.at);
            new.charges.push(Charge { run, state: State::Held, ..charge.clone() });
        }
        if new.charges != old.charges {
            self.replace(Some(&old), &new)?;
        }
        Ok(judged)
    }

    /// The row is what counts. If a missing line made the step fail, its caller would believe that the
    /// job is where it no longer is.
    fn note(&self, job: &Job) {
        self.note_line(&note(job));
    }

    fn note_line(&self, note: &HistoryEntry) {
        if let Err(error) = self.journal.note(note) {
            tracing::warn!(job = note.job.0, %error, "a line of the history is missing");
        }
    }

    fn admit(&mut self, key: &JobKey, seen: Stamp, now: Timestamp, due: Timestamp) -> Result<Admission, StoreError> {
        let Some(id) = self.index.roll.find(&key.tag()) else {
            let job = Job::found(self.index.next_id(), key.clone(), seen, now, due);
            self.put(None, &job)?;
            return Ok(Admission::New(job.id));
        };
        let old = self.load(id)?;
        // A file that was away may come back just as it was.
        let is_back = matches!(old.stage, Stage::Skipped { why } if why.is_lifted_by_a_file());
        if !old.stage.is_end() {
            if old.is_missed() && old.due.is_some_and(|due| due > now) {
                self.bring_forward(id, now)?;
                return Ok(Admission::Awaited(id));
            }
            return Ok(Admission::Known(id));
        }
        if old.is_file(&seen) && !is_back {
            return Ok(Admission::Known(id));
        }
        let Ok(new) = old.clone().on(JobEvent::Grew { stamp: seen }, now) else {
            return Ok(Admission::Known(id));
        };
        self.put(Some(&old), &new.resting(Some(due), None))?;
        Ok(Admission::Reopened(id))
    }

    fn admit_row(
        &mut self,
        key: &JobKey,
        row: &ManifestRow,
        seen: RowSight,
        now: Timestamp,
        due: Timestamp,
    ) -> Result<Admission, StoreError> {
        let Some(id) = self.index.roll.find(&key.tag()) else {
            let found = Job::found(self.index.next_id(), key.clone(), seen.stamp().unwrap_or_default(), now, due);
            let job = Job { row: Some(Box::new(row.clone())), fault: row.waits(seen, now), ..found };
            self.put(None, &job)?;
            return Ok(Admission::New(job.id));
        };
        let old = self.load(id)?;
        match compare(&old, row, seen, now, due) {
            RowChange::Reordered(new) => {
                self.settle_purchase(&old, &new)?;
                // First: whoever holds the job may not put back what was ordered before.
                self.index.release(id);
                self.put(Some(&old), &new)?;
                self.wake_followers(&new)?;
                return Ok(Admission::Reopened(id));
            }
            RowChange::Noted(new) => drop(self.put(Some(&old), &new)?),
            RowChange::Same | RowChange::Later => {}
        }
        match seen.stamp() {
            Some(seen) => self.admit(key, seen, now, due),
            None => Ok(Admission::Known(id)),
        }
    }

    /// The index knows who may have written it; the row knows for sure. What a job wrote in an earlier
    /// round under another language is still ours.
    fn wrote(&self, key: &JobKey) -> Result<bool, StoreError> {
        let Some(job) = self.writer(key)? else { return Ok(false) };
        let (_, name) = split(key.path.as_bytes());
        let is_output = |output: &Output| output.name.as_bytes() == name;
        let has_format = Format::ALL.iter().any(|format| name.ends_with(format!(".{}", format.ext()).as_bytes()));
        Ok(has_format || job.outputs.iter().any(is_output))
    }

    fn writer(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        let Some(id) = self.index.writer(key) else { return Ok(None) };
        let (folder, _) = split(key.path.as_bytes());
        let beside = |job: &Job| {
            job.key.source == key.source && split(job.key.path.as_bytes()).0 == folder && !job.stage.is_forgotten()
        };
        Ok(self.rows.load(id)?.filter(beside))
    }

    fn claim(
        &mut self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        mut room: ClaimLimit,
    ) -> Result<Vec<Claimed>, StoreError> {
        let mut claimed = Vec::new();
        while claimed.len() < room.all {
            let Some(lease) = self.index.claim(kinds, of, now, until, room.backlog > 0) else { break };
            let job = self.load(lease.job)?;
            room.backlog = room.backlog.saturating_sub(usize::from(self.index.is_backlog(&job)));
            claimed.push(Claimed { lease, job });
        }
        Ok(claimed)
    }

    fn claim_in_line(
        &mut self,
        of: GroupFilter<'_>,
        (now, until): (Timestamp, Timestamp),
        mut room: ClaimLimit,
        line: &BudgetLine<'_>,
    ) -> Result<InLine, StoreError> {
        let mut found = InLine::default();
        while found.claimed.len() < room.all {
            let lease = match self.index.claim_in_line(of, (now, until), room.backlog > 0, line) {
                NextInLine::Claimed(lease) => lease,
                NextInLine::Waits => {
                    found.waits_for_others = true;
                    break;
                }
                NextInLine::None => break,
            };
            let job = self.load(lease.job)?;
            room.backlog = room.backlog.saturating_sub(usize::from(self.index.is_backlog(&job)));
            found.claimed.push(Claimed { lease, job });
        }
        Ok(found)
    }

    /// Something is said of a job that its holder knows nothing of, and goes on.
    fn amend(&mut self, id: JobId, amend: impl FnOnce(Job) -> Option<Job>) -> Result<bool, StoreError> {
        let Some(old) = self.rows.load(id)? else { return Ok(false) };
        let Some(new) = amend(old.clone()) else { return Ok(false) };
        self.replace(Some(&old), &new)?;
        Ok(true)
    }

    fn acknowledge(&mut self, id: JobId, now: Timestamp) -> Result<bool, StoreError> {
        let Some(old) = self.rows.load(id)?.filter(Job::may_be_acknowledged) else { return Ok(false) };
        if old.acknowledged.is_some() {
            return Ok(true);
        }
        let new = Job { acknowledged: Some(now), ..old.clone() };
        self.note_line(&HistoryEntry { at: now, words: Some(ACKNOWLEDGED.to_owned()), ..note(&new) });
        self.replace(Some(&old), &new)?;
        Ok(true)
    }

    fn commit(&mut self, lease: &Lease, job: &Job, hold: Hold) -> Result<Paid, StoreError> {
        if !self.index.holds(lease) || lease.job != job.id {
            return Err(StoreError::LeaseLost(lease.job));
        }
        let old = self.load(job.id)?;
        let job = &self.hinted(&old, job);
        self.settle_purchase(&old, job)?;
        let paid = self.put(Some(&old), job)?;
        if hold == Hold::Release {
            self.index.release(job.id);
        }
        self.wake_followers(job)?;
        Ok(paid)
    }

    /// A hint that came during the look at a job is not undone by the commit of that look.
    fn hinted(&mut self, old: &Job, new: &Job) -> Job {
        let mut job = Job { bumped: old.bumped, ..new.clone() };
        let hint = self.index.take_hint(job.id);
        if let (Some(hint), Some(due)) = (hint, job.due)
            && old.stage == job.stage
        {
            job.due = Some(due.min(hint));
        }
        job
    }

    /// A purchase is written down for ever, unless it turned out worthless and another is to be made;
    /// the claim to an order lasts while the job is on its way to buy it.
    ///
    /// Comes before the row. Rows survive in order, so whoever finds the row finds the purchase too; the
    /// other way round a copy of the same content could be bought again. A purchase whose row was lost
    /// is still true, and one that was forgotten too early is forgotten again.
    fn settle_purchase(&mut self, old: &Job, new: &Job) -> Result<(), StoreError> {
        match &new.stage {
            Stage::Submitted { order, transcription } => {
                let known = self.rows.bought(order)?;
                let first = known.as_ref().filter(|known| known.transcription == *transcription);
                let by = first.and_then(|known| known.by).or(Some(new.id));
                let origin = new.bought_at.clone().or_else(|| first.and_then(|known| known.origin.clone()));
                let sighted = first.and_then(|known| known.sighted);
                let bought = Bought { transcription: transcription.clone(), round: new.round, by, origin, sighted };
                match known {
                    // A twin has bought another since this one was given up: that one is the better.
                    Some(known) if known.transcription != bought.transcription && known.round > bought.round => Ok(()),
                    _ => self.rows.put_bought(order, Some(&bought)),
                }
            }
            Stage::Probed { .. } => self.forget_worthless(old),
            // By a person's order. What is good is shared still, if it comes to the same.
            Stage::Settled => {
                self.index.disown(new.id);
                match old.stage.kind() {
                    StageKind::Submitted | StageKind::Failed => self.forget_worthless(old),
                    _ => Ok(()),
                }
            }
            Stage::Uploaded { .. } | Stage::Submitting { .. } => Ok(()),
            _ => {
                self.index.disown(new.id);
                Ok(())
            }
        }
    }

    fn forget_worthless(&mut self, old: &Job) -> Result<(), StoreError> {
        let (Some(order), Some(dead)) = (old.stage.order(), old.stage.transcription()) else { return Ok(()) };
        self.forget(order, dead)
    }

    fn forget(&mut self, order: &PurchaseKey, dead: &TranscriptionId) -> Result<(), StoreError> {
        match self.rows.bought(order)? {
            Some(bought) if bought.transcription == *dead => self.rows.put_bought(order, None),
            _ => Ok(()),
        }
    }

    fn sight(&mut self, order: &PurchaseKey, bought: &Bought) -> Result<(), StoreError> {
        self.index.spending.sight(bought);
        match self.rows.bought(order)? {
            Some(known) if known.round >= bought.round => Ok(()),
            _ => {
                // First: whoever finds the purchase has to know that there are such.
                self.rows.set_sightings()?;
                self.rows.put_bought(order, Some(bought))
            }
        }
    }

    /// Followers look again when their leader has come to something.
    fn wake_followers(&mut self, leader: &Job) -> Result<(), StoreError> {
        let undecided = matches!(
            leader.stage.kind(),
            StageKind::Probed | StageKind::Uploaded | StageKind::Submitting | StageKind::Submitted
        );
        if undecided {
            return Ok(());
        }
        for id in self.index.followers(leader.id) {
            self.bring_forward(id, leader.since)?;
        }
        Ok(())
    }

    fn bring_forward(&mut self, id: JobId, now: Timestamp) -> Result<(), StoreError> {
        let old = self.load(id)?;
        self.index.hint(id, now);
        let mut new = old.clone();
        new.due = Some(new.due.map_or(now, |due| due.min(now)));
        self.put(Some(&old), &new).map(drop)
    }

    fn hasten(&mut self, transcription: &TranscriptionId, now: Timestamp) -> Result<bool, StoreError> {
        match self.index.waits_for(transcription) {
            Some(id) => self.bring_forward(id, now).map(|()| true),
            None => Ok(false),
        }
    }

    fn overrule(&mut self, seen: &Job, event: JobEvent, now: Timestamp) -> Result<bool, StoreError> {
        let Some(old) = self.rows.load(seen.id)? else { return Ok(false) };
        if (&old.stage, old.round) != (&seen.stage, seen.round) {
            return Ok(false);
        }
        let Ok(new) = old.clone().on(event, now) else { return Ok(false) };
        self.settle_purchase(&old, &new)?;
        // First: whoever holds the job may not put back what the person has ended.
        self.index.release(old.id);
        self.put(Some(&old), &new)?;
        self.wake_followers(&new)?;
        Ok(true)
    }

    /// Some of those that follow `after`; where the next begin.
    fn rename_some(
        &mut self,
        (old, new): (&SourceName, &SourceName),
        (held, now): (bool, Timestamp),
        after: Option<JobId>,
        renamed: &mut Renamed,
    ) -> Result<Option<JobId>, StoreError> {
        let jobs = self.rows.scan(after).take(ROWS_AT_A_TIME).collect::<Result<Vec<_>, _>>()?;
        let last = jobs.last().map(|job| job.id);
        for job in jobs.into_iter().filter(|job| job.key.source == *old) {
            if self.index.roll.find(&JobTag::of(new, &job.key.path)).is_some() {
                renamed.taken += 1;
            } else if self.index.is_held(job.id) && !held {
                renamed.held += 1;
            } else {
                // First: whoever holds the job may not put the old name back.
                self.index.release(job.id);
                self.replace(Some(&job), &job.clone().under(new.clone(), now))?;
                crash::point(Point::SourceRenaming);
                renamed.done += 1;
            }
        }
        Ok(last)
    }

    /// A pause of the source is one of its new name.
    fn rename_pause(&mut self, old: &SourceName, new: &SourceName) -> Result<(), StoreError> {
        let mut pauses = self.rows.pauses()?;
        match pauses.rename(old, new) {
            true => self.rows.set_pauses(&pauses),
            false => Ok(()),
        }
    }

    fn look_again(&mut self, id: JobId, now: Timestamp) -> Result<bool, StoreError> {
        match self.rows.load(id)? {
            Some(job) if job.is_held() && !job.stage.is_end() => self.vouch(job, now).map(|()| true),
            Some(old) if old.asks_where() => {
                let new = Job { bought_at: None, ..old.clone() };
                self.put(Some(&old), &new.resting(Some(now), None)).map(|_| true)
            }
            Some(job) if !job.stage.is_end() => self.bring_forward(id, now).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Whoever is just looking at it may not put back that it is held.
    fn vouch(&mut self, old: Job, now: Timestamp) -> Result<(), StoreError> {
        self.index.release(old.id);
        let new = Job { vouched: Some(old.seen), ..old.clone() };
        self.put(Some(&old), &new.resting(Some(now), None)).map(drop)
    }

    /// The next rows at these stages, or at any where none is given; at most so many.
    fn rows_after(&self, stages: &[StageKind], after: Option<JobId>, most: usize) -> Result<Vec<Job>, StoreError> {
        let most = most.min(ROWS_AT_A_TIME);
        if stages.is_empty() {
            return self.rows.scan(after).take(most).collect();
        }
        self.index.roll.at(stages, after, most).into_iter().map(|id| self.load(id)).collect()
    }

    fn waiting(&self) -> Result<Vec<WaitingGroup>, StoreError> {
        let each = self.index.waiting().map(|(group, kind, what, waiting)| {
            let fits = |job: &Job| job.group() == *group && job.stage.kind() == kind && waits_for(job) == what;
            let known = waiting.one.map(|id| self.load(id)).transpose()?;
            let one = match known.filter(fits) {
                Some(one) => Some(one),
                None => self.first(kind, &fits)?,
            };
            Ok(one.map(|one| WaitingGroup { one, jobs: waiting.jobs }))
        });
        each.filter_map(Result::transpose).collect()
    }

    /// The first of a stage of which this is true.
    fn first(&self, kind: StageKind, wanted: &dyn Fn(&Job) -> bool) -> Result<Option<Job>, StoreError> {
        let mut jobs = self.index.roll.at(&[kind], None, usize::MAX).into_iter().map(|id| self.load(id));
        jobs.find(|job| job.as_ref().map_or(true, wanted)).transpose()
    }

    fn those_after(&self, those: JobSubset, after: Option<JobId>, most: usize) -> Result<Vec<Job>, StoreError> {
        let (roll, most) = (&self.index.roll, most.min(ROWS_AT_A_TIME));
        let ids = match those {
            JobSubset::Away => roll.away(after, most),
            JobSubset::WithCost => roll.with_cost(after, most),
            JobSubset::Incomplete => roll.incomplete(after, most),
            JobSubset::Forgotten => roll.forgotten(after, most),
        };
        ids.into_iter().map(|id| self.load(id)).collect()
    }
}

/// Others get their turn between the pieces.
async fn in_pieces(
    mut after: Option<JobId>,
    limit: usize,
    is_wanted: impl Fn(&Job) -> bool,
    read: impl Fn(Option<JobId>, usize) -> Result<Vec<Job>, StoreError>,
) -> Result<Vec<Job>, StoreError> {
    let mut page = Vec::new();
    loop {
        let rows = read(after, limit - page.len())?;
        let Some(last) = rows.last() else { return Ok(page) };
        after = Some(last.id);
        page.extend(rows.into_iter().filter(&is_wanted));
        if page.len() >= limit {
            return Ok(page);
        }
        tokio::task::yield_now().await;
    }
}

fn words(job: &Job) -> Option<&str> {
    job.fault.as_ref().map(|fault| fault.words.as_str())
}

fn note(job: &Job) -> HistoryEntry {
    HistoryEntry {
        at: job.since.max(job.fault.as_ref().map_or(job.since, |fault| fault.at)),
        job: job.id,
        stage: job.stage.kind(),
        round: job.round,
        words: words(job).map(str::to_owned).or_else(|| job.shortfall()),
        transcription: job.stage.transcription().cloned(),
    }
}

/// The next effect stands on it (head of `store/contract.rs`).
fn must_be_durable(job: &Job) -> bool {
    match job.stage.kind() {
        StageKind::Fetched => !job.placing.is_empty(),
        kind => is_durable_at(kind),
    }
}

/// Whether every row at this stage was made durable before anything else happened.
fn is_durable_at(kind: StageKind) -> bool {
    matches!(kind, StageKind::Submitting | StageKind::Submitted | StageKind::Written)
}

#[async_trait::async_trait]
impl Store for QueueStore {
    async fn admit(&self, key: &JobKey, seen: Stamp, now: Timestamp, due: Timestamp) -> Result<Admission, StoreError> {
        self.queue().admit(key, seen, now, due)
    }

    async fn news(
        &self,
        source: &SourceName,
        mut seen: Vec<(RelPath, Stamp)>,
    ) -> Result<Vec<(RelPath, Stamp)>, StoreError> {
        // Hashed before the others are kept out.
        let tags: Vec<JobTag> = seen.iter().map(|(path, _)| JobTag::of(source, path)).collect();
        let (queue, mut tags) = (self.queue(), tags.iter());
        seen.retain(|(_, stamp)| tags.next().is_some_and(|tag| !queue.index.roll.is_known(tag, stamp)));
        Ok(seen)
    }

    async fn admit_row(
        &self,
        key: &JobKey,
        row: &ManifestRow,
        seen: RowSight,
        now: Timestamp,
        due: Timestamp,
    ) -> Result<Admission, StoreError> {
        self.queue().admit_row(key, row, seen, now, due)
    }

    async fn claim_within(
        &self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        room: ClaimLimit,
    ) -> Result<Vec<Claimed>, StoreError> {
        self.queue().claim(kinds, of, now, until, room)
    }

    async fn claim_in_line(
        &self,
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        room: ClaimLimit,
        line: &BudgetLine<'_>,
    ) -> Result<InLine, StoreError> {
        self.queue().claim_in_line(of, (now, until), room, line)
    }

    async fn goes_without_reserving(&self, lease: &Lease) -> Result<(), StoreError> {
        let mut queue = self.queue();
        if queue.index.holds(lease) {
            queue.index.has_asked(lease.job);
        }
        Ok(())
    }

    async fn arrange(&self, policies: SchedulingPolicies) -> Result<(), StoreError> {
        self.queue().index.arrange(policies);
        Ok(())
    }

    async fn bump(&self, job: JobId, now: Timestamp) -> Result<bool, StoreError> {
        let done = {
            let mut queue = self.queue();
            let at = queue.index.bump_at(now);
            queue.amend(job, |job| (!job.stage.is_end()).then_some(Job { bumped: Some(at), ..job }))?
        };
        if done {
            self.barrier.durable().await?;
        }
        Ok(done)
    }

    async fn acknowledge(&self, job: JobId, now: Timestamp) -> Result<bool, StoreError> {
        let done = self.queue().acknowledge(job, now)?;
        if done {
            self.barrier.durable().await?;
        }
        Ok(done)
    }

    async fn due_after(
        &self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.queue().index.due_after(kinds, of, now))
    }

    async fn renew(&self, lease: &Lease, until: Timestamp) -> Result<(), StoreError> {
        let held = self.queue().index.renew(lease, until);
        if held { Ok(()) } else { Err(StoreError::LeaseLost(lease.job)) }
    }

    async fn commit(&self, lease: &Lease, job: &Job, hold: Hold) -> Result<(), StoreError> {
        let paid = self.queue().commit(lease, job, hold)?;
        // The log of purchases must not know what the rows may forget.
        if must_be_durable(job) || !paid.is_none() {
            self.barrier.durable().await?;
        }
        if !paid.is_none()
            && let Err(error) = self.journal.paid(&paid.new, &paid.renamed)
        {
            tracing::warn!(job = job.id.0, %error, "a line of the log of purchases is missing");
        }
        Ok(())
    }

    async fn duplicate(&self, order: &PurchaseKey, job: JobId) -> Result<DuplicateCheck, StoreError> {
        let owner = self.queue().index.own(order, job);
        Ok(if owner == job { DuplicateCheck::Owner } else { DuplicateCheck::Follows(owner) })
    }

    async fn alike(&self, size: u64, job: JobId) -> Result<bool, StoreError> {
        let queue = self.queue();
        let own = queue.rows.load(job)?.is_some_and(|job| job.seen.size == size);
        Ok(queue.index.of_size(size) > u32::from(own) || queue.rows.has_sightings()?)
    }

    async fn bought(&self, order: &PurchaseKey) -> Result<Option<Bought>, StoreError> {
        self.queue().rows.bought(order)
    }

    async fn sight(&self, order: &PurchaseKey, bought: &Bought) -> Result<(), StoreError> {
        self.queue().sight(order, bought)
    }

    async fn forget(&self, order: &PurchaseKey, transcription: &TranscriptionId) -> Result<(), StoreError> {
        self.queue().forget(order, transcription)?;
        self.barrier.durable().await
    }

    async fn suspect(&self, service: &ServiceName) -> Result<bool, StoreError> {
        self.queue().rows.suspect(service)
    }

    async fn has_lost(&self, service: &ServiceName) -> Result<bool, StoreError> {
        self.queue().rows.has_lost(service)
    }

    async fn trust(&self, service: &ServiceName) -> Result<(), StoreError> {
        self.barrier.durable().await?;
        self.queue().rows.set_trusted(service, true)?;
        self.barrier.durable().await
    }

    async fn has_paid(&self, transcription: &TranscriptionId) -> Result<bool, StoreError> {
        Ok(self.knows_paid(transcription))
    }

    async fn newest_purchase(&self, service: &ServiceName) -> Result<NewestPurchase, StoreError> {
        Ok(self.queue().index.spending.newest(service))
    }

    async fn distrust(&self, service: &ServiceName) -> Result<(), StoreError> {
        self.queue().rows.set_trusted(service, false)?;
        self.barrier.durable().await
    }

    async fn waits_for(&self, transcription: &TranscriptionId) -> Result<Option<JobId>, StoreError> {
        Ok(self.queue().index.waits_for(transcription))
    }

    async fn hasten(&self, transcription: &TranscriptionId, now: Timestamp) -> Result<bool, StoreError> {
        self.queue().hasten(transcription, now)
    }

    async fn overrule(&self, seen: &Job, event: JobEvent, now: Timestamp) -> Result<bool, StoreError> {
        let done = self.queue().overrule(seen, event, now)?;
        if done {
            self.barrier.durable().await?;
        }
        Ok(done)
    }

    async fn rename_source(
        &self,
        old: &SourceName,
        new: &SourceName,
        held: bool,
        now: Timestamp,
    ) -> Result<Renamed, StoreError> {
        let (mut renamed, mut after) = (Renamed::default(), None);
        loop {
            after = self.queue().rename_some((old, new), (held, now), after, &mut renamed)?;
            if after.is_none() {
                break;
            }
            // Others get their turn.
            tokio::task::yield_now().await;
        }
        self.queue().rename_pause(old, new)?;
        self.barrier.durable().await?;
        Ok(renamed)
    }

    async fn sources(&self) -> Result<BTreeMap<SourceName, JobCounts>, StoreError> {
        Ok(self.queue().index.sources())
    }

    async fn look_again(&self, job: JobId, now: Timestamp) -> Result<bool, StoreError> {
        self.queue().look_again(job, now)
    }

    async fn pauses(&self) -> Result<Pauses, StoreError> {
        self.queue().rows.pauses()
    }

    async fn set_pause(&self, whose: &PauseScope, pause: Option<Pause>) -> Result<Pauses, StoreError> {
        let pauses = {
            let mut queue = self.queue();
            let mut pauses = queue.rows.pauses()?;
            match pause {
                Some(pause) => pauses.give(whose.clone(), pause),
                None => pauses.take_back(whose),
            }
            queue.rows.set_pauses(&pauses)?;
            pauses
        };
        self.barrier.durable().await?;
        Ok(pauses)
    }

    async fn next_due(&self, kinds: &[StageKind], of: GroupFilter<'_>) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.queue().index.next_due(kinds, of))
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        self.queue().rows.load(id)
    }

    async fn find(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        let queue = self.queue();
        match queue.index.roll.find(&key.tag()) {
            Some(id) => Ok(queue.rows.load(id)?.filter(|job| !job.stage.is_forgotten())),
            None => Ok(None),
        }
    }

    async fn wrote(&self, key: &JobKey) -> Result<bool, StoreError> {
        self.queue().wrote(key)
    }

    async fn writer(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        self.queue().writer(key)
    }

    async fn page(&self, filter: &Filter) -> Result<Vec<Job>, StoreError> {
        let read = |after, most| self.queue().rows_after(&filter.stages, after, most);
        in_pieces(filter.after, filter.limit, |job| !job.stage.is_forgotten(), read).await
    }

    async fn those(&self, those: JobSubset, after: Option<JobId>, most: usize) -> Result<Vec<Job>, StoreError> {
        in_pieces(after, most, |_| true, |after, most| self.queue().those_after(those, after, most)).await
    }

    async fn waiting(&self) -> Result<Vec<WaitingGroup>, StoreError> {
        self.queue().waiting()
    }

    async fn counts_of(&self, of: GroupFilter<'_>) -> Result<JobCounts, StoreError> {
        Ok(self.queue().index.counts(of))
    }

    async fn history(&self, job: JobId) -> Result<Vec<HistoryEntry>, StoreError> {
        let journal = Arc::clone(&self.journal);
        blocking(move || journal.history(job)).await
    }

    async fn begin_run(&self, now: Timestamp) -> Result<(), StoreError> {
        self.queue().begin_run(now)
    }

    async fn limit_waits(&self, now: Timestamp, waits: &LongestWaits) -> Result<usize, StoreError> {
        self.queue().limit_waits(now, waits)
    }

    async fn configured_anew(&self, now: Timestamp) -> Result<(), StoreError> {
        self.queue().configured_anew(now)
    }

    async fn reserve(
        &self,
        lease: &Lease,
        charge: &Charge,
        wall: &[BudgetLimit],
    ) -> Result<Result<(), BudgetExceeded>, StoreError> {
        self.queue().reserve(lease, charge, wall)
    }

    async fn accounts(&self, limits: &[BudgetLimit]) -> Result<Vec<Account>, StoreError> {
        let queue = self.queue();
        Ok(limits.iter().map(|limit| queue.index.spending.account(limit)).collect())
    }

    async fn unclaimed(&self) -> Result<Vec<(Timestamp, u64)>, StoreError> {
        Ok(self.queue().index.spending.unclaimed())
    }

    async fn settle(&self) -> Result<(), StoreError> {
        self.barrier.durable().await
    }
}
