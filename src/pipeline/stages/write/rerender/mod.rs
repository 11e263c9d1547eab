//! Renders the outputs of a written job again, from its kept result and with the settings of now. It asks and pays no
//! service, and changes only files that scribed wrote and that nobody edited. Start reading at `decide.rs`.
//!
//! Killed at any moment, it loses no file, and the job names every file that scribed wrote: names and hashes are stored
//! before anything is published, and an output that another one stands for is removed last. `decide.rs` decides,
//! `carry_out.rs` acts.

mod carry_out;
mod decide;
mod files;
mod other_rows;
mod pages;
#[cfg(test)]
mod persons_files;
mod settings;
mod siblings;

pub(crate) use decide::{FileState, KnownOutput, Obstacle, RenderOptions};
pub(crate) use files::{look, may_be_text, path_of, shown_path};
pub(crate) use other_rows::OutputsOfRows;
pub(crate) use pages::{RenderParts, RenderedJob, is_translation as is_translation_of, render_jobs};
pub(crate) use settings::{JobSettings, may_differ, rendered_now, settings_hash};
pub(crate) use siblings::Siblings;

use crate::blocking::blocking;
use crate::domain::fault::Fault;
use crate::domain::format::Format;
use crate::domain::job::{Job, Output};
use crate::domain::names::{Hash, JobId, Timestamp, TranscriptionId};
use crate::domain::path::RelPath;
use crate::domain::stage::Stage;
use crate::output::publish::{Names, PendingOutput, RESULT_KEPT};
use crate::output::render_result::OutputKind;
use crate::output::results::describe_removal;
use crate::pipeline::stages::write::WriteContext;
use crate::pipeline::stages::write::own_outputs::output_folder;
use crate::pipeline::stages::write::render::render_kept_result;
use crate::source::metadata::presence::Presence;
use crate::source::mount::source_mount::{Mount, Storage};
use crate::store::contract::StoreError;
use carry_out::Work;
use decide::{Action, Fate, RenderPlan, WantedOutput, decide};
use other_rows::taken_by_other_rows;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit};

/// What is done with one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RenderChange {
    /// The output is written for the first time.
    Written,
    /// The output is replaced by a new version.
    Replaced,
    /// The output gets another name or place.
    Moved,
    /// The missing output is written again.
    Restored,
    /// The output is removed.
    Removed,
    /// A person edited the file: it stays.
    Edited,
    /// A person removed the file: it stays removed.
    Missing,
    /// Its format is no longer configured: it stays.
    Unconfigured,
    /// The file cannot be read: it stays.
    Unreadable,
    /// Something else than a file has the name: it stays.
    NotAFile,
}

impl RenderChange {
    /// Returns the name in `--json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Replaced => "replaced",
            Self::Moved => "moved",
            Self::Restored => "restored",
            Self::Removed => "removed",
            Self::Edited => "edited",
            Self::Missing => "missing",
            Self::Unconfigured => "unconfigured",
            Self::Unreadable => "unreadable",
            Self::NotAFile => "not_a_file",
        }
    }

    /// Whether the file is written or removed.
    pub fn is_made(self) -> bool {
        matches!(self, Self::Written | Self::Replaced | Self::Moved | Self::Restored | Self::Removed)
    }
}

/// What is done with one file, by its path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderedFile {
    pub change: RenderChange,
    pub path: RelPath,
    /// The earlier path of an output that is moved.
    #[serde(default)]
    pub from: Option<RelPath>,
    /// Whether `scribed accept` can make an edited file the text of its recording.
    #[serde(default)]
    pub may_be_text: bool,
}

impl RenderedFile {
    /// Returns what is done with a file under the name that it has.
    fn of(mount: &Mount, job: &Job, change: RenderChange, output: &Output) -> Self {
        let may_be_text = change == RenderChange::Edited && may_be_text(mount, job, output);
        Self { change, path: shown_path(mount, job, output), from: None, may_be_text }
    }
}

/// What is done with a job's files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rerendered {
    /// All files but those that stay as they are.
    pub files: Vec<RenderedFile>,
    /// Neither the recording nor any output exists: the job is left alone.
    pub is_gone: bool,
}

