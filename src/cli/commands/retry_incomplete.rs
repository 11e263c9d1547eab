//! `scribed retry --incomplete`: what buying the incomplete jobs again costs, shown before anything is changed.

use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::config::model::Config;
use crate::control::transport::protocol::BudgetUse;
use crate::domain::count::{agree, count};
use crate::domain::job::Job;
use crate::domain::missing_enrichment::Enrichment;
use crate::domain::names::{ServiceName, SourceName};
use crate::domain::token::PurchaseKey;
use crate::pipeline::budget::hours;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::io::{self, BufRead, IsTerminal};

/// What the retry does with a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryKind {
    /// The kept result is read again: nothing is bought.
    ReadAgain,
    /// Another transcription is bought.
    Buy,
}

/// Returns what a retry does with an incomplete job; `None` if the job lacks none of these enrichments. Without
/// enrichments, all that is missing counts, and what could not be read.
pub fn kind_of(job: &Job, only: &[Enrichment]) -> Option<RetryKind> {
    let is_wanted = |enrichment: &Enrichment| only.is_empty() || only.contains(enrichment);
    if job.missing_parts().any(|part| is_wanted(&part.enrichment)) {
        return Some(RetryKind::Buy);
    }
    (only.is_empty() && job.unread().is_some()).then_some(RetryKind::ReadAgain)
}

/// The expected cost of a retry. Amounts are milliseconds of billed audio: duration × channels.
#[derive(Debug, Default, PartialEq)]
pub struct Estimate {
    /// The number of jobs that the command continues.
    pub jobs: u64,
    /// How many of them only read the kept result again.
    pub read_again: u64,
    /// How many of them share the purchase of another one.
    pub duplicates: u64,
    /// How many transcriptions are bought.
    pub purchases: u64,
    pub billed: u64,
    /// How many purchases are of unknown length; they are not in `billed`.
    pub unknown_length: u64,
    pub price: f64,
    /// How many purchases have no price, because their service has none in `jobs.toml` or their length is not known.
    pub unpriced: u64,
    /// How many purchases fit into what is left of the budgets now, in the order of their numbers …
    pub fitting: u64,
    /// … and how much audio they are.
    pub fitting_billed: u64,
}

/// Adds up the cost of jobs.
pub struct Estimator<'a> {
    prices: &'a BTreeMap<ServiceName, f64>,
    /// The service of each source: a new purchase is made there.
    services: BTreeMap<&'a SourceName, &'a ServiceName>,
    /// What is left of each budget: of a source, or of all sources.
    left: Vec<(Option<SourceName>, u64)>,
    seen: HashSet<PurchaseKey>,
    pub estimate: Estimate,
}

impl<'a> Estimator<'a> {
    pub fn new(config: &'a Config, budgets: &[BudgetUse]) -> Self {
        let services = config.sources.iter().map(|source| (&source.name, &source.service)).collect();
        Self::of(&config.prices, services, budgets)
    }

    fn of(
        prices: &'a BTreeMap<ServiceName, f64>,
        services: BTreeMap<&'a SourceName, &'a ServiceName>,
        budgets: &[BudgetUse],
    ) -> Self {
        let left = budgets.iter().map(|budget| (budget.source.clone(), budget.left())).collect();
        Self { prices, services, left, seen: HashSet::new(), estimate: Estimate::default() }
    }

    /// Adds a job. Jobs of one purchase count as one: they share the new one, too.
    pub fn add(&mut self, job: &Job, kind: RetryKind) {
        self.estimate.jobs += 1;
        if kind == RetryKind::ReadAgain {
            self.estimate.read_again += 1;
            return;
        }
        if job.stage.purchase_key().is_some_and(|key| !self.seen.insert(key.clone())) {
            self.estimate.duplicates += 1;
            return;
        }
        let amount = job.stage.audio().and_then(|audio| audio.billed.or_else(|| audio.reservation_millis()));
        let service = self.services.get(&job.key.source).copied();
        let service = service.or_else(|| job.stage.purchase_key().map(|key| &key.service));
        let price = service.and_then(|service| self.prices.get(service));
        let estimate = &mut self.estimate;
        estimate.purchases += 1;
        estimate.billed = estimate.billed.saturating_add(amount.unwrap_or_default());
        estimate.unknown_length += u64::from(amount.is_none());
        match amount.zip(price) {
            Some((amount, price)) => estimate.price += amount as f64 / 3.6e6 * price,
            None => estimate.unpriced += 1,
        }
        if self.reserve(job, amount) {
            self.estimate.fitting += 1;
            self.estimate.fitting_billed = self.estimate.fitting_billed.saturating_add(amount.unwrap_or_default());
        }
    }

