//! A row of a manifest: what a person ordered for one recording.

use super::checksum::Checksum;
use super::fault::{Fault, FaultKind};
use super::job::Stamp;
use super::names::Timestamp;
use super::path::RelPath;
use super::remote_url::RemoteUrl;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a row of a manifest says of one recording. Kept with the job: what was ordered counts until the row is
/// edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestRow {
    /// The manifest, below its source's folder.
    pub manifest: RelPath,
    /// Its number there as a spreadsheet shows it (the header is 1); of a list of objects from 1.
    pub number: u64,
    pub media: RowMedia,
    /// The template that it names, in place of its source's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Languages to be listened for, in place of the template's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<String>,
    /// Words to be known, besides the template's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vocabulary: Vec<String>,
    /// Where its outputs go; `None`: beside the recording, or beside the manifest for one that lies elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputPlace>,
    /// Higher ones come first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// What its file must be before anything is spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<Checksum>,
    /// Milliseconds that will be billed for it as far as the row says: duration × channels, never 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed: Option<u64>,
    /// The free columns, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, String>,
    /// Whether what it says was lost with a file of the store: nothing is done by it until its list is read again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

/// What a row names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowMedia {
    /// A file: below the source's folder, or absolute.
    File(RelPath),
    /// Audio that the service fetches.
    Url(RemoteUrl),
}

/// What was seen where the file of a row should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSight {
    File(Stamp),
    /// Nothing: it is not there yet.
    Nothing,
    /// Nobody here can tell: it lies elsewhere, or cannot be looked at.
    Unknown,
}

impl RowSight {
    /// The file's state, where it is there.
    pub fn stamp(self) -> Option<Stamp> {
        match self {
            Self::File(stamp) => Some(stamp),
            Self::Nothing | Self::Unknown => None,
        }
    }
}

/// Where the outputs of a row go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPlace {
    /// The folder: below the source's folder, or absolute; empty for the source's folder itself.
    pub folder: RelPath,
    /// What they are named after, in place of the recording's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stem: Option<String>,
}

impl ManifestRow {
    /// One that names a recording and says nothing else of it.
    pub fn minimal(manifest: RelPath, number: u64, media: RowMedia) -> Self {
        Self {
            manifest,
            number,
            media,
            template: None,
            languages: Vec::new(),
            vocabulary: Vec::new(),
            output: None,
            priority: 0,
            checksum: None,
            billed: None,
            columns: BTreeMap::new(),
            lost: false,
        }
    }

    /// A person's order by the command line: it stands in no list.
    pub fn from_command(url: RemoteUrl) -> Self {
        Self::minimal(RelPath::new(""), 0, RowMedia::Url(url))
    }

    /// Whether only the service reads its recording.
    pub fn is_remote(&self) -> bool {
        matches!(self.media, RowMedia::Url(_))
    }

    /// Whether it stands in no list.
    pub fn is_by_command(&self) -> bool {
        self.manifest.as_bytes().is_empty()
    }

    /// Where it stands, for people: `row 7 of lists/may.csv`.
    pub fn location(&self) -> String {
        match self.is_by_command() {
            true => "the command `scribed add`".to_owned(),
            false => format!("row {} of {}", self.number, self.manifest),
        }
    }

    /// What its job waits for where what the row says was lost.
    pub fn unknown(&self, now: Timestamp) -> Fault {
        let words = format!(
            "the content of {} was lost with a file of the state directory; scribed does nothing for it until it \
             reads that manifest again (when the manifest changes, or at a restart)",
            self.location()
        );
        Fault::new(FaultKind::Asks, words, now)
    }

    /// What its job waits for while nothing is there: a person ordered it, and its file may still come.
    pub fn awaiting_file_fault(&self, now: Timestamp) -> Fault {
        let words = format!("the file of {} does not exist yet; the job continues when it appears", self.location());
        Fault::new(FaultKind::Awaited, words, now)
    }

    /// The same for what was seen there; `None` where it need not be waited for.
    pub fn wait_fault(&self, seen: RowSight, now: Timestamp) -> Option<Fault> {
        (seen == RowSight::Nothing).then(|| self.awaiting_file_fault(now))
    }

    /// Whether it orders the same: where it stands in its manifest, how urgent it is and what is only said about
    /// the recording make no other transcription and no other file of it.
    pub fn requests_same_as(&self, other: &Self) -> bool {
        let ordered = |row: &Self| Self { number: 0, priority: 0, billed: None, checksum: None, ..row.clone() };
        ordered(self) == ordered(other)
    }
}

fn is_zero(priority: &i32) -> bool {
    *priority == 0
}
