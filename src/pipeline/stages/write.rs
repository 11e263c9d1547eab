//! Fetched ▷ Written: the outputs appear beside the source, whole or not at all.

use crate::beneath::{RootedPath, access_of};
use crate::clock::Clock;
use crate::config::model::Source;
use crate::crash::{self, Point};
use crate::domain::access::Access;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::format::Format;
use crate::domain::job::{Job, JobKey, Output};
use crate::domain::missing::MissingPart;
use crate::domain::names::{Hash, JobId, Timestamp, TranscriptionId};
use crate::domain::path::RelPath;
use crate::domain::sent_audio::SentAudio;
use crate::domain::stage::{JobEvent, Skip, Stage};
use crate::domain::token::PurchaseKey;
use crate::output::formats::{Finished, Provenance, render, render_json};
use crate::output::group_fsync::Syncs;
use crate::output::naming::{candidates, language};
use crate::output::publish::{Destination, KEPT, Names, OwnOutputs, PendingOutput, PlaceError, place};
use crate::output::relocated::{Relocation, ending_of};
use crate::output::results::{ResultError, Results};
use crate::output::subtitles::Layout;
use crate::output::time_offset::in_time;
use crate::permission::{explained, said};
use crate::pipeline::blocking::blocking;
use crate::pipeline::request::template_vars;
use crate::pipeline::stages::bucket_output;
use crate::pipeline::stages::outcome::{StageOutcome, StageStop};
use crate::pipeline::stages::output_folders::OutputFolders;
use crate::pipeline::stages::probe::{store_fault, subtitles_by_others};
use crate::pipeline::stages::settle::folder_away;
use crate::pipeline::stages::wait::RESULT_LIMIT;
use crate::source::mount::source_mount::Mount;
use crate::source::path_policy::PathPolicy;
use crate::source::place::{Recording, below, full_path, make_folder, outputs_beside, recording};
use crate::store::contract::{Hold, Lease, Store, StoreError};
use crate::store::params::ParamFiles;
use crate::wire::bounded_value::BoundedValue;
use crate::wire::delivered::Delivered;
use crate::wire::params::Params;
use crate::wire::record::Record;
use crate::wire::result::Spoken;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What this move works with.
pub struct WriteContext<'a> {
    /// The queue.
    pub store: &'a dyn Store,
    /// Time.
    pub clock: &'a dyn Clock,
    /// The kept results.
    pub results: &'a Arc<Results>,
    /// The kept parameters.
    pub params: &'a Arc<ParamFiles>,
    /// Where all who write are synced together.
    pub syncs: &'a Arc<Syncs>,
    /// Whose outputs are being placed.
    pub writing: &'a Arc<Writing>,
}

/// Jobs whose outputs are being placed. A write that is given up, because its right was taken away or its
/// folder went, goes on in its thread; a second one for the same job would take its names for others'.
#[derive(Default)]
pub struct Writing {
    jobs: Mutex<HashSet<JobId>>,
    /// Whether outputs can be written where they go.
    pub folders: OutputFolders,
}

/// While this lives, the job's outputs are being placed.
struct Placing {
    writing: Arc<Writing>,
    job: JobId,
}

impl Writing {
    fn begin(self: &Arc<Self>, job: JobId) -> Option<Placing> {
        let is_first = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).insert(job);
        is_first.then(|| Placing { writing: Arc::clone(self), job })
    }
}

impl Drop for Placing {
    fn drop(&mut self) {
        self.writing.jobs.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.job);
    }
}

/// How soon it is looked whether an earlier write of the same job has ended.
const AGAIN: Duration = Duration::from_secs(1);

