//! What a store of one process keeps in memory beside its rows: some 60 to 150 bytes for each job, rebuilt by one
//! scan when the store is opened.

use crate::domain::fault::FaultKind;
use crate::domain::job::{Job, JobKey};
use crate::domain::names::{Hash, JobId, SourceName, Timestamp, TranscriptionId};
use crate::domain::reason::job_wait_reason;
use crate::domain::routing::RouteKey;
use crate::domain::scheduling::{Lane, QueuePosition, SchedulingPolicies, SortKey, is_bought};
use crate::domain::stage::{Stage, StageKind};
use crate::domain::token::PurchaseKey;
use crate::domain::wait_reason::WaitReason;
use crate::store::contract::{GroupFilter, JobCounts, Lease};
use crate::store::index::job_table::JobTable;
use crate::store::index::ready_queue::ReadyQueue;
use crate::store::index::renderings::Renderings;
use crate::store::index::spending::Spending;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The first job of a group at a stage: its sort key among the first jobs (the least comes first), its stage and its
/// group.
pub(crate) type GroupHead = ((Lane, Reverse<(u32, i16)>, u64, QueuePosition, JobId), StageKind, RouteKey);

/// The lookups of a queue.
#[derive(Debug, Default)]
pub struct JobIndex {
    pub roll: JobTable,
    /// Which job wrote the files of a folder that have this name without its extension, by a hash.
    writers: HashMap<u64, JobId>,
    pub(crate) parts: BTreeMap<RouteKey, GroupState>,
    /// How many files have this size, by its short form.
    sizes: HashMap<u32, u32>,
    waiting: HashMap<[u8; 16], JobId>,
    owners: HashMap<[u8; 16], JobId>,
    owned: HashMap<JobId, [u8; 16]>,
    followers: BTreeMap<JobId, BTreeSet<JobId>>,
    pub(crate) leases: BTreeMap<JobId, HeldLease>,
    pub spending: Spending,
    pub renderings: Renderings,
    /// The groups that move by themselves, and since when.
    pub(crate) moving: BTreeMap<RouteKey, Timestamp>,
    /// The jobs that have a reservation.
    pub(crate) reserved: BTreeSet<JobId>,
    /// Those of them that have bought a part of their recording and have reserved the rest.
    pub(crate) begun: BTreeSet<JobId>,
    on_settings: BTreeSet<JobId>,
    pub(crate) policies: SchedulingPolicies,
    /// How many jobs were claimed so far.
    served: u64,
    last_bump: Option<Timestamp>,
    fence: u64,
    last: u64,
}

/// The jobs of one group.
#[derive(Debug, Default)]
pub(crate) struct GroupState {
    pub(crate) due: BTreeMap<StageKind, ReadyQueue>,
    counts: JobCounts,
    waiting: BTreeMap<(StageKind, WaitReason), AlikeJobs>,
    since: WaitingSince,
}

impl GroupState {
    fn counts(&self) -> JobCounts {
        let mut counts = self.counts.clone();
        counts.waiting_since = self.since.oldest();
        counts
    }
}

/// How many waiting jobs reached their stage in each second. A backlog is found within a few seconds, so this is small.
#[derive(Debug, Default)]
struct WaitingSince(BTreeMap<i64, u64>);

impl WaitingSince {
    fn change(&mut self, since: Timestamp, by: i64) {
        let second = since.0.div_euclid(1000);
        let jobs = self.0.entry(second).or_default();
        *jobs = jobs.saturating_add_signed(by);
        if *jobs == 0 {
            self.0.remove(&second);
        }
    }

    fn oldest(&self) -> Option<Timestamp> {
        self.0.first_key_value().map(|(second, _)| Timestamp(second.saturating_mul(1000)))
    }
}

/// Jobs of a group at one stage that wait for the same thing.
#[derive(Debug, Default, Clone, Copy)]
pub struct AlikeJobs {
    pub jobs: u64,
    /// One of these jobs, unless it waits for something else by now.
    pub one: Option<JobId>,
}

#[derive(Debug)]
pub(crate) struct HeldLease {
    pub(crate) group: RouteKey,
    fence: u64,
    pub(crate) until: Timestamp,
    pub(crate) kind: StageKind,
    pub(crate) due: Option<Timestamp>,
    hint: Option<Timestamp>,
    /// Whether the holder has asked for its reservation, or goes without one.
    pub(crate) has_asked: bool,
}

