//! What a job cost: one charge for each purchase. Charges are kept in the job's row for ever, so that every sum is
//! exact and is lost only with the row itself.

use crate::domain::budget::{BudgetLimit, Period};
use crate::domain::fault::FaultKind;
use crate::domain::job::Job;
use crate::domain::names::{ServiceName, Timestamp, TranscriptionId};
use crate::domain::split::{PartRange, Split};
use crate::domain::stage::{AudioAmount, Stage};
use serde::{Deserialize, Serialize};

/// One purchase, or the reservation for one. Amounts are milliseconds of billed audio: duration × channels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The moment that decides in which day and month the charge counts: that of the reservation, updated right before
    /// the create.
    pub at: Timestamp,
    /// The service's clock as last seen at the time of the reservation; `None` if it was not known, and in records of
    /// older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_date: Option<Timestamp>,
    /// When the run began in which the amount was reserved.
    pub run: Timestamp,
    #[serde(rename = "round")]
    pub purchase_number: u32,
    pub service: ServiceName,
    /// The name of the parameters in `jobs.toml`; `None` for the service's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    pub state: State,
    /// The reserved amount; `None` if the length of the recording was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<u64>,
    /// The amount that the service billed, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed: Option<u64>,
    /// The transcription that was bought, once it has an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcription: Option<TranscriptionId>,
    /// Whether the service fetches the audio from an address: such a transcription can fail before the service has any
    /// audio.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fetched: bool,
    /// What is reserved besides, for the parts of the recording that are bought after this purchase. It has no date: it
    /// counts in the day, the month and the run of now until those parts are bought. 0 without such parts, in what is
    /// spent, and in records of older releases.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rest: u64,
    /// The limits that the reservation fitted into; empty in what is spent, and in records of older releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitAtReservation>,
}

fn is_zero(amount: &u64) -> bool {
    *amount == 0
}

/// A limit as it was when something was reserved: it may have been lowered since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitAtReservation {
    /// Whether it is a limit of the job's source, not one of all sources.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_source: bool,
    pub period: Period,
    pub allowed: u64,
}

impl LimitAtReservation {
    pub fn of(limit: &BudgetLimit) -> Self {
        Self { of_source: limit.source.is_some(), period: limit.period, allowed: limit.allowed }
    }
}

/// What a service's list says about a purchase. If the queue that made the purchase was lost, nothing else is known
/// about its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighted {
    /// When it was created, by the service's clock.
    pub at: Timestamp,
    /// The billed milliseconds, if the list has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed: Option<u64>,
    /// Whether it counts against no budget until a job of this queue claims it: it may be another installation's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_uncounted: bool,
}

/// How far a purchase has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Reserved. No create is known to have been accepted; the amount is released if none will be.
    Held,
    /// Accepted, or assumed to be. A transcription that ends in `error` stays spent, because no bill says otherwise;
    /// the exception is [`State::Void`].
    Spent,
    /// Accepted, and ended in `error` because the service could not fetch the audio from its address. It costs nothing.
    Void,
    /// The job shares a transcription that another job bought. It costs nothing.
    Shared,
}

impl Charge {
    /// Returns the amount that counts against a budget: as billed, or as reserved until it is billed, with what is
    /// reserved for later parts. `None` if it is not known.
    pub fn amount(&self) -> Option<u64> {
        Some(self.dated_amount()?.saturating_add(self.rest))
    }

    /// Returns the amount that counts in the day and month of [`Charge::at`] and in [`Charge::run`]: all but
    /// [`Charge::rest`].
    pub fn dated_amount(&self) -> Option<u64> {
        match self.state {
            State::Shared | State::Void => Some(0),
            State::Held | State::Spent => self.billed.or(self.reserved),
        }
    }

    /// Whether this limit has not been lowered since the reservation. Also `false` for a limit that was not set then.
    pub fn was_reserved_under(&self, limit: &BudgetLimit) -> bool {
        let now = LimitAtReservation::of(limit);
        let is_same = |then: &LimitAtReservation| (then.of_source, then.period) == (now.of_source, now.period);
        self.limits.iter().any(|then| is_same(then) && then.allowed <= now.allowed)
    }

    /// Returns how much more was billed than reserved.
    pub fn excess(&self) -> u64 {
        self.billed.zip(self.reserved).map_or(0, |(billed, reserved)| billed.saturating_sub(reserved))
    }

