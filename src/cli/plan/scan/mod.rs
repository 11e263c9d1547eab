//! Scans the sources for a plan: finds the recordings, looks up their jobs, and measures their lengths. Of a tree or a
//! manifest, only the sizes of its files are held in memory, and which rows name the same recording.

use crate::blocking::blocking;
use crate::cli::commands::plan::KnownFiles;
use crate::cli::plan::duplicates::{Candidate, Duplicates, ReadContent, Sizes, read};
use crate::cli::plan::manifests::ManifestTotals;
use crate::cli::plan::report::PlanReport;
use crate::cli::plan::totals::{PlanPart, PlannedSplit};
use crate::cli::render::progress::Ticker;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::unsupported::UnsupportedCheck;
use crate::config::model::{Config, Existing, Source};
use crate::control::explain::forecast::{Forecast, forecast};
use crate::control::plan::format::{PlanRow, PlanWriter};
use crate::control::transport::protocol::MAX_LOOKUP_NAMES;
use crate::domain::budget::Budget;
use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::manifest_row::ManifestRow;
use crate::domain::names::{ServiceName, SourceName};
use crate::domain::path::RelPath;
use crate::domain::split::RecordingLimits;
use crate::domain::stage::{AudioAmount, Skip, Stage, StageKind};
use crate::domain::track_selection::TrackSelection;
use crate::manifests::format::find::is_receipt;
use crate::media::decode::{DecodeError, Media};
use crate::media::length::cache::LengthCache;
use crate::pipeline::budget::hours;
use crate::pipeline::budget::pass_limits::PathSelection;
use crate::pipeline::budget::plan_allowlist::RowMark;
use crate::pipeline::stages::foreign_subtitles::{
    are_all_ours, contains_subtitles, list_subtitles, name_in_queue, named_after,
};
use crate::rooted_path::{LinkInPath, RootedPath};
use crate::source::filter::rules::Rule;
use crate::source::mount::source_mount::Mount;
use crate::source::recording_place::{Recording, recording};
use crate::source::scan::inventory::Sighting;
use futures_util::StreamExt;
use rows::{ScannedManifest, named_row};
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

mod rows;

/// The name that `--json` and a saved plan have for a job that is in the queue and was not sent yet. The text says
/// `queued`.
const ON_ITS_WAY: &str = "on its way";

/// How many recordings are measured at the same time. Reading a header is a small read: on a network share, many of
/// them at once take hardly longer than one.
const MAX_MEASURED_AT_ONCE: usize = 16;

/// Scans the sources, and counts what a pass would send.
pub struct Planner<'a> {
    context: &'a Context,
    list: bool,
    queue: &'a KnownFiles,
    /// Which recordings are planned; `None` plans all.
    pub only: Option<PathSelection>,
    report: PlanReport,
    prices: &'a BTreeMap<ServiceName, f64>,
    /// What each service accepts of one recording.
    accepted: BTreeMap<ServiceName, RecordingLimits>,
    budget: &'a Budget,
    lengths: Arc<LengthCache>,
    unsupported: Arc<UnsupportedCheck>,
    repeated_sizes: HashSet<u64>,
    duplicates: Duplicates,
    /// The manifests of each source, from the first reading, which counts the sizes.
    scanned_manifests: BTreeMap<SourceName, Vec<ScannedManifest>>,
    /// The tags of the jobs whose rows were counted.
    counted_rows: HashSet<[u8; 16]>,
    /// The jobs that invalid rows may belong to.
    named_by_invalid_rows: HashSet<[u8; 16]>,
    /// The folders of all sources: the outputs of one source may be in the folder of another.
    folders: Vec<(SourceName, PathBuf)>,
    writer: Option<PlanWriter>,
    progress: Ticker,
    total_files: u64,
    files_read: u64,
}

/// What becomes of a recording that would be sent.
enum PlannedFile {
    Sent,
    /// It gets the result of another recording.
    Duplicate,
    /// It is longer than a budget ever allows.
    NeverFits,
}

