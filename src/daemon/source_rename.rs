//! Recognises sources that have another name in `jobs.toml` than before, and moves their jobs to the new name, so
//! that none of them is stuck and nothing is bought again. A source is recognised by its folder: the same path, or
//! the same marker in it. If the new name has jobs of its own from another folder, or the old name goes on with
//! another folder (two sources that swap their names), nothing is moved and nothing is begun: jobs would be taken for
//! those of other files.

use super::{Daemon, DaemonError, Setup};
use crate::blocking::within;
use crate::clock::Clock;
use crate::config::model::{Config, Source};
use crate::crash_points::{self, Point};
use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::source::mount::marker;
use crate::source::mount::marker::{FolderIdentity, FolderMemory};
use crate::source::ownership::source_folders;
use crate::source::ownership::source_folders::RecordedFolder;
use crate::store::contract::{Queries, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// A folder that does not answer within this time has no known marker.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// How often the move of a job that a worker holds is tried …
const TRIES: u32 = 100;

/// … and the wait between two tries.
const TRY_EVERY: Duration = Duration::from_millis(100);

/// What tells a source apart from others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    source: SourceName,
    folder: RelPath,
    /// The id in the folder's marker, if there is one that can be read.
    marker: Option<String>,
}

/// Sources whose jobs get another name: the old and the new one.
pub(super) type Renames = Vec<(SourceName, SourceName)>;

fn is_same(a: &Place, b: &Place) -> bool {
    a.folder == b.folder || a.marker.is_some() && a.marker == b.marker
}

/// Returns which sources have another name now. `old`: sources with jobs that the configuration does not have; `new`:
/// sources of the configuration that were not there before. If two of either match, nobody can tell.
fn renames(old: &[Place], new: &[Place]) -> Renames {
    let only = |of: &Place, among: &[Place]| -> Option<SourceName> {
        let mut same = among.iter().filter(|place| is_same(of, place));
        same.next().filter(|_| same.next().is_none()).map(|place| place.source.clone())
    };
    let each = old.iter().filter_map(|place| {
        let new_name = only(place, new)?;
        let back = only(new.iter().find(|place| place.source == new_name)?, old)?;
        (back == place.source).then_some((back, new_name))
    });
    each.collect()
}

/// Returns a pair of sources of which the second has the folder of the first, which has jobs, and cannot take these
/// jobs over: its name has jobs of its own from another folder, or the old name goes on with another folder. `past`:
/// all sources that were there before; `now`: those of the configuration.
fn mixed_up<'p>(past: &'p [Place], has_jobs: &dyn Fn(&SourceName) -> bool, now: &'p [Place]) -> Option<[&'p Place; 2]> {
    let before = |name: &SourceName| past.iter().find(|past| past.source == *name);
    let stays = |place: &Place| before(&place.source).is_some_and(|past| is_same(past, place));
    now.iter().filter(|new| !stays(new)).find_map(|new| {
        let has_own = before(&new.source).is_some() && has_jobs(&new.source);
        let cannot_take_over = |old: &Place| {
            let goes_on = now.iter().find(|place| place.source == old.source);
            goes_on.map_or(has_own, |place| !stays(place))
        };
        let is_its = |old: &&Place| old.source != new.source && has_jobs(&old.source) && is_same(old, new);
        past.iter().filter(is_its).find(|old| cannot_take_over(old)).map(|old| [old, new])
    })
}

fn mixed_up_words([old, new]: [&Place; 2], config: &Config) -> String {
    let (folder, file) = (new.folder.escaped(), config.file.display());
    let (old, new) = (old.source.as_str(), new.source.as_str());
    format!(
        "in {file} the source {new:?} has the folder that the source {old:?} had ({folder}), and scribed cannot \
         give the jobs of {old:?} the new name: it would take them for jobs of other files. Nothing was started. \
         To swap the names of two sources, give one of them a name that no source had yet and start scribed once, \
         which moves its jobs to that name; then give the other one its new name and start scribed once; then the \
         first one"
    )
}

fn folder_of(source: &Source) -> RelPath {
    RelPath::new(source.folder.as_os_str().as_bytes())
}

/// Saves the folders of this configuration's sources, and of removed sources that still have jobs.
fn write_down(config: &Config, gone: &[RecordedFolder]) -> io::Result<()> {
    let now =
        config.sources.iter().map(|source| RecordedFolder { source: source.name.clone(), folder: folder_of(source) });
    source_folders::save(&config.state, &now.chain(gone.iter().cloned()).collect::<Vec<_>>())
}

/// What a configuration changes of the sources that the queue knows.
struct SourceChanges {
    renames: Renames,
    /// The sources that were removed, with their folders.
    gone: Vec<RecordedFolder>,
}

