//! The estimated end of a backlog: collects what is known of services, budgets and sources for the calculation in
//! `domain/eta.rs`.

use crate::config::model::{Config, ServiceConfig, Source};
use crate::control::transport::protocol::{QueueStatus, ServiceStatus};
use crate::domain::budget::{BudgetLimit, Period};
use crate::domain::cron_line::NEVER;
use crate::domain::eta::{Constraint, EtaInputs, FileBatch, Finish, SubmitOpening, Throughput, finish, periods};
use crate::domain::names::{ServiceName, SourceName, Timestamp};
use crate::domain::turnaround::UsualDuration;
use crate::domain::window;
use crate::domain::zone::Zone;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The time that a hosted service is assumed to need for each transcription, until scribed has learned it …
const BASE: Duration = Duration::from_secs(10);

/// … and the additional seconds for each second of audio.
const EACH_SECOND: f64 = 0.1;

/// The embedded service is assumed to need as long as the audio is.
const OWN_EACH_SECOND: f64 = 1.0;

/// The estimated end of a backlog, and the assumptions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reckoned {
    /// When the backlog ends, and what limits it.
    pub finish: Finish,
    /// The time of the end, for people.
    pub shown: Option<String>,
    /// The values that were assumed, in words.
    pub assumed: Vec<String>,
    /// For each source whose window is closed now: when it opens, in words.
    pub closed_windows: Vec<String>,
    /// How many passes of `scribed once` the backlog takes, if the budget of a run ends each of them.
    pub passes: Option<u64>,
}

impl Reckoned {
    /// Describes what limits the throughput most.
    pub fn constraint(&self) -> Option<String> {
        Some(match self.finish.constraint.as_ref()? {
            Constraint::Service(service) => format!("how many transcriptions service {service} runs at once"),
            Constraint::Source(source) => {
                format!("source {source}, which may not submit during some of the time (its `submit`, or a pause)")
            }
            Constraint::Budget(setting) => setting.clone(),
        })
    }
}

/// Estimates when `batches` are done. `status` is the status of the queue, if there is one.
pub fn estimate(config: &Config, status: Option<&QueueStatus>, batches: &[FileBatch], now: Timestamp) -> Reckoned {
    let mut assumed = Vec::new();
    let wanted: BTreeSet<&ServiceName> =
        batches.iter().filter(|batch| batch.files > 0).map(|batch| &batch.service).collect();
    let mut paces = BTreeMap::new();
    for name in wanted {
        let Some(service) = config.services.get(name) else { continue };
        let served = status.and_then(|status| status.services.iter().find(|served| served.service == *name));
        let (pace, words) = pace(service, name, served);
        paces.insert(name.clone(), pace);
        assumed.extend(words);
    }
    let limits = |at| config.budget.limits(config.zone.day(at), config.zone.month(at));
    let used: Vec<u64> = limits(now).iter().map(|limit| used(status, limit)).collect();
    let opening = |source: &SourceName, at| opening(config, status, source, at);
    let world = EtaInputs { paces: &paces, submit_opening: &opening, limits: &limits, used: &used };
    let finish = finish(now, batches, &world);
    let shown = finish.at.map(|at| Zone::UTC.format_minute(at));
    let limits = limits(now);
    let is_it = |limit: &&BudgetLimit| finish.constraint == Some(Constraint::Budget(limit.setting()));
    let passes = limits.iter().filter(is_it).find_map(|limit| passes(limit, batches)).filter(|_| finish.at.is_none());
    assumed.extend(next_period_message(&finish, &limits));
    Reckoned { finish, shown, assumed, closed_windows: closed_windows(config, batches, now), passes }
}

/// Returns how many runs the budget of a run divides these files into; `None` for other budgets.
fn passes(limit: &BudgetLimit, batches: &[FileBatch]) -> Option<u64> {
    if limit.period == Period::Run { periods(limit, batches).filter(|passes| *passes > 0) } else { None }
}

/// Says which process goes on when a budget has its next period, if the end is later than that.
fn next_period_message(finish: &Finish, limits: &[BudgetLimit]) -> Option<String> {
    let renewed = limits.iter().filter_map(BudgetLimit::resets_at).min()?;
    (finish.at? > renewed).then(|| {
        "something runs when a budget begins its next day or month: `scribed run`, or the next pass of a timer. A pass \
         of `scribed once` ends when only budgets hold the rest back"
            .to_owned()
    })
}

