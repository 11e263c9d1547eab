//! `[serve] keys`: the keys that the transcription service accepts, and where each one's key is.
//!
//! A list of keys has no names. With names (a table, or a folder whose files are named so) each key is revoked by
//! removing or emptying its file, and replaced by writing another one; a file may hold several keys, one a line, all
//! of which are accepted.

use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{Section, ValueError, refusal, wrong_type};
use crate::config::secret;
use crate::config::secret::{Env, Secret};
use crate::permission_errors::describe_error;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The configured keys: their locations, and the keys that were found there.
#[derive(Debug, Clone, Default)]
pub struct ServiceKeys {
    pub places: KeyLocations,
    /// The keys that were found when the configuration was read; empty if secrets were not read.
    pub found: Vec<FoundKey>,
    /// Messages about the keys, such as which key is no longer accepted.
    pub remarks: Vec<String>,
    /// All configured names, also those without an accepted key.
    pub names: BTreeSet<String>,
}

/// A key and the name of its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundKey {
    /// `None` in a list of keys.
    pub name: Option<String>,
    pub secret: Secret,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyLocations {
    /// The folder from which relative paths are resolved.
    base: PathBuf,
    form: Form,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    List(Vec<String>),
    Named(Vec<(String, Vec<String>)>),
    Folder(PathBuf),
}

impl Default for Form {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

/// A location of keys with its current content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedKeys {
    /// The name of the owner.
    pub name: Option<String>,
    /// The location, for messages.
    pub place: String,
    pub state: KeyState,
}

/// The content of a location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyState {
    Keys(Vec<Secret>),
    /// No key, for this reason: keys that were here are refused.
    Refused(String),
    /// Not known now, for this reason, such as a disk that does not answer: the known keys remain valid.
    Unknown(String),
}

impl ServiceKeys {
    /// Whether no key is configured.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

impl KeyLocations {
    /// Whether no location is configured.
    pub fn is_empty(&self) -> bool {
        matches!(&self.form, Form::List(list) if list.is_empty())
    }

    /// The folder whose files are keys; `None` for another form.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match &self.form {
            Form::Folder(folder) => Some(folder),
            Form::List(_) | Form::Named(_) => None,
        }
    }

    /// Whether keys are read from files, which may be replaced.
    pub fn has_files(&self) -> bool {
        let is_file = |written: &String| written.starts_with("file:");
        match &self.form {
            Form::List(list) => list.iter().any(is_file),
            Form::Named(names) => names.iter().any(|(_, list)| list.iter().any(is_file)),
            Form::Folder(_) => true,
        }
    }

    /// Reads all locations. Blocks.
    pub fn load(&self, env: Env<'_>) -> Vec<LocatedKeys> {
        let slot = |name: Option<&str>, written: &String| {
            let (place, state) = self.at(written, env);
            LocatedKeys { name: name.map(str::to_owned), place, state }
        };
        match &self.form {
            Form::List(list) => list.iter().map(|written| slot(None, written)).collect(),
            Form::Named(names) => {
                // A name without a location still counts as configured, so that its records are not given to another
                // owner.
                let none = |name: &String| {
                    let state = KeyState::Refused("it names no source of a key".to_owned());
                    LocatedKeys { name: Some(name.clone()), place: "[serve] keys".to_owned(), state }
                };
                let of_name = |(name, list): &(String, Vec<String>)| match list.is_empty() {
                    true => vec![none(name)],
                    false => list.iter().map(|one| slot(Some(name), one)).collect(),
                };
                names.iter().flat_map(of_name).collect()
            }
            Form::Folder(folder) => in_folder(folder),
        }
    }

    fn at(&self, written: &str, env: Env<'_>) -> (String, KeyState) {
        match written.strip_prefix("file:") {
            Some(path) => match secret::from_credentials(path, env) {
                Ok(path) => {
                    let path = self.base.join(path);
                    (path.display().to_string(), in_file(&path))
                }
                Err((why, _)) => (written.to_owned(), KeyState::Refused(why)),
            },
            None => match Secret::fetch(written, &self.base, env) {
                Ok(secret) => (written.to_owned(), KeyState::Keys(vec![secret])),
                Err((why, _)) => (written.to_owned(), KeyState::Refused(why)),
            },
        }
    }
}

