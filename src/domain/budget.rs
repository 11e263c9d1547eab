//! Budgets: how much audio may be bought, and whether a purchase still fits. Pure rules over sums that the store keeps.

use crate::domain::names::{SourceName, Timestamp};
use std::collections::BTreeMap;

/// All configured budgets. Amounts are milliseconds of billed audio: duration × channels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budget {
    pub all: Allowance,
    pub by_source: BTreeMap<SourceName, Allowance>,
}

/// How much may be bought in each period; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// From midnight to midnight, in the zone of the budget.
    pub day: Option<u64>,
    /// From the first of a month to the first of the next.
    pub month: Option<u64>,
    /// Since this process was started.
    pub run: Option<u64>,
    pub total: Option<u64>,
}

/// The period that a limit applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// From midnight to midnight.
    Day,
    /// From the first of a month to the first of the next.
    Month,
    /// Since this process was started.
    Run,
    Total,
}

impl Period {
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
            Self::Run => "run",
            Self::Total => "total",
        }
    }
}

/// A half-open interval of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first moment of the interval.
    pub from: Timestamp,
    /// The first moment after the interval.
    pub until: Timestamp,
}

impl Span {
    pub const EVER: Self = Self { from: Timestamp(i64::MIN), until: Timestamp(i64::MAX) };
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetLimit {
    /// The source that the limit applies to; `None` when it applies to all sources together.
    pub source: Option<SourceName>,
    pub period: Period,
    /// The day or the month that is meant; [`Span::EVER`] for the other periods.
    pub span: Span,
    pub allowed: u64,
}

impl BudgetLimit {
    /// Returns the setting as in `jobs.toml`, in backticks, with the name of its source.
    pub fn setting(&self) -> String {
        match &self.source {
            None => format!("`budget.{}`", self.period.name()),
            Some(source) => format!("`budget.{}` of the source {source}", self.period.name()),
        }
    }

    /// Returns when the limit resets by itself; `None` if it never does.
    pub fn resets_at(&self) -> Option<Timestamp> {
        matches!(self.period, Period::Day | Period::Month).then_some(self.span.until)
    }
}

/// What is used of a limit. All code that shows or decides what is spent, reserved or left takes it from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub limit: BudgetLimit,
    /// What was spent: the billed amount, or the reserved amount until the service has billed.
    pub spent: u64,
    /// The part of `spent` that was found in a service's list and belongs to no job of this queue.
    pub unclaimed: u64,
    /// What is reserved for purchases that have not been made yet.
    pub reserved: u64,
    /// The part of `spent` by which bills were higher than their reservations.
    pub excess: u64,
}

impl Account {
    pub fn used(&self) -> u64 {
        self.spent.saturating_add(self.reserved)
    }

    /// Returns what is neither spent nor reserved.
    pub fn left(&self) -> u64 {
        self.limit.allowed.saturating_sub(self.used())
    }
}

/// Like [`check_limits`], for accounts.
///
/// # Errors
/// [`BudgetExceeded`] names the limit that `need` does not fit into.
pub fn check_accounts(accounts: Vec<Account>, need: u64) -> Result<(), BudgetExceeded> {
    check_limits(accounts.into_iter().map(|account| (account.limit.clone(), account.used())), need)
}

impl Budget {
    /// Returns the limits that a purchase for this source has to fit into, for the given day and month.
    pub fn limits_for_source(&self, source: &SourceName, day: Span, month: Span) -> Vec<BudgetLimit> {
        let own = self.by_source.get(source).map(|allowance| (Some(source.clone()), allowance));
        limits([(None, &self.all)].into_iter().chain(own), day, month)
    }

    /// Returns the limit that a purchase of `need` milliseconds for this source exceeds even where nothing of it is used:
    /// the purchase fits only after a person raises it.
    pub fn never_fits(&self, source: &SourceName, need: u64) -> Option<BudgetLimit> {
        let unused = self.limits_for_source(source, Span::EVER, Span::EVER).into_iter().map(|limit| (limit, 0));
        check_limits(unused, need).err().map(|over| over.limit)
    }

    /// Returns every limit, for the given day and month.
    pub fn limits(&self, day: Span, month: Span) -> Vec<BudgetLimit> {
        let by_source = self.by_source.iter().map(|(source, allowance)| (Some(source.clone()), allowance));
        limits([(None, &self.all)].into_iter().chain(by_source), day, month)
    }
}

