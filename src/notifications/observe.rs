//! Looks at the queue: which outages and used-up budgets there are, and what jobs wait for.

use super::conditions::{QueueObservation, States};
use crate::config::model::NotifyConfig;
use crate::control::health;
use crate::control::transport::handler::CommandHandler;
use crate::domain::budget::Period;
use crate::domain::health::{AwaySource, Outage, OutageKind};
use crate::domain::notification::NotificationEvent;
use crate::domain::zone::Zone;
use crate::pipeline::budget::hours;
use crate::store::contract::StoreError;
use std::collections::BTreeMap;
use std::time::Duration;

/// The state at the end of a pass, in which nothing lasts longer.
#[derive(Debug, Clone)]
pub struct PassEnd {
    pub outages: Vec<Outage>,
    pub away: Vec<AwaySource>,
    /// Whether the pass came to its end and was not told to stop.
    pub is_whole: bool,
}

/// Since when folders are missing, as long as this process has been looking.
#[derive(Debug, Default)]
pub struct MissingFolders(BTreeMap<String, Duration>);

/// Looks at what a target of this event is told.
///
/// # Errors
/// An error of the store.
pub async fn observe(
    handler: &CommandHandler,
    config: &NotifyConfig,
    event: NotificationEvent,
    missing: &mut MissingFolders,
    end: Option<&PassEnd>,
) -> Result<QueueObservation, StoreError> {
    let mut seen = QueueObservation::default();
    match event {
        NotificationEvent::Outage => outages(handler, config, missing, end, &mut seen).await?,
        NotificationEvent::Budget => seen.budgets = budgets(handler, config.zone).await?,
        NotificationEvent::Idle => {
            let waiting = health::waiting(handler).await?;
            seen.waiting = waiting.into_iter().map(|(reason, waits)| (reason, waits.jobs)).collect();
        }
        NotificationEvent::Failed | NotificationEvent::Written | NotificationEvent::Digest => {}
    }
    Ok(seen)
}

async fn outages(
    handler: &CommandHandler,
    config: &NotifyConfig,
    missing: &mut MissingFolders,
    end: Option<&PassEnd>,
    seen: &mut QueueObservation,
) -> Result<(), StoreError> {
    let (outages, away) = match end {
        Some(end) => (end.outages.clone(), end.away.clone()),
        None => (health::outages(handler).await?, health::away(handler).await),
    };
    for Outage { service, kind, words, lasted, .. } in outages {
        let name = service.as_ref().map_or_else(|| "service:all".to_owned(), |name| format!("service:{name}"));
        seen.all_outages.push(name.clone());
        if end.is_some() || kind != OutageKind::Out || lasted >= config.outage_after {
            // Most texts name the service already.
            let unnamed = service.filter(|service| !words.contains(service.as_str()));
            let words = unnamed.map_or_else(|| words.clone(), |service| format!("service {service}: {words}"));
            seen.outages.insert(name, words);
        }
    }
    let now = handler.clock.uptime().0;
    let mut present = BTreeMap::new();
    for AwaySource { source, words, .. } in away.into_iter().filter(|away| !away.is_passing) {
        let name = format!("source:{source}");
        let since = missing.0.get(&name).copied().unwrap_or(now);
        if end.is_some() || now.saturating_sub(since) >= config.outage_after {
            seen.outages.insert(name.clone(), format!("source {source}: {words}"));
        }
        seen.all_outages.push(name.clone());
        present.insert(name, since);
    }
    missing.0 = present;
    Ok(())
}

async fn budgets(handler: &CommandHandler, zone: Zone) -> Result<States, StoreError> {
    let mut limits = handler.budget_gate.limits(handler.clock.now());
    limits.retain(|limit| limit.period != Period::Run || handler.running.is_some());
    let accounts = handler.store.accounts(&limits).await?;
    let used_up = accounts.iter().filter(|account| account.left() == 0).map(|account| {
        let setting = account.limit.setting().replace('`', "");
        let until = account.limit.resets_at();
        let name = format!("{setting} {}", until.map_or(0, |until| until.0));
        let shown = until.map_or_else(String::new, |until| format!(" until {}", zone.format_minute(until)));
        (name, format!("{setting} ({}) is used up{shown}", hours(account.limit.allowed)))
    });
    Ok(used_up.collect())
}
