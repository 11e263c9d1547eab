//! The totals of a plan, as text and as JSON.

use crate::cli::commands::once::length;
use crate::cli::commands::render::Renderable;
use crate::cli::plan::duplicates::Candidate;
use crate::cli::plan::manifests::PlannedManifests;
use crate::cli::plan::totals::{PlanPart, PlannedSplit, PlannedUpload, seconds};
use crate::cli::runtime::entry::Context;
use crate::control::explain::forecast::Forecast;
use crate::control::plan::eta::Reckoned;
use crate::control::status_lines::budget_line;
use crate::control::status_object;
use crate::control::transport::protocol::BudgetUse;
use crate::domain::count::{agree, count};
use crate::domain::eta::FileBatch;
use crate::domain::missing_enrichment::{MissingPart, join_names};
use crate::domain::names::SourceName;
use crate::domain::stage::AudioAmount;
use crate::domain::zone::Zone;
use crate::source::metadata::sample_hash::{PIECES, WHOLE};
use crate::wire::timestamps;
use indicatif::HumanBytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

const HELD: &str = "held until they have not changed for `hold` (`scribed retry` with the path sends one now)";

/// The rows to fix name each of these rows.
const NOT_ALLOWED: &str = "jobs.toml does not allow what its row names";

/// Numbers of files, by source, template, and a text about what their requests contain.
type TemplateCounts = BTreeMap<(SourceName, String, String), u64>;

/// The counts over all sources.
#[derive(Debug, Default, PartialEq)]
pub struct PlanReport {
    /// Files that would be sent: they are new.
    pub new: u64,
    /// Files that changed after their job ended: they would be sent if the content is new.
    pub changed: u64,
    /// Files that would be sent: their jobs are in the queue.
    pub on_the_way: u64,
    /// Files that would be sent: their rows were edited after their job ended.
    pub reordered: u64,
    /// Files that are at the service: their results would be awaited and written.
    pub at_the_service: u64,
    /// Files whose outputs are written.
    pub done: u64,
    /// Of these, jobs whose outputs `scribed render` would render again without cost.
    pub renderable: Renderable,
    /// The recordings that would be sent, by source and template.
    pub parts: BTreeMap<PlanPart, PlannedUpload>,
    /// Whether ffprobe is not installed, so that the length of some files cannot be measured.
    pub no_tool: bool,
    /// Files that look unfinished and are not sent until they have not changed for `hold`.
    pub held: u64,
    /// Rows of manifests whose files do not exist yet.
    pub awaited: u64,
    /// The totals of the manifests, and their rows to fix.
    pub lists: PlannedManifests,
    /// Whether a budget is configured.
    pub is_budgeted: bool,
    /// The use of each budget now.
    pub budget: Vec<BudgetUse>,
    /// The time zone of the times in the text.
    pub zone: Zone,
    /// Whether a person has paused the queue: nothing is sent before `resume`.
    pub paused: bool,
    /// Files for which nothing would be done, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Files that would fail or wait until their settings are fixed, by problem.
    pub needs_fix: BTreeMap<String, u64>,
    /// Files whose results would lack a requested part.
    pub incomplete: TemplateCounts,
    /// Files whose requests have parameters with no or little effect.
    pub without_effect: TemplateCounts,
    /// Files that the source ignores, by rule.
    pub passed_over: BTreeMap<String, u64>,
    /// Files of scribed itself: outputs, receipts, the marker, its state. The text does not show them.
    pub own: u64,
    /// Sources whose folders are not available, with the reason.
    pub away: Vec<String>,
    /// Files and folders that could not be read, with the reason.
    pub troubles: Vec<String>,
    /// When everything would be done.
    pub estimate: Option<Reckoned>,
    /// The file that the plan is saved in.
    pub saved: Option<PathBuf>,
}

