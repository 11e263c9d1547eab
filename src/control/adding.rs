//! A person's order to take a file.

use super::hands::Hands;
use super::place::Place;
use super::request::{Added, Refusal, Wanted};
use crate::config::meant::Source;
use crate::domain::job::{JobKey, Stamp};
use crate::domain::names::Timestamp;
use crate::pipeline::blocking::blocking;
use crate::source::folder::full_path;
use crate::source::stamp::{Look, ctime_is_honest, look, quiet_since_ctime};
use crate::store::contract::Admission;
use std::io;

/// Takes a file below a source's folder, whatever the source's patterns say. It settles as any other.
///
/// # Errors
/// [`Refusal::Usage`] where it lies in no source, or is no regular file.
pub async fn add(hands: &Hands, place: &Place) -> Result<Added, Refusal> {
    let Some((source, key)) = hands.key(place.path()) else { return Err(Refusal::Usage(outside(hands, place))) };
    if hands.own.iter().any(|own| place.path().starts_with(own)) {
        return Err(Refusal::Usage(format!("{place} lies in a folder of scribed's own: nothing there is media")));
    }
    let (path, folder) = (full_path(&source.folder, &key.path), source.folder.clone());
    let (looked, honest) = blocking(move || (look(&path), ctime_is_honest(&folder))).await;
    let stamp = regular(place, looked)?;
    let now = hands.clock.now();
    let due = due(source, &stamp, honest, now);
    let admission = hands.store.admit(&key, stamp, now, due).await?;
    hands.nudge();
    answer(hands, &key, admission).await
}

async fn answer(hands: &Hands, key: &JobKey, admission: Admission) -> Result<Added, Refusal> {
    let (Admission::New(id) | Admission::Known(id) | Admission::Reopened(id)) = admission;
    let known = matches!(admission, Admission::Known(_));
    let job = hands.job(&Wanted::Number(id)).await?;
    if !known {
        tracing::info!(job = %id, path = %key.path, source = %key.source, "a person's order: the file is taken");
    }
    Ok(Added { job, known })
}

fn due(source: &Source, stamp: &Stamp, honest: bool, now: Timestamp) -> Timestamp {
    let quiet = honest && quiet_since_ctime(stamp, now, source.settle);
    if quiet { now } else { now.after(source.settle) }
}

fn regular(place: &Place, looked: io::Result<Look>) -> Result<Stamp, Refusal> {
    let words = match looked {
        Ok(Look::File(stamp)) => return Ok(stamp),
        Ok(Look::Nothing) => format!("{place} is not there"),
        Ok(Look::Other) => format!("{place} is no regular file: folders, links, pipes and devices are not taken"),
        Err(error) => format!("{place} cannot be looked at: {error}"),
    };
    Err(Refusal::Usage(words))
}

fn outside(hands: &Hands, place: &Place) -> String {
    let folders: Vec<String> = hands.sources.values().map(|source| source.folder.display().to_string()).collect();
    format!(
        "{place} lies below no source's folder ({}): copy it into one of them, or add a [[source]] with its folder to \
         jobs.toml",
        folders.join(", ")
    )
}
