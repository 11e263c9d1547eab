//! The store's index of its transcriptions, which answers without the disk. Pure.

use crate::clock::Uptime;
use crate::domain::names::{Hash, Timestamp};
use crate::server::storage::fair_queue::FairQueue;
use crate::server::storage::kill_count::MOST;
use crate::server::storage::record_meta::{Callee, DeliveryState, RecordMeta};
use crate::wire::page::ListQuery;
use crate::wire::record::Status;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;
use uuid::Uuid;

/// All transcriptions of a store, by their creation time, which is unique.
#[derive(Default)]
pub struct TranscriptionIndex {
    entries: BTreeMap<Timestamp, IndexEntry>,
    by_id: HashMap<Uuid, Timestamp>,
    /// Transcriptions whose audio has to be fetched first.
    fetch_queue: FairQueue,
    /// Transcriptions that wait for recognition.
    recognition_queue: FairQueue,
    owners: HashMap<Hash, Load>,
    /// The ended transcriptions by end time and creation time.
    ended: BTreeSet<(Timestamp, Timestamp)>,
    /// Pending deliveries: due time, creation time of the transcription, and which delivery it is.
    calls: BTreeSet<(Timestamp, Timestamp, DeliveryKind)>,
    /// Creations that the webhook has not received, and that are not given up.
    pending_creations: BTreeMap<Timestamp, PendingCreation>,
    /// The newest creation time that was assigned.
    last: Option<Timestamp>,
    /// Transcriptions that were in progress when the service was killed, and wait to be started again.
    suspects: BTreeMap<Timestamp, Suspect>,
    /// Transcriptions that were tried without success, and are not tried again before their time.
    deferred: BTreeMap<Timestamp, Deferred>,
    /// Why transcriptions were deferred, until they are processed or gone.
    deferral_reasons: BTreeMap<Timestamp, String>,
    /// Transcriptions in progress: their audio is fetched, or they are recognised.
    busy: HashSet<Timestamp>,
    /// The suspect that is in progress.
    current_suspect: Option<Timestamp>,
    /// Whether suspects may be started that the next kill would set aside.
    allows_last_attempts: bool,
    /// Transcriptions that were set aside.
    set_aside: BTreeSet<Timestamp>,
}

/// A transcription that was in progress when the service was killed.
#[derive(Debug, Clone, Copy)]
struct Suspect {
    kills: u32,
    queue: QueueKind,
}

/// A transcription that this machine could not process, and that is deferred.
#[derive(Debug, Clone, Copy)]
struct Deferred {
    owner: Hash,
    queue: QueueKind,
    until: Uptime,
    cause: DeferralCause,
}

/// Why a transcription is deferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeferralCause {
    /// This machine lacks something for it, and so probably for others of its owner.
    Machine,
    /// What it needs elsewhere is away. Others of its owner may need something else.
    Elsewhere,
}

/// With this many deferred transcriptions, an owner's other ones are not tried: a queue of thousands is not tried again
/// and again.
pub const MAX_DEFERRED: usize = 8;

/// Where a transcription waited before it was taken out.
#[derive(Debug, Clone, Copy)]
pub struct QueuePlace(WaitingPlace);

#[derive(Debug, Clone, Copy)]
enum WaitingPlace {
    Queued(QueueKind),
    Suspect(Suspect),
    Deferred(Deferred),
}

/// What may be started now.
enum NextStart {
    /// Whatever is next in the queue.
    Anything,
    Only(Timestamp),
    /// Nothing: a suspect is in progress, or waits until nothing else is in progress.
    Nothing,
}

pub struct IndexEntry {
    pub id: Uuid,
    pub owner: Hash,
    /// The upload that it is made from.
    pub upload: Uuid,
    pub status: Status,
    pub ended: Option<Timestamp>,
    /// The metadata, as it was sent.
    pub metadata: Option<Box<RawValue>>,
    /// Bytes of its files, without the upload.
    pub bytes: u64,
    /// It ended because the service was killed too often while it was in progress.
    pub set_aside: bool,
}

