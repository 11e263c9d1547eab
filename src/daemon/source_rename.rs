//! A source that has another name in `jobs.toml` than it had: its jobs are carried over to the new name, so that none of
//! them is stuck and nothing is bought again. It is known by its folder: the same path, or the same marker in it.

use super::{House, OpenError, Setup};
use crate::clock::Clock;
use crate::config::meant::{Config, Source};
use crate::crash::{self, Point};
use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::pipeline::blocking::within;
use crate::source::marker::{self, Known, Memory};
use crate::source::source_folders::{self, SourceFolder};
use crate::store::contract::{Store, StoreError};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// A folder that does not answer tells nothing.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// A job that is being moved is waited for, so many times …
const TRIES: u32 = 100;

/// … for so long.
const TRY_EVERY: Duration = Duration::from_millis(100);

/// A source as it is told apart from others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    source: SourceName,
    folder: RelPath,
    /// The id in its marker, where it has one that could be read.
    marker: Option<String>,
}

/// Sources whose jobs get another name: old, new.
pub(super) type Renames = Vec<(SourceName, SourceName)>;

/// Which sources have another name now. `old`: those with jobs that the configuration does not have; `new`: those of
/// the configuration that were not there before. Where two of either fit, nobody can tell.
fn renames(old: &[Place], new: &[Place]) -> Renames {
    let is_same = |a: &Place, b: &Place| a.folder == b.folder || a.marker.is_some() && a.marker == b.marker;
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

fn folder_of(source: &Source) -> RelPath {
    RelPath::new(source.folder.as_os_str().as_bytes())
}

/// What this configuration's sources are, and where those were that still have jobs.
fn write_down(config: &Config, gone: &[SourceFolder]) -> io::Result<()> {
    let now =
        config.sources.iter().map(|source| SourceFolder { source: source.name.clone(), folder: folder_of(source) });
    source_folders::keep(&config.state, &now.chain(gone.iter().cloned()).collect::<Vec<_>>())
}

/// The renamed sources of a configuration, as far as this queue knows them; and those that are gone, with their folders.
///
/// # Errors
/// The store's.
async fn found(
    config: &Config,
    store: &dyn Store,
    clock: &dyn Clock,
) -> Result<(Renames, Vec<SourceFolder>), StoreError> {
    let past = source_folders::read(&config.state);
    let is_configured = |name: &SourceName| config.sources.iter().any(|source| source.name == *name);
    let gone: Vec<SourceName> = store.sources().await?.into_keys().filter(|name| !is_configured(name)).collect();
    let past_of = |name: &SourceName| past.iter().find(|past| past.source == *name);
    if gone.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let old = gone.iter().map(|name| {
        let folder = past_of(name).map(|past| past.folder.clone());
        let kept = Memory::kept_of(&config.state, name);
        let known = kept.as_ref().map(|(_, known)| known.clone());
        let marker = known.and_then(|known| if let Known::Marker(id) = known { Some(id) } else { None });
        Place {
            source: name.clone(),
            folder: folder.or(kept.map(|(folder, _)| folder)).unwrap_or_else(|| RelPath::new("")),
            marker,
        }
    });
    let old: Vec<Place> = old.collect();
    let is_new = |source: &&Source| match past.is_empty() {
        false => past_of(&source.name).is_none(),
        // An older release wrote nothing down but what it knew folders by.
        true => Memory::kept_of(&config.state, &source.name).is_none(),
    };
    let mut new = Vec::new();
    for source in config.sources.iter().filter(is_new) {
        let folder = source.folder.clone();
        let marker = match source.bucket {
            Some(_) => None,
            None => within(clock, ANSWERS_WITHIN, move || marker::id(&folder)).await.flatten(),
        };
        new.push(Place { source: source.name.clone(), folder: folder_of(source), marker });
    }
    let renames = renames(&old, &new);
    let stay = |place: &Place| renames.iter().all(|(old, _)| *old != place.source);
    let gone = old.into_iter().filter(stay).map(|Place { source, folder, .. }| SourceFolder { source, folder });
    let gone = gone.collect();
    Ok((renames, gone))
}

/// What `scribed check` says of it: what would be carried over, and to which name.
///
/// # Errors
/// The store's.
pub async fn renamed_sources(
    config: &Config,
    store: &dyn Store,
    clock: &dyn Clock,
) -> Result<BTreeMap<SourceName, SourceName>, StoreError> {
    Ok(found(config, store, clock).await?.0.into_iter().collect())
}

impl House {
    /// Before anything is scanned or moved: the jobs of renamed sources have the new names.
    pub(super) async fn carry_over_at_start(&self) -> Result<(), OpenError> {
        let setup = self.setup();
        let config = &setup.config;
        let (renames, gone) = found(config, &*self.store, &*self.clock).await?;
        self.prepare_names(config, &renames);
        for mount in setup.mounts.values() {
            mount.remember();
        }
        self.carry_over(&renames).await?;
        self.finish_names(config, &gone);
        Ok(())
    }

    /// What a configuration that is taken up renames: what its folders are known by is known under the new names.
    pub(super) async fn renames_to(&self, config: &Config) -> Result<(Renames, NamesLeft), StoreError> {
        let (renames, gone) = found(config, &*self.store, &*self.clock).await?;
        self.prepare_names(config, &renames);
        Ok((renames, NamesLeft(gone)))
    }

    fn prepare_names(&self, config: &Config, renames: &Renames) {
        for (old, new) in renames {
            let Some(source) = config.sources.iter().find(|source| source.name == *new) else { continue };
            if let Err(error) = Memory::carry_over(&config.state, old, (new, &source.folder)) {
                let words = "what the folder of a renamed source is recognised by is learned again";
                tracing::warn!(%old, %new, %error, "{words}");
            }
        }
    }

    /// The jobs have the new names when it returns. One that is being moved is waited for; not for ever.
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
            crash::point(Point::SourceRenamed);
            self.engines.recall();
            tracing::info!(%old, %new, jobs = done, "a source has another name in jobs.toml: its jobs are carried over to it");
            if taken > 0 {
                tracing::warn!(%old, %new, jobs = taken, "jobs keep the old name of their source, as the new one has jobs of the same files");
            }
        }
        Ok(())
    }

    fn finish_names(&self, config: &Config, gone: &[SourceFolder]) {
        if let Err(error) = write_down(config, gone) {
            tracing::warn!(%error, "the folders of the sources cannot be written down: a source that is renamed is not known again");
        }
    }

    /// The same for a configuration that was taken up.
    pub(super) fn names_are(&self, setup: &Setup, left: &NamesLeft) {
        self.finish_names(&setup.config, &left.0);
    }
}

/// Sources that are gone, with the folders that they had.
pub(super) struct NamesLeft(Vec<SourceFolder>);

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

    #[test]
    fn where_two_fit_nothing_is_carried_over() {
        let old = [place("a", "/srv/a", None)];
        assert_eq!(told(&old, &[place("c", "/srv/a", None), place("d", "/srv/a", None)]), [""; 0]);
        let both = [place("a", "/srv/a", None), place("b", "/srv/a", None)];
        assert_eq!(told(&both, &[place("c", "/srv/a", None)]), [""; 0]);
    }
}
