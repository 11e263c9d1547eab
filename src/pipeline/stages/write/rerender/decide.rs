//! Decides what becomes of each output when a job is rendered again. Pure: the caller has looked at the files.

use crate::config::sections::patterns::MEDIA_EXTENSIONS;
use crate::domain::format::Format;
use crate::domain::job::Output;
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::output::render_result::OutputKind;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What a file that the job names is like now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// Its content is what scribed wrote, or what a person accepted.
    Ours(Hash),
    /// A file with other content has the name.
    Edited,
    /// Something else than a file has the name.
    NotAFile(Obstacle),
    Missing,
    Unreadable,
}

/// What is in the place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    Directory,
    /// The name, or a folder above it.
    Link,
    /// A pipe, a socket, a device.
    Other,
}

impl Obstacle {
    /// Says what it is: `PATH is …`.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Directory => "a directory",
            Self::Link => "a symbolic link, or behind one",
            Self::Other => "no regular file",
        }
    }
}

/// A file that the job names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownOutput {
    pub output: Output,
    pub state: FileState,
    /// Whether it is an output of the job now; otherwise earlier outputs left it.
    pub is_current: bool,
    /// Whether a person accepted it.
    pub is_accepted: bool,
    /// Whether another recording's job names the file too.
    pub is_shared: bool,
}

/// An output as it is rendered now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedOutput {
    pub kind: OutputKind,
    pub hash: Hash,
    /// The names to try, best first.
    pub names: Vec<OsString>,
}

/// What a person asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RenderOptions {
    /// Remove unedited outputs of formats that are no longer configured.
    pub prune: bool,
    /// Write missing outputs again.
    pub restore: bool,
}

/// What becomes of a wanted output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The file is as wanted.
    Keep(Output),
    /// The file stays, since a person edited it, or since it cannot be read.
    Leave(Output, FileState),
    /// A person removed the file, and it stays removed.
    StayMissing(Output),
    /// The missing file is written again; under its name, if it may still have it.
    Restore { names: Vec<OsString> },
    /// Its own file is replaced.
    Replace(Output),
    /// It is written under another name or in another place, and the file is removed then.
    Move(Output),
    /// It is written for the first time.
    Write,
}

/// What becomes of a file that stands for no wanted output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Another file has taken its place.
    Remove,
    /// Its format is no longer configured; it stays.
    Unconfigured,
    /// Its format is no longer configured; it is removed, as the person asks.
    Prune,
    /// It stays, since a person edited or accepted it, or since it cannot be read.
    Stay,
    /// It is not the job's any more: it is gone, or another recording's job has it.
    Forget,
}

/// What becomes of the files of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderPlan {
    /// In the order of the wanted outputs.
    pub actions: Vec<Action>,
    pub rest: Vec<(KnownOutput, Fate)>,
}

impl RenderPlan {
    /// Whether a file is written or removed.
    pub fn changes_files(&self) -> bool {
        let acts = |action: &Action| !matches!(action, Action::Keep(_) | Action::Leave(..) | Action::StayMissing(_));
        self.actions.iter().any(acts) || self.rest.iter().any(|(_, fate)| matches!(fate, Fate::Remove | Fate::Prune))
    }
}

/// Decides what becomes of each output. `at` is the folder of outputs if it is not the recording's.
pub fn decide(
    wanted: &[WantedOutput],
    known: Vec<KnownOutput>,
    at: Option<&RelPath>,
    options: RenderOptions,
) -> RenderPlan {
    let (own, mut rest) = assign(wanted, known, at);
    let mut actions = Vec::with_capacity(wanted.len());
    for (wanted, own) in wanted.iter().zip(own) {
        let Some(own) = own else {
            actions.push(Action::Write);
            continue;
        };
        // A newer version of an edited output goes beside it, under another name.
        if matches!(own.state, FileState::Edited | FileState::NotAFile(_)) && own.output.hash != wanted.hash {
            rest.push(own);
            actions.push(Action::Write);
        } else {
            actions.push(action(wanted, own, at, options));
        }
    }
    let rest = rest.into_iter().map(|known| {
        let fate = fate(&known, wanted, options);
        (known, fate)
    });
    RenderPlan { actions, rest: rest.collect() }
}

