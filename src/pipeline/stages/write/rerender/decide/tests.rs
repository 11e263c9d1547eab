//! Each file has one fate, and nothing of a person is lost.

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
fn an_earlier_version_that_has_the_best_name_is_replaced_by_what_another_name_has() {
    let earlier = |known| KnownOutput { is_current: false, ..known };
    let plan = |earlier| {
        let known = vec![ours("other.srt", "new"), earlier];
        decide(&srt("new"), known, None, RenderOptions::default())
    };
    let replacing = plan(earlier(ours("talk.srt", "old")));
    assert!(matches!(&replacing.actions[..], [Action::Replace(output)] if output.name.lossy() == "talk.srt"));
    assert_eq!(replacing.rest.iter().map(|(_, fate)| *fate).collect::<Vec<_>>(), [Fate::Remove]);
    let accepted = KnownOutput { is_accepted: true, ..earlier(ours("talk.srt", "old")) };
    let shared = KnownOutput { is_shared: true, ..earlier(ours("talk.srt", "old")) };
    for other in [earlier(ours("talk.wav.srt", "old")), earlier(known("talk.srt", FileState::Edited)), accepted, shared]
    {
        assert!(matches!(&plan(other).actions[..], [Action::Move(_)]));
    }
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
        Just(FileState::NotAFile(Obstacle::Link)),
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
