//! `scribed reconcile --adopt-by`: proposes which transcriptions of a service's list belong to recordings that wait to be
//! bought, and takes those that a person confirms. For a list that does not show whose its transcriptions are.

use crate::cli::args::ReconcileArgs;
use crate::cli::commands::reconcile::{MAX_READS, read_list, trust};
use crate::cli::render::progress::Ticker;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, protocol_mismatch};
use crate::client::contract::{Client, ListKind};
use crate::config::model::{Config, Source};
use crate::control::adoption::{
    AdoptableJob, AdoptableRecord, AdoptionCriterion, AdoptionPair, AmbiguousMatch, Pairing, add_copies, may_adopt,
    may_fit, pair, transcriptions_of,
};
use crate::control::comparison::ComparedJob;
use crate::control::transport::protocol::{AdoptQuery, ControlAnswer, ControlRequest, Selection};
use crate::domain::count::{agree, count};
use crate::domain::job::Job;
use crate::domain::manifest_row::RowMedia;
use crate::domain::names::{JobId, ServiceName, Timestamp, TranscriptionId};
use crate::domain::split::{PartRange, Split};
use crate::domain::stage::{AudioAmount, Stage, StageKind};
use crate::domain::time_span::time_span;
use crate::domain::zone::Zone;
use crate::media::decode::Media;
use crate::media::length::cache::LengthCache;
use crate::pipeline::stages::upload::next_purchase_key;
use crate::pipeline::stages::upload::stream::upload_names;
use crate::source::recording_place::{Recording, recording};
use crate::wire::timestamps;
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How many recordings are measured at the same time.
const MAX_MEASURED_AT_ONCE: usize = 16;

/// How many transcriptions are read one by one, where the list does not say what has to agree.
const MAX_RECORDS_READ: usize = 1_000;

/// What the queue has of a service.
#[derive(Default)]
struct WaitingRecordings {
    jobs: Vec<AdoptableJob>,
    /// Transcriptions that a job of the queue has, or had.
    used: HashSet<TranscriptionId>,
    /// Recordings that are not ready for a purchase.
    unexamined: u64,
}

/// What a person decides about.
struct Proposal<'a> {
    service: &'a ServiceName,
    criteria: &'a BTreeSet<AdoptionCriterion>,
    pairing: Pairing,
    unexamined: u64,
    /// Transcriptions that the list does not describe, and that were not read because there are too many.
    unread: usize,
}

/// Proposes pairs, asks, and takes them; with `--trust`, then lets purchases continue. Returns whether nothing is left to
/// be done.
pub async fn run(
    context: &Context,
    args: &ReconcileArgs,
    config: &Config,
    client: &dyn Client,
    queue: &QueueAccess,
) -> Result<bool, CommandError> {
    let service = &client.identity().service;
    let criteria: BTreeSet<AdoptionCriterion> = args.adopt_by.iter().map(|criterion| criterion.criterion()).collect();
    // The list is read before the queue, so that a purchase that is made meanwhile is known to be used.
    let mut records = listed(client).await?;
    let waiting = waiting_recordings(config, service, queue, &criteria).await?;
    records.retain(|record| !waiting.used.contains(&record.id));
    let unread = describe(context, client, &mut records, (&waiting.jobs, &criteria)).await?;
    let pairing = pair(waiting.jobs, records, &criteria);
    let proposal = Proposal { service, criteria: &criteria, pairing, unexamined: waiting.unexamined, unread };
    proposal.print(context)?;
    let is_asked = !proposal.pairing.pairs.is_empty() || args.trust;
    if is_asked && !confirm(context, args, &proposal)? {
        context.print_line("nothing was changed")?;
        return Ok(false);
    }
    let all_adopted = adopt_all(context, &proposal, queue).await?;
    if args.trust && all_adopted {
        trust(context, queue, service).await?;
        return Ok(true);
    }
    if args.trust {
        // What was refused would be bought.
        context.print_error_line("purchases do not continue, since a transcription could not be used: see above");
    }
    let left = proposal.waiting_count();
    if is_suspect(queue, service).await? {
        let still = agree(left, "waits", "wait");
        context.print_line(&format!(
            "service {service}: {} of the queue still {still}: scribed buys nothing there until `scribed reconcile --service \
             {service} --trust`",
            count(left, "recording")
        ))?;
    }
    Ok(all_adopted && left == 0)
}