/// Compares a configuration with the sources that this queue knows.
///
/// # Errors
/// An error of the store; [`DaemonError::Names`].
async fn source_changes(config: &Config, store: &dyn Queries, clock: &dyn Clock) -> Result<SourceChanges, DaemonError> {
    let written = source_folders::read(&config.state).map_err(|error| {
        let words = format!("cannot read which folders the sources had: {error}. Nothing was started");
        StoreError::Unwritable(words)
    })?;
    let with_jobs: BTreeSet<SourceName> = store.counts_by_source().await?.into_keys().collect();
    let has_jobs = |name: &SourceName| with_jobs.contains(name);
    let names: BTreeSet<&SourceName> = with_jobs.iter().chain(written.iter().map(|past| &past.source)).collect();
    let mut past: Vec<Place> = names.into_iter().map(|name| past_of(config, &written, name)).collect();
    let mut now = Vec::new();
    for source in &config.sources {
        let (name, folder) = (&source.name, folder_of(source));
        let stays = past.iter().any(|past| past.source == *name && past.folder == folder);
        let marker = if stays { None } else { marker_of(source, clock).await };
        now.push((Place { source: name.clone(), folder, marker }, stays));
    }
    let all: Vec<Place> = now.iter().map(|(place, _)| place.clone()).collect();
    if let Some(mixed_up) = mixed_up(&past, &has_jobs, &all) {
        return Err(DaemonError::Names(mixed_up_words(mixed_up, config)));
    }
    let is_new = |place: &Place, stays: bool| match written.iter().any(|past| past.source == place.source) {
        // A source that had no jobs, at another folder, is as good as new.
        true => !stays && !has_jobs(&place.source),
        // Older releases saved nothing but how they recognise folders.
        false => !written.is_empty() || FolderMemory::load_recorded(&config.state, &place.source).is_none(),
    };
    let new: Vec<Place> =
        now.into_iter().filter(|(place, stays)| is_new(place, *stays)).map(|(place, _)| place).collect();
    past.retain(|place| has_jobs(&place.source) && all.iter().all(|now| now.source != place.source));
    let renames = renames(&past, &new);
    let stay = |place: &Place| renames.iter().all(|(old, _)| *old != place.source);
    let gone = past.into_iter().filter(stay).map(|Place { source, folder, .. }| RecordedFolder { source, folder });
    Ok(SourceChanges { gone: gone.collect(), renames })
}

/// Returns a source as it was when a configuration was last loaded.
fn past_of(config: &Config, written: &[RecordedFolder], name: &SourceName) -> Place {
    let folder = written.iter().find(|past| past.source == *name).map(|past| past.folder.clone());
    let (kept, marker) = match FolderMemory::load_recorded(&config.state, name) {
        Some((folder, FolderIdentity::Marker(id))) => (Some(folder), Some(id)),
        Some((folder, FolderIdentity::FileSystem(_))) => (Some(folder), None),
        None => (None, None),
    };
    Place { source: name.clone(), folder: folder.or(kept).unwrap_or_else(|| RelPath::new("")), marker }
}

/// Returns the id in the marker of a folder, if the folder answers.
async fn marker_of(source: &Source, clock: &dyn Clock) -> Option<String> {
    if !source.is_local() {
        return None;
    }
    let folder = source.folder.clone();
    within(clock, ANSWERS_WITHIN, move || marker::id(&folder)).await.flatten()
}

/// Returns which sources would be renamed, and to which name, for `scribed check`.
///
/// # Errors
/// An error of the store; [`DaemonError::Names`].
pub async fn renamed_sources(
    config: &Config,
    store: &dyn Queries,
    clock: &dyn Clock,
) -> Result<BTreeMap<SourceName, SourceName>, DaemonError> {
    Ok(source_changes(config, store, clock).await?.renames.into_iter().collect())
}

impl Daemon {
    /// Moves the jobs of renamed sources to the new names, before anything is scanned or handled.
    pub(super) async fn carry_over_at_start(&self) -> Result<(), DaemonError> {
        let setup = self.setup();
        let config = &setup.config;
        let SourceChanges { renames, gone } = source_changes(config, &*self.store, &*self.clock).await?;
        self.prepare_names(config, &renames);
        for mount in setup.mounts.values() {
            mount.remember();
        }
        self.carry_over(&renames).await?;
        self.finish_names(config, &gone);
        Ok(())
    }

    /// Returns what a configuration that is being loaded renames. Makes its folders known under the new names.
    pub(super) async fn renames_to(&self, config: &Config) -> Result<(Renames, NamesLeft), DaemonError> {
        let SourceChanges { renames, gone } = source_changes(config, &*self.store, &*self.clock).await?;
        self.prepare_names(config, &renames);
        Ok((renames, NamesLeft(gone)))
    }

    fn prepare_names(&self, config: &Config, renames: &Renames) {
        for (old, new) in renames {
            let Some(source) = config.sources.iter().find(|source| source.name == *new) else { continue };
            if let Err(error) = FolderMemory::rename_source(&config.state, old, (new, &source.folder)) {
                let words = "cannot read the marker record of a renamed source; scribed creates it again";
                tracing::warn!(%old, %new, %error, "{words}");
            }
        }
    }

