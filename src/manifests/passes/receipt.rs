//! The receipt of a manifest: every row with its result. It appears whole or not at all.

use super::SourceManifests;
use crate::blocking::{joined, spawn};
use crate::domain::charge::{Charge, State};
use crate::domain::escape;
use crate::domain::job::Job;
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::domain::reason::reason;
use crate::domain::review::Review;
use crate::domain::stage::StageKind;
use crate::manifests::format::find::RECEIPT;
use crate::manifests::format::record::{Form, OURS, RawRow, RowError, join_errors, normalize_column};
use crate::manifests::format::text::Encoding;
use crate::output::publish::PlaceError;
use crate::output::table::{TableKeeper, TablePiece, write_table};
use crate::rooted_path::access_of;
use crate::source::recording_place::{folder_of_output, full_path, resolve_below};
use crate::wire::timestamps;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The result of a row.
pub enum RowResult<'i> {
    Wrong(&'i [RowError]),
    /// The row with this number requests the same.
    Repeats(u64),
    /// The row's job, and whether its file is awaited.
    Job(Box<Job>, bool),
    /// The row was ignored because a plan is being carried out that does not contain it.
    LeftOut,
}

/// The columns that are added after those of the manifest, each with the prefix [`OURS`].
const COLUMNS: [&str; 16] = [
    "row",
    "state",
    "reason",
    "job",
    "service",
    "transcription",
    "outputs",
    "language",
    "duration",
    "billed",
    "cost",
    "fault",
    "since",
    "missing",
    "parts",
    "warnings",
];

/// How many names are tried if other programs' files have the receipt's name.
const MAX_NAMES: usize = 20;

/// A receipt that is being written.
pub struct Draft {
    lists: Arc<SourceManifests>,
    manifest: RelPath,
    columns: Vec<Arc<str>>,
    rows: csv::Writer<Vec<u8>>,
    delimiter: u8,
    /// A note about the whole manifest, which is added to each row.
    note: Option<String>,
    sender: mpsc::Sender<TablePiece>,
    writing: JoinHandle<Result<Option<OsString>, PlaceError>>,
}

impl Draft {
    /// Starts a receipt and writes its header.
    pub fn begin(lists: &Arc<SourceManifests>, manifest: &RelPath, form: &Form) -> Self {
        let (sender, pieces) = mpsc::channel(4);
        let (theirs, of) = (Arc::clone(lists), manifest.clone());
        let writing = spawn(move || theirs.write(&of, pieces));
        let is_manifest_column = |name: &&Arc<str>| !normalize_column(name).starts_with(OURS);
        let columns: Vec<Arc<str>> = form.columns.iter().filter(is_manifest_column).cloned().collect();
        let start = if form.marked { "\u{feff}".as_bytes().to_vec() } else { Vec::new() };
        let rows = writer(form.delimiter, start);
        let mut draft = Self {
            lists: Arc::clone(lists),
            manifest: manifest.clone(),
            columns,
            rows,
            delimiter: form.delimiter,
            note: (form.encoding != Encoding::Utf8)
                .then(|| format!("scribed read the manifest as {}", form.encoding.name())),
            sender,
            writing,
        };
        let ours = COLUMNS.iter().map(|name| format!("{OURS}{name}").into_bytes());
        let note = draft.note.as_ref().map(|_| format!("{OURS}note").into_bytes());
        let theirs = draft.columns.iter().map(|name| name.as_bytes().to_vec());
        let header: Vec<Vec<u8>> = theirs.chain(ours).chain(note).collect();
        draft.write(header);
        draft
    }

    pub fn push(&mut self, record: &RawRow, answer: &RowResult<'_>) {
        let cell = |column: &Arc<str>| {
            let found = record.cells.iter().find(|(name, _)| name == column);
            found.map(|(_, cell)| cell.clone()).unwrap_or_default()
        };
        let theirs = self.columns.iter().map(cell);
        // The manifest's own cells are copied byte for byte: people can edit a receipt and use it as a manifest.
        let ours = self.ours(record.number, answer).map(|cell| escape::cell(&cell).into_owned().into_bytes());
        let note = self.note.as_ref().map(|note| note.clone().into_bytes());
        let row: Vec<Vec<u8>> = theirs.chain(ours).chain(note).collect();
        self.write(row);
    }

    /// Writes into memory, which cannot fail.
    fn write(&mut self, cells: Vec<Vec<u8>>) {
        self.rows.write_record(cells).ok();
    }

    /// Passes the buffered rows to the writer.
    pub async fn flush(&mut self) {
        let rows = std::mem::replace(&mut self.rows, writer(self.delimiter, Vec::new()));
        // If the writer has stopped, [`Draft::end`] returns its error.
        self.sender.send(TablePiece::Bytes(rows.into_inner().unwrap_or_default())).await.ok();
    }

    /// Publishes the receipt; returns a message if that is impossible.
    pub async fn end(mut self) -> Result<(), String> {
        self.flush().await;
        self.sender.send(TablePiece::End).await.ok();
        joined(self.writing).await.map(drop).map_err(|error| error.to_string())
    }

    pub async fn discard(self) {
        self.sender.send(TablePiece::GivenUp).await.ok();
        joined(self.writing).await.ok();
    }