/// Reads what the list has and may be ours.
async fn listed(client: &dyn Client) -> Result<Vec<AdoptableRecord>, CommandError> {
    let mut records = BTreeMap::new();
    for _ in 0..MAX_READS {
        let mut take = |item| {
            records.extend(AdoptableRecord::of(item).map(|record| (record.id.clone(), record)));
        };
        if read_list(client, &mut take).await? {
            return Ok(records.into_values().collect());
        }
    }
    Err(CommandError::Service(
        "the list changes faster than scribed can read it; nothing was changed, try again".to_owned(),
    ))
}

async fn waiting_recordings(
    config: &Config,
    service: &ServiceName,
    queue: &QueueAccess,
    criteria: &BTreeSet<AdoptionCriterion>,
) -> Result<WaitingRecordings, CommandError> {
    let routing = config.routing();
    let mut waiting = WaitingRecordings::default();
    let (mut jobs, mut copies): (Vec<Job>, Vec<AdoptableJob>) = Default::default();
    let source_of = |job: &Job| config.sources.iter().find(|source| source.name == job.key.source);
    let mut selection = Selection::default();
    loop {
        let ControlAnswer::Jobs(page) = queue.request(ControlRequest::Jobs(selection.clone())).await? else {
            return Err(protocol_mismatch());
        };
        for job in page.jobs {
            waiting.used.extend(transcriptions_of(&job).cloned());
            if routing.service_of(&job.route_key()) != service {
                continue;
            }
            waiting.unexamined += u64::from(matches!(job.stage.kind(), StageKind::Found | StageKind::Settled));
            if may_adopt(&job) {
                jobs.push(job);
            } else if matches!(job.stage, Stage::Following { .. }) {
                copies.push(adoptable(source_of(&job), service, &job, None));
            }
        }
        selection.after = page.next;
        match (selection.after, selection.forgotten) {
            (Some(_), _) => {}
            (None, false) => selection.forgotten = true,
            (None, true) => break,
        }
    }
    let lengths = Arc::new(LengthCache::new(&config.state));
    let is_measured = criteria.contains(&AdoptionCriterion::Duration);
    let described = jobs.into_iter().map(|job| {
        let (lengths, source) = (Arc::clone(&lengths), source_of(&job));
        async move {
            let measured = match source.filter(|_| is_measured && known_length(&job).is_none()) {
                Some(source) => measure(&lengths, source, &job).await,
                None => None,
            };
            adoptable(source, service, &job, measured)
        }
    });
    waiting.jobs = futures_util::stream::iter(described).buffered(MAX_MEASURED_AT_ONCE).collect().await;
    add_copies(&mut waiting.jobs, copies);
    Ok(waiting)
}

/// Returns the length of what the job sends next, as far as the queue knows it.
fn known_length(job: &Job) -> Option<u64> {
    let part = job.split.as_deref().and_then(Split::next).map(PartRange::millis);
    part.or_else(|| job.stage.audio().map(|audio| audio.millis).filter(|millis| *millis > 0))
}

/// Returns the length of a recording on this machine.
async fn measure(lengths: &Arc<LengthCache>, source: &Source, job: &Job) -> Option<u64> {
    let Recording::File(path) = recording(source, job) else { return None };
    let measured: Option<Media> = lengths.measure(path, job.key.clone(), job.seen).await.ok();
    measured.as_ref().and_then(Media::audio).map(|audio: AudioAmount| audio.millis)
}

fn adoptable(source: Option<&Source>, service: &ServiceName, job: &Job, measured: Option<u64>) -> AdoptableJob {
    let part = job.split.as_deref().and_then(|split| split.number_of(split.next()?));
    let purchase_key = match &job.stage {
        Stage::Probed { params, content } => content.map(|content| next_purchase_key(job, service, *params, content)),
        stage => stage.purchase_key().cloned(),
    };
    AdoptableJob {
        whose: ComparedJob::of(job),
        names: source.map(|source| upload_names(&file_name(source, job), part)).unwrap_or_default(),
        millis: known_length(job).or(measured),
        modified: Timestamp(job.seen.mtime_ns.div_euclid(1_000_000)),
        purchase_key,
    }
}

/// Returns the name of a recording's file, as it is sent.
fn file_name(source: &Source, job: &Job) -> OsString {
    let of_path = |path: &Path| path.file_name().unwrap_or_default().to_owned();
    match recording(source, job) {
        Recording::File(path) => path.file_name().to_owned(),
        Recording::Object(path) => of_path(Path::new(path.lossy().as_ref())),
        Recording::Remote(_) => match job.row.as_deref().map(|row| &row.media) {
            Some(RowMedia::Url(url)) => url.file_name().into(),
            _ => OsString::new(),
        },
    }
}