/// Whether a file may be that of a wanted output.
type Fit<'a> = &'a dyn Fn(&KnownOutput, &WantedOutput) -> bool;

/// Returns the file of each wanted output, and the files that are of none. After the accepted file, outputs that have a
/// name that they may keep are assigned first: no other output takes their file. Then come earlier files that have such
/// a name, those with the same content, with the same language in the name, and with the same format.
fn assign(
    wanted: &[WantedOutput],
    known: Vec<KnownOutput>,
    at: Option<&RelPath>,
) -> (Vec<Option<KnownOutput>>, Vec<KnownOutput>) {
    let mut rest: Vec<Option<KnownOutput>> = known.into_iter().map(Some).collect();
    let mut own: Vec<Option<KnownOutput>> = wanted.iter().map(|_| None).collect();
    let fits: [Fit<'_>; 8] = [
        // What a person accepted is the output of its format, whatever it is called.
        &|known, wanted| is_text(known, wanted) && keeps_name(known, wanted, at),
        &|known, wanted| is_text(known, wanted),
        &|known, wanted| known.is_current && keeps_name(known, wanted, at),
        // A process that was killed may have published it without recording it as an output.
        &|known, wanted| is_published(known, wanted, at),
        &|known, wanted| has_best_name(known, wanted, at),
        &|known, wanted| known.is_current && has_format(known, wanted) && known.output.hash == wanted.hash,
        &|known, wanted| known.is_current && has_format(known, wanted) && has_language(known, wanted),
        &|known, wanted| known.is_current && has_format(known, wanted) && !wanted.kind.is_translation,
    ];
    for fits in fits {
        for (wanted, own) in wanted.iter().zip(&mut own).filter(|(_, own)| own.is_none()) {
            *own = take(&mut rest, |known| fits(known, wanted));
        }
    }
    (own, rest.into_iter().flatten().collect())
}

/// Returns what a file is, of these outputs.
pub fn kind_of<'w>(
    wanted: &'w [WantedOutput],
    known: Vec<KnownOutput>,
    at: Option<&RelPath>,
    is_it: impl Fn(&Output) -> bool,
) -> Option<&'w OutputKind> {
    let (own, rest) = assign(wanted, known, at);
    let is_own = |own: &Option<KnownOutput>| own.as_ref().is_some_and(|known| is_it(&known.output));
    let by_name = || {
        let known = rest.iter().find(|known| is_it(&known.output))?;
        wanted.iter().find(|wanted| has_format(known, wanted) && has_language(known, wanted))
    };
    own.iter().position(is_own).map(|at| &wanted[at]).or_else(by_name).map(|wanted| &wanted.kind)
}

fn name(known: &KnownOutput) -> &OsStr {
    OsStr::from_bytes(known.output.name.as_bytes())
}

fn keeps_name(known: &KnownOutput, wanted: &WantedOutput, at: Option<&RelPath>) -> bool {
    known.output.at.as_ref() == at && wanted.names.iter().any(|wanted| wanted == name(known))
}

/// Whether a person accepted the file, and it is there.
fn is_text(known: &KnownOutput, wanted: &WantedOutput) -> bool {
    let is_there = known.is_accepted && known.is_current && known.state != FileState::Missing;
    is_there && has_format(known, wanted) && !wanted.kind.is_translation && known.output.hash == wanted.hash
}

/// Whether the file is the wanted one already.
fn is_published(known: &KnownOutput, wanted: &WantedOutput, at: Option<&RelPath>) -> bool {
    known.state == FileState::Ours(wanted.hash) && !known.is_shared && keeps_name(known, wanted, at)
}

/// Whether an earlier version of the wanted file, which nobody edited, has the name that is best for it.
fn has_best_name(known: &KnownOutput, wanted: &WantedOutput, at: Option<&RelPath>) -> bool {
    let is_ours = matches!(known.state, FileState::Ours(_)) && !known.is_shared && !known.is_accepted;
    is_ours && known.output.at.as_ref() == at && wanted.names.first().is_some_and(|wanted| wanted == name(known))
}