/// The number of an owner's transcriptions.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Load {
    /// Those that have not ended, including those that are just being accepted.
    open: usize,
    running: usize,
}

/// A delivery that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Due {
    pub id: Uuid,
    pub delivery: DeliveryKind,
}

/// Which delivery of a transcription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeliveryKind {
    /// Its creation, to the webhook.
    Creation,
    /// Its end: the delivery of this number in its record.
    End(usize),
}

/// A creation that the webhook has not received. Before each attempt to report the end to the webhook, the creation is
/// reported once more, so that a receiver hears of it first.
#[derive(Debug, Clone, Copy, Default)]
struct PendingCreation {
    /// `None` while the webhook is being called.
    due: Option<Timestamp>,
    /// The number of the webhook's delivery of the end, if the transcription has ended.
    end: Option<usize>,
    /// When that delivery is due, if it waits for an attempt of this one.
    held_end: Option<Timestamp>,
}

/// The deliveries in the record of a transcription.
#[derive(Debug, Clone, Copy)]
pub struct StoredDeliveries<'a> {
    pub creation: Option<&'a DeliveryState>,
    pub ends: &'a [DeliveryState],
}

/// The next delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextCall {
    Due(Due),
    /// No delivery is due before this time has passed.
    In(Duration),
    None,
}

/// What a transcription waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueKind {
    ToBeFetched,
    ToBeHeard,
}

impl TranscriptionIndex {
    /// Reserves a place for one more transcription of this owner, and returns its creation time; returns `None` if
    /// `most` transcriptions of the owner have not ended.
    pub fn reserve(&mut self, owner: Hash, most: usize, now: Timestamp) -> Option<Timestamp> {
        let load = self.owners.entry(owner).or_default();
        if load.open >= most {
            return None;
        }
        load.open += 1;
        // Creation times are unique, so that their order is total, even if the clock stands still or is set back.
        let after = self.last.map_or(i64::MIN, |last| last.0.saturating_add(1));
        let created = Timestamp(now.0.max(after));
        self.last = Some(created);
        Some(created)
    }

    /// Gives back a place that was not used.
    pub fn unreserve(&mut self, owner: Hash) {
        self.load(owner).open -= 1;
    }

    /// Adds the transcription that a place was reserved for.
    pub fn accept(&mut self, created: Timestamp, entry: IndexEntry, queue: QueueKind) {
        self.queue_mut(queue).push(entry.owner, created);
        self.by_id.insert(entry.id, created);
        self.entries.insert(created, entry);
    }

    /// Adds a transcription that was found at the start; `kills` is how often the service was killed during its work.
    pub fn restore(
        &mut self,
        created: Timestamp,
        entry: IndexEntry,
        queue: QueueKind,
        deliveries: StoredDeliveries<'_>,
        kills: u32,
    ) {
        self.last = self.last.max(Some(created));
        if entry.set_aside {
            self.set_aside.insert(created);
        }
        match entry.ended {
            Some(ended) => drop(self.ended.insert((ended, created))),
            None => {
                self.load(entry.owner).open += 1;
                match kills {
                    0 => self.queue_mut(queue).push(entry.owner, created),
                    _ => drop(self.suspects.insert(created, Suspect { kills, queue })),
                }
            }
        }
        if let Some(due) = deliveries.creation.and_then(|creation| creation.due) {
            self.report_creation(created, due);
        }
        self.add_calls(created, deliveries.ends);
        self.by_id.insert(entry.id, created);
        self.entries.insert(created, entry);
    }

    /// Returns the owners with work in this queue that may be started; for recognition, only owners with fewer than
    /// `running` in progress.
    pub fn waiting_owners(&self, queue: QueueKind, running: usize) -> BTreeSet<Hash> {
        let runs = |owner: &Hash| queue == QueueKind::ToBeFetched || self.may_run(owner, running);
        let may = |owner: &Hash| runs(owner) && self.count_deferred(owner, queue) < MAX_DEFERRED;
        match self.next_start() {
            NextStart::Anything => self.queue_of(queue).owners().filter(|owner| may(owner)).copied().collect(),
            NextStart::Only(suspect) => {
                let is_queued_here = self.suspects.get(&suspect).is_some_and(|suspect| suspect.queue == queue);
                self.entries.get(&suspect).filter(|_| is_queued_here).map(|entry| entry.owner).into_iter().collect()
            }
            NextStart::Nothing => BTreeSet::new(),
        }
    }

