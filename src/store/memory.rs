//! A store in memory, which forgets everything at its end: for the simulation and for rehearsals.

use crate::domain::job::Job;
use crate::domain::names::{JobId, ServiceName};
use crate::domain::pause::Pauses;
use crate::domain::token::PurchaseKey;
use crate::store::contract::{HistoryEntry, KnownPurchase, StoreError};
use crate::store::queue::{Barrier, Journal, QueueStore, Rows};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An empty, suspect store.
pub fn empty() -> QueueStore {
    open(&MemoryDisk::default())
        .unwrap_or_else(|error| unreachable!("internal error: the queue in memory has invalid rows: {error}"))
}

/// Opens a store on this disk, as a process finds it that starts now.
///
/// # Errors
/// Never: no row can be damaged.
pub fn open(disk: &MemoryDisk) -> Result<QueueStore, StoreError> {
    QueueStore::open(Box::new(disk.clone()), Arc::new(disk.clone()), Box::new(disk.clone()))
}

/// The contents of a [`MemoryDisk`]. Public so that a simulation can lose a part of them.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    pub jobs: BTreeMap<JobId, Job>,
    pub bought: BTreeMap<PurchaseKey, KnownPurchase>,
    /// Whether any purchase was found in a service's list.
    pub sightings: bool,
    /// The services whose lists were scanned.
    pub trusted: BTreeSet<ServiceName>,
    /// The pauses in effect.
    pub pauses: Pauses,
    pub notes: Vec<HistoryEntry>,
}

/// Rows in memory, shared by all clones. Keeps the state as of the last barrier and every change since, so that a
/// crash can take back a part of what was not durable yet.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    now: Contents,
    since_barrier: Vec<Change>,
}

/// How to undo one write.
#[derive(Debug)]
enum Change {
    Job(JobId, Option<Box<Job>>),
    Bought(PurchaseKey, Option<KnownPurchase>),
    Sightings(bool),
    Trusted(BTreeSet<ServiceName>),
    Pauses(Pauses),
}

impl MemoryDisk {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the writes that a power loss could undo now.
    pub fn undurable(&self) -> usize {
        self.inner().since_barrier.len()
    }

    /// Simulates a power loss: of the writes since the last barrier only the first `kept` survive.
    pub fn crash(&self, kept: usize) {
        let inner = &mut *self.inner();
        while inner.since_barrier.len() > kept {
            match inner.since_barrier.pop() {
                Some(Change::Job(id, Some(job))) => drop(inner.now.jobs.insert(id, *job)),
                Some(Change::Job(id, None)) => drop(inner.now.jobs.remove(&id)),
                Some(Change::Bought(purchase_key, Some(bought))) => drop(inner.now.bought.insert(purchase_key, bought)),
                Some(Change::Bought(purchase_key, None)) => drop(inner.now.bought.remove(&purchase_key)),
                Some(Change::Sightings(before)) => inner.now.sightings = before,
                Some(Change::Trusted(before)) => inner.now.trusted = before,
                Some(Change::Pauses(before)) => inner.now.pauses = before,
                None => break,
            }
        }
        inner.since_barrier.clear();
    }

    pub fn contents(&self) -> Contents {
        self.inner().now.clone()
    }
}

impl Rows for MemoryDisk {
    fn load(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        Ok(self.inner().now.jobs.get(&id).cloned())
    }

    fn save(&mut self, job: &Job) -> Result<(), StoreError> {
        let mut inner = self.inner();
        let before = inner.now.jobs.insert(job.id, job.clone());
        inner.since_barrier.push(Change::Job(job.id, before.map(Box::new)));
        Ok(())
    }

    fn each(&self, take: &mut (dyn FnMut(Job) + Send)) -> Result<(), StoreError> {
        self.scan(None).try_for_each(|job| job.map(&mut *take))
    }

    fn scan(&self, after: Option<JobId>) -> Box<dyn Iterator<Item = Result<Job, StoreError>> + '_> {
        let mut from = after.map_or(Bound::Unbounded, Bound::Excluded);
        Box::new(std::iter::from_fn(move || {
            let job = self.inner().now.jobs.range((from, Bound::Unbounded)).next().map(|(_, job)| job.clone())?;
            from = Bound::Excluded(job.id);
            Some(Ok(job))
        }))
    }

    fn bought(&self, purchase_key: &PurchaseKey) -> Result<Option<KnownPurchase>, StoreError> {
        Ok(self.inner().now.bought.get(purchase_key).cloned())
    }

    fn each_bought(&self, see: &mut dyn FnMut(&PurchaseKey, &KnownPurchase)) -> Result<(), StoreError> {
        self.inner().now.bought.iter().for_each(|(purchase_key, bought)| see(purchase_key, bought));
        Ok(())
    }

    fn put_bought(&mut self, purchase_key: &PurchaseKey, bought: Option<&KnownPurchase>) -> Result<(), StoreError> {
        let mut inner = self.inner();
        let before = match bought {
            Some(bought) => inner.now.bought.insert(purchase_key.clone(), bought.clone()),
            None => inner.now.bought.remove(purchase_key),
        };
        inner.since_barrier.push(Change::Bought(purchase_key.clone(), before));
        Ok(())
    }

    fn has_sightings(&self) -> Result<bool, StoreError> {
        Ok(self.inner().now.sightings)
    }

    fn set_sightings(&mut self) -> Result<(), StoreError> {
        let mut inner = self.inner();
        let before = std::mem::replace(&mut inner.now.sightings, true);
        inner.since_barrier.push(Change::Sightings(before));
        Ok(())
    }

    fn suspect(&self, service: &ServiceName) -> Result<bool, StoreError> {
        Ok(!self.inner().now.trusted.contains(service))
    }

    /// A store in memory counts as one that replaces a lost store.
    fn has_lost(&self, service: &ServiceName) -> Result<bool, StoreError> {
        self.suspect(service)
    }

    fn set_trusted(&mut self, service: &ServiceName, trusted: bool) -> Result<(), StoreError> {
        let mut inner = self.inner();
        let before = inner.now.trusted.clone();
        match trusted {
            true => drop(inner.now.trusted.insert(service.clone())),
            false => drop(inner.now.trusted.remove(service)),
        }
        inner.since_barrier.push(Change::Trusted(before));
        Ok(())
    }

    fn pauses(&self) -> Result<Pauses, StoreError> {
        Ok(self.inner().now.pauses.clone())
    }

    fn set_pauses(&mut self, pauses: &Pauses) -> Result<(), StoreError> {
        let mut inner = self.inner();
        let before = std::mem::replace(&mut inner.now.pauses, pauses.clone());
        inner.since_barrier.push(Change::Pauses(before));
        Ok(())
    }
}

impl Journal for MemoryDisk {
    fn note(&self, note: &HistoryEntry) -> Result<(), StoreError> {
        self.inner().now.notes.push(note.clone());
        Ok(())
    }

    fn history(&self, job: JobId) -> Result<Vec<HistoryEntry>, StoreError> {
        Ok(self.inner().now.notes.iter().filter(|note| note.job == job).cloned().collect())
    }

    fn erase(&self, job: JobId) -> Result<u64, StoreError> {
        let notes = &mut self.inner().now.notes;
        let before = notes.len();
        notes.retain(|note| note.job != job);
        Ok((before - notes.len()) as u64)
    }
}

#[async_trait::async_trait]
impl Barrier for MemoryDisk {
    async fn durable(&self) -> Result<(), StoreError> {
        self.inner().since_barrier.clear();
        Ok(())
    }
}