    /// A charge for a transcription that was bought before the queue was lost. It counts in the day and month in which,
    /// by the service's list, it was bought. Without a date it counts only in the total. It counts in no run.
    fn found_again(job: &Job, service: &ServiceName, id: &TranscriptionId, sighted: Option<Sighted>) -> Self {
        let (at, billed) = sighted.map_or((Self::UNDATED, None), |Sighted { at, billed, .. }| (at, billed));
        let (run, state, transcription) = (Self::UNDATED, State::Spent, Some(id.clone()));
        Self { at, run, state, billed, transcription, ..Self::shared(job, service) }
    }

    /// Returns the reservation that is left when this one is spent.
    fn for_later_parts(&self) -> Self {
        Self { reserved: Some(0), fetched: false, ..self.clone() }
    }

    /// The date of a purchase whose date is not known.
    pub const UNDATED: Timestamp = Timestamp(0);

    fn shared(job: &Job, service: &ServiceName) -> Self {
        let state = State::Shared;
        let (at, purchase_number, service) = (job.since, job.purchase_number, service.clone());
        Self {
            at,
            service_date: None,
            run: at,
            purchase_number,
            service,
            template: None,
            state,
            reserved: None,
            billed: None,
            transcription: None,
            fetched: false,
            rest: 0,
            limits: Vec::new(),
        }
    }
}

impl Job {
    /// Returns the reservation for the job's next purchase, and for those of the later parts of its recording.
    pub fn reservation(&self) -> Option<&Charge> {
        self.charges.iter().find(|charge| charge.state == State::Held)
    }

    /// Returns the charge of a transcription that the job bought.
    pub fn charge_for(&self, transcription: &TranscriptionId) -> Option<&Charge> {
        self.charges.iter().rev().find(|charge| charge.transcription.as_ref() == Some(transcription))
    }

    /// Returns the charge of the job's present result; `None` if the job uses what it bought before, or if another job
    /// bought it and this job has bought something else.
    pub fn result_charge(&self) -> Option<&Charge> {
        let transcription = self.stage.transcription().filter(|_| !self.is_result_reused)?;
        // Shared charges, and those of older releases, name no transcription.
        let unnamed =
            |charge: &&Charge| charge.transcription.is_none() && charge.purchase_number == self.purchase_number;
        let made = || self.charges.iter().rfind(|charge| charge.state != State::Held);
        self.charge_for(transcription).or_else(|| made().filter(unnamed))
    }

    /// Returns the charges of the parts that the job's present result was joined from.
    pub fn part_charges(&self) -> impl Iterator<Item = &Charge> {
        let split =
            self.split.as_deref().filter(|_| self.stage.transcription().is_some_and(TranscriptionId::is_joined));
        let ids = split.into_iter().flat_map(Split::bought).map(|(_, bought)| &bought.transcription);
        ids.filter_map(|id| self.charge_for(id))
    }

    /// Returns what the job's present result cost; `None` if this job bought none of it, or if the cost is not known.
    pub fn result_amount(&self) -> Option<u64> {
        if let Some(charge) = self.result_charge() {
            return charge.amount();
        }
        let mut parts = self.part_charges().peekable();
        parts.peek()?;
        parts.map(Charge::amount).sum()
    }

    /// Whether the job bought something without a recorded cost, as in a release that recorded none.
    pub fn has_unknown_cost(&self) -> bool {
        let bought = match &self.stage {
            Stage::Submitting { .. } => true,
            stage => stage.transcription().is_some_and(|id| !id.is_own()),
        };
        self.charges.is_empty() && bought
    }
}

/// Returns the charges of a job that changes from `old` to `new`. Apart from reservations, only this function changes
/// them. `paid`: whether a job of this queue has paid for the transcription of `new`; `sighted`: what the service's
/// list says about it.
pub fn charges_after(old: &Job, new: &Job, paid: bool, sighted: Option<Sighted>) -> Vec<Charge> {
    use Stage as S;
    let mut charges = old.charges.clone();
    if let S::Submitted { transcription, .. } = &old.stage
        && ended_without_audio(new)
    {
        let could_not_be_fetched = |charge: &&mut Charge| charge.fetched && charge.billed.is_none();
        charges_for(&mut charges, transcription)
            .filter(could_not_be_fetched)
            .for_each(|charge| charge.state = State::Void);
    }
    match (&old.stage, &new.stage) {
        (S::Submitted { transcription, .. }, S::Fetched { audio, .. }) => {
            record_bill(&mut charges, old, transcription, audio);
        }
        (S::Submitting { .. }, S::Submitted { transcription, .. }) => spend(&mut charges, Some(transcription)),
        (S::Submitted { transcription: lost, .. }, S::Submitted { transcription, .. }) => {
            charges_for(&mut charges, lost).for_each(|charge| charge.transcription = Some(transcription.clone()));
        }
        // A person decided to buy although it is not known whether the create was accepted.
        (S::Submitting { .. }, S::Probed { .. } | S::Settled) => spend(&mut charges, None),
        (S::Probed { .. } | S::Uploaded { .. } | S::Following { .. }, S::Submitted { purchase_key, transcription }) => {
            take_from_rest(&mut charges, new, purchase_key.part);
            match paid {
                false => charges.push(Charge::found_again(new, &purchase_key.service, transcription, sighted)),
                // A job that has bought something before keeps its own charge.
                true if has_made_none(&charges) => charges.push(Charge::shared(new, &purchase_key.service)),
                true => {}
            }
        }
        _ => {}
    }
    keep_reservation(&mut charges, old, new);
    charges
}

