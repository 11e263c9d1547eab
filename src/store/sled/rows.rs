//! Rows of the queue as entries of sled.

use super::encoding::{DIVIDED, FORMAT, WHOLE, seal, seal_as, sealed, unseal};
use super::failure::{FirstFailure, Flaw};
use super::row_copy::RowCopy;
use crate::domain::job::Job;
use crate::domain::names::{Hash, JobId, ServiceName, Timestamp};
use crate::domain::pause::Pauses;
use crate::domain::token::PurchaseKey;
use crate::store::contract::{KnownPurchase, StoreError};
use crate::store::decode::in_order;
use crate::store::index::job_index::purchase_key_hash;
use crate::store::large::LargeValues;
use crate::store::parts::{self, SplitRecord};
use crate::store::queue::Rows;
use crate::store::row_file::RowBytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// With sled's pages of up to 17 values this stays far from the 128 KiB above which sled would write a separate file.
const LARGEST_VALUE: usize = 7 << 10;
/// A longer record is divided, even if compression could make it short enough.
const LARGEST_PACKED: usize = 64 << 10;

const JOB: u8 = b'j';
const BOUGHT: u8 = b'b';
pub(super) const META_FORMAT: &[u8] = b"m/format";
/// Trust in the queue for the service [`ServiceName::DEFAULT`], once the only one. For other services `/NAME`
/// follows.
pub(super) const META_TRUSTED: &[u8] = b"m/trusted";
/// Whether the queue has lost something that it knew.
pub(super) const META_LOST: &[u8] = b"m/lost";
const META_SIGHTINGS: &[u8] = b"m/sightings";
/// Older releases had only one pause, under this key: everything rests.
const META_PAUSED: &[u8] = b"m/paused";
const META_PAUSES: &[u8] = b"m/pauses";

/// A purchase with its key, so that a row tells what it is about.
#[derive(Serialize, Deserialize)]
struct Purchase {
    #[serde(rename = "order")]
    purchase_key: PurchaseKey,
    #[serde(flatten)]
    bought: KnownPurchase,
}

pub(super) struct SledRows {
    pub(super) db: ::sled::Db,
    pub(super) first_failure: Arc<FirstFailure>,
    pub(super) large: Arc<LargeValues>,
    /// The large values that the records name, collected while all records are read once.
    pub(super) named: Arc<Mutex<Option<HashSet<Hash>>>>,
    /// The copy that is being made.
    pub(super) copy: Mutex<Option<RowCopy>>,
}

impl SledRows {
    fn store_error(&self, flaw: Flaw) -> StoreError {
        flaw.into_store_error(&self.first_failure.dir)
    }

    fn read<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        let value = self.db.get(key).map_err(|error| self.store_error(error.into()))?;
        value.map(|value| unseal(&value).map_err(|flaw| self.store_error(flaw))).transpose()
    }

    fn write(&self, key: &[u8], value: &impl Serialize) -> Result<(), StoreError> {
        let sealed = seal(value).map_err(|flaw| self.store_error(flaw))?;
        if !fits(&sealed) {
            let (len, max) = (sealed.len(), LARGEST_VALUE);
            return Err(StoreError::Unwritable(format!(
                "a value has {len} bytes, and the queue accepts at most {max}"
            )));
        }
        self.put(key, sealed)
    }

    fn put(&self, key: &[u8], sealed: Vec<u8>) -> Result<(), StoreError> {
        self.first_failure.check()?;
        self.keep_for_copy(key)?;
        // Every insert is a separate entry in sled's log, and the log is read back in order.
        self.db.insert(key, sealed).map(drop).map_err(|error| self.first_failure.fail(error.into()))
    }

    fn remove(&self, key: &[u8]) -> Result<(), StoreError> {
        self.first_failure.check()?;
        self.keep_for_copy(key)?;
        self.db.remove(key).map(drop).map_err(|error| self.first_failure.fail(error.into()))
    }

    /// To be called before a row is changed.
    fn keep_for_copy(&self, key: &[u8]) -> Result<(), StoreError> {
        let kept = self.copy().as_mut().map_or(Ok(()), |copy| copy.keep_before(key, || self.db.get(key)));
        kept.map_err(|error| self.store_error(error.into()))
    }

    fn copy(&self) -> MutexGuard<'_, Option<RowCopy>> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flagged(&self, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.read(key)?.unwrap_or(false))
    }

    /// Returns a value as it is stored in the database: its largest fields become files until the rest fits.
    fn divided(&self, value: &impl Serialize, groups: &[&[&str]]) -> Result<Vec<u8>, Flaw> {
        let payload = serde_json::to_vec(value).map_err(|error| Flaw::Damaged(error.to_string()))?;
        if payload.len() <= LARGEST_PACKED {
            let sealed = sealed(WHOLE, payload)?;
            if fits(&sealed) {
                return Ok(sealed);
            }
        }
        let value = serde_json::to_value(value).map_err(|error| Flaw::Damaged(error.to_string()))?;
        let mut divided = SplitRecord::whole(value);
        while let Some(part) = divided.largest(groups) {
            let hash = self.large.keep(&part.json).map_err(Flaw::Io)?;
            divided.took(part, hash);
            let sealed = seal_as(DIVIDED, &divided)?;
            if fits(&sealed) {
                return Ok(sealed);
            }
        }
        // No field is left that could be long.
        seal_as(DIVIDED, &divided)
    }

    /// Returns the job of a record. If one of its large values is lost, the job waits, and its fault says so.
    fn job(&self, sealed: &[u8]) -> Result<Job, Flaw> {
        if sealed.first() != Some(&DIVIDED) {
            return unseal(sealed);
        }
        let divided: SplitRecord = unseal(sealed)?;
        if let Some(named) = &mut *self.named.lock().unwrap_or_else(PoisonError::into_inner) {
            named.extend(divided.files.values());
        }
        parts::job(divided, &self.large).map_err(Flaw::Damaged)
    }

    fn expected(&self, row: ::sled::Result<(::sled::IVec, ::sled::IVec)>, id: JobId) -> Result<Job, Flaw> {
        let (key, value) = row?;
        if *key != job_key(id) {
            return Err(Flaw::Damaged(format!("the row of job {id} is missing")));
        }
        in_its_place(id, self.job(&value)?)
    }
}

