//! Looks through the sources for a plan: what is there, what is known of it, how long it is. Nothing of a tree
//! is held but the sizes of its files.

use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::part::Part;
use crate::cli::plan::Queue;
use crate::cli::planned::Planned;
use crate::cli::progress::Ticker;
use crate::cli::twins::{Candidate, Read, Sizes, Twins, read};
use crate::config::meant::{Config, Existing, Source};
use crate::control::forecast::{Forecast, forecast};
use crate::control::plan_file::{PlanWriter, Row};
use crate::control::request::LOOKED_UP_AT_ONCE;
use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::names::{ServiceName, SourceName};
use crate::domain::path::RelPath;
use crate::domain::stage::{Skip, Stage, StageKind};
use crate::media::decode::{DecodeError, Media};
use crate::media::measured::Measured;
use crate::pipeline::blocking::blocking;
use crate::pipeline::medium::{say_they_are_ours, subtitles};
use crate::source::choice::Rule;
use crate::source::mount::Mount;
use crate::source::objects;
use crate::source::place::full_path;
use crate::source::survey::{Sighting, survey};
use futures_util::StreamExt;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Headers are small reads: on a share many of them at once are hardly slower than one.
const MEASURED_AT_ONCE: usize = 16;

/// Makes a plan.
pub struct Planner<'a> {
    context: &'a Context,
    list: bool,
    queue: &'a Queue,
    sum: Planned,
    prices: &'a BTreeMap<ServiceName, f64>,
    measured: Arc<Measured>,
    repeated: HashSet<u64>,
    twins: Twins,
    writer: Option<PlanWriter>,
    shown: Ticker,
    all: u64,
    looked_at: u64,
}

impl<'a> Planner<'a> {
    /// One that has seen nothing yet.
    pub fn new(
        context: &'a Context,
        list: bool,
        queue: &'a Queue,
        config: &'a Config,
        writer: Option<PlanWriter>,
    ) -> Self {
        Self {
            context,
            list,
            queue,
            sum: Planned::default(),
            prices: &config.prices,
            measured: Arc::new(Measured::new(&config.state)),
            repeated: HashSet::new(),
            twins: Twins::default(),
            writer,
            shown: Ticker::new(context),
            all: 0,
            looked_at: 0,
        }
    }

    /// What it came to.
    pub fn end(self) -> (Planned, Option<PlanWriter>) {
        self.shown.clear();
        (self.sum, self.writer)
    }

