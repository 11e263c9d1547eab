//! Reserves what a job is expected to cost: before its upload, and once more right before its create. A recording that is
//! sent in parts has all of it reserved before its first part is uploaded, and keeps what the later parts need.

use crate::clock::Clock;
use crate::domain::budget::{BudgetExceeded, check_accounts};
use crate::domain::charge::{Charge, State};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{ServiceName, Timestamp};
use crate::domain::stage::{AudioAmount, AudioAt, Stage};
use crate::domain::track_selection::TrackSelection;
use crate::pipeline::budget::{BudgetGate, Deferral};
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::faults::store_fault;
use crate::pipeline::stages::remote_audio::announced_length;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{Budgets, Lease, StoreError};
use std::time::Duration;

/// Longest time for measuring a file. A file that takes longer counts as one of unknown length, which the answer to
/// its upload tells.
const PATIENCE: Duration = Duration::from_secs(60);

impl BudgetGate {
    /// Reserves what this file is expected to cost. A file of unknown length is let through as long as anything is
    /// left: the answer to its upload tells the length.
    ///
    /// # Errors
    /// An error of the store, as a fault.
    pub async fn reserve_for_upload(
        &self,
        context: (&dyn Budgets, &dyn Clock),
        mount: &Mount,
        lease: &Lease,
        (job, pick): (&Job, Option<&TrackSelection>),
        service: &ServiceName,
    ) -> Result<Option<Deferral>, Fault> {
        let (store, clock) = context;
        if self.limits_for(&job.key.source, clock.now()).is_empty() {
            return Ok(None);
        }
        let need = match (whole_recording(job), job.reservation().and_then(Charge::amount)) {
            (Some(parts), _) => Some(parts),
            (None, Some(known)) => Some(Need::once(known)),
            (None, None) => self.measure_length(mount, job, pick, clock).await.map(Need::once),
        };
        let now = clock.now();
        let reserved = match need {
            Some(need) => self.reserve(store, lease, job, charge(mount, job, service, need, now)).await,
            // The length of remote audio comes with the bill, and then it is too late.
            None if job.is_remote() => {
                return Ok(Some(unknown_length(job, now)));
            }
            None => self.anything_left(store, lease, job, now).await,
        };
        let refused = reserved.map_err(|error| store_fault(&error, now))?.err();
        Ok(refused.map(|over| self.defer(job, over, now)))
    }

    /// Reserves what the create of this audio will cost, dated now, and what the later parts of the recording will.
    pub async fn reserve_for_create(
        &self,
        store: &dyn Budgets,
        mount: &Mount,
        lease: &Lease,
        job: &Job,
        (service, service_date): (&ServiceName, Option<Timestamp>),
        now: Timestamp,
    ) -> Result<Option<Deferral>, StoreError> {
        let is_limited = !self.limits_for(&job.key.source, now).is_empty();
        let need = match part_and_later(job) {
            Some(Need { next, rest }) => Need { next, rest: if is_limited { rest } else { 0 } },
            None => Need { next: measured(job).or_else(|| expected(job)), rest: 0 },
        };
        if need.next.is_none() && is_limited {
            return Ok(Some(unknown_length(job, now)));
        }
        let fetched = matches!(&job.stage, Stage::Uploaded { upload: AudioAt::Remote { .. }, .. });
        let charge = Charge { service_date, fetched, ..charge(mount, job, service, need, now) };
        let refused = self.reserve(store, lease, job, charge).await?.err();
        Ok(refused.map(|over| self.defer(job, over, now)))
    }

    async fn reserve(
        &self,
        store: &dyn Budgets,
        lease: &Lease,
        job: &Job,
        charge: Charge,
    ) -> Result<Result<(), BudgetExceeded>, StoreError> {
        let reserved = store.reserve(lease, &charge, &self.limits_for(&job.key.source, charge.at)).await?;
        if reserved.is_ok() {
            self.refused().remove(&job.id);
        }
        Ok(reserved)
    }

    async fn anything_left(
        &self,
        store: &dyn Budgets,
        lease: &Lease,
        job: &Job,
        now: Timestamp,
    ) -> Result<Result<(), BudgetExceeded>, StoreError> {
        store.skip_reservation(lease).await?;
        Ok(check_accounts(store.accounts(&self.limits_for(&job.key.source, now)).await?, 1))
    }

