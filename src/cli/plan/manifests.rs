//! Counts the rows of manifests for a plan, and collects the rows that need a correction.

use crate::cli::runtime::entry::Context;
use crate::domain::count::{agree, count};
use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::manifests::format::text::Encoding;
use serde_json::{Value, json};
use std::io;

/// The most rows to fix that a plan keeps. `--list` shows all of them.
const MAX_KEPT: usize = 1_000;

/// The most rows to fix that the text output shows.
const MAX_SHOWN: usize = 20;

/// The counts of the rows of one manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestTotals {
    pub source: SourceName,
    /// The path of the manifest, relative to its source's folder.
    pub manifest: RelPath,
    /// Why the manifest, or a part of it, cannot be used.
    pub problem: Option<String>,
    pub encoding: Encoding,
    pub rows: u64,
    /// Invalid rows, which request nothing.
    pub wrong: u64,
    /// Rows whose jobs would fail.
    pub failing: u64,
    /// Rows that name something that jobs.toml does not allow.
    pub held: u64,
    /// Rows that order the same recording as an earlier row.
    pub repeated: u64,
    /// Rows whose files do not exist yet.
    pub awaited: u64,
    /// Rows whose outputs are written.
    pub done: u64,
    /// Rows whose recordings would be sent.
    pub sent: u64,
    /// Rows whose recordings are duplicates: they share a purchase that was made, or would be made, for another one.
    pub copies: u64,
    /// Rows whose recordings are longer than a budget ever allows.
    pub unfit: u64,
}

impl ManifestTotals {
    /// Returns the totals of a manifest of which nothing is read yet.
    pub fn new(source: SourceName, manifest: RelPath) -> Self {
        let (rows, wrong, failing, held, repeated, awaited, done, sent, copies, unfit) = Default::default();
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
            unfit,
        }
    }

    /// Returns the number of all other rows: those that are skipped, held, or at the service.
    fn other(&self) -> u64 {
        let to_fix = self.wrong + self.failing + self.held;
        let counted = [to_fix, self.repeated, self.awaited, self.done, self.sent, self.copies, self.unfit];
        self.rows.saturating_sub(counted.iter().sum())
    }

    fn object(&self) -> Value {
        json!({
            "source": self.source, "manifest": self.manifest.lossy(), "problem": self.problem, "rows": self.rows,
            "encoding": self.encoding.name(),
            "sent": self.sent, "copies": self.copies, "other": self.other(), "done": self.done, "awaited": self.awaited, "repeated": self.repeated,
            "wrong": self.wrong, "failing": self.failing, "not_allowed": self.held, "longer_than_a_budget": self.unfit,
        })
    }

    fn words(&self) -> String {
        let Self { source, manifest, .. } = self;
        if let Some(problem) = &self.problem {
            return format!("{manifest} ({source}): scribed cannot use it: {problem}");
        }
        let parts = [
            (self.sent, "would be sent"),
            (self.copies, agree(self.copies, "is a duplicate", "are duplicates")),
            (self.done, "done before"),
            (self.other(), "skipped, held or at the service"),
            (
                self.awaited,
                agree(self.awaited, "waits for a file that does not exist yet", "wait for files that do not exist yet"),
            ),
            (self.repeated, agree(self.repeated, "repeats another row", "repeat another row")),
            (self.wrong, agree(self.wrong, "is wrong and requests nothing", "are wrong and request nothing")),
            (self.failing, "would fail"),
            (
                self.unfit,
                agree(self.unfit, "is longer than a budget ever allows", "are longer than a budget ever allows"),
            ),
            (self.held, agree(self.held, "waits for a setting in jobs.toml", "wait for a setting in jobs.toml")),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let all = std::iter::once(count(self.rows, "row")).chain(parts);
        let note = if self.encoding == Encoding::Utf8 { "" } else { "; read as windows-1252" };
        format!("{manifest} ({source}): {}{note}", all.collect::<Vec<_>>().join(", "))
    }
}

/// A row that a person has to fix.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RowToFix {
    source: SourceName,
    manifest: RelPath,
    row: u64,
    words: String,
}

/// The totals of all manifests, and the rows to fix.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PlannedManifests {
    manifests: Vec<ManifestTotals>,
    /// The rows to fix, at most [`MAX_KEPT`] of them.
    fixes: Vec<RowToFix>,
    /// The number of all rows to fix.
    fix_count: u64,
    /// Rows that would be sent and have a checksum, which the plan does not verify.
    pub unchecked: u64,
}

impl PlannedManifests {
    /// Adds a row that a person has to fix.
    pub fn fix(&mut self, of: &ManifestTotals, row: u64, words: &str) {
        self.fix_count += 1;
        if self.fixes.len() < MAX_KEPT {
            let (source, manifest) = (of.source.clone(), of.manifest.clone());
            self.fixes.push(RowToFix { source, manifest, row, words: words.to_owned() });
        }
    }

    /// Adds the totals of a manifest that was read to its end.
    pub fn push(&mut self, listed: ManifestTotals) {
        self.manifests.push(listed);
    }

    /// Whether this manifest could not be used.
    pub fn has_problem(&self, source: &SourceName, manifest: &RelPath) -> bool {
        let is_it = |listed: &&ManifestTotals| listed.source == *source && listed.manifest == *manifest;
        self.manifests.iter().find(is_it).is_some_and(|listed| listed.problem.is_some())
    }

    /// Whether no row and no manifest has to be fixed.
    pub fn needs_no_fix(&self) -> bool {
        self.fix_count == 0 && self.manifests.iter().all(|listed| listed.problem.is_none())
    }

    /// Returns the totals of all manifests as JSON.
    pub fn to_json(&self) -> Value {
        self.manifests.iter().map(ManifestTotals::object).collect()
    }

    /// Returns the rows to fix as JSON, as many as are kept.
    pub fn fixes(&self) -> Value {
        let fix = |fix: &RowToFix| {
            let manifest = fix.manifest.lossy();
            json!({ "source": fix.source, "manifest": manifest, "row": fix.row, "why": fix.words })
        };
        self.fixes.iter().map(fix).collect()
    }

    /// Prints the totals, and the first rows to fix.
    pub fn print(&self, context: &Context) -> io::Result<()> {
        if !self.manifests.is_empty() {
            context.print_line("manifests:")?;
        }
        for listed in &self.manifests {
            context.print_line(&format!("  {}", listed.words()))?;
        }
        if self.fix_count > 0 {
            context.print_line("rows to fix:")?;
        }
        for RowToFix { manifest, words, .. } in self.fixes.iter().take(MAX_SHOWN) {
            context.print_line(&format!("  {manifest}, {words}"))?;
        }
        match self.fix_count.saturating_sub(MAX_SHOWN as u64) {
            0 => Ok(()),
            more => context.print_line(&format!("  and {more} more: `scribed plan --list` shows them all")),
        }
    }
}
