//! The command line.

use crate::domain::format::Format;
use crate::domain::names::Timestamp;
use crate::source::manifest::cells;
use crate::wire::iso;
use crate::wire::record::Status;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Turns folders of recordings into transcripts and subtitles, unattended, paid once.
#[derive(Debug, Parser)]
#[command(name = "scribed", version, max_term_width = 100)]
pub struct Arguments {
    /// Flags of every command.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
pub struct Common {
    /// The configuration
    #[arg(long, global = true, env = "SCRIBED_CONFIG", default_value = "jobs.toml", value_name = "FILE")]
    pub config: PathBuf,
    /// Machine output on stdout: one object, or one a line for lists
    #[arg(long, global = true)]
    pub json: bool,
    /// Say more on stderr; twice for every move
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Say only errors on stderr
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// How log lines look
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Pretty)]
    pub log_format: LogFormat,
    /// Colours
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// One object a line.
    Json,
}

/// When colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The daemon: watches the folders and sees every job to its end, for ever
    Run(Run),
    /// One pass: find everything, see every job to its end, then a summary
    Once(Once),
    /// How many jobs are where, what they wait for, and how the daemon fares
    Status(StatusArgs),
    /// The jobs, one a line
    Jobs(Jobs),
    /// One job: where it is, why, what happens next, and its history
    Show(Show),
    /// Why a file is where it is, and what happens next; also of files that nobody transcribes
    Explain(Explain),
    /// What `once` would do: files, hours of audio, price, copies, what is passed over, and when it would be
    /// done; submits nothing
    Plan(Plan),
    /// Takes files below a source's folder, whatever its patterns say, and addresses that the service can fetch
    Add(Add),
    /// Jobs that failed, were cancelled or wait go on now
    Retry(Retry),
    /// Puts jobs before all others, also after a restart
    Bump(Bump),
    /// Takes note of jobs that failed or are incomplete: `once` and `status --check` count them no more until they change
    Acknowledge(Acknowledge),
    /// Gives jobs up; what was bought for them stays known
    Cancel(Cancel),
    /// Forgets jobs that have ended and whose files are gone; what was bought for them stays known
    Forget(Forget),
    /// Looks whether the outputs of all written jobs are there and unchanged; --repair writes missing ones again
    Verify(Verify),
    /// Nothing new is uploaded or submitted until `resume`, also after a restart
    Pause(Pause),
    /// Ends a pause
    Resume(Resume),
    /// The daemon takes up a changed jobs.toml; a wrong one changes nothing
    Reload,
    /// Pauses, and waits until everything that was submitted has ended and is written
    Drain(Drain),
    /// Fetches what the service's lists hold, pre-recorded and live, into a folder; goes on where it was
    Harvest(Harvest),
    /// The queue against the services' lists, both ways: what each has that the other has not
    Reconcile(Reconcile),
    /// What was spent, by source, day, month, service, template or job
    Cost(Cost),
    /// Configuration, key, service, folders, clock and tools: each with a verdict and a mend
    Check,
    /// Writes a commented jobs.toml
    Init,
    /// The JSON Schema of jobs.toml, for editors: `#:schema ./jobs.schema.json` as its first line
    Schema,
    /// What a shell needs to complete command lines, as `scribed completions bash`
    Completions(Completions),
    /// The manual page
    Man(Man),
    /// The transcription service itself, for others on the site
    Serve(Serve),
    /// First-version request parameters and results into second-version ones
    Upgrade(Upgrade),
}

/// `scribed pause`.
#[derive(Debug, Args)]
pub struct Pause {
    /// Only what comes from this source
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// It ends by itself after so long, as `2h`
    #[arg(long = "for", value_name = "SPAN", value_parser = humantime::parse_duration)]
    pub span: Option<Duration>,
}

/// `scribed resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// Only what comes from this source
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
}

/// `scribed drain`.
#[derive(Debug, Args)]
pub struct Drain {
    /// How long it is waited for; what has not ended by then goes on by itself
    #[arg(long, value_name = "SPAN", value_parser = humantime::parse_duration, default_value = "12h")]
    pub patience: Duration,
}