/// Reads those transcriptions one by one of which the list does not say what has to agree. Returns how many were not
/// read.
async fn describe(
    context: &Context,
    client: &dyn Client,
    records: &mut [AdoptableRecord],
    (jobs, criteria): (&[AdoptableJob], &BTreeSet<AdoptionCriterion>),
) -> Result<usize, CommandError> {
    let mut lacking: Vec<&mut AdoptableRecord> =
        records.iter_mut().filter(|record| record.lacks(criteria) && may_fit(record, jobs, criteria)).collect();
    let unread = lacking.len().saturating_sub(MAX_RECORDS_READ);
    lacking.truncate(MAX_RECORDS_READ);
    let (all, mut progress) = (lacking.len(), Ticker::new(context));
    for (read, record) in lacking.into_iter().enumerate() {
        progress.tick(|| format!("the list does not describe its transcriptions: {read} of {all} read"));
        let whole = client.whole(ListKind::PreRecorded, &record.id).await;
        let whole = whole.map_err(|fault| CommandError::Service(fault.words))?;
        record.file.name = record.file.name.take().or(whole.file.name);
        record.file.millis = record.file.millis.or(whole.file.millis);
    }
    progress.clear();
    Ok(unread)
}

async fn adopt_all(context: &Context, proposal: &Proposal<'_>, queue: &QueueAccess) -> Result<bool, CommandError> {
    let mut refused = 0;
    for AdoptionPair { job, record } in &proposal.pairing.pairs {
        let (service, transcription) = (proposal.service.clone(), record.id.clone());
        let (created, billed) = (record.created, record.billed);
        let query = AdoptQuery { service, job: job.whose.job, transcription, created, billed };
        let answer = queue.try_request(ControlRequest::Adopt(query)).await?;
        let error = match answer {
            Ok(ControlAnswer::Adopted(_)) => None,
            Ok(_) => return Err(protocol_mismatch()),
            Err(refusal) => Some(refusal.to_string()),
        };
        refused += usize::from(error.is_some());
        context.print_json(&json!({
            "service": proposal.service, "adopted": error.is_none(), "job": job.whose.job, "path": job.whose.path,
            "transcription_id": record.id, "error": error,
        }))?;
        error.iter().for_each(|words| context.print_error_line(words));
    }
    let adopted = proposal.pairing.pairs.len() - refused;
    if adopted > 0 {
        let (are, their) = (agree(adopted as u64, "is", "are"), agree(adopted as u64, "its", "their"));
        context.print_line(&format!(
            "service {}: {} {are} used for {their} recording now; scribed fetches the result without a purchase",
            proposal.service,
            count(adopted as u64, "transcription")
        ))?;
    }
    Ok(refused == 0)
}

async fn is_suspect(queue: &QueueAccess, service: &ServiceName) -> Result<bool, CommandError> {
    let ControlAnswer::Status(status) = queue.request(ControlRequest::Status).await? else {
        return Err(protocol_mismatch());
    };
    Ok(status.services.iter().any(|served| served.service == *service && served.suspect))
}

/// Asks the person at the terminal whether to go on. Returns `true` without asking with `--yes`.
///
/// # Errors
/// [`CommandError::Usage`] without a terminal and without `--yes`.
fn confirm(context: &Context, args: &ReconcileArgs, proposal: &Proposal<'_>) -> Result<bool, CommandError> {
    if args.yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() || context.common.json {
        let words = "nothing was changed: `reconcile --adopt-by` asks before it uses a transcription for a recording, and \
                     cannot ask here: standard input is not a terminal, or --json is given. To use these pairs without a \
                     question, add --yes";
        return Err(CommandError::Usage(words.to_owned()));
    }
    let pairs = proposal.pairing.pairs.len() as u64;
    let use_them = format!("use {} as shown", count(pairs, "transcription"));
    let buy = "let scribed buy whatever else waits";
    let what = match (pairs, args.trust) {
        (0, _) => buy.to_owned(),
        (_, true) => format!("{use_them}, and {buy}"),
        (_, false) => use_them,
    };
    context.print_line(&format!("Service {}: {what}? Type yes to continue:", proposal.service))?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let answer = answer.trim().to_lowercase();
    Ok(answer == "yes" || answer == "y")
}

