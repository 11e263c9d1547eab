//! Remembers the jobs that a budget refused, and decides which sources are not tried for now, so that a backlog that
//! waits for tomorrow is not tried over and over.

use crate::domain::budget::BudgetExceeded;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{SourceName, Timestamp};
use crate::pipeline::budget::BudgetGate;
use std::collections::{BTreeMap, BTreeSet};

/// After this many refusals a budget counts as exhausted. Until then smaller jobs may still fit.
pub(crate) const ENOUGH: usize = 32;

/// A job that did not fit.
pub struct Refused {
    pub source: SourceName,
    /// The source whose budget it did not fit into; `None`: the budget of all sources.
    pub whose: Option<SourceName>,
    pub need: u64,
    /// What was left of that budget.
    pub left: u64,
    pub opens: Option<Timestamp>,
    /// Whether it counts towards [`ENOUGH`]: nothing was given back to the budget since the refusal.
    pub counts: bool,
}

/// A job that does not fit into a budget rests until a time, for a reason; without a time, until a person acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deferral {
    /// When the job fits without anybody's action.
    pub until: Option<Timestamp>,
    pub fault: Fault,
}

/// The sources whose jobs are not tried for now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExhaustedBudgets {
    all: bool,
    sources: BTreeSet<SourceName>,
}

impl ExhaustedBudgets {
    /// Whether the jobs of this source are not tried for now.
    pub fn covers(&self, source: &SourceName) -> bool {
        self.all || self.sources.contains(source)
    }
}

impl BudgetGate {
    pub(super) fn defer(&self, job: &Job, over: BudgetExceeded, now: Timestamp) -> Deferral {
        let until = over.fits_at();
        let left = over.left;
        // A job that never fits waits for a person and holds up no other job.
        let fault = Fault {
            asks: over.needs_person(),
            need: Some(over.need),
            ..Fault::new(FaultKind::Budget, self.describe(job, &over), now)
        };
        if !over.exceeds_whole_limit() {
            let (source, whose, need) = (job.key.source.clone(), over.limit.source.clone(), over.need);
            let mut refused = self.refused();
            // Logged once for each budget, until the budget opens again.
            if refused.values().all(|one| one.whose != whose || one.opens.is_some_and(|at| at <= now)) {
                tracing::info!(job = %job.id, path = %job.key.path, reason = %fault.words, "a recording does not fit into the rest of a budget; the job waits, and smaller ones continue");
            }
            refused.insert(job.id, Refused { source, whose, need, left, opens: until, counts: true });
        }
        Deferral { until, fault }
    }

    /// Returns the sources whose jobs are not tried now, because enough jobs were refused.
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

    /// Returns when the first of the exhausted budgets opens by itself; `None` if none is exhausted.
    pub fn next_opening(&self, now: Timestamp) -> Option<Timestamp> {
        if self.exhausted(now) == ExhaustedBudgets::default() {
            None
        } else {
            self.refused().values().filter_map(|one| one.opens).min()
        }
    }
}
