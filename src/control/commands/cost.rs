//! Sums of costs, computed over one part of the queue at a time.

use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{By, CommandRefusal, CostLine, CostPiece, CostQuery, CostSum};
use crate::domain::charge::{Charge, State};
use crate::domain::job::Job;
use crate::domain::names::{ServiceName, Timestamp};
use crate::domain::zone::Zone;
use crate::store::contract::JobSubset;
use std::collections::BTreeMap;

/// The number of jobs for one piece of the answer.
const PIECE: usize = 10_000;

/// The number of jobs for one piece if each job has a line of its own.
const LINES: usize = 1_000;

/// Returns the next piece of the answer. Its lines are sums over the jobs of this piece only.
///
/// # Errors
/// [`CommandRefusal::Usage`] for an unknown time zone; errors of the store.
pub async fn cost(handler: &CommandHandler, query: &CostQuery) -> Result<CostPiece, CommandRefusal> {
    let unknown = |_| CommandRefusal::Usage(format!("there is no time zone {:?} on this machine", query.timezone));
    let (zone, now) = (Zone::parse(&query.timezone).map_err(unknown)?, handler.clock.now());
    let limit = if query.by == By::Job { LINES } else { PIECE };
    let jobs = handler.store.jobs_in(JobSubset::WithCost, query.after, limit).await?;
    let next = jobs.last().filter(|_| jobs.len() == limit).map(|job| job.id);
    let mut sums: BTreeMap<(String, ServiceName), CostLine> = BTreeMap::new();
    for job in &jobs {
        for (at, service, template, sum) in parts(job, now) {
            if !is_asked_for(query, at) {
                continue;
            }
            let template = if sum.shared > 0 { Some("(shared)") } else { template };
            let key = key(query.by, &zone, job, (at, &service, template));
            let of_job = (query.by == By::Job).then(|| job.key.clone());
            let line = || CostLine { key: key.clone(), service: service.clone(), job: of_job, sum: CostSum::default() };
            sums.entry((key.clone(), service.clone())).or_insert_with(line).sum.add(&sum);
        }
    }
    // These costs belong to no known job, so they are added once, to the first piece.
    if query.after.is_none() {
        for (at, amount) in handler.store.unclaimed_costs().await? {
            if !is_asked_for(query, at) {
                continue;
            }
            let key = unclaimed_key(query.by, &zone, at);
            let service = ServiceName::new(UNCLAIMED);
            let line = || CostLine { key: key.clone(), service: service.clone(), job: None, sum: CostSum::default() };
            let sum = CostSum { purchases: 1, spent: amount, ..CostSum::default() };
            sums.entry((key.clone(), service.clone())).or_insert_with(line).sum.add(&sum);
        }
    }
    let mut lines: Vec<CostLine> = sums.into_values().collect();
    if query.by == By::Job {
        lines.sort_by_key(|line| line.key.parse::<u64>().unwrap_or_default());
    }
    Ok(CostPiece { lines, next })
}

/// The name for purchases that a service's list shows as made by this queue, and that no job has. They count against
/// the budgets, too.
const UNCLAIMED: &str = "(unclaimed)";

fn unclaimed_key(by: By, zone: &Zone, at: Timestamp) -> String {
    match by {
        By::Day => zone.date(at),
        By::Month => zone.date(at).chars().take(7).collect(),
        By::Source | By::Service | By::Template | By::Job => UNCLAIMED.to_owned(),
    }
}

fn is_asked_for(query: &CostQuery, at: Timestamp) -> bool {
    at >= query.since.unwrap_or(at) && query.before.is_none_or(|before| at < before)
}

type Part<'j> = (Timestamp, ServiceName, Option<&'j str>, CostSum);

/// Returns the cost of each purchase of a job. What is reserved for later parts of a recording counts now.
fn parts(job: &Job, now: Timestamp) -> Vec<Part<'_>> {
    if let (true, Some(purchase_key)) = (job.has_unknown_cost(), job.stage.purchase_key()) {
        let sum = CostSum { purchases: 1, unknown: 1, ..CostSum::default() };
        return vec![(job.since, purchase_key.service.clone(), None, sum)];
    }
    fn part(charge: &Charge, at: Timestamp, sum: CostSum) -> Part<'_> {
        (at, charge.service.clone(), charge.template.as_deref(), sum)
    }
    let parts = job.charges.iter().filter(|charge| charge.state != State::Void);
    let parts = parts.flat_map(|charge| {
        let rest = CostSum { reserved: charge.rest, ..CostSum::default() };
        let later = (charge.rest > 0).then(|| part(charge, now, rest));
        let is_all_later = later.is_some() && charge.dated_amount() == Some(0);
        [(!is_all_later).then(|| part(charge, charge.at, sum(charge))), later]
    });
    parts.flatten().collect()
}

fn sum(charge: &Charge) -> CostSum {
    let amount = charge.dated_amount().unwrap_or_default();
    let unknown = u64::from(charge.dated_amount().is_none());
    match charge.state {
        State::Void => CostSum::default(),
        State::Shared => CostSum { shared: 1, ..CostSum::default() },
        State::Held => CostSum { reserved: amount, unknown, ..CostSum::default() },
        State::Spent => CostSum { purchases: 1, spent: amount, unknown, excess: charge.excess(), ..CostSum::default() },
    }
}

fn key(by: By, zone: &Zone, job: &Job, (at, service, template): (Timestamp, &ServiceName, Option<&str>)) -> String {
    match by {
        By::Source => job.key.source.to_string(),
        By::Day | By::Month if at == Charge::UNDATED => "unknown".to_owned(),
        By::Day => zone.date(at),
        By::Month => zone.date(at).chars().take(7).collect(),
        By::Service => service.to_string(),
        By::Template => template.unwrap_or("-").to_owned(),
        By::Job => job.id.to_string(),
    }
}
