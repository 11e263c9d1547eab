//! Whatever a person edits, accepts and takes back, and however often the outputs are rendered in between, also by a
//! process that is killed: what the person wrote stays as it is. A model of the folder, in memory.

use super::RenderOptions;
use super::decide::{Action, Fate, KnownOutput, RenderPlan, WantedOutput, decide};
use super::files::known_output;
use crate::domain::format::Format;
use crate::domain::job::{Job, JobKey, Output, Stamp};
use crate::domain::names::{Hash, JobId, ServiceName, SourceName, Timestamp, TranscriptionId};
use crate::domain::output_text::{AcceptedText, OutputChange};
use crate::domain::path::RelPath;
use crate::domain::stage::{AudioAmount, JobEvent, Stage};
use crate::domain::token::PurchaseKey;
use crate::output::render_result::OutputKind;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

const NOW: Timestamp = Timestamp(5);
const NAMES: [&str; 4] = ["talk.en.txt", "talk.en.srt", "talk.txt", "talk.srt"];

#[derive(Debug, Clone)]
enum Step {
    /// A person changes a file.
    Edit(usize),
    /// A person accepts a file as it is.
    Accept(usize),
    /// A person accepts a copy of a file under another name of its format.
    AcceptCopy(usize),
    /// A person accepts what the editor has: it has no file.
    AcceptTyped,
    Undo,
    /// Rendered; a killed process changes this many files, and does not say so.
    Render {
        prune: bool,
        killed_after: Option<usize>,
    },
    /// The names of outputs change.
    Rename,
}

fn any_step() -> impl Strategy<Value = Step> {
    let file = 0..NAMES.len();
    prop_oneof![
        file.clone().prop_map(Step::Edit),
        file.clone().prop_map(Step::Accept),
        file.prop_map(Step::AcceptCopy),
        Just(Step::AcceptTyped),
        Just(Step::Undo),
        (any::<bool>(), prop::option::weighted(0.3, 0usize..3))
            .prop_map(|(prune, killed_after)| Step::Render { prune, killed_after }),
        Just(Step::Rename),
    ]
}

struct Folder {
    job: Job,
    files: BTreeMap<String, String>,
    /// What a person wrote last.
    of_person: BTreeMap<String, String>,
    accepted_content: String,
    edits: usize,
    has_short_names: bool,
}

