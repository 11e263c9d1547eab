//! The metrics, from the status of the queue. Pure. Their names follow the conventions of Prometheus: base units, and
//! `_total` for what only grows.

use super::metric_family::{Kind, MetricFamily, Series};
use super::process::ProcessValues;
use super::services::{ServiceTraffic, services, traffic};
use crate::control::notification_targets::TargetBacklog;
use crate::control::transport::protocol::{BudgetUse, DaemonStatus, QueueStatus, ScanStatus, Waiting};
use crate::domain::names::{ServiceName, SourceName, Timestamp};
use crate::domain::stage::StageKind;
use crate::output::writable::DiskSpace;
use crate::store::contract::JobCounts;
use prometheus_client::registry::Unit;
use std::collections::{BTreeMap, BTreeSet};

/// What the metrics are made from.
pub struct MetricSources<'a> {
    pub status: &'a QueueStatus,
    pub waiting: &'a Waiting,
    pub by_source: &'a BTreeMap<SourceName, JobCounts>,
    /// What was sent to services since the start; empty if nothing works on the queue.
    pub traffic: &'a [ServiceTraffic],
    /// The number of output files that were written since the start.
    pub outputs: u64,
    /// Billed milliseconds.
    pub billed: &'a BTreeMap<(SourceName, ServiceName), u64>,
    /// What an hour of billed audio costs.
    pub prices: &'a BTreeMap<ServiceName, f64>,
    /// The disk of the state directory.
    pub disk: Option<DiskSpace>,
    /// What waits for the targets of `[notify]`.
    pub notifications: &'a [TargetBacklog],
    /// Bytes of the search index, if there is to be one.
    pub search_index: Option<u64>,
    pub process: &'a ProcessValues,
    pub now: Timestamp,
}

/// Returns all metrics.
pub fn families(sources: &MetricSources<'_>) -> Vec<MetricFamily> {
    let MetricSources { status, waiting, by_source, process, now, .. } = sources;
    let mut all = vec![build_info(), jobs(by_source), oldest_jobs(by_source, *now)];
    all.extend(attention(status));
    all.push(waiting_jobs(waiting));
    all.extend(status.daemon.iter().flat_map(|daemon| since_start(daemon, sources.outputs, *now)));
    all.extend(services(&status.services));
    all.extend(traffic(sources.traffic));
    all.extend(costs(sources.billed, sources.prices));
    all.extend(budgets(&status.budget));
    all.extend(scans(status));
    all.extend(folders(status, *now));
    all.extend(disk(sources.disk));
    all.extend(notifications(sources.notifications));
    all.push(search_index(sources.search_index));
    all.extend(this_process(process));
    all
}

fn build_info() -> MetricFamily {
    let series = vec![labelled(vec![("version", env!("CARGO_PKG_VERSION").to_owned())], 1.0)];
    gauge("scribed_build_info", "The release of scribed that runs", None, series)
}

fn jobs(by_source: &BTreeMap<SourceName, JobCounts>) -> MetricFamily {
    let series = by_source.iter().flat_map(|(source, counts)| {
        let of_stage = |kind: StageKind| {
            let labels = vec![("source", source.to_string()), ("stage", kind.name().to_owned())];
            labelled(labels, counts.of(kind) as f64)
        };
        StageKind::ALL.into_iter().map(of_stage)
    });
    gauge("scribed_jobs", "Jobs in the queue, by source and stage", None, series.collect())
}

fn oldest_jobs(by_source: &BTreeMap<SourceName, JobCounts>, now: Timestamp) -> MetricFamily {
    let series = by_source.iter().map(|(source, counts)| {
        let age = counts.waiting_since.map_or(0.0, |since| now.duration_since(since).as_secs_f64());
        labelled(vec![("source", source.to_string())], age)
    });
    let help = "How long the job that has waited longest has been at its stage, jobs at services aside";
    gauge("scribed_oldest_job_age", help, Some(Unit::Seconds), series.collect())
}

/// What a person should look at.
fn attention(status: &QueueStatus) -> Vec<MetricFamily> {
    let one = |name, help, value: u64| gauge(name, help, None, vec![labelled(Vec::new(), value as f64)]);
    vec![
        one(
            "scribed_jobs_failed_unhandled",
            "Failed jobs that nobody has retried or acknowledged",
            status.unhandled_failures,
        ),
        one(
            "scribed_jobs_incomplete_unhandled",
            "Incomplete jobs that nobody has acknowledged",
            status.unhandled_incomplete,
        ),
        one(
            "scribed_jobs_suspect",
            "Jobs whose results a check warns of, and that nobody has acknowledged",
            status.with_warnings,
        ),
        one(
            "scribed_jobs_waiting_for_person",
            "Jobs that are stuck or wait for a person's decision",
            status.waiting_for_a_person,
        ),
        one(
            "scribed_manifest_rows_wrong",
            "Rows of manifests that request nothing until they are corrected",
            wrong_rows(status),
        ),
    ]
}