/// The sources of these files that may not submit now, each with the time from which it may.
fn closed_windows(config: &Config, batches: &[FileBatch], now: Timestamp) -> Vec<String> {
    let sources: BTreeSet<&SourceName> = batches.iter().filter(|p| p.files > 0).map(|batch| &batch.source).collect();
    let closed = |source: &Source| match source.submit.as_ref()?.at(now) {
        window::WindowState::Open { .. } => None,
        window::WindowState::Closed { until } if until == NEVER => {
            Some(format!("the window of source {} never opens again (`submit`)", source.name))
        }
        window::WindowState::Closed { until } => Some(format!(
            "the window of source {} is closed: scribed sends nothing of it before {} (`submit`)",
            source.name,
            Zone::UTC.format_minute(until)
        )),
    };
    config.sources.iter().filter(|source| sources.contains(&source.name)).filter_map(closed).collect()
}

fn pace(service: &ServiceConfig, name: &ServiceName, served: Option<&ServiceStatus>) -> (Throughput, Option<String>) {
    let (limits, is_own) = (service.terms().limits, matches!(service, ServiceConfig::Embedded(_)));
    let learned_limits = served.and_then(|served| served.learned_limits.as_ref());
    let mut running = learned_limits.map_or(limits.running, |learned_limits| learned_limits.running.1);
    if is_own {
        running = running.min(std::thread::available_parallelism().map_or(1, usize::from));
    }
    let rate = learned_limits.and_then(|learned_limits| learned_limits.requests_per_second).map(|(_, found)| found);
    let requests_per_second = if is_own { None } else { rate.or(Some(f64::from(limits.requests_per_second))) };
    let running = u32::try_from(running).unwrap_or(u32::MAX);
    if let Some(UsualDuration { base, each_second, each_beside }) = served.and_then(|served| served.usual) {
        let beside = Duration::try_from_secs_f64(each_beside.max(0.0) * f64::from(running.saturating_sub(1)));
        let base = Duration::from_millis(base).saturating_add(beside.unwrap_or_default());
        return (Throughput { running, requests_per_second, base, each_second }, None);
    }
    let (base, each_second) = if is_own { (Duration::ZERO, OWN_EACH_SECOND) } else { (BASE, EACH_SECOND) };
    let takes = match is_own {
        true => "as long as the audio".to_owned(),
        false => format!("{} s plus a tenth of the audio's length", BASE.as_secs()),
    };
    let words = format!("the time that service {name} needs is not known yet; estimate: {takes}, {running} at a time");
    (Throughput { running, requests_per_second, base, each_second }, Some(words))
}

/// Returns how much of a budget is used. A budget that the queue does not report is unused: if no daemon runs, the
/// budget of a run begins with the next pass.
fn used(status: Option<&QueueStatus>, limit: &BudgetLimit) -> u64 {
    let matches = |source: &Option<SourceName>, period: Period| *source == limit.source && period == limit.period;
    let found = status.and_then(|status| status.budget.iter().find(|used| matches(&used.source, used.period)));
    found.map_or(0, |found| found.used)
}

/// Returns whether a source may submit at a time. A folder that is not available stays so in the estimate; pauses and
/// windows depend on the time.
fn opening(config: &Config, status: Option<&QueueStatus>, source: &SourceName, at: Timestamp) -> SubmitOpening {
    let frozen = status.is_some_and(|status| status.frozen.iter().any(|frozen| frozen.source == *source));
    if frozen {
        return SubmitOpening::Closed(None);
    }
    if let Some(pause) = status.and_then(|status| status.pauses.for_source(source, at)) {
        return SubmitOpening::Closed(pause.until);
    }
    let windows = config.sources.iter().find(|known| known.name == *source).and_then(|source| source.submit.as_ref());
    let until = |until: Timestamp| Some(until).filter(|until| *until != NEVER);
    match windows.map(|windows| windows.at(at)) {
        None => SubmitOpening::Open(None),
        Some(window::WindowState::Open { until: at }) => SubmitOpening::Open(until(at)),
        Some(window::WindowState::Closed { until: at }) => SubmitOpening::Closed(until(at)),
    }
}