    /// Whether a purchase fits into what is left of each of its budgets; if so, takes it from them. A purchase of
    /// unknown length fits into none.
    fn reserve(&mut self, job: &Job, amount: Option<u64>) -> bool {
        let source = &job.key.source;
        let mut own: Vec<&mut u64> = Vec::new();
        for (whose, left) in &mut self.left {
            if whose.as_ref().is_none_or(|whose| whose == source) {
                own.push(left);
            }
        }
        let fits = own.iter().all(|left| amount.is_some_and(|amount| amount <= **left));
        if let (true, Some(amount)) = (fits, amount) {
            own.into_iter().for_each(|left| *left -= amount);
        }
        fits
    }

    fn has_budget(&self) -> bool {
        !self.left.is_empty()
    }

    /// Prints the estimate.
    pub fn print(&self, context: &Context) -> io::Result<()> {
        context.print_json(&self.object())?;
        self.lines().iter().try_for_each(|line| context.print_line(line))
    }

    fn object(&self) -> Value {
        let seconds = |millis: u64| millis as f64 / 1e3;
        let Estimate { jobs, read_again, duplicates, purchases, billed, .. } = self.estimate;
        let Estimate { unknown_length, price, unpriced, fitting, fitting_billed, .. } = self.estimate;
        json!({ "estimate": {
            "jobs": jobs, "read_again": read_again, "duplicates": duplicates, "purchases": purchases,
            "billed_seconds": seconds(billed), "unknown_length": unknown_length,
            "price": (unpriced == 0).then(|| (price * 1e4).round() / 1e4),
            "fits": self.has_budget().then_some(fitting),
            "fits_seconds": self.has_budget().then(|| seconds(fitting_billed)),
        }})
    }

    fn lines(&self) -> Vec<String> {
        let Estimate { jobs, read_again, duplicates, purchases, billed, .. } = self.estimate;
        let Estimate { unknown_length, price, unpriced, fitting, fitting_billed, .. } = self.estimate;
        let cost = match (purchases - unpriced, unpriced) {
            (0, 0) => String::new(),
            (0, _) => ", of unknown price (`price_per_hour` sets it)".to_owned(),
            (_, 0) => format!(", price {price:.2}"),
            (_, unpriced) => {
                format!(", price {price:.2} and more: {unpriced} {} of unknown price", agree(unpriced, "is", "are"))
            }
        };
        let buy = agree(purchases, "buys", "buy");
        let mut lines = vec![
            format!("{} to continue", count(jobs, "job")),
            format!("  {purchases} {buy} another transcription: {} of billed audio{cost}", hours(billed)),
        ];
        if unknown_length > 0 {
            let are = agree(unknown_length, "is", "are");
            lines.push(format!("  {unknown_length} of these {are} of unknown length"));
        }
        if duplicates > 0 {
            let are = agree(duplicates, "is a duplicate of these and costs", "are duplicates of these and cost");
            lines.push(format!("  {duplicates} {are} nothing"));
        }
        if read_again > 0 {
            let read =
                agree(read_again, "reads the kept result again and costs", "read the kept result again and cost");
            lines.push(format!("  {read_again} {read} nothing"));
        }
        if self.has_budget() && purchases > 0 {
            let fits = hours(fitting_billed);
            let rest = "the others wait for their budgets";
            let tail = if fitting < purchases { format!("; {rest}") } else { String::new() };
            lines.push(format!("  {fitting} of {purchases} ({fits}) fit into what is left of the budgets now{tail}"));
        }
        lines
    }
}

