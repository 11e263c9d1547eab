//! The queue on a disk that loses what was not synced, with a crash point before and after every step.

use crate::protocol::sim::line::LineLaw;
use crate::protocol::sim::world::{World, must_be_kept};
use scribed::testing::domain::budget::{Account, BudgetExceeded, BudgetLimit, Period};
use scribed::testing::domain::charge::Charge;
use scribed::testing::domain::clock_ahead::LongestWaits;
use scribed::testing::domain::job::{Job, JobKey, Stamp};
use scribed::testing::domain::manifest_row::{ManifestRow, RowSight};
use scribed::testing::domain::names::{JobId, ServiceName, SourceName, Timestamp, TranscriptionId};
use scribed::testing::domain::pause::{Pause, PauseScope, Pauses};
use scribed::testing::domain::scheduling::SchedulingPolicies;
use scribed::testing::domain::stage::{JobEvent, StageKind};
use scribed::testing::domain::token::PurchaseKey;
use scribed::testing::store::contract::{
    Admission, Backups, BudgetOrder, Budgets, ClaimLimit, Claimed, Claims, CommandOutcome, Commands, CopiedRows,
    DuplicateCheck, Filter, GroupFilter, HistoryEntry, Hold, JobCounts, JobSubset, Jobs, KnownPurchase, Lease,
    Lifecycle, NewestPurchase, OrderedClaims, Purchases, Queries, Renamed, RenderingCount, RowCopyError, StoreError,
    WaitingGroup,
};
use scribed::testing::store::memory::MemoryDisk;
use scribed::testing::store::queue::{Barrier, QueueStore};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes durable, with a place to crash before it.
struct SimBarrier {
    world: Arc<World>,
    disk: MemoryDisk,
    life: u32,
    late_intent: Arc<AtomicBool>,
}

#[async_trait::async_trait]
impl Barrier for SimBarrier {
    async fn durable(&self) -> Result<(), StoreError> {
        if self.late_intent.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        self.world.point(self.life, "durable").await;
        self.disk.durable().await
    }
}

pub struct SimStore {
    world: Arc<World>,
    life: u32,
    inner: QueueStore,
    /// Mutation: the intent is acknowledged before it is durable.
    intent_first: bool,
    late_intent: Arc<AtomicBool>,
    /// Mutation: a store that knows nothing is believed.
    pub believed: bool,
    /// Mutation: what is reserved need not fit.
    pub boundless: bool,
    /// Mutation: jobs reserve as they come.
    pub unordered: bool,
    /// Mutation: the total budget stays at so many minutes, whatever a person changes.
    pub total_at_first: Option<u64>,
    line: LineLaw,
}

impl SimStore {
    pub fn open(world: &Arc<World>, life: u32, intent_first: bool) -> Self {
        let disk = world.disk();
        let late_intent = Arc::new(AtomicBool::new(false));
        let barrier =
            SimBarrier { world: Arc::clone(world), disk: disk.clone(), life, late_intent: Arc::clone(&late_intent) };
        let inner = QueueStore::open(Box::new(disk.clone()), Arc::new(disk), Box::new(barrier)).unwrap();
        Self {
            world: Arc::clone(world),
            life,
            inner,
            intent_first,
            late_intent,
            believed: false,
            boundless: false,
            unordered: false,
            total_at_first: None,
            line: LineLaw::default(),
        }
    }

    fn as_at_first(&self, limit: &BudgetLimit) -> BudgetLimit {
        let is_changed = limit.period == Period::Total && limit.source.is_none();
        let allowed = self.total_at_first.filter(|_| is_changed).map_or(limit.allowed, |minutes| minutes * 60_000);
        BudgetLimit { allowed, ..limit.clone() }
    }

    async fn point(&self, name: &str) {
        self.world.point(self.life, name).await;
    }

    async fn remember(&self, id: JobId, durable: bool) {
        if let Ok(Some(job)) = self.inner.job(id).await {
            self.world.committed(&job, durable);
        }
    }
}

fn step(job: &Job) -> &'static str {
    match job.stage.kind() {
        StageKind::Submitting => "intent",
        StageKind::Submitted => "submitted",
        StageKind::Written => "written",
        _ => "commit",
    }
}