impl<'a> Planner<'a> {
    /// Returns a planner that has not scanned anything yet.
    pub fn new(
        context: &'a Context,
        list: bool,
        queue: &'a KnownFiles,
        config: &'a Config,
        writer: Option<PlanWriter>,
    ) -> Self {
        Self {
            context,
            list,
            queue,
            only: None,
            report: PlanReport::default(),
            prices: &config.prices,
            accepted: config
                .services
                .iter()
                .map(|(name, service)| (name.clone(), service.terms().limits.recording))
                .collect(),
            budget: &config.budget,
            lengths: Arc::new(LengthCache::new(&config.state)),
            unsupported: Arc::new(UnsupportedCheck::new(config)),
            repeated_sizes: HashSet::new(),
            duplicates: Duplicates::default(),
            scanned_manifests: BTreeMap::new(),
            counted_rows: HashSet::new(),
            named_by_invalid_rows: HashSet::new(),
            folders: config.sources.iter().map(|source| (source.name.clone(), source.folder.clone())).collect(),
            writer,
            progress: Ticker::new(context),
            total_files: 0,
            files_read: 0,
        }
    }

    /// Returns the report, and the writer of the saved plan if there is one.
    pub fn end(self) -> (PlanReport, Option<PlanWriter>) {
        self.progress.clear();
        (self.report, self.writer)
    }

    /// Counts the files of all available sources, and finds the sizes that more than one file has.
    pub async fn count(&mut self, mounts: &BTreeMap<SourceName, Arc<Mount>>) -> Result<(), CommandError> {
        let mut sizes = Sizes::default();
        for mount in mounts.values() {
            if mount.check_now().await.is_err() {
                continue;
            }
            if mount.source().reads_manifests() {
                self.collect_repeats(mount, &mut sizes).await;
                continue;
            }
            let (mut sightings, surveyor) = survey(mount);
            let mut batch = Vec::with_capacity(MAX_LOOKUP_NAMES);
            while sightings.recv_many(&mut batch, MAX_LOOKUP_NAMES).await > 0 {
                for sighting in batch.drain(..) {
                    if let Sighting::Taken(path, stamp) = sighting
                        && self.has_path(&path)
                    {
                        sizes.add(stamp.size);
                    }
                }
                self.progress.tick(|| format!("searching for files: {} so far", sizes.count()));
            }
            surveyor.await.map_err(std::io::Error::other)?;
        }
        self.total_files = sizes.count();
        self.repeated_sizes = sizes.repeated();
        Ok(())
    }

    /// Plans all recordings of a source.
    pub async fn source(&mut self, mount: &Arc<Mount>) -> Result<(), CommandError> {
        if let Err(away) = mount.check_now().await {
            self.report.away.push(away.to_string());
            return Ok(());
        }
        if mount.source().reads_manifests() {
            return self.manifests(mount).await;
        }
        let (mut sightings, surveyor) = survey(mount);
        let mut batch = Vec::with_capacity(MAX_LOOKUP_NAMES);
        while sightings.recv_many(&mut batch, MAX_LOOKUP_NAMES).await > 0 {
            self.plan_sightings(mount, batch.drain(..)).await?;
        }
        surveyor.await.map_err(|error| std::io::Error::other(error).into())
    }

    async fn plan_sightings(
        &mut self,
        mount: &Arc<Mount>,
        sightings: impl Iterator<Item = Sighting>,
    ) -> Result<(), CommandError> {
        let source = mount.source();
        let (mut taken, mut passed_over) = (Vec::new(), Vec::new());
        for sighting in sightings {
            match sighting {
                Sighting::Taken(path, _) | Sighting::PassedOver(path, _) if !self.has_path(&path) => {}
                Sighting::Taken(path, stamp) => taken.push((path, stamp)),
                Sighting::PassedOver(path, rule) => passed_over.push((path, rule)),
                Sighting::Trouble(words) => self.report.troubles.push(words),
            }
        }
        self.count_passed_over(source, passed_over).await?;
        let candidates = self.find_candidates(mount, taken).await?;
        self.plan_sent(mount, candidates, None).await
    }

