//! The rows of manifests, counted for a plan as a pass would take them.

use super::{Named, Planner};
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
use crate::domain::stage::{AudioAmount, StageKind};
use crate::manifests::format::columns::declared_audio;
use crate::manifests::format::find::{FoundManifests, find, owned_by_other_message};
use crate::manifests::format::record::{Form, RowError, join_errors};
use crate::manifests::passes::keys::{AssignedNames, Name, OwnName, own_key};
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

/// A manifest that was read once.
pub(crate) struct ScannedManifest {
    manifest: RelPath,
    stamp: Stamp,
    /// Or why nothing of it is believed.
    repeats: Result<Arc<RepeatedRows>, String>,
}

/// Whose row orders a recording first, where the queue does not know it yet: the number of the manifest.
type Owners = HashMap<u64, usize>;

impl Planner<'_> {
    /// Reads the manifests of a source once, for the rows that order the same and for the sizes of their files.
    pub(crate) async fn collect_repeats(&mut self, mount: &Arc<Mount>, sizes: &mut Sizes) {
        let found = manifests(mount).await;
        self.sum.troubles.extend(found.problems);
        let mut all = Vec::new();
        for (manifest, stamp) in found.manifests {
            let (theirs, of) = (Arc::clone(mount), manifest.clone());
            let (repeats, seen) = blocking(move || {
                let mut seen = Vec::new();
                let gathered = collect_repeats(&theirs, &of, stamp, &mut |row, policy| match look_with_policy(
                    policy, &theirs, row,
                ) {
                    Ok(Some(Ok(FileLook::File(stamp)))) => seen.push(stamp.size),
                    // What only the service reads counts, and is like nothing here.
                    Ok(None) => seen.push(0),
                    _ => {}
                });
                (gathered.map(|(_, repeats)| Arc::new(repeats)), seen)
            })
            .await;
            seen.into_iter().for_each(|size| sizes.add(size));
            self.shown.tick(|| format!("searching for files: {} so far", sizes.count()));
            all.push(ScannedManifest { manifest, stamp, repeats });
        }
        for (manifest, stamp, earlier) in found.owned_by_others {
            all.push(ScannedManifest { manifest, stamp, repeats: Err(owned_by_other_message(&earlier)) });
        }
        all.sort_by(|one, other| one.manifest.cmp(&other.manifest));
        self.lists.insert(mount.source().name.clone(), all);
    }

    /// Plans a source that is made of manifests.
    pub(crate) async fn manifests(&mut self, mount: &Arc<Mount>) -> Result<(), CommandError> {
        let mut owners = Owners::new();
        let gathered = self.lists.remove(&mount.source().name).unwrap_or_default();
        for (number, ScannedManifest { manifest, stamp, repeats }) in gathered.into_iter().enumerate() {
            let mut listed = ManifestTotals::new(mount.source().name.clone(), manifest);
            match repeats {
                Ok(repeats) => self.manifest(mount, (stamp, &repeats), number, &mut owners, &mut listed).await?,
                Err(problem) => listed.problem = Some(problem),
            }
            self.sum.lists.push(listed);
        }
        Ok(())
    }

    async fn manifest(
        &mut self,
        mount: &Arc<Mount>,
        (stamp, repeats): (Stamp, &RepeatedRows),
        number: usize,
        owners: &mut Owners,
        listed: &mut ManifestTotals,
    ) -> Result<(), CommandError> {
        let (mut rows, reading) = read(mount, &listed.manifest, stamp);
        let (mut given, mut some) = (AssignedNames::default(), Vec::new());
        while rows.recv_many(&mut some, MAX_LOOKUP_NAMES).await > 0 {
            listed.rows += some.len() as u64;
            self.looked_at += some.len() as u64;
            let items = std::mem::take(&mut some);
            let named = self.named(mount.source(), items, (repeats, &mut given), (owners, number), listed).await?;
            let candidates = self.weighed(mount, named, listed).await?;
            let recordings: Vec<u64> = candidates.iter().filter_map(|one| one.row.as_deref()).map(recording).collect();
            let (all, failing) = (candidates.len() as u64, listed.failing);
            let sent = self.sent(mount, candidates, Some(&mut *listed)).await?;
            listed.sent += sent;
            listed.copies += all.saturating_sub(sent + listed.failing - failing);
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

    /// The rows that order something, with the names of their jobs; the others are told.
    async fn named(
        &mut self,
        source: &Source,
        items: Vec<ReadRow>,
        (repeats, given): (&RepeatedRows, &mut AssignedNames),
        (owners, number): (&Owners, usize),
        listed: &mut ManifestTotals,
    ) -> Result<Vec<(JobKey, ReadRow, KnownName)>, CommandError> {
        let mut good = Vec::new();
        for item in items {
            match &item.row {
                Ok(_) => good.push(item),
                Err(wrong) => self.wrong(source, &item, wrong, listed)?,
            }
        }
        let rows = || good.iter().filter_map(|item| item.row.as_ref().ok());
        let sizes: Vec<u64> = good.iter().map(|item| item.seen().unwrap_or_default().size).collect();
        let known = self.queue.look_up(rows().map(|row| own_key(&source.name, row)).collect(), sizes).await?;
        let mut named = Vec::new();
        for (item, known) in good.into_iter().zip(known) {
            let Ok(row) = &item.row else { continue };
            let theirs = known.job.as_ref().and_then(|job| job.row.as_deref());
            let own_name = match owners.get(&recording(row)) {
                Some(owner) if theirs.is_none() && *owner != number => OwnName::Taken,
                _ => OwnName::of(theirs, &row.manifest),
            };
            match given.name(&source.name, row, own_name, repeats) {
                Name::Key(key) => named.push((key, item, known)),
                Name::Repeats(first) => {
                    listed.repeated += 1;
                    self.say(&named_row(source, row), "repeated", &format!("row {first} orders the same recording"))?;
                }
            }
        }
        self.looked_up_again(source, named).await
    }

    /// Those that do not have the recording's own name are asked for by theirs.
    async fn looked_up_again(
        &self,
        source: &Source,
        mut named: Vec<(JobKey, ReadRow, KnownName)>,
    ) -> Result<Vec<(JobKey, ReadRow, KnownName)>, CommandError> {
        let is_other = |(key, item, _): &(JobKey, ReadRow, KnownName)| {
            item.row.as_ref().is_ok_and(|row| own_key(&source.name, row) != *key)
        };
        let others: Vec<usize> = (0..named.len()).filter(|at| is_other(&named[*at])).collect();
        if others.is_empty() {
            return Ok(named);
        }
        let keys = others.iter().map(|at| named[*at].0.clone()).collect();
        let sizes = others.iter().map(|at| named[*at].1.seen().unwrap_or_default().size).collect();
        for (at, known) in others.into_iter().zip(self.queue.look_up(keys, sizes).await?) {
            named[at].2 = known;
        }
        Ok(named)
    }

    fn wrong(
        &mut self,
        source: &Source,
        item: &ReadRow,
        wrong: &[RowError],
        listed: &mut ManifestTotals,
    ) -> Result<(), CommandError> {
        listed.wrong += 1;
        let words = join_errors(wrong);
        self.sum.lists.fix(listed, item.record.number, &words);
        let place = Some((&listed.manifest, item.record.number));
        Ok(self.say(&Named { source, path: String::new(), place }, "wrong", &words)?)
    }

    fn not_allowed(
        &mut self,
        source: &Source,
        row: &ManifestRow,
        denied: &Denied,
        listed: &mut ManifestTotals,
    ) -> Result<(), CommandError> {
        listed.held += 1;
        let words = denied.describe(source);
        self.sum.add(&Forecast::NotAllowed);
        self.sum.lists.fix(listed, row.number, &format!("row {} {words}", row.number));
        Ok(self.say(&named_row(source, row), "not allowed", &words)?)
    }

    /// Those of which something would be sent; the others are counted.
    async fn weighed(
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
            // Also where it has no job yet: it may have one a moment later.
            self.counted_rows.insert(key.tag().0);
            if !self.has_row(&key, &row) {
                continue;
            }
            let forecast = forecast_row(known.job.as_ref(), &row, item.file_look.as_ref(), allowed);
            if let (Forecast::NotAllowed, Some(denied)) = (&forecast, &item.denied) {
                self.not_allowed(mount.source(), &row, denied, listed)?;
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
            candidates.extend(self.counted(mount.source(), counted)?);
        }
        Ok(candidates)
    }
}

impl Planner<'_> {
    /// Counts what is on its way and stands nowhere any more where a look would find it: what a row ordered that was
    /// taken out of its list since, and what a command ordered.
    ///
    /// # Errors
    /// See [`CommandError`].
    pub async fn count_remaining(&mut self, mounts: &BTreeMap<SourceName, Arc<Mount>>) -> Result<(), CommandError> {
        let mut after = None;
        loop {
            let page = self.queue.ordered_jobs(after).await?;
            let uncounted = page.jobs.into_iter().filter(|job| !self.counted_rows.contains(&job.key.tag().0));
            for job in uncounted.collect::<Vec<_>>() {
                if let Some(mount) = mounts.get(&job.key.source).filter(|mount| mount.away().is_none()) {
                    self.left_one(mount, job).await?;
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn left_one(&mut self, mount: &Arc<Mount>, job: Job) -> Result<(), CommandError> {
        let Some(row) = job.row.clone().filter(|row| self.has_row(&job.key, row)) else { return Ok(()) };
        let (theirs, of) = (Arc::clone(mount), row.clone());
        let looked = blocking(move || look_for_file(&theirs, &of)).await;
        let (allowed, looked) = (looked.is_ok(), looked.ok().flatten());
        let candidate = Candidate {
            key: job.key.clone(),
            stamp: sight(looked.as_ref()).stamp().unwrap_or_default(),
            forecast: forecast_row(Some(&job), &row, looked.as_ref(), allowed),
            has_same_size: false,
            follows: job.stage.kind() == StageKind::Following,
            announced: row.billed.map(|millis| AudioAmount { millis, channels: 1, billed: None }),
            row: Some(row),
        };
        let sent = self.counted(mount.source(), candidate)?;
        self.sent(mount, sent.into_iter().collect(), None).await.map(drop)
    }
}

/// As it is told.
pub(crate) fn named_row<'n>(source: &'n Source, row: &'n ManifestRow) -> Named<'n> {
    let path = match &row.media {
        RowMedia::File(path) => path.lossy().into_owned(),
        RowMedia::Url(url) => url.name(),
    };
    Named { source, path, place: Some((&row.manifest, row.number)).filter(|_| !row.is_by_command()) }
}

async fn manifests(mount: &Arc<Mount>) -> FoundManifests {
    let theirs = Arc::clone(mount);
    blocking(move || find(theirs.source(), theirs.disk_at(&RelPath::new("")))).await
}

/// From a thread of its own.
fn read(
    mount: &Arc<Mount>,
    manifest: &RelPath,
    stamp: Stamp,
) -> (mpsc::Receiver<ReadRow>, JoinHandle<Result<Form, String>>) {
    let (to, rows) = mpsc::channel(4 * MAX_LOOKUP_NAMES);
    let (theirs, of) = (Arc::clone(mount), manifest.clone());
    let reading = spawn(move || {
        items(&theirs, &of, stamp, &mut |item| match to.blocking_send(item) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        })
    });
    (rows, reading)
}
