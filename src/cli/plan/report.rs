//! What a plan came to.

use crate::cli::commands::once::length;
use crate::cli::commands::status;
use crate::cli::commands::status::tell_budget;
use crate::cli::plan::duplicates::Candidate;
use crate::cli::plan::manifests::PlannedManifests;
use crate::cli::plan::totals::{PlanPart, PlannedUpload, seconds};
use crate::cli::runtime::entry::Context;
use crate::control::explain::forecast::Forecast;
use crate::control::plan::eta::Reckoned;
use crate::control::transport::protocol::BudgetUse;
use crate::domain::count::count;
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

/// `hold` is the source's setting.
const HELD: &str = "held until they have not changed for `hold` (`scribed retry` with the path sends one now)";

/// The rows to be mended say it of each.
const NOT_ALLOWED: &str = "jobs.toml does not allow what its row names";

/// Files by source, template, and what is to be said of what these request.
type OfTemplates = BTreeMap<(SourceName, String, String), u64>;

/// Counted over all sources.
#[derive(Debug, Default, PartialEq)]
pub struct PlanReport {
    /// Would be sent: seen for the first time.
    pub new: u64,
    /// Would be sent if their content is another than when they came to their end.
    pub changed: u64,
    /// Would be sent: their jobs are in the queue.
    pub on_the_way: u64,
    /// Would be sent: their rows were edited since they came to their end.
    pub reordered: u64,
    /// Would be awaited and written.
    pub at_the_service: u64,
    /// Written before.
    pub done: u64,
    /// Of these, would be rendered again without cost by `scribed render`: settings for outputs have changed.
    pub renderable: u64,
    /// What would be sent, part by part.
    pub parts: BTreeMap<PlanPart, PlannedUpload>,
    /// Whether nothing can be asked how long it is.
    pub no_tool: bool,
    /// Not sent before they have been quiet for `hold`.
    pub held: u64,
    /// Rows of manifests whose files are not there yet.
    pub awaited: u64,
    /// What there is to say of manifests.
    pub lists: PlannedManifests,
    /// Whether there is a budget.
    pub is_budgeted: bool,
    /// What is used of every budget now.
    pub budget: Vec<BudgetUse>,
    /// The clock by which moments are told.
    pub zone: Zone,
    /// Whether a person has paused the queue: nothing is sent before `resume`.
    pub paused: bool,
    /// Nothing would be done, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// What is wrong with the settings of files that wait for that to be mended, or fail.
    pub needs_fix: BTreeMap<String, u64>,
    /// What would be written without a part that is requested.
    pub incomplete: OfTemplates,
    /// What would be transcribed as if a part of the request were not there, or only partly meant.
    pub without_effect: OfTemplates,
    /// Not taken by the source, by rule.
    pub passed_over: BTreeMap<String, u64>,
    /// What scribed itself has put there: outputs, receipts, the marker, its state. Nobody misses it in a plan.
    pub own: u64,
    /// Sources whose folders are away, in words.
    pub away: Vec<String>,
    /// What could not be looked at.
    pub troubles: Vec<String>,
    /// When it would be through.
    pub estimate: Option<Reckoned>,
    /// Where the plan is kept.
    pub saved: Option<PathBuf>,
}

impl PlanReport {
    /// Counts a file of which nothing would be sent.
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

    /// Counts a file that would be sent, or shares what is sent for another one.
    pub fn send(
        &mut self,
        part: PlanPart,
        file: &Candidate,
        audio: Option<AudioAmount>,
        is_twin: bool,
        price: Option<f64>,
    ) {
        self.add(&file.forecast);
        self.lists.unchecked += u64::from(file.row.as_ref().is_some_and(|row| row.checksum.is_some()));
        let millis = audio.map_or(0, |audio| audio.millis);
        let billed = audio.and_then(|audio| audio.reservation_millis()).unwrap_or(0);
        let one = match is_twin {
            true => PlannedUpload { duplicates: 1, duplicate_audio: millis, ..PlannedUpload::default() },
            false => PlannedUpload {
                files: 1,
                bytes: file.stamp.size,
                audio: millis,
                longest: millis,
                billed,
                price: price.map(|price| billed as f64 / 3.6e6 * price),
                unknown_length: u64::from(audio.is_none()),
                unknown_remote: u64::from(audio.is_none() && file.is_remote()),
                ..PlannedUpload::default()
            },
        };
        self.parts.entry(part).or_default().add(&one);
    }

