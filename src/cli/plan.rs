//! `scribed plan`: what `once` would do. Submits nothing, changes nothing.

use crate::cli::args::Plan;
use crate::cli::entry::Context;
use crate::cli::failure::{Failure, UNFINISHED};
use crate::cli::planned::Planned;
use crate::cli::progress::spinner;
use crate::cli::signals::on_signal;
use crate::cli::way::{Way, strange};
use crate::clock::{Clock, SystemClock};
use crate::config::meant::{Config, Existing, Source};
use crate::control::caller::Caller;
use crate::control::forecast::{Forecast, forecast};
use crate::control::request::{Answer, Known, LOOKED_UP_AT_ONCE, Request};
use crate::daemon;
use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::names::ServiceName;
use crate::domain::path::RelPath;
use crate::domain::stage::{Skip, Stage};
use crate::media::decode::{DecodeError, probe};
use crate::pipeline::blocking::blocking;
use crate::source::choice::Rule;
use crate::source::folder::full_path;
use crate::source::mount::Mount;
use crate::source::ours::says_it_is_ours;
use crate::source::survey::{Sighting, survey};
use crate::store::copy::CopyRoom;
use futures_util::StreamExt;
use indicatif::ProgressBar;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Looks at every source, asks the queue about each file, and says what would happen.
///
/// # Errors
/// See [`Failure`].
pub async fn run(context: &Context, args: &Plan) -> Result<u8, Failure> {
    let config = context.config_without_secrets()?;
    let stop = on_signal()?;
    tokio::select! {
        biased;
        // What the plan has made is removed with it.
        () = stop.cancelled() => {
            context.say("stopped before its end; nothing was changed")?;
            Ok(UNFINISHED)
        }
        planned = plan(context, args, &config) => planned,
    }
}

async fn plan(context: &Context, args: &Plan, config: &Config) -> Result<u8, Failure> {
    let queue = Queue::find(config)?;
    let (sum, prices, shown) = (Planned::default(), &config.prices, spinner(context));
    let mut planner = Planner { context, list: args.list, queue, sum, prices, shown };
    for mount in daemon::mounts_of(config).values() {
        planner.source(mount).await?;
    }
    planner.sum.paused = planner.queue.paused().await?;
    planner.shown.finish_and_clear();
    planner.sum.tell(context)?;
    Ok(if planner.sum.is_whole() { 0 } else { UNFINISHED })
}

/// What is known of files already.
enum Queue {
    /// Nothing: there is no queue yet, and a plan makes none.
    None,
    /// What the daemon says.
    Daemon(Way),
    /// What a copy says: opening the queue itself would write to it.
    Copy(Way, #[expect(dead_code, reason = "the copy is removed with it")] CopyRoom),
}

impl Queue {
    fn find(config: &Config) -> Result<Self, Failure> {
        if let Some(caller) = Caller::find(&config.state)? {
            return Ok(Self::Daemon(Way::Daemon(caller)));
        }
        let copy = daemon::copied_hands(config)?;
        Ok(copy.map_or(Self::None, |(hands, place)| Self::Copy(Way::Here(Box::new(hands)), place)))
    }

    async fn paused(&self) -> Result<bool, Failure> {
        match self {
            Self::None => Ok(false),
            Self::Daemon(way) | Self::Copy(way, _) => match way.ask(Request::Paused).await? {
                Answer::Paused(pauses) => Ok(pauses.all(SystemClock.now()).is_some()),
                _ => Err(strange()),
            },
        }
    }

    async fn known(&self, keys: Vec<JobKey>) -> Result<Vec<Known>, Failure> {
        match self {
            Self::None => Ok(vec![Known::default(); keys.len()]),
            Self::Daemon(way) | Self::Copy(way, _) => match way.ask(Request::LookUp { keys }).await? {
                Answer::LookedUp(known) => Ok(known),
                _ => Err(strange()),
            },
        }
    }
}

struct Planner<'a> {
    context: &'a Context,
    list: bool,
    queue: Queue,
    sum: Planned,
    prices: &'a BTreeMap<ServiceName, f64>,
    shown: ProgressBar,
}