    fn may_run(&self, owner: &Hash, running: usize) -> bool {
        self.owners.get(owner).is_none_or(|load| load.running < running)
    }

    fn count_deferred(&self, owner: &Hash, queue: QueueKind) -> usize {
        let counts = |deferred: &&Deferred| {
            deferred.owner == *owner && deferred.queue == queue && deferred.cause == DeferralCause::Machine
        };
        self.deferred.values().filter(counts).count()
    }

    /// Takes out a transcription that waits, because it is about to end. Returns where it waited; `None` if it is in
    /// progress.
    pub fn remove_waiting(&mut self, created: Timestamp) -> Option<QueuePlace> {
        let owner = self.entries.get(&created).map(|entry| entry.owner)?;
        let mut queues = [QueueKind::ToBeFetched, QueueKind::ToBeHeard].into_iter();
        let place = queues.find(|queue| self.queue_mut(*queue).remove(&owner, created)).map(WaitingPlace::Queued);
        let place = place.or_else(|| self.suspects.remove(&created).map(WaitingPlace::Suspect));
        place.or_else(|| self.deferred.remove(&created).map(WaitingPlace::Deferred)).map(QueuePlace)
    }

    /// Puts back a transcription that was taken out and did not end.
    pub fn restore_waiting(&mut self, created: Timestamp, place: QueuePlace) {
        let Some(owner) = self.entries.get(&created).map(|entry| entry.owner) else { return };
        match place.0 {
            WaitingPlace::Queued(queue) => self.queue_mut(queue).push(owner, created),
            WaitingPlace::Suspect(suspect) => drop(self.suspects.insert(created, suspect)),
            WaitingPlace::Deferred(deferred) => drop(self.deferred.insert(created, deferred)),
        }
    }

    /// Takes the next transcription of this owner whose audio is to be fetched.
    pub fn pop_fetch(&mut self, of: &Hash) -> Option<(Timestamp, &IndexEntry)> {
        let created = match self.next_start() {
            NextStart::Anything => self.fetch_queue.pop(|owner| owner == of)?,
            NextStart::Only(suspect) => self.take_suspect(suspect, QueueKind::ToBeFetched)?,
            NextStart::Nothing => return None,
        };
        self.busy.insert(created);
        self.entries.get(&created).map(|entry| (created, entry))
    }

    /// Takes the next transcription of this owner to be recognised, if fewer than `running` are in progress. Its
    /// status is `processing` from now on.
    pub fn pop_recognition(&mut self, running: usize, of: &Hash) -> Option<(Timestamp, &IndexEntry)> {
        let owners = &self.owners;
        let runs = |owner: &Hash| owners.get(owner).is_none_or(|load| load.running < running);
        let may = |owner: &Hash| owner == of && runs(owner);
        let created = match self.next_start() {
            NextStart::Anything => self.recognition_queue.pop(may)?,
            NextStart::Only(suspect) => self.take_suspect(suspect, QueueKind::ToBeHeard)?,
            NextStart::Nothing => return None,
        };
        self.busy.insert(created);
        let entry = self.entries.get_mut(&created)?;
        entry.status = Status::Processing;
        self.owners.entry(entry.owner).or_default().running += 1;
        Some((created, entry))
    }

    /// Suspects go first, and each of them alone: if the service is killed again, the cause is known. Suspects that
    /// another kill would set aside wait for a while first, so that repeated kills for other reasons set nothing aside.
    fn next_start(&self) -> NextStart {
        if self.current_suspect.is_some() {
            return NextStart::Nothing;
        }
        let may = |suspect: &Suspect| suspect.kills < MOST && (suspect.kills + 1 < MOST || self.allows_last_attempts);
        let next = self.suspects.iter().filter(|(_, suspect)| may(suspect));
        match next.min_by_key(|(created, suspect)| (suspect.kills, **created)) {
            None => NextStart::Anything,
            Some((created, _)) if self.busy.is_empty() => NextStart::Only(*created),
            Some(_) => NextStart::Nothing,
        }
    }

