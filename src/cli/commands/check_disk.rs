//! What `scribed check` says of the folders that scribed writes into: whether it can, and how much room there is.

use crate::config::model::Config;
use crate::daemon::embedded_data;
use crate::output::writable::{free, try_folder};
use crate::rooted_path::RootedPath;
use std::path::Path;

/// A folder that can be written: how much is free there, in words that stand behind a sentence.
pub fn free_space(folder: &Path) -> String {
    free(folder).map_or_else(String::new, |free| format!(", {} free", shown(free)))
}

/// Whether files can be written below a folder, in words where they cannot. Where it is not there yet, the nearest one
/// above it is tried. Leaves nothing.
///
/// # Errors
/// Why not, and what to do.
pub fn writable(folder: &Path) -> Result<(), String> {
    let there = folder.ancestors().find(|above| above.is_dir()).unwrap_or(folder);
    try_folder(&RootedPath::new(there, ""), false).map_err(|error| error.to_string())
}

/// The folders of the program itself: the queue's and that of sound tracks that wait to be sent. `serves`: the embedded
/// service works here, too.
pub fn own_folders(config: &Config, serves: bool) -> Vec<(&'static str, std::path::PathBuf, Option<u64>)> {
    let spool = config.state.join("spool");
    let spools =
        config.services.values().any(|service| service.terms().upload == crate::config::model::UploadMode::Audio)
            || config.sources.iter().any(crate::config::model::Source::has_track_selection);
    let mut all = vec![("state", config.state.clone(), None)];
    if spools {
        all.push(("spool", spool, Some(config.spool)));
    }
    if serves {
        all.push(("service data", embedded_data(config), Some(config.serve.disk)));
    }
    all
}

/// One of them: whether it is well, and in words. `most`: what may come to lie there.
pub fn own_folder(folder: &Path, most: Option<u64>) -> (bool, String) {
    let place = folder.display();
    if let Err(why) = writable(folder) {
        // Of a folder that is scribed's own.
        return (false, why.replacen("cannot write outputs", "cannot write", 1));
    }
    let free = free(folder);
    match (free, most) {
        (Some(free), Some(most)) if free < most => {
            let words = format!(
                "{place} can be written, but only {} are free and its limit is {}: free some space, or lower the \
                 limit",
                shown(free),
                shown(most)
            );
            // It works until the disk is full; then jobs wait.
            (true, words)
        }
        _ => (true, format!("{place} can be written{}", free_space(folder))),
    }
}

/// In units of 1000, as disks are sold and `jobs.toml` has them.
fn shown(bytes: u64) -> String {
    let units = [("TB", 1_000_000_000_000_u64), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];
    let unit = units.into_iter().find(|(_, size)| bytes >= *size);
    unit.map_or_else(|| format!("{bytes} B"), |(name, size)| format!("{:.1} {name}", bytes as f64 / size as f64))
}