/// Reads the keys in a file, one a line.
fn in_file(path: &Path) -> KeyState {
    match std::fs::read(path) {
        Ok(bytes) => match lines(&bytes) {
            Ok(keys) if keys.is_empty() => KeyState::Refused("the file is empty".to_owned()),
            Ok(keys) => KeyState::Keys(keys),
            Err(why) => KeyState::Refused(why),
        },
        // A file that was removed or made unreadable revokes its keys; a disk that does not answer does not.
        Err(error) => match error.kind() {
            std::io::ErrorKind::NotFound
            | std::io::ErrorKind::PermissionDenied
            | std::io::ErrorKind::IsADirectory
            | std::io::ErrorKind::NotADirectory => {
                KeyState::Refused(format!("cannot read the file: {}", describe_error(&error, path)))
            }
            _ => KeyState::Unknown(error.to_string()),
        },
    }
}

fn lines(bytes: &[u8]) -> Result<Vec<Secret>, String> {
    if bytes.len() as u64 > secret::LONGEST {
        return Err("the file is too long for a list of keys".to_owned());
    }
    let all = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    all.map(|line| match std::str::from_utf8(line) {
        Ok(text) if text.bytes().all(|c| c.is_ascii_graphic()) => Ok(Secret::new(text)),
        _ => Err("a line of the file has characters that a header cannot contain".to_owned()),
    })
    .collect()
}

/// Reads every file of a folder; the name is the owner's.
fn in_folder(folder: &Path) -> Vec<LocatedKeys> {
    let failed = |error: std::io::Error| {
        let state = match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
                KeyState::Refused(format!("cannot read the folder: {}", describe_error(&error, folder)))
            }
            _ => KeyState::Unknown(error.to_string()),
        };
        vec![LocatedKeys { name: None, place: folder.display().to_string(), state }]
    };
    let listed: Result<Vec<_>, _> = match std::fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.file_name())).collect(),
        Err(error) => return failed(error),
    };
    let mut names = match listed {
        Ok(names) => names,
        Err(error) => return failed(error),
    };
    names.sort();
    // Hidden files, backup files of editors, and folders are no keys.
    let is_wanted = |name: &String| !name.starts_with('.') && !name.ends_with('~') && !folder.join(name).is_dir();
    let names = names.iter().map(|name| name.to_string_lossy().into_owned()).filter(is_wanted);
    names
        .map(|name| {
            let path = folder.join(&name);
            let state = match key_name(&name) {
                Ok(()) => in_file(&path),
                Err(ValueError { why, .. }) => KeyState::Refused(format!("its name {why}")),
            };
            LocatedKeys { name: Some(name), place: path.display().to_string(), state }
        })
        .collect()
}

/// Shorter keys, in bytes, can be guessed.
const SHORT: usize = 16;

/// The keys known last at each location, which remain valid while the location cannot be read.
#[derive(Debug, Clone, Default)]
pub struct LastKnown {
    places: BTreeMap<(Option<String>, String), Vec<Secret>>,
    /// The name under which each key was accepted last.
    held: Vec<FoundKey>,
}

/// The keys that are accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    pub keys: Vec<FoundKey>,
    /// Messages: which key is no longer accepted, and what is wrong. They contain no key.
    pub remarks: Vec<String>,
    /// Keys that two names have: the name under which the key is not accepted, and a message.
    pub duplicates: Vec<(String, String)>,
    /// All configured names, also those without an accepted key.
    pub names: BTreeSet<String>,
}

impl LastKnown {
    /// Starts from the accepted keys and their names.
    pub fn from_accepted(held: &[FoundKey]) -> Self {
        Self { held: held.to_vec(), ..Self::default() }
    }

