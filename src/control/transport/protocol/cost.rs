//! What was spent, and what budgets still allow.

use crate::domain::budget::{Account, BudgetLimit, Period};
use crate::domain::job::JobKey;
use crate::domain::names::{JobId, ServiceName, SourceName, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parameters of [`super::ControlRequest::Cost`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostQuery {
    /// How the sums are grouped.
    pub by: By,
    /// The time zone of days and months.
    pub timezone: String,
    /// Only purchases at this time or later.
    pub since: Option<Timestamp>,
    /// Only purchases before this time.
    pub before: Option<Timestamp>,
    /// Only jobs with a number above this.
    pub after: Option<JobId>,
}

/// What sums of costs are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Where the recordings come from.
    Source,
    /// The day on which it was bought.
    Day,
    /// The month in which it was bought.
    Month,
    /// Where it was bought.
    Service,
    /// The parameters' name in `jobs.toml`.
    Template,
    /// The recording.
    Job,
}

impl By {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Day => "day",
            Self::Month => "month",
            Self::Service => "service",
            Self::Template => "template",
            Self::Job => "job",
        }
    }
}

/// A piece of the answer to [`super::ControlRequest::Cost`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostPiece {
    /// Sums over the jobs of this piece. A key may come again in another piece.
    pub lines: Vec<CostLine>,
    /// Where the next piece begins; `None` after the last.
    pub next: Option<JobId>,
}

/// What was spent for one key at one service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostLine {
    /// The key of the group, as [`By`] says.
    pub key: String,
    /// The service of the purchases.
    pub service: ServiceName,
    /// The recording, for [`By::Job`].
    pub job: Option<JobKey>,
    pub sum: CostSum,
}

/// A sum of charges. Amounts are milliseconds of billed audio: duration × channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostSum {
    /// The number of bought transcriptions.
    pub purchases: u64,
    /// Their cost as far as it is known: the billed amount, or until that is known the reserved one.
    pub spent: u64,
    /// Reserved for what is not bought yet.
    pub reserved: u64,
    /// The number of purchases and reservations of unknown cost.
    pub unknown: u64,
    /// The number of jobs that cost nothing, because a duplicate was transcribed.
    pub shared: u64,
    /// The amount that was billed beyond the reservations.
    pub excess: u64,
}

impl CostSum {
    /// Adds another sum to this one.
    pub fn add(&mut self, other: &Self) {
        self.purchases += other.purchases;
        self.spent = self.spent.saturating_add(other.spent);
        self.reserved = self.reserved.saturating_add(other.reserved);
        self.unknown += other.unknown;
        self.shared += other.shared;
        self.excess = self.excess.saturating_add(other.excess);
    }
}

/// The use of a budget. Amounts are milliseconds of billed audio.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetUse {
    /// The source of the budget; `None` for the budget of all sources.
    pub source: Option<SourceName>,
    /// The period of the budget.
    pub period: Period,
    /// The size of the budget.
    pub allowed: u64,
    /// The amount that is spent or reserved.
    pub used: u64,
    /// The part of `used` that is only reserved.
    #[serde(default)]
    pub reserved: u64,
    /// The part of `used` that was found in a service's list and that no job has.
    #[serde(default)]
    pub unclaimed: u64,
    /// The part of `used` by which bills were higher than their reservations.
    #[serde(default)]
    pub excess: u64,
    /// When the next period begins; `None` for a budget that does not reset by itself.
    pub until: Option<Timestamp>,
}

impl From<Account> for BudgetUse {
    fn from(account: Account) -> Self {
        let (used, until) = (account.used(), account.limit.resets_at());
        let Account { limit: BudgetLimit { source, period, allowed, .. }, reserved, unclaimed, excess, .. } = account;
        Self { source, period, allowed, used, reserved, unclaimed, excess, until }
    }
}

impl BudgetUse {
    /// Returns the amount that is spent.
    pub fn spent(&self) -> u64 {
        self.used.saturating_sub(self.reserved)
    }

    /// Returns the amount that is neither spent nor reserved.
    pub fn left(&self) -> u64 {
        self.allowed.saturating_sub(self.used)
    }

    /// Says why more is spent or reserved than the budget allows; `None` if it is not, apart from transcriptions that no
    /// job has.
    pub fn describe_overrun(&self) -> Option<&'static str> {
        let own = self.used.saturating_sub(self.unclaimed);
        if own <= self.allowed {
            return None;
        }
        Some(match (own.saturating_sub(self.excess) > self.allowed, self.excess) {
            (true, 0) => "the budget is lower than what was spent or reserved already",
            (true, _) => {
                "the budget is lower than what was reserved already, and the service billed more than was reserved"
            }
            (false, _) => "the service billed more than was reserved",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overrun_budget_names_its_cause() {
        let of = |allowed, used, unclaimed, excess| {
            let (source, period, until) = (None, Period::Day, None);
            BudgetUse { source, period, allowed, used, reserved: 0, unclaimed, excess, until }.describe_overrun()
        };
        let billed = "the service billed more than was reserved";
        assert_eq!(of(12, 12, 0, 5), None);
        assert_eq!(of(12, 20, 8, 0), None, "what was found in a list was never reserved");
        assert_eq!(of(12, 20, 0, 8), Some(billed));
        let lowered = of(12, 20, 0, 0).unwrap();
        assert!(lowered.contains("lower than") && !lowered.contains("billed"), "{lowered}");
        let both = of(12, 20, 0, 7).unwrap();
        assert!(both.contains("lower than") && both.contains(billed), "{both}");
    }
}
