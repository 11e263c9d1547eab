//! Patterns of files: `include`, `exclude`, and what is media where nothing is said.

use super::values::values;
use super::written::{Refusal, Section, refusal, text};
use crate::domain::names::Hash;
use crate::domain::pattern::excess;
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use std::path::Path;

/// Extensions of what the service takes (service-notes 8), as `include` where none is given.
pub const MEDIA_EXTENSIONS: [&str; 20] = [
    "aac", "ac3", "eac3", "flac", "m4a", "mp2", "mp3", "ogg", "opus", "wav", "3g2", "3gp", "avi", "flv", "m4v", "mkv",
    "mov", "mp4", "wmv", "webm",
];

pub(super) fn media_glob() -> String {
    format!("**/*.{{{}}}", MEDIA_EXTENSIONS.join(","))
}

pub(super) fn globs(section: &Section<'_>, key: &str, default: &[String]) -> Vec<Glob> {
    match section.list(key, |value| glob(&text(value)?)) {
        Some(list) => {
            if list.value.is_empty() && !default.is_empty() {
                section.refuse(
                    key,
                    list.span,
                    refusal("must hold at least one pattern", "take the key out for every audio and video file"),
                );
            }
            values(list.value)
        }
        None => default.iter().filter_map(|pattern| glob(pattern).ok()).collect(),
    }
}

/// A pattern against relative paths: `*` stays in a folder, `**` goes through them, case is the same.
pub(super) fn glob(pattern: &str) -> Result<Glob, Refusal> {
    if pattern.starts_with('/') || pattern.starts_with("./") || pattern.starts_with("../") {
        return Err(refusal("must be relative to the source's folder", "write it like \"**/*.mp4\" or \"2024/**\""));
    }
    if let Some(why) = excess(pattern) {
        return Err(refusal(why, "write several shorter patterns"));
    }
    let built = GlobBuilder::new(pattern).case_insensitive(true).literal_separator(true).build();
    built.map_err(|error| refusal(format!("is no pattern: {}", error.kind()), "write it like \"**/*.mp4\""))
}

pub(super) fn set(globs: impl IntoIterator<Item = Glob>) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        builder.add(glob);
    }
    // Each of them was built already, so the set can be.
    builder.build().unwrap_or_default()
}

/// Stands for these as they are written.
pub(super) fn digest(include: &[Glob], exclude: &[Glob]) -> Hash {
    let mut text = String::new();
    for (mark, globs) in [('+', include), ('-', exclude)] {
        globs.iter().for_each(|glob| text.extend([mark, '\n'].into_iter().chain(glob.glob().chars()).chain(['\0'])));
    }
    Hash::of(text.as_bytes())
}

/// A pattern for one of our own folders that lies inside a source: its uploads are no media of the
/// user's, and to transcribe them would never end.
pub(super) fn inside(folder: &Path, own: &Path) -> Option<Glob> {
    let relative = own.strip_prefix(folder).ok()?.to_str()?;
    let pattern = format!("{}/**", globset::escape(relative));
    GlobBuilder::new(&pattern).literal_separator(true).build().ok()
}
