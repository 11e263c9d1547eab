//! The budget that is in effect. All gates of a process share it: a task that began before a reload reserves from the
//! budget as it is now.

use crate::domain::budget::Budget;
use crate::domain::zone::Zone;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// See the head of this file.
pub struct BudgetInEffect(RwLock<State>);

struct State {
    budget: Arc<Budget>,
    zone: Zone,
    edition: u64,
}

impl BudgetInEffect {
    pub fn new(budget: Budget, zone: Zone) -> Self {
        Self(RwLock::new(State { budget: Arc::new(budget), zone, edition: 0 }))
    }

    /// Puts another budget into effect.
    pub fn replace(&self, budget: Budget, zone: Zone) {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *state = State { budget: Arc::new(budget), zone, edition: state.edition + 1 };
    }

    /// Returns the budget and the zone of its days.
    pub fn now(&self) -> (Arc<Budget>, Zone) {
        let state = self.state();
        (Arc::clone(&state.budget), state.zone)
    }

    /// Returns how often another budget was put into effect.
    pub fn edition(&self) -> u64 {
        self.state().edition
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}
