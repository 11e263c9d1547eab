//! What a job cost: one charge for each round, kept in the job's row for ever, so that every sum is exact to
//! the job and survives whatever the row survives.

use crate::domain::fault::FaultKind;
use crate::domain::job::Job;
use crate::domain::names::{ServiceName, Timestamp, TranscriptionId};
use crate::domain::stage::{AudioAmount, Stage};
use serde::{Deserialize, Serialize};

/// One purchase, or what is put by for one. Amounts are milliseconds of billed audio: duration × channels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The moment whose day and month it counts in: of the reservation, last dated right before the create.
    pub at: Timestamp,
    /// The service's own clock as last heard at the reservation; `None` where it had not been heard, and in what an
    /// older release wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_date: Option<Timestamp>,
    /// When the run began that it was reserved in.
    pub run: Timestamp,
    pub round: u32,
    /// Where it is bought.
    pub service: ServiceName,
    /// The name of the parameters in `jobs.toml`; `None` for the service's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// How far it has come.
    pub state: State,
    /// What was put by; `None` where nobody knew how long the recording is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<u64>,
    /// What the service bills, once it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed: Option<u64>,
    /// What was bought, once it has an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcription: Option<TranscriptionId>,
    /// The service fetches the audio from an address by itself: it may fail before it has heard any of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fetched: bool,
}

/// What a service's list says of something that was bought: all that is known of its cost where the queue that
/// bought it was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighted {
    /// When it was created, by the service's clock.
    pub at: Timestamp,
    /// Milliseconds that it was billed at, where the list says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed: Option<u64>,
    /// Whether it counts against no budget before a job of this queue has it: it may be another installation's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_uncounted: bool,
}

/// How far a purchase has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Put by. Nothing is known to have been accepted for it; given back when nothing will be.
    Held,
    /// Accepted, or taken to be. A transcription that ends in `error` stays spent, as no bill says otherwise; but for
    /// [`State::Void`].
    Spent,
    /// Accepted, and ended in `error` before the service had any audio: it could not fetch it from its address. It
    /// costs nothing.
    Void,
    /// What another job bought serves this one too: it costs nothing.
    Shared,
}

impl Charge {
    /// What it takes from a budget: as billed, and until that is known as reserved. `None` where nobody knows.
    pub fn amount(&self) -> Option<u64> {
        match self.state {
            State::Shared | State::Void => Some(0),
            State::Held | State::Spent => self.billed.or(self.reserved),
        }
    }

    /// How much more was billed than reserved.
    pub fn excess(&self) -> u64 {
        self.billed.zip(self.reserved).map_or(0, |(billed, reserved)| billed.saturating_sub(reserved))
    }

    /// What nobody of this queue has paid for: bought before the queue was lost. It counts in the day and month
    /// in which the service's list says that it was bought, or else only in what was ever spent; and in no run.
    fn found_again(job: &Job, service: &ServiceName, id: &TranscriptionId, sighted: Option<Sighted>) -> Self {
        let (at, billed) = sighted.map_or((Self::UNDATED, None), |Sighted { at, billed, .. }| (at, billed));
        let (run, state, transcription) = (Self::UNDATED, State::Spent, Some(id.clone()));
        Self { at, run, state, billed, transcription, ..Self::shared(job, service) }
    }

    /// The date of what was bought nobody knows when.
    pub const UNDATED: Timestamp = Timestamp(0);

    fn shared(job: &Job, service: &ServiceName) -> Self {
        let state = State::Shared;
        let (at, round, service) = (job.since, job.round, service.clone());
        Self {
            at,
            service_date: None,
            run: at,
            round,
            service,
            template: None,
            state,
            reserved: None,
            billed: None,
            transcription: None,
            fetched: false,
        }
    }
}

impl Job {
    /// What is put by for its next purchase.
    pub fn reservation(&self) -> Option<&Charge> {
        self.charges.iter().find(|charge| charge.state == State::Held)
    }