fn wrong_rows(status: &QueueStatus) -> u64 {
    status.manifests.iter().map(|manifest| manifest.wrong).sum()
}

fn waiting_jobs(waiting: &Waiting) -> MetricFamily {
    let series =
        waiting.waiting_for.iter().map(|(reason, jobs)| labelled(vec![("reason", reason.clone())], *jobs as f64));
    gauge("scribed_jobs_waiting", "Jobs that have not ended, by what they wait for", None, series.collect())
}

/// What the process has done since its start.
fn since_start(daemon: &DaemonStatus, outputs: u64, now: Timestamp) -> Vec<MetricFamily> {
    let outcome = |name: &str, jobs: u64| labelled(vec![("outcome", name.to_owned())], jobs as f64);
    let ended = vec![
        outcome("written", daemon.done.saturating_sub(daemon.incomplete)),
        outcome("incomplete", daemon.incomplete),
        outcome("failed", daemon.failed),
        outcome("skipped", daemon.skipped),
    ];
    let total = |value: f64| vec![labelled(Vec::new(), value)];
    let started = daemon.since.0.min(now.0) as f64 / 1e3;
    let mut all = vec![
        counter("scribed_jobs_ended", "Jobs that have ended since the start of the process", None, ended),
        counter(
            "scribed_audio_written",
            "Length of the recordings whose outputs were written",
            Some(Unit::Seconds),
            total(daemon.audio_millis as f64 / 1e3),
        ),
        counter("scribed_outputs_written", "Files that were written for jobs", None, total(outputs as f64)),
        counter(
            "scribed_sent",
            "What was sent to services, repeated uploads included",
            Some(Unit::Bytes),
            total(daemon.sent_bytes as f64),
        ),
        gauge("process_start_time", "Start of the process, in seconds since 1970", Some(Unit::Seconds), total(started)),
    ];
    if let Some(calls) = &daemon.callbacks {
        let of = |name: &str, calls: u64| labelled(vec![("outcome", name.to_owned())], calls as f64);
        let series =
            vec![of("accepted", calls.taken), of("unknown_address", calls.strange), of("refused", calls.refused)];
        all.push(counter("scribed_callbacks", "Callbacks that were received", None, series));
    }
    all
}

fn costs(billed: &BTreeMap<(SourceName, ServiceName), u64>, prices: &BTreeMap<ServiceName, f64>) -> [MetricFamily; 2] {
    let amounts = billed.iter().map(|((source, service), millis)| {
        let labels = vec![("source", source.to_string()), ("service", service.to_string())];
        labelled(labels, *millis as f64 / 1e3)
    });
    let price = |(service, price): (&ServiceName, &f64)| labelled(vec![("service", service.to_string())], *price);
    [
        gauge(
            "scribed_billed_audio",
            "Billed audio of all purchases that the queue knows",
            Some(Unit::Seconds),
            amounts.collect(),
        ),
        gauge(
            "scribed_service_price_per_hour",
            "Configured price of an hour of billed audio",
            None,
            prices.iter().map(price).collect(),
        ),
    ]
}

fn budgets(budgets: &[BudgetUse]) -> Vec<MetricFamily> {
    let series = budgets.iter().flat_map(|budget| {
        let source = budget.source.as_ref().map(ToString::to_string).unwrap_or_default();
        let of = |part: &str, millis: u64| {
            let period = budget.period.name().to_owned();
            let labels = vec![("source", source.clone()), ("period", period), ("part", part.to_owned())];
            labelled(labels, millis as f64 / 1e3)
        };
        [of("allowed", budget.allowed), of("spent", budget.spent()), of("reserved", budget.reserved)]
    });
    let help = "Billed audio of each budget; without a source, of all sources together";
    vec![gauge("scribed_budget", help, Some(Unit::Seconds), series.collect())]
}

fn scans(status: &QueueStatus) -> Vec<MetricFamily> {
    let seconds = |at: Timestamp| at.0 as f64 / 1e3;
    let series = |of: &dyn Fn(&ScanStatus) -> Option<Timestamp>| -> Vec<Series> {
        let one = |scan: &ScanStatus| Some(labelled(vec![("source", scan.source.to_string())], seconds(of(scan)?)));
        status.scans.iter().filter_map(one).collect()
    };
    vec![
        gauge(
            "scribed_scan_start_time",
            "Start of the last scan of the source, in seconds since 1970",
            Some(Unit::Seconds),
            series(&|scan| scan.begun),
        ),
        gauge(
            "scribed_scan_end_time",
            "End of the last scan of the source, in seconds since 1970",
            Some(Unit::Seconds),
            series(&|scan| scan.ended),
        ),
        gauge(
            "scribed_scan_next_time",
            "Start of the next scan of the source, in seconds since 1970",
            Some(Unit::Seconds),
            series(&|scan| scan.next),
        ),
    ]
}