/// Renders the kept result and places it.
pub async fn run(
    context: &WriteContext<'_>,
    mount: &Arc<Mount>,
    lease: &Lease,
    job: &Job,
    order: &PurchaseKey,
    transcription: &TranscriptionId,
) -> Result<StageOutcome, StageStop> {
    let now = context.clock.now();
    let Some(placing_now) = context.writing.begin(job.id) else {
        return Ok(StageOutcome::Sleep { until: now.after(AGAIN), reason: None });
    };
    let placed = own_outputs(context.store, mount, job, now).await?;
    let Some(Rendered { wanted, language, missing, unread }) =
        rendered(context, mount.source(), job, order, transcription, now).await?
    else {
        // It can be read at the service once more.
        return Ok(StageOutcome::Step(JobEvent::ResultLost));
    };
    let is_anothers = is_another_ones(context.store, job, order).await.map_err(StageStop::Store)?;
    // What a job has just bought for itself has no outputs anywhere.
    let relocation = match is_anothers || !job.outputs.is_empty() {
        true => Some(relocation(context.store, mount, job, order).await.map_err(StageStop::Store)?),
        false => None,
    };
    if is_anothers && let Some(others) = subtitles_by_others(context.store, mount, job, now).await? {
        let known = relocation.iter().flat_map(|relocation| &relocation.known).map(|(_, hash)| *hash);
        let hashes =
            wanted.iter().map(|wanted| Hash::of(&wanted.bytes)).chain(job.placing.iter().copied()).chain(known);
        if !others.all_are(mount, &hashes.collect()).await {
            return Ok(StageOutcome::Step(JobEvent::Skipped { why: Skip::Subtitled }));
        }
    }
    let placing = announce(context.store, lease, job, &wanted).await?;
    let ours = OwnOutputs { placed, placing, relocation };
    if let Some(bucket) = mount.bucket() {
        let outputs = bucket_output::run(bucket, mount, job, wanted, &ours, now).await;
        drop(placing_now);
        return Ok(StageOutcome::Step(JobEvent::Written { outputs: outputs?, language, missing, unread }));
    }
    let (syncs, mount, job) = (Arc::clone(context.syncs), Arc::clone(mount), job.clone());
    let outputs = blocking(move || {
        let _placing = placing_now;
        put(&mount, &job, wanted, &ours, &syncs, now)
    })
    .await?;
    Ok(StageOutcome::Step(JobEvent::Written { outputs, language, missing, unread }))
}

/// What it takes to write outputs beside the engine.
#[derive(Clone)]
pub struct Tools {
    /// The kept parameters.
    pub params: Arc<ParamFiles>,
    /// Where all who write are synced together.
    pub syncs: Arc<Syncs>,
    /// Whose outputs are being placed.
    pub writing: Arc<Writing>,
}

