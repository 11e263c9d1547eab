//! A row of a manifest: what a person requests for one recording.

use super::checksum::Checksum;
use super::fault::{Fault, FaultKind};
use super::job::{Job, Stamp};
use super::names::Timestamp;
use super::path::RelPath;
use super::remote_url::RemoteUrl;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a row of a manifest says about one recording. It is stored with the job and applies until the row is edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestRow {
    /// The path of the manifest, below its source's folder.
    pub manifest: RelPath,
    /// The row's number as a spreadsheet shows it (the header is 1); for a list of objects the count starts at 1.
    pub number: u64,
    pub media: RowMedia,
    /// The template to use instead of the source's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Languages to recognise, instead of the template's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<String>,
    /// Vocabulary in addition to the template's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vocabulary: Vec<String>,
    /// Where the outputs go; `None`: beside the recording, or beside the manifest if the recording lies elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputPlace>,
    /// The priority: higher values come first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// The checksum that the file must have before anything is spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<Checksum>,
    /// Milliseconds to be billed according to the row: duration × channels, never 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed: Option<u64>,
    /// The free columns, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, String>,
    /// Whether the content of the row was lost with a file of the store. The job then waits until the manifest is read
    /// again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// Known of a row that was just read from its manifest.
    #[serde(skip)]
    pub used: UsedColumns,
}

/// Which free columns a request or an output's name is made of; the others are notes.
#[derive(Debug, Clone, Default)]
pub enum UsedColumns {
    /// Perhaps each of them.
    #[default]
    All,
    /// Those of these names.
    Only(Arc<BTreeSet<String>>),
}

/// It is no content of a row: rows that differ in it alone are equal.
impl PartialEq for UsedColumns {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for UsedColumns {}

impl UsedColumns {
    /// Collects the columns of these variables of templates: `row.title`, or `row` for all.
    pub fn of<'n>(variables: impl IntoIterator<Item = &'n str>) -> Self {
        let of_rows = variables.into_iter().filter_map(|name| match name.split_once('.') {
            Some(("row", column)) => Some(column.split('.').next()),
            None if name == "row" => Some(None),
            _ => None,
        });
        let named: Option<BTreeSet<String>> = of_rows.map(|column| column.map(str::to_owned)).collect();
        named.map_or(Self::All, |named| Self::Only(Arc::new(named)))
    }

    fn contain(&self, column: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(named) => named.contains(column),
        }
    }
}

/// The recording that a row names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowMedia {
    /// A file: a path below the source's folder, or an absolute one.
    File(RelPath),
    /// Audio that the service fetches.
    Url(RemoteUrl),
}

/// What was found where the file of a row should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSight {
    File(Stamp),
    /// The file does not exist yet.
    Nothing,
    /// Not known: the recording is remote, or the file cannot be examined.
    Unknown,
}

impl RowSight {
    /// Returns the file's state, if the file exists.
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
    /// The folder: a path below the source's folder or an absolute one; empty for the source's folder itself.
    pub folder: RelPath,
    /// The stem of the outputs' names, instead of the recording's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stem: Option<String>,
}

impl ManifestRow {
    /// Makes a row that names a recording and nothing else.
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
            used: UsedColumns::All,
        }
    }

    /// Makes the row for a person's `scribed add`, which is in no manifest.
    pub fn from_command(url: RemoteUrl) -> Self {
        Self::minimal(RelPath::new(""), 0, RowMedia::Url(url))
    }

    /// Whether only the service reads the recording.
    pub fn is_remote(&self) -> bool {
        matches!(self.media, RowMedia::Url(_))
    }

    /// Whether the row is from a command and in no manifest.
    pub fn is_by_command(&self) -> bool {
        self.manifest.as_bytes().is_empty()
    }

    /// Returns where the row is, for people: `row 7 of lists/may.csv`.
    pub fn location(&self) -> String {
        match self.is_by_command() {
            true => "the command `scribed add`".to_owned(),
            false => format!("row {} of {}", self.number, self.manifest),
        }
    }

    /// Returns the fault of a job whose row has lost its content.
    pub fn unknown(&self, now: Timestamp) -> Fault {
        let words = format!(
            "the content of {} was lost with a file of the state directory; scribed does nothing for it until it \
             reads that manifest again (when the manifest changes, or at a restart)",
            self.location()
        );
        Fault::new(FaultKind::Asks, words, now)
    }

    /// Returns the fault of a job whose file does not exist yet: a person requested it, and it may still come.
    pub fn awaiting_file_fault(&self, now: Timestamp) -> Fault {
        let words = format!("the file of {} does not exist yet; the job continues when it appears", self.location());
        Fault::new(FaultKind::Awaited, words, now)
    }

    /// Returns the fault for what was found; `None` if the job need not wait.
    pub fn wait_fault(&self, seen: RowSight, now: Timestamp) -> Option<Fault> {
        (seen == RowSight::Nothing).then(|| self.awaiting_file_fault(now))
    }

    /// Returns what of the row makes the place of its outputs.
    pub fn place(&self) -> Self {
        Self { output: self.output.clone(), ..Self::minimal(self.manifest.clone(), self.number, self.media.clone()) }
    }

    /// Whether both rows request the same. The row's number, its priority, its checksum, its billed amount and its notes
    /// do not change the transcription or its outputs, so they do not count.
    pub fn requests_same_as(&self, other: &Self) -> bool {
        let counts = |column: &str| self.used.contain(column) && other.used.contain(column);
        let relevant = |row: &Self| {
            let mut row = Self { number: 0, priority: 0, billed: None, checksum: None, ..row.clone() };
            row.columns.retain(|column, _| counts(column));
            row
        };
        relevant(self) == relevant(other)
    }
}