/// Asks the person at the terminal whether to go on. Returns `true` without asking if `yes` is given.
///
/// # Errors
/// [`CommandError::Usage`] without a terminal and without `yes`.
pub fn confirm(context: &Context, yes: bool) -> Result<bool, CommandError> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() || context.common.json {
        let words = "nothing was changed: `retry --incomplete` asks before it buys, and cannot ask here: standard \
                     input is not a terminal, or --json is given. To continue without a question, add --yes";
        return Err(CommandError::Usage(words.to_owned()));
    }
    context.print_line("Continue these jobs? Type yes to continue:")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let answer = answer.trim().to_lowercase();
    Ok(answer == "yes" || answer == "y")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::budget::Period;
    use crate::domain::job::{JobKey, Stamp};
    use crate::domain::missing_enrichment::MissingPart;
    use crate::domain::names::{Hash, JobId, Timestamp, TranscriptionId};
    use crate::domain::path::RelPath;
    use crate::domain::stage::{AudioAmount, Stage};
    use proptest::prelude::*;

    const HOUR: u64 = 3_600_000;

    fn job(id: u64, source: &str, content: &[u8], millis: u64) -> Job {
        let key = JobKey { source: SourceName::new(source), path: RelPath::new(format!("{id}.wav")) };
        let stamp = Stamp { size: 1, mtime_ns: 0, ctime_ns: 0, inode: 1 };
        let params = Hash::of(b"p");
        let purchase_key =
            PurchaseKey { service: ServiceName::new("x"), content: Hash::of(content), params, part: None };
        let audio = AudioAmount { millis, channels: 1, billed: None };
        let transcription = TranscriptionId::new("t");
        let stage = Stage::Written { purchase_key, transcription, audio };
        let missing = vec![MissingPart { enrichment: Enrichment::Diarization, language: None, words: None }];
        Job { stage, missing, ..Job::found(JobId(id), key, stamp, Timestamp(0), Timestamp(0)) }
    }

    fn budget(source: Option<&str>, allowed: u64, used: u64) -> BudgetUse {
        let source = source.map(SourceName::new);
        BudgetUse { source, period: Period::Total, allowed, used, reserved: 0, unclaimed: 0, excess: 0, until: None }
    }

    #[test]
    fn an_estimate_tells_hours_price_and_what_fits() {
        let prices = BTreeMap::from([(ServiceName::new("x"), 0.5)]);
        let budgets = [budget(None, 10 * HOUR, 4 * HOUR), budget(Some("a"), 3 * HOUR, HOUR)];
        let mut estimator = Estimator::of(&prices, BTreeMap::new(), &budgets);
        for one in [
            job(1, "a", b"1", 2 * HOUR),
            job(2, "a", b"2", HOUR),
            job(3, "b", b"3", 3 * HOUR),
            job(4, "b", b"3", 3 * HOUR),
            job(5, "b", b"4", 2 * HOUR),
            job(6, "b", b"5", 0),
        ] {
            estimator.add(&one, kind_of(&one, &[]).unwrap());
        }
        let unread = Job { missing: Vec::new(), unread: Some("words".to_owned()), ..job(7, "a", b"6", HOUR) };
        estimator.add(&unread, kind_of(&unread, &[]).unwrap());
        let lines = [
            "7 jobs to continue",
            "  5 buy another transcription: 8.00 h of billed audio, price 4.00 and more: 1 is of unknown price",
            "  1 of these is of unknown length",
            "  1 is a duplicate of these and costs nothing",
            "  1 reads the kept result again and costs nothing",
            "  2 of 5 (5.00 h) fit into what is left of the budgets now; the others wait for their budgets",
        ];
        assert_eq!(estimator.lines(), lines);
        assert_eq!(kind_of(&job(1, "a", b"1", 1), &[Enrichment::Summarization]), None);
    }

    proptest! {
        #[test]
        fn what_fits_never_exceeds_what_is_left(
            amounts in proptest::collection::vec(0..40_u64, 0..40),
            (allowed, used) in (0..200_u64, 0..200_u64),
        ) {
            let prices = BTreeMap::new();
            let mut estimator = Estimator::of(&prices, BTreeMap::new(), &[budget(None, allowed, used)]);
            for (number, millis) in amounts.iter().enumerate() {
                let one = job(number as u64, "a", number.to_string().as_bytes(), *millis);
                estimator.add(&one, RetryKind::Buy);
            }
            let estimate = &estimator.estimate;
            prop_assert!(estimate.fitting_billed <= allowed.saturating_sub(used));
            prop_assert_eq!(estimate.billed, amounts.iter().sum::<u64>());
            prop_assert!(estimate.fitting + estimate.unknown_length <= estimate.purchases);
        }
    }
}