    /// Updates the accepted keys from the current content of the locations. A key of several names remains with the
    /// name under which it was accepted last; a new key belongs to the first name.
    pub fn update(&mut self, slots: Vec<LocatedKeys>) -> Accepted {
        let mut accepted = Accepted::default();
        let places = self.secrets(slots, &mut accepted);
        accepted.names = places.iter().filter_map(|(name, ..)| name.clone()).collect();
        for (name, place, secrets) in &places {
            for secret in secrets {
                let who = of_whom(name.as_deref());
                if secret.expose().len() < SHORT {
                    accepted.remarks.push(format!(
                        "the key{who} in {place} is shorter than {SHORT} characters and could be guessed: create \
                         a longer one with `openssl rand -hex 32`"
                    ));
                }
                let holder = self.holder(secret, &places);
                if holder != name.as_ref() {
                    let words = format!(
                        "the key in {place} is the same as that of {}: {} needs another one",
                        holder.map_or("an unnamed key", String::as_str),
                        name.as_deref().unwrap_or_default()
                    );
                    accepted.duplicates.push((name.clone().unwrap_or_default(), words));
                } else if !accepted.keys.iter().any(|known| known.secret == *secret) {
                    accepted.keys.push(FoundKey { name: name.clone(), secret: secret.clone() });
                }
            }
        }
        // A key that returns after a while belongs to its former owner.
        self.held.retain(|held| !accepted.keys.iter().any(|key| key.secret == held.secret));
        self.held.extend(accepted.keys.iter().cloned());
        self.places = places
            .into_iter()
            .filter(|(_, _, secrets)| !secrets.is_empty())
            .map(|(name, place, secrets)| ((name, place), secrets))
            .collect();
        accepted
    }

    /// Returns the keys of each location, or those known last if it cannot be read.
    fn secrets(&self, slots: Vec<LocatedKeys>, accepted: &mut Accepted) -> Vec<AtPlace> {
        let mut all = Vec::new();
        for LocatedKeys { name, place, state } in slots {
            let who = of_whom(name.as_deref());
            match state {
                KeyState::Keys(secrets) => all.push((name, place, secrets)),
                KeyState::Refused(why) => {
                    accepted.remarks.push(format!("the service does not accept the key{who} in {place}: {why}"));
                    all.push((name, place, Vec::new()));
                }
                KeyState::Unknown(why) => {
                    accepted
                        .remarks
                        .push(format!("cannot read the key{who} in {place}; the previous one stays valid: {why}"));
                    // The location itself, or all files of a folder.
                    let is_known = |(of, at): &(Option<String>, String)| {
                        *at == place
                            || (name.is_none() && of.is_some() && Path::new(at).parent() == Some(Path::new(&place)))
                    };
                    let known = self.places.iter().filter(|(id, _)| is_known(id));
                    let known: Vec<AtPlace> =
                        known.map(|((of, at), secrets)| (of.clone(), at.clone(), secrets.clone())).collect();
                    if known.is_empty() {
                        all.push((name, place, Vec::new()));
                    }
                    all.extend(known);
                }
            }
        }
        all
    }

    /// Returns the name under which a key is accepted.
    fn holder<'p>(&self, secret: &Secret, places: &'p [AtPlace]) -> Option<&'p String> {
        let having =
            || places.iter().filter(|(_, _, secrets)| secrets.contains(secret)).map(|(name, ..)| name.as_ref());
        let was = self.held.iter().find(|held| held.secret == *secret).map(|held| held.name.as_ref());
        having().find(|name| Some(*name) == was).or_else(|| having().next()).flatten()
    }
}

/// A name, the location and the keys there.
type AtPlace = (Option<String>, String, Vec<Secret>);

fn of_whom(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!(" of {name}"))
}