/// Why the outputs of a job are not rendered again.
#[derive(Debug, thiserror::Error)]
pub enum NotRendered {
    #[error("it is not written")]
    NotWritten,
    #[error(
        "its kept result is missing or damaged; `scribed verify --repair {0}` fetches it from the service again at no \
         cost, if an output is missing and the service still has it"
    )]
    NoResult(JobId),
    #[error(
        "its kept result was {}; `scribed verify --repair {job}` fetches it from the service again at no cost, if an \
         output is missing and the service still has it",
        describe_removal(*at)
    )]
    RemovedForAge { job: JobId, at: Timestamp },
    #[error("scribed is writing its outputs at this moment; try again")]
    Moving,
    #[error("{0}")]
    Away(String),
    #[error("{}", .0.words.replace(RESULT_KEPT, "the result is kept: run `scribed render` again"))]
    Fault(Fault),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Fault> for NotRendered {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// How jobs are rendered.
#[derive(Debug, Clone, Default)]
pub struct RenderRun {
    pub options: RenderOptions,
    /// Change nothing, and say what would be done.
    pub dry_run: bool,
    /// The names in the folders of recordings, for all jobs of a request.
    pub siblings: Arc<Siblings>,
    pub slots: Arc<RenderSlots>,
}

/// What bounds the memory of rendering.
#[derive(Debug)]
pub struct RenderSlots {
    /// How many results are rendered at a time: one for each processor.
    rendering: Semaphore,
    /// The KiB of rendered outputs that may wait for the disk.
    waiting: Semaphore,
}

/// The most KiB of rendered outputs that wait for the disk at a time. A job with more waits until no other has any.
const MAX_WAITING_KIB: u32 = 64 * 1024;

impl Default for RenderSlots {
    fn default() -> Self {
        Self {
            rendering: Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)),
            waiting: Semaphore::new(MAX_WAITING_KIB as usize),
        }
    }
}

impl RenderSlots {
    /// Waits until rendered outputs have room in memory. They have it until the permit is dropped.
    async fn hold(&self, outputs: &[Pending]) -> Option<SemaphorePermit<'_>> {
        let kib = outputs.iter().map(|output| output.bytes.len() / 1024 + 1).sum::<usize>();
        let kib = u32::try_from(kib).unwrap_or(MAX_WAITING_KIB).min(MAX_WAITING_KIB);
        // The semaphore is never closed.
        self.waiting.acquire_many(kib).await.ok()
    }
}

/// Renders the outputs of a job again, where its settings or files differ.
///
/// # Errors
/// [`NotRendered`]. What was published before stays, and the job knows it.
pub async fn rerender(
    context: &WriteContext<'_>,
    mount: &Arc<Mount>,
    job: &Job,
    run: &RenderRun,
) -> Result<Rerendered, NotRendered> {
    if !matches!(job.stage, Stage::Written { .. }) {
        return Err(NotRendered::NotWritten);
    }
    mount.there().await.map_err(|away| NotRendered::Away(away.to_string()))?;
    let (settings, known) = examine(context, mount, job).await?;
    if let Some(gone) = check_missing(mount, job, &known).await? {
        return Ok(gone);
    }
    if is_as_rendered(mount, job, &settings, &known, run) {
        let files = known.iter().filter_map(|known| unchanged_file(mount, job, known, &settings));
        return Ok(Rerendered { files: files.collect(), is_gone: false });
    }
    let guard = context.writing.begin(job.id).ok_or(NotRendered::Moving)?;
    // Another write may have ended since the job was read.
    if !context.store.job(job.id).await?.is_some_and(|now| has_same_outputs(&now, job)) {
        return Err(NotRendered::Moving);
    }
    // The semaphore is never closed.
    let slot = run.slots.rendering.acquire().await.ok();
    let (wanted, pending) = wanted_outputs(context, mount, job, &settings).await?;
    let _held = run.slots.hold(&pending).await;
    drop(slot);
    let of_siblings = siblings::shared_outputs(&run.siblings, context.store, mount, job, context.clock.now()).await?;
    let services = (context.store, context.clock);
    let of_rows = taken_by_other_rows(&context.writing.of_rows, services, mount, job, &known).await?;
    let known = mark_shared(known, of_siblings.iter().chain(&of_rows));
    let at = output_folder(mount.source(), job);
    let plan = decide(&wanted, known, at.as_ref(), run.options);
    let work = Work { context, mount, job, settings: &settings, at, of_siblings: &of_siblings };
    match run.dry_run {
        true => Ok(Rerendered { files: work.forecast(&plan, &wanted).await, is_gone: false }),
        false => Ok(Rerendered { files: work.carry_out(plan, pending, guard).await?, is_gone: false }),
    }
}