    fn ours(&self, number: u64, answer: &RowResult<'_>) -> [String; COLUMNS.len()] {
        let mut ours: [String; COLUMNS.len()] = Default::default();
        let mut set = |name: &str, value: String| {
            if let Some(at) = COLUMNS.iter().position(|column| *column == name) {
                ours[at] = value;
            }
        };
        set("row", number.to_string());
        match answer {
            RowResult::Wrong(wrong) => {
                set("state", "wrong".to_owned());
                set("reason", join_errors(wrong));
                set("fault", "row".to_owned());
            }
            RowResult::Repeats(first) => {
                set("state", "repeated".to_owned());
                set("reason", format!("row {first} requests the same recording"));
            }
            RowResult::LeftOut => {
                set("state", "left out".to_owned());
                set(
                    "reason",
                    "`once --plan` ran with a plan that does not contain this row; the next pass takes it".to_owned(),
                );
            }
            RowResult::Job(job, _) => self.of_job(job, &mut set),
        }
        ours
    }

    fn of_job(&self, job: &Job, set: &mut impl FnMut(&str, String)) {
        set("state", job.stage.kind().name().to_owned());
        set("reason", reason(job));
        set("job", job.id.to_string());
        set(
            "service",
            job.stage.purchase_key().map(|purchase_key| purchase_key.service.to_string()).unwrap_or_default(),
        );
        set("transcription", job.stage.transcription().map(ToString::to_string).unwrap_or_default());
        // What an earlier request or content of the recording left is no output of the row as it is now.
        if job.stage.kind() == StageKind::Written {
            set("outputs", self.outputs(job));
        }
        set("language", job.language.clone().unwrap_or_default());
        let millis = job.stage.audio().map(|audio| audio.millis).filter(|millis| *millis > 0);
        set("duration", millis.map(seconds).unwrap_or_default());
        if let Some(billed) = billed(job) {
            set("billed", seconds(billed));
            let cost = self.lists.price.map(|price| format!("{:.4}", price * billed as f64 / 3.6e6));
            set("cost", cost.unwrap_or_default());
        }
        set("fault", job.fault.as_ref().map(|fault| fault.kind.name().to_owned()).unwrap_or_default());
        set("since", timestamps::format(job.since));
        set("missing", job.missing_names().unwrap_or_default());
        set("parts", job.outcomes().unwrap_or_default());
        set("warnings", job.review().map(Review::summary).unwrap_or_default());
    }

    /// Lists the outputs, relative to the manifest's folder if they are below it.
    fn outputs(&self, job: &Job) -> String {
        let source = self.lists.mount.source();
        let manifest = full_path(&source.folder, &self.manifest);
        let base = manifest.parent().unwrap_or(Path::new(""));
        let outputs = job.outputs.iter().map(|output| {
            let path = full_path(&folder_of_output(source, job, output).full(), &output.name);
            RelPath::new(path.strip_prefix(base).unwrap_or(&path).as_os_str().as_bytes()).lossy().into_owned()
        });
        outputs.collect::<Vec<_>>().join(" | ")
    }
}

impl SourceManifests {
    fn write(
        &self,
        manifest: &RelPath,
        mut pieces: mpsc::Receiver<TablePiece>,
    ) -> Result<Option<OsString>, PlaceError> {
        let path = resolve_below(&self.mount.source().folder, manifest);
        let (folder, name) = (path.parent(), path.file_name());
        let numbered = (2..=MAX_NAMES).map(|number| format!("{RECEIPT}{number}.csv"));
        let ends = std::iter::once(format!("{RECEIPT}csv")).chain(numbered);
        let names: Vec<OsString> =
            ends.map(|end| OsString::from_vec([name.as_bytes(), end.as_bytes()].concat())).collect();
        let is_ours = |hash: &Hash| self.own_receipts(manifest).contains(hash);
        let announce = |hash: Hash| -> io::Result<()> { self.announce(manifest, hash) };
        let is_right = || self.mount.check_writable_blocking().is_ok();
        let keeper = TableKeeper { is_right: &is_right, names: &names, is_ours: &is_ours, announce: &announce };
        // The receipt gets the permissions of the manifest.
        write_table(&folder, access_of(&path).ok(), &keeper, || pieces.blocking_recv().unwrap_or(TablePiece::GivenUp))
    }
}

/// Returns what was billed for all purchases of a job, also for earlier content and earlier requests of its row. `None`
/// if nothing was bought for it, or if it is not known what that cost.
fn billed(job: &Job) -> Option<u64> {
    let mut paid = job.charges.iter().filter(|charge| charge.state != State::Held).peekable();
    let is_bought = paid.peek().is_some() || job.stage.transcription().is_some();
    let billed = paid.map(Charge::amount).try_fold(0, |sum: u64, one| one.map(|one| sum + one));
    billed.filter(|_| is_bought)
}

fn writer(delimiter: u8, start: Vec<u8>) -> csv::Writer<Vec<u8>> {
    let mut builder = csv::WriterBuilder::new();
    builder.delimiter(delimiter).terminator(csv::Terminator::CRLF).flexible(true).from_writer(start)
}

fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}
