//! Reserves what a job is expected to cost: before its upload, and once more right before its create.

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
        let known = job.reservation().and_then(|held| held.reserved);
        let need = match known {
            Some(need) => Some(need),
            None if let Some(need) = next_part(job) => Some(need),
            None => self.measure_length(mount, job, pick, clock).await,
        };
        let now = clock.now();
        let reserved = match need {
            Some(need) => self.reserve(store, lease, job, charge(mount, job, service, Some(need), now)).await,
            // The length of remote audio comes with the bill, and then it is too late.
            None if job.is_remote() => {
                return Ok(Some(unknown_length(job, now)));
            }
            None => self.anything_left(store, lease, job, now).await,
        };
        let refused = reserved.map_err(|error| store_fault(&error, now))?.err();
        Ok(refused.map(|over| self.defer(job, over, now)))
    }

    /// Reserves what the create of this audio will cost, dated now.
    pub async fn reserve_for_create(
        &self,
        store: &dyn Budgets,
        mount: &Mount,
        lease: &Lease,
        job: &Job,
        (service, service_date): (&ServiceName, Option<Timestamp>),
        now: Timestamp,
    ) -> Result<Option<Deferral>, StoreError> {
        let measured = job.stage.audio().and_then(|audio| audio.reservation_millis());
        let need =
            measured.or_else(|| job.reservation().and_then(|held| held.reserved)).or_else(|| announced_length(job));
        if need.is_none() && !self.limits_for(&job.key.source, now).is_empty() {
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

/// Returns the amount of the part that is bought next, in milliseconds of billed audio.
fn next_part(job: &Job) -> Option<u64> {
    let split = job.split.as_deref()?;
    Some(split.next()?.millis() * u64::from(split.channels.max(1)))
}

fn charge(mount: &Mount, job: &Job, service: &ServiceName, need: Option<u64>, now: Timestamp) -> Charge {
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
        reserved: need,
        billed: None,
        transcription: None,
        fetched: false,
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