#[async_trait::async_trait]
impl Jobs for SimStore {
    async fn admit(&self, key: &JobKey, seen: Stamp, now: Timestamp, due: Timestamp) -> Result<Admission, StoreError> {
        self.point("admit").await;
        let admission = self.inner.admit(key, seen, now, due).await?;
        if let Admission::New(id) | Admission::Reopened(id) = admission {
            self.remember(id, false).await;
        }
        Ok(admission)
    }

    async fn admit_row(
        &self,
        key: &JobKey,
        row: &ManifestRow,
        seen: RowSight,
        now: Timestamp,
        due: Timestamp,
    ) -> Result<Admission, StoreError> {
        self.point("admit").await;
        let admission = self.inner.admit_row(key, row, seen, now, due).await?;
        if let Admission::New(id) | Admission::Reopened(id) = admission {
            self.remember(id, false).await;
        }
        Ok(admission)
    }
}

#[async_trait::async_trait]
impl Claims for SimStore {
    async fn claim(
        &self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        room: ClaimLimit,
    ) -> Result<Vec<Claimed>, StoreError> {
        self.inner.claim(kinds, of, now, until, room).await
    }

    async fn claim_in_budget_order(
        &self,
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        room: ClaimLimit,
        line: &BudgetOrder<'_>,
    ) -> Result<OrderedClaims, StoreError> {
        let found = match self.unordered {
            true => {
                let claimed = self.inner.claim(&[StageKind::Probed], of, now, until, room).await?;
                OrderedClaims { claimed, waits_for_others: false }
            }
            false => self.inner.claim_in_budget_order(of, now, until, room, line).await?,
        };
        let may_buy = |job: &Job| self.world.may_buy(job.key.tag());
        self.line.claimed(&self.inner, &found.claimed, (now, line.limits), may_buy).await;
        Ok(found)
    }

    async fn renew(&self, leases: &[Lease], until: Timestamp) -> Result<Vec<JobId>, StoreError> {
        self.point("renew").await;
        self.inner.renew(leases, until).await
    }

    async fn commit(&self, lease: &Lease, job: &Job, hold: Hold) -> Result<(), StoreError> {
        self.point(step(job)).await;
        let late = self.intent_first && job.stage.kind() == StageKind::Submitting && hold == Hold::Keep;
        self.late_intent.store(late, Ordering::Relaxed);
        // Before it is durable a crash may keep it or not.
        self.world.committed(job, false);
        let result = self.inner.commit(lease, job, hold).await;
        self.late_intent.store(false, Ordering::Relaxed);
        if result.is_ok() {
            let words = job.fault.as_ref().map(|fault| fault.words.as_str()).unwrap_or_default();
            let id = job.stage.transcription().map(ToString::to_string).unwrap_or_default();
            let (kind, purchase_number) = (job.stage.kind().name(), job.purchase_number);
            self.world
                .trace(format!("[{}] {} {} {kind} r{purchase_number} {id} {words}", self.life, job.id, job.key.path));
            if must_be_kept(job) && !id.is_empty() {
                self.world.service.ledger().known.insert(id);
            }
            if must_be_kept(job) && !late {
                self.world.committed(job, true);
            }
            if job.stage.kind() == StageKind::Submitting && hold == Hold::Keep {
                self.world.intent_point(self.life);
            }
        }
        self.point(step(job)).await;
        result
    }

    async fn set_scheduling(&self, policies: SchedulingPolicies) -> Result<(), StoreError> {
        self.line.arranged(&policies);
        self.inner.set_scheduling(policies).await
    }

    async fn next_due(&self, kinds: &[StageKind], of: GroupFilter<'_>) -> Result<Option<Timestamp>, StoreError> {
        self.inner.next_due(kinds, of).await
    }

    async fn due_after(
        &self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.inner.due_after(kinds, of, now).await
    }

    async fn job_awaiting(&self, transcription: &TranscriptionId) -> Result<Option<JobId>, StoreError> {
        self.inner.job_awaiting(transcription).await
    }

