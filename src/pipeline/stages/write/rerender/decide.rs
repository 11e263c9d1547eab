//! Decides what becomes of each output when a job is rendered again. Pure: the caller has looked at the files.

use crate::config::sections::patterns::MEDIA_EXTENSIONS;
use crate::domain::format::Format;
use crate::domain::job::Output;
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::output::render_result::OutputKind;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What a file that the job names is like now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// Its content is what scribed wrote, or what a person accepted.
    Ours(Hash),
    /// Something else has the name: an edited file, a folder, a link.
    Edited,
    Missing,
    Unreadable,
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
        if own.state == FileState::Edited && own.output.hash != wanted.hash {
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

/// Returns the file of each wanted output, and the files that are of none. Outputs that have a name that they may keep
/// are assigned first: no other output takes their file. Then come those with the same content, with the same language
/// in the name, and with the same format.
fn assign(
    wanted: &[WantedOutput],
    known: Vec<KnownOutput>,
    at: Option<&RelPath>,
) -> (Vec<Option<KnownOutput>>, Vec<KnownOutput>) {
    let mut rest: Vec<Option<KnownOutput>> = known.into_iter().map(Some).collect();
    let mut own: Vec<Option<KnownOutput>> = wanted.iter().map(|_| None).collect();
    let fits: [Fit<'_>; 5] = [
        &|known, wanted| known.is_current && keeps_name(known, wanted, at),
        // A process that was killed may have published it without recording it as an output.
        &|known, wanted| is_published(known, wanted, at),
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

/// Whether the file is the wanted one already.
fn is_published(known: &KnownOutput, wanted: &WantedOutput, at: Option<&RelPath>) -> bool {
    known.state == FileState::Ours(wanted.hash) && !known.is_shared && keeps_name(known, wanted, at)
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
        FileState::Edited | FileState::Unreadable => Action::Leave(known.output, known.state),
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
        FileState::Edited | FileState::Unreadable => Fate::Stay,
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn output(name: &str, at: Option<&str>) -> Output {
        Output { name: RelPath::new(name), hash: Hash::of(name.as_bytes()), at: at.map(RelPath::new) }
    }

    fn known(name: &str, state: FileState) -> KnownOutput {
        let output = output(name, None);
        KnownOutput { output, state, is_current: true, is_accepted: false, is_shared: false }
    }

    fn ours(name: &str, content: &str) -> KnownOutput {
        known(name, FileState::Ours(Hash::of(content.as_bytes())))
    }

    fn wanted(format: Format, content: &str, names: &[&str]) -> WantedOutput {
        let names = names.iter().map(OsString::from).collect();
        let kind = OutputKind { format, language: None, is_translation: false };
        WantedOutput { kind, hash: Hash::of(content.as_bytes()), names }
    }

    fn srt(content: &str) -> [WantedOutput; 1] {
        [wanted(Format::Srt, content, &["talk.srt", "talk.wav.srt"])]
    }

    fn first(known: KnownOutput, at: Option<&str>, options: RenderOptions) -> Action {
        decide(&srt("new"), vec![known], at.map(RelPath::new).as_ref(), options).actions.remove(0)
    }

    const RESTORE: RenderOptions = RenderOptions { prune: false, restore: true };

    #[test]
    fn an_output_is_kept_replaced_or_moved_unless_a_person_edited_or_removed_it() {
        let plain = RenderOptions::default();
        assert!(matches!(first(ours("talk.srt", "new"), None, plain), Action::Keep(_)));
        assert!(matches!(first(ours("talk.wav.srt", "new"), None, plain), Action::Keep(_)), "a name that it may keep");
        assert!(matches!(first(ours("talk.srt", "old"), None, plain), Action::Replace(_)));
        assert!(matches!(first(ours("other.srt", "new"), None, plain), Action::Move(_)));
        assert!(matches!(first(ours("talk.srt", "new"), Some("/out"), plain), Action::Move(_)));
        assert!(matches!(first(known("talk.srt", FileState::Unreadable), None, RESTORE), Action::Leave(..)));
        assert!(matches!(first(known("talk.srt", FileState::Missing), None, plain), Action::StayMissing(_)));
        let named = |names: &[&str]| Action::Restore { names: names.iter().map(OsString::from).collect() };
        assert_eq!(first(known("talk.wav.srt", FileState::Missing), None, RESTORE), named(&["talk.wav.srt"]));
        assert_eq!(first(known("old.srt", FileState::Missing), None, RESTORE), named(&["talk.srt", "talk.wav.srt"]));
        let shared = KnownOutput { is_shared: true, ..ours("talk.srt", "old") };
        assert_eq!(first(shared, None, plain), Action::Write);
    }

    #[test]
    fn what_stands_for_nothing_is_removed_only_if_another_file_replaces_it_or_a_person_asks() {
        let fate = |known: KnownOutput, prune| {
            let options = RenderOptions { prune, restore: false };
            let plan = decide(&srt("new"), vec![ours("talk.srt", "new"), known], None, options);
            plan.rest[0].1
        };
        let earlier = |name, state| KnownOutput { is_current: false, ..known(name, state) };
        let is_ours = FileState::Ours(Hash::of(b"old"));
        assert_eq!(fate(earlier("old.srt", is_ours), false), Fate::Remove);
        assert_eq!(fate(known("talk.vtt", is_ours), false), Fate::Unconfigured);
        assert_eq!(fate(known("talk.vtt", is_ours), true), Fate::Prune);
        assert_eq!(fate(known("talk.vtt", FileState::Edited), true), Fate::Stay);
        assert_eq!(fate(earlier("old.srt", FileState::Edited), true), Fate::Stay);
        assert_eq!(fate(earlier("old.srt", FileState::Missing), true), Fate::Forget);
        let accepted = KnownOutput { is_accepted: true, ..earlier("old.srt", is_ours) };
        assert_eq!(fate(accepted, true), Fate::Stay, "what a person accepted is never removed");
        assert_eq!(fate(KnownOutput { is_shared: true, ..earlier("old.srt", is_ours) }, true), Fate::Forget);
    }

    #[test]
    fn what_a_killed_process_published_is_the_output() {
        let published = KnownOutput { is_current: false, ..ours("talk.srt", "new") };
        let plan = decide(&srt("new"), vec![ours("old.srt", "new"), published], None, RenderOptions::default());
        assert!(matches!(&plan.actions[0], Action::Keep(output) if output.name == RelPath::new("talk.srt")));
        assert_eq!(plan.rest[0].1, Fate::Remove);
    }

    #[test]
    fn a_newer_version_goes_beside_an_edited_output() {
        let plan = decide(&srt("new"), vec![known("talk.srt", FileState::Edited)], None, RenderOptions::default());
        assert_eq!((plan.actions[0].clone(), plan.rest[0].1), (Action::Write, Fate::Stay));
        // What scribed wrote there is what it would write now: there is no newer version.
        let mut edited = known("talk.srt", FileState::Edited);
        edited.output.hash = Hash::of(b"new");
        let plan = decide(&srt("new"), vec![edited], None, RenderOptions::default());
        assert!(matches!(plan.actions[0], Action::Leave(..)) && plan.rest.is_empty());
    }

    #[test]
    fn each_language_keeps_its_own_file() {
        let of = |language: &str, content: &str, names: &[&str]| {
            let kind =
                OutputKind { format: Format::Srt, language: Some(language.into()), is_translation: language != "en" };
            WantedOutput { kind, ..wanted(Format::Srt, content, names) }
        };
        let wants = [of("en", "a", &["x.en.srt"]), of("fr", "b", &["x.fr.srt"]), of("de", "c", &["x.de.srt"])];
        let files = vec![ours("talk.fr.srt", "old"), ours("talk.srt", "old"), ours("old.srt", "c")];
        let plan = decide(&wants, files, None, RenderOptions::default());
        let from = |action: &Action| match action {
            Action::Move(output) => output.name.lossy().into_owned(),
            other => format!("{other:?}"),
        };
        let from: Vec<String> = plan.actions.iter().map(from).collect();
        assert_eq!((from[0].as_str(), from[1].as_str()), ("talk.srt", "talk.fr.srt"));
        let earlier = KnownOutput { is_current: false, ..ours("talk.it.srt", "old") };
        let mut wants_only = wants.to_vec();
        wants_only.truncate(1);
        let plan = decide(&wants_only, vec![earlier], None, RenderOptions::default());
        assert_eq!(plan.rest[0].1, Fate::Unconfigured, "a translation that was bought is not removed");
        let plain = KnownOutput { is_current: false, ..ours("talk.mp4.sdh.srt", "old") };
        assert_eq!(decide(&wants_only, vec![plain], None, RenderOptions::default()).rest[0].1, Fate::Remove);
    }

    fn any_known() -> impl Strategy<Value = KnownOutput> {
        let name = prop::sample::select(vec!["talk.srt", "talk.wav.srt", "talk.vtt", "old.srt", "old.txt", "talk.txt"]);
        let state = prop_oneof![
            prop::sample::select(vec!["a", "b"]).prop_map(|content| FileState::Ours(Hash::of(content.as_bytes()))),
            Just(FileState::Edited),
            Just(FileState::Missing),
            Just(FileState::Unreadable),
        ];
        (name, state, any::<[bool; 3]>()).prop_map(|(name, state, [is_current, is_accepted, is_shared])| KnownOutput {
            is_current,
            is_accepted,
            is_shared,
            ..known(name, state)
        })
    }

    proptest! {
        /// Each known file has one fate; what a person edited, and what another recording's job has, is never
        /// replaced, moved or removed, and what a person accepted is never removed.
        #[test]
        fn nothing_of_a_person_is_lost(
            mut files in prop::collection::vec(any_known(), 0..6), prune: bool, restore: bool,
        ) {
            files.sort_by(|a, b| a.output.name.cmp(&b.output.name));
            files.dedup_by(|a, b| a.output.name == b.output.name);
            let wants = [
                wanted(Format::Srt, "a", &["talk.srt", "talk.wav.srt"]),
                wanted(Format::Txt, "b", &["talk.txt"]),
            ];
            let plan = decide(&wants, files.clone(), None, RenderOptions { prune, restore });
            prop_assert_eq!(plan.actions.len(), wants.len());
            let mut touched = Vec::new();
            for action in &plan.actions {
                if let Action::Replace(output) | Action::Move(output) = action {
                    touched.push(output.name.clone());
                }
            }
            let removed = plan.rest.iter().filter(|(_, fate)| matches!(fate, Fate::Remove | Fate::Prune));
            for (file, _) in removed {
                prop_assert!(!file.is_accepted);
                touched.push(file.output.name.clone());
            }
            for file in files {
                let count = touched.iter().filter(|name| **name == file.output.name).count();
                let may = matches!(file.state, FileState::Ours(_)) && !file.is_shared;
                prop_assert!(count <= usize::from(may), "{:?}", file);
            }
        }
    }
}
