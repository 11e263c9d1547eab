//! Counts of faults, by their kind.

use crate::domain::fault::FaultKind;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often faults of each kind occurred. Counting takes no lock.
#[derive(Debug, Default)]
pub struct FaultCounts([AtomicU64; FaultKind::NAMES.len()]);

impl FaultCounts {
    pub fn count(&self, kind: &FaultKind) {
        let of_kind = FaultKind::NAMES.iter().position(|name| *name == kind.name()).and_then(|at| self.0.get(at));
        of_kind.inspect(|count| {
            count.fetch_add(1, Ordering::Relaxed);
        });
    }

    /// Returns the counts of all kinds by their names, those of 0 too.
    pub fn totals(&self) -> Vec<(&'static str, u64)> {
        FaultKind::NAMES.into_iter().zip(self.0.iter().map(|count| count.load(Ordering::Relaxed))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_counted_under_the_name_of_its_kind() {
        let counts = FaultCounts::default();
        counts.count(&FaultKind::Refused { status: 422 });
        counts.count(&FaultKind::Refused { status: 404 });
        counts.count(&FaultKind::Bug);
        let told: Vec<_> = counts.totals().into_iter().filter(|(_, faults)| *faults > 0).collect();
        assert_eq!(told, [("refused", 2), ("bug", 1)]);
    }
}
