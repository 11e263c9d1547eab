//! `manifest`: which lists a source is made of.

use super::meant::{Manifests, Source};
use super::patterns::glob;
use super::problem::Problem;
use super::reading::Reader;
use super::written::{Refusal, Section, Spot, refusal, text};
use crate::source::manifest::kind::{ENDINGS, kind};
use std::path::{Component, Path, PathBuf};
use toml::de::DeValue;

impl Reader<'_> {
    /// The folder of a source's lists, as it is written, and which of its files they are.
    pub(super) fn lists(&self, section: &Section<'_>, has_folder: bool) -> Option<Spot<(String, Manifests)>> {
        let lists = section.get("manifest", lists)?;
        if has_folder {
            let why = "stands beside `folder`: a source is made of a folder's files or of lists";
            section.refuse("manifest", lists.span.clone(), refusal(why, "make two sources of it"));
        }
        for key in ["include", "exclude"] {
            if section.table().is_some_and(|table| table.contains_key(key)) {
                let what = format!("`{}` is for folders: a manifest names its recordings", section.name(key));
                section.tell(Problem::at(lists.span.clone(), what).mend("take it out"));
            }
        }
        Some(lists)
    }
}

/// `lists/*.csv`: everything before the first folder with a pattern in it is the folder.
fn lists(value: &DeValue<'_>) -> Result<(String, Manifests), Refusal> {
    let mend = "write it like \"lists/*.csv\" or \"/srv/lists/2024.jsonl\"";
    let written = text(value)?;
    let path = Path::new(&written);
    if path.components().any(|part| part == Component::ParentDir) && has_pattern(&written) {
        return Err(refusal("must not hold .. beside a pattern", mend));
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
        let why = format!("must name files that end in {}", ENDINGS.join(", "));
        return Err(refusal(why, "save a spreadsheet as \"CSV UTF-8\""));
    }
    let folder = match parts[..first].join("/") {
        root if root.is_empty() && written.starts_with('/') => "/".to_owned(),
        none if none.is_empty() => ".".to_owned(),
        folder => folder,
    };
    let depth = if pattern.contains("**") { usize::MAX } else { last - first + 1 };
    Ok((folder, Manifests { pattern: glob(&pattern)?.compile_matcher(), depth }))
}

fn has_pattern(part: &str) -> bool {
    part.contains(['*', '?', '[', '{'])
}

/// Whether two sources are made of the same lists: each would write the receipts of both.
pub(super) fn same_lists(one: &Source, other: &Source) -> bool {
    let pattern = |source: &Source| source.manifests.as_ref().map(|lists| lists.pattern.glob().glob().to_lowercase());
    let folder = |source: &Source| -> PathBuf { source.folder.components().collect() };
    folder(one) == folder(other) && pattern(one) == pattern(other)
}
