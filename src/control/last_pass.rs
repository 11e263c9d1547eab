//! When the last pass of `scribed once` ended, and how: kept in the state directory for `scribed status --check`.

use crate::domain::health::Outage;
use crate::domain::names::Timestamp;
use crate::durable_file::Durability;
use crate::permission_errors::explain_state_at;
use crate::source::saved_file;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Its name in the state directory.
const NAME: &str = "last-pass.json";

/// A pass that came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastPass {
    pub began: Timestamp,
    pub ended: Timestamp,
    pub exit_code: u8,
    /// The services that it gave up.
    #[serde(default)]
    pub outages: Vec<Outage>,
}

impl LastPass {
    /// The one that this state directory knows of. What cannot be read says nothing.
    pub fn load(state: &Path) -> Option<Self> {
        saved_file::load(&state.join(NAME))
    }

    /// Keeps it. Where that fails the pass has come to the same end: it is only warned of.
    pub fn keep(&self, state: &Path) {
        if let Err(error) = saved_file::save(&state.join(NAME), "json-tmp", self, Durability::Unsynced) {
            let state = state.display();
            tracing::warn!(%error, "cannot save the end of this pass in {state}: `scribed status --check` will not see it");
        }
    }

    /// A daemon has the queue from now on: what a pass met says nothing any more.
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