fn limits<'a>(
    allowances: impl Iterator<Item = (Option<SourceName>, &'a Allowance)>,
    day: Span,
    month: Span,
) -> Vec<BudgetLimit> {
    let limits = allowances.flat_map(|(source, allowance)| {
        let Allowance { day: of_day, month: of_month, run, total } = *allowance;
        let amounts = [
            (Period::Day, day, of_day),
            (Period::Month, month, of_month),
            (Period::Run, Span::EVER, run),
            (Period::Total, Span::EVER, total),
        ];
        amounts.map(|(period, span, allowed)| {
            Some(BudgetLimit { source: source.clone(), period, span, allowed: allowed? })
        })
    });
    limits.flatten().collect()
}

/// Why a purchase does not fit into the budgets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetExceeded {
    /// The exceeded limit; if several are exceeded, the one that lasts longest.
    pub limit: BudgetLimit,
    /// What is left of `limit`.
    pub left: u64,
    pub need: u64,
}

impl BudgetExceeded {
    /// Whether more is needed than the limit ever allows.
    pub fn exceeds_whole_limit(&self) -> bool {
        self.need > self.limit.allowed
    }

    /// Whether only a person can make it fit: neither waiting nor another run helps.
    pub fn needs_person(&self) -> bool {
        self.exceeds_whole_limit() || self.limit.period == Period::Total
    }

    /// Returns when it fits without anybody's help; `None` if somebody has to raise the budget or start another run.
    pub fn fits_at(&self) -> Option<Timestamp> {
        if self.exceeds_whole_limit() { None } else { self.limit.resets_at() }
    }
}

/// Checks that `need` fits into each limit, given what is already used of it.
///
/// # Errors
/// [`BudgetExceeded`] names, of the limits that `need` does not fit into, the one that lasts longest.
pub fn check_limits(limits: impl IntoIterator<Item = (BudgetLimit, u64)>, need: u64) -> Result<(), BudgetExceeded> {
    let exceeded = limits.into_iter().filter_map(|(limit, used)| {
        let left = limit.allowed.saturating_sub(used);
        (need > left).then_some(BudgetExceeded { limit, left, need })
    });
    let lasts = |over: &BudgetExceeded| (over.exceeds_whole_limit(), over.fits_at().unwrap_or(Timestamp(i64::MAX)));
    exceeded.max_by_key(lasts).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limit(period: Period, until: i64, allowed: u64) -> BudgetLimit {
        BudgetLimit { source: None, period, span: Span { from: Timestamp(0), until: Timestamp(until) }, allowed }
    }

    #[test]
    fn of_all_that_is_spent_the_one_that_lasts_longest_is_told() {
        let [day, month] = [limit(Period::Day, 10, 5), limit(Period::Month, 100, 9)];
        let over = check_limits([(day.clone(), 5), (month.clone(), 8)], 2).unwrap_err();
        assert_eq!((over.limit.period, over.left, over.fits_at()), (Period::Month, 1, Some(Timestamp(100))));
        let run = limit(Period::Run, 0, 3);
        let over = check_limits([(run, 2), (month, 8)], 2).unwrap_err();
        assert_eq!((over.limit.period, over.fits_at()), (Period::Run, None));
        let over = check_limits([(day, 0), (limit(Period::Total, 0, 50), 49)], 6).unwrap_err();
        assert!(over.exceeds_whole_limit() && over.limit.period == Period::Day, "it never fits into a day: {over:?}");
    }

    #[test]
    fn a_person_is_needed_where_neither_time_nor_another_run_makes_it_fit() {
        let asks = |period, need| check_limits([(limit(period, 10, 5), 4)], need).unwrap_err().needs_person();
        assert!(!asks(Period::Day, 2) && !asks(Period::Month, 2) && !asks(Period::Run, 2));
        assert!(asks(Period::Total, 2) && asks(Period::Day, 6) && asks(Period::Run, 6));
    }

    proptest! {
        #[test]
        fn whatever_is_asked_for_no_limit_is_ever_exceeded(
            allowed in proptest::collection::vec(0..100_u64, 1..4),
            needs in proptest::collection::vec(0..40_u64, 0..60),
        ) {
            let mut used = 0_u64;
            for need in needs {
                let limits = allowed.iter().map(|allowed| (limit(Period::Total, 0, *allowed), used));
                match check_limits(limits, need) {
                    Ok(()) => used += need,
                    Err(over) => prop_assert!(used + need > over.limit.allowed, "it would have fitted"),
                }
                prop_assert!(allowed.iter().all(|allowed| used <= *allowed));
            }
        }
    }
}