    /// Whether `--only` selects a path below its source's folder.
    fn has_path(&self, path: &RelPath) -> bool {
        self.only.as_ref().is_none_or(|only| only.has_path(path.as_bytes()))
    }

    /// Whether `--only` selects the recording of a row.
    fn has_row(&self, key: &JobKey, row: &ManifestRow) -> bool {
        self.only.as_ref().is_none_or(|only| only.has(key, Some(row)))
    }

    /// Counts files that the source ignores. Scribed's own files are counted apart and not listed: nobody expects a job
    /// for them.
    async fn count_passed_over(
        &mut self,
        source: &Source,
        passed_over: Vec<(RelPath, Rule)>,
    ) -> Result<(), CommandError> {
        let (by_pattern, others): (Vec<_>, Vec<_>) =
            passed_over.into_iter().partition(|(_, rule)| matches!(rule, Rule::NotIncluded | Rule::Excluded));
        let mut are_outputs = vec![false; by_pattern.len()];
        for (name, folder) in &self.folders {
            let key = |(number, (path, _)): (usize, &(RelPath, Rule))| {
                let full_path = source.folder.join(OsStr::from_bytes(path.as_bytes()));
                let below = full_path.strip_prefix(folder).ok()?.as_os_str().as_bytes().to_owned();
                Some((number, JobKey { source: name.clone(), path: RelPath::new(below) }))
            };
            let (numbers, keys): (Vec<usize>, Vec<JobKey>) = by_pattern.iter().enumerate().filter_map(key).unzip();
            if !keys.is_empty() {
                let known = self.queue.look_up(keys, Vec::new()).await?;
                numbers.into_iter().zip(known).for_each(|(number, known)| are_outputs[number] |= known.is_output);
            }
        }
        let by_pattern = by_pattern.into_iter().zip(are_outputs);
        let others = others.into_iter().map(|(path, rule)| {
            let is_from_scribed = matches!(rule, Rule::Marker | Rule::OwnFolder | Rule::OurOutput);
            ((path, rule), is_from_scribed)
        });
        for ((path, rule), is_from_scribed) in by_pattern.chain(others) {
            if is_from_scribed || is_a_receipt(&path) {
                self.report.own += 1;
                continue;
            }
            let words = rule.to_string();
            let why = words.trim_start_matches("ignored: ");
            self.print_entry(&DisplayName::file(source, &path), "passed over", why)?;
            self.report.count_filtered(words);
        }
        Ok(())
    }

    /// Plans recordings that would be sent. `listed`: the totals of the manifest whose rows order them.
    async fn plan_sent(
        &mut self,
        mount: &Arc<Mount>,
        candidates: Vec<Candidate>,
        mut listed: Option<&mut ManifestTotals>,
    ) -> Result<(), CommandError> {
        let source = mount.source();
        let measured = match source.is_local() {
            true => self.measure(source, candidates).await,
            // Objects of a bucket are not read before they are sent.
            false => candidates.into_iter().map(|file| (file, ReadContent::default(), None)).collect(),
        };
        let (mut files, mut lengths) = (Vec::new(), Vec::new());
        for (file, read, audio) in measured {
            match (&read.problem, &mut listed) {
                (Some(problem), Some(listed)) => self.count_failing(source, &file, problem, listed)?,
                (Some(problem), None) => {
                    self.print_entry(&DisplayName::of(source, &file), "to be fixed", problem)?;
                    *self.report.needs_fix.entry(problem.clone()).or_default() += 1;
                }
                _ => {
                    files.push((file, read));
                    lengths.push(audio);
                }
            }
        }
        let duplicates = self.duplicates.find_duplicates(self.queue, source, &files).await?;
        for (((file, read), audio), is_duplicate) in files.iter().zip(lengths).zip(duplicates) {
            self.report.incomplete(&source.name, &read.template, &read.missing);
            self.report.without_effect(&source.name, &read.template, read.without_effect.as_deref());
            let planned = self.plan_file(source, file, audio, is_duplicate)?;
            if let Some(listed) = &mut listed {
                *match planned {
                    PlannedFile::Sent => &mut listed.sent,
                    PlannedFile::Duplicate => &mut listed.copies,
                    PlannedFile::NeverFits => &mut listed.unfit,
                } += 1;
            }
        }
        Ok(())
    }

