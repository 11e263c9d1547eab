//! `scribed render`: renders the outputs of written jobs again, at no cost.

use crate::cli::args::RenderArgs;
use crate::cli::render::progress::Ticker;
use crate::cli::runtime::batch_result::BatchResult;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::cli::runtime::only_paths::path_selection;
use crate::cli::runtime::queue_access::{parse_job_selector, protocol_mismatch, source};
use crate::config::model::Config;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest, QueueStatus, RenderPiece, RenderQuery};
use crate::domain;
use crate::domain::count::{agree, count};
use crate::domain::output_text::RenderedAs;
use crate::domain::path::RelPath;
use crate::pipeline::stages::write::rerender::{RenderChange, RenderedFile, RenderedJob, may_differ, settings_hash};
use base64::Engine;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;

/// Renders the outputs of the jobs in `args` again. The jobs are handled in pieces, so that memory use does not grow with
/// their number.
///
/// # Errors
/// See [`CommandError`]. A refused job is reported, and the command goes on with the others.
pub async fn run(context: &Context, args: &RenderArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    path_selection(&args.only)?;
    let queue = context.queue(&config).await?;
    queue.check_no_renames(&config).await?;
    let mut query = RenderQuery {
        job: None,
        only: args.only.clone(),
        source: args.source.as_deref().map(|name| source(&config, name)).transpose()?,
        dry_run: args.dry_run,
        prune: args.prune,
        restore: args.restore,
        settings: config.sources.iter().map(|source| (source.name.clone(), settings_hash(source))).collect(),
        after: None,
    };
    let mut batch = BatchResult::default();
    let mut progress =
        RenderProgress { context, ticker: Ticker::new(context), sum: Sum::default(), dry_run: args.dry_run };
    for typed in &args.jobs {
        let query = RenderQuery { job: Some(parse_job_selector(typed)?), ..query.clone() };
        match queue.try_request(ControlRequest::Render(query)).await? {
            Ok(ControlAnswer::Rendered(piece)) => progress.add(&piece)?,
            Ok(_) => return Err(protocol_mismatch()),
            Err(refusal) => batch.record_refusal(context, typed, refusal)?,
        }
    }
    while args.jobs.is_empty() {
        let ControlAnswer::Rendered(piece) = queue.request(ControlRequest::Render(query.clone())).await? else {
            return Err(protocol_mismatch());
        };
        progress.add(&piece)?;
        query.after = piece.next;
        if query.after.is_none() {
            break;
        }
    }
    progress.ticker.clear();
    progress.sum.print(context, args.dry_run)?;
    let failed = if progress.sum.problems > 0 { UNFINISHED } else { 0 };
    Ok(batch.exit_code().max(failed))
}

/// The written jobs that `scribed render` may change, by the reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Renderable {
    /// The settings for outputs have changed.
    pub settings: u64,
    /// A person accepted a text, or took it back.
    pub texts: u64,
}

impl Renderable {
    pub fn total(self) -> u64 {
        self.settings + self.texts
    }

    /// Says why jobs may change, a reason a line.
    pub fn reasons(self) -> impl Iterator<Item = String> {
        let reason = |jobs: u64, words: &str| (jobs > 0).then(|| format!("{words} {}", count(jobs, "written job")));
        let settings = reason(self.settings, "the settings for outputs changed for");
        settings.into_iter().chain(reason(self.texts, "a person accepted a text, or took it back, for"))
    }
}

/// Returns the number of written jobs that `scribed render` may change, by the settings of this configuration.
pub fn renderable(config: &Config, status: &QueueStatus) -> Renderable {
    let by_source: BTreeMap<_, _> =
        config.sources.iter().map(|source| (&source.name, (source, settings_hash(source)))).collect();
    let another_text = RenderedAs::with_another_text().settings;
    let mut sum = Renderable::default();
    for counted in &status.renderings {
        let Some((source, now)) = by_source.get(&counted.source) else { continue };
        let is_known = counted.settings.is_some() || !counted.formats.is_empty();
        if counted.settings == Some(another_text) {
            sum.texts += counted.jobs;
        } else if is_known && may_differ(&counted.formats, counted.settings, source, now) {
            sum.settings += counted.jobs;
        }
    }
    sum
}

struct RenderProgress<'a> {
    context: &'a Context,
    ticker: Ticker,
    sum: Sum,
    dry_run: bool,
}

impl RenderProgress<'_> {
    fn add(&mut self, piece: &RenderPiece) -> io::Result<()> {
        self.sum.jobs += piece.unchanged;
        self.sum.unchanged += piece.unchanged;
        for job in &piece.jobs {
            self.sum.add(job);
            let (context, dry_run) = (self.context, self.dry_run);
            self.ticker.suspend(|| print_job(context, job, dry_run))?;
        }
        let jobs = self.sum.jobs;
        self.ticker.tick(|| format!("{} rendered", domain::count::count(jobs, "job")));
        Ok(())
    }
}

