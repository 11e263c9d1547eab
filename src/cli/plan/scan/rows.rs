//! Plans the rows of manifests, in the same way in which a pass creates jobs for them.

use super::{DisplayName, Planner};
use crate::blocking::{blocking, spawn};
use crate::cli::plan::duplicates::{Candidate, Sizes};
use crate::cli::plan::manifests::ManifestTotals;
use crate::cli::runtime::exit::CommandError;
use crate::config::model::Source;
use crate::control::explain::forecast::{Forecast, forecast_row};
use crate::control::transport::protocol::{KnownName, MAX_LOOKUP_NAMES};
use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::manifest_row::{ManifestRow, RowMedia};
use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::domain::scheduling::is_bought;
use crate::domain::stage::{AudioAmount, Skip, StageKind};
use crate::manifests::format::columns::declared_audio;
use crate::manifests::format::find::{FoundManifests, find, owned_by_other_message};
use crate::manifests::format::record::{Form, RowError, join_errors};
use crate::manifests::passes::keys::{AssignedNames, Name, OwnName, candidates, own_key};
use crate::manifests::passes::repeats::{RepeatedRows, recording};
use crate::manifests::passes::rows::{ReadRow, collect_repeats, items, look_for_file, look_with_policy, sight};
use crate::source::metadata::file_look::FileLook;
use crate::source::mount::source_mount::Mount;
use crate::source::path_policy::Denied;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A manifest after the first reading.
pub(crate) struct ScannedManifest {
    manifest: RelPath,
    stamp: Stamp,
    /// The rows that order the same recording, or why the manifest cannot be used.
    repeats: Result<Arc<RepeatedRows>, String>,
}

/// The number of the manifest whose row is the first to order a recording, by the key of the recording. It decides
/// whose job gets the plain name if the queue does not know the recording yet.
type Owners = HashMap<u64, usize>;

