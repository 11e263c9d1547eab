//! Counts of the requests to a service, by what was requested and how it ended. A request that was repeated counts each
//! time it was sent.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOperation {
    Upload,
    Create,
    /// Reads one record.
    Read,
    /// Reads a page of a list.
    List,
    Delete,
}

impl RequestOperation {
    pub const ALL: [Self; 5] = [Self::Upload, Self::Create, Self::Read, Self::List, Self::Delete];

    pub fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Create => "create",
            Self::Read => "read",
            Self::List => "list",
            Self::Delete => "delete",
        }
    }
}

/// How a request ended. Where a fault has the same name, it has the same meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOutcome {
    Success,
    Refused,
    Barred,
    Throttled,
    /// A status that says that the service does not work.
    Broken,
    /// Nothing was sent.
    Unreachable,
    /// No whole answer came, or scribed no longer waited for it.
    Unanswered,
}

impl RequestOutcome {
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::Refused,
        Self::Barred,
        Self::Throttled,
        Self::Broken,
        Self::Unreachable,
        Self::Unanswered,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Refused => "refused",
            Self::Barred => "barred",
            Self::Throttled => "throttled",
            Self::Broken => "broken",
            Self::Unreachable => "unreachable",
            Self::Unanswered => "unanswered",
        }
    }
}

/// The counts of one service. Counting takes no lock.
#[derive(Debug, Default)]
pub struct RequestCounts([[AtomicU64; RequestOutcome::ALL.len()]; RequestOperation::ALL.len()]);

/// How many requests there were of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTotal {
    pub operation: RequestOperation,
    pub outcome: RequestOutcome,
    pub requests: u64,
}

impl RequestCounts {
    /// Begins a request, which is counted when the returned value is dropped.
    pub fn begin(&self, operation: RequestOperation) -> CountedRequest<'_> {
        CountedRequest { counts: self, operation, outcome: RequestOutcome::Unanswered }
    }

    /// Returns all counts, those of 0 too.
    pub fn totals(&self) -> Vec<RequestTotal> {
        let all = RequestOperation::ALL.into_iter().zip(&self.0);
        let of_operation = |(operation, counts): (RequestOperation, &[AtomicU64; _])| {
            let pairs = RequestOutcome::ALL.into_iter().zip(counts);
            pairs
                .map(|(outcome, count)| RequestTotal { operation, outcome, requests: count.load(Ordering::Relaxed) })
                .collect::<Vec<_>>()
        };
        all.flat_map(of_operation).collect()
    }
}

/// A request in progress. Until [`CountedRequest::ended`] says otherwise it counts as unanswered, as when it is dropped.
pub struct CountedRequest<'a> {
    counts: &'a RequestCounts,
    operation: RequestOperation,
    outcome: RequestOutcome,
}

impl CountedRequest<'_> {
    pub fn ended(mut self, outcome: RequestOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for CountedRequest<'_> {
    fn drop(&mut self) {
        self.counts.0[self.operation as usize][self.outcome as usize].fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_once_by_its_outcome_and_one_that_is_dropped_as_unanswered() {
        let counts = RequestCounts::default();
        for operation in RequestOperation::ALL {
            for outcome in RequestOutcome::ALL {
                counts.begin(operation).ended(outcome);
            }
        }
        drop(counts.begin(RequestOperation::List));
        let totals = counts.totals();
        assert_eq!(totals.len(), RequestOperation::ALL.len() * RequestOutcome::ALL.len());
        for RequestTotal { operation, outcome, requests } in totals {
            let is_dropped = (operation, outcome) == (RequestOperation::List, RequestOutcome::Unanswered);
            assert_eq!(requests, 1 + u64::from(is_dropped), "{operation:?} {outcome:?}");
        }
    }
}