    pub fn sent(&self) -> PlannedUpload {
        self.parts.values().fold(PlannedUpload::default(), |mut all, part| {
            all.add(part);
            all
        })
    }

    /// Counts a file that would be written without these parts of what is requested.
    pub fn incomplete(&mut self, source: &SourceName, template: &str, missing: &[MissingPart]) {
        if !missing.is_empty() {
            let key = (source.clone(), template.to_owned(), join_names(missing));
            *self.incomplete.entry(key).or_default() += 1;
        }
    }

    /// Counts a file of whose request this would change nothing or little.
    pub fn without_effect(&mut self, source: &SourceName, template: &str, words: Option<&str>) {
        if let Some(words) = words {
            let key = (source.clone(), template.to_owned(), words.to_owned());
            *self.without_effect.entry(key).or_default() += 1;
        }
    }

    /// Seconds of audio in what would be sent.
    pub fn audio_seconds(&self) -> f64 {
        seconds(self.parts.values().map(|part| part.audio).sum())
    }

    /// What would be sent, for a reckoning of the time that takes. What is of unknown length is taken to be as long
    /// as the others are.
    pub fn batches(&self) -> Vec<FileBatch> {
        let all = self.sent();
        let pile = |(part, sent): (&PlanPart, &PlannedUpload)| {
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
        self.parts.iter().map(pile).collect()
    }

    /// Counts what the source does not take.
    pub fn count_filtered(&mut self, rule: String) {
        *self.passed_over.entry(rule).or_default() += 1;
    }

    /// Whether everything could be looked at.
    pub fn is_whole(&self) -> bool {
        self.away.is_empty()
            && self.troubles.is_empty()
            && self.needs_fix.is_empty()
            && self.incomplete.is_empty()
            && self.lists.needs_no_fix()
    }

    /// All of it, for machines.
    pub fn to_json(&self) -> Value {
        let mut object = self.sent().object();
        let more = json!({
            "new": self.new, "changed": self.changed, "on_the_way": self.on_the_way,
            "reordered": self.reordered, "at_the_service": self.at_the_service, "done": self.done, "held": self.held,
            "awaited": self.awaited, "paused": self.paused, "manifests": self.lists.to_json(),
            "to_mend": self.lists.fixes(), "mended_first": self.needs_fix,
            "incomplete": self.incomplete.values().sum::<u64>(), "missing": of_templates(&self.incomplete, "missing"),
            "without_effect": of_templates(&self.without_effect, "parameters"),
            "skipped": self.skipped, "passed_over": self.passed_over, "own": self.own, "away": self.away, "troubles": self.troubles,
            "sources": self.parts.iter().map(|(part, sent)| part.object(sent)).collect::<Vec<_>>(), "finish": self.finish(),
            "budget": self.budget.iter().map(status::budget).collect::<Vec<_>>(),
            "renderable": self.renderable, "assumed": self.assumed(), "saved": self.saved.as_ref().map(|file| file.to_string_lossy()),
        });
        if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
            object.extend(more);
        }
        object
    }