    async fn measure_length(
        &self,
        mount: &Mount,
        job: &Job,
        pick: Option<&TrackSelection>,
        clock: &dyn Clock,
    ) -> Option<u64> {
        if let MediaFile::Remote(_) = MediaFile::of(mount, job) {
            return announced_length(job);
        }
        let audio = self.declared_audio(mount, job, clock).await?;
        audio.with_only(pick.and_then(TrackSelection::channels)).reservation_millis()
    }

    /// Returns how much audio a recording declares; `None` if it does not, if it is not a file on this machine, or if
    /// that takes too long to find out.
    pub async fn declared_audio(&self, mount: &Mount, job: &Job, clock: &dyn Clock) -> Option<AudioAmount> {
        // For an object of a bucket, the answer to the upload tells the length.
        let MediaFile::File { path, .. } = MediaFile::of(mount, job) else { return None };
        tokio::select! {
            biased;
            audio = (self.measure)(path, job.key.clone(), job.seen) => audio,
            () = clock.sleep(PATIENCE) => None,
        }
    }
}

/// What is reserved for a job, in milliseconds of billed audio.
struct Need {
    /// For the next purchase; `None` if that is not known.
    next: Option<u64>,
    /// For the parts after it.
    rest: u64,
}

impl Need {
    /// Of a recording that is bought at once, or of which nothing is bought yet.
    fn once(amount: u64) -> Self {
        Self { next: Some(amount), rest: 0 }
    }
}

/// Returns what all parts need that are not bought yet; `None` if the recording is sent whole. The first part is not
/// uploaded before there is room for all. Once a part is bought, what the others need has no date: it is theirs on
/// whatever day they are bought.
fn whole_recording(job: &Job) -> Option<Need> {
    let split = job.split.as_deref().filter(|split| split.next().is_some())?;
    let all = split.unbought(0).all();
    Some(if split.bought().next().is_none() { Need::once(all) } else { Need { next: Some(0), rest: all } })
}

/// Returns what the create of the next part will cost, and what the parts after it need.
fn part_and_later(job: &Job) -> Option<Need> {
    let split = job.split.as_deref().filter(|split| split.next().is_some())?;
    // The upload's answer has the channels that the service hears, and so many are in the other parts too.
    let parts = split.unbought(job.stage.audio().map_or(0, |audio| audio.channels));
    Some(Need { next: measured(job).or(Some(parts.next)), rest: parts.later })
}

/// Returns what the audio at the service will cost, by the service's measure.
fn measured(job: &Job) -> Option<u64> {
    job.stage.audio().and_then(|audio| audio.reservation_millis())
}

/// Returns what was reserved for the recording, or is announced.
fn expected(job: &Job) -> Option<u64> {
    job.reservation().and_then(Charge::amount).or_else(|| announced_length(job))
}

fn charge(mount: &Mount, job: &Job, service: &ServiceName, need: Need, now: Timestamp) -> Charge {
    let made = job.request_record.as_ref().map(|request_record| request_record.template.as_str());
    let template = made.unwrap_or(mount.source().template.name());
    let template = Some(template).filter(|name| !name.is_empty()).map(str::to_owned);
    Charge {
        at: now,
        service_date: None,
        run: now,
        purchase_number: job.purchase_number,
        service: service.clone(),
        template,
        state: State::Held,
        reserved: need.next,
        billed: None,
        transcription: None,
        fetched: false,
        rest: need.rest,
        limits: Vec::new(),
    }
}

fn unknown_length(job: &Job, now: Timestamp) -> Deferral {
    let how = match job.row.as_ref().is_some_and(|row| row.is_by_command()) {
        true => "give the length with `scribed add --duration 1h2m` and the address",
        false => "fill in `duration` in its row",
    };
    let remote = format!(
        "the length of the recording is not known before it is bought, since the service fetches it, so scribed cannot reserve budget for it: {how}, or remove the budget"
    );
    let file = "neither the file nor the service gives the length of the recording, so scribed cannot reserve budget for it: convert the file with ffmpeg, or remove the budget";
    let words = if job.is_remote() { remote } else { file.to_owned() };
    Deferral { until: None, fault: Fault { asks: true, ..Fault::new(FaultKind::Budget, words, now) } }
}