/// Whether nothing has changed the outputs of a job, or its text.
pub fn has_same_outputs(now: &Job, then: &Job) -> bool {
    (&now.stage, &now.outputs, &now.earlier, &now.pending_outputs, &now.accepted)
        == (&then.stage, &then.outputs, &then.earlier, &then.pending_outputs, &then.accepted)
}

/// Collects the settings of a job, and looks at its files.
async fn examine(
    context: &WriteContext<'_>,
    mount: &Arc<Mount>,
    job: &Job,
) -> Result<(JobSettings, Vec<KnownOutput>), Fault> {
    let now = context.clock.now();
    let (params, owned_mount, owned_job) = (Arc::clone(context.params), Arc::clone(mount), job.clone());
    let is_here = matches!(mount.storage(), Storage::Folder(_));
    let (settings, known) = blocking(move || {
        let settings = JobSettings::of(owned_mount.source(), &params, &owned_job, now);
        (settings, is_here.then(|| files::look_in_folder(&owned_mount, &owned_job)))
    })
    .await;
    let known = match known {
        Some(known) => known,
        None => look(mount, job).await,
    };
    let mut settings = settings?;
    // A text alone has no times, and nothing was recognised.
    let is_text = |format| matches!(format, Format::Txt | Format::PlainTxt);
    if job.is_accepted_only() && job.accepted_text().is_some_and(|accepted| is_text(accepted.format)) {
        settings
            .formats
            .retain(|format| is_text(*format) || matches!(format, Format::Md | Format::Html | Format::Docx));
    }
    Ok((settings, known))
}

/// Returns the answer for a job whose recording and outputs are gone, or were taken over by the job of its new path.
/// Files of a folder that is away are not missing.
async fn check_missing(
    mount: &Arc<Mount>,
    job: &Job,
    known: &[KnownOutput],
) -> Result<Option<Rerendered>, NotRendered> {
    let is_missing = |known: &KnownOutput| known.state == FileState::Missing;
    let has_output = known.iter().any(|known| known.is_current && !is_missing(known));
    if has_output && !known.iter().any(is_missing) {
        return Ok(None);
    }
    mount.check_not_bare().await.map_err(|away| NotRendered::Away(away.to_string()))?;
    let recording = crate::pipeline::media_file::MediaFile::of(mount, job);
    match recording.presence(mount).await {
        Presence::Unknown(words) => Err(NotRendered::Away(words)),
        Presence::Gone if !has_output => Ok(Some(Rerendered { files: Vec::new(), is_gone: true })),
        Presence::There | Presence::Gone => Ok(None),
    }
}

/// Whether nothing can be different: the outputs were rendered with the settings of now by this release, and each file
/// is as it was written, or is left alone.
fn is_as_rendered(mount: &Mount, job: &Job, settings: &JobSettings, known: &[KnownOutput], run: &RenderRun) -> bool {
    let stays = |known: &KnownOutput| match known.state {
        FileState::Ours(_) => {
            known.is_current || known.is_accepted || !run.options.prune && is_unconfigured(known, settings)
        }
        FileState::Edited | FileState::NotAFile(_) | FileState::Unreadable => true,
        FileState::Missing => known.is_current && !run.options.restore,
    };
    job.rendered_as.as_ref() == Some(&rendered_now(mount.source()))
        && job.pending_outputs.is_empty()
        && settings.are_those_of(job)
        && known.iter().all(stays)
}

/// Whether earlier outputs left the file, and its format is no longer configured.
fn is_unconfigured(known: &KnownOutput, settings: &JobSettings) -> bool {
    let format = Format::of_name(&known.output.name.lossy());
    !known.is_current && format.is_none_or(|format| !settings.formats.contains(&format))
}

fn unchanged_file(mount: &Mount, job: &Job, known: &KnownOutput, settings: &JobSettings) -> Option<RenderedFile> {
    let change = match known.state {
        FileState::Ours(_) if !known.is_accepted && is_unconfigured(known, settings) => RenderChange::Unconfigured,
        FileState::Ours(_) => return None,
        FileState::Edited => RenderChange::Edited,
        FileState::NotAFile(_) => RenderChange::NotAFile,
        FileState::Missing => RenderChange::Missing,
        FileState::Unreadable => RenderChange::Unreadable,
    };
    Some(RenderedFile::of(mount, job, change, &known.output))
}

/// An output that is about to be written: its names, and its content.
type Pending = PendingOutput<std::vec::IntoIter<OsString>>;