fn print_job(context: &Context, job: &RenderedJob, dry_run: bool) -> io::Result<()> {
    let RenderedJob { job: id, key, files, problem, is_gone, is_result_removed } = job;
    let files_json: Vec<Value> = files.iter().map(file_json).collect();
    context.print_json(&json!({
        "id": id, "source": key.source, "path": key.path.lossy(), "files": files_json, "problem": problem,
        "gone": is_gone, "result_removed": is_result_removed,
    }))?;
    for file in files {
        context.print_line(&format!("job {id}: {}: {}", file.path, words(file, dry_run)))?;
    }
    match problem {
        Some(problem) => context.print_line(&format!("job {id}: {key}: {problem}")),
        None => Ok(()),
    }
}

fn file_json(file: &RenderedFile) -> Value {
    let mut object = json!({ "path": file.path.lossy(), "change": file.change.name() });
    if let Some(from) = &file.from {
        object["from"] = from.lossy().into();
    }
    if !file.path.is_utf8() {
        object["path_b64"] = base64::engine::general_purpose::STANDARD.encode(file.path.as_bytes()).into();
    }
    object
}

fn words(file: &RenderedFile, dry_run: bool) -> String {
    let done = |what: &str| format!("{} {what}", if dry_run { "would be" } else { "was" });
    let from = file.from.as_ref().map(RelPath::escaped).unwrap_or_default();
    match file.change {
        RenderChange::Written => done("written"),
        RenderChange::Replaced => done("replaced by a new version"),
        RenderChange::Moved => done(&format!("moved here from {from}")),
        RenderChange::Restored => format!("missing; {}", done("written again")),
        RenderChange::Removed => done("removed"),
        RenderChange::Edited if !file.may_be_text => "edited after scribed wrote it; it stays as it is".to_owned(),
        RenderChange::Edited => {
            "edited after scribed wrote it; it stays as it is (`scribed accept` makes it the text of its recording)"
                .to_owned()
        }
        RenderChange::Missing => "missing; it stays so (--restore writes it again)".to_owned(),
        RenderChange::Unconfigured => {
            "it is no output any more, by format or language; it stays (--prune removes it)".to_owned()
        }
        RenderChange::Unreadable => "cannot be read; it stays as it is".to_owned(),
        RenderChange::NotAFile => {
            "no file: a directory, a link or a device has its name; it stays as it is (once it is gone, --restore writes \
             the output again)"
                .to_owned()
        }
    }
}

#[derive(Default)]
struct Sum {
    jobs: u64,
    unchanged: u64,
    files: BTreeMap<RenderChange, u64>,
    gone: u64,
    problems: u64,
}

impl Sum {
    fn add(&mut self, job: &RenderedJob) {
        self.jobs += 1;
        self.gone += u64::from(job.is_gone);
        self.problems += u64::from(job.problem.is_some());
        let is_unchanged = job.problem.is_none() && !job.is_gone && !job.files.iter().any(|file| file.change.is_made());
        self.unchanged += u64::from(is_unchanged);
        for file in &job.files {
            *self.files.entry(file.change).or_default() += 1;
        }
    }

    fn print(&self, context: &Context, dry_run: bool) -> io::Result<()> {
        use RenderChange as C;
        let all = [
            C::Written,
            C::Replaced,
            C::Moved,
            C::Restored,
            C::Removed,
            C::Edited,
            C::Missing,
            C::Unconfigured,
            C::Unreadable,
            C::NotAFile,
        ];
        let count = |change: C| self.files.get(&change).copied().unwrap_or(0);
        let mut object = json!({
            "jobs": self.jobs, "unchanged": self.unchanged, "gone": self.gone, "problems": self.problems,
            "dry_run": dry_run,
        });
        for change in all {
            object[change.name()] = count(change).into();
        }
        context.print_json(&object)?;
        let counts = all.into_iter().filter(|change| count(*change) > 0);
        let counts: String = counts.map(|change| format!(", {} {}", count(change), change.name())).collect();
        let would = if dry_run { "; nothing was changed (--dry-run)" } else { "" };
        let (written, unchanged) = (domain::count::count(self.jobs, "written job"), self.unchanged);
        context.print_line(&format!(
            "{written}, {unchanged} unchanged; outputs{}{would}",
            match counts.strip_prefix(',') {
                Some(counts) => format!(":{counts}"),
                None => ": nothing to change".to_owned(),
            }
        ))?;
        if self.gone > 0 {
            let have = agree(self.gone, "has neither its", "have neither their");
            let were = agree(self.gone, "was", "were");
            let gone = self.gone;
            context.print_line(&format!(
                "{gone} of the jobs {have} recording nor outputs any more, and {were} left alone"
            ))?;
        }
        if self.problems > 0 {
            context.print_line(&format!("{} of the jobs could not be rendered (see above)", self.problems))?;
        }
        Ok(())
    }
}
