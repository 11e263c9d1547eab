//! The part of `scribed check` that reads manifests: how each one is read, how many rows it has, and which are wrong.

use crate::blocking::blocking;
use crate::config::model::Source;
use crate::domain;
use crate::domain::escape;
use crate::domain::job::Stamp;
use crate::domain::path::RelPath;
use crate::manifests::format::columns::misspelt;
use crate::manifests::format::find::{find, owned_by_other_message};
use crate::manifests::format::text::Encoding;
use crate::manifests::passes::rows::{ReadRow, items};
use crate::source::metadata::file_look::FileLook;
use crate::source::mount::source_mount::Mount;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// The number of wrong rows that are listed for each manifest.
const MAX_LISTED: usize = 10;

/// A result of checking one manifest.
pub struct ManifestReport {
    pub what: String,
    pub finding: ManifestFinding,
    pub words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestFinding {
    Good,
    /// The manifest or one of its rows cannot be used.
    Wrong,
    /// There is no manifest at all.
    Nothing,
    /// A column looks like a misspelt one.
    Misspelt,
}

/// Reads every manifest of a source. Adds no jobs and changes nothing.
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
            let words = no_match_message(pattern, &source.folder);
            ManifestReport { what: format!("source {}", source.name), finding: ManifestFinding::Nothing, words }
        };
        let problems = found.problems.iter().map(|words| bad(format!("source {}", source.name), words.clone()));
        let read = found.manifests.iter().flat_map(|(manifest, stamp)| read_report(&mount, manifest, *stamp));
        let owned_by_others = found.owned_by_others.iter().map(|(manifest, _, earlier)| {
            bad(
                manifest_name(source, manifest),
                format!("scribed does not use it for the source {}: {}", source.name, owned_by_other_message(earlier)),
            )
        });
        let reports = problems.chain(read).chain(owned_by_others).collect::<Vec<_>>();
        if is_none { vec![none()] } else { reports }
    })
    .await
}

fn bad(what: String, words: String) -> ManifestReport {
    ManifestReport { what, finding: ManifestFinding::Wrong, words }
}

/// Says that no file matches the pattern of a source's manifests.
pub fn no_match_message(pattern: &str, folder: &Path) -> String {
    format!("no manifest matches {pattern} in {}", folder.display())
}

fn manifest_name(source: &Source, manifest: &RelPath) -> String {
    let folder = source.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!("manifest {}/{}", folder, manifest.lossy())
}

/// The counts of a manifest's rows.
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
        let problem = match (&item.row, &item.denied) {
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
        if self.named.len() < MAX_LISTED {
            self.named.push(problem);
        }
    }
}

fn read_report(mount: &Mount, manifest: &RelPath, stamp: Stamp) -> Vec<ManifestReport> {
    let source = mount.source();
    let mut count = Count::default();
    let read = items(mount, manifest, stamp, &mut |item| {
        count.add(&item, source);
        ControlFlow::Continue(())
    });
    let what = manifest_name(source, manifest);
    match read {
        Err(problem) => vec![bad(what, format!("cannot use it: {problem}"))],
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
                (count.awaited, "whose file does not exist"),
            ];
            let parts =
                parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}"));
            let rows = domain::count::count(count.rows, "row");
            let mut words = format!("{rows}{}{encoding}", parts.collect::<String>());
            // One problem a line. Text from the manifest is escaped: it must not control the terminal.
            count.named.iter().for_each(|row| words.push_str(&format!("\n    {}", escape::line(row))));
            match (count.wrong + count.held).saturating_sub(MAX_LISTED as u64) {
                0 => {}
                more => words.push_str(&format!("\n    and {more} more: `scribed plan --list` shows them all")),
            }
            let finding = if count.wrong + count.held == 0 { ManifestFinding::Good } else { ManifestFinding::Wrong };
            let odd = misspelt(&form.columns).into_iter().map(|(column, meant)| odd_column(&what, column, meant));
            let odd: Vec<_> = odd.collect();
            std::iter::once(ManifestReport { what, finding, words }).chain(odd).collect()
        }
    }
}

fn odd_column(what: &str, column: &str, meant: &str) -> ManifestReport {
    let words = format!("scribed has no column `{}`: did you mean `{meant}`?", escape::line(column));
    ManifestReport { what: what.to_owned(), finding: ManifestFinding::Misspelt, words }
}
