//! When a backlog would be through: what is known of services, budgets and sources, put before the pure reckoning.

use super::request::{Served, Status};
use crate::config::meant::{Config, Service};
use crate::domain::budget::{Limit, Period};
use crate::domain::cron_line::NEVER;
use crate::domain::finish::{Brake, Finish, Opening, Pace, Pile, World, finish};
use crate::domain::names::{ServiceName, SourceName, Timestamp};
use crate::domain::turnaround::Usual;
use crate::domain::window;
use crate::domain::zone::Zone;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a service elsewhere is taken to need for one, before anything is learned of it: so much …
const BASE: Duration = Duration::from_secs(10);

/// … and this part of the length of its audio.
const EACH_SECOND: f64 = 0.1;

/// The embedded one is taken to be as fast as people speak.
const OWN_EACH_SECOND: f64 = 1.0;

/// When a backlog is through, and what was taken to be so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reckoned {
    /// When, and what it is kept by.
    pub finish: Finish,
    /// The same for people.
    pub shown: Option<String>,
    /// What nobody knows and was assumed, in words.
    pub assumed: Vec<String>,
}

impl Reckoned {
    /// What takes most of the time, in words.
    pub fn brake(&self) -> Option<String> {
        Some(match self.finish.brake.as_ref()? {
            Brake::Service(service) => format!("what the service {service} does at once"),
            Brake::Source(source) => {
                format!("the source {source}, which may not submit then (its `submit`, or a pause)")
            }
            Brake::Budget(setting) => setting.clone(),
        })
    }
}

/// Reckons when these are through. `status`: how the queue stands, where there is one.
pub fn reckon(config: &Config, status: Option<&Status>, piles: &[Pile], now: Timestamp) -> Reckoned {
    let mut assumed = Vec::new();
    let wanted: BTreeSet<&ServiceName> = piles.iter().filter(|p| p.files > 0).map(|pile| &pile.service).collect();
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
    let world = World { paces: &paces, opening: &opening, limits: &limits, used: &used };
    let finish = finish(now, piles, &world);
    let shown = finish.at.map(|at| Zone::UTC.shown(at));
    Reckoned { finish, shown, assumed }
}

fn pace(service: &Service, name: &ServiceName, served: Option<&Served>) -> (Pace, Option<String>) {
    let (limits, is_own) = (service.terms().limits, matches!(service, Service::Embedded(_)));
    let bears = served.and_then(|served| served.bears.as_ref());
    let mut running = bears.map_or(limits.running, |bears| bears.running.1);
    if is_own {
        running = running.min(std::thread::available_parallelism().map_or(1, usize::from));
    }
    let rate = bears.and_then(|bears| bears.requests_per_second).map(|(_, found)| found);
    let requests_per_second = if is_own { None } else { rate.or(Some(f64::from(limits.requests_per_second))) };
    let running = u32::try_from(running).unwrap_or(u32::MAX);
    if let Some(Usual { base, each_second, each_beside }) = served.and_then(|served| served.usual) {
        let beside = Duration::try_from_secs_f64(each_beside.max(0.0) * f64::from(running.saturating_sub(1)));
        let base = Duration::from_millis(base).saturating_add(beside.unwrap_or_default());
        return (Pace { running, requests_per_second, base, each_second }, None);
    }
    let (base, each_second) = if is_own { (Duration::ZERO, OWN_EACH_SECOND) } else { (BASE, EACH_SECOND) };
    let takes = match is_own {
        true => "as long as its audio lasts".to_owned(),
        false => format!("{} s and a tenth of its audio's length", BASE.as_secs()),
    };
    let words = format!("nothing is learned yet of how long the service {name} takes: {takes}, {running} at a time");
    (Pace { running, requests_per_second, base, each_second }, Some(words))
}

/// Where no daemon runs, a run would begin with the next pass.
fn used(status: Option<&Status>, limit: &Limit) -> u64 {
    let is_it = |source: &Option<SourceName>, period: Period| *source == limit.source && period == limit.period;
    let found = status.and_then(|status| status.budget.iter().find(|used| is_it(&used.source, used.period)));
    found.map_or(0, |found| found.used)
}

/// A pause and a folder that is away are orders and the world; windows are looked at by the clock.
fn opening(config: &Config, status: Option<&Status>, source: &SourceName, at: Timestamp) -> Opening {
    let frozen = status.is_some_and(|status| status.frozen.iter().any(|frozen| frozen.source == *source));
    if frozen {
        return Opening::Shut(None);
    }
    if let Some(pause) = status.and_then(|status| status.pauses.of(source, at)) {
        return Opening::Shut(pause.until);
    }
    let windows = config.sources.iter().find(|known| known.name == *source).and_then(|source| source.submit.as_ref());
    let until = |until: Timestamp| Some(until).filter(|until| *until != NEVER);
    match windows.map(|windows| windows.at(at)) {
        None => Opening::Open(None),
        Some(window::Opening::Open { until: at }) => Opening::Open(until(at)),
        Some(window::Opening::Shut { until: at }) => Opening::Shut(until(at)),
    }
}