    fn tell_templates(&self, context: &Context) -> io::Result<()> {
        let lacking = "would be written without a requested part, which the embedded service does not support:";
        let idle = "warning: requested, but with no or little effect in the embedded service:";
        for (title, all) in [(lacking, &self.incomplete), (idle, &self.without_effect)] {
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

    fn finish(&self) -> Value {
        let Some(reckoned) = &self.estimate else { return Value::Null };
        json!({ "at": reckoned.finish.at.map(timestamps::format), "held_up_by": reckoned.constraint() })
    }

    /// What was not looked at, or is not known, and was taken to be so.
    fn assumed(&self) -> Vec<String> {
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
            assumed.push(of_unknown_length(&sent));
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
            assumed.push("files that changed after their job ended have new content".to_owned());
        }
        let reckoned = self.estimate.iter().filter(|_| sent.files > 0);
        assumed.extend(reckoned.flat_map(|reckoned| reckoned.assumed.clone()));
        assumed
    }

    /// Says it.
    ///
    /// # Errors
    /// Of stdout.
    pub fn print(&self, context: &Context) -> io::Result<()> {
        context.print_json(&self.to_json())?;
        self.tell_sent(context)?;
        self.tell_finish(context)?;
        self.budget.iter().try_for_each(|used| tell_budget(context, self.zone, used))?;
        let rest = [
            (self.at_the_service, "at the service: scribed waits for them and writes them"),
            (self.done, "done before"),
            (self.held, HELD),
            (self.awaited, "rows of manifests wait for files that do not exist yet"),
        ];
        for (count, what) in rest.into_iter().filter(|(count, _)| *count > 0) {
            context.print_line(&format!("{count} {what}"))?;
        }
        if self.renderable > 0 {
            let jobs = count(self.renderable, "written job");
            context.print_line(&format!(
                "would be rendered again without cost, by `scribed render` and not by this plan: {jobs}, for which settings \
                 of outputs changed"
            ))?;
        }
        groups(context, "to fix before they can be sent:", &self.needs_fix)?;
        self.tell_templates(context)?;
        groups(context, "skipped:", &self.skipped)?;
        groups(context, "ignored:", &self.passed_over)?;
        self.lists.print(context)?;
        for words in &self.away {
            context.print_line(&format!("not counted: {words}"))?;
        }
        for words in &self.troubles {
            context.print_line(&format!("could not be read: {words}"))?;
        }
        for words in self.assumed() {
            context.print_line(&format!("assumed: {words}"))?;
        }
        self.saved.iter().try_for_each(|file| {
            let file = file.display();
            context.print_line(&format!(
                "the plan is saved in {file}: `scribed once --plan {file}` carries out exactly this plan"
            ))
        })
    }

    fn tell_sent(&self, context: &Context) -> io::Result<()> {
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
            (self.changed, "changed after their job ended: sent if the content is new"),
            (self.reordered, "ordered again: their rows were edited after their job ended"),
            (self.on_the_way, "in the queue, not sent yet"),
            (sent.duplicates, "of these are duplicates: not sent, they get the result of the recording that is sent"),
            (sent.unknown_length - sent.unknown_remote, self.unknown()),
            (sent.unknown_remote, "of unknown length: only the service reads them; fill in `duration` in their rows"),
        ];
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            context.print_line(&format!("  {count:>8}  {what}"))?;
        }
        if self.parts.len() > 1 { self.table(context) } else { Ok(()) }
    }

    fn table(&self, context: &Context) -> io::Result<()> {
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

    fn tell_finish(&self, context: &Context) -> io::Result<()> {
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
            None => {
                let by = reckoned.constraint().unwrap_or_default();
                context.print_line(&format!("not all of them can be done with the current settings: limited by {by}"))
            }
        }
    }

    fn unknown(&self) -> &'static str {
        match self.no_tool {
            true => "of unknown length: ffprobe is not installed (package `ffmpeg`)",
            false => "of unknown length, or not recordings",
        }
    }
}

/// For machines; `name` is what they are called there.
fn of_templates(all: &OfTemplates, name: &str) -> Value {
    let one = |((source, template, what), files): (&(SourceName, String, String), &u64)| json!({ "source": source, "template": template, name: what, "files": files });
    all.iter().map(one).collect()
}

/// They are never counted as nothing.
fn of_unknown_length(sent: &PlannedUpload) -> String {
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

fn groups(context: &Context, title: &str, groups: &BTreeMap<String, u64>) -> io::Result<()> {
    if !groups.is_empty() {
        context.print_line(title)?;
    }
    for (what, count) in groups {
        let what = what.strip_prefix("ignored: ").unwrap_or(what);
        context.print_line(&format!("  {count:>8}  {what}"))?;
    }
    Ok(())
}