    /// Counts a row whose job would fail.
    fn count_failing(
        &mut self,
        source: &Source,
        file: &Candidate,
        problem: &str,
        listed: &mut ManifestTotals,
    ) -> Result<(), CommandError> {
        listed.failing += 1;
        let Some(row) = &file.row else { return Ok(()) };
        self.report.lists.fix(listed, row.number, &format!("row {}: {problem}", row.number));
        Ok(self.print_entry(&named_row(source, row), "fails", problem)?)
    }

    /// Returns the files that would be sent, and counts the others.
    async fn find_candidates(
        &mut self,
        mount: &Arc<Mount>,
        taken: Vec<(RelPath, Stamp)>,
    ) -> Result<Vec<Candidate>, CommandError> {
        let source = mount.source();
        let key = |path: &RelPath| JobKey { source: source.name.clone(), path: path.clone() };
        let sizes = taken.iter().map(|(_, stamp)| stamp.size).collect();
        let known = self.queue.look_up(taken.iter().map(|(path, _)| key(path)).collect(), sizes).await?;
        let mut candidates = Vec::new();
        self.files_read += taken.len() as u64;
        for ((path, stamp), known) in taken.into_iter().zip(known) {
            if known.is_output {
                self.report.own += 1;
                continue;
            }
            let candidate = Candidate {
                key: key(&path),
                stamp,
                forecast: forecast(known.job.as_ref(), &stamp),
                has_same_size: known.alike,
                follows: known.job.as_ref().is_some_and(|job| job.stage.kind() == StageKind::Following),
                row: None,
                announced: None,
            };
            let counted = self.unless_subtitled(mount, candidate, known.job.as_ref()).await?;
            candidates.extend(self.count_unless_sent(source, counted)?);
        }
        Ok(candidates)
    }

    /// Changes the forecast to "skipped" if a subtitle that scribed did not write is beside the recording. A job that
    /// was skipped for such a subtitle becomes new if the subtitle is gone or the source's setting `existing` allows it
    /// now.
    async fn unless_subtitled(
        &self,
        mount: &Arc<Mount>,
        mut file: Candidate,
        job: Option<&Job>,
    ) -> Result<Candidate, CommandError> {
        let was_subtitled = job.is_some_and(is_skipped_for_subtitle);
        if matches!(file.forecast, Forecast::New | Forecast::Reordered) || was_subtitled {
            let skip = match self.is_subtitled(mount, &file).await? {
                true => Some(Skip::Subtitled),
                false => has_tracks(mount.source(), &file).await.then_some(Skip::SubtitledInside),
            };
            file.forecast = match skip {
                Some(skip) => Forecast::Skipped(skip.describe().to_owned()),
                None if was_subtitled => Forecast::New,
                None => file.forecast,
            };
        }
        Ok(file)
    }

    /// Returns the recording if it would be sent; otherwise counts it.
    fn count_unless_sent(&mut self, source: &Source, file: Candidate) -> Result<Option<Candidate>, CommandError> {
        if file.forecast.is_sent() {
            return Ok(Some(file));
        }
        let (what, why) = describe(&file.forecast);
        self.print_entry(&DisplayName::of(source, &file), what, why)?;
        self.report.add(&file.forecast);
        Ok(None)
    }