/// Why outputs that were missing are still so.
#[derive(Debug, thiserror::Error)]
pub enum NotRestored {
    /// The result that they are made of is not kept here, or damaged.
    #[error("its result is not kept here any more, or is damaged")]
    NoResult,
    /// Something moved the job meanwhile.
    #[error("its outputs are being written at this moment: look again")]
    Moving,
    /// They went elsewhere than outputs of this job go now.
    #[error("its outputs went to {0}, and go elsewhere now: `scribed retry --fresh` writes them there")]
    Elsewhere(String),
    /// Its outputs are other ones now.
    #[error("{0} is not among the outputs that are made of it")]
    NotMade(String),
    /// They cannot be written, or not be made.
    #[error("{}", .0.words)]
    Fault(Fault),
    /// The queue.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Fault> for NotRestored {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Writes these outputs of a written job again, under the names that they had. Nothing that stands there by now is
/// touched.
///
/// # Errors
/// [`NotRestored`].
pub async fn restore(
    context: &WriteContext<'_>,
    mount: &Arc<Mount>,
    job: &Job,
    missing: &[Output],
) -> Result<(), NotRestored> {
    let Stage::Written { order, transcription, .. } = &job.stage else { return Err(NotRestored::Moving) };
    let (now, source) = (context.clock.now(), mount.source());
    let at = at(source, job);
    if let Some(output) = missing.iter().find(|output| output.at != at) {
        return Err(NotRestored::Elsewhere(output.shown()));
    }
    let placing_now = context.writing.begin(job.id).ok_or(NotRestored::Moving)?;
    let rendered = rendered(context, source, job, order, transcription, now).await?.ok_or(NotRestored::NoResult)?;
    let (mut wanted, mut outputs) = (Vec::new(), job.outputs.clone());
    let mut made: Vec<_> =
        formats(source, job).iter().zip(rendered.wanted).map(|(format, one)| (*format, Some(one.bytes))).collect();
    for output in missing {
        let name = OsString::from_vec(output.name.as_bytes().to_vec());
        let ending = ending_of(&name).unwrap_or_default().to_owned();
        let bytes = made.iter_mut().find(|(format, bytes)| bytes.is_some() && ending == format.ext());
        let bytes = bytes.and_then(|(_, bytes)| bytes.take()).ok_or_else(|| NotRestored::NotMade(output.shown()))?;
        let hash = Hash::of(&bytes);
        outputs.iter_mut().filter(|own| **own == *output).for_each(|own| own.hash = hash);
        wanted.push(PendingOutput { candidates: std::iter::once(name), bytes });
    }
    // Another release renders otherwise. Written down before it is shown: whoever finds it knows it as ours.
    if outputs != job.outputs && !context.store.overrule(job, JobEvent::Restored { outputs }, now).await?.is_done() {
        return Err(NotRestored::Moving);
    }
    if let Some(bucket) = mount.bucket() {
        bucket_output::run(bucket, mount, job, wanted, &OwnOutputs::default(), now).await?;
        return Ok(());
    }
    let (syncs, mount, job) = (Arc::clone(context.syncs), Arc::clone(mount), job.clone());
    blocking(move || {
        let _placing = placing_now;
        put(&mount, &job, wanted, &OwnOutputs::default(), &syncs, now)
    })
    .await?;
    Ok(())
}

/// The outputs that are made of a job.
fn formats<'a>(source: &'a Source, job: &'a Job) -> &'a [Format] {
    job.making.as_ref().map_or(&source.outputs, |making| &making.outputs)
}

/// What a kept result comes to.
struct Rendered<N> {
    /// What is to be written.
    wanted: Vec<PendingOutput<N>>,
    /// The language that was heard most.
    language: Option<String>,
    /// What was requested and is not in it.
    missing: Vec<MissingPart>,
    /// What of it could not be read, in words.
    unread: Option<String>,
}

/// `None` where the kept result is not there any more, or damaged.
async fn rendered(
    context: &WriteContext<'_>,
    source: &Arc<Source>,
    job: &Job,
    order: &PurchaseKey,
    transcription: &TranscriptionId,
    now: Timestamp,
) -> Result<Option<Rendered<impl Names + use<>>>, Fault> {
    let (results, params, source) = (Arc::clone(context.results), Arc::clone(context.params), Arc::clone(source));
    let (job, order, transcription) = (job.clone(), order.clone(), transcription.clone());
    blocking(move || match results.open(&transcription, RESULT_LIMIT) {
        Ok(raw) => wanted(raw, &params, &source, &job, &order, &transcription, now).map(Some),
        Err(ResultError::NotKept { .. } | ResultError::Damaged { .. }) => Ok(None),
        Err(error) => Err(unreadable(&error, now)),
    })
    .await
}

/// More hashes are not remembered: each release renders in one way.
const LONGEST_PLACING: usize = 64;

/// Writes down, durably, what is about to be shown: whoever finds it after a crash knows it as ours.
async fn announce<N>(
    store: &dyn Store,
    lease: &Lease,
    job: &Job,
    wanted: &[PendingOutput<N>],
) -> Result<Vec<Hash>, StageStop> {
    let mut placing = job.placing.clone();
    let hashes = wanted.iter().map(|wanted| Hash::of(&wanted.bytes));
    placing.extend(hashes.filter(|hash| !job.placing.contains(hash)));
    if placing.len() > job.placing.len() {
        placing.drain(..placing.len().saturating_sub(LONGEST_PLACING));
        let job = Job { placing: placing.clone(), ..job.clone() };
        crash::point(Point::Announcing);
        store.commit(lease, &job, Hold::Keep).await.map_err(StageStop::Store)?;
        crash::point(Point::Announced);
    }
    Ok(placing)
}

/// Whether another job has bought it, or an earlier queue: then it costs nothing now, and `existing` says whether it is
/// written. What a job has paid for itself is written in every case.
async fn is_another_ones(store: &dyn Store, job: &Job, order: &PurchaseKey) -> Result<bool, StoreError> {
    let Some(bought) = store.purchase(order).await? else { return Ok(false) };
    Ok(bought.sighted.is_some() || bought.by.is_some_and(|by| by != job.id))
}

/// What tells the outputs that came here with the recording. What is written down of them is the job that had the
/// transcription first: its outputs have the same bytes wherever they lie now.
async fn relocation(
    store: &dyn Store,
    mount: &Mount,
    job: &Job,
    order: &PurchaseKey,
) -> Result<Relocation, StoreError> {
    let first = match store.purchase(order).await?.and_then(|bought| bought.by).filter(|by| *by != job.id) {
        Some(by) => store.job(by).await?,
        None => None,
    };
    let outputs = first.map(|first| first.outputs).unwrap_or_default();
    let known = outputs.into_iter().filter_map(|output| {
        let name = OsString::from_vec(output.name.as_bytes().to_vec());
        Some((ending_of(&name)?.to_owned(), output.hash))
    });
    let (folder, recording) = match recording(mount.source(), job) {
        Recording::File(path) => (mount.bucket().is_none().then(|| path.parent()), path.file_name().to_owned()),
        Recording::Remote(_) => (None, OsString::new()),
    };
    let is_first = job.outputs.is_empty() && job.placing.is_empty();
    Ok(Relocation { recording, folder, known: known.collect(), is_first })
}

fn unreadable(error: &ResultError, now: Timestamp) -> Fault {
    Fault::new(FaultKind::Unreadable, format!("the kept result cannot be read: {error}"), now)
}

/// Subtitles that the service did not send are laid out as it was asked to.
fn layout(params: &ParamFiles, order: &PurchaseKey) -> Layout {
    let config = params.load(&order.params).ok().and_then(|params| params.get("subtitles_config").cloned());
    config
        .and_then(|config| serde_json::from_value(config).ok())
        .map_or_else(Layout::default, |config| Layout::of(&config))
}

/// What was requested and is not in the result. What was sent is kept; where it is lost, the service's echo says it.
/// The result is read for that only where something can be missing: where an enrichment was requested, or the service
/// `tells_of_recognition`.
fn missing(
    raw: &[u8],
    params: &ParamFiles,
    order: &PurchaseKey,
    echo: Option<&Value>,
    tells_of_recognition: bool,
) -> Vec<MissingPart> {
    let sent = params.order(&order.params).map(|(sent, _)| Params::lenient(&Value::Object(sent)));
    let request = sent.unwrap_or_else(|_| echo.map(Params::lenient).unwrap_or_default());
    if request.requested().next().is_none() && !tells_of_recognition {
        return Vec::new();
    }
    let record = serde_json::from_slice::<Record<Delivered, IgnoredAny>>(raw);
    record.ok().and_then(|record| record.result).unwrap_or_default().missing(&request)
}

fn wanted(
    raw: Vec<u8>,
    params: &ParamFiles,
    source: &Source,
    job: &Job,
    order: &PurchaseKey,
    transcription: &TranscriptionId,
    now: Timestamp,
) -> Result<Rendered<impl Names + use<>>, Fault> {
    let (raw, record) = in_time(Cow::Owned(raw), job.sent.as_ref().and_then(SentAudio::cut))
        .map_err(|error| Fault::new(FaultKind::Asks, not_rendered(job, &error), now))?;
    let made_by = provenance(&record, job, order, transcription);
    let spoken = record.result.unwrap_or_default();
    let missing = missing(&raw, params, order, record.request_params.as_ref(), spoken.tells_of_recognition);
    let said = spoken.transcription.unwrap_or_default();
    let language = language(said.transcript()).map(str::to_owned);
    let unread = said.unread().words();
    let outputs = formats(source, job);
    // The largest is made last, of what it was read from: then nothing else of the answer is in memory.
    let bytes: Vec<Option<Vec<u8>>> = {
        let (transcript, subtitles) = (said.transcript(), said.own_subtitles());
        let finished = Finished { transcript, subtitles, raw: &raw, made_by: &made_by, layout: layout(params, order) };
        let others = outputs.iter().map(|format| (*format != Format::Json).then(|| render(*format, &finished)));
        others.collect()
    };
    drop(said);
    let mut raw = Some(raw.into_owned());
    let path = outputs_beside(source, job);
    let path = path.full();
    let vars = template_vars::of_outputs(source, job, &path);
    let one = |(format, bytes): (&Format, Option<Vec<u8>>)| {
        let name = source.name_as.render(&template_vars::of_output(&vars, language.as_deref(), *format));
        let name = name.map_err(|problem| Fault::new(FaultKind::Template, problem.to_string(), now))?;
        let bytes = bytes.unwrap_or_else(|| render_json(raw.take().unwrap_or_default(), &made_by));
        Ok(PendingOutput { candidates: candidates(&path, &name), bytes })
    };
    let wanted = outputs.iter().zip(bytes).map(one).collect::<Result<_, Fault>>()?;
    Ok(Rendered { wanted, language, missing, unread })
}

/// What was paid for stays where it is, whatever is wrong with it.
fn not_rendered(job: &Job, error: &serde_json::Error) -> String {
    format!(
        "no outputs can be made of the service's answer: {error}. The answer is kept as it came, in the folder `results` \
         of the state directory; nothing is bought again. `scribed retry {}` tries once more, with a later release perhaps",
        job.id
    )
}

fn provenance(
    record: &Record<Spoken, BoundedValue>,
    job: &Job,
    order: &PurchaseKey,
    transcription: &TranscriptionId,
) -> Provenance {
    Provenance {
        service: order.service.to_string(),
        transcription_id: transcription.to_string(),
        request_id: record.request_id.clone(),
        source_name: job.key.source.to_string(),
        source_path: template_vars::path_of(job),
        content_hash: order.content.to_string(),
        created: record.created_at.clone().unwrap_or_default(),
        program: format!("scribed {}", env!("CARGO_PKG_VERSION")),
    }
}

/// What was written for this job and for nobody else. Two files of one stem and one content share
/// their outputs; when one of them changes, the other's must stay.
async fn own_outputs(
    store: &dyn Store,
    mount: &Mount,
    job: &Job,
    now: Timestamp,
) -> Result<Vec<(OsString, Hash)>, Fault> {
    // What lies where outputs went before stays there.
    let (mut own, at) = (job.outputs.clone(), at(mount.source(), job));
    own.retain(|output| job.row.is_some() || output.at == at);
    if own.is_empty() {
        return Ok(Vec::new());
    }
    // Rows say where their outputs go: none of them takes another's place by its stem.
    if job.row.is_some() {
        return Ok(named(own));
    }
    let siblings = match mount.bucket() {
        Some(bucket) => bucket.of_stem(&job.key.path).await,
        None => {
            let (folder, path) = (mount.source().folder.clone(), job.key.path.clone());
            let listed = full_path(&folder, &path).parent().map(Path::to_owned).unwrap_or_default();
            blocking(move || siblings(&folder, &path).map_err(|error| explained(error, &listed))).await
        }
    };
    let siblings = siblings.map_err(|error| {
        let words = format!("cannot list the folder of the recording, to spare what other recordings share: {error}");
        Fault::new(FaultKind::Unwritable, words, now)
    })?;
    for sibling in siblings {
        let key = JobKey { source: job.key.source.clone(), path: sibling };
        if let Some(other) = store.find(&key).await.map_err(|error| store_fault(&error, now))? {
            let is_other = |output: &Output, shared: &Output| (&shared.name, &shared.at) != (&output.name, &output.at);
            own.retain(|output| other.outputs.iter().all(|shared| is_other(output, shared)));
        }
    }
    Ok(named(own))
}

fn named(outputs: Vec<Output>) -> Vec<(OsString, Hash)> {
    outputs.into_iter().map(|output| (OsString::from_vec(output.name.as_bytes().to_vec()), output.hash)).collect()
}

/// The folder that the outputs go to, where it is not the recording's. Rows say it themselves.
fn at(source: &Source, job: &Job) -> Option<RelPath> {
    let is_elsewhere = job.row.is_none() && source.place.is_some();
    is_elsewhere.then(|| RelPath::new(outputs_beside(source, job).parent().full().as_os_str().as_bytes()))
}

/// The files of the same stem beside this one.
fn siblings(folder: &Path, path: &RelPath) -> io::Result<Vec<RelPath>> {
    let path = Path::new(OsStr::from_bytes(path.as_bytes()));
    let parent = path.parent().unwrap_or(Path::new(""));
    let names = RootedPath::new(folder, parent).names()?.collect::<io::Result<Vec<_>>>()?;
    let is_sibling =
        |name: &OsString| Path::new(name).file_stem() == path.file_stem() && path.file_name() != Some(name);
    let siblings = names.into_iter().filter(is_sibling);
    Ok(siblings.map(|name| RelPath::new(parent.join(name).as_os_str().as_bytes())).collect())
}

fn put(
    mount: &Mount,
    job: &Job,
    wanted: Vec<PendingOutput<impl Names>>,
    ours: &OwnOutputs,
    syncs: &Syncs,
    now: Timestamp,
) -> Result<Vec<Output>, Fault> {
    let path = outputs_beside(mount.source(), job);
    let folder = path.parent();
    if job.row.is_none() && mount.source().place.is_some() {
        placed_folder(mount, job, &folder, now)?;
    } else if job.row.is_some() || path != below(&mount.source().folder, &job.key.path) {
        folder_elsewhere(mount, job, &folder, now)?;
    }
    // Asked with the folder open: what is written then goes where it belongs, even if the share is
    // unmounted under way, and never into its bare mount point.
    let is_there = || mount.there_blocking().is_ok() && mount.place_ready().is_ok();
    let at = at(mount.source(), job);
    let to = Destination { folder: &folder, access: access(mount, job) };
    let placed = place(&to, &is_there, wanted, ours, syncs).map_err(|error| unwritable(&error, mount, now))?;
    Ok(placed
        .into_iter()
        .map(|placed| Output { name: RelPath::new(placed.name.as_bytes()), hash: placed.hash, at: at.clone() })
        .collect())
}

/// Who may read the recording may read what is made of it; `None` where it lies elsewhere.
fn access(mount: &Mount, job: &Job) -> Option<Access> {
    let Recording::File(path) = recording(mount.source(), job) else { return None };
    Some(access_or_kept(&path, job.making.as_ref().and_then(|making| making.access.clone())))
}

/// The recording may be gone by now: then what is kept of it counts. Jobs of older releases keep nothing: whoever may
/// use its folder may read what is made of it, and where that is gone too, nobody else.
fn access_or_kept(recording: &RootedPath, kept: Option<Access>) -> Access {
    let folder = || access_of(&recording.parent()).ok();
    let private = || Access::private(rustix::process::getegid().as_raw());
    access_of(recording).ok().or(kept).or_else(folder).unwrap_or_else(private)
}

/// The recording, where it is a file of this machine.
fn file(mount: &Mount, job: &Job) -> Option<RootedPath> {
    match recording(mount.source(), job) {
        Recording::File(path) => Some(path),
        Recording::Remote(_) => None,
    }
}

/// The folder below `place` is there.
fn placed_folder(mount: &Mount, job: &Job, folder: &RootedPath, now: Timestamp) -> Result<(), Fault> {
    let failed = |words: String| Fault::new(FaultKind::Unwritable, format!("{words}; {KEPT}"), now);
    mount.place_ready().map_err(failed)?;
    let made = make_folder(mount.source(), file(mount, job).as_ref(), folder);
    made.map_err(|error| {
        failed(format!(
            "cannot make the folder {} for outputs: {}",
            folder.full().display(),
            said(&error, &folder.full())
        ))
    })
}

/// A folder of outputs that need not be the recording's own is there: made, or known to be no bare mount point.
fn folder_elsewhere(mount: &Mount, job: &Job, folder: &RootedPath, now: Timestamp) -> Result<(), Fault> {
    mount.there_blocking().map_err(|away| folder_away(&away, now))?;
    if job.row.is_some() {
        let may = PathPolicy::new(mount.source()).written(job);
        may.map_err(|denied| match denied.unwritable() {
            Some(words) => Fault::new(FaultKind::Unwritable, format!("{words}; {KEPT}"), now),
            None => denied.fault(mount.source(), job, now),
        })?;
    }
    let failed = |words: String| Fault::new(FaultKind::Unwritable, words, now);
    let (file, full) = (file(mount, job), folder.full());
    if mount.source().place.as_ref().is_some_and(|place| full.starts_with(place)) {
        mount.place_ready().map_err(|words| failed(format!("{words}; {KEPT}")))?;
    }
    let shown = full.display();
    make_folder(mount.source(), file.as_ref(), folder).map_err(|error| {
        failed(format!("cannot make the folder {shown} for outputs: {}; {KEPT}", said(&error, &full)))
    })?;
    let Some(path) = file else { return Ok(()) };
    let beside = path.parent() == *folder && !full.starts_with(&mount.source().folder);
    let is_bare = || folder.names().is_ok_and(|mut names| names.next().is_none());
    if beside && !path.exists() && is_bare() {
        return Err(failed(format!("{shown} is empty: it may be the bare mount point of a share; {KEPT}")));
    }
    Ok(())
}

fn unwritable(error: &PlaceError, mount: &Mount, now: Timestamp) -> Fault {
    match mount.there_blocking() {
        Ok(()) => Fault::new(FaultKind::Unwritable, error.to_string(), now),
        Err(away) => folder_away(&away, now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::missing::named;
    use crate::domain::names::ServiceName;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_outputs_of_one_job_are_placed_by_one_write_at_a_time() {
        let writing = Arc::new(Writing::default());
        let first = writing.begin(JobId(1)).unwrap();
        assert!(writing.begin(JobId(1)).is_none(), "an earlier one goes on in its thread");
        assert!(writing.begin(JobId(2)).is_some());
        drop(first);
        assert!(writing.begin(JobId(1)).is_some());
    }

    #[test]
    fn a_recording_that_is_gone_without_a_trace_opens_its_outputs_to_nobody_new() {
        let folder = tempfile::tempdir().unwrap();
        let set = |mode| std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let talk = RootedPath::new(folder.path(), "talk.wav");
        let mode = |kept: Option<u32>| {
            let kept = kept.map(|mode| Access { mode, ..Access::private(0) });
            access_or_kept(&talk, kept).mode_of(false, true)
        };
        set(0o751);
        assert_eq!((mode(None), mode(Some(0o660))), (0o640, 0o660));
        std::fs::write(talk.full(), "talk").unwrap();
        std::fs::set_permissions(talk.full(), std::fs::Permissions::from_mode(0o604)).unwrap();
        assert_eq!(mode(Some(0o660)), 0o604);
        let gone = RootedPath::new(folder.path(), "gone/talk.wav");
        assert_eq!(access_or_kept(&gone, None).mode_of(false, true), 0o600);
    }

    #[test]
    fn what_was_requested_is_known_by_what_was_sent_or_by_the_echo() {
        let state = tempfile::tempdir().unwrap();
        let files = ParamFiles::new(state.path());
        let raw = br#"{"status":"done","result":{"transcription":{"full_transcript":"a"},"summarization":null}}"#;
        let order = |params| PurchaseKey { service: ServiceName::new("x"), content: Hash::of(b"c"), params };
        let missing = |params, echo: Option<&Value>| named(&missing(raw, &files, &order(params), echo, false));
        let sent = files.keep(br#"{"summarization":true}"#).unwrap();
        assert_eq!(missing(sent, None), "summarization");
        let lost = Hash::of(b"lost");
        let echo = serde_json::json!({ "summarization": true, "diarization": false, "model": 5 });
        assert_eq!((missing(lost, Some(&echo)), missing(lost, None)), ("summarization".to_owned(), String::new()));
        assert_eq!(
            missing(files.keep(b"{}").unwrap(), Some(&echo)),
            "",
            "the echo counts only where the other is lost"
        );
    }

    /// Nobody requests it, and some services say it all the same. Nothing else is looked for where nothing was requested.
    #[test]
    fn that_speech_was_not_understood_is_found_where_nothing_was_requested() {
        let state = tempfile::tempdir().unwrap();
        let files = ParamFiles::new(state.path());
        let params = files.keep(b"{}").unwrap();
        let order = PurchaseKey { service: ServiceName::new("x"), content: Hash::of(b"c"), params };
        let missing_in = |result: &str| {
            let raw = format!(r#"{{"status":"done","result":{{"transcription":{{}},{result}}}}}"#);
            let (raw, record) = in_time(Cow::Owned(raw.into_bytes()), None).unwrap();
            let tells = record.result.unwrap().tells_of_recognition;
            (tells, named(&missing(&raw, &files, &order, None, tells)))
        };
        let failed = r#"{"success":false,"error":{"message":"noise"}}"#;
        for key in ["recognition", "recogn\\u0069tion"] {
            assert_eq!(missing_in(&format!(r#""{key}":{failed}"#)), (true, "recognition".to_owned()), "{key}");
        }
        assert_eq!(missing_in(r#""recognition":{"success":true,"is_empty":true}"#), (true, String::new()));
        assert_eq!(missing_in(r#""recognition":null"#), (false, String::new()));
        assert_eq!(missing_in(&format!(r#""summarization":{failed}"#)), (false, String::new()));
    }

    #[test]
    fn where_the_folder_cannot_be_listed_nothing_counts_as_ours_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("talk.mp4"), b"").unwrap();
        let talk = RelPath::new("talk.wav");
        assert_eq!(siblings(folder.path(), &talk).unwrap(), [RelPath::new("talk.mp4")]);
        assert!(siblings(&folder.path().join("gone"), &talk).is_err());
    }
}
