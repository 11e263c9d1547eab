//! Texts that people accepted in place of what was recognised: kept in the state directory, and put into results. A text
//! is never changed: another one of the same job has a file of its own. Start reading at `apply.rs`.

mod align;
mod align_cues;
mod apply;
mod cues;
mod file_content;
mod matching;
mod text_words;

pub use apply::{Applied, Heard, Unusable, apply, empty_answer, is_acceptable, with_names};
pub use cues::read_cues;
pub use file_content::FileContent;
pub use text_words::line_words;

use crate::domain::format::Format;
use crate::domain::job::JobKey;
use crate::domain::names::{Hash, Timestamp};
use crate::domain::output_text::AcceptedText;
use crate::domain::speaker_names::{SpeakerName, SpeakerNames};
use crate::durable_file::{self, Durability};
use crate::permission_errors::{describe_error, explain_state_at};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

/// The longest text that is accepted, in bytes.
pub const LONGEST_TEXT: u64 = 64 << 20;

/// The folder of accepted texts.
#[derive(Debug, Clone)]
pub struct AcceptedTexts {
    dir: PathBuf,
}

/// What a file contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptText {
    pub format: Format,
    /// Milliseconds since 1970.
    pub at: Timestamp,
    /// The user who accepted it.
    pub by: String,
    pub source: String,
    /// The recording's path below the source; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The text of the accepted file; the file unchanged, if it is UTF-8.
    pub text: String,
    /// The accepted file in base64, unchanged, if it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<String>,
    /// The language that the settings of the recording name, or that the name of the file says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// For a text of the editor: the names of its speakers, which count in all outputs. `None` for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<BTreeMap<u32, String>>,
}

impl KeptText {
    /// Returns the names of the speakers of a text of the editor; what is no name names nobody.
    pub fn speaker_names(&self) -> Option<SpeakerNames> {
        let mut names = SpeakerNames::default();
        for (speaker, name) in self.names.as_ref()? {
            if let Ok(name) = SpeakerName::parse(name) {
                names.add(*speaker, name, 1.0);
            }
        }
        Some(names)
    }

    /// Returns the accepted file, unchanged.
    pub fn file_bytes(&self) -> Cow<'_, [u8]> {
        match &self.original {
            Some(original) => Cow::Owned(file_content::original_bytes(original)),
            None => Cow::Borrowed(self.text.as_bytes()),
        }
    }
}

/// Why an accepted text cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the accepted text {} cannot be read: {}; `scribed accept` the file again, or take it back with --undo", file.display(), describe_error(source, file))]
pub struct TextError {
    file: PathBuf,
    source: io::Error,
}

impl AcceptedTexts {
    /// Returns the texts in `dir`, which is created when the first is kept.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Keeps a text; durable when it returns. Only the owner may read the file. Blocks.
    pub fn save(&self, job: &JobKey, text: &KeptText) -> io::Result<()> {
        let file = self.path(job, &Hash::of(&text.file_bytes()));
        let write = || {
            let folder = durable_file::folder_of(&file)?;
            fs::create_dir_all(folder)?;
            durable_file::replace(&file, &serde_json::to_vec(text)?, Durability::Synced)?;
            durable_file::sync(&self.dir)?;
            durable_file::sync(durable_file::folder_of(&self.dir)?)
        };
        write().map_err(explain_state_at(&file))
    }

    /// Returns a text that a job has. Blocks.
    ///
    /// # Errors
    /// [`TextError`], also if the file has another text.
    pub fn open(&self, job: &JobKey, accepted: &AcceptedText) -> Result<KeptText, TextError> {
        let file = self.path(job, &accepted.hash);
        let read = || {
            let text: KeptText = serde_json::from_slice(&fs::read(&file)?)?;
            match Hash::of(&text.file_bytes()) == accepted.hash {
                true => Ok(text),
                false => Err(io::Error::new(io::ErrorKind::InvalidData, "it has another text than was accepted")),
            }
        };
        read().map_err(|source| TextError { file, source })
    }

    /// Removes a text for good; nothing if there is none. Blocks.
    pub fn remove(&self, job: &JobKey, hash: &Hash) -> io::Result<()> {
        let file = self.path(job, hash);
        match fs::remove_file(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(explain_state_at(&file)),
        }
    }

    /// Removes all texts of a job for good, also those that are not its text any more; returns whether there were any. Blocks.
    pub fn remove_all(&self, job: &JobKey) -> io::Result<bool> {
        let files = self.files_of(job)?;
        for file in &files {
            fs::remove_file(file).map_err(explain_state_at(file))?;
        }
        Ok(!files.is_empty())
    }

    /// Whether a text of a job is kept, also one that is not its text any more. Blocks.
    pub fn has_any(&self, job: &JobKey) -> io::Result<bool> {
        Ok(!self.files_of(job)?.is_empty())
    }

    fn files_of(&self, job: &JobKey) -> io::Result<Vec<PathBuf>> {
        let tag = job.tag().to_string();
        let folder = self.dir.join(&tag[..2]);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(explain_state_at(&folder))?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(explain_state_at(&folder))?;
            let name = entry.file_name();
            let rest = name.to_str().and_then(|name| name.strip_prefix(&tag));
            files.extend(rest.is_some_and(|rest| rest.starts_with('.')).then(|| entry.path()));
        }
        Ok(files)
    }

    /// Returns the file of a text: named after the job, which keeps its name when the queue is lost, and the content.
    pub fn path(&self, job: &JobKey, hash: &Hash) -> PathBuf {
        let tag = job.tag().to_string();
        self.dir.join(&tag[..2]).join(format!("{tag}.{}.json", &hash.to_string()[..16]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::Output;
    use crate::domain::names::{SourceName, TranscriptionId};
    use crate::domain::path::RelPath;

    #[test]
    fn a_text_comes_back_as_it_was_accepted_and_damage_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let texts = AcceptedTexts::new(dir.path().join("accepted"));
        let key = JobKey { source: SourceName::new("s"), path: RelPath::new("talk.wav") };
        let hash = Hash::of(b"one two\n");
        let accepted = AcceptedText {
            format: Format::Txt,
            hash,
            output: Some(Output { name: RelPath::new("talk.txt"), hash, at: None }),
            transcription: TranscriptionId::new("t"),
            at: Timestamp(5),
            by: "ada".to_owned(),
            written: None,
        };
        assert!(texts.open(&key, &accepted).is_err());
        let text = KeptText {
            format: Format::Txt,
            at: Timestamp(5),
            by: "ada".to_owned(),
            source: "s".to_owned(),
            path: "talk.wav".to_owned(),
            text: "one two\n".to_owned(),
            original: None,
            language: Some("en".to_owned()),
            names: None,
        };
        texts.save(&key, &text).unwrap();
        assert_eq!(texts.open(&key, &accepted).unwrap(), text);
        let file = texts.path(&key, &hash);
        fs::write(&file, fs::read_to_string(&file).unwrap().replace("one", "six")).unwrap();
        assert!(texts.open(&key, &accepted).unwrap_err().to_string().contains("another text"));
        texts.remove(&key, &hash).unwrap();
        texts.remove(&key, &hash).unwrap();
        assert!(!file.exists());
    }
}
