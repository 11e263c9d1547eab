//! The end of the last pass of `scribed once`, saved in the state directory for `scribed status --check`.

use crate::domain::health::{Outage, OutageKind};
use crate::domain::names::{ServiceName, Timestamp};
use crate::durable_file::Durability;
use crate::permission_errors::explain_state_at;
use crate::source::saved_file;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// The name of the file in the state directory.
const NAME: &str = "last-pass.json";

/// A pass that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastPass {
    pub began: Timestamp,
    pub ended: Timestamp,
    pub exit_code: u8,
    /// The outages of services for whose end it did not wait.
    #[serde(default)]
    pub outages: Vec<Outage>,
}

impl LastPass {
    /// Loads the last pass of a state directory; `None` if there is none or it cannot be read.
    pub fn load(state: &Path) -> Option<Self> {
        saved_file::load(&state.join(NAME))
    }

    /// Saves the pass. A failure is only logged, since it does not change the result of the pass.
    pub fn keep(&self, state: &Path) {
        if let Err(error) = saved_file::save(&state.join(NAME), "json-tmp", self, Durability::Unsynced) {
            let state = state.display();
            tracing::warn!(%error, "cannot save the end of this pass in {state}: `scribed status --check` will not see it");
        }
    }

    /// Returns what a person had to decide about a service when the last pass ended.
    pub fn undecided(state: &Path, service: &ServiceName) -> Option<String> {
        let outages = Self::load(state)?.outages;
        outages.into_iter().find(|outage| is_undecided(outage, service)).map(|outage| outage.words)
    }

    /// Notes that a person has decided about a service.
    pub fn note_decision(state: &Path, service: &ServiceName) {
        let Some(last) = Self::load(state) else { return };
        let (decided, outages): (Vec<_>, Vec<_>) =
            last.outages.iter().cloned().partition(|outage| is_undecided(outage, service));
        if !decided.is_empty() {
            Self { outages, ..last }.keep(state);
        }
    }

    /// Removes the saved pass. A daemon does this at its start, since the result of an earlier pass no longer counts.
    pub fn forget(state: &Path) {
        let path = state.join(NAME);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let error = explain_state_at(&path)(error);
                tracing::warn!(%error, "cannot remove the record of the last pass in {}", state.display());
            }
            _ => {}
        }
    }
}

fn is_undecided(outage: &Outage, service: &ServiceName) -> bool {
    outage.kind == OutageKind::Decision && outage.service.as_ref() == Some(service)
}