    /// Counts the files of all sources, and which of them have the same size as others.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn count(&mut self, mounts: &BTreeMap<SourceName, Arc<Mount>>) -> Result<(), Failure> {
        let mut sizes = Sizes::default();
        for mount in mounts.values() {
            if mount.there_now().await.is_err() {
                continue;
            }
            let (mut sightings, surveyor) = surveyed(mount);
            let mut some = Vec::with_capacity(LOOKED_UP_AT_ONCE);
            while sightings.recv_many(&mut some, LOOKED_UP_AT_ONCE).await > 0 {
                for sighting in some.drain(..) {
                    if let Sighting::Taken(_, stamp) = sighting {
                        sizes.add(stamp.size);
                    }
                }
                self.shown.tick(|| format!("looking for files: {} so far", sizes.count()));
            }
            surveyor.await.map_err(std::io::Error::other)?;
        }
        self.all = sizes.count();
        self.repeated = sizes.repeated();
        Ok(())
    }

    /// Plans a source.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn source(&mut self, mount: &Arc<Mount>) -> Result<(), Failure> {
        if let Err(away) = mount.there_now().await {
            self.sum.away.push(away.to_string());
            return Ok(());
        }
        if mount.source().manifests.is_some() {
            let words = "is made of lists, and a plan does not count their rows yet";
            self.sum.troubles.push(format!("the source {} {words}", mount.source().name));
            return Ok(());
        }
        let (mut sightings, surveyor) = surveyed(mount);
        let mut some = Vec::with_capacity(LOOKED_UP_AT_ONCE);
        while sightings.recv_many(&mut some, LOOKED_UP_AT_ONCE).await > 0 {
            self.sightings(mount, some.drain(..)).await?;
        }
        surveyor.await.map_err(|error| std::io::Error::other(error).into())
    }

    async fn sightings(&mut self, mount: &Arc<Mount>, some: impl Iterator<Item = Sighting>) -> Result<(), Failure> {
        let source = mount.source();
        let mut taken = Vec::new();
        for sighting in some {
            match sighting {
                Sighting::Taken(path, stamp) => taken.push((path, stamp)),
                Sighting::PassedOver(path, rule) => {
                    let words = rule.to_string();
                    self.say(source, &path, "passed over", words.trim_start_matches("passed over: "))?;
                    self.sum.passed_over(words);
                }
                Sighting::Trouble(words) => self.sum.troubles.push(words),
            }
        }
        let candidates = self.candidates(mount, taken).await?;
        let measured = match mount.bucket() {
            // Nothing of an object is read before it is sent.
            Some(_) => candidates.into_iter().map(|file| (file, Read::default(), None)).collect(),
            None => self.measured(source, candidates).await,
        };
        let files: Vec<(Candidate, Read)> = measured.iter().map(|(file, read, _)| (file.clone(), *read)).collect();
        let twins = self.twins.among(self.queue, source, &files).await?;
        for ((file, _, media), is_twin) in measured.into_iter().zip(twins) {
            self.planned(source, &file, media.as_ref(), is_twin)?;
        }
        Ok(())
    }

    /// Those that would be sent; the others are counted.
    async fn candidates(
        &mut self,
        mount: &Arc<Mount>,
        taken: Vec<(RelPath, Stamp)>,
    ) -> Result<Vec<Candidate>, Failure> {
        let source = mount.source();
        let key = |path: &RelPath| JobKey { source: source.name.clone(), path: path.clone() };
        let sizes = taken.iter().map(|(_, stamp)| stamp.size).collect();
        let known = self.queue.known(taken.iter().map(|(path, _)| key(path)).collect(), sizes).await?;
        let mut candidates = Vec::new();
        self.looked_at += taken.len() as u64;
        for ((path, stamp), known) in taken.into_iter().zip(known) {
            if known.is_output {
                self.sum.passed_over(Rule::OurOutput.to_string());
                continue;
            }
            let mut forecast = forecast(known.job.as_ref(), &stamp);
            // What was skipped for a subtitle is looked at anew: it may be gone, or the setting another.
            let was_subtitled = known.job.as_ref().is_some_and(is_skipped_for_subtitle);
            if forecast == Forecast::New || was_subtitled {
                forecast = match self.is_subtitled(mount, &path).await? {
                    true => Forecast::Skipped(Skip::Subtitled.words().to_owned()),
                    false => Forecast::New,
                };
            }
            if !forecast.is_sent() {
                let (what, why) = words(&forecast);
                self.say(source, &path, what, why)?;
                self.sum.add(&forecast);
                continue;
            }
            let follows = known.job.is_some_and(|job| job.stage.kind() == StageKind::Following);
            candidates.push(Candidate { key: key(&path), stamp, forecast, alike: known.alike, follows });
        }
        Ok(candidates)
    }

    /// Whether a subtitle by someone else lies beside it, and is to be left in its place.
    async fn is_subtitled(&self, mount: &Arc<Mount>, path: &RelPath) -> Result<bool, Failure> {
        let source = mount.source();
        if source.existing == Existing::Transcribe {
            return Ok(false);
        }
        let found = subtitles(mount, &source.folder, path).await;
        let keys = found?.into_iter().map(|path| JobKey { source: source.name.clone(), path }).collect::<Vec<_>>();
        if keys.is_empty() {
            return Ok(false);
        }
        let known = self.queue.known(keys.clone(), Vec::new()).await?;
        let foreign = keys.into_iter().zip(known).filter(|(_, known)| !known.is_output);
        let foreign = foreign.map(|(key, _)| key.path).collect();
        Ok(!say_they_are_ours(mount, &source.folder, foreign).await)
    }

    /// What can be told of these files without sending them; `None` where nothing can.
    async fn measured(&mut self, source: &Source, files: Vec<Candidate>) -> Vec<(Candidate, Read, Option<Media>)> {
        let each = files.into_iter().map(|file| {
            let (measured, folder) = (Arc::clone(&self.measured), source.folder.clone());
            let is_repeated = self.repeated.contains(&file.stamp.size);
            async move {
                let path = full_path(&folder, &file.key.path);
                let media = measured.measure(path, file.key.clone(), file.stamp).await;
                let compared = Arc::clone(&measured);
                let looked = blocking(move || (read(&compared, &folder, &file, is_repeated), file)).await;
                (looked.1, looked.0, media)
            }
        });
        let mut each = futures_util::stream::iter(each).buffered(MEASURED_AT_ONCE);
        let mut found = Vec::new();
        let (all, looked_at) = (self.all, self.looked_at);
        while let Some((file, read, media)) = each.next().await {
            self.sum.no_tool |= matches!(media, Err(DecodeError::ToolMissing { .. }));
            found.push((file, read, media.ok()));
            let hours = self.sum.audio_seconds() / 3600.0;
            self.shown.tick(|| format!("{looked_at} of {all} files looked at, {hours:.2} h of audio so far"));
        }
        found
    }

    fn planned(
        &mut self,
        source: &Source,
        file: &Candidate,
        media: Option<&Media>,
        is_twin: bool,
    ) -> Result<(), Failure> {
        let what = if is_twin { "copy" } else { words(&file.forecast).0 };
        let why = if is_twin { "another one has the same content: transcribed once" } else { "" };
        self.say(source, &file.key.path, what, why)?;
        let audio = media.and_then(Media::audio);
        let part = Part::of(source);
        let price = self.prices.get(&source.service).copied();
        self.sum.send(part, file, audio, is_twin, price);
        if let Some(writer) = &mut self.writer {
            let audio_seconds = audio.map(|audio| audio.millis as f64 / 1e3);
            writer.add(&Row { key: file.key.clone(), stamp: file.stamp, what: what.to_owned(), audio_seconds })?;
        }
        Ok(())
    }

    fn say(&self, source: &Source, path: &RelPath, what: &str, why: &str) -> std::io::Result<()> {
        if !self.list {
            return Ok(());
        }
        let object = serde_json::json!({"source": source.name, "path": path.lossy(), "what": what, "why": why});
        self.context.emit(&object)?;
        let colon = if why.is_empty() { "" } else { ": " };
        self.shown.suspend(|| self.context.say(&format!("{what:<14}  {}/{path}{colon}{why}", source.name)))
    }
}

/// Everything below a source's folder, from a thread of its own.
fn surveyed(mount: &Arc<Mount>) -> (mpsc::Receiver<Sighting>, tokio::task::JoinHandle<()>) {
    let (to, sightings) = mpsc::channel(4 * LOOKED_UP_AT_ONCE);
    let looked = Arc::clone(mount);
    let surveyor = match mount.bucket().cloned() {
        Some(bucket) => tokio::spawn(async move { objects::survey(&bucket, looked.source(), &to).await }),
        None => tokio::task::spawn_blocking(move || survey(looked.source(), &looked.disks(), &to)),
    };
    (sightings, surveyor)
}

fn is_skipped_for_subtitle(job: &Job) -> bool {
    matches!(job.stage, Stage::Skipped { why: Skip::Subtitled })
}

fn words(forecast: &Forecast) -> (&'static str, &str) {
    match forecast {
        Forecast::New => ("new", ""),
        Forecast::Changed => ("changed", ""),
        Forecast::OnTheWay => ("on its way", ""),
        Forecast::AtTheService => ("at the service", ""),
        Forecast::Done => ("done", ""),
        Forecast::Held => ("held", ""),
        Forecast::Skipped(why) => ("skipped", why),
    }
}