    fn take_suspect(&mut self, created: Timestamp, queue: QueueKind) -> Option<Timestamp> {
        self.suspects.get(&created).filter(|suspect| suspect.queue == queue)?;
        self.suspects.remove(&created);
        self.current_suspect = Some(created);
        Some(created)
    }

    /// Allows, from now on, starting suspects that are set aside if the service is killed once more.
    pub fn allow_last_attempts(&mut self) {
        self.allows_last_attempts = true;
    }

    fn finish_work(&mut self, created: Timestamp) {
        self.busy.remove(&created);
        self.suspects.remove(&created);
        if self.current_suspect == Some(created) {
            self.current_suspect = None;
        }
    }

    /// Returns the transcriptions of one owner, or of all, that were set aside, oldest first.
    pub fn set_aside_ids(&self, owner: Option<&Hash>) -> impl Iterator<Item = Uuid> {
        let entries = self.set_aside.iter().filter_map(|created| self.entries.get(created));
        entries.filter(move |entry| owner.is_none_or(|owner| entry.owner == *owner)).map(|entry| entry.id)
    }

    /// Puts back a transcription that was in progress, into this queue. It caused no kill, so it is no longer a
    /// suspect.
    pub fn requeue(&mut self, created: Timestamp, queue: QueueKind) {
        if let Some(owner) = self.stop_work(created) {
            self.queue_mut(queue).push(owner, created);
        }
    }

    /// As [`TranscriptionIndex::requeue`], for a transcription that this machine could not process: it is not tried
    /// again before `until`.
    pub fn defer(&mut self, created: Timestamp, queue: QueueKind, until: Uptime, cause: DeferralCause) {
        if let Some(owner) = self.stop_work(created) {
            self.deferred.insert(created, Deferred { owner, queue, until, cause });
        }
    }

    /// Notes why a transcription was deferred.
    pub fn note_deferral(&mut self, created: Timestamp, reason: String) {
        self.deferral_reasons.insert(created, reason);
    }

    /// Returns why a transcription waits that could not be processed when it was tried.
    pub fn why_deferred(&self, id: Uuid) -> Option<String> {
        self.deferral_reasons.get(self.by_id.get(&id)?).cloned()
    }

    /// Puts deferred transcriptions that are due back into the queue. Returns when the next one is due.
    pub fn requeue_deferred(&mut self, queue: QueueKind, now: Uptime) -> Option<Uptime> {
        let is_due = |_: &Timestamp, deferred: &mut Deferred| deferred.queue == queue && deferred.until <= now;
        let due: Vec<_> = self.deferred.extract_if(.., is_due).collect();
        for (created, deferred) in due {
            self.queue_mut(queue).push_retry(deferred.owner, created);
        }
        self.deferred.values().filter(|deferred| deferred.queue == queue).map(|deferred| deferred.until).min()
    }

    /// Ends the progress of a transcription that has not ended; returns its owner.
    fn stop_work(&mut self, created: Timestamp) -> Option<Hash> {
        self.finish_work(created);
        let entry = self.entries.get_mut(&created)?;
        let (owner, was_running) = (entry.owner, entry.status == Status::Processing);
        entry.status = Status::Queued;
        self.load(owner).running -= usize::from(was_running);
        Some(owner)
    }

    pub fn end(&mut self, created: Timestamp, head: &RecordMeta, bytes: u64) {
        self.finish_work(created);
        self.deferral_reasons.remove(&created);
        if head.set_aside {
            self.set_aside.insert(created);
        }
        let (Some(entry), Some(ended)) = (self.entries.get_mut(&created), &head.ended) else { return };
        let was_running = entry.status == Status::Processing;
        entry.status = if ended.failure.is_some() { Status::Error } else { Status::Done };
        (entry.ended, entry.bytes, entry.set_aside) = (Some(ended.at), bytes, head.set_aside);
        let owner = entry.owner;
        let load = self.load(owner);
        load.open -= 1;
        load.running -= usize::from(was_running);
        self.ended.insert((ended.at, created));
        self.add_calls(created, &head.calls);
    }