fn fits(sealed: &[u8]) -> bool {
    sealed.len() <= LARGEST_VALUE
}

impl Rows for SledRows {
    fn load(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        let value = self.db.get(job_key(id)).map_err(|error| self.store_error(error.into()))?;
        let job = value.map(|value| self.job(&value).and_then(|job| in_its_place(id, job)));
        job.transpose().map_err(|flaw| self.store_error(flaw))
    }

    fn save(&mut self, job: &Job) -> Result<(), StoreError> {
        self.first_failure.check()?;
        let sealed = self.divided(job, &parts::OF_A_JOB).map_err(|flaw| self.store_error(flaw))?;
        self.put(&job_key(job.id), sealed)
    }

    fn each(&self, take: &mut (dyn FnMut(Job) + Send)) -> Result<(), StoreError> {
        let rows = self.db.range([JOB].as_slice()..&[JOB + 1]).zip(1..);
        let jobs = in_order(rows, |(row, id)| self.expected(row, JobId(id)), take);
        jobs.map_err(|flaw| flaw.into_store_error(&self.first_failure.dir))
    }

    fn scan(&self, after: Option<JobId>) -> Box<dyn Iterator<Item = Result<Job, StoreError>> + '_> {
        let first = after.map_or(1, |id| id.0.saturating_add(1));
        let rows = self.db.range(job_key(JobId(first)).as_slice()..&[JOB + 1]);
        let jobs = rows.zip(first..).map(|(row, id)| self.expected(row, JobId(id)));
        Box::new(jobs.map(|job| job.map_err(|flaw| flaw.into_store_error(&self.first_failure.dir))))
    }

    fn bought(&self, purchase_key: &PurchaseKey) -> Result<Option<KnownPurchase>, StoreError> {
        match self.read::<Purchase>(&bought_key(purchase_key))? {
            Some(purchase) if purchase.purchase_key == *purchase_key => Ok(Some(purchase.bought)),
            Some(_) => Err(Flaw::Damaged("a purchase is stored under another key than its own".into())
                .into_store_error(&self.first_failure.dir)),
            None => Ok(None),
        }
    }

    fn each_bought(&self, see: &mut dyn FnMut(&PurchaseKey, &KnownPurchase)) -> Result<(), StoreError> {
        let store_error = |flaw: Flaw| flaw.into_store_error(&self.first_failure.dir);
        for row in self.db.range([BOUGHT].as_slice()..&[BOUGHT + 1]) {
            let (_, value) = row.map_err(|error| store_error(error.into()))?;
            let Purchase { purchase_key, bought } = unseal(&value).map_err(store_error)?;
            see(&purchase_key, &bought);
        }
        Ok(())
    }

    fn put_bought(&mut self, purchase_key: &PurchaseKey, bought: Option<&KnownPurchase>) -> Result<(), StoreError> {
        let key = bought_key(purchase_key);
        match bought {
            Some(bought) => self.write(&key, &Purchase { purchase_key: purchase_key.clone(), bought: bought.clone() }),
            None => self.remove(&key),
        }
    }

    fn has_sightings(&self) -> Result<bool, StoreError> {
        self.flagged(META_SIGHTINGS)
    }

    fn set_sightings(&mut self) -> Result<(), StoreError> {
        // Called for every item of a list; written once.
        if self.has_sightings()? { Ok(()) } else { self.write(META_SIGHTINGS, &true) }
    }

    fn suspect(&self, service: &ServiceName) -> Result<bool, StoreError> {
        Ok(!self.flagged(&trusted_key(service))?)
    }

    fn has_lost(&self, service: &ServiceName) -> Result<bool, StoreError> {
        let key = trusted_key(service);
        let was_distrusted = self.db.contains_key(&key).map_err(|error| self.store_error(error.into()))?;
        Ok(!self.flagged(&key)? && (was_distrusted || self.flagged(META_LOST)?))
    }

    fn set_trusted(&mut self, service: &ServiceName, trusted: bool) -> Result<(), StoreError> {
        self.write(&trusted_key(service), &trusted)
    }

    fn pauses(&self) -> Result<Pauses, StoreError> {
        let stored = self.db.get(META_PAUSES).map_err(|error| self.store_error(error.into()))?;
        match stored {
            Some(sealed) if sealed.first() == Some(&DIVIDED) => {
                let divided: SplitRecord = unseal(&sealed).map_err(|flaw| self.store_error(flaw))?;
                if let Some(named) = &mut *self.named.lock().unwrap_or_else(PoisonError::into_inner) {
                    named.extend(divided.files.values());
                }
                // If it is not known what is paused, nothing is bought until a person decides.
                Ok(parts::value(divided, &self.large).unwrap_or_else(|| Pauses::everything(Timestamp(0))))
            }
            Some(sealed) => unseal(&sealed).map_err(|flaw| self.store_error(flaw)),
            None if self.flagged(META_PAUSED)? => Ok(Pauses::everything(Timestamp(0))),
            None => Ok(Pauses::default()),
        }
    }

    fn set_pauses(&mut self, pauses: &Pauses) -> Result<(), StoreError> {
        self.first_failure.check()?;
        let sealed = self.divided(pauses, &[&["sources"]]).map_err(|flaw| self.store_error(flaw))?;
        self.put(META_PAUSES, sealed)
    }

    fn begin_copy(&mut self) -> Result<u8, StoreError> {
        let mut copy = self.copy();
        if copy.is_some() {
            let words =
                "the queue is being copied for another backup or check: wait until that has ended, then try again";
            return Err(StoreError::Locked(words.to_owned()));
        }
        *copy = Some(RowCopy::default());
        Ok(FORMAT)
    }

    fn next_of_copy(&mut self, most: usize) -> Result<Vec<RowBytes>, StoreError> {
        let rows = self.copy().as_mut().map_or(Ok(Vec::new()), |copy| copy.next_rows(&self.db, most));
        rows.map_err(|error| self.store_error(error.into()))
    }

    fn end_copy(&mut self) {
        *self.copy() = None;
    }
}

