//! What a store of one process keeps in memory beside its rows: some 150 bytes a job, rebuilt by one
//! scan when it is opened.

use crate::domain::fault::FaultKind;
use crate::domain::home::Group;
use crate::domain::job::{Job, JobKey, JobTag};
use crate::domain::names::{Hash, JobId, SourceName, Timestamp, TranscriptionId};
use crate::domain::stage::{Stage, StageKind};
use crate::domain::token::Order;
use crate::store::contract::{Counts, Lease, Of};
use crate::store::spending::Spending;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The lookups of a queue.
#[derive(Debug, Default)]
pub struct Index {
    by_tag: HashMap<JobTag, JobId>,
    /// Who wrote the files of a folder that have this name without its ending.
    writers: HashMap<u64, JobId>,
    parts: BTreeMap<Group, Part>,
    sizes: HashMap<u64, u32>,
    waiting: HashMap<[u8; 16], JobId>,
    owners: HashMap<[u8; 16], JobId>,
    owned: HashMap<JobId, [u8; 16]>,
    followers: BTreeMap<JobId, BTreeSet<JobId>>,
    leases: BTreeMap<JobId, Held>,
    /// What jobs cost.
    pub spending: Spending,
    on_budget: BTreeSet<JobId>,
    fence: u64,
    last: u64,
}

/// What is known of one group.
#[derive(Debug, Default)]
struct Part {
    due: BTreeMap<StageKind, BTreeSet<(Timestamp, JobId)>>,
    counts: Counts,
}

#[derive(Debug)]
struct Held {
    group: Group,
    fence: u64,
    until: Timestamp,
    kind: StageKind,
    due: Option<Timestamp>,
    hint: Option<Timestamp>,
}

impl Index {
    /// A number that no job has. It is used up by [`Index::add`] only: a row that could not be saved
    /// leaves no gap, so that a gap in the numbers means that rows were lost.
    pub fn next_id(&self) -> JobId {
        JobId(self.last + 1)
    }

    /// Takes a job in.
    pub fn add(&mut self, job: &Job) {
        self.last = self.last.max(job.id.0);
        self.by_tag.insert(job.key.tag(), job.id);
        for output in job.outputs.iter().filter(|output| output.at.is_none()) {
            let (folder, _) = split(job.key.path.as_bytes());
            self.writers.insert(written(&job.key.source, folder, output.name.as_bytes()), job.id);
        }
        self.count(job, 1);
        self.spending.add(job);
        if rests_on_budget(job) {
            self.on_budget.insert(job.id);
        }
        *self.sizes.entry(job.seen.size).or_default() += 1;
        self.add_due(job.id, job.group(), job.stage.kind(), job.due);
        match &job.stage {
            Stage::Submitted { transcription, .. } => {
                self.waiting.insert(id_hash(transcription), job.id);
            }
            Stage::Following { owner, .. } => {
                self.followers.entry(*owner).or_default().insert(job.id);
            }
            _ => {}
        }
        if let Some(order) = in_flight(&job.stage) {
            self.own(order, job.id);
        }
    }

