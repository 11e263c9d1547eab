//! Secrets: they are never in the configuration file and never shown.

use super::redact::is_secret_location;
use crate::permission_errors::describe_error;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// A key. It has no `Display` and no `Serialize`, and its `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Reads an environment variable; replaceable, so that tests need not change the process's environment.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Reads a secret from where it is: [`Secret::fetch`] or [`Secret::fetch_header_value`].
pub(super) type FetchSecret = fn(&str, &Path, Env<'_>) -> Result<Secret, (String, String)>;

/// The largest key file in bytes: a longer one is a wrong path.
pub(super) const LONGEST: u64 = 64 * 1024;

impl Secret {
    /// Wraps a secret that was made or read elsewhere.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the secret itself. Use it for a request's header or a comparison only.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Reads the secret from the location `written`: `env:NAME`, or `file:PATH` (relative to `folder`, or below
    /// `${CREDENTIALS_DIRECTORY}/`; a newline at the file's end is dropped).
    ///
    /// # Errors
    /// The problem and its fix, both without the secret.
    pub fn fetch(written: &str, folder: &Path, env: Env<'_>) -> Result<Self, (String, String)> {
        usable(read(written, folder, env)?, written, |c| c.is_ascii_graphic())
    }

    /// Reads the whole value of a header like [`Secret::fetch`]. It may contain spaces, unlike a key.
    ///
    /// # Errors
    /// As [`Secret::fetch`].
    pub fn fetch_header_value(written: &str, folder: &Path, env: Env<'_>) -> Result<Self, (String, String)> {
        let text = read(written, folder, env)?;
        usable(text.trim_matches(' ').to_owned(), written, |c| c.is_ascii_graphic() || c == b' ')
    }

    /// Checks a location like [`Secret::fetch`], without reading it, for commands that use no service. The secret is
    /// empty.
    ///
    /// # Errors
    /// The configuration contains the secret itself.
    pub fn empty_for(written: &str) -> Result<Self, (String, String)> {
        stands_elsewhere(written).map(|()| Self(String::new()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

fn read(written: &str, folder: &Path, env: Env<'_>) -> Result<String, (String, String)> {
    stands_elsewhere(written)?;
    match written.split_once(':') {
        Some(("env", name)) => from_env(name, env),
        Some((_, path)) => from_file(&folder.join(from_credentials(path, env)?)),
        None => Ok(String::new()),
    }
}

fn stands_elsewhere(written: &str) -> Result<(), (String, String)> {
    let wrong = || {
        (
            "the file must not contain a key itself".to_owned(),
            "use \"env:NAME\" or \"file:PATH\", and change the key if others could read this file".to_owned(),
        )
    };
    is_secret_location(written).then_some(()).ok_or_else(wrong)
}

/// The variable with the folder in which systemd puts credentials of `LoadCredential=`; it differs from unit to unit.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Returns the file that `file:PATH` names, whether or not it exists.
pub(super) fn file_of(written: &str, folder: &Path, env: Env<'_>) -> Option<PathBuf> {
    let path = written.strip_prefix("file:").filter(|path| !path.is_empty())?;
    Some(folder.join(from_credentials(path, env).ok()?))
}

/// Returns the folder with systemd's credentials, if this process has one.
pub(super) fn credentials(env: Env<'_>) -> Option<PathBuf> {
    env(CREDENTIALS).map(PathBuf::from).filter(|folder| folder.is_absolute())
}

pub(super) fn from_credentials(path: &str, env: Env<'_>) -> Result<PathBuf, (String, String)> {
    let Some(below) = path.strip_prefix("${CREDENTIALS_DIRECTORY}/") else { return Ok(path.into()) };
    let folder = env(CREDENTIALS).ok_or_else(|| {
        (
            format!("`{CREDENTIALS}` is not set: only systemd sets it, for a unit with LoadCredential="),
            "elsewhere name the key's file itself, or use \"env:NAME\"".to_owned(),
        )
    })?;
    Ok(Path::new(&folder).join(below))
}

fn from_env(name: &str, env: Env<'_>) -> Result<String, (String, String)> {
    let set = env(name)
        .ok_or_else(|| (format!("the environment variable `{name}` is not set"), format!("set it: export {name}=…")))?;
    set.into_string()
        .map_err(|_| (format!("the environment variable `{name}` is not UTF-8"), "a key is plain ASCII".to_owned()))
}

fn from_file(path: &Path) -> Result<String, (String, String)> {
    let shown = path.display();
    let unreadable = |why: String| {
        (format!("cannot read the key file `{shown}`: {why}"), "write one line into it that is the key".to_owned())
    };
    let failed = |error: &std::io::Error| {
        let (mut what, _) = unreadable(describe_error(error, path));
        let fix = match error.kind() {
            ErrorKind::NotFound => {
                what = format!("the key file `{shown}` does not exist");
                format!("write the key into it: install -m 600 /dev/stdin {shown}, then paste the key and press Ctrl-D")
            }
            ErrorKind::IsADirectory => format!("name the file in it, as in \"file:{shown}/stt.key\""),
            _ => "let the user of scribed read it".to_owned(),
        };
        (what, fix)
    };
    if path.is_dir() {
        return Err(failed(&ErrorKind::IsADirectory.into()));
    }
    let mut text = String::new();
    let file = File::open(path).map_err(|error| failed(&error))?;
    let length = file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| failed(&error))?;
    if length as u64 > LONGEST {
        return Err(unreadable("it is too long for a key".to_owned()));
    }
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// Checks that a key can be a header's value (RFC 9110: visible ASCII).
fn usable(text: String, written: &str, may_contain: fn(u8) -> bool) -> Result<Secret, (String, String)> {
    let fix = || "a key is one line of visible ASCII characters".to_owned();
    if text.is_empty() {
        let fix = match written.split_once(':') {
            Some(("env", name)) => format!("set it: export {name}=…"),
            _ => "write the key into that file, in one line".to_owned(),
        };
        return Err((format!("the key of `{written}` is empty"), fix));
    }
    if !text.bytes().all(may_contain) {
        return Err((format!("the key of `{written}` has characters that a header cannot contain"), fix()));
    }
    Ok(Secret(text))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn fetch(written: &str) -> Result<Secret, (String, String)> {
        let env = |name: &str| (name == "KEY").then(|| OsString::from("hunter2"));
        Secret::fetch(written, Path::new("/nowhere"), &env)
    }

    #[test]
    fn it_comes_from_the_environment_or_a_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "hunter2\r\n").unwrap();
        let secret = Secret::fetch("file:key", folder.path(), &|_| None).unwrap();
        assert_eq!((secret.expose(), fetch("env:KEY").unwrap().expose()), ("hunter2", "hunter2"));
    }

    #[test]
    fn the_value_of_a_header_may_have_spaces_and_a_key_may_not() {
        let env = |name: &str| (name == "AUTH").then(|| OsString::from("Bearer hunter2"));
        let value = Secret::fetch_header_value("env:AUTH", Path::new("/nowhere"), &env).unwrap();
        assert_eq!(value.expose(), "Bearer hunter2");
        Secret::fetch("env:AUTH", Path::new("/nowhere"), &env).unwrap_err();
        let lines = |_: &str| Some(OsString::from("Bearer a\nx-other: b"));
        Secret::fetch_header_value("env:AUTH", Path::new("/nowhere"), &lines).unwrap_err();
    }

    #[test]
    fn it_comes_from_what_systemd_hands_over() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "hunter2\n").unwrap();
        let env = |name: &str| (name == "CREDENTIALS_DIRECTORY").then(|| folder.path().into());
        let written = "file:${CREDENTIALS_DIRECTORY}/key";
        assert_eq!(Secret::fetch(written, Path::new("/nowhere"), &env).unwrap().expose(), "hunter2");
        let (what, _) = fetch(written).unwrap_err();
        assert!(what.contains("is not set"), "{what}");
    }

    #[test]
    fn who_asks_no_service_needs_no_key() {
        assert_eq!(Secret::empty_for("env:OTHER").unwrap().expose(), "");
        Secret::empty_for("hunter2").unwrap_err();
    }

    #[test]
    fn it_is_never_shown() {
        assert_eq!(format!("{:?}", fetch("env:KEY").unwrap()), "Secret(…)");
        let (what, fix) = fetch("hunter2").unwrap_err();
        assert!(!what.contains("hunter2") && !fix.contains("hunter2"));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("empty", "\n"), ("two", "a\nb\n"), ("long", &"x".repeat(70_000))] {
            std::fs::write(folder.path().join(name), text).unwrap();
            Secret::fetch(&format!("file:{name}"), folder.path(), &|_| None).unwrap_err();
        }
        fetch("env:OTHER").unwrap_err();
        fetch("file:missing").unwrap_err();
    }
}