impl Folder {
    fn written() -> Self {
        let key = JobKey { source: SourceName::new("inbox"), path: RelPath::new("talk.wav") };
        let purchase_key =
            PurchaseKey { service: ServiceName::new("s"), content: Hash::of(b"c"), params: Hash::of(b"p"), part: None };
        let stage =
            Stage::Written { purchase_key, transcription: TranscriptionId::new("t"), audio: AudioAmount::default() };
        let job = Job { stage, ..Job::found(JobId(1), key, Stamp::default(), NOW, NOW) };
        let (files, of_person) = (BTreeMap::new(), BTreeMap::new());
        let accepted_content = String::new();
        let mut folder = Self { job, files, of_person, accepted_content, edits: 0, has_short_names: false };
        folder.render(RenderOptions::default(), None);
        folder
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Edit(at) => self.edit(NAMES[*at]),
            Step::Accept(at) => self.accept(NAMES[*at]),
            Step::AcceptCopy(at) => {
                let (from, to) = (NAMES[*at], NAMES[(*at + 2) % NAMES.len()]);
                let Some(content) = self.of_person.get(from).cloned() else { return };
                self.files.insert(to.to_owned(), content.clone());
                self.of_person.insert(to.to_owned(), content);
                self.accept(to);
            }
            Step::AcceptTyped => self.accept_typed(),
            Step::Undo => self.undo(),
            Step::Render { prune, killed_after } => {
                self.render(RenderOptions { prune: *prune, restore: false }, *killed_after);
            }
            Step::Rename => self.has_short_names = !self.has_short_names,
        }
    }

    fn edit(&mut self, name: &str) {
        self.edits += 1;
        let content = format!("edit {}", self.edits);
        self.files.insert(name.to_owned(), content.clone());
        self.of_person.insert(name.to_owned(), content);
    }

    fn accept(&mut self, name: &str) {
        let Some(content) = self.files.get(name).cloned() else { return };
        let hash = Hash::of(content.as_bytes());
        let output = Output { name: RelPath::new(name), hash, at: None };
        let own = self.job.outputs.iter().chain(&self.job.earlier).find(|own| own.is_same_file(&output));
        let before = self.job.accepted.as_ref().filter(|before| before.is_of(&output));
        let accepted = AcceptedText {
            format: Format::of_name(name).unwrap(),
            hash,
            transcription: TranscriptionId::new("t"),
            at: NOW,
            by: "ann".to_owned(),
            written: before.map_or(own.map(|own| own.hash), |before| before.written),
            output: Some(output),
        };
        self.accepted_content = content;
        let change = Box::new(OutputChange::accepting(&self.job, accepted));
        self.apply(JobEvent::Accepted { change, result: None });
    }

    fn accept_typed(&mut self) {
        self.edits += 1;
        let content = format!("typed {}", self.edits);
        let accepted = AcceptedText {
            format: Format::Vtt,
            hash: Hash::of(content.as_bytes()),
            transcription: TranscriptionId::new("t"),
            at: NOW,
            by: "ann".to_owned(),
            written: None,
            output: None,
        };
        self.accepted_content = content;
        let change = Box::new(OutputChange::accepting(&self.job, accepted));
        self.apply(JobEvent::Accepted { change, result: None });
    }

    fn undo(&mut self) {
        let Some(accepted) = self.job.accepted.clone() else { return };
        let change = Box::new(OutputChange::taking_back(&self.job, &accepted));
        self.apply(JobEvent::Unaccepted { change });
    }

    fn apply(&mut self, event: JobEvent) {
        self.job = self.job.clone().apply(event, NOW).unwrap();
    }

    fn wanted(&self) -> Vec<(WantedOutput, String)> {
        let text = if self.job.accepted.is_some() { self.accepted_content.as_str() } else { "what was heard" };
        let wanted = [Format::Txt, Format::Srt].map(|format| {
            let is_verbatim = self.job.accepted.as_ref().is_some_and(|accepted| accepted.format == format);
            let content = if is_verbatim { text.to_owned() } else { format!("{} of {text}", format.ext()) };
            let language = if self.has_short_names { "" } else { "en." };
            let name = |stem: &str| OsString::from(format!("{stem}.{language}{}", format.ext()));
            let more = (2..40).map(|n| OsString::from(format!("talk.wav.{language}{n}.{}", format.ext())));
            let names = ["talk", "talk.wav"].map(name).into_iter().chain(more).collect();
            let kind = OutputKind { format, language: Some("en".into()), is_translation: false };
            (WantedOutput { kind, hash: Hash::of(content.as_bytes()), names }, content)
        });
        wanted.into()
    }

    fn look(&self) -> Vec<KnownOutput> {
        let read = |output: &Output| {
            let content = self.files.get(&*output.name.lossy()).ok_or(io::Error::from(io::ErrorKind::NotFound));
            content.map(|content| Hash::of(content.as_bytes()))
        };
        let outputs = self.job.outputs.iter().map(|output| known_output(&self.job, output, true, read(output)));
        let earlier = self.job.earlier.iter().map(|output| known_output(&self.job, output, false, read(output)));
        outputs.chain(earlier).collect()
    }

    /// As `carry_out.rs` does it.
    fn render(&mut self, options: RenderOptions, killed_after: Option<usize>) {
        let (wanted, contents): (Vec<_>, Vec<_>) = self.wanted().into_iter().unzip();
        let plan = decide(&wanted, self.look(), None, options);
        let named: Vec<_> =
            plan.actions.iter().zip(&wanted).map(|(action, wanted)| self.name(&plan, action, wanted)).collect();
        self.announce(&named, &wanted);
        let mut left = killed_after.unwrap_or(usize::MAX);
        let mut outputs = Vec::new();
        for ((action, name), (wanted, content)) in plan.actions.iter().zip(named).zip(wanted.iter().zip(contents)) {
            match (action, name) {
                (Action::Keep(output) | Action::Leave(output, _) | Action::StayMissing(output), _) => {
                    outputs.push(output.clone());
                }
                (_, Some(name)) if left > 0 => {
                    left -= 1;
                    self.files.insert(name.clone(), content);
                    outputs.push(Output { name: RelPath::new(name.as_str()), hash: wanted.hash, at: None });
                }
                _ => {}
            }
        }
        for output in superseded(&plan) {
            if left > 0 {
                left -= 1;
                self.files.remove(&*output.name.lossy());
            }
        }
        if killed_after.is_none() {
            self.record(&plan, outputs);
        }
    }

    fn name(&self, plan: &RenderPlan, action: &Action, wanted: &WantedOutput) -> Option<String> {
        match action {
            Action::Keep(_) | Action::Leave(..) | Action::StayMissing(_) => None,
            Action::Replace(output) => Some(output.name.lossy().into_owned()),
            Action::Move(_) | Action::Write | Action::Restore { .. } => {
                let is_taken = |name: &str| {
                    self.files.contains_key(name)
                        || plan.rest.iter().any(|(known, _)| known.output.name.lossy() == name)
                };
                let mut names = wanted.names.iter().map(|name| name.to_string_lossy().into_owned());
                names.find(|name| !is_taken(name))
            }
        }
    }

    fn announce(&mut self, named: &[Option<String>], wanted: &[WantedOutput]) {
        for (name, wanted) in named.iter().zip(wanted) {
            let Some(name) = name else { continue };
            self.job.pending_outputs.push(wanted.hash);
            let output = Output { name: RelPath::new(name.as_str()), hash: wanted.hash, at: None };
            if !self.job.outputs.iter().chain(&self.job.earlier).any(|known| known.is_same_file(&output)) {
                self.job.earlier.push(output);
            }
        }
    }

    fn record(&mut self, plan: &RenderPlan, outputs: Vec<Output>) {
        let stays = |(known, fate): &(KnownOutput, Fate)| {
            matches!(fate, Fate::Stay | Fate::Unconfigured).then(|| known.output.clone())
        };
        let mut earlier: Vec<Output> = plan.rest.iter().filter_map(stays).collect();
        let accepted = self.job.accepted.clone();
        let accepted = accepted.map(|accepted| Box::new(accepted.placed_in(&outputs, &mut earlier)));
        let change = OutputChange {
            outputs,
            earlier,
            pending_outputs: Vec::new(),
            request_record: None,
            rendered_as: None,
            accepted,
        };
        self.apply(JobEvent::Rendered { change: Box::new(change) });
    }
}

