//! A person's order to take a file.

use super::explaining::{behind_a_link, is_a_persons_to_overrule};
use super::hands::Hands;
use super::place::Place;
use super::request::{Added, Refusal, Wanted};
use crate::clock::Moment;
use crate::domain::job::{JobKey, Stamp};
use crate::domain::names::Timestamp;
use crate::pipeline::blocking::blocking;
use crate::pipeline::medium::Medium;
use crate::source::choice::{Choice, Kind, choose_anywhere};
use crate::source::mount::Mount;
use crate::source::path_policy::{Denied, Policy};
use crate::source::place::full_path;
use crate::source::stamp::Look;
use crate::store::contract::Admission;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Takes a file below a source's folder, whatever the source's patterns say. It settles as any other.
///
/// # Errors
/// [`Refusal::Usage`] where it lies in no source, or is no regular file.
pub async fn add(hands: &Hands, place: &Place) -> Result<Added, Refusal> {
    let Some((mount, key)) = hands.key(place.path()).await else { return Err(Refusal::Usage(hands.outside(place))) };
    let below = Path::new(OsStr::from_bytes(key.path.as_bytes()));
    let (source, file) = (Arc::clone(mount.source()), below.to_owned());
    if let Choice::PassedOver(rule) = blocking(move || choose_anywhere(&source, &file, Kind::File)).await
        && !is_a_persons_to_overrule(&rule)
    {
        return Err(Refusal::Usage(format!("{place}: {rule}")));
    }
    mount.there_now().await.map_err(|away| Refusal::Declined(away.to_string()))?;
    if hands.store.wrote(&key).await? {
        return Err(Refusal::Usage(format!("{place} is an output that scribed wrote")));
    }
    allowed(mount, &key, place).await?;
    let medium = Medium::below(mount, &key.path);
    let link = match &medium {
        Medium::Object { .. } | Medium::Remote(_) => None,
        Medium::File { .. } => {
            let (path, folder) = (key.path.clone(), mount.source().folder.clone());
            blocking(move || behind_a_link(&folder, Path::new(OsStr::from_bytes(path.as_bytes())))).await
        }
    };
    let looked = medium.look().await;
    if let Some(link) = link {
        let words = format!("{place} lies behind the link {}: links are not followed", link.display());
        return Err(Refusal::Usage(words));
    }
    let stamp = regular(place, looked)?;
    let at = hands.clock.moment();
    let admission = hands.store.admit(&key, stamp, at.now, due(mount, &key, &stamp, at)).await?;
    hands.nudge();
    answer(hands, &key, admission).await
}

/// Patterns are a person's to overrule; that only recordings are sent, and nothing of scribed's own, is not.
async fn allowed(mount: &Arc<Mount>, key: &JobKey, place: &Place) -> Result<(), Refusal> {
    let (source, path) = (Arc::clone(mount.source()), full_path(&mount.source().folder, &key.path));
    let is_here = mount.bucket().is_none();
    let judged = blocking(move || {
        let policy = Policy::new(&source);
        policy.is_media(&path)?;
        if is_here { policy.file(&path).map(drop) } else { Ok(()) }
    });
    match judged.await {
        Err(Denied::Refused(words)) => Err(Refusal::Usage(format!("{place} {words}"))),
        // What lies behind a link is told below, and what stays here before anything is sent.
        Err(Denied::Held(_)) | Ok(()) => Ok(()),
    }
}

/// What came of an order.
///
/// # Errors
/// The store's.
pub async fn answer(hands: &Hands, key: &JobKey, admission: Admission) -> Result<Added, Refusal> {
    let (id, known) = (admission.id(), !admission.begins());
    let job = hands.job(&Wanted::Number(id)).await?;
    if !known {
        tracing::info!(job = %id, path = %key.path, source = %key.source, "a person's order: it is taken");
    }
    Ok(Added { job, known })
}

fn due(mount: &Mount, key: &JobKey, stamp: &Stamp, at: Moment) -> Timestamp {
    let settle = mount.settle_at(&key.path);
    mount.disk_at(&key.path).quiet_at(stamp, at, settle).map_or(at.now.after(settle), |quiet_at| quiet_at.max(at.now))
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