impl PlanReport {
    /// Counts a file by its forecast.
    pub fn add(&mut self, forecast: &Forecast) {
        let counted = match forecast {
            Forecast::New => &mut self.new,
            Forecast::Changed => &mut self.changed,
            Forecast::OnTheWay => &mut self.on_the_way,
            Forecast::AtTheService => &mut self.at_the_service,
            Forecast::Done => &mut self.done,
            Forecast::Held => &mut self.held,
            Forecast::Reordered => &mut self.reordered,
            Forecast::Awaited => &mut self.awaited,
            Forecast::NotAllowed => self.skipped.entry(NOT_ALLOWED.to_owned()).or_default(),
            Forecast::Skipped(why) => self.skipped.entry(why.clone()).or_default(),
        };
        *counted += 1;
    }

    /// Counts a file that would be sent, or is a duplicate of one. `price` is for an hour.
    pub fn send(
        &mut self,
        part: PlanPart,
        file: &Candidate,
        (audio, split): (Option<AudioAmount>, PlannedSplit),
        is_duplicate: bool,
        price: Option<f64>,
    ) {
        self.add(&file.forecast);
        self.lists.unchecked += u64::from(file.row.as_ref().is_some_and(|row| row.checksum.is_some()));
        let millis = audio.map_or(0, |audio| audio.millis);
        let billed = audio.and_then(|audio| split.sent(audio).reservation_millis()).unwrap_or(0);
        let upload = match is_duplicate {
            true => PlannedUpload { duplicates: 1, duplicate_audio: millis, ..PlannedUpload::default() },
            false => PlannedUpload {
                files: 1,
                bytes: file.stamp.size,
                audio: millis,
                longest: millis,
                billed,
                price: price.map(|price| billed as f64 / 3.6e6 * price),
                split: u64::from(split.parts > 1),
                split_parts: if split.parts > 1 { split.parts } else { 0 },
                split_overlap: split.overlap_millis(),
                too_large: u64::from(split.is_too_large),
                unknown_length: u64::from(audio.is_none()),
                unknown_remote: u64::from(audio.is_none() && file.is_remote()),
                ..PlannedUpload::default()
            },
        };
        self.parts.entry(part).or_default().add(&upload);
    }

    pub fn sent(&self) -> PlannedUpload {
        self.parts.values().fold(PlannedUpload::default(), |mut all, part| {
            all.add(part);
            all
        })
    }

    /// Counts a file whose result would lack the parts `missing`; none if `missing` is empty.
    pub fn incomplete(&mut self, source: &SourceName, template: &str, missing: &[MissingPart]) {
        if !missing.is_empty() {
            let key = (source.clone(), template.to_owned(), join_names(missing));
            *self.incomplete.entry(key).or_default() += 1;
        }
    }

    /// Counts a file whose request has parameters with no or little effect: `words` names them.
    pub fn without_effect(&mut self, source: &SourceName, template: &str, words: Option<&str>) {
        if let Some(words) = words {
            let key = (source.clone(), template.to_owned(), words.to_owned());
            *self.without_effect.entry(key).or_default() += 1;
        }
    }

    /// Returns the seconds of audio in the files that would be sent.
    pub fn audio_seconds(&self) -> f64 {
        seconds(self.parts.values().map(|part| part.audio).sum())
    }

    /// Returns what would be sent, to estimate when it is done. Files of unknown length count with the average length
    /// of the others.
    pub fn batches(&self) -> Vec<FileBatch> {
        let all = self.sent();
        let batch = |(part, sent): (&PlanPart, &PlannedUpload)| {
            let (audio, billed) = all.guessed_of(sent.unknown_length).unwrap_or_default();
            FileBatch {
                source: part.source.clone(),
                service: part.service.clone(),
                files: sent.files,
                audio: Duration::from_millis(sent.audio.saturating_add(audio)),
                longest: Duration::from_millis(sent.longest),
                billed: sent.billed.saturating_add(billed),
            }
        };
        self.parts.iter().map(batch).collect()
    }