    /// Forgets a job as it was.
    pub fn remove(&mut self, job: &Job) {
        self.count(job, -1);
        self.spending.remove(job);
        self.on_budget.remove(&job.id);
        if let Some(count) = self.sizes.get_mut(&job.seen.size) {
            *count -= 1;
            if *count == 0 {
                self.sizes.remove(&job.seen.size);
            }
        }
        if let Some(due) = job.due {
            self.remove_due(&job.group(), job.stage.kind(), (due, job.id));
        }
        match &job.stage {
            Stage::Submitted { transcription, .. } => {
                // Two jobs may wait for one transcription; each takes away its own entry only.
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

    /// The job that may have written a file of this name: files of one folder that differ in their ending
    /// only share an entry, and an entry is never forgotten.
    pub fn writer(&self, key: &JobKey) -> Option<JobId> {
        let (folder, name) = split(key.path.as_bytes());
        self.writers.get(&written(&key.source, folder, name)).copied()
    }

    fn count(&mut self, job: &Job, by: i64) {
        let counts = &mut self.parts.entry(job.group()).or_default().counts;
        let counted = counts.of_mut(job.stage.kind());
        *counted = counted.saturating_add_signed(by);
        if job.is_parked() {
            counts.parked_in_flight = counts.parked_in_flight.saturating_add_signed(by);
        }
    }

    fn add_due(&mut self, id: JobId, group: Group, kind: StageKind, due: Option<Timestamp>) {
        match self.leases.get_mut(&id) {
            Some(held) => {
                held.group = group;
                held.kind = kind;
                held.due = due;
            }
            None => {
                if let Some(due) = due {
                    self.parts.entry(group).or_default().due.entry(kind).or_default().insert((due, id));
                }
            }
        }
    }

    fn remove_due(&mut self, group: &Group, kind: StageKind, entry: (Timestamp, JobId)) {
        if let Some(set) = self.parts.get_mut(group).and_then(|part| part.due.get_mut(&kind)) {
            set.remove(&entry);
        }
    }

    /// The longest due of these that nobody holds; held from now on until `until`.
    pub fn claim(&mut self, kinds: &[StageKind], of: Of<'_>, now: Timestamp, until: Timestamp) -> Option<Lease> {
        self.expire(now);
        let (due, job, kind, group) = self.firsts(kinds, of).min()?;
        if due > now {
            return None;
        }
        let group = group.clone();
        self.remove_due(&group, kind, (due, job));
        self.fence += 1;
        self.leases.insert(job, Held { group, fence: self.fence, until, kind, due: Some(due), hint: None });
        Some(Lease { job, fence: self.fence })
    }

    /// The longest due of each group and stage.
    fn firsts(&self, kinds: &[StageKind], of: Of<'_>) -> impl Iterator<Item = (Timestamp, JobId, StageKind, &Group)> {
        let meant = self.parts.iter().filter(move |(group, _)| of(group));
        meant.flat_map(move |(group, part)| {
            let first = move |kind: &StageKind| {
                let (due, id) = *part.due.get(kind)?.first()?;
                Some((due, id, *kind, group))
            };
            kinds.iter().filter_map(first)
        })
    }

    fn expire(&mut self, now: Timestamp) {
        let over: Vec<JobId> = self.leases.iter().filter(|(_, held)| held.until <= now).map(|(id, _)| *id).collect();
        for id in over {
            self.release(id);
        }
    }

    /// Whether this lease still counts.
    pub fn holds(&self, lease: &Lease) -> bool {
        self.leases.get(&lease.job).is_some_and(|held| held.fence == lease.fence)
    }

    /// Holds longer; `false` if the lease does not count any more.
    pub fn renew(&mut self, lease: &Lease, until: Timestamp) -> bool {
        match self.leases.get_mut(&lease.job) {
            Some(held) if held.fence == lease.fence => {
                held.until = until;
                true
            }
            _ => false,
        }
    }

    /// Something happened that its holder may have looked too early to see.
    pub fn hint(&mut self, id: JobId, now: Timestamp) {
        if let Some(held) = self.leases.get_mut(&id) {
            held.hint = Some(now);
        }
    }

    /// What [`Index::hint`] said since this was last asked.
    pub fn take_hint(&mut self, id: JobId) -> Option<Timestamp> {
        self.leases.get_mut(&id)?.hint.take()
    }

    /// Whoever held it holds it no more.
    pub fn release(&mut self, id: JobId) {
        if let Some(held) = self.leases.remove(&id) {
            self.add_due(id, held.group, held.kind, held.due);
        }
    }

    /// The one that buys this order, if any; `job` from now on, if none. A job buys one order at a time.
    pub fn own(&mut self, order: &Order, job: JobId) -> JobId {
        let key = order_hash(order);
        let owner = *self.owners.entry(key).or_insert(job);
        if owner == job
            && self.owned.get(&job) != Some(&key)
            && let Some(earlier) = self.owned.insert(job, key)
        {
            self.owners.remove(&earlier);
        }
        owner
    }

    /// The job buys nothing any more.
    pub fn disown(&mut self, job: JobId) {
        if let Some(key) = self.owned.remove(&job) {
            self.owners.remove(&key);
        }
    }

    /// Those that follow a job.
    pub fn followers(&self, owner: JobId) -> Vec<JobId> {
        self.followers.get(&owner).map(|set| set.iter().copied().collect()).unwrap_or_default()
    }

    /// Those that rest because they do not fit into a budget.
    pub fn on_budget(&self) -> Vec<JobId> {
        self.on_budget.iter().copied().collect()
    }

    /// The job that waits for a transcription.
    pub fn waits_for(&self, transcription: &TranscriptionId) -> Option<JobId> {
        self.waiting.get(&id_hash(transcription)).copied()
    }

    /// The job of a name.
    pub fn find(&self, tag: &JobTag) -> Option<JobId> {
        self.by_tag.get(tag).copied()
    }

    /// How many files are this large.
    pub fn of_size(&self, size: u64) -> u32 {
        self.sizes.get(&size).copied().unwrap_or(0)
    }

    /// How many jobs of these groups are where.
    pub fn counts(&self, of: Of<'_>) -> Counts {
        let mut counts = Counts::default();
        let meant = self.parts.iter().filter(|(group, _)| of(group));
        meant.for_each(|(_, part)| counts.add(&part.counts));
        counts
    }

    /// When the next of these is due or its lease runs out.
    pub fn next_due(&self, kinds: &[StageKind], of: Of<'_>) -> Option<Timestamp> {
        let first = self.firsts(kinds, of).map(|(due, ..)| due).min();
        let leased = self.leases.values().filter(|held| kinds.contains(&held.kind) && of(&held.group));
        leased.map(|held| held.until).chain(first).min()
    }
}

fn rests_on_budget(job: &Job) -> bool {
    job.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Budget) && !job.stage.is_end()
}

/// From the intent until the purchase is written down as such, the order has an owner by its row.
fn in_flight(stage: &Stage) -> Option<&Order> {
    matches!(stage, Stage::Submitting { .. } | Stage::Submitted { .. }).then(|| stage.order()).flatten()
}

/// An order in 16 bytes.
pub fn order_hash(order: &Order) -> [u8; 16] {
    let mut bytes = order.content.0.to_vec();
    bytes.extend_from_slice(&order.params.0);
    bytes.extend_from_slice(order.service.as_str().as_bytes());
    short(Hash::of(&bytes))
}

/// An id in 16 bytes.
pub fn id_hash(id: &TranscriptionId) -> [u8; 16] {
    short(Hash::of(id.as_str().as_bytes()))
}

fn short(hash: Hash) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&hash.0[..16]);
    short
}

/// A path's folder, with its last slash, and its name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    path.split_at(path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1))
}

/// Stands for a folder and a name without its ending. Small: there is one for each job, and the row
/// tells whether it is right.
fn written(source: &SourceName, folder: &[u8], name: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher};
    let stem = name.iter().rposition(|byte| *byte == b'.').map_or(name, |point| &name[..point]);
    let mut hasher = DefaultHasher::new();
    (source.as_str(), folder, stem).hash(&mut hasher);
    hasher.finish()
}
