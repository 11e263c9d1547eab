//! Decides whether jobs of a source may be sent now, by its windows. The wall clock is read each time, since somebody
//! may set it.

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

/// The sources whose window is closed at a moment of the wall clock, and when each opens.
pub type ClosedWindows = BTreeMap<SourceName, Timestamp>;

/// Returns the sources whose window is closed.
pub fn closed(mounts: &BTreeMap<SourceName, Arc<Mount>>, wall: Timestamp) -> ClosedWindows {
    let closing = |(name, mount): (&SourceName, &Arc<Mount>)| match mount.source().submit.as_ref()?.at(wall) {
        WindowState::Open { .. } => None,
        WindowState::Closed { until } => Some((name.clone(), until)),
    };
    mounts.iter().filter_map(closing).collect()
}

/// Whether the window stays open for longer than `needs`.
pub fn has_time(source: &Source, needs: Duration, wall: Timestamp) -> bool {
    source.submit.as_ref().is_none_or(|windows| match windows.at(wall) {
        WindowState::Open { until } => until.duration_since(wall) > needs,
        WindowState::Closed { .. } => false,
    })
}

/// Returns a job as it is shown. A job that waits for its window gets a fault that says so, since its row has none.
pub fn with_window_fault(mounts: &BTreeMap<SourceName, Arc<Mount>>, job: Job, at: Moment) -> Job {
    match mounts.get(&job.key.source) {
        Some(mount) => with_window_fault_of(mount.source(), job, at),
        None => job,
    }
}

/// Returns a job of this source as it is shown.
pub fn with_window_fault_of(source: &Source, job: Job, at: Moment) -> Job {
    let Some(windows) = source.submit.as_ref().filter(|_| is_pausable(&job)) else { return job };
    let WindowState::Closed { until } = windows.at(at.wall) else { return job };
    // A job that waits for longer, or for a person, keeps that reason.
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
