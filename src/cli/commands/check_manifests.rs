//! What `scribed check` says of manifests: how each is read, how many rows it has, and which are wrong.

use crate::blocking::blocking;
use crate::config::model::Source;
use crate::domain::escape;
use crate::domain::job::Stamp;
use crate::domain::path::RelPath;
use crate::manifests::format::find::{find, owned_by_other_message};
use crate::manifests::format::text::Encoding;
use crate::manifests::passes::rows::{ReadRow, items};
use crate::source::metadata::file_look::FileLook;
use crate::source::mount::source_mount::Mount;
use std::ops::ControlFlow;
use std::sync::Arc;

/// So many rows that are wrong are named of each list.
const NAMED: usize = 10;

/// What was found of one list.
pub struct ManifestReport {
    pub what: String,
    /// Whether nobody has to do anything about it.
    pub is_good: bool,
    pub words: String,
}

/// Reads every list of a source. Nothing is changed, and nothing is taken in.
pub async fn reports(mount: &Arc<Mount>) -> Vec<ManifestReport> {
    let Some(manifests) = mount.source().manifests().cloned() else { return Vec::new() };
    if mount.check_now().await.is_err() {
        return Vec::new();
    }
    let mount = Arc::clone(mount);
    blocking(move || {
        let source = mount.source();
        let found = find(source, mount.disk_at(&RelPath::new("")));
        let is_none = found.manifests.is_empty() && found.owned_by_others.is_empty() && found.problems.is_empty();
        let pattern = manifests.pattern.glob().glob();
        let none = || {
            let words = format!("no manifest matches {pattern} in {} yet", source.folder.display());
            ManifestReport { what: format!("source {}", source.name), is_good: true, words }
        };
        let troubles = found.problems.iter().map(|words| bad(format!("source {}", source.name), words.clone()));
        let read = found.manifests.iter().map(|(manifest, stamp)| report(&mount, manifest, *stamp));
        let taken = found.owned_by_others.iter().map(|(manifest, _, earlier)| {
            bad(
                named(source, manifest),
                format!("scribed does not use it for the source {}: {}", source.name, owned_by_other_message(earlier)),
            )
        });
        let all = troubles.chain(read).chain(taken).collect::<Vec<_>>();
        if is_none { vec![none()] } else { all }
    })
    .await
}

fn bad(what: String, words: String) -> ManifestReport {
    ManifestReport { what, is_good: false, words }
}

fn named(source: &Source, manifest: &RelPath) -> String {
    let folder = source.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!("manifest {}/{}", folder, manifest.lossy())
}

/// What the rows of a list come to.
#[derive(Default)]
struct Count {
    rows: u64,
    wrong: u64,
    held: u64,
    awaited: u64,
    named: Vec<String>,
}

impl Count {
    fn add(&mut self, item: &ReadRow, source: &Source) {
        self.rows += 1;
        let told = match (&item.row, &item.denied) {
            (Err(wrong), _) => {
                self.wrong += 1;
                wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            }
            (Ok(row), Some(denied)) => {
                self.held += 1;
                format!("row {} {}", row.number, denied.describe(source))
            }
            (Ok(_), None) => {
                self.awaited += u64::from(matches!(item.file_look, Some(Ok(FileLook::Nothing))));
                return;
            }
        };
        if self.named.len() < NAMED {
            self.named.push(told);
        }
    }
}

fn report(mount: &Mount, manifest: &RelPath, stamp: Stamp) -> ManifestReport {
    let source = mount.source();
    let mut count = Count::default();
    let read = items(mount, manifest, stamp, &mut |item| {
        count.add(&item, source);
        ControlFlow::Continue(())
    });
    let what = named(source, manifest);
    match read {
        Err(problem) => bad(what, format!("cannot use it: {problem}")),
        Ok(form) => {
            let encoding = match form.encoding {
                Encoding::Utf8 => "",
                Encoding::Windows1252 => {
                    ", read as windows-1252 since it is not UTF-8: save it as \"CSV UTF-8\" if names look wrong"
                }
            };
            let parts = [
                (count.wrong, "wrong"),
                (count.held, "waiting for a setting in jobs.toml"),
                (count.awaited, "waiting for files that do not exist yet"),
            ];
            let parts =
                parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}"));
            let rows = if count.rows == 1 { "1 row".to_owned() } else { format!("{} rows", count.rows) };
            let mut words = format!("{rows}{}{encoding}", parts.collect::<String>());
            // One fault a line; what others wrote in it moves no terminal.
            count.named.iter().for_each(|row| words.push_str(&format!("\n    {}", escape::line(row))));
            match (count.wrong + count.held).saturating_sub(NAMED as u64) {
                0 => {}
                more => words.push_str(&format!("\n    and {more} more: `scribed plan --list` shows them all")),
            }
            ManifestReport { what, is_good: count.wrong + count.held == 0, words }
        }
    }
}
