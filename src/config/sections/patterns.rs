//! Reads patterns of files: `include` and `exclude`, and the default for media files.

use crate::config::load::quantities::quoted;
use crate::config::load::toml_reader::{Section, ValueError, refusal, text};
use crate::config::load::values::values;
use crate::config::paths::folders;
use crate::domain::names::Hash;
use crate::domain::pattern::limit_violation;
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use std::path::Path;
use toml::de::DeValue;

/// Extensions of files that the service accepts (service-notes 8): the default of `include`.
pub const MEDIA_EXTENSIONS: [&str; 20] = [
    "aac", "ac3", "eac3", "flac", "m4a", "mp2", "mp3", "ogg", "opus", "wav", "3g2", "3gp", "avi", "flv", "m4v", "mkv",
    "mov", "mp4", "wmv", "webm",
];

pub(crate) fn media_glob() -> String {
    format!("**/*.{{{}}}", MEDIA_EXTENSIONS.join(","))
}

/// Reads a list of patterns. `folder` is the source's folder, if it has one: a pattern that looks like a mistake is
/// accepted if it names something there.
pub(crate) fn globs(section: &Section<'_>, key: &str, default: &[String], folder: Option<&Path>) -> Vec<Glob> {
    let is_there = |pattern: &str| folder.is_some_and(|folder| names_something(folder, pattern));
    let read = |value: &DeValue<'_>| {
        let pattern = text(value)?;
        mistake(key, &pattern).filter(|_| !is_there(&pattern)).map_or_else(|| glob(&pattern), Err)
    };
    match section.list(key, read) {
        Some(list) => {
            if list.value.is_empty() && !default.is_empty() {
                section.report_value(
                    key,
                    list.span,
                    refusal(
                        "must contain at least one pattern",
                        "remove the key to include every audio and video file",
                    ),
                );
            }
            values(list.value)
        }
        None => default.iter().filter_map(|pattern| glob(pattern).ok()).collect(),
    }
}

/// Whether a pattern is the name of a file in the folder, or begins with that of a folder in it.
fn names_something(folder: &Path, pattern: &str) -> bool {
    let is_literal = |part: &&str| !part.contains(['*', '?', '[', '{']);
    if pattern.contains('\\') {
        return folders::is_file(&folder.join(pattern.replace('\\', "")));
    }
    let above: String = pattern.split_inclusive('/').take_while(is_literal).collect();
    match above == pattern {
        true => !pattern.ends_with('/') && folders::is_file(&folder.join(pattern)),
        false => !above.is_empty() && folders::is_folder(&folder.join(above)),
    }
}

/// Returns the error for a pattern that must be a mistake, with the pattern to write instead.
fn mistake(key: &str, pattern: &str) -> Option<ValueError> {
    let found = quoted(pattern);
    let write = |right: &str| format!("write \"{right}\"");
    if pattern.trim() != pattern {
        let why = format!("must be a pattern, found {found} with a blank at its start or end");
        return Some(refusal(why, write(pattern.trim())));
    }
    if pattern.contains('\\') && !pattern.contains(['/', '[']) {
        return Some(refusal(
            format!("must have / between folders, found {found}"),
            write(&pattern.replace('\\', "/")),
        ));
    }
    if let Some(rest) = pattern.strip_prefix('!').filter(|_| key == "include") {
        let why = format!("must be a pattern of what to include, found {found}");
        return Some(refusal(why, format!("remove it, and write exclude = [\"{rest}\"] below")));
    }
    if pattern.ends_with('/') {
        return Some(refusal(format!("must match files, found the folder {found}"), write(&format!("{pattern}**"))));
    }
    let parts: Vec<&str> = pattern.split([',', ';', '|']).map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.len() > 1 && !pattern.contains(['{', '/']) && parts.iter().all(|part| ending(part).is_some()) {
        let all: Vec<String> =
            parts.iter().filter_map(|part| ending(part)).map(|end| format!("\"**/*.{end}\"")).collect();
        return Some(refusal(
            format!("must be one pattern each, found {found}"),
            format!("write {key} = [{}]", all.join(", ")),
        ));
    }
    let is_name = !pattern.contains(['*', '?', '[', '{', '/']);
    let end = ending(pattern).filter(|_| is_name)?;
    let why = format!("must be a pattern, found the extension {found}, which matches no file");
    Some(refusal(why, write(&format!("**/*.{end}"))))
}

/// Returns the extension that `.mp4`, `mp4` or `*.mp4` means.
fn ending(word: &str) -> Option<&str> {
    let is_ending = |end: &&str| !end.is_empty() && end.chars().all(|c| c.is_ascii_alphanumeric());
    let is_media = |end: &&str| MEDIA_EXTENSIONS.contains(&end.to_ascii_lowercase().as_str());
    let marked = word.strip_prefix("*.").or_else(|| word.strip_prefix('.'));
    marked.filter(is_ending).or_else(|| Some(word).filter(is_media))
}

/// Compiles a pattern for relative paths: `*` does not match `/`, `**` does, and case is ignored.
pub(crate) fn glob(pattern: &str) -> Result<Glob, ValueError> {
    if pattern.starts_with('/') || pattern.starts_with("./") || pattern.starts_with("../") {
        let fix = match pattern.strip_prefix("./") {
            Some(rest) => format!("write \"{rest}\""),
            None => "write it like \"**/*.mp4\" or \"2024/**\"".to_owned(),
        };
        return Err(refusal(format!("must be relative to the source's folder, found {}", quoted(pattern)), fix));
    }
    if let Some(why) = limit_violation(pattern) {
        return Err(refusal(why, "write several shorter patterns"));
    }
    let built = GlobBuilder::new(pattern).case_insensitive(true).literal_separator(true).build();
    built.map_err(|error| refusal(format!("is not a valid pattern: {}", error.kind()), "write it like \"**/*.mp4\""))
}

pub(crate) fn set(globs: impl IntoIterator<Item = Glob>) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        builder.add(glob);
    }
    // Each pattern compiled, so the set does too.
    builder.build().unwrap_or_default()
}

/// Returns a hash of the patterns as written.
pub(crate) fn digest(include: &[Glob], exclude: &[Glob]) -> Hash {
    let mut text = String::new();
    for (mark, globs) in [('+', include), ('-', exclude)] {
        globs.iter().for_each(|glob| text.extend([mark, '\n'].into_iter().chain(glob.glob().chars()).chain(['\0'])));
    }
    Hash::of(text.as_bytes())
}

/// Returns a pattern that excludes a folder of scribed inside a source: its uploads are no recordings, and to
/// transcribe them would never end.
pub(crate) fn inside(folder: &Path, own: &Path) -> Option<Glob> {
    let relative = own.strip_prefix(folder).ok()?.to_str()?;
    let pattern = format!("{}/**", globset::escape(relative));
    GlobBuilder::new(&pattern).literal_separator(true).build().ok()
}