    async fn poll_now(&self, transcription: &TranscriptionId, now: Timestamp) -> Result<bool, StoreError> {
        self.inner.poll_now(transcription, now).await
    }
}

#[async_trait::async_trait]
impl Purchases for SimStore {
    async fn claim_purchase(&self, purchase_key: &PurchaseKey, job: JobId) -> Result<DuplicateCheck, StoreError> {
        self.point("twin").await;
        self.inner.claim_purchase(purchase_key, job).await
    }

    async fn may_have_duplicate(&self, size: u64, job: JobId) -> Result<bool, StoreError> {
        self.inner.may_have_duplicate(size, job).await
    }

    async fn purchase(&self, purchase_key: &PurchaseKey) -> Result<Option<KnownPurchase>, StoreError> {
        self.inner.purchase(purchase_key).await
    }

    async fn has_charge(&self, transcription: &TranscriptionId) -> Result<bool, StoreError> {
        self.inner.has_charge(transcription).await
    }

    async fn is_shared(&self, transcription: &TranscriptionId) -> Result<bool, StoreError> {
        self.inner.is_shared(transcription).await
    }

    async fn record_found(&self, purchase_key: &PurchaseKey, bought: &KnownPurchase) -> Result<(), StoreError> {
        self.point("sight").await;
        self.inner.record_found(purchase_key, bought).await
    }

    async fn forget_purchase(
        &self,
        purchase_key: &PurchaseKey,
        transcription: &TranscriptionId,
    ) -> Result<(), StoreError> {
        self.inner.forget_purchase(purchase_key, transcription).await
    }

    async fn newest_purchase(&self, service: &ServiceName) -> Result<NewestPurchase, StoreError> {
        self.inner.newest_purchase(service).await
    }

    async fn is_suspect(&self, service: &ServiceName) -> Result<bool, StoreError> {
        Ok(!self.believed && self.inner.is_suspect(service).await?)
    }

    async fn may_have_lost(&self, service: &ServiceName) -> Result<bool, StoreError> {
        self.inner.may_have_lost(service).await
    }

    async fn trust(&self, service: &ServiceName) -> Result<(), StoreError> {
        self.point("trust").await;
        self.world.trace(format!("[{}] the store is trusted", self.life));
        self.inner.trust(service).await
    }

    async fn distrust(&self, service: &ServiceName) -> Result<(), StoreError> {
        self.point("distrust").await;
        self.inner.distrust(service).await
    }
}

#[async_trait::async_trait]
impl Budgets for SimStore {
    async fn reserve(
        &self,
        lease: &Lease,
        charge: &Charge,
        wall: &[BudgetLimit],
    ) -> Result<Result<(), BudgetExceeded>, StoreError> {
        self.point("reserve").await;
        let at_first = wall.iter().map(|limit| self.as_at_first(limit)).collect::<Vec<_>>();
        let wall: &[BudgetLimit] = match (self.boundless, self.total_at_first) {
            (true, _) => &[],
            (false, Some(_)) => at_first.as_slice(),
            (false, None) => wall,
        };
        let is_first = self.inner.job(lease.job).await?.is_some_and(|job| job.reservation().is_none());
        let reserved = self.inner.reserve(lease, charge, wall).await;
        self.line.asked(lease.job);
        if is_first && matches!(reserved, Ok(Ok(()))) && !self.boundless {
            let wrong = self.line.reserved(&self.inner, lease.job, charge, wall).await;
            self.world.service.ledger().wrongs.extend(wrong);
        }
        self.point("reserve").await;
        reserved
    }

    async fn skip_reservation(&self, lease: &Lease) -> Result<(), StoreError> {
        self.line.asked(lease.job);
        self.inner.skip_reservation(lease).await
    }

    async fn accounts(&self, limits: &[BudgetLimit]) -> Result<Vec<Account>, StoreError> {
        self.inner.accounts(limits).await
    }

    async fn billed(&self) -> Result<BTreeMap<(SourceName, ServiceName), u64>, StoreError> {
        self.inner.billed().await
    }

    async fn unclaimed_costs(&self) -> Result<Vec<(Timestamp, u64)>, StoreError> {
        self.inner.unclaimed_costs().await
    }
}