/// `scribed harvest`.
#[derive(Debug, Args)]
pub struct Harvest {
    /// The folder for the files; made where it is not there. What is in it already is not fetched again
    #[arg(long, value_name = "FOLDER")]
    pub to: PathBuf,
    /// Only of this service; else of all in jobs.toml
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Which of its lists
    #[arg(long, value_enum, default_value_t = ListKind::All)]
    pub kind: ListKind,
    /// Only what was created after this moment, as 2026-01-31 or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "DATE", value_parser = moment)]
    pub after: Option<Timestamp>,
    /// Only what was created before it
    #[arg(long, value_name = "DATE", value_parser = moment)]
    pub before: Option<Timestamp>,
    /// Only what was created on this day (UTC)
    #[arg(long, value_name = "DATE", value_parser = moment)]
    pub date: Option<Timestamp>,
    /// Only what is queued, processing, done or error; may be repeated
    #[arg(long, value_name = "STATUS", value_parser = status)]
    pub status: Vec<Status>,
    /// Only what was created with this in its custom_metadata; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub metadata: Vec<(String, serde_json::Value)>,
    /// What is written of each: txt, srt, vtt, json. The JSON is the service's whole answer
    #[arg(long, value_name = "FORMATS", value_delimiter = ',', default_value = "txt,srt,vtt,json", value_parser = output)]
    pub outputs: Vec<Format>,
    /// The key of the custom_metadata that names the files; else they are called as the recording was
    #[arg(long, value_name = "KEY")]
    pub name_by: Option<String>,
    /// How long a service that is out is put up with
    #[arg(long, default_value = "15m", value_name = "TIME", value_parser = time)]
    pub patience: Duration,
}

/// `scribed reconcile`.
#[derive(Debug, Args)]
pub struct Reconcile {
    /// Only this service; else all in jobs.toml
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Where two were bought for one job and round, the younger is deleted at the service, unless a job has it
    #[arg(long)]
    pub delete_doubles: bool,
    /// Your word that nothing was bought at this service that the queue does not know: where its list cannot be read,
    /// purchases go on. Nothing is compared
    #[arg(long, requires = "service", conflicts_with = "delete_doubles")]
    pub trust: bool,
}

/// Lists of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListKind {
    /// Of files.
    PreRecorded,
    /// Of streams.
    Live,
    /// Both.
    All,
}

/// `scribed serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// Instead of serving
    #[command(subcommand)]
    pub order: Option<ServeOrder>,
}

/// Orders to the service's records; it need not be stopped for them.
#[derive(Debug, Subcommand)]
pub enum ServeOrder {
    /// Takes in records of live transcriptions, one JSON object a line: all of them or none
    ImportLive(ImportLive),
}

/// `scribed serve import-live`.
#[derive(Debug, Args)]
pub struct ImportLive {
    /// The records, as the service's own list of live transcriptions shows them
    #[arg(value_name = "FILE.jsonl")]
    pub file: PathBuf,
    /// Whose they will be: the name of the key, or its place in `keys`, from 1
    #[arg(long, default_value = "1", value_name = "NAME|NUMBER")]
    pub key: String,
}

/// `scribed run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Set a damaged queue aside and find everything again from the folders and the service's lists
    #[arg(long)]
    pub rebuild: bool,
}

/// `scribed once`.
#[derive(Debug, Args)]
pub struct Once {
    /// How long a service that is out, or a wait that nothing shortens, is put up with
    #[arg(long, default_value = "15m", value_name = "TIME", value_parser = time)]
    pub patience: Duration,
    /// Set a damaged queue aside and find everything again from the folders and the service's lists
    #[arg(long)]
    pub rebuild: bool,
    /// Only the files of this plan (`scribed plan --save`), each as it was then; for nothing else anything is bought
    #[arg(long, value_name = "FILE", conflicts_with = "rebuild")]
    pub plan: Option<PathBuf>,
}

/// `scribed status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// One line for monitoring: OK, WARNING or CRITICAL, with reasons, and the exit codes of a Nagios plugin: 0 ok,
    /// 1 warning, 2 critical, 3 unknown (configuration, permissions)
    #[arg(long)]
    pub check: bool,
    /// With --check, where a timer runs `scribed once` and no daemon: waiting work is no warning, and a last pass that
    /// ended longer ago is one
    #[arg(long, value_name = "SPAN", value_parser = time, requires = "check")]
    pub max_pass_age: Option<Duration>,
}