    /// Counts a file that the source ignores.
    pub fn count_filtered(&mut self, rule: String) {
        *self.passed_over.entry(rule).or_default() += 1;
    }

    /// Whether everything could be read, and nothing has to be fixed or would be incomplete.
    pub fn is_whole(&self) -> bool {
        self.away.is_empty()
            && self.troubles.is_empty()
            && self.needs_fix.is_empty()
            && self.incomplete.is_empty()
            && self.lists.needs_no_fix()
    }

    /// Returns the plan as JSON.
    pub fn to_json(&self) -> Value {
        let mut object = self.sent().object();
        let fields = json!({
            "new": self.new, "changed": self.changed, "on_the_way": self.on_the_way,
            "reordered": self.reordered, "at_the_service": self.at_the_service, "done": self.done, "held": self.held,
            "awaited": self.awaited, "paused": self.paused, "manifests": self.lists.to_json(),
            "to_mend": self.lists.fixes(), "mended_first": self.needs_fix,
            "incomplete": self.incomplete.values().sum::<u64>(),
            "missing": template_counts_json(&self.incomplete, "missing"),
            "without_effect": template_counts_json(&self.without_effect, "parameters"),
            "skipped": self.skipped, "passed_over": self.passed_over, "own": self.own, "away": self.away, "troubles": self.troubles,
            "sources": self.parts.iter().map(|(part, sent)| part.object(sent)).collect::<Vec<_>>(),
            "finish": self.finish_json(),
            "budget": self.budget.iter().map(status_object::budget).collect::<Vec<_>>(),
            "renderable": self.renderable.total(),
            "assumed": self.assumptions(), "saved": self.saved.as_ref().map(|file| file.to_string_lossy()),
        });
        if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
            object.extend(fields);
        }
        object
    }

    fn print_templates(&self, context: &Context) -> io::Result<()> {
        let lacking = "would be written without a requested part, which the embedded service does not support:";
        let without_effect = "warning: requested, but with no or little effect in the embedded service:";
        for (title, all) in [(lacking, &self.incomplete), (without_effect, &self.without_effect)] {
            if !all.is_empty() {
                context.print_line(title)?;
            }
            for ((source, template, what), count) in all {
                let under = if template.is_empty() { String::new() } else { format!(" ({template})") };
                context.print_line(&format!("  {count:>8}  {source}{under}: {what}"))?;
            }
        }
        Ok(())
    }

    fn finish_json(&self) -> Value {
        let Some(reckoned) = &self.estimate else { return Value::Null };
        json!({ "at": reckoned.finish.at.map(timestamps::format), "held_up_by": reckoned.constraint(), "passes": reckoned.passes })
    }

    /// Returns what the plan assumes because it did not check it or cannot know it, in words.
    fn assumptions(&self) -> Vec<String> {
        let sent = self.sent();
        let mut assumed = Vec::new();
        if sent.duplicates > 0 {
            assumed.push(format!(
                "files count as duplicates if their sizes and their bytes at {PIECES} positions are equal (up to \
                 {}, all bytes); scribed compares the whole content before it buys anything",
                HumanBytes(WHOLE)
            ));
        }
        if sent.unknown_length > 0 {
            assumed.push(unknown_length_message(&sent));
        }
        if self.is_budgeted && sent.unknown_remote > 0 {
            assumed.push(format!(
                "with a budget, recordings of unknown length that only the service reads wait ({} here): fill in \
                 `duration` in their rows",
                sent.unknown_remote
            ));
        }
        if self.lists.unchecked > 0 {
            let files = count(self.lists.unchecked, "file");
            assumed.push(format!(
                "the plan did not verify the checksums of {files} in manifests; scribed verifies them before it buys \
                 anything"
            ));
        }
        if self.changed > 0 {
            assumed.push(
                "files that changed after their job ended have new content; scribed sends such a file when it has not \
                 changed for `hold` since a scan saw the change, and the end time does not include that wait \
                 (`scribed retry` with the path sends one now)"
                    .to_owned(),
            );
        }
        let reckoned = self.estimate.iter().filter(|_| sent.files > 0);
        assumed.extend(reckoned.flat_map(|reckoned| reckoned.assumed.clone()));
        assumed
    }

    /// Prints the plan.
    pub fn print(&self, context: &Context) -> io::Result<()> {
        context.print_json(&self.to_json())?;
        self.print_sent(context)?;
        self.print_finish(context)?;
        self.budget.iter().try_for_each(|used| context.print_line(&budget_line(self.zone, used)))?;
        let rest = [
            (self.at_the_service, "at the service: scribed waits for the results and writes them"),
            (self.done, "done before"),
            (self.held, HELD),
            (
                self.awaited,
                agree(
                    self.awaited,
                    "row of a manifest waits for a file that does not exist yet",
                    "rows of manifests wait for files that do not exist yet",
                ),
            ),
        ];
        for (count, what) in rest.into_iter().filter(|(count, _)| *count > 0) {
            context.print_line(&format!("{count} {what}"))?;
        }
        for reason in self.renderable.reasons() {
            context.print_line(&format!("free, by `scribed render` and not by this plan: {reason}"))?;
        }
        print_groups(context, "to fix before they can be sent:", &self.needs_fix)?;
        self.print_templates(context)?;
        print_groups(context, "skipped:", &self.skipped)?;
        print_groups(context, "ignored:", &self.passed_over)?;
        self.lists.print(context)?;
        for words in &self.away {
            context.print_line(&format!("not counted: {words}"))?;
        }
        for words in &self.troubles {
            context.print_line(&format!("could not be read: {words}"))?;
        }
        for words in self.assumptions() {
            context.print_line(&format!("assumed: {words}"))?;
        }
        self.saved.iter().try_for_each(|file| {
            let file = file.display();
            context.print_line(&format!(
                "the plan is saved in {file}: `scribed once --plan {file}` carries out exactly this plan"
            ))
        })
    }

    fn print_sent(&self, context: &Context) -> io::Result<()> {
        let sent = self.sent();
        let (files, bytes, audio) = (count(sent.files, "file"), HumanBytes(sent.bytes), length(sent.audio));
        context.print_line(&format!("would be sent: {files}, {bytes}, {audio} of audio"))?;
        if let Some(price) = sent.price {
            let and_more = if sent.unknown_length > 0 { ", plus files of unknown length" } else { "" };
            context
                .print_line(&format!("  price about {price:.2} by `price_per_hour`, each channel counted{and_more}"))?;
        }
        let parts = [
            (self.new, "new"),
            (self.changed, "changed after the end of the job: sent if the content is new"),
            (self.reordered, "requested again by an edited row"),
            (self.on_the_way, "in the queue, not sent yet"),
            (
                sent.duplicates,
                agree(
                    sent.duplicates,
                    "of these is a duplicate: not sent, it gets the result of the recording that is sent",
                    "of these are duplicates: not sent, they get the result of the recording that is sent",
                ),
            ),
            (sent.unknown_length - sent.unknown_remote, self.unknown_length_title()),
            (sent.unknown_remote, "of unknown length, read only by the service: fill in `duration` in the row"),
        ];
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            context.print_line(&format!("  {count:>8}  {what}"))?;
        }
        self.print_split(context, &sent)?;
        if self.parts.len() > 1 { self.print_table(context) } else { Ok(()) }
    }

    /// Prints what is longer or larger than its service accepts.
    fn print_split(&self, context: &Context, sent: &PlannedUpload) -> io::Result<()> {
        if sent.split > 0 {
            let (parts, overlap) = (sent.split_parts, seconds(sent.split_overlap));
            let are = agree(sent.split, "is longer than its service accepts", "are longer than their service accepts");
            context.print_line(&format!(
                "  {:>8}  {are}: sent in {parts} parts; {overlap} s at the cuts are sent and billed twice",
                sent.split
            ))?;
        }
        if sent.too_large > 0 {
            let are = agree(
                sent.too_large,
                "is larger than its service accepts: its sound is sent alone, in parts if it is still too large",
                "are larger than their service accepts: their sound is sent alone, in parts if it is still too large",
            );
            context.print_line(&format!("  {:>8}  {are}", sent.too_large))?;
        }
        Ok(())
    }

    fn print_table(&self, context: &Context) -> io::Result<()> {
        let width = self.parts.keys().map(|part| part.name().chars().count()).max().unwrap_or(0).max(6);
        context.print_line(&format!(
            "  {:<width$}  {:>8}  {:>10}  {:>10}  duplicates",
            "source", "files", "audio", "price"
        ))?;
        for (part, sent) in &self.parts {
            let price = sent.price.map_or_else(|| "-".to_owned(), |price| format!("{price:.2}"));
            let (name, files, audio, duplicates) = (part.name(), sent.files, length(sent.audio), sent.duplicates);
            context.print_line(&format!("  {name:<width$}  {files:>8}  {audio:>10}  {price:>10}  {duplicates:>10}"))?;
        }
        Ok(())
    }

    fn print_finish(&self, context: &Context) -> io::Result<()> {
        if self.paused {
            context.print_line("the queue is paused: scribed sends none of them until `scribed resume`")?;
        }
        let sent = self.sent();
        let Some(reckoned) = self.estimate.as_ref().filter(|_| sent.files > 0) else { return Ok(()) };
        for words in &reckoned.closed_windows {
            context.print_line(words)?;
        }
        let constraint =
            reckoned.constraint().map(|constraint| format!("; limited mostly by {constraint}")).unwrap_or_default();
        match &reckoned.shown {
            Some(at) => context.print_line(&format!("done by {at}, if no other work is added{constraint}")),
            None => context.print_line(&match (reckoned.passes, reckoned.constraint().unwrap_or_default()) {
                (Some(passes), by) => format!(
                    "not all of them in one pass: {by} ends each pass of `scribed once`, and about {passes} passes do \
                     all of them; the next `scribed once`, or a daemon that is started, continues"
                ),
                (None, by) => format!("not all of them can be done with the current settings: limited by {by}"),
            }),
        }
    }

    fn unknown_length_title(&self) -> &'static str {
        match self.no_tool {
            true => "of unknown length: ffprobe is not installed (package `ffmpeg`)",
            false => "of unknown length, or not recordings",
        }
    }
}

/// Returns counts as JSON; `name` is the key of the text.
fn template_counts_json(all: &TemplateCounts, name: &str) -> Value {
    let one = |((source, template, what), files): (&(SourceName, String, String), &u64)| json!({ "source": source, "template": template, name: what, "files": files });
    all.iter().map(one).collect()
}

/// Returns what the plan assumes of files of unknown length, which never count as empty.
fn unknown_length_message(sent: &PlannedUpload) -> String {
    let files = count(sent.unknown_length, "file");
    match sent.guessed_of(sent.unknown_length) {
        Some((audio, _)) => format!(
            "the length of {files} is not known: the plan takes the average length of the others, {} together; the \
             end time includes this estimate, the hours and the price above do not",
            length(audio)
        ),
        None => format!(
            "the length of {files} is not known, and there are no others to estimate it from: hours, price \
             and end time do not include them"
        ),
    }
}

fn print_groups(context: &Context, title: &str, groups: &BTreeMap<String, u64>) -> io::Result<()> {
    if !groups.is_empty() {
        context.print_line(title)?;
    }
    for (what, count) in groups {
        let what = what.strip_prefix("ignored: ").unwrap_or(what);
        context.print_line(&format!("  {count:>8}  {what}"))?;
    }
    Ok(())
}