    /// Whether a subtitle that scribed did not write is beside the recording, and the source skips such recordings.
    async fn is_subtitled(&self, mount: &Arc<Mount>, file: &Candidate) -> Result<bool, CommandError> {
        let source = mount.source();
        if source.existing == Existing::Transcribe {
            return Ok(false);
        }
        let (shared_source, job) = (Arc::clone(source), file.job());
        let (job, (folder, path)) = match (&source.output_folder, &file.row) {
            (None, None) => (job, (RootedPath::new(&source.folder, ""), file.key.path.clone())),
            _ => blocking(move || (job.clone(), named_after(&shared_source, &job))).await,
        };
        let found = match list_subtitles(mount, &folder, &path).await {
            // The output folder is created when the first output is written.
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder.full() != source.folder => {
                return Ok(false);
            }
            // With a link in the path, the job waits until the link is gone.
            Err(error) if LinkInPath::of(&error).is_some() => return Ok(false),
            found => found?,
        };
        let key = |path: &RelPath| JobKey { path: name_in_queue(&job, path), ..job.key.clone() };
        let keys: Vec<JobKey> = found.iter().map(key).collect();
        if keys.is_empty() {
            return Ok(false);
        }
        let known = self.queue.look_up(keys, Vec::new()).await?;
        let foreign: Vec<RelPath> =
            found.into_iter().zip(known).filter(|(_, known)| !known.is_output).map(|(path, _)| path).collect();
        Ok(!are_all_ours(mount, &folder, foreign).await)
    }

    /// Reads and measures files without sending them. The last value is the length, or the length that the row
    /// declares; `None` if neither is known.
    async fn measure(
        &mut self,
        source: &Arc<Source>,
        files: Vec<Candidate>,
    ) -> Vec<(Candidate, ReadContent, Option<AudioAmount>)> {
        let tasks = files.into_iter().map(|file| {
            let (lengths, source) = (Arc::clone(&self.lengths), Arc::clone(source));
            let unsupported = Arc::clone(&self.unsupported);
            let is_repeated = self.repeated_sizes.contains(&file.stamp.size);
            async move {
                let media = match recording(&source, &file.job()) {
                    Recording::File(path) => Some(lengths.measure(path, file.key.clone(), file.stamp).await),
                    Recording::Object(_) | Recording::Remote(_) => None,
                };
                let lengths_for_read = Arc::clone(&lengths);
                let looked =
                    blocking(move || (read(&lengths_for_read, &unsupported, &source, &file, is_repeated), file)).await;
                (looked.1, looked.0, media)
            }
        });
        let mut tasks = futures_util::stream::iter(tasks).buffered(MAX_MEASURED_AT_ONCE);
        let mut results = Vec::new();
        let (all, looked_at) = (self.total_files, self.files_read);
        while let Some((file, read, media)) = tasks.next().await {
            self.report.no_tool |= matches!(media, Some(Err(DecodeError::ToolMissing { .. })));
            let audio = media.and_then(Result::ok).as_ref().and_then(Media::audio);
            let audio = audio
                .map(|audio| audio.with_only(read.track_selection.as_ref().and_then(TrackSelection::channels)))
                .or(file.announced);
            results.push((file, read, audio));
            let hours = self.report.audio_seconds() / 3600.0;
            self.progress.tick(|| format!("{looked_at} of {all} files read, {hours:.2} h of audio so far"));
        }
        results
    }

    /// Adds a file to the plan.
    fn plan_file(
        &mut self,
        source: &Source,
        file: &Candidate,
        audio: Option<AudioAmount>,
        is_duplicate: bool,
    ) -> Result<PlannedFile, CommandError> {
        let accepted = self.accepted.get(&source.service).copied().filter(|_| !file.is_remote()).unwrap_or_default();
        let split = PlannedSplit::of(accepted, audio, file.stamp.size);
        let need = audio.and_then(|audio| split.sent(audio).reservation_millis()).filter(|_| !is_duplicate);
        if let Some(limit) = need.and_then(|need| self.budget.never_fits(&source.name, need)) {
            let allowed = hours(limit.allowed);
            let problem = format!("longer than {} ever allows ({allowed}): raise that setting", limit.setting());
            self.print_entry(&DisplayName::of(source, file), "to be fixed", &problem)?;
            *self.report.needs_fix.entry(problem).or_default() += 1;
            return Ok(PlannedFile::NeverFits);
        }
        let what = if is_duplicate { "copy" } else { describe(&file.forecast).0 };
        let why = if is_duplicate { "duplicate of another file: transcribed once" } else { "" };
        self.print_entry(&DisplayName::of(source, file), what, why)?;
        let part = PlanPart::of(source, file.row.as_deref());
        let price = self.prices.get(&source.service).copied();
        self.report.send(part, file, (audio, split), is_duplicate, price);
        if let Some(writer) = &mut self.writer {
            let audio_seconds = audio.map(|audio| audio.millis as f64 / 1e3);
            let (key, what, row) = (file.key.clone(), what.to_owned(), file.row.as_deref().map(RowMark::of));
            writer.add(&PlanRow { key, stamp: file.stamp, what, audio_seconds, row })?;
        }
        Ok(if is_duplicate { PlannedFile::Duplicate } else { PlannedFile::Sent })
    }

