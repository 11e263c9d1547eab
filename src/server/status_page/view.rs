//! The content of the status page, as people read it.

use crate::domain::names::{Hash, Timestamp};
use crate::domain::zone::Zone;
use crate::html::figures::{bytes, length, plain_source, span, without_bidi_marks};
use crate::server::http::routes::ServiceState;
use crate::server::recognition::lazy::Readiness;
use crate::server::recognition::registry::{BUILT_IN, NamedRecogniser, Recognisers};
use crate::server::status_page::statistics;
use crate::server::status_page::statistics::{RecentRecord, TranscriptionCounts};
use crate::wire::record::Status;
use crate::wire::timestamps;
use serde::Serialize;
use std::io;

#[derive(Debug, Serialize)]
pub struct View {
    version: &'static str,
    now: String,
    up: String,
    counts: TranscriptionCounts,
    disk: Disk,
    recognisers: Vec<Recogniser>,
    calls: usize,
    /// The number of transcriptions of all keys that were set aside.
    set_aside: usize,
    own: Option<Own>,
}

#[derive(Debug, Serialize)]
struct Disk {
    used: String,
    limit: String,
    percent: u64,
    /// Whether the service removes the oldest results to free space.
    crowded: bool,
}

#[derive(Debug, Serialize)]
struct Recogniser {
    name: String,
    state: &'static str,
    words: String,
}

#[derive(Debug, Serialize)]
struct Own {
    /// The name of the key, if it has one.
    name: Option<String>,
    counts: TranscriptionCounts,
    groups: Vec<Group>,
    /// The transcriptions that were set aside, also those that are not among the newest.
    set_aside: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Group {
    title: &'static str,
    class: &'static str,
    rows: Vec<Row>,
    more: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    id: String,
    name: String,
    /// The length of the recording.
    length: Option<String>,
    /// How much of it was recognised, while it is being recognised.
    recognised: Option<String>,
    when: String,
    at: String,
    /// The same time for people.
    shown: String,
    trouble: Option<String>,
    /// Whether a delivery is not complete.
    pending_deliveries: bool,
}

impl View {
    /// Builds the page's content; with an owner also the owner's records. Blocks on the disk.
    pub fn build(service: &ServiceState, owner: Option<Hash>) -> io::Result<Self> {
        let (store, clock) = (&service.list_sources.store, &*service.clock);
        let now = clock.now();
        // Imports count towards the disk quota.
        service.list_sources.live.refresh()?;
        // In a statement of its own, so that the index is not locked during the others.
        let set_aside = store.index().set_aside_ids(None).count();
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            now: service.shown.format_second(now),
            up: span(clock.uptime().since(service.born)),
            counts: service.statistics.get(store, &service.key_check.owners(), clock),
            disk: disk(service),
            recognisers: recognisers(&service.recognisers),
            calls: service.pending_deliveries.count(store),
            set_aside,
            own: owner.map(|owner| own(service, &owner, now)).transpose()?,
        })
    }
}

/// The most records that are shown of each status.
const SHOWN: usize = 8;

fn own(service: &ServiceState, owner: &Hash, now: Timestamp) -> io::Result<Own> {
    let store = &service.list_sources.store;
    let counts = TranscriptionCounts::for_owner(store, owner);
    let groups = [
        ("Running", "running", Status::Processing, counts.running),
        ("Queued", "queued", Status::Queued, counts.queued),
        ("Failed", "failed", Status::Error, counts.failed),
        ("Done", "done", Status::Done, counts.done),
    ];
    let group = |(title, class, status, count): (&'static str, &'static str, Status, usize)| {
        let is_queued = status == Status::Queued;
        let rows: Vec<Row> = statistics::newest_records(store, owner, status, SHOWN)?
            .into_iter()
            .map(|seen| {
                let waits = if is_queued { store.index().why_deferred(seen.id) } else { None };
                let recognised = service.progress.seconds(seen.id);
                Row { recognised: recognised.map(length), ..row(seen, waits, now, service.shown) }
            })
            .collect();
        let more = count.saturating_sub(rows.len());
        Ok(Group { title, class, rows, more })
    };
    let groups: io::Result<Vec<Group>> = groups.into_iter().map(group).collect();
    let groups = groups?.into_iter().filter(|group| !group.rows.is_empty()).collect();
    let set_aside = statistics::set_aside_records(store, owner, SHOWN)?
        .into_iter()
        .map(|seen| row(seen, None, now, service.shown))
        .collect();
    let name = service.key_check.name_of(owner).map(|name| name.to_string());
    Ok(Own { name, counts, groups, set_aside })
}

/// `waits` says why it could not be processed yet.
fn row(RecentRecord { id, head }: RecentRecord, waits: Option<String>, now: Timestamp, shown: Zone) -> Row {
    let at = head.ended.as_ref().map_or(head.created, |ended| ended.at);
    let verb = if head.ended.is_some() { "ended" } else { "created" };
    let failure = head.ended.and_then(|ended| ended.failure);
    let failure = failure.map(|failure| format!("{}: {}", failure.code, failure.message));
    Row {
        id: id.to_string(),
        name: without_bidi_marks(
            &head.file.filename.or_else(|| head.source.as_deref().map(plain_source)).unwrap_or_default(),
        ),
        length: head.file.audio_duration.map(length),
        recognised: None,
        when: format!("{verb} {} ago", span(now.duration_since(at))),
        at: timestamps::format(at),
        shown: shown.format_second(at),
        trouble: failure.or(waits),
        pending_deliveries: head.calls.iter().any(|call| call.due.is_some()),
    }
}

fn disk(service: &ServiceState) -> Disk {
    let usage = service.list_sources.store.upload_store.usage();
    Disk {
        used: bytes(usage.used),
        limit: bytes(usage.limit),
        // In 128 bits: a limit may be nearly the largest number.
        percent: u64::try_from(u128::from(usage.used) * 100 / u128::from(usage.limit.max(1))).unwrap_or(100).min(100),
        crowded: service.list_sources.store.upload_store.is_nearly_full(),
    }
}

/// Returns the default recogniser first. What is built in is not shown where it was never needed.
fn recognisers(all: &Recognisers) -> Vec<Recogniser> {
    let readiness = |one: &NamedRecogniser| (one.name.clone(), one.recogniser.readiness());
    let mut all = all.iter().map(readiness);
    let first = all.next().map(|(_, readiness)| recogniser(readiness));
    let is_shown = |(name, readiness): &(String, Readiness)| name != BUILT_IN || *readiness != Readiness::Untried;
    first.into_iter().chain(all.filter(is_shown).map(|(_, readiness)| recogniser(readiness))).collect()
}

fn recogniser(readiness: Readiness) -> Recogniser {
    let (name, state, words) = match readiness {
        Readiness::Ready { name, languages } if languages.is_empty() => {
            (name, "ready", "ready, any language".to_owned())
        }
        Readiness::Ready { name, languages } => (name, "ready", format!("ready, language {}", languages.join(", "))),
        Readiness::Opening => ("Recogniser".to_owned(), "waits", "is being loaded".to_owned()),
        Readiness::Untried => ("Recogniser".to_owned(), "waits", "is loaded with the first transcription".to_owned()),
        Readiness::Missing(words) => ("Recogniser".to_owned(), "missing", words),
        Readiness::Down { name, words } => (name, "missing", words),
    };
    Recogniser { name, state, words }
}