/// `scribed acknowledge`.
#[derive(Debug, Args)]
pub struct Acknowledge {
    /// Numbers of jobs, or paths of their recordings
    #[arg(value_name = "JOB|PATH", required_unless_present_any = ["failed", "incomplete"], conflicts_with_all = ["failed", "incomplete"])]
    pub jobs: Vec<PathBuf>,
    /// All jobs that failed
    #[arg(long)]
    pub failed: bool,
    /// All jobs that were written without something that was requested, or with something that could not be read
    #[arg(long)]
    pub incomplete: bool,
    /// Of these, only those of this source
    #[arg(long, value_name = "NAME", conflicts_with = "jobs")]
    pub source: Option<String>,
    /// Of these, only those with a fault of this kind (see `fault` of `scribed jobs --failed --csv`)
    #[arg(long, value_name = "KIND", requires = "failed", value_parser = fault_kind)]
    pub kind: Option<String>,
}

/// `scribed jobs`.
#[derive(Debug, Args)]
pub struct Jobs {
    /// Only jobs at this stage (found, settled, probed, uploaded, submitting, submitted, fetched,
    /// following, written, skipped, failed, cancelled); may be repeated
    #[arg(long, value_name = "STAGE", value_parser = stage)]
    pub stage: Vec<crate::domain::stage::StageKind>,
    /// Only jobs that failed: the same as --stage failed
    #[arg(long)]
    pub failed: bool,
    /// Only jobs that are written without a part that was requested, or with one that could not be read
    #[arg(long, conflicts_with_all = ["stage", "failed"])]
    pub incomplete: bool,
    /// Only jobs of this source
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// No more than these, those with the lowest numbers; 50 on a terminal, else all
    #[arg(long, value_name = "NUMBER", conflicts_with = "all")]
    pub limit: Option<u64>,
    /// All of them, also on a terminal
    #[arg(long)]
    pub all: bool,
    /// A table for a spreadsheet, with a line of headings (RFC 4180)
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

/// `scribed show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The job's number, the path of its recording, or what `scribed jobs` calls it
    #[arg(value_name = "JOB")]
    pub job: PathBuf,
}

/// `scribed explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The path of a file, or what `scribed jobs` calls it
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
}

/// `scribed plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// What would be asked of the service for this one file, and where each part of it comes from
    #[arg(long, value_name = "PATH")]
    pub explain: Option<PathBuf>,
    /// Every file by name, and what becomes of it
    #[arg(long)]
    pub list: bool,
    /// Keeps the plan in this file: `scribed once --plan FILE` does exactly that, and nothing else
    #[arg(short = 'o', long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

/// `scribed add`.
#[derive(Debug, Args)]
pub struct Add {
    /// Files that lie below a source's folder, or addresses (http, https) that the service can fetch
    #[arg(value_name = "PATH|URL", required = true)]
    pub paths: Vec<PathBuf>,
    /// The source of a URL, whose settings hold for it; needed where more than one has a folder
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// The folder for the outputs of a URL; else the source's own, or its `place`
    #[arg(long, value_name = "FOLDER")]
    pub outputs: Option<PathBuf>,
    /// How long what a URL names is: under a budget nothing is bought without
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    pub duration: Option<u64>,
    /// How many channels of it are billed
    #[arg(long, value_name = "NUMBER", value_parser = channels, requires = "duration", default_value = "1")]
    pub channels: u64,
}

fn length(text: &str) -> Result<u64, String> {
    cells::duration(text)
}

fn channels(text: &str) -> Result<u64, String> {
    cells::channels(text)
}

/// `scribed retry`.
#[derive(Debug, Args)]
pub struct Retry {
    /// Numbers of jobs, or paths of their recordings
    #[arg(value_name = "JOB|PATH", required_unless_present_any = ["failed", "written"], conflicts_with_all = ["failed", "written"])]
    pub jobs: Vec<PathBuf>,
    /// All jobs that failed
    #[arg(long)]
    pub failed: bool,
    /// All jobs whose outputs are written: with --fresh
    #[arg(long, requires = "fresh", conflicts_with = "failed")]
    pub written: bool,
    /// Of these, only those of this source
    #[arg(long, value_name = "NAME", conflicts_with = "jobs")]
    pub source: Option<String>,
    /// Of these, only those with a fault of this kind (see `fault` of `scribed jobs --failed --csv`)
    #[arg(long, value_name = "KIND", requires = "failed", value_parser = fault_kind)]
    pub kind: Option<String>,
    /// Not with what it was made with, but with what jobs.toml and the files beside it say now, in a new round.
    /// What comes out as it was bought before is not bought again, but with --pay-again
    #[arg(long)]
    pub fresh: bool,
    /// Also what may have been bought already: an unknown create, a transcription that is stuck or gone.
    /// It may be paid for twice
    #[arg(long)]
    pub pay_again: bool,
}