impl Reader<'_> {
    pub(crate) fn service_keys(&self, section: &Section<'_>) -> ServiceKeys {
        let written = section.table().and_then(|table| table.get("keys"));
        let form = match written.map(|written| (written.span(), written.get_ref())) {
            None => return ServiceKeys::default(),
            Some((span, DeValue::String(_))) => self.folder_form(section, span),
            Some((_, DeValue::Table(names))) => self.named_form(section, names),
            Some(_) => self.list_form(section),
        };
        let places = KeyLocations { base: self.base.clone(), form };
        let Some(env) = self.options.env else { return ServiceKeys { places, ..ServiceKeys::default() } };
        let Accepted { keys, remarks, duplicates: doubled, names } = LastKnown::default().update(places.load(env));
        let span = written.map_or(0..0, Spanned::span);
        for (name, words) in doubled {
            let at = name_span(written, &name).unwrap_or_else(|| span.clone());
            section.report_value(
                "keys",
                at,
                refusal(format!("cannot be used: {words}"), "a key belongs to one person or one program"),
            );
        }
        if keys.is_empty() && !places.is_empty() && section.has_no_problem("keys") {
            let why = format!("has no usable key: {}", remarks.join("; "));
            section.report_value(
                "keys",
                span,
                refusal(why, "write a key into one of them: openssl rand -hex 32 > FILE"),
            );
        }
        ServiceKeys { places, found: keys, remarks, names }
    }

    /// A list without names: a key that cannot be used is an error.
    fn list_form(&self, section: &Section<'_>) -> Form {
        let list = section.list("keys", |value| {
            self.secret(value)?;
            Ok(value.as_str().unwrap_or_default().to_owned())
        });
        Form::List(list.map_or(Vec::new(), |list| list.value.into_iter().map(|spot| spot.value).collect()))
    }

    fn folder_form(&self, section: &Section<'_>, span: Range<usize>) -> Form {
        let folder = section.get("keys", |value| match value.as_str().and_then(|text| text.strip_prefix("folder:")) {
            Some(path) if !path.is_empty() => Ok(self.path(path)),
            _ => Err(refusal(
                "must be an array of keys, a table of names, or \"folder:PATH\"",
                "write [\"env:NAME\"], { alice = \"file:PATH\" } or \"folder:keys\"",
            )),
        });
        let Some(folder) = folder.map(|folder| folder.value) else { return Form::default() };
        if self.options.env.is_some() && !folder.is_dir() {
            let why = format!("names a folder that scribed cannot read: {}", folder.display());
            section.report_value(
                "keys",
                span,
                refusal(why, "create it, with one file for each key, named after its owner"),
            );
        }
        Form::Folder(folder)
    }

    fn named_form(&self, section: &Section<'_>, names: &DeTable<'_>) -> Form {
        let mut found: Vec<(usize, String, Vec<String>)> = Vec::new();
        for (name, value) in names {
            let key = format!("keys.{}", name.get_ref());
            if let Err(wrong) = key_name(name.get_ref()) {
                section.report_value(&key, name.span(), wrong);
                continue;
            }
            let list: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
                DeValue::Array(list) => list.iter().collect(),
                _ => vec![value],
            };
            let mut written = Vec::new();
            for element in list {
                match self.place(element.get_ref()) {
                    Ok(place) => written.push(place),
                    Err(wrong) => section.report_value(&key, element.span(), wrong),
                }
            }
            found.push((name.span().start, name.get_ref().to_string(), written));
        }
        // In the order of the file: records without an owner's name belong to the first one.
        found.sort();
        Form::Named(found.into_iter().map(|(_, name, written)| (name, written)).collect())
    }

    /// Reads the location of a named key. A file need not exist: removing it revokes the key.
    fn place(&self, value: &DeValue<'_>) -> Result<String, ValueError> {
        let written =
            value.as_str().ok_or_else(|| wrong_type("a string", value, "use \"file:PATH\" or \"env:NAME\""))?;
        let is_file = written.starts_with("file:");
        let checked = match self.options.env {
            Some(env) if !is_file => Secret::fetch(written, &self.base, env),
            _ => Secret::empty_for(written),
        };
        checked.map_err(|(why, fix)| refusal(format!("cannot be used: {why}"), fix))?;
        Ok(written.to_owned())
    }
}

/// Returns the place of a name in the file.
fn name_span(written: Option<&Spanned<DeValue<'_>>>, name: &str) -> Option<Range<usize>> {
    let names = written?.get_ref().as_table()?;
    names.keys().find(|key| key.get_ref() == name).map(Spanned::span)
}

/// Checks a name, which is used in logs and as a file name.
fn key_name(name: &str) -> Result<(), ValueError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    match name.len() {
        1..=64 if name.chars().all(plain) => Ok(()),
        _ => Err(refusal("is not a valid name for a key", "use up to 64 letters, digits and - _ . @")),
    }
}