impl Planner<'_> {
    /// Reads the manifests of a source for the first time: finds rows that order the same recording, and adds the sizes
    /// of their files.
    pub(crate) async fn collect_repeats(&mut self, mount: &Arc<Mount>, sizes: &mut Sizes) {
        let found = find_manifests(mount).await;
        self.report.troubles.extend(found.problems);
        let mut scanned = Vec::new();
        for (manifest, stamp) in found.manifests {
            let (shared_mount, owned_manifest) = (Arc::clone(mount), manifest.clone());
            let (repeats, seen) = blocking(move || {
                let mut seen = Vec::new();
                let gathered =
                    collect_repeats(&shared_mount, &owned_manifest, stamp, &mut |row, policy| match look_with_policy(
                        policy,
                        &shared_mount,
                        row,
                    ) {
                        Ok(Some(Ok(FileLook::File(stamp)))) => seen.push(stamp.size),
                        // A recording that only the service reads is counted, but it equals no file.
                        Ok(None) => seen.push(0),
                        _ => {}
                    });
                (gathered.map(|(_, repeats)| Arc::new(repeats)), seen)
            })
            .await;
            seen.into_iter().for_each(|size| sizes.add(size));
            self.progress.tick(|| format!("searching for files: {} so far", sizes.count()));
            scanned.push(ScannedManifest { manifest, stamp, repeats });
        }
        for (manifest, stamp, earlier) in found.owned_by_others {
            scanned.push(ScannedManifest { manifest, stamp, repeats: Err(owned_by_other_message(&earlier)) });
        }
        scanned.sort_by(|one, other| one.manifest.cmp(&other.manifest));
        self.scanned_manifests.insert(mount.source().name.clone(), scanned);
    }

    /// Plans the manifests of a source.
    pub(crate) async fn manifests(&mut self, mount: &Arc<Mount>) -> Result<(), CommandError> {
        let mut owners = Owners::new();
        let scanned = self.scanned_manifests.remove(&mount.source().name).unwrap_or_default();
        for (number, ScannedManifest { manifest, stamp, repeats }) in scanned.into_iter().enumerate() {
            let mut listed = ManifestTotals::new(mount.source().name.clone(), manifest);
            match repeats {
                Ok(repeats) => self.plan_manifest(mount, (stamp, &repeats), number, &mut owners, &mut listed).await?,
                Err(problem) => listed.problem = Some(problem),
            }
            self.report.lists.push(listed);
        }
        Ok(())
    }

    async fn plan_manifest(
        &mut self,
        mount: &Arc<Mount>,
        (stamp, repeats): (Stamp, &RepeatedRows),
        number: usize,
        owners: &mut Owners,
        listed: &mut ManifestTotals,
    ) -> Result<(), CommandError> {
        let (mut rows, reading) = read_rows(mount, &listed.manifest, stamp);
        let (mut assigned_names, mut batch) = (AssignedNames::default(), Vec::new());
        while rows.recv_many(&mut batch, MAX_LOOKUP_NAMES).await > 0 {
            listed.rows += batch.len() as u64;
            self.files_read += batch.len() as u64;
            let items = std::mem::take(&mut batch);
            let named =
                self.name_rows(mount.source(), items, (repeats, &mut assigned_names), (owners, number), listed).await?;
            let candidates = self.find_row_candidates(mount, named, listed).await?;
            let recordings: Vec<u64> = candidates.iter().filter_map(|one| one.row.as_deref()).map(recording).collect();
            self.plan_sent(mount, candidates, Some(&mut *listed)).await?;
            for recording in recordings {
                owners.entry(recording).or_insert(number);
            }
        }
        match reading.await.map_err(std::io::Error::other)? {
            Ok(form) => listed.encoding = form.encoding,
            Err(problem) => listed.problem = Some(problem),
        }
        Ok(())
    }

    /// Returns the valid rows with the keys of their jobs and what the queue knows of them. Counts and lists invalid
    /// rows and repetitions.
    async fn name_rows(
        &mut self,
        source: &Source,
        items: Vec<ReadRow>,
        (repeats, assigned_names): (&RepeatedRows, &mut AssignedNames),
        (owners, number): (&Owners, usize),
        listed: &mut ManifestTotals,
    ) -> Result<Vec<(JobKey, ReadRow, KnownName)>, CommandError> {
        let mut valid = Vec::new();
        for item in items {
            match &item.row {
                Ok(_) => valid.push(item),
                Err(wrong) => {
                    if let Some(media) = &item.names {
                        let row = ManifestRow::minimal(listed.manifest.clone(), 0, media.clone());
                        self.named_by_invalid_rows.extend(candidates(&source.name, &row).map(|key| key.tag().0));
                    }
                    self.count_wrong(source, &item, wrong, listed)?;
                }
            }
        }
        let rows = || valid.iter().filter_map(|item| item.row.as_ref().ok());
        let sizes: Vec<u64> = valid.iter().map(|item| item.seen().unwrap_or_default().size).collect();
        let known = self.queue.look_up(rows().map(|row| own_key(&source.name, row)).collect(), sizes).await?;
        let mut named = Vec::new();
        for (item, known) in valid.into_iter().zip(known) {
            let Ok(row) = &item.row else { continue };
            let job_row = known.job.as_ref().and_then(|job| job.row.as_deref());
            let own_name = match owners.get(&recording(row)) {
                Some(owner) if job_row.is_none() && *owner != number => OwnName::Taken,
                _ => OwnName::of(job_row, &row.manifest),
            };
            match assigned_names.name(&source.name, row, own_name, repeats) {
                Name::Key(key) => named.push((key, item, known)),
                Name::Repeats(first) => {
                    listed.repeated += 1;
                    self.print_entry(
                        &named_row(source, row),
                        "repeated",
                        &format!("row {first} requests the same recording"),
                    )?;
                }
            }
        }
        self.look_up_other_keys(source, named).await
    }

    /// Asks the queue again for the rows whose jobs have another key than the recording's own one.
    async fn look_up_other_keys(
        &self,
        source: &Source,
        mut named: Vec<(JobKey, ReadRow, KnownName)>,
    ) -> Result<Vec<(JobKey, ReadRow, KnownName)>, CommandError> {
        let is_other = |(key, item, _): &(JobKey, ReadRow, KnownName)| {
            item.row.as_ref().is_ok_and(|row| own_key(&source.name, row) != *key)
        };
        let others: Vec<usize> = (0..named.len()).filter(|index| is_other(&named[*index])).collect();
        if others.is_empty() {
            return Ok(named);
        }
        let keys = others.iter().map(|index| named[*index].0.clone()).collect();
        let sizes = others.iter().map(|index| named[*index].1.seen().unwrap_or_default().size).collect();
        for (index, known) in others.into_iter().zip(self.queue.look_up(keys, sizes).await?) {
            named[index].2 = known;
        }
        Ok(named)
    }

    fn count_wrong(
        &mut self,
        source: &Source,
        item: &ReadRow,
        wrong: &[RowError],
        listed: &mut ManifestTotals,
    ) -> Result<(), CommandError> {
        listed.wrong += 1;
        let words = join_errors(wrong);
        self.report.lists.fix(listed, item.record.number, &words);
        let place = Some((&listed.manifest, item.record.number));
        Ok(self.print_entry(&DisplayName { source, path: String::new(), place }, "wrong", &words)?)
    }

    fn count_not_allowed(
        &mut self,
        source: &Source,
        row: &ManifestRow,
        denied: &Denied,
        listed: &mut ManifestTotals,
    ) -> Result<(), CommandError> {
        listed.held += 1;
        let words = denied.describe(source);
        self.report.add(&Forecast::NotAllowed);
        self.report.lists.fix(listed, row.number, &format!("row {} {words}", row.number));
        Ok(self.print_entry(&named_row(source, row), "not allowed", &words)?)
    }

    /// Returns the rows whose recordings would be sent, and counts the others.
    async fn find_row_candidates(
        &mut self,
        mount: &Arc<Mount>,
        named: Vec<(JobKey, ReadRow, KnownName)>,
        listed: &mut ManifestTotals,
    ) -> Result<Vec<Candidate>, CommandError> {
        let mut candidates = Vec::new();
        for (key, item, known) in named {
            let (stamp, announced) = (item.seen().unwrap_or_default(), declared_audio(&item.record));
            let Ok(row) = item.row else { continue };
            let allowed = item.denied.is_none();
            // Also if the row has no job yet: a daemon may create one before the remaining jobs are counted.
            self.counted_rows.insert(key.tag().0);
            if !self.has_row(&key, &row) {
                continue;
            }
            let forecast = forecast_row(known.job.as_ref(), &row, item.file_look.as_ref(), allowed);
            if let (Forecast::NotAllowed, Some(denied)) = (&forecast, &item.denied) {
                self.count_not_allowed(mount.source(), &row, denied, listed)?;
                continue;
            }
            let is_on_its_way = forecast == Forecast::OnTheWay;
            let bought_before = known.job.as_ref().is_some_and(|job| !job.outputs.is_empty());
            let candidate = Candidate {
                key,
                stamp,
                forecast,
                has_same_size: known.alike || bought_before,
                follows: is_on_its_way
                    && known.job.as_ref().is_some_and(|job| job.stage.kind() == StageKind::Following),
                row: Some(Box::new(row)),
                announced,
            };
            let counted = self.unless_subtitled(mount, candidate, known.job.as_ref()).await?;
            match counted.forecast {
                Forecast::Awaited => listed.awaited += 1,
                Forecast::Done => listed.done += 1,
                _ => {}
            }
            candidates.extend(self.count_unless_sent(mount.source(), counted)?);
        }
        Ok(candidates)
    }
}