impl Planner<'_> {
    async fn source(&mut self, mount: &Arc<Mount>) -> Result<(), Failure> {
        if let Err(away) = mount.there_now().await {
            self.sum.away.push(away.to_string());
            return Ok(());
        }
        let (to, mut sightings) = mpsc::channel(4 * LOOKED_UP_AT_ONCE);
        let looked = Arc::clone(mount);
        let surveyor = tokio::task::spawn_blocking(move || survey(looked.source(), &looked.disks(), &to));
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
        let key = |path: &RelPath| JobKey { source: source.name.clone(), path: path.clone() };
        let known = self.queue.known(taken.iter().map(|(path, _)| key(path)).collect()).await?;
        let mut sent = Vec::new();
        for ((path, stamp), known) in taken.into_iter().zip(known) {
            if known.is_output {
                self.sum.passed_over(Rule::OurOutput.to_string());
                continue;
            }
            let mut forecast = forecast(known.job.as_ref(), &stamp);
            // What was skipped for a subtitle is looked at anew: it may be gone, or the setting another.
            let was_subtitled = known.job.is_some_and(|job| is_skipped_for_subtitle(&job));
            if forecast == Forecast::New || was_subtitled {
                forecast = match self.is_subtitled(mount, &path).await? {
                    true => Forecast::Skipped(Skip::Subtitled.words().to_owned()),
                    false => Forecast::New,
                };
            }
            let (what, why) = words(&forecast);
            self.say(source, &path, what, why)?;
            if self.sum.add(&forecast, &stamp) {
                sent.push((path, stamp));
            }
        }
        self.lengths(source, sent).await;
        Ok(())
    }

    /// Whether a subtitle by someone else lies beside it, and is to be left in its place.
    async fn is_subtitled(&self, mount: &Arc<Mount>, path: &RelPath) -> Result<bool, Failure> {
        let source = mount.source();
        if source.existing == Existing::Transcribe {
            return Ok(false);
        }
        let (theirs, recording) = (Arc::clone(mount), path.clone());
        let found = blocking(move || theirs.beside().subtitles(&theirs.source().folder, &recording)).await;
        let keys = found?.into_iter().map(|path| JobKey { source: source.name.clone(), path }).collect::<Vec<_>>();
        if keys.is_empty() {
            return Ok(false);
        }
        let known = self.queue.known(keys.clone()).await?;
        let foreign: Vec<_> = keys.into_iter().zip(known).filter(|(_, known)| !known.is_output).collect();
        let folder = source.folder.clone();
        Ok(blocking(move || foreign.iter().any(|(key, _)| !says_it_is_ours(&folder, &key.path))).await)
    }

    /// How long those are that would be sent, as many at once as there are cores.
    async fn lengths(&mut self, source: &Source, files: Vec<(RelPath, Stamp)>) {
        let at_once = std::thread::available_parallelism().map_or(2, usize::from);
        let is_there = !self.sum.no_tool;
        let probes = files.iter().map(|(path, _)| {
            let path = full_path(&source.folder, path);
            async move { if is_there { Some(probe(&path).await) } else { None } }
        });
        let mut probes = futures_util::stream::iter(probes).buffer_unordered(at_once);
        while let Some(probed) = probes.next().await {
            match probed {
                Some(Ok(media)) if media.duration > 0.0 => {
                    self.sum.audio_seconds += media.duration;
                    let hours = media.duration / 3600.0 * f64::from(media.channels.max(1));
                    if let Some(price) = self.prices.get(&source.service) {
                        *self.sum.price.get_or_insert_default() += hours * price;
                    }
                }
                Some(Err(DecodeError::ToolMissing { .. })) | None => {
                    self.sum.no_tool = true;
                    self.sum.unknown_length += 1;
                }
                Some(_) => self.sum.unknown_length += 1,
            }
            let hours = self.sum.audio_seconds / 3600.0;
            self.shown.set_message(format!("{} files, {hours:.2} h of audio so far", self.sum.files()));
        }
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
