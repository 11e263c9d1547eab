//! The status of the queue as `--json` and the HTTP API show it. Fields are added, not renamed or removed. Times are UTC.

use crate::control::transport::protocol::{BudgetUse, QueueStatus, ScanStatus, ServiceStatus, Waiting, WindowStatus};
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::pause::{Pause, Pauses};
use crate::wire::timestamps;
use serde_json::{Value, json};

/// Returns the whole status.
pub fn object(status: &QueueStatus, waiting: &Waiting, now: Timestamp) -> Value {
    let daemon = status.daemon.as_ref().map(|daemon| {
        json!({
            "pid": daemon.pid, "pass": daemon.pass, "since": timestamps::format(daemon.since),
            "seconds": daemon.millis as f64 / 1000.0, "trouble": daemon.trouble, "done": daemon.done,
            "failed": daemon.failed, "incomplete": daemon.incomplete, "skipped": daemon.skipped,
            "audio_seconds": daemon.audio_millis as f64 / 1000.0, "sent_bytes": daemon.sent_bytes,
            "callbacks": daemon.callbacks,
        })
    });
    let pauses = pauses_json(&status.pauses, now);
    json!({
        "unhandled_failures": status.unhandled_failures, "unhandled_incomplete": status.unhandled_incomplete,
        "jobs": status.jobs, "total": status.total, "running": status.running,
        "waiting_for_a_person": status.waiting_for_a_person, "incomplete": status.incomplete,
        "not_understood": status.not_understood, "with_warnings": status.with_warnings, "pauses": pauses["pauses"], "paused": pauses["paused"],
        "suspect": status.services.iter().any(|served| served.suspect),
        "services": status.services.iter().map(service).collect::<Vec<_>>(),
        "daemon": daemon, "waiting_for": waiting.waiting_for, "waiting_reasons": waiting.reasons, "frozen": status.frozen, "manifests": status.manifests,
        "budget": status.budget.iter().map(budget).collect::<Vec<_>>(),
        "windows": status.windows.iter().map(window).collect::<Vec<_>>(),
        "removed_sources": status.removed,
        "lanes": status.lanes, "scans": status.scans.iter().map(scan).collect::<Vec<_>>(),
    })
}

/// Formats pauses for `--json`: whether everything is paused, and every pause.
pub fn pauses_json(pauses: &Pauses, now: Timestamp) -> Value {
    let pause_json = |source: Option<&SourceName>, pause: Pause| json!({ "source": source, "since": timestamps::format(pause.since), "until": pause.until.map(timestamps::format) });
    let all = pauses.all(now).map(|pause| pause_json(None, pause));
    let of_sources = pauses.active_sources(now).map(|(source, pause)| pause_json(Some(source), pause));
    json!({ "paused": all.is_some(), "pauses": all.into_iter().chain(of_sources).collect::<Vec<_>>() })
}

fn window(windowed: &WindowStatus) -> Value {
    json!({
        "source": windowed.source, "open": windowed.open, "until": windowed.until.map(timestamps::format),
        "windows": windowed.windows,
    })
}

/// Formats the scan times of a source for `--json`.
pub fn scan(scan: &ScanStatus) -> Value {
    json!({
        "source": scan.source, "scan": scan.schedule, "missed": scan.missed, "begun": scan.begun.map(timestamps::format),
        "ended": scan.ended.map(timestamps::format), "next": scan.next.map(timestamps::format), "words": scan.words,
    })
}

/// Formats the use of a budget for `--json`.
pub fn budget(budget: &BudgetUse) -> Value {
    let seconds = |millis: u64| millis as f64 / 1000.0;
    json!({
        "source": budget.source, "period": budget.period, "allowed_seconds": seconds(budget.allowed),
        "used_seconds": seconds(budget.used), "spent_seconds": seconds(budget.spent()),
        "reserved_seconds": seconds(budget.reserved), "left_seconds": seconds(budget.left()),
        "unclaimed_seconds": seconds(budget.unclaimed),
        "until": budget.until.map(timestamps::format),
    })
}

fn service(served: &ServiceStatus) -> Value {
    let limit = |(agreed, found): (usize, usize)| json!({ "agreed": agreed, "found": found });
    let limits = served.learned_limits.as_ref().map(|learned_limits| {
        let rate = learned_limits.requests_per_second.map(|(agreed, found)| json!({ "agreed": agreed, "found": found }));
        json!({ "uploads": limit(learned_limits.uploads), "running": limit(learned_limits.running), "requests_per_second": rate })
    });
    json!({
        "service": served.service, "open": served.open, "on_their_way": served.on_their_way, "running": served.running, "suspect": served.suspect,
        "trouble": served.trouble, "limits": limits, "list_awaited": served.list_awaited, "notice": served.notice,
    })
}