/// Renders the kept result with these settings.
async fn wanted_outputs(
    context: &WriteContext<'_>,
    mount: &Arc<Mount>,
    job: &Job,
    settings: &JobSettings,
) -> Result<(Vec<WantedOutput>, Vec<Pending>), NotRendered> {
    let Stage::Written { purchase_key, transcription, .. } = &job.stage else { return Err(NotRendered::NotWritten) };
    let set = Job { request_record: Some(Box::new(settings.record(job))), ..job.clone() };
    let rendered =
        render_kept_result(context, mount.source(), &set, purchase_key, transcription, context.clock.now()).await?;
    let Some(rendered) = rendered else { return Err(no_result(context, job, transcription).await) };
    Ok(rendered.kinds.into_iter().zip(rendered.wanted).map(named).unzip())
}

async fn no_result(context: &WriteContext<'_>, job: &Job, transcription: &TranscriptionId) -> NotRendered {
    let (results, id) = (Arc::clone(context.results), transcription.clone());
    match blocking(move || results.removed_at(&id)).await {
        Some(at) => NotRendered::RemovedForAge { job: job.id, at },
        None => NotRendered::NoResult(job.id),
    }
}

/// Whether a file is a translation: as an output of the job, or by the language in its name.
async fn is_translation(
    context: &WriteContext<'_>,
    mount: &Arc<Mount>,
    job: &Job,
    output: &Output,
) -> Result<bool, NotRendered> {
    let (settings, mut known) = examine(context, mount, job).await?;
    let is_it = |one: &Output| one.is_same_file(output);
    known.retain(|known| known.is_current || is_it(&known.output));
    if !known.iter().any(|known| is_it(&known.output)) {
        let output = output.clone();
        known.push(KnownOutput {
            output,
            state: FileState::Edited,
            is_current: true,
            is_accepted: false,
            is_shared: false,
        });
    }
    let (wanted, _) = wanted_outputs(context, mount, job, &settings).await?;
    Ok(decide::kind_of(&wanted, known, output_folder(mount.source(), job).as_ref(), is_it)
        .is_some_and(|kind| kind.is_translation))
}

/// Returns an output with its names.
fn named((kind, output): (OutputKind, PendingOutput<impl Names>)) -> (WantedOutput, Pending) {
    let names: Vec<OsString> = output.candidates.collect();
    let hash = Hash::of(&output.bytes);
    let pending = PendingOutput { candidates: names.clone().into_iter(), bytes: output.bytes };
    (WantedOutput { kind, hash, names }, pending)
}

fn mark_shared<'o>(mut known: Vec<KnownOutput>, shared: impl Iterator<Item = &'o Output> + Clone) -> Vec<KnownOutput> {
    for known in &mut known {
        known.is_shared = shared.clone().any(|shared| shared.is_same_file(&known.output));
    }
    known
}

/// Returns what is told of a plan, apart from the outputs that are written.
fn told_of_rest(mount: &Mount, job: &Job, plan: &RenderPlan) -> Vec<RenderedFile> {
    let file = |change, output: &Output| RenderedFile::of(mount, job, change, output);
    let stays = |output: &Output, state| match state {
        FileState::Unreadable => file(RenderChange::Unreadable, output),
        FileState::NotAFile(_) => file(RenderChange::NotAFile, output),
        _ => file(RenderChange::Edited, output),
    };
    let wanted = plan.actions.iter().filter_map(|action| match action {
        Action::Leave(output, state) => Some(stays(output, *state)),
        Action::StayMissing(output) => Some(file(RenderChange::Missing, output)),
        _ => None,
    });
    let rest = plan.rest.iter().filter_map(|(known, fate)| match fate {
        // An accepted file counts as unedited.
        Fate::Stay if matches!(known.state, FileState::Ours(_)) => None,
        Fate::Stay => Some(stays(&known.output, known.state)),
        Fate::Unconfigured => Some(file(RenderChange::Unconfigured, &known.output)),
        Fate::Remove | Fate::Prune => Some(file(RenderChange::Removed, &known.output)),
        Fate::Forget => None,
    });
    wanted.chain(rest).collect()
}

/// Returns the path of an output as its name in the folder of outputs.
fn path_in(mount: &Mount, job: &Job, name: &std::ffi::OsStr, at: Option<&RelPath>) -> RelPath {
    let output = Output { name: RelPath::new(name.as_bytes()), hash: Hash::OF_NOTHING, at: at.cloned() };
    shown_path(mount, job, &output)
}
