//! Who was refused, and whose jobs are not even tried for now. It is remembered here, so that a backlog that waits
//! for tomorrow is not looked at over and over.

use crate::domain::budget::BudgetExceeded;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{SourceName, Timestamp};
use crate::pipeline::budget::BudgetGate;
use std::collections::{BTreeMap, BTreeSet};

/// So many are refused before it is taken that nothing fits any more. Until then smaller ones may pass.
const ENOUGH: usize = 32;

/// A job that did not fit.
pub struct Refused {
    pub source: SourceName,
    /// Whose budget it did not fit into; `None`: that of all.
    pub whose: Option<SourceName>,
    pub need: u64,
    /// What was left of that budget.
    pub left: u64,
    pub opens: Option<Timestamp>,
    /// Whether it speaks for those behind it ([`ENOUGH`]): nothing was given back since.
    pub counts: bool,
}

/// A job that does not fit rests until then, for this reason; without a time, until a person does something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deferral {
    /// When it fits by itself.
    pub until: Option<Timestamp>,
    pub fault: Fault,
}

/// Whose jobs are not even tried for now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExhaustedBudgets {
    all: bool,
    sources: BTreeSet<SourceName>,
}

impl ExhaustedBudgets {
    /// Whether this source's are not.
    pub fn covers(&self, source: &SourceName) -> bool {
        self.all || self.sources.contains(source)
    }
}

impl BudgetGate {
    pub(super) fn defer(&self, job: &Job, over: BudgetExceeded, now: Timestamp) -> Deferral {
        let until = over.fits_at();
        let left = over.left;
        // What never fits waits for a person, and stands in nobody's way.
        let fault = Fault {
            asks: over.needs_person(),
            need: Some(over.need),
            ..Fault::new(FaultKind::Budget, self.describe(&over), now)
        };
        if !over.exceeds_whole_limit() {
            let (source, whose, need) = (job.key.source.clone(), over.limit.source.clone(), over.need);
            let mut refused = self.refused();
            // Once for each budget, until it is there again.
            if refused.values().all(|one| one.whose != whose || one.opens.is_some_and(|at| at <= now)) {
                tracing::info!(job = %job.id, path = %job.key.path, reason = %fault.words, "a recording does not fit into the rest of a budget; the job waits, and smaller ones continue");
            }
            refused.insert(job.id, Refused { source, whose, need, left, opens: until, counts: true });
        }
        Deferral { until, fault }
    }

    /// Whose jobs are not tried now: enough of them were refused.
    pub fn exhausted(&self, now: Timestamp) -> ExhaustedBudgets {
        let mut refused = self.refused();
        refused.retain(|_, one| one.opens.is_none_or(|at| at > now));
        let mut counts: BTreeMap<Option<&SourceName>, usize> = BTreeMap::new();
        for one in refused.values().filter(|one| one.counts) {
            *counts.entry(one.whose.as_ref()).or_default() += 1;
        }
        let enough = counts.into_iter().filter(|(_, count)| *count >= ENOUGH);
        enough.fold(ExhaustedBudgets::default(), |mut exhausted, (whose, _)| {
            match whose {
                None => exhausted.all = true,
                Some(source) => drop(exhausted.sources.insert(source.clone())),
            }
            exhausted
        })
    }

    /// When something that is shut now opens by itself.
    pub fn next_opening(&self, now: Timestamp) -> Option<Timestamp> {
        if self.exhausted(now) == ExhaustedBudgets::default() {
            None
        } else {
            self.refused().values().filter_map(|one| one.opens).min()
        }
    }
}
