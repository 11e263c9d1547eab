//! Reads `manifest` and `roots`: the manifests of a source, and the folders that their rows may use.

use super::patterns::glob;
use crate::config::load::diagnostics::Problem;
use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{Section, Spot, ValueError, refusal, text};
use crate::config::model::{EarlierLists, Manifests, Source, SourceKind};
use crate::config::paths::checks;
use crate::config::paths::checks::{file_for_lists, folder_for_lists};
use crate::config::paths::folders;
use crate::config::paths::rules::normalize_lexically;
use crate::manifests::format::kind::{ENDINGS, kind};
use std::path::{Component, Path, PathBuf};
use toml::de::DeValue;

impl Reader<'_> {
    /// Reads the folder of a source's manifests, as written, and the pattern for their names.
    pub(crate) fn lists(&self, section: &Section<'_>, has_folder: bool) -> Option<Spot<(String, Manifests)>> {
        let lists = section.get("manifest", |value| self.manifest(value))?;
        if has_folder {
            let why = "is given beside `folder`: a source has either a folder of recordings or manifests";
            section.report_value("manifest", lists.span.clone(), refusal(why, "make two sources of them"));
        }
        if section.table().is_some_and(|table| table.contains_key("exclude")) {
            let what = format!("`{}` is for folders: a manifest names its recordings", section.name("exclude"));
            section.report(Problem::at(lists.span.clone(), what).fix("remove it"));
        }
        Some(lists)
    }

    fn manifest(&self, value: &DeValue<'_>) -> Result<(String, Manifests), ValueError> {
        let written = text(value)?;
        if let Some(wrong) = checks::check_path(&written).filter(|_| !self.is_literal(&written)) {
            return Err(wrong);
        }
        let has_kind = kind(Path::new(&written)).is_some();
        let wrong =
            if has_pattern(&written) || has_kind { None } else { folder_for_lists(&self.path(&written), &written) };
        let read = wrong.map_or_else(|| lists(value), Err)?;
        file_for_lists(&self.path(&read.0)).map_or(Ok(read), Err)
    }

    /// Whether a manifest, or the folder of the manifests, exists under exactly the written name.
    fn is_literal(&self, written: &str) -> bool {
        let before: Vec<&str> = written.split('/').take_while(|part| !has_pattern(part)).collect();
        let before = before.join("/");
        let above = if has_pattern(written) { Some(Path::new(&before)) } else { Path::new(&before).parent() };
        let is_folder = |above: &Path| !above.as_os_str().is_empty() && folders::is_folder(&self.base.join(above));
        above.is_some_and(is_folder) || folders::exists(&self.base.join(written))
    }

    /// Reads `roots`, the folders in which rows may name files and outputs may go; `None` if it is absent.
    pub(crate) fn roots(&self, section: &Section<'_>, own: &[PathBuf]) -> Option<Vec<PathBuf>> {
        let list = section.list("roots", |value| self.path_text(value))?;
        if !section.table().is_some_and(|table| table.contains_key("manifest")) {
            let why = "is for a `manifest`: the recordings of a folder are in the folder";
            section.report_value("roots", list.span.clone(), refusal(why, "remove it"));
        }
        if list.value.is_empty() {
            let fix = "remove the key; then the folder of the manifests and those of all sources are allowed";
            section.report_value("roots", list.span.clone(), refusal("must name at least one folder", fix));
        }
        let root = |written: Spot<String>| {
            let root = normalize_lexically(&self.path(&written.value));
            if own.iter().any(|own| root.starts_with(own)) {
                let why = "is a folder or file of scribed: its state, its service's data, or a key";
                section.report_value("roots", written.span, refusal(why, "choose a folder with recordings"));
            }
            root
        };
        Some(list.value.into_iter().map(root).collect())
    }
}

/// Reads a value such as `lists/*.csv`: the part before the first component with a pattern is the folder.
fn lists(value: &DeValue<'_>) -> Result<(String, Manifests), ValueError> {
    let fix = "write it like \"lists/*.csv\" or \"/srv/lists/2024.jsonl\"";
    let written = text(value)?;
    let path = Path::new(&written);
    if path.components().any(|part| part == Component::ParentDir) && has_pattern(&written) {
        return Err(refusal("must not contain .. beside a pattern", fix));
    }
    let parts: Vec<&str> = written.split('/').collect();
    let last = parts.len() - 1;
    let first = parts.iter().position(|part| has_pattern(part)).unwrap_or(last).min(last);
    let pattern = parts[first..].join("/");
    if !has_pattern(parts[last]) && kind(Path::new(parts[last])).is_none()
        || Path::new(parts[last])
            .extension()
            .is_some_and(|ending| !has_pattern(&ending.to_string_lossy()) && kind(path).is_none())
    {
        let why = format!("must name files with the ending {}", ENDINGS.join(", "));
        return Err(refusal(why, "save a spreadsheet as \"CSV UTF-8\""));
    }
    let folder = match parts[..first].join("/") {
        root if root.is_empty() && written.starts_with('/') => "/".to_owned(),
        none if none.is_empty() => ".".to_owned(),
        folder => folder,
    };
    let depth = if pattern.contains("**") { usize::MAX } else { last - first + 1 };
    let pattern = glob(&pattern)?.compile_matcher();
    Ok((folder, Manifests { pattern, depth, place: PathBuf::new(), earlier: Vec::new() }))
}

/// Whether a file of this name may be a manifest.
pub(crate) fn is_list(name: &str) -> bool {
    kind(Path::new(name)).is_some()
}

fn has_pattern(part: &str) -> bool {
    part.contains(['*', '?', '[', '{'])
}

/// Whether two sources read the same manifests, as far as the patterns show it: each would write the receipts of both.
/// The paths are the sources' folders with links resolved.
pub(crate) fn share_manifests(one: (&Source, &Path), other: (&Source, &Path)) -> bool {
    let (Some(first), Some(second)) = (one.0.manifests(), other.0.manifests()) else { return false };
    let pattern = |lists: &Manifests| lists.pattern.glob().glob().to_owned();
    let is_same = one.1 == other.1 && pattern(first).eq_ignore_ascii_case(&pattern(second));
    is_same
        || names_manifest_of(first, one.1, earlier(other.0, other.1))
        || names_manifest_of(second, other.1, earlier(one.0, one.1))
}

/// Whether the pattern names a single manifest that is one of `others`.
fn names_manifest_of(lists: &Manifests, place: &Path, others: Option<EarlierLists>) -> bool {
    let name = lists.pattern.glob().glob();
    !has_pattern(name) && others.is_some_and(|others| others.takes(&place.join(name)))
}

fn earlier(source: &Source, place: &Path) -> Option<EarlierLists> {
    let Manifests { pattern, depth, .. } = source.manifests()?;
    let (source, place) = (source.name.clone(), place.to_owned());
    Some(EarlierLists { source, place, pattern: pattern.clone(), depth: *depth })
}

/// Sets for each source the manifests of the sources before it. `places`: the sources' folders with links resolved, in
/// the same order.
pub(crate) fn set_earlier_lists<'s>(sources: impl Iterator<Item = &'s mut Source>, places: &[PathBuf]) {
    let mut before: Vec<EarlierLists> = Vec::new();
    for (source, place) in sources.zip(places) {
        let own = earlier(source, place);
        if let SourceKind::Manifests(manifests) = &mut source.kind {
            manifests.place.clone_from(place);
            manifests.earlier.clone_from(&before);
        }
        before.extend(own);
    }
}