#[async_trait::async_trait]
impl Commands for SimStore {
    async fn overrule(&self, seen: &Job, event: JobEvent, now: Timestamp) -> Result<CommandOutcome, StoreError> {
        let name = if event == JobEvent::PaidAgain { "paid again" } else { event.name() };
        // Before it is durable a crash may keep it or not.
        if let Ok(new) = seen.clone().apply(event.clone(), now) {
            self.world.committed(&new, false);
        }
        let outcome = self.inner.overrule(seen, event, now).await?;
        if outcome.is_done() {
            self.world.trace(format!("[{}] {} {} {name} by a person", self.life, seen.id, seen.key.path));
            self.remember(seen.id, false).await;
        }
        Ok(outcome)
    }

    async fn wake(&self, job: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError> {
        self.inner.wake(job, now).await
    }

    async fn note_command(&self, job: JobId, words: String, now: Timestamp) -> Result<(), StoreError> {
        self.inner.note_command(job, words, now).await
    }

    async fn erase_history(&self, job: JobId) -> Result<u64, StoreError> {
        self.inner.erase_history(job).await
    }

    async fn bump(&self, job: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError> {
        self.inner.bump(job, now).await
    }

    async fn acknowledge(&self, job: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError> {
        self.inner.acknowledge(job, now).await
    }

    async fn rename_source(
        &self,
        old: &SourceName,
        new: &SourceName,
        held: bool,
        now: Timestamp,
    ) -> Result<Renamed, StoreError> {
        self.point("rename").await;
        self.inner.rename_source(old, new, held, now).await
    }

    async fn set_pause(&self, whose: &PauseScope, pause: Option<Pause>) -> Result<Pauses, StoreError> {
        self.inner.set_pause(whose, pause).await
    }
}

#[async_trait::async_trait]
impl Queries for SimStore {
    fn steps(&self) -> tokio::sync::broadcast::Receiver<HistoryEntry> {
        self.inner.steps()
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        self.inner.job(id).await
    }

    async fn find(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        self.inner.find(key).await
    }

    async fn is_output(&self, key: &JobKey) -> Result<bool, StoreError> {
        self.inner.is_output(key).await
    }

    async fn output_owner(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        self.inner.output_owner(key).await
    }

    async fn page(&self, filter: &Filter) -> Result<Vec<Job>, StoreError> {
        self.inner.page(filter).await
    }

    async fn jobs_in(&self, those: JobSubset, after: Option<JobId>, most: usize) -> Result<Vec<Job>, StoreError> {
        self.inner.jobs_in(those, after, most).await
    }

    async fn counts_of(&self, of: GroupFilter<'_>) -> Result<JobCounts, StoreError> {
        self.inner.counts_of(of).await
    }

    async fn counts_by_source(&self) -> Result<BTreeMap<SourceName, JobCounts>, StoreError> {
        self.inner.counts_by_source().await
    }

    async fn waiting_groups(&self) -> Result<Vec<WaitingGroup>, StoreError> {
        self.inner.waiting_groups().await
    }

    async fn renderings(&self) -> Result<Vec<RenderingCount>, StoreError> {
        self.inner.renderings().await
    }

    async fn history(&self, job: JobId) -> Result<Vec<HistoryEntry>, StoreError> {
        self.inner.history(job).await
    }

    async fn pauses(&self) -> Result<Pauses, StoreError> {
        self.inner.pauses().await
    }
}

#[async_trait::async_trait]
impl Lifecycle for SimStore {
    async fn limit_waits(&self, now: Timestamp, waits: &LongestWaits) -> Result<usize, StoreError> {
        self.inner.limit_waits(now, waits).await
    }

    async fn begin_run(&self, now: Timestamp) -> Result<(), StoreError> {
        self.inner.begin_run(now).await
    }

    async fn configuration_changed(&self, now: Timestamp) -> Result<(), StoreError> {
        self.inner.configuration_changed(now).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.inner.flush().await
    }
}

impl Backups for SimStore {
    fn copy_rows(&self, to: &mut dyn std::io::Write) -> Result<CopiedRows, RowCopyError> {
        self.inner.copy_rows(to)
    }
}
