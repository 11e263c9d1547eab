//! What a plan has to say of manifests: what their rows come to, and what is wrong with which.

use crate::cli::runtime::entry::Context;
use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::manifests::format::text::Encoding;
use serde_json::{Value, json};
use std::io;

/// So many rows that are wrong are kept to be told at the end; `--list` has them all.
const KEPT: usize = 1_000;

/// So many of them are shown to people.
const SHOWN: usize = 20;

/// What the rows of one manifest come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestTotals {
    pub source: SourceName,
    /// It, below its source's folder.
    pub manifest: RelPath,
    /// Why nothing, or not all, of it is believed.
    pub problem: Option<String>,
    /// How it is written.
    pub encoding: Encoding,
    pub rows: u64,
    /// Those that order nothing, for what is wrong with them.
    pub wrong: u64,
    /// Those that order something that cannot be made.
    pub failing: u64,
    /// Those that name what jobs.toml does not allow.
    pub held: u64,
    /// Those that order what another row orders already.
    pub repeated: u64,
    /// Those whose files are not there yet.
    pub awaited: u64,
    /// Those that are done.
    pub done: u64,
    /// Those of which something would be sent.
    pub sent: u64,
    /// Those that share what is, or would be, bought for others.
    pub copies: u64,
}

impl ManifestTotals {
    /// Of which nothing is read yet.
    pub fn new(source: SourceName, manifest: RelPath) -> Self {
        let (rows, wrong, failing, held, repeated, awaited, done, sent, copies) = Default::default();
        let encoding = Encoding::Utf8;
        Self {
            source,
            manifest,
            problem: None,
            encoding,
            rows,
            wrong,
            failing,
            held,
            repeated,
            awaited,
            done,
            sent,
            copies,
        }
    }

    /// Those that are skipped, held, or at the service.
    fn other(&self) -> u64 {
        let fixed = self.wrong + self.failing + self.held;
        let counted = [fixed, self.repeated, self.awaited, self.done, self.sent, self.copies];
        self.rows.saturating_sub(counted.iter().sum())
    }

    fn object(&self) -> Value {
        json!({
            "source": self.source, "manifest": self.manifest.lossy(), "problem": self.problem, "rows": self.rows,
            "encoding": self.encoding.name(),
            "sent": self.sent, "copies": self.copies, "other": self.other(), "done": self.done, "awaited": self.awaited, "repeated": self.repeated,
            "wrong": self.wrong, "failing": self.failing, "not_allowed": self.held,
        })
    }

    fn words(&self) -> String {
        let Self { source, manifest, .. } = self;
        if let Some(problem) = &self.problem {
            return format!("{manifest} ({source}): scribed cannot use it: {problem}");
        }
        let parts = [
            (self.sent, "would be sent"),
            (self.copies, "are duplicates"),
            (self.done, "done before"),
            (self.other(), "skipped, held or at the service"),
            (self.awaited, "wait for files that do not exist yet"),
            (self.repeated, "repeat another row"),
            (self.wrong, "are wrong and order nothing"),
            (self.failing, "would fail"),
            (self.held, "wait for a setting in jobs.toml"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let all = std::iter::once(format!("{} rows", self.rows)).chain(parts);
        let note = if self.encoding == Encoding::Utf8 { "" } else { "; read as windows-1252" };
        format!("{manifest} ({source}): {}{note}", all.collect::<Vec<_>>().join(", "))
    }
}

/// A row that somebody has to mend.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mend {
    source: SourceName,
    manifest: RelPath,
    row: u64,
    words: String,
}

/// What there is to say of all manifests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PlannedManifests {
    all: Vec<ManifestTotals>,
    fixes: Vec<Mend>,
    fixed: u64,
    /// Rows of what would be sent whose files have a checksum that was not looked at.
    pub unchecked: u64,
}

impl PlannedManifests {
    /// One more row that somebody has to mend.
    pub fn fix(&mut self, of: &ManifestTotals, row: u64, words: &str) {
        self.fixed += 1;
        if self.fixes.len() < KEPT {
            let (source, manifest) = (of.source.clone(), of.manifest.clone());
            self.fixes.push(Mend { source, manifest, row, words: words.to_owned() });
        }
    }

    /// All of a manifest was looked at.
    pub fn push(&mut self, listed: ManifestTotals) {
        self.all.push(listed);
    }

    /// Whether nobody has to mend anything.
    pub fn needs_no_fix(&self) -> bool {
        self.fixed == 0 && self.all.iter().all(|listed| listed.problem.is_none())
    }

    /// One after the other, for machines.
    pub fn to_json(&self) -> Value {
        self.all.iter().map(ManifestTotals::object).collect()
    }

    /// What is to be mended, as far as it is kept, for machines.
    pub fn fixes(&self) -> Value {
        let fix = |fix: &Mend| {
            let manifest = fix.manifest.lossy();
            json!({ "source": fix.source, "manifest": manifest, "row": fix.row, "why": fix.words })
        };
        self.fixes.iter().map(fix).collect()
    }

    /// Says it.
    ///
    /// # Errors
    /// Of stdout.
    pub fn print(&self, context: &Context) -> io::Result<()> {
        if !self.all.is_empty() {
            context.print_line("manifests:")?;
        }
        for listed in &self.all {
            context.print_line(&format!("  {}", listed.words()))?;
        }
        if self.fixed > 0 {
            context.print_line("rows to fix:")?;
        }
        for Mend { manifest, words, .. } in self.fixes.iter().take(SHOWN) {
            context.print_line(&format!("  {manifest}, {words}"))?;
        }
        match self.fixed.saturating_sub(SHOWN as u64) {
            0 => Ok(()),
            more => context.print_line(&format!("  and {more} more: `scribed plan --list` shows them all")),
        }
    }
}