    fn print_entry(&self, name: &DisplayName<'_>, what: &str, why: &str) -> io::Result<()> {
        if !self.list {
            return Ok(());
        }
        let DisplayName { source, path, place } = name;
        let mut object = serde_json::json!({"source": source.name, "path": path, "what": what, "why": why});
        let mut shown = JobKey { source: source.name.clone(), path: RelPath::new(path.as_bytes()) }.to_string();
        if let Some((manifest, row)) = place {
            (object["manifest"], object["row"]) = (manifest.lossy().into(), (*row).into());
            shown = match path.is_empty() {
                true => format!("{}, row {row} of {manifest}", source.name),
                false => format!("{shown}, row {row} of {manifest}"),
            };
        }
        self.context.print_json(&object)?;
        let colon = if why.is_empty() { "" } else { ": " };
        // The JSON above keeps the older name.
        let what = if what == ON_ITS_WAY { "queued" } else { what };
        self.progress.suspend(|| self.context.print_line(&format!("{what:<14}  {shown}{colon}{why}")))
    }
}

/// The name of a recording in the output.
struct DisplayName<'n> {
    source: &'n Source,
    /// The path relative to the source's folder, or the address, with invalid UTF-8 replaced. Empty if the row is
    /// invalid.
    path: String,
    /// The manifest and the number of the row that names it.
    place: Option<(&'n RelPath, u64)>,
}

impl<'n> DisplayName<'n> {
    fn file(source: &'n Source, path: &RelPath) -> Self {
        Self { source, path: path.lossy().into_owned(), place: None }
    }

    fn of(source: &'n Source, file: &'n Candidate) -> Self {
        match file.row.as_deref() {
            Some(row) => named_row(source, row),
            None => Self::file(source, &file.key.path),
        }
    }
}

/// Starts a scan of a source in its own task. Returns the receiver of what it finds.
fn survey(mount: &Arc<Mount>) -> (mpsc::Receiver<Sighting>, tokio::task::JoinHandle<()>) {
    let (sender, sightings) = mpsc::channel(4 * MAX_LOOKUP_NAMES);
    (sightings, mount.survey(sender))
}

fn is_a_receipt(path: &RelPath) -> bool {
    Path::new(OsStr::from_bytes(path.as_bytes())).file_name().is_some_and(is_receipt)
}

fn is_skipped_for_subtitle(job: &Job) -> bool {
    matches!(job.stage, Stage::Skipped { why } if why.is_for_subtitles())
}

fn describe(forecast: &Forecast) -> (&'static str, &str) {
    match forecast {
        Forecast::New => ("new", ""),
        Forecast::Changed => ("changed", ""),
        Forecast::OnTheWay => (ON_ITS_WAY, ""),
        Forecast::AtTheService => ("at the service", ""),
        Forecast::Done => ("done", ""),
        Forecast::Held => ("held", ""),
        Forecast::Reordered => ("requested again", ""),
        Forecast::Awaited => ("waits", "its file does not exist yet; the job continues when it appears"),
        Forecast::NotAllowed => ("not allowed", "jobs.toml does not allow what its row names"),
        Forecast::Skipped(why) => ("skipped", why),
    }
}

/// Whether a recording on this machine contains subtitles that its source heeds.
async fn has_tracks(source: &Arc<Source>, file: &Candidate) -> bool {
    let (source, job) = (Arc::clone(source), file.job());
    let look = move || match recording(&source, &job) {
        Recording::File(path) => contains_subtitles(&path, &source, &job),
        Recording::Object(_) | Recording::Remote(_) => false,
    };
    blocking(look).await
}