    /// Whether it has bought something of which nobody wrote down what it cost: in a release that did not.
    pub fn has_unknown_cost(&self) -> bool {
        let bought = match &self.stage {
            Stage::Submitting { .. } => true,
            stage => stage.transcription().is_some(),
        };
        self.charges.is_empty() && bought
    }
}

/// The charges of a job that was `old` and is put as `new`. Nothing else but a reservation changes them.
/// `paid`: whether a job of this queue has paid for the transcription of `new`; `sighted`: what the service's list
/// says of it.
pub fn charges_after(old: &Job, new: &Job, paid: bool, sighted: Option<Sighted>) -> Vec<Charge> {
    use Stage as S;
    let mut charges = old.charges.clone();
    if let S::Submitted { transcription, .. } = &old.stage
        && is_for_nothing(new)
    {
        let could_not_be_fetched = |charge: &&mut Charge| charge.fetched && charge.billed.is_none();
        of(&mut charges, transcription).filter(could_not_be_fetched).for_each(|charge| charge.state = State::Void);
    }
    match (&old.stage, &new.stage) {
        (S::Submitted { transcription, .. }, S::Fetched { audio, .. }) => {
            settle(&mut charges, old, transcription, audio);
        }
        (S::Submitting { .. }, S::Submitted { transcription, .. }) => spend(&mut charges, Some(transcription)),
        (S::Submitted { transcription: gone, .. }, S::Submitted { transcription, .. }) => {
            of(&mut charges, gone).for_each(|charge| charge.transcription = Some(transcription.clone()));
        }
        // A person's word overruled that nobody knows whether it was accepted.
        (S::Submitting { .. }, S::Probed { .. } | S::Settled) => spend(&mut charges, None),
        (S::Probed { .. } | S::Uploaded { .. } | S::Following { .. }, S::Submitted { order, transcription }) => {
            give_back(&mut charges);
            match paid {
                false => charges.push(Charge::found_again(new, &order.service, transcription, sighted)),
                // One that bought before is served by its own money.
                true if charges.is_empty() => charges.push(Charge::shared(new, &order.service)),
                true => {}
            }
        }
        (_, S::Probed { .. } | S::Uploaded { .. } | S::Submitting { .. }) => {}
        _ => give_back(&mut charges),
    }
    charges
}

/// Its transcription has just ended in an error, and its record shows no audio and no bill.
fn is_for_nothing(job: &Job) -> bool {
    let fault = match &job.stage {
        Stage::Failed { fault, .. } => Some(fault),
        _ => job.fault.as_ref(),
    };
    fault.is_some_and(|fault| matches!(fault.kind, FaultKind::Dead { .. }) && fault.unheard)
}

fn give_back(charges: &mut Vec<Charge>) {
    charges.retain(|charge| charge.state != State::Held);
}

fn spend(charges: &mut [Charge], transcription: Option<&TranscriptionId>) {
    for charge in charges.iter_mut().filter(|charge| charge.state == State::Held) {
        charge.state = State::Spent;
        charge.transcription = transcription.cloned();
    }
}

fn of<'c>(charges: &'c mut [Charge], id: &'c TranscriptionId) -> impl Iterator<Item = &'c mut Charge> {
    charges.iter_mut().filter(move |charge| charge.transcription.as_ref() == Some(id))
}

/// The result says what it cost.
fn settle(charges: &mut Vec<Charge>, old: &Job, id: &TranscriptionId, audio: &AudioAmount) {
    let billed = audio.billed.or_else(|| audio.reservation_millis());
    // It was bought in a release that wrote nothing down.
    if charges.is_empty()
        && let Some(order) = old.stage.purchase_key()
    {
        let shared = Charge::shared(old, &order.service);
        charges.push(Charge { state: State::Spent, transcription: Some(id.clone()), ..shared });
    }
    of(charges, id).for_each(|charge| charge.billed = billed.or(charge.billed));
}