/// Gives back what the job does not need any more at its new stage. A recording of which parts are bought keeps what is
/// reserved for the others.
fn keep_reservation(charges: &mut Vec<Charge>, old: &Job, new: &Job) {
    match &new.stage {
        Stage::Probed { .. } | Stage::Uploaded { .. } | Stage::Submitting { .. } if new.split.is_some() => {}
        // The service accepts no parts as long as these. Nothing of the recording is bought; it is measured again if it
        // was sent before.
        Stage::Probed { .. } | Stage::Uploaded { .. } | Stage::Submitting { .. } => {
            if old.split.is_some() && matches!(old.stage, Stage::Submitted { .. }) {
                give_back(charges);
            }
            for held in charges.iter_mut().filter(|charge| charge.state == State::Held) {
                held.reserved = held.reserved.map(|reserved| reserved.saturating_add(held.rest));
                held.rest = 0;
            }
        }
        Stage::Submitted { purchase_key, .. } | Stage::Fetched { purchase_key, .. } => {
            let later = purchase_key.part.zip(new.split.as_deref()).is_some_and(|(part, split)| split.has_later(part));
            charges.retain(|charge| charge.state != State::Held || (later && charge.rest > 0));
        }
        _ => give_back(charges),
    }
}

/// Takes the amount of a part that was found as bought from the reservation. All of it, if the whole recording was.
fn take_from_rest(charges: &mut [Charge], job: &Job, part: Option<PartRange>) {
    let of_part = part.zip(job.split.as_deref()).map(|(part, split)| split.amount_of(part, 0));
    for held in charges.iter_mut().filter(|charge| charge.state == State::Held) {
        held.rest = of_part.map_or(0, |amount| held.amount().unwrap_or_default().saturating_sub(amount));
        held.reserved = Some(0);
    }
}

/// Whether these charges have no purchase, but a reservation at most.
fn has_made_none(charges: &[Charge]) -> bool {
    charges.iter().all(|charge| charge.state == State::Held)
}

/// Whether the job's transcription has just ended in an error, and its record shows no audio and no bill.
fn ended_without_audio(job: &Job) -> bool {
    let fault = match &job.stage {
        Stage::Failed { fault, .. } => Some(fault),
        _ => job.fault.as_ref(),
    };
    fault.is_some_and(|fault| matches!(fault.kind, FaultKind::Dead { .. }) && fault.unheard)
}

fn give_back(charges: &mut Vec<Charge>) {
    charges.retain(|charge| charge.state != State::Held);
}

/// Makes the reservation a purchase. What was reserved for later parts stays reserved.
fn spend(charges: &mut Vec<Charge>, transcription: Option<&TranscriptionId>) {
    let has_rest = |charge: &&Charge| charge.state == State::Held && charge.rest > 0;
    let later: Vec<Charge> = charges.iter().filter(has_rest).map(Charge::for_later_parts).collect();
    for charge in charges.iter_mut().filter(|charge| charge.state == State::Held) {
        charge.state = State::Spent;
        charge.transcription = transcription.cloned();
        (charge.rest, charge.limits) = (0, Vec::new());
    }
    charges.extend(later);
}

fn charges_for<'c>(charges: &'c mut [Charge], id: &'c TranscriptionId) -> impl Iterator<Item = &'c mut Charge> {
    charges.iter_mut().filter(move |charge| charge.transcription.as_ref() == Some(id))
}

/// Records what the transcription cost, from its result.
fn record_bill(charges: &mut Vec<Charge>, old: &Job, id: &TranscriptionId, audio: &AudioAmount) {
    let billed = audio.billed.or_else(|| audio.reservation_millis());
    // A release that recorded no charges bought it.
    if has_made_none(charges)
        && let Some(purchase_key) = old.stage.purchase_key()
    {
        let shared = Charge::shared(old, &purchase_key.service);
        charges.push(Charge { state: State::Spent, transcription: Some(id.clone()), ..shared });
    }
    charges_for(charges, id).for_each(|charge| charge.billed = billed.or(charge.billed));
}