    /// Adds the delivery of a creation.
    pub fn report_creation(&mut self, created: Timestamp, due: Timestamp) {
        self.pending_creations.insert(created, PendingCreation::default());
        self.set_creation_due(created, Some(due));
    }

    /// Removes the delivery of a creation: it was received, or is given up.
    pub fn forget_creation(&mut self, id: Uuid) {
        if let Some(created) = self.by_id.get(&id).copied() {
            self.release_end(created);
            self.set_creation_due(created, None);
            self.pending_creations.remove(&created);
        }
    }

    /// Lets the webhook's delivery of the end be made although the creation is still pending: the receiver has
    /// answered, and does not take the creation.
    pub fn allow_end_before_creation(&mut self, id: Uuid) {
        if let Some(created) = self.by_id.get(&id).copied() {
            self.release_end(created);
        }
    }

    fn release_end(&mut self, created: Timestamp) {
        let Some(creation) = self.pending_creations.get_mut(&created) else { return };
        let (Some(number), Some(due)) = (creation.end, creation.held_end.take()) else { return };
        self.calls.insert((due, created, DeliveryKind::End(number)));
    }

    fn set_creation_due(&mut self, created: Timestamp, due: Option<Timestamp>) {
        let Some(creation) = self.pending_creations.get_mut(&created) else { return };
        let call = |due| (due, created, DeliveryKind::Creation);
        creation.due.map(|before| self.calls.remove(&call(before)));
        creation.due = due;
        self.calls.extend(due.map(call));
    }

    /// Removes a transcription and returns its entry.
    pub fn remove(&mut self, id: Uuid) -> Option<IndexEntry> {
        let created = self.by_id.remove(&id)?;
        let entry = self.entries.remove(&created)?;
        self.set_aside.remove(&created);
        self.deferral_reasons.remove(&created);
        self.set_creation_due(created, None);
        self.pending_creations.remove(&created);
        if let Some(ended) = entry.ended {
            self.ended.remove(&(ended, created));
        }
        Some(entry)
    }

    /// Returns the transcription with this id.
    pub fn get(&self, id: Uuid) -> Option<&IndexEntry> {
        self.entries.get(self.by_id.get(&id)?)
    }

    /// Returns the creation time, the owner and the upload of a transcription that has not ended.
    pub fn find_unfinished(&self, id: Uuid) -> Option<(Timestamp, Hash, Uuid)> {
        let created = *self.by_id.get(&id)?;
        let entry = self.entries.get(&created).filter(|entry| entry.ended.is_none())?;
        Some((created, entry.owner, entry.upload))
    }

    /// Returns the transcription with this id, if it belongs to this owner.
    pub fn get_owned(&self, id: Uuid, owner: &Hash) -> Option<&IndexEntry> {
        self.get(id).filter(|entry| entry.owner == *owner)
    }