impl JobIndex {
    /// Returns a number that no job has. Only [`JobIndex::add`] uses it up: a row that could not be saved leaves no
    /// gap, so a gap in the numbers means that rows were lost.
    pub fn next_id(&self) -> JobId {
        JobId(self.last + 1)
    }

    pub fn add(&mut self, job: &Job) {
        self.last = self.last.max(job.id.0);
        self.last_bump = self.last_bump.max(job.bumped);
        self.roll.put(job);
        for output in job.outputs.iter().chain(&job.earlier).filter(|output| output.at.is_none()) {
            let (folder, _) = split(job.key.path.as_bytes());
            self.writers.insert(written(&job.key.source, folder, output.name.as_bytes()), job.id);
        }
        let group = job.route_key();
        self.count(&group, job, 1);
        self.spending.add(job);
        self.renderings.add(job);
        if let Some(held) = job.reservation() {
            self.reserved.insert(job.id);
            if held.rest > 0 {
                self.begun.insert(job.id);
            }
        }
        if rests_on_settings(job) {
            self.on_settings.insert(job.id);
        }
        *self.sizes.entry(short_size(job.seen.size)).or_default() += 1;
        self.add_due(job.id, &group, job.stage.kind(), job.due);
        match &job.stage {
            Stage::Submitted { transcription, .. } => {
                self.waiting.insert(id_hash(transcription), job.id);
            }
            Stage::Following { owner, .. } => {
                self.followers.entry(*owner).or_default().insert(job.id);
            }
            _ => {}
        }
        if let Some(purchase_key) = in_flight(&job.stage) {
            self.own(purchase_key, job.id);
        }
    }

