//! Recognises paths that must be mistakes, and advises what to write instead.

use super::folders;
use crate::config::load::quantities::quoted;
use crate::config::load::toml_reader::{ValueError, refusal};
use crate::config::sections::manifests;
use std::path::{Path, PathBuf};

/// Returns the error for a path that must be a mistake; `None` for another one.
pub(crate) fn check_path(written: &str) -> Option<ValueError> {
    let found = quoted(written);
    if written.chars().any(char::is_control) {
        let why = "must be a path, found one with a control character: a backslash in double quotes starts an \
                   escape sequence";
        return Some(refusal(why, "write / between folders, as in \"/srv/media\""));
    }
    if let Some(fix) = windows_path_fix(written) {
        return Some(refusal(format!("must be a path of this machine, found {found}"), fix));
    }
    if let Some(rest) = written.strip_prefix("file://") {
        let path = rest.strip_prefix("localhost").unwrap_or(rest);
        return Some(refusal(format!("must be a path, found the address {found}"), format!("write \"{path}\"")));
    }
    if written.contains("://") {
        let fix =
            "write the folder where it is mounted, as in \"/mnt/media\"; for S3 write bucket = \"s3://name/prefix\"";
        return Some(refusal("must be a path, found an address", fix));
    }
    if written == "~" || written.starts_with("~/") {
        let rest = written.trim_start_matches(['~', '/']);
        let fix = format!("write the absolute path, as in \"/home/NAME/{rest}\"");
        return Some(refusal(format!("must be an absolute path, found {found}: scribed does not expand `~`"), fix));
    }
    if written.starts_with('$') && !written.starts_with("${CREDENTIALS_DIRECTORY}/") {
        let why = format!("must be an absolute path, found {found}: scribed does not expand variables");
        let home = ["$HOME/", "${HOME}/"].into_iter().find_map(|home| written.strip_prefix(home));
        let fix = home.map(|rest| format!("write the absolute path, as in \"/home/NAME/{rest}\""));
        return Some(refusal(why, fix.unwrap_or_else(|| "write the path that the variable holds".to_owned())));
    }
    let is_by_backslashes = written.contains('\\') && !written.contains('/');
    is_by_backslashes.then(|| {
        let right = written.replace('\\', "/");
        refusal(
            format!("must be a path of this machine, found {found}"),
            format!("write / between folders: \"{right}\""),
        )
    })
}

/// Returns what to write instead of a path with a drive letter, or of a share.
pub(crate) fn windows_path_fix(written: &str) -> Option<String> {
    let bytes = written.as_bytes();
    let is_drive = bytes.len() >= 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes.get(2), None | Some(b'\\' | b'/'));
    if is_drive {
        let rest: Vec<&str> = written[2..].split(['\\', '/']).filter(|part| !part.is_empty()).collect();
        let drive = written[..1].to_ascii_lowercase();
        let path = ["/mnt", &drive].into_iter().chain(rest).collect::<Vec<_>>().join("/");
        return Some(format!(
            "scribed runs on Linux: write \"{path}\" in WSL, otherwise the path where that disk is mounted"
        ));
    }
    let is_share = written.starts_with("\\\\") && written.len() > 2;
    is_share.then(|| "mount the share, and write its mount point, as in \"/mnt/media\"".to_owned())
}

/// Returns the error if a file exists where a folder is expected. Waits about two seconds at most for a disk that
/// hangs.
pub(crate) fn file_for_folder(folder: &Path, written: &str) -> Option<ValueError> {
    let is_file = folders::is_file(folder);
    let name = Path::new(written).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    is_file.then(|| {
        let above = Path::new(written).parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new(".")).display().to_string();
        let fix = match manifests::is_list(written) {
            true => format!("for a manifest write manifest = \"{written}\""),
            false => format!("write folder = \"{above}\" and below it include = [\"{name}\"] for that file only"),
        };
        refusal(format!("must be a folder, found the file {}", folder.display()), fix)
    })
}

/// Like [`file_for_folder`], for a folder in which scribed itself writes.
pub(crate) fn check_own_folder(folder: &Path) -> Option<ValueError> {
    let why = || format!("must be a folder, found the file {}", folder.display());
    folders::is_file(folder).then(|| refusal(why(), "name a folder; scribed creates it if it does not exist"))
}

/// Like [`file_for_folder`], for the folder of manifests.
pub(crate) fn file_for_lists(folder: &Path) -> Option<ValueError> {
    let why = || format!("must name manifests in a folder, found the file {} instead", folder.display());
    folders::is_file(folder).then(|| refusal(why(), "write it like \"lists/*.csv\""))
}

/// Returns the error for a pattern where a folder is expected: `inbox/*.mp4`.
pub(crate) fn pattern_for_folder(folder: &Path, written: &str) -> Option<ValueError> {
    let has_pattern = |part: &str| part.contains(['*', '?', '{']);
    if !has_pattern(written) || folders::is_folder(folder) {
        return None;
    }
    let parts: Vec<&str> = written.split('/').collect();
    let first = parts.iter().position(|part| has_pattern(part))?;
    let (above, pattern) = (parts[..first].join("/"), parts[first..].join("/"));
    let above = if above.is_empty() && written.starts_with('/') { "/".to_owned() } else { above };
    let above = if above.is_empty() { ".".to_owned() } else { above };
    let why = format!("must be a folder, found the pattern {}", quoted(written));
    Some(refusal(why, format!("write folder = \"{above}\" and below it include = [\"{pattern}\"]")))
}

/// Returns the error for a folder where a pattern is expected: `lists` instead of `lists/*.csv`.
pub(crate) fn folder_for_lists(whole: &Path, written: &str) -> Option<ValueError> {
    let is_folder = written.ends_with('/') || folders::is_folder(whole);
    let lists: PathBuf = Path::new(written).join("*.csv");
    is_folder.then(|| {
        let why = format!("must name manifests, found the folder {}", quoted(written));
        refusal(why, format!("write \"{}\"", lists.display()))
    })
}
