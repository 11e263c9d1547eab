//! The part of `scribed check` that looks at the folders that scribed writes to: whether it can write them, and how
//! much space is free.

use crate::config::model::Config;
use crate::daemon::embedded_data;
use crate::output::writable::{free, try_folder};
use crate::rooted_path::RootedPath;
use std::path::Path;

/// Returns the free space of a folder's disk as the end of a sentence (`, 1.5 GB free`), or nothing if it is unknown.
pub fn free_space(folder: &Path) -> String {
    free(folder).map_or_else(String::new, |free| format!(", {} free", format_size(free)))
}

/// Checks that files can be written in a folder. If the folder does not exist yet, the nearest existing one above it is
/// tried. The check leaves no files.
///
/// # Errors
/// A message with the cause and what to do.
pub fn writable(folder: &Path) -> Result<(), String> {
    let existing = folder.ancestors().find(|above| above.is_dir()).unwrap_or(folder);
    try_folder(&RootedPath::new(existing, ""), false).map_err(|error| error.to_string())
}

/// Returns the folders of scribed itself, each with its name and its size limit in bytes, if it has one: the state
/// directory; the spool, if audio tracks are extracted; and the service's data, if `serves`, that is, if a source uses
/// the embedded service.
pub fn own_folders(config: &Config, serves: bool) -> Vec<(&'static str, std::path::PathBuf, Option<u64>)> {
    let spool = config.state.join("spool");
    let spools =
        config.services.values().any(|service| service.terms().upload == crate::config::model::UploadMode::Audio)
            || config.sources.iter().any(crate::config::model::Source::has_track_selection);
    let mut folders = vec![("state", config.state.clone(), None)];
    if spools {
        folders.push(("spool", spool, Some(config.spool)));
    }
    if serves {
        folders.push(("service data", embedded_data(config), Some(config.serve.disk)));
    }
    folders
}

/// Checks one of these folders. Returns whether it can be written, and a description. `limit` is the size in bytes to
/// which it may grow.
pub fn own_folder(folder: &Path, limit: Option<u64>) -> (bool, String) {
    let place = folder.display();
    if let Err(why) = writable(folder) {
        // This folder holds no outputs, unlike those that the message is written for.
        return (false, why.replacen("cannot write outputs", "cannot write", 1));
    }
    let free = free(folder);
    match (free, limit) {
        (Some(free), Some(limit)) if free < limit => {
            let words = format!(
                "{place} can be written, but only {} are free and its limit is {}: free some space, or lower the \
                 limit",
                format_size(free),
                format_size(limit)
            );
            // This is not a failure: scribed works until the disk is full, and then jobs wait.
            (true, words)
        }
        _ => (true, format!("{place} can be written{}", free_space(folder))),
    }
}

/// Formats a size in units of 1000, as disks are sold and as `jobs.toml` has them.
pub fn format_size(bytes: u64) -> String {
    let units = [("TB", 1_000_000_000_000_u64), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];
    let unit = units.into_iter().find(|(_, size)| bytes >= *size);
    unit.map_or_else(|| format!("{bytes} B"), |(name, size)| format!("{:.1} {name}", bytes as f64 / size as f64))
}
