//! Drafts of the editor: what people have typed and not accepted yet, as files in the state directory. A draft is durable
//! once it is saved, and each save is a new file: of two tabs that save over the same draft only one succeeds, whichever
//! process they ask, and a draft that somebody replaces or discards can be brought back.

use crate::domain::job::JobKey;
use crate::domain::names::Timestamp;
use crate::domain::speaker_names::SpeakerName;
use crate::durable_file;
use crate::permission_errors::explain_state_at;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;

/// Limits of what a browser may send: some days of speech.
const MOST_CUES: usize = 200_000;
const LONGEST_TEXT: usize = 20_000;
const LATEST: u64 = 1_000 * 3_600_000;
const MOST_SPEAKERS: usize = 1_000;

/// A caption of a draft. Times are milliseconds of the recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftCue {
    /// Tells captions apart when two drafts are merged.
    pub id: String,
    pub start: u64,
    pub end: u64,
    /// By order of appearance from 0; `None` if nobody is named.
    pub speaker: Option<u32>,
    /// A line for each line of the caption.
    pub text: String,
}

/// The text of a draft.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftText {
    pub cues: Vec<DraftCue>,
    /// The names of speakers who have one.
    pub speakers: BTreeMap<u32, String>,
}

impl DraftText {
    /// Checks what a browser sent.
    ///
    /// # Errors
    /// Says what cannot be saved.
    pub fn check(&self) -> Result<(), String> {
        if self.cues.len() > MOST_CUES || self.speakers.len() > MOST_SPEAKERS {
            return Err(format!("a draft has at most {MOST_CUES} captions and {MOST_SPEAKERS} speakers"));
        }
        let mut ids = BTreeSet::new();
        for cue in &self.cues {
            let is_id =
                (1..=64).contains(&cue.id.len()) && cue.id.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
            if !is_id || !ids.insert(cue.id.as_str()) {
                return Err(format!("{:?} is no id of a caption, or two captions have it", cue.id));
            }
            if cue.start >= cue.end || cue.end > LATEST {
                return Err(format!("a caption from {} ms to {} ms is not possible", cue.start, cue.end));
            }
            if cue.text.len() > LONGEST_TEXT {
                return Err(format!("the caption at {} ms has more than {LONGEST_TEXT} bytes of text", cue.start));
            }
        }
        let mut names = BTreeSet::new();
        for (speaker, name) in &self.speakers {
            let parsed = SpeakerName::parse(name).map_err(|why| format!("the name of speaker {speaker}: {why}"))?;
            if !names.insert(parsed) {
                return Err(format!("two speakers have the name {name:?}"));
            }
        }
        Ok(())
    }
}

/// What has become of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftState {
    Open,
    Discarded,
    Accepted,
}

/// A draft, or that there is none any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextDraft {
    /// From 1; each save counts.
    pub revision: u64,
    pub state: DraftState,
    /// Which text of the job it began with.
    pub base: String,
    pub by: String,
    /// The tab that saved it.
    pub editor: String,
    /// Milliseconds since 1970.
    pub at: Timestamp,
    /// The draft that it replaced although another tab had saved it, or that was discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<u64>,
    pub text: DraftText,
}

/// The folder of drafts.
#[derive(Debug, Clone)]
pub struct Drafts {
    dir: PathBuf,
}

impl Drafts {
    /// Returns the drafts in `dir`, which is created when the first is saved.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Returns the draft of a job that was saved last. Blocks.
    pub fn current(&self, job: &JobKey) -> io::Result<Option<TextDraft>> {
        let newest = self.revisions(job)?.into_iter().max();
        newest.map_or(Ok(None), |revision| self.read(job, revision))
    }

    /// Returns the draft with this number; `None` if it is not kept any more. Blocks.
    pub fn read(&self, job: &JobKey, revision: u64) -> io::Result<Option<TextDraft>> {
        let file = self.path(job, revision);
        match fs::read(&file) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).map_err(|error| damaged(&file, &error))?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(explain_state_at(&file)(error)),
        }
    }

    /// Saves a draft; durable when it returns. Returns `false` if there is one with this number already: another tab was
    /// first. Earlier drafts are removed, but for the one that [`TextDraft::previous`] names. Blocks.
    pub fn save(&self, job: &JobKey, draft: &TextDraft) -> io::Result<bool> {
        let file = self.path(job, draft.revision);
        let write = || {
            let folder = durable_file::folder_of(&file)?;
            if !folder.is_dir() {
                fs::create_dir_all(folder)?;
                durable_file::sync(&self.dir)?;
                durable_file::sync(durable_file::folder_of(&self.dir)?)?;
            }
            durable_file::create_new(&file, &serde_json::to_vec(draft)?)
        };
        if !write().map_err(explain_state_at(&file))? {
            return Ok(false);
        }
        let is_old = |revision: &u64| *revision < draft.revision && Some(*revision) != draft.previous;
        for revision in self.revisions(job)?.into_iter().filter(is_old) {
            // One that stays does no harm.
            let _ = fs::remove_file(self.path(job, revision));
        }
        Ok(true)
    }

    /// Removes all drafts of a job; returns whether there were any. Blocks.
    pub fn remove_all(&self, job: &JobKey) -> io::Result<bool> {
        let revisions = self.revisions(job)?;
        for revision in &revisions {
            let file = self.path(job, *revision);
            fs::remove_file(&file).map_err(explain_state_at(&file))?;
        }
        Ok(!revisions.is_empty())
    }

    fn revisions(&self, job: &JobKey) -> io::Result<Vec<u64>> {
        let tag = job.tag().to_string();
        let folder = self.dir.join(&tag[..2]);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(explain_state_at(&folder))?,
        };
        let mut revisions = Vec::new();
        for entry in entries {
            let name = entry.map_err(explain_state_at(&folder))?.file_name();
            let number =
                name.to_str().and_then(|name| name.strip_prefix(&tag)?.strip_prefix('.')?.strip_suffix(".json"));
            revisions.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
        Ok(revisions)
    }

    /// Returns the file of a draft: named after the job, which keeps its name when the queue is lost.
    fn path(&self, job: &JobKey, revision: u64) -> PathBuf {
        let tag = job.tag().to_string();
        self.dir.join(&tag[..2]).join(format!("{tag}.{revision}.json"))
    }
}

