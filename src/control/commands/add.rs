//! Adding a file by command.

use crate::blocking::blocking;
use crate::clock::Moment;
use crate::control::explain::explain_path::{can_be_overruled, first_link};
use crate::control::media_address::MediaAddress;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{Added, CommandRefusal, JobSelector};
use crate::domain::job::{JobKey, Stamp};
use crate::domain::names::Timestamp;
use crate::pipeline::media_file::MediaFile;
use crate::source::filter::rules::{EntryKind, FilterResult, filter_path_with_ignore_files};
use crate::source::metadata::file_look::FileLook;
use crate::source::mount::source_mount::Mount;
use crate::source::path_policy::{Denied, PathPolicy};
use crate::source::recording_place::full_path;
use crate::store::contract::Admission;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Adds a file below a source's folder, whatever the source's patterns say. The file settles as any other.
///
/// # Errors
/// [`CommandRefusal::Usage`] if the file is below no source's folder, is not a regular file, or may not be added;
/// [`CommandRefusal::Declined`] if the source's folder is not available.
pub async fn add(handler: &CommandHandler, place: &MediaAddress) -> Result<Added, CommandRefusal> {
    let Some((mount, key)) = handler.key(place.path()).await else {
        let outside = handler.outside_message(place);
        return Err(CommandRefusal::Usage(format!(
            "{outside}: copy it into one of them, or add a [[source]] with its folder to jobs.toml"
        )));
    };
    let below = Path::new(OsStr::from_bytes(key.path.as_bytes()));
    let (source, file) = (Arc::clone(mount.source()), below.to_owned());
    if let FilterResult::PassedOver(rule) =
        blocking(move || filter_path_with_ignore_files(&source, &file, EntryKind::File)).await
        && !can_be_overruled(&rule)
    {
        return Err(CommandRefusal::Usage(format!("{place}: {rule}")));
    }
    mount.check_now().await.map_err(|away| CommandRefusal::Declined(away.to_string()))?;
    if handler.store.is_output(&key).await? {
        return Err(CommandRefusal::Usage(format!("{place} is an output that scribed wrote")));
    }
    allowed(mount, &key, place).await?;
    let medium = MediaFile::below(mount, &key.path);
    let link = match &medium {
        MediaFile::Object { .. } | MediaFile::Remote(_) => None,
        MediaFile::File { .. } => {
            let (path, folder) = (key.path.clone(), mount.source().folder.clone());
            blocking(move || first_link(&folder, Path::new(OsStr::from_bytes(path.as_bytes())))).await
        }
    };
    let file_look = medium.look().await;
    if let Some(link) = link {
        let words = format!("{place} is behind the link {}: scribed does not follow links", link.display());
        return Err(CommandRefusal::Usage(words));
    }
    let stamp = regular(place, file_look)?;
    let at = handler.clock.moment();
    let admission = handler.store.admit(&key, stamp, at.now, due(mount, &key, &stamp, at)).await?;
    handler.wake_engines();
    answer(handler, &key, admission).await
}

/// Checks the rules that a person cannot overrule, unlike patterns: only recordings are sent, and none of scribed's own
/// files.
async fn allowed(mount: &Arc<Mount>, key: &JobKey, place: &MediaAddress) -> Result<(), CommandRefusal> {
    let (source, path) = (Arc::clone(mount.source()), full_path(&mount.source().folder, &key.path));
    let is_here = mount.source().is_local();
    let judged = blocking(move || {
        let policy = PathPolicy::new(&source);
        policy.check_media_extension(&path)?;
        if is_here { policy.file(&path).map(drop) } else { Ok(()) }
    });
    match judged.await {
        Err(Denied::Refused(words)) => Err(CommandRefusal::Usage(format!("{place} {words}"))),
        // `add` reports a file behind a link itself, and a file that must stay local is held before it is sent.
        Err(Denied::Held(_)) | Ok(()) => Ok(()),
    }
}

/// Returns the answer for an admitted file or address.
pub async fn answer(handler: &CommandHandler, key: &JobKey, admission: Admission) -> Result<Added, CommandRefusal> {
    let (id, known) = (admission.id(), !admission.begins());
    let job = handler.job(&JobSelector::Number(id)).await?;
    if !known {
        tracing::info!(job = %id, path = %key.path, source = %key.source, "a person added a file");
    }
    Ok(Added { job, known })
}

fn due(mount: &Mount, key: &JobKey, stamp: &Stamp, at: Moment) -> Timestamp {
    let settle = mount.settle_at(&key.path);
    mount
        .disk_at(&key.path)
        .quiet_at(stamp, at, settle)
        .map_or(at.now.saturating_add(settle), |quiet_at| quiet_at.max(at.now))
}

fn regular(place: &MediaAddress, file_look: io::Result<FileLook>) -> Result<Stamp, CommandRefusal> {
    let words = match file_look {
        Ok(FileLook::File(stamp)) => return Ok(stamp),
        Ok(FileLook::Nothing) => format!("{place} does not exist"),
        Ok(FileLook::Other) => {
            format!("{place} is not a regular file: scribed does not add folders, links, pipes or devices")
        }
        Err(error) => format!("cannot access {place}: {error}"),
    };
    Err(CommandRefusal::Usage(words))
}