fn has_format(known: &KnownOutput, wanted: &WantedOutput) -> bool {
    Format::of_name(&known.output.name.lossy()) == Some(wanted.kind.format)
}

fn has_language(known: &KnownOutput, wanted: &WantedOutput) -> bool {
    let name = known.output.name.lossy();
    wanted.kind.language.as_deref().is_some_and(|language| name.split('.').any(|part| part == language))
}

/// Takes the first file that fits.
fn take(rest: &mut [Option<KnownOutput>], fits: impl Fn(&KnownOutput) -> bool) -> Option<KnownOutput> {
    rest.iter_mut().find(|known| matches!(known, Some(known) if fits(known)))?.take()
}

fn action(wanted: &WantedOutput, known: KnownOutput, at: Option<&RelPath>, options: RenderOptions) -> Action {
    let keeps_name = keeps_name(&known, wanted, at);
    match known.state {
        FileState::Missing if options.restore && keeps_name => Action::Restore { names: vec![name(&known).to_owned()] },
        FileState::Missing if options.restore => Action::Restore { names: wanted.names.clone() },
        FileState::Missing => Action::StayMissing(known.output),
        FileState::Edited | FileState::NotAFile(_) | FileState::Unreadable => Action::Leave(known.output, known.state),
        // What a person accepted is the text of the job, whatever is rendered: it keeps its name and place.
        FileState::Ours(hash) if known.is_accepted || keeps_name && hash == wanted.hash => {
            Action::Keep(Output { hash, ..known.output })
        }
        // The other recording's job has the file; this one gets its own.
        FileState::Ours(_) if known.is_shared => Action::Write,
        FileState::Ours(hash) if keeps_name => Action::Replace(Output { hash, ..known.output }),
        FileState::Ours(hash) => Action::Move(Output { hash, ..known.output }),
    }
}

fn fate(known: &KnownOutput, wanted: &[WantedOutput], options: RenderOptions) -> Fate {
    match known.state {
        FileState::Missing => Fate::Forget,
        _ if known.is_accepted => Fate::Stay,
        _ if known.is_shared => Fate::Forget,
        FileState::Edited | FileState::NotAFile(_) | FileState::Unreadable => Fate::Stay,
        FileState::Ours(_) if is_superseded(known, wanted) => Fate::Remove,
        FileState::Ours(_) if options.prune => Fate::Prune,
        FileState::Ours(_) => Fate::Unconfigured,
    }
}

/// Whether a wanted output stands for the file: it has the format, and the content or the language. A translation that
/// an earlier purchase gave and the present one did not is of no wanted output.
pub fn is_superseded(known: &KnownOutput, wanted: &[WantedOutput]) -> bool {
    let mut alike = wanted.iter().filter(|wanted| has_format(known, wanted)).peekable();
    if alike.peek().is_none() {
        return false;
    }
    let languages: Vec<&str> = wanted.iter().filter_map(|wanted| wanted.kind.language.as_deref()).collect();
    let name = known.output.name.lossy();
    let stem = Format::of_name(&name).and_then(|format| name.strip_suffix(format.ext())).unwrap_or_default();
    let has_other_language = stem.split('.').skip(1).any(|part| is_like_a_language(part) && !languages.contains(&part));
    alike.any(|wanted| wanted.hash == known.output.hash || has_language(known, wanted) || !has_other_language)
}

/// Whether a part of a name may be a language: `fr`, `fra`, `pt-BR`. `talk.mp4.srt` and `talk.sdh.srt` name none.
fn is_like_a_language(part: &str) -> bool {
    let first = part.split('-').next().unwrap_or_default();
    let is_code = (2..=3).contains(&first.len()) && first.bytes().all(|byte| byte.is_ascii_lowercase());
    is_code && part != "sdh" && !MEDIA_EXTENSIONS.contains(&part)
}

#[cfg(test)]
mod tests;
