//! `scribed manual`: prints the pages of `docs/`, and the units of `deploy/`. An installed program has no other copy of them.

use crate::cli::args::ManualArgs;
use crate::cli::render::terminal;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::domain::did_you_mean::nearest;
use serde_json::json;

/// A page of the manual.
#[derive(Debug)]
pub struct Page {
    /// Where it is in the repository.
    pub path: &'static str,
    /// The whole text, as Markdown.
    pub text: &'static str,
}

macro_rules! page {
    ($path:literal) => {
        Page { path: $path, text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path)) }
    };
}

/// All pages, in the order of the list of topics. A test compares them with the files in `docs/` and the units in
/// `deploy/`.
pub const PAGES: &[Page] = &[
    page!("README.md"),
    page!("docs/README.md"),
    page!("docs/tutorials/first-folder.md"),
    page!("docs/tutorials/nightly-backlog.md"),
    page!("docs/how-to/another-machine.md"),
    page!("docs/how-to/buckets.md"),
    page!("docs/how-to/callbacks-behind-a-proxy.md"),
    page!("docs/how-to/captions.md"),
    page!("docs/how-to/changed-files.md"),
    page!("docs/how-to/container.md"),
    page!("docs/how-to/cron.md"),
    page!("docs/how-to/correct-transcripts.md"),
    page!("docs/how-to/debian-package.md"),
    page!("docs/how-to/edited-outputs.md"),
    page!("docs/how-to/erase-a-recording.md"),
    page!("docs/how-to/engines.md"),
    page!("docs/how-to/language-model.md"),
    page!("docs/how-to/full-disk.md"),
    page!("docs/how-to/hosted-service.md"),
    page!("docs/how-to/http-api.md"),
    page!("docs/how-to/queue-pages.md"),
    page!("docs/how-to/jobs.md"),
    page!("docs/how-to/known-speakers.md"),
    page!("docs/how-to/kubernetes.md"),
    page!("docs/how-to/long-recordings.md"),
    page!("docs/how-to/lost-queue.md"),
    page!("docs/how-to/manifests.md"),
    page!("docs/how-to/monitoring.md"),
    page!("docs/how-to/notifications.md"),
    page!("docs/how-to/search.md"),
    page!("docs/how-to/outputs.md"),
    page!("docs/how-to/players.md"),
    page!("docs/how-to/prometheus.md"),
    page!("docs/how-to/review.md"),
    page!("docs/how-to/serve-others.md"),
    page!("docs/how-to/several-installations.md"),
    page!("docs/how-to/static-binary.md"),
    page!("docs/how-to/systemd.md"),
    page!("docs/how-to/traces.md"),
    page!("docs/how-to/translation.md"),
    page!("docs/how-to/upgrade-and-backup.md"),
    page!("docs/how-to/web-page-of-the-service.md"),
    page!("docs/how-to/windows-and-budgets.md"),
    page!("docs/reference/commands.md"),
    page!("docs/reference/conventions.md"),
    page!("docs/reference/exit-codes.md"),
    page!("docs/reference/files.md"),
    page!("docs/reference/metrics.md"),
    page!("docs/reference/log.md"),
    page!("docs/reference/redaction.md"),
    page!("docs/reference/service-parameters.md"),
    page!("docs/reference/settings.md"),
    page!("docs/explanation/accuracy.md"),
    page!("docs/explanation/embedded-service.md"),
    page!("docs/explanation/guarantees.md"),
    page!("docs/explanation/measurements.md"),
    page!("docs/explanation/result-check.md"),
    page!("docs/explanation/threats.md"),
    page!("docs/contributing.md"),
    page!("docs/glossary.md"),
    page!("SECURITY.md"),
    page!("CHANGELOG.md"),
    page!("deploy/scribed.service"),
    page!("deploy/scribed-once.service"),
    page!("deploy/scribed-once.timer"),
    page!("deploy/scribed-serve.service"),
];

impl Page {
    /// Returns the topic of the page: the file's name, or for a README the name of its folder.
    pub fn topic(&self) -> String {
        let path = self.path.strip_suffix(".md").unwrap_or(self.path);
        let mut parts = path.rsplit('/').filter(|part| *part != "README");
        parts.next().unwrap_or("overview").to_lowercase()
    }

    /// Returns the text without the note to maintainers at the beginning of generated pages.
    fn readable(&self) -> &'static str {
        let note = self.text.starts_with("<!--").then(|| self.text.split_once("-->")).flatten();
        note.map_or(self.text, |(_, rest)| rest.trim_start())
    }

    /// Returns the first heading.
    pub fn title(&self) -> &'static str {
        self.text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default()
    }
}

/// Prints a page, or the list of topics.
///
/// # Errors
/// [`CommandError::Usage`] for an unknown topic; errors of stdout.
pub fn run(context: &Context, args: &ManualArgs) -> Result<u8, CommandError> {
    match &args.topic {
        Some(topic) => print(context, find(topic)?)?,
        None => list(context)?,
    }
    Ok(0)
}

fn find(wanted: &str) -> Result<&'static Page, CommandError> {
    let wanted = wanted.to_lowercase();
    let matches = |page: &&Page| page.topic() == wanted || page.path.to_lowercase() == wanted;
    PAGES.iter().find(matches).ok_or_else(|| {
        let topics: Vec<String> = PAGES.iter().map(Page::topic).collect();
        let part = || topics.iter().map(String::as_str).find(|topic| topic.contains(&wanted));
        let near = nearest(&wanted, topics.iter().map(String::as_str)).or_else(part);
        let near = near.map_or_else(String::new, |near| format!(" Did you mean `{near}`?"));
        CommandError::Usage(format!("the manual has no topic {wanted}.{near} `scribed manual` lists the topics"))
    })
}

fn print(context: &Context, page: &Page) -> Result<(), CommandError> {
    if context.common.json {
        return Ok(context.print_json(&json!({ "topic": page.topic(), "title": page.title(), "text": page.text }))?);
    }
    Ok(terminal::write_raw(page.readable().as_bytes())?)
}

fn list(context: &Context) -> Result<(), CommandError> {
    for page in PAGES {
        context.print_json(&json!({ "topic": page.topic(), "title": page.title() }))?;
        context.print_line(&format!("{:<20} {}", page.topic(), page.title()))?;
    }
    Ok(context.print_line(
        "`scribed manual TOPIC` prints a page; `scribed init --full` writes every setting with its default",
    )?)
}