    /// Removes a job as it was.
    pub fn remove(&mut self, job: &Job) {
        let group = job.route_key();
        self.count(&group, job, -1);
        self.spending.remove(job);
        self.renderings.remove(job);
        self.reserved.remove(&job.id);
        self.begun.remove(&job.id);
        self.on_settings.remove(&job.id);
        let size = short_size(job.seen.size);
        if let Some(count) = self.sizes.get_mut(&size) {
            *count -= 1;
            if *count == 0 {
                self.sizes.remove(&size);
            }
        }
        if let Some(due) = job.due {
            let turn = SortKey::of(job).turn(self.policies.get(&group.source), job.stage.kind(), due);
            let turns = self.parts.get_mut(&group).and_then(|part| part.due.get_mut(&job.stage.kind()));
            turns.into_iter().for_each(|turns| turns.take_out(job.id, due, turn));
        }
        match &job.stage {
            Stage::Submitted { transcription, .. } => {
                // Two jobs may wait for one transcription; each removes only its own entry.
                let key = id_hash(transcription);
                if self.waiting.get(&key) == Some(&job.id) {
                    self.waiting.remove(&key);
                }
            }
            Stage::Following { owner, .. } => {
                if let Some(set) = self.followers.get_mut(owner) {
                    set.remove(&job.id);
                    if set.is_empty() {
                        self.followers.remove(owner);
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the job that may have written a file of this name. Files of one folder that differ only in their
    /// extension share an entry, and an entry is never removed.
    pub fn writer(&self, key: &JobKey) -> Option<JobId> {
        let (folder, name) = split(key.path.as_bytes());
        self.writers.get(&written(&key.source, folder, name)).copied()
    }

    fn part(&mut self, group: &RouteKey) -> &mut GroupState {
        self.parts.entry(group.clone()).or_default()
    }

    fn count(&mut self, group: &RouteKey, job: &Job, by: i64) {
        if job.stage.is_forgotten() {
            return;
        }
        let part = self.part(group);
        let counted = part.counts.of_mut(job.stage.kind());
        *counted = counted.saturating_add_signed(by);
        if job.is_parked() {
            part.counts.parked_in_flight = part.counts.parked_in_flight.saturating_add_signed(by);
        }
        if job.is_unhandled_shortfall() {
            part.counts.unhandled_incomplete = part.counts.unhandled_incomplete.saturating_add_signed(by);
        }
        if job.is_unhandled_failure() {
            part.counts.unhandled_failures = part.counts.unhandled_failures.saturating_add_signed(by);
        }
        if job.is_incomplete() {
            part.counts.incomplete = part.counts.incomplete.saturating_add_signed(by);
        }
        if job.lacks_only_recognition() {
            part.counts.not_understood = part.counts.not_understood.saturating_add_signed(by);
            let unhandled = if job.is_unhandled_shortfall() { by } else { 0 };
            let count = &mut part.counts.unhandled_not_understood;
            *count = count.saturating_add_signed(unhandled);
        }
        if job.is_suspect() {
            part.counts.suspect = part.counts.suspect.saturating_add_signed(by);
        }
        if job.stage.kind().is_waiting() {
            part.since.change(job.since, by);
        }
        if !job.stage.is_end() {
            let waiting = part.waiting.entry((job.stage.kind(), job_wait_reason(job))).or_default();
            waiting.jobs = waiting.jobs.saturating_add_signed(by);
            waiting.one = if by > 0 { Some(job.id) } else { waiting.one.filter(|one| *one != job.id) };
        }
    }

    /// Returns what jobs that have not ended wait for, by group and stage.
    pub fn waiting(&self) -> impl Iterator<Item = (&RouteKey, StageKind, WaitReason, AlikeJobs)> {
        let all = self.parts.iter().flat_map(|(group, part)| part.waiting.iter().map(move |waiting| (group, waiting)));
        all.map(|(group, ((kind, what), waiting))| (group, *kind, *what, *waiting))
            .filter(|(.., waiting)| waiting.jobs > 0)
    }

    fn add_due(&mut self, id: JobId, group: &RouteKey, kind: StageKind, due: Option<Timestamp>) {
        match self.leases.get_mut(&id) {
            Some(held) => {
                held.group.clone_from(group);
                held.kind = kind;
                held.due = due;
            }
            None => {
                if let Some(due) = due {
                    self.part(group).due.entry(kind).or_default().put(id, due);
                }
            }
        }
    }

    /// Sets the scheduling policies of the sources.
    pub fn set_scheduling(&mut self, policies: SchedulingPolicies) {
        if self.policies == policies {
            return;
        }
        for part in self.parts.values_mut() {
            part.due.values_mut().for_each(ReadyQueue::sort_again);
        }
        self.policies = policies;
    }

    /// Claims the next due job that nobody holds, until `until`. `backlog`: whether jobs of the backlog may be
    /// claimed too. Returns the job and its fence.
    pub fn claim(
        &mut self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        backlog: bool,
    ) -> Option<(JobId, u64)> {
        let (place, kind, group) = self.firsts(kinds, of, now, backlog).into_iter().min_by_key(|(place, ..)| *place)?;
        let (.., turn, job) = place;
        self.hold((turn, job), kind, group, until)
    }

    /// Returns the first due job of each of these groups at each of these stages.
    pub(crate) fn firsts(
        &mut self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
        backlog: bool,
    ) -> Vec<GroupHead> {
        self.expire(now);
        let Self { parts, policies, roll, .. } = self;
        let mut firsts = Vec::new();
        for (group, part) in parts.iter_mut().filter(|(group, _)| of(group)) {
            let policy = policies.get(&group.source);
            for (kind, turns) in part.due.iter_mut().filter(|(kind, _)| kinds.contains(kind)) {
                turns.ripen(now, |id, due| roll.mark(id).turn(policy, *kind, due));
                let Some((turn, job)) = turns.first() else { continue };
                let lane = if turn.is_bumped() { Lane::Live } else { policy.copied().unwrap_or_default().lane };
                if lane == Lane::Live || backlog {
                    // Sources take turns, except for what is bought, and if no policies are set.
                    let served = if policy.is_some() && !is_bought(*kind) { turns.served } else { 0 };
                    firsts.push(((lane, turn.rank(), served, turn, job), *kind, group.clone()));
                }
            }
        }
        firsts
    }

    /// Returns the time of a bump that puts a job before all that were bumped earlier. Turns go by whole seconds.
    pub fn bump_at(&self, now: Timestamp) -> Timestamp {
        self.last_bump.map_or(now, |last| now.max(Timestamp(last.0.saturating_add(1000))))
    }

    /// Whether a job belongs to the backlog and is not bumped.
    pub fn is_backlog(&self, job: &Job) -> bool {
        let of_source = self.policies.get(&job.key.source).is_some_and(|policy| policy.lane == Lane::Backlog);
        of_source && job.bumped.is_none()
    }

    /// Takes a due job out of its queue and holds it. Returns the job and its fence.
    pub(crate) fn hold(
        &mut self,
        (turn, job): (QueuePosition, JobId),
        kind: StageKind,
        group: RouteKey,
        until: Timestamp,
    ) -> Option<(JobId, u64)> {
        let turns = self.parts.get_mut(&group)?.due.get_mut(&kind)?;
        let due = turns.take(turn, job)?;
        self.served += 1;
        turns.served = self.served;
        self.fence += 1;
        self.leases.insert(
            job,
            HeldLease { group, fence: self.fence, until, kind, due: Some(due), hint: None, has_asked: false },
        );
        Some((job, self.fence))
    }

    fn expire(&mut self, now: Timestamp) {
        let over: Vec<JobId> = self.leases.iter().filter(|(_, held)| held.until <= now).map(|(id, _)| *id).collect();
        for id in over {
            self.release(id);
        }
    }

    /// Whether somebody holds the job.
    pub fn is_held(&self, id: JobId) -> bool {
        self.leases.contains_key(&id)
    }

    /// Counts the jobs of each source by stage.
    pub fn sources(&self) -> BTreeMap<SourceName, JobCounts> {
        let mut sources: BTreeMap<SourceName, JobCounts> = BTreeMap::new();
        for (group, part) in self.parts.iter().filter(|(_, part)| part.counts.total() > 0) {
            sources.entry(group.source.clone()).or_default().add(&part.counts());
        }
        sources
    }

    /// Whether this lease is still valid.
    pub fn holds(&self, lease: &Lease) -> bool {
        self.leases.get(&lease.job).is_some_and(|held| held.fence == lease.fence)
    }

    /// Extends a lease; `false` if the lease is no longer valid.
    pub fn renew(&mut self, lease: &Lease, until: Timestamp) -> bool {
        match self.leases.get_mut(&lease.job) {
            Some(held) if held.fence == lease.fence => {
                held.until = until;
                true
            }
            _ => false,
        }
    }

    /// Notes a hint for a held job: its holder may have looked too early to see what happened.
    pub fn hint(&mut self, id: JobId, now: Timestamp) {
        if let Some(held) = self.leases.get_mut(&id) {
            held.hint = Some(now);
        }
    }

    /// Returns and removes the hint since the last call.
    pub fn take_hint(&mut self, id: JobId) -> Option<Timestamp> {
        self.leases.get_mut(&id)?.hint.take()
    }

    /// Notes that the holder has asked for its reservation, or goes without one.
    pub fn has_asked(&mut self, id: JobId) {
        if let Some(held) = self.leases.get_mut(&id) {
            held.has_asked = true;
        }
    }

    /// Ends the lease of a job.
    pub fn release(&mut self, id: JobId) {
        if let Some(held) = self.leases.remove(&id) {
            self.add_due(id, &held.group, held.kind, held.due);
        }
    }

    /// Returns the job that buys what this key names. If there is none, `job` does from now on. A job buys one at a
    /// time.
    pub fn own(&mut self, purchase_key: &PurchaseKey, job: JobId) -> JobId {
        let key = purchase_key_hash(purchase_key);
        let owner = *self.owners.entry(key).or_insert(job);
        if owner == job
            && self.owned.get(&job) != Some(&key)
            && let Some(earlier) = self.owned.insert(job, key)
        {
            self.owners.remove(&earlier);
        }
        owner
    }

    /// Notes that the job buys nothing any more.
    pub fn disown(&mut self, job: JobId) {
        if let Some(key) = self.owned.remove(&job) {
            self.owners.remove(&key);
        }
    }

    /// Returns the jobs that follow a job.
    pub fn followers(&self, owner: JobId) -> Vec<JobId> {
        self.followers.get(&owner).map(|set| set.iter().copied().collect()).unwrap_or_default()
    }

    /// Returns the jobs that wait because they do not fit into a budget, or for another setting.
    pub fn on_settings(&self) -> Vec<JobId> {
        self.on_settings.iter().copied().collect()
    }

    /// Returns the job that waits for a transcription.
    pub fn waits_for(&self, transcription: &TranscriptionId) -> Option<JobId> {
        self.waiting.get(&id_hash(transcription)).copied()
    }

    /// Counts the files of this size. Files above 4 GiB whose size has the same short form are counted too.
    pub fn of_size(&self, size: u64) -> u32 {
        self.sizes.get(&short_size(size)).copied().unwrap_or(0)
    }

    /// Counts the jobs of these groups by stage.
    pub fn counts(&self, of: GroupFilter<'_>) -> JobCounts {
        let mut counts = JobCounts::default();
        let meant = self.parts.iter().filter(|(group, _)| of(group));
        meant.for_each(|(_, part)| counts.add(&part.counts()));
        counts
    }

    /// Returns when the next of these jobs is due or its lease ends.
    pub fn next_due(&self, kinds: &[StageKind], of: GroupFilter<'_>) -> Option<Timestamp> {
        let leased = self.leases.values().filter(|held| kinds.contains(&held.kind) && of(&held.group));
        leased.map(|held| held.until).chain(self.turns(kinds, of).filter_map(ReadyQueue::next_due)).min()
    }

    /// Returns when the next of these jobs becomes due that is not due yet, or the next lease ends.
    pub fn due_after(&self, kinds: &[StageKind], of: GroupFilter<'_>, now: Timestamp) -> Option<Timestamp> {
        let leased = self.leases.values().filter(|held| kinds.contains(&held.kind) && of(&held.group));
        let ends = leased.map(|held| held.until).filter(|until| *until > now);
        ends.chain(self.turns(kinds, of).filter_map(|turns| turns.due_after(now))).min()
    }

    fn turns(&self, kinds: &[StageKind], of: GroupFilter<'_>) -> impl Iterator<Item = &ReadyQueue> {
        let meant = self.parts.iter().filter(move |(group, _)| of(group));
        meant.flat_map(move |(_, part)| kinds.iter().filter_map(|kind| part.due.get(kind)))
    }
}

/// Whether the job may go on when a person has changed the configuration.
fn rests_on_settings(job: &Job) -> bool {
    use FaultKind as F;
    let Some(fault) = job.fault.as_ref().filter(|_| !job.stage.is_end()) else { return false };
    match (&fault.kind, job.stage.kind()) {
        (F::Budget | F::NotAllowed, _) => true,
        // Before its upload a job asks a person only about settings of its source.
        (F::Asks, StageKind::Probed) => job.due.is_none(),
        // Another key or address may solve it.
        (F::Barred { .. } | F::Unreachable | F::Broken, StageKind::Probed | StageKind::Uploaded) => true,
        _ => job.awaits_location(),
    }
}

/// Returns what a job buys by its row: from the intent until the purchase is recorded.
fn in_flight(stage: &Stage) -> Option<&PurchaseKey> {
    matches!(stage, Stage::Submitting { .. } | Stage::Submitted { .. }).then(|| stage.purchase_key()).flatten()
}

/// Shortens a size to half the memory. If two sizes have the same short form, some content is hashed in vain.
fn short_size(size: u64) -> u32 {
    (size ^ (size >> 32)) as u32
}

/// Hashes a purchase key to 16 bytes.
pub fn purchase_key_hash(purchase_key: &PurchaseKey) -> [u8; 16] {
    let mut bytes = purchase_key.content.0.to_vec();
    bytes.extend_from_slice(&purchase_key.params.0);
    bytes.extend_from_slice(purchase_key.service.as_str().as_bytes());
    if let Some(part) = purchase_key.part {
        bytes.push(0); // a name holds no NUL
        bytes.extend_from_slice(part.to_string().as_bytes());
    }
    short(Hash::of(&bytes))
}

/// Hashes an id to 16 bytes.
pub fn id_hash(id: &TranscriptionId) -> [u8; 16] {
    short(Hash::of(id.as_str().as_bytes()))
}

fn short(hash: Hash) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&hash.0[..16]);
    short
}

/// Splits a path into its folder, with the last slash, and its name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    path.split_at(path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1))
}

/// Hashes a source, a folder and a name without its extension. The hash is short, since there is one for each job;
/// the row tells whether it is right.
fn written(source: &SourceName, folder: &[u8], name: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher};
    let stem = name.iter().rposition(|byte| *byte == b'.').map_or(name, |point| &name[..point]);
    let mut hasher = DefaultHasher::new();
    (source.as_str(), folder, stem).hash(&mut hasher);
    hasher.finish()
}