impl Planner<'_> {
    /// Counts the jobs that no scan finds: those of rows that were removed from their manifests, and those that a
    /// command added.
    pub async fn count_remaining(&mut self, mounts: &BTreeMap<SourceName, Arc<Mount>>) -> Result<(), CommandError> {
        let mut after = None;
        loop {
            let page = self.queue.ordered_jobs(after).await?;
            let uncounted = page.jobs.into_iter().filter(|job| !self.counted_rows.contains(&job.key.tag().0));
            for job in uncounted.collect::<Vec<_>>() {
                if let Some(mount) = mounts.get(&job.key.source).filter(|mount| mount.away().is_none()) {
                    self.plan_remaining(mount, job).await?;
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn plan_remaining(&mut self, mount: &Arc<Mount>, job: Job) -> Result<(), CommandError> {
        let Some(row) = job.row.clone().filter(|row| self.has_row(&job.key, row)) else { return Ok(()) };
        let (shared_mount, owned_row) = (Arc::clone(mount), row.clone());
        let file_look = blocking(move || look_for_file(&shared_mount, &owned_row)).await;
        let (allowed, file_look) = (file_look.is_ok(), file_look.ok().flatten());
        let forecast = match self.is_row_removed(&job) {
            true => Forecast::Skipped(Skip::Unlisted.describe().to_owned()),
            false => forecast_row(Some(&job), &row, file_look.as_ref(), allowed),
        };
        let candidate = Candidate {
            key: job.key.clone(),
            stamp: sight(file_look.as_ref()).stamp().unwrap_or_default(),
            forecast,
            has_same_size: false,
            follows: job.stage.kind() == StageKind::Following,
            announced: row.billed.map(|millis| AudioAmount { millis, channels: 1, billed: None }),
            row: Some(row),
        };
        let sent = self.count_unless_sent(mount.source(), candidate)?;
        self.plan_sent(mount, sent.into_iter().collect(), None).await
    }
}

impl Planner<'_> {
    /// Whether a pass would end the job because its row is no longer in the manifest: nothing was bought for it, and
    /// everything that could name it was read.
    fn is_row_removed(&self, job: &Job) -> bool {
        let Some(row) = job.row.as_deref().filter(|row| !row.is_by_command() && !row.lost) else { return false };
        let is_named = self.named_by_invalid_rows.contains(&job.key.tag().0);
        let is_read = self.report.troubles.is_empty() && !self.report.lists.has_problem(&job.key.source, &row.manifest);
        is_read && !is_named && !is_bought(job.stage.kind())
    }
}

/// Returns the name of the recording of a row in the output.
pub(crate) fn named_row<'n>(source: &'n Source, row: &'n ManifestRow) -> DisplayName<'n> {
    let path = match &row.media {
        RowMedia::File(path) => path.lossy().into_owned(),
        RowMedia::Url(url) => url.name(),
    };
    DisplayName { source, path, place: Some((&row.manifest, row.number)).filter(|_| !row.is_by_command()) }
}

async fn find_manifests(mount: &Arc<Mount>) -> FoundManifests {
    let shared_mount = Arc::clone(mount);
    blocking(move || find(shared_mount.source(), shared_mount.disk_at(&RelPath::new("")))).await
}

/// Starts to read the rows of a manifest in its own thread. Returns their receiver, and the handle that gives the form
/// of the manifest or why it cannot be used.
fn read_rows(
    mount: &Arc<Mount>,
    manifest: &RelPath,
    stamp: Stamp,
) -> (mpsc::Receiver<ReadRow>, JoinHandle<Result<Form, String>>) {
    let (sender, rows) = mpsc::channel(4 * MAX_LOOKUP_NAMES);
    let (shared_mount, owned_manifest) = (Arc::clone(mount), manifest.clone());
    let reading = spawn(move || {
        items(&shared_mount, &owned_manifest, stamp, &mut |item| match sender.blocking_send(item) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        })
    });
    (rows, reading)
}
