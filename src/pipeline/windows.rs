//! Whether jobs of a source may be sent now, by its windows. They are looked at by the wall clock, each time
//! anew: somebody may set it.

use crate::clock::Moment;
use crate::config::model::Source;
use crate::domain::cron_line::NEVER;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::reason::is_pausable;
use crate::domain::window::WindowState;
use crate::domain::zone::Zone;
use crate::source::mount::source_mount::Mount;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The sources that are shut at a moment of the wall clock, and when each opens.
pub type ClosedWindows = BTreeMap<SourceName, Timestamp>;

/// Those of these sources that are shut.
pub fn closed(mounts: &BTreeMap<SourceName, Arc<Mount>>, wall: Timestamp) -> ClosedWindows {
    let closing = |(name, mount): (&SourceName, &Arc<Mount>)| match mount.source().submit.as_ref()?.at(wall) {
        WindowState::Open { .. } => None,
        WindowState::Shut { until } => Some((name.clone(), until)),
    };
    mounts.iter().filter_map(closing).collect()
}

/// Whether something that needs so long may be begun.
pub fn has_time(source: &Source, needs: Duration, wall: Timestamp) -> bool {
    source.submit.as_ref().is_none_or(|windows| match windows.at(wall) {
        WindowState::Open { until } => until.duration_since(wall) > needs,
        WindowState::Shut { .. } => false,
    })
}

/// A job as it is told. One that is not sent because its source is shut has no row that says so.
pub fn told(mounts: &BTreeMap<SourceName, Arc<Mount>>, job: Job, at: Moment) -> Job {
    let Some(source) = mounts.get(&job.key.source).map(|mount| mount.source()) else { return job };
    let Some(windows) = source.submit.as_ref().filter(|_| is_pausable(&job)) else { return job };
    let WindowState::Shut { until } = windows.at(at.wall) else { return job };
    // What waits for longer, or for a person, is told as that.
    if job.due.is_none_or(|due| due >= until) {
        return job;
    }
    let words = match until {
        NEVER => format!(
            "the source's window is closed and never opens again (`submit`: {windows}): change `submit` in \
             jobs.toml"
        ),
        until => format!("the source's window is closed until {}; `submit`: {windows}", Zone::UTC.format_minute(until)),
    };
    job.deferred((until != NEVER).then_some(until), Some(Fault::new(FaultKind::Window, words, at.now)))
}