fn superseded(plan: &RenderPlan) -> Vec<Output> {
    let moved = plan.actions.iter().filter_map(|action| match action {
        Action::Move(output) => Some(output.clone()),
        _ => None,
    });
    let removed = plan.rest.iter().filter(|(_, fate)| matches!(fate, Fate::Remove | Fate::Prune));
    moved.chain(removed.map(|(known, _)| known.output.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_a_person_wrote_stays_as_it_is(steps in prop::collection::vec(any_step(), 1..12)) {
        let mut folder = Folder::written();
        for step in &steps {
            folder.take(step);
            for (name, content) in &folder.of_person {
                prop_assert_eq!(folder.files.get(name), Some(content), "{} after {:?}", name, step);
            }
        }
    }

    /// The file of a text that another one has replaced is listed as edited, from then on.
    #[test]
    fn what_was_accepted_before_counts_as_edited(steps in prop::collection::vec(any_step(), 0..8), first in 0..4usize) {
        let mut folder = Folder::written();
        steps.iter().for_each(|step| folder.take(step));
        let (first, second) = (NAMES[first], NAMES[(first + 1) % NAMES.len()]);
        for name in [first, second] {
            folder.edit(name);
            folder.accept(name);
        }
        folder.render(RenderOptions { prune: true, restore: false }, None);
        folder.render(RenderOptions::default(), None);
        let known = folder.look();
        let state = known.iter().find(|known| known.output.name.lossy() == first).map(|known| known.state);
        prop_assert_eq!(state, Some(super::FileState::Edited));
    }
}