/// `scribed bump`.
#[derive(Debug, Args)]
pub struct Bump {
    /// Numbers of jobs, or paths of their recordings; the first of them comes first
    #[arg(value_name = "JOB|PATH", required = true)]
    pub jobs: Vec<PathBuf>,
}

/// `scribed cancel`.
#[derive(Debug, Args)]
pub struct Cancel {
    /// Numbers of jobs, or paths of their recordings
    #[arg(value_name = "JOB|PATH", required = true)]
    pub jobs: Vec<PathBuf>,
    /// What was bought for them is deleted at the service, too; also of jobs that were cancelled before
    #[arg(long)]
    pub delete: bool,
}

/// `scribed forget`.
#[derive(Debug, Args)]
pub struct Forget {
    /// Numbers of jobs, or paths of their recordings
    #[arg(value_name = "JOB|PATH", required_unless_present = "vanished", conflicts_with = "vanished")]
    pub jobs: Vec<PathBuf>,
    /// All jobs that have ended and whose files are gone. A file in a folder that is away, or that may be, is not gone
    #[arg(long)]
    pub vanished: bool,
    /// Of these, only those of this source
    #[arg(long, value_name = "NAME", requires = "vanished")]
    pub source: Option<String>,
    /// Of these, only those that ended so long ago, as `30d`
    #[arg(long, value_name = "SPAN", value_parser = humantime::parse_duration, requires = "vanished")]
    pub older_than: Option<Duration>,
    /// Only shows what would be forgotten
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// `scribed verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// Only these: numbers of jobs, or paths of their recordings
    #[arg(value_name = "JOB|PATH", conflicts_with = "source")]
    pub jobs: Vec<PathBuf>,
    /// Writes missing outputs again, from the kept result or from what the service still has; it costs nothing
    #[arg(long)]
    pub repair: bool,
    /// Only jobs of this source
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
}

/// `scribed cost`.
#[derive(Debug, Args)]
pub struct Cost {
    /// What the sums are over; days and months are those of `budget.timezone`
    #[arg(long, value_enum, default_value = "source", value_name = "WHAT")]
    pub by: crate::control::request::By,
    /// Only what was bought on this day or later
    #[arg(long, visible_alias = "since", value_name = "DATE")]
    pub after: Option<String>,
    /// Only what was bought before this day
    #[arg(long, value_name = "DATE")]
    pub before: Option<String>,
    /// A table for a spreadsheet, with a line of headings (RFC 4180)
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

/// `scribed completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// Which shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// `scribed man`.
#[derive(Debug, Args)]
pub struct Man {
    /// One page for each command, into this folder
    #[arg(long, value_name = "FOLDER")]
    pub to: Option<PathBuf>,
}

/// `scribed upgrade`.
#[derive(Debug, Args)]
pub struct Upgrade {
    /// JSON files, each with parameters or with a result; standard input where none is given
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

fn fault_kind(text: &str) -> Result<String, String> {
    let names = crate::domain::fault::FaultKind::NAMES;
    let known = names.contains(&text).then(|| text.to_owned());
    known.ok_or_else(|| format!("no such kind of fault; the kinds are {}", names.join(", ")))
}

fn time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it as 90s, 15m or 2h"))
}

fn moment(text: &str) -> Result<Timestamp, String> {
    iso::read(text).ok_or_else(|| "no date; write it as 2026-01-31 or 2026-01-31T12:00:00Z".to_owned())
}

fn status(text: &str) -> Result<Status, String> {
    match Status::from_word(text) {
        Status::Other(_) => Err("no such status; there are queued, processing, done, error".to_owned()),
        known => Ok(known),
    }
}

fn pair(text: &str) -> Result<(String, serde_json::Value), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.into()))
}

fn output(text: &str) -> Result<Format, String> {
    let known = Format::ALL.into_iter().find(|format| format.ext() == text);
    known.ok_or_else(|| "no such output; there are txt, srt, vtt, json".to_owned())
}

fn stage(text: &str) -> Result<crate::domain::stage::StageKind, String> {
    use crate::domain::stage::StageKind;
    StageKind::parse(text).ok_or_else(|| {
        let names = StageKind::ALL.map(StageKind::name).join(", ");
        format!("no such stage; the stages are {names}")
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        super::Arguments::command().debug_assert();
    }
}