    /// Moves the jobs to the new names. Waits for a job that a worker holds, but not for ever.
    pub(super) async fn carry_over(&self, renames: &Renames) -> Result<(), StoreError> {
        for (old, new) in renames {
            let (mut done, mut taken) = (0, 0);
            for attempt in 0..=TRIES {
                let renamed = self.store.rename_source(old, new, attempt == TRIES, self.clock.now()).await?;
                done += renamed.done;
                taken = renamed.taken;
                if renamed.held == 0 {
                    break;
                }
                self.clock.sleep(TRY_EVERY).await;
            }
            crash_points::point(Point::SourceRenamed);
            self.engines.recall();
            tracing::info!(%old, %new, jobs = done, "a source has another name in jobs.toml; scribed moves its jobs to the new name");
            if taken > 0 {
                tracing::warn!(%old, %new, jobs = taken, "some jobs keep the old name of their source, since the new one has jobs for the same files");
            }
        }
        Ok(())
    }

    fn finish_names(&self, config: &Config, gone: &[RecordedFolder]) {
        if let Err(error) = write_down(config, gone) {
            tracing::warn!(%error, "cannot save the folders of the sources; scribed will not recognise a source that is renamed");
        }
    }

    /// Saves the folders of the sources of a configuration that was loaded.
    pub(super) fn names_are(&self, setup: &Setup, left: &NamesLeft) {
        self.finish_names(&setup.config, &left.0);
    }
}

/// Sources that were removed, with the folders that they had.
pub(super) struct NamesLeft(Vec<RecordedFolder>);

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, folder: &str, marker: Option<&str>) -> Place {
        Place { source: SourceName::new(name), folder: RelPath::new(folder), marker: marker.map(str::to_owned) }
    }

    fn told(old: &[Place], new: &[Place]) -> Vec<String> {
        renames(old, new).into_iter().map(|(old, new)| format!("{old} {new}")).collect()
    }

    #[test]
    fn a_source_is_known_again_by_its_folder_or_its_marker() {
        let old = [place("a", "/srv/a", Some("1")), place("b", "/srv/b", None)];
        assert_eq!(told(&old, &[place("c", "/srv/a", None)]), ["a c"]);
        assert_eq!(told(&old, &[place("c", "/mnt/elsewhere", Some("1"))]), ["a c"]);
        assert_eq!(told(&old, &[place("c", "/srv/b", None), place("d", "/srv/a", None)]), ["a d", "b c"]);
        assert_eq!(told(&old, &[place("c", "/srv/c", Some("2")), place("d", "/srv/d", None)]), [""; 0]);
    }

    fn mixed(past: &[Place], with_jobs: &[&str], now: &[Place]) -> Option<String> {
        let mixed_up = mixed_up(past, &|name| with_jobs.contains(&name.as_str()), now);
        mixed_up.map(|[old, new]| format!("{} {}", old.source, new.source))
    }

    #[test]
    fn names_that_are_swapped_or_handed_on_are_told_from_renamed_sources() {
        let past = [place("a", "/srv/a", Some("1")), place("b", "/srv/b", Some("2"))];
        let at = |name: &str, folder: &str| place(name, folder, None);
        let swapped = [at("a", "/srv/b"), at("b", "/srv/a")];
        assert_eq!(mixed(&past, &["a", "b"], &swapped).as_deref(), Some("b a"));
        assert_eq!(mixed(&past, &["a"], &swapped).as_deref(), Some("a b"), "one of them has jobs");
        assert_eq!(mixed(&past, &[], &swapped), None, "none has");
        // Handed on: c is new, and b has the folder of a.
        assert!(mixed(&past, &["a", "b"], &[at("b", "/srv/a"), at("c", "/srv/b")]).is_some());
        // By their markers, where their folders have other paths too.
        let moved = [place("a", "/mnt/x", Some("2")), place("b", "/mnt/y", Some("1"))];
        assert!(mixed(&past, &["a", "b"], &moved).is_some());
        // The old name goes on with a folder of its own.
        assert_eq!(mixed(&past, &["a"], &[at("a", "/srv/z"), at("c", "/srv/a")]).as_deref(), Some("a c"));
        // Nothing of this: renamed, moved, a second source of one folder, as it was.
        for now in [
            vec![at("c", "/srv/a"), at("b", "/srv/b")],
            vec![at("a", "/srv/z"), at("b", "/srv/b")],
            vec![at("a", "/srv/a"), at("c", "/srv/a"), at("b", "/srv/b")],
            vec![at("a", "/srv/a"), at("b", "/srv/b")],
        ] {
            assert_eq!(mixed(&past, &["a", "b"], &now), None, "{now:?}");
        }
        // A crash in the middle of carrying over: both names have jobs.
        let crashed = [place("a", "/srv/a", Some("1")), place("b", "/srv/b", None), place("c", "/srv/a", Some("1"))];
        assert_eq!(mixed(&crashed, &["a", "b", "c"], &[at("c", "/srv/a"), at("b", "/srv/b")]), None);
    }

    #[test]
    fn where_two_fit_nothing_is_carried_over() {
        let old = [place("a", "/srv/a", None)];
        assert_eq!(told(&old, &[place("c", "/srv/a", None), place("d", "/srv/a", None)]), [""; 0]);
        let both = [place("a", "/srv/a", None), place("b", "/srv/a", None)];
        assert_eq!(told(&both, &[place("c", "/srv/a", None)]), [""; 0]);
    }
}