impl Proposal<'_> {
    /// Counts the recordings that get no transcription of the list.
    fn waiting_count(&self) -> u64 {
        (self.pairing.ambiguous.len() + self.pairing.unmatched.len()) as u64 + self.unexamined
    }

    fn print(&self, context: &Context) -> io::Result<()> {
        context.print_json(&self.object())?;
        self.lines().iter().try_for_each(|line| context.print_line(line))
    }

    fn lines(&self) -> Vec<String> {
        let Pairing { pairs, ambiguous, unmatched, records_left } = &self.pairing;
        let by: Vec<&str> = self.criteria.iter().map(|criterion| criterion.name()).collect();
        let mut lines = vec![format!(
            "service {}: {} of its list {} one recording each by {}",
            self.service,
            count(pairs.len() as u64, "transcription"),
            agree(pairs.len() as u64, "fits", "fit"),
            by.join(", ")
        )];
        lines.extend(pairs.iter().map(pair_line));
        if !ambiguous.is_empty() {
            lines.push(format!("ambiguous, and left to you: {}", ambiguous.len()));
            lines.extend(ambiguous.iter().map(ambiguous_line));
        }
        if !unmatched.is_empty() {
            lines.push(format!("without a fitting transcription: {}", count(unmatched.len() as u64, "recording")));
            lines.extend(unmatched.iter().map(|ComparedJob { job, path }| format!("  job {job}, {path}")));
        }
        if self.unexamined > 0 {
            let are = agree(self.unexamined, "is", "are");
            lines.push(format!(
                "{} {are} not ready for a purchase: not examined yet (`scribed once` does that), or with subtitles \
                 beside the recording",
                count(self.unexamined, "recording")
            ));
        }
        if *records_left > 0 {
            let stay = agree(*records_left as u64, "stays as it is", "stay as they are");
            lines.push(format!("{} of the list {stay}", count(*records_left as u64, "transcription")));
        }
        if self.unread > 0 {
            lines.push(format!(
                "{} not read: the list does not describe them, and scribed reads at most {MAX_RECORDS_READ} one by one",
                count(self.unread as u64, "transcription")
            ));
        }
        lines
    }

    fn object(&self) -> Value {
        let Pairing { pairs, ambiguous, unmatched, records_left } = &self.pairing;
        let seconds = |millis: Option<u64>| millis.map(|millis| millis as f64 / 1e3);
        let pairs = pairs.iter().map(|AdoptionPair { job, record }| {
            json!({
                "job": job.whose.job, "path": job.whose.path, "seconds": seconds(job.millis),
                "transcription_id": record.id, "file_name": record.file.name,
                "transcription_seconds": seconds(record.file.millis), "created": record.created.map(timestamps::format),
            })
        });
        let ambiguous = ambiguous.iter().map(|AmbiguousMatch { whose, fitting, records, recordings }| {
            json!({
                "job": whose.job, "path": whose.path, "fitting": fitting, "transcription_ids": records,
                "recordings": recordings,
            })
        });
        let unmatched = unmatched.iter().map(|ComparedJob { job, path }| json!({ "job": job, "path": path }));
        json!({
            "service": self.service, "adopt_by": self.criteria.iter().map(|by| by.name()).collect::<Vec<_>>(),
            "pairs": pairs.collect::<Vec<_>>(), "ambiguous": ambiguous.collect::<Vec<_>>(),
            "unmatched": unmatched.collect::<Vec<_>>(), "unexamined": self.unexamined,
            "transcriptions_left": records_left, "transcriptions_not_read": self.unread,
        })
    }
}

fn pair_line(AdoptionPair { job, record }: &AdoptionPair) -> String {
    let length = |millis: Option<u64>| millis.map_or_else(|| "unknown length".to_owned(), shown_length);
    let created = record.created.map(|at| format!(", created {}", Zone::UTC.format_minute(at))).unwrap_or_default();
    let name = record.file.name.as_deref().map(|name| format!(" {name},")).unwrap_or_default();
    let JobId(number) = job.whose.job;
    format!(
        "  {}:{name} {}{created}  for job {number}, {}, {}",
        record.id,
        length(record.file.millis),
        job.whose.path,
        length(job.millis)
    )
}

/// Formats a length, in whole seconds unless it is short.
fn shown_length(millis: u64) -> String {
    let length =
        if millis < 10_000 { Duration::from_millis(millis) } else { Duration::from_secs((millis + 500) / 1_000) };
    time_span(length)
}

fn ambiguous_line(AmbiguousMatch { whose, fitting, records, recordings }: &AmbiguousMatch) -> String {
    let ComparedJob { job, path } = whose;
    let ids: Vec<&str> = records.iter().map(TranscriptionId::as_str).collect();
    match fitting {
        1 => format!("  job {job}, {path}: {} fits {}", ids.join(", "), count(*recordings as u64, "recording")),
        several => format!("  job {job}, {path}: {several} transcriptions fit it ({})", ids.join(", ")),
    }
}