    /// Returns a list's transcriptions, newest first; the interface does not specify the order.
    pub fn list<'a>(&'a self, owner: &'a Hash, query: &'a ListQuery) -> impl Iterator<Item = (Timestamp, Uuid)> + 'a {
        (self.entries.iter().rev())
            .filter(|(created, entry)| entry.owner == *owner && entry_matches(query, **created, entry))
            .map(|(created, entry)| (*created, entry.id))
    }

    /// Returns the transcription that ended longest ago, if that was before `moment`, among the owners for which `may`
    /// returns true.
    pub fn oldest_ended_before(&self, moment: Timestamp, may: impl Fn(&Hash) -> bool) -> Option<Uuid> {
        let ended = self.ended.iter().take_while(|(ended, _)| *ended < moment);
        let mut entries = ended.filter_map(|(_, created)| self.entries.get(created));
        entries.find(|entry| may(&entry.owner)).map(|entry| entry.id)
    }

    /// Takes the next due delivery. One that would be due in more than `longest` is due now, because the clock was set
    /// back.
    pub fn pop_delivery(&mut self, now: Timestamp, longest: Duration) -> NextCall {
        while let Some((due, created, delivery)) = self.calls.first().copied() {
            let wait = due.duration_since(now);
            if !wait.is_zero() && wait <= longest {
                return NextCall::In(wait);
            }
            self.calls.pop_first();
            let Some(id) = self.entries.get(&created).map(|entry| entry.id) else { continue };
            if delivery == DeliveryKind::Creation {
                self.set_creation_due(created, None);
            }
            return NextCall::Due(Due { id, delivery });
        }
        NextCall::None
    }

    /// Returns all pending deliveries that are not being made, whenever they are due.
    pub fn pending_deliveries(&self) -> Vec<Due> {
        let queued = self.calls.iter().map(|(_, created, delivery)| (*created, *delivery));
        let held = self.pending_creations.iter().filter_map(|(created, creation)| {
            creation.held_end?;
            Some((*created, DeliveryKind::End(creation.end?)))
        });
        let due = |(created, delivery)| self.entries.get(&created).map(|entry| Due { id: entry.id, delivery });
        queued.chain(held).filter_map(due).collect()
    }

    /// Removes a delivery, whenever it is due.
    pub fn remove_delivery(&mut self, due: Due) {
        let Some(created) = self.by_id.get(&due.id).copied() else { return };
        match due.delivery {
            DeliveryKind::Creation => self.set_creation_due(created, None),
            DeliveryKind::End(number) => {
                self.calls.retain(|(_, of, delivery)| (*of, *delivery) != (created, due.delivery));
                let creation = self.pending_creations.get_mut(&created);
                if let Some(creation) = creation.filter(|creation| creation.end == Some(number)) {
                    creation.held_end = None;
                }
            }
        }
    }

    /// Adds a delivery that is due at this time.
    pub fn requeue_delivery(&mut self, due: Due, at: Timestamp) {
        let Some(created) = self.by_id.get(&due.id).copied() else { return };
        match due.delivery {
            DeliveryKind::Creation => self.set_creation_due(created, Some(at)),
            DeliveryKind::End(number) => self.queue_end(created, number, at),
        }
    }

    fn add_calls(&mut self, created: Timestamp, calls: &[DeliveryState]) {
        for (number, call) in calls.iter().enumerate() {
            let Some(due) = call.due else { continue };
            if let Some(creation) = self.pending_creations.get_mut(&created).filter(|_| call.to == Callee::Webhook) {
                creation.end = Some(number);
            }
            self.queue_end(created, number, due);
        }
    }

    /// Queues a delivery of an end. That to the webhook waits for an attempt of a pending creation, which is made at
    /// this time or before.
    fn queue_end(&mut self, created: Timestamp, number: usize, at: Timestamp) {
        let creation = self.pending_creations.get_mut(&created).filter(|creation| creation.end == Some(number));
        let Some(creation) = creation else {
            self.calls.insert((at, created, DeliveryKind::End(number)));
            return;
        };
        creation.held_end = Some(at);
        if creation.due.is_some_and(|due| due > at) {
            self.set_creation_due(created, Some(at));
        }
    }

    fn load(&mut self, owner: Hash) -> &mut Load {
        self.owners.entry(owner).or_default()
    }

    fn queue_of(&self, queue: QueueKind) -> &FairQueue {
        match queue {
            QueueKind::ToBeFetched => &self.fetch_queue,
            QueueKind::ToBeHeard => &self.recognition_queue,
        }
    }

    fn queue_mut(&mut self, queue: QueueKind) -> &mut FairQueue {
        match queue {
            QueueKind::ToBeFetched => &mut self.fetch_queue,
            QueueKind::ToBeHeard => &mut self.recognition_queue,
        }
    }
}

fn entry_matches(query: &ListQuery, created: Timestamp, entry: &IndexEntry) -> bool {
    if query.custom_metadata.is_empty() {
        return query.matches(created, &entry.status, None);
    }
    let metadata: Option<Value> = entry.metadata.as_ref().and_then(|text| serde_json::from_str(text.get()).ok());
    query.matches(created, &entry.status, metadata.as_ref())
}