fn damaged(file: &std::path::Path, error: &serde_json::Error) -> io::Error {
    let words = format!("the draft {} is damaged ({error}); move it away to begin again", file.display());
    io::Error::new(io::ErrorKind::InvalidData, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::SourceName;
    use crate::domain::path::RelPath;

    fn cue(id: &str, start: u64, end: u64, text: &str) -> DraftCue {
        DraftCue { id: id.to_owned(), start, end, speaker: Some(0), text: text.to_owned() }
    }

    fn draft(revision: u64, text: &str) -> TextDraft {
        let text =
            DraftText { cues: vec![cue("c0", 0, 1_000, text)], speakers: BTreeMap::from([(0, "Ann".to_owned())]) };
        let (base, by, editor) = ("b".to_owned(), "ann".to_owned(), "tab".to_owned());
        TextDraft { revision, state: DraftState::Open, base, by, editor, at: Timestamp(5), previous: None, text }
    }

    #[test]
    fn of_two_that_save_the_same_number_one_succeeds_and_what_is_previous_stays() {
        let dir = tempfile::tempdir().unwrap();
        let drafts = Drafts::new(dir.path().join("drafts"));
        let job = JobKey { source: SourceName::new("s"), path: RelPath::new("talk.wav") };
        let other = JobKey { source: SourceName::new("s"), path: RelPath::new("other.wav") };
        assert_eq!(drafts.current(&job).unwrap(), None);
        assert!(drafts.save(&job, &draft(1, "one")).unwrap() && drafts.save(&other, &draft(1, "x")).unwrap());
        assert!(!drafts.save(&job, &draft(1, "another")).unwrap());
        assert_eq!(drafts.current(&job).unwrap(), Some(draft(1, "one")));
        let second = TextDraft { previous: Some(1), ..draft(2, "two") };
        assert!(
            drafts.save(&job, &second).unwrap()
                && drafts.save(&job, &TextDraft { previous: Some(1), ..draft(3, "three") }).unwrap()
        );
        assert_eq!((drafts.read(&job, 1).unwrap(), drafts.read(&job, 2).unwrap()), (Some(draft(1, "one")), None));
        assert!(drafts.remove_all(&job).unwrap() && !drafts.remove_all(&job).unwrap());
        assert_eq!(drafts.current(&other).unwrap(), Some(draft(1, "x")));
    }

    #[test]
    fn damage_is_told_with_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let drafts = Drafts::new(dir.path());
        let job = JobKey { source: SourceName::new("s"), path: RelPath::new("talk.wav") };
        drafts.save(&job, &draft(7, "one")).unwrap();
        fs::write(drafts.path(&job, 7), "{").unwrap();
        let told = drafts.current(&job).unwrap_err().to_string();
        assert!(told.contains(".7.json is damaged") && told.contains("move it away"), "{told}");
    }

    #[test]
    fn only_what_can_be_captions_is_saved() {
        let text = |cues: Vec<DraftCue>, names: &[(u32, &str)]| {
            let speakers = names.iter().map(|(speaker, name)| (*speaker, (*name).to_owned())).collect();
            DraftText { cues, speakers }.check().is_ok()
        };
        assert!(text(vec![cue("c0", 0, 1, ""), cue("a-1", 0, 1, "<b>\u{202e}\n-->")], &[(0, "Ann"), (3, "<img>")]));
        for cues in [
            vec![cue("", 0, 1, "")],
            vec![cue("../x", 0, 1, "")],
            vec![cue("c0", 0, 1, ""), cue("c0", 1, 2, "")],
            vec![cue("c0", 1, 1, "")],
            vec![cue("c0", 0, u64::MAX, "")],
            vec![cue("c0", 0, 1, &"x".repeat(20_001))],
        ] {
            assert!(!text(cues.clone(), &[]), "{cues:?}");
        }
        assert!(!text(Vec::new(), &[(0, "Ann"), (1, " Ann ")]) && !text(Vec::new(), &[(0, "a\nb")]));
    }
}