/// Folders that are not available, and pauses. There is a series for each source, so that an alert ends when it ends.
fn folders(status: &QueueStatus, now: Timestamp) -> Vec<MetricFamily> {
    let away: Vec<&SourceName> = status.frozen.iter().map(|frozen| &frozen.source).collect();
    let known = status.scans.iter().map(|scan| &scan.source).chain(away.iter().copied());
    let known: BTreeSet<&SourceName> = known.collect();
    let up = known
        .iter()
        .map(|source| labelled(vec![("source", source.to_string())], f64::from(u8::from(!away.contains(source)))));
    let all = labelled(vec![("source", String::new())], f64::from(u8::from(status.pauses.all(now).is_some())));
    let paused =
        status.pauses.active_sources(now).map(|(source, _)| labelled(vec![("source", source.to_string())], 1.0));
    vec![
        gauge(
            "scribed_source_available",
            "Whether the folder of the source is available (1) or not (0)",
            None,
            up.collect(),
        ),
        gauge(
            "scribed_paused",
            "Whether uploads and submissions are paused; without a source, of all sources",
            None,
            std::iter::once(all).chain(paused).collect(),
        ),
    ]
}

fn disk(disk: Option<DiskSpace>) -> [MetricFamily; 2] {
    let one = |value: Option<u64>| value.map(|value| labelled(Vec::new(), value as f64)).into_iter().collect();
    let bytes = Some(Unit::Bytes);
    [
        gauge(
            "scribed_state_disk_free",
            "What scribed may still write to the disk of its state directory",
            bytes.clone(),
            one(disk.map(|disk| disk.free)),
        ),
        gauge(
            "scribed_state_disk_size",
            "Size of the disk of the state directory",
            bytes,
            one(disk.map(|disk| disk.size)),
        ),
    ]
}

/// There is a series for each target, so that an alert ends when everything is delivered.
fn notifications(targets: &[TargetBacklog]) -> [MetricFamily; 3] {
    let series = |of: &dyn Fn(&TargetBacklog) -> f64| -> Vec<Series> {
        let one = |backlog: &TargetBacklog| labelled(vec![("target", backlog.target.clone())], of(backlog));
        targets.iter().map(one).collect()
    };
    [
        gauge(
            "scribed_notifications_undelivered",
            "Events of which the target was not told yet",
            None,
            series(&|backlog| backlog.events as f64),
        ),
        gauge(
            "scribed_notifications_undelivered_age",
            "How long the oldest message has been waiting for its delivery to the target",
            Some(Unit::Seconds),
            series(&|backlog| backlog.age.unwrap_or_default().as_secs_f64()),
        ),
        counter(
            "scribed_notifications_given_up",
            "Events of which the target was not told within a day, since it was configured",
            None,
            series(&|backlog| backlog.given_up as f64),
        ),
    ]
}

fn search_index(bytes: Option<u64>) -> MetricFamily {
    let series = bytes.map(|bytes| labelled(Vec::new(), bytes as f64)).into_iter().collect();
    gauge("scribed_search_index", "Size of the index of all transcripts", Some(Unit::Bytes), series)
}

fn this_process(process: &ProcessValues) -> Vec<MetricFamily> {
    let one = |value: Option<f64>| value.map(|value| labelled(Vec::new(), value)).into_iter().collect::<Vec<_>>();
    vec![
        counter("process_cpu", "Processor time of the process", Some(Unit::Seconds), one(process.cpu_seconds)),
        gauge("process_resident_memory", "Memory of the process", Some(Unit::Bytes), one(process.resident_bytes)),
        gauge("process_open_fds", "Open files of the process", None, one(process.open_files)),
        gauge("process_max_fds", "How many files the process may have open", None, one(process.most_files)),
    ]
}

pub(super) fn labelled(labels: Vec<(&'static str, String)>, value: f64) -> Series {
    Series { labels, value }
}

pub(super) fn gauge(name: &'static str, help: &'static str, unit: Option<Unit>, series: Vec<Series>) -> MetricFamily {
    MetricFamily { name, help, unit, kind: Kind::Gauge, series }
}

pub(super) fn counter(name: &'static str, help: &'static str, unit: Option<Unit>, series: Vec<Series>) -> MetricFamily {
    MetricFamily { name, help, unit, kind: Kind::Counter, series }
}