/// Says that a failed job of a manifest's row starts again when its row is corrected, or its recording replaced; empty
/// for other jobs, and where the row is not at fault.
pub fn unless_corrected(job: &Job) -> String {
    let row = job.row.as_deref().filter(|row| !row.is_by_command() && may_be_at_fault(row, job.fault.as_ref()));
    let words = |row: &ManifestRow| {
        let recording = if row.is_remote() { "" } else { "replace the recording or " };
        format!(", unless you {recording}correct {} (then the job starts again without a command)", row.location())
    };
    row.map(words).unwrap_or_default()
}

/// Whether a correction of the row may end the fault. A template that fails is in the configuration; its fault names
/// the row or the columns if they have a part in it.
fn may_be_at_fault(row: &ManifestRow, fault: Option<&Fault>) -> bool {
    fault.is_none_or(|fault| {
        let is_named = fault.words.contains("`row.") || fault.words.contains(&row.location());
        fault.kind != FaultKind::Template || is_named
    })
}

fn is_zero(priority: &i32) -> bool {
    *priority == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::JobKey;
    use crate::domain::names::{JobId, SourceName};

    #[test]
    fn a_row_is_to_be_corrected_only_where_it_may_be_at_fault() {
        let key = JobKey { source: SourceName::new("lists"), path: RelPath::new("talk.wav") };
        let row = row(&[("mark", "")], &[]);
        let job =
            Job { row: Some(Box::new(row)), ..Job::found(JobId(1), key, Stamp::default(), Timestamp(0), Timestamp(0)) };
        let advice = |kind: FaultKind, words: &str| {
            unless_corrected(&Job { fault: Some(Fault::new(kind, words, Timestamp(0))), ..job.clone() })
        };
        assert_eq!(advice(FaultKind::Template, "undefined value: `lang` is undefined"), "");
        assert!(advice(FaultKind::Template, "undefined value: `row.mark` is undefined").contains("row 2 of may.csv"));
        assert!(!advice(FaultKind::Template, "row 2 of may.csv: too many words").is_empty());
        assert!(!advice(FaultKind::Altered, "another checksum").is_empty());
    }

    fn row(cells: &[(&str, &str)], variables: &[&str]) -> ManifestRow {
        let columns = cells.iter().map(|(column, text)| ((*column).to_owned(), (*text).to_owned())).collect();
        let used = UsedColumns::of(variables.iter().copied());
        let media = RowMedia::File(RelPath::new("talk.wav"));
        ManifestRow { columns, used, ..ManifestRow::minimal(RelPath::new("may.csv"), 2, media) }
    }

    #[test]
    fn a_note_is_no_part_of_the_request_and_a_column_that_a_template_uses_is() {
        let variables = ["stem", "row.title", "rowing"];
        let stored = row(&[("title", "A"), ("note", "x")], &["row"]);
        let same = |cells: &[(&str, &str)]| stored.requests_same_as(&row(cells, &variables));
        assert!(same(&[("title", "A"), ("note", "y")]));
        assert!(same(&[("title", "A")]) && same(&[("title", "A"), ("note", "x"), ("shelf", "7")]));
        assert!(!same(&[("title", "B"), ("note", "x")]) && !same(&[("note", "x")]));
        let of_all = row(&[("title", "A"), ("note", "y")], &["row"]);
        assert!(!stored.requests_same_as(&of_all), "the template prints the whole row");
        assert!(stored.requests_same_as(&row(&[("title", "B")], &[])), "no template uses any");
    }
}