/// Whether this is the key of a job.
pub fn is_job_key(key: &[u8]) -> bool {
    key.len() == 9 && key[0] == JOB
}

/// Whether this is the key of a purchase.
pub fn is_purchase_key(key: &[u8]) -> bool {
    key.len() == 17 && key[0] == BOUGHT
}

fn trusted_key(service: &ServiceName) -> Vec<u8> {
    let mut key = META_TRUSTED.to_vec();
    if service.as_str() != ServiceName::DEFAULT {
        key.push(b'/');
        key.extend_from_slice(service.as_str().as_bytes());
    }
    key
}

/// Checks that a job has its own number. Jobs are numbered from 1 without gaps and never removed, so a job in the
/// wrong place means that one was lost.
fn in_its_place(id: JobId, job: Job) -> Result<Job, Flaw> {
    let other = job.id;
    if other == id {
        Ok(job)
    } else {
        Err(Flaw::Damaged(format!("the row of job {other} is stored under the key of job {id}")))
    }
}

/// Returns the key of a job. The number is big-endian, so that rows are in the order of the numbers.
pub(super) fn job_key(id: JobId) -> [u8; 9] {
    let mut key = [JOB; 9];
    key[1..].copy_from_slice(&id.0.to_be_bytes());
    key
}

fn bought_key(purchase_key: &PurchaseKey) -> [u8; 17] {
    let mut key = [BOUGHT; 17];
    key[1..].copy_from_slice(&purchase_key_hash(purchase_key));
    key
}
