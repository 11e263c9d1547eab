//! When sources were scanned last, and when they are scanned next, for people.

use super::transport::handler::CommandHandler;
use super::transport::protocol::ScanStatus;
use crate::domain::cron_line::NEVER;
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::scan_slots::{Cause, LastScan, MissedSlots, ScanTurn};
use crate::domain::time_span::time_span;
use crate::domain::zone::Zone;
use crate::source::mount::source_mount::Mount;
use std::time::Duration;

/// Returns the scan times of each source, without those that only read manifests, which are watched all the time.
pub fn scans(handler: &CommandHandler) -> Vec<ScanStatus> {
    handler.mounts.keys().filter_map(|name| scan_of(handler, name)).collect()
}

pub fn scan_of(handler: &CommandHandler, name: &SourceName) -> Option<ScanStatus> {
    let mount = handler.mounts.get(name).filter(|mount| mount.source().scans_recordings())?;
    let (source, last) = (mount.source(), mount.scans().last());
    let next = next(handler, mount);
    let words = [last_scan_words(last.as_ref(), handler.running.is_some()), next.words];
    Some(ScanStatus {
        source: name.clone(),
        schedule: source.scan.to_string(),
        missed: source.scan.line().map(|_| source.missed),
        begun: last.as_ref().map(|last| last.begun),
        ended: last.and_then(|last| last.ended),
        next: next.at,
        words: words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join("; "),
    })
}

struct Next {
    words: String,
    at: Option<Timestamp>,
}

impl Next {
    fn without_time(words: impl Into<String>) -> Self {
        Self { words: words.into(), at: None }
    }
}

fn last_scan_words(last: Option<&LastScan>, runs: bool) -> String {
    match last {
        None => "not scanned yet".to_owned(),
        Some(LastScan { begun, ended: Some(ended), .. }) => {
            let took = Duration::from_secs(ended.duration_since(*begun).as_secs());
            let took = if took.is_zero() { String::new() } else { format!(", in {}", time_span(took)) };
            format!("last scan at {}{took}", Zone::UTC.format_minute(*begun))
        }
        Some(LastScan { begun, .. }) if runs => format!("scanning since {}", Zone::UTC.format_minute(*begun)),
        Some(LastScan { begun, .. }) => format!("the scan of {} was interrupted", Zone::UTC.format_minute(*begun)),
    }
}

fn next(handler: &CommandHandler, mount: &Mount) -> Next {
    let scans = mount.scans();
    let Some(turn) = scans.next_scan(handler.clock.wall()) else { return next_by_interval(handler, mount) };
    match turn {
        _ if mount.away().is_some() => Next::without_time("next scan when the folder is back, if it is due by then"),
        ScanTurn::At { slot: NEVER, .. } => Next::without_time("no further scan: the cron line has no later time"),
        ScanTurn::At { slot, left_out } => at_slot(handler, slot, left_out),
        ScanTurn::Now(cause) if handler.has_daemon() => match cause {
            Cause::CutOff => Next::without_time(""),
            _ => Next { words: "next scan now".to_owned(), at: Some(handler.clock.wall()) },
        },
        ScanTurn::Now(cause) => Next::without_time(at_the_start(cause)),
    }
}

fn at_slot(handler: &CommandHandler, slot: Timestamp, left_out: Option<Timestamp>) -> Next {
    let missed = left_out.map(|slot| {
        let name = MissedSlots::Skip.name();
        format!("the scan of {} was missed and is skipped (`missed = \"{name}\"`); ", Zone::UTC.format_minute(slot))
    });
    let runs = if handler.has_daemon() { "" } else { ", if a daemon runs then" };
    let words = format!("{}next scan at {}{runs}", missed.unwrap_or_default(), Zone::UTC.format_minute(slot));
    Next { words, at: Some(slot) }
}

/// Describes the scan that a daemon makes at its start, while none runs.
fn at_the_start(cause: Cause) -> String {
    match cause {
        Cause::First => "first scan with `scribed once`, or when a daemon starts".to_owned(),
        Cause::CutOff => "continues when a daemon starts".to_owned(),
        Cause::Slot(slot) => {
            format!("next scan when a daemon starts: the scan of {} is still due", Zone::UTC.format_minute(slot))
        }
        Cause::Missed(slot) => {
            let (name, slot) = (MissedSlots::Once.name(), Zone::UTC.format_minute(slot));
            format!("the scan of {slot} was missed; scribed scans once when a daemon starts (`missed = \"{name}\"`)")
        }
    }
}

fn next_by_interval(handler: &CommandHandler, mount: &Mount) -> Next {
    if !handler.has_daemon() {
        return Next::without_time("next scan with `scribed once`, or when a daemon starts");
    }
    if mount.away().is_some() {
        return Next::without_time("next scan when the folder is back");
    }
    let due = mount.scans().due().map(|due| handler.clock.wall().saturating_add(due.since(handler.clock.uptime())));
    due.map_or(Next::without_time(""), |at| Next {
        words: format!("next scan at {}", Zone::UTC.format_minute(at)),
        at: Some(at),
    })
}
