//! The command line.

pub use super::notify_args::{NotifyCommand, NotifyTestArgs};
pub use super::search_args::SearchArgs;
use crate::captions::Profile;
use crate::cli::runtime::remote_queue::parse_server;
use crate::domain::format::Format;
use crate::domain::missing_enrichment::Enrichment;
use crate::domain::names::Timestamp;
use crate::manifests::format::cells;
use crate::wire::record::Status;
use crate::wire::timestamps;
use clap::{Args, Parser, Subcommand, ValueEnum};
use reqwest::Url;
use std::path::PathBuf;
use std::time::Duration;

/// What `--version` prints. A program whose clock tests can move says so, and `deploy/package.sh` does not pack it. A
/// static program says what it lacks: see `recogniser::IS_STATIC`.
const VERSION: &str = if cfg!(feature = "test-clock") {
    concat!(env!("CARGO_PKG_VERSION"), " (test-clock: tests can move its clock, never install it)")
} else if cfg!(target_feature = "crt-static") {
    concat!(env!("CARGO_PKG_VERSION"), " (static, without an embedded recogniser)")
} else {
    env!("CARGO_PKG_VERSION")
};

/// Turns folders of recordings into transcripts and subtitles, unattended, and pays for each recording once.
#[derive(Debug, Parser)]
#[command(name = "scribed", version = VERSION, max_term_width = 100)]
pub struct Arguments {
    /// Flags of every command.
    #[command(flatten)]
    pub common: CommonArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
pub struct CommonArgs {
    /// The configuration file
    #[arg(long, global = true, env = "SCRIBED_CONFIG", default_value = "jobs.toml", value_name = "FILE")]
    pub config: PathBuf,
    /// Print JSON on stdout: one object, or for lists one object per line
    #[arg(long, global = true)]
    pub json: bool,
    /// Log more on stderr; twice logs every step
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Log only errors on stderr
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Format of log lines
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Pretty)]
    pub log_format: LogFormat,
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// The daemon on another machine.
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// Where a daemon on another machine is.
#[derive(Debug, Args)]
pub struct RemoteArgs {
    /// Send the command to the HTTP API of the daemon on another machine, as `https://archive:8473`
    #[arg(long, global = true, env = "SCRIBED_SERVER", value_name = "URL", value_parser = parse_server)]
    pub server: Option<Url>,
    /// The token for --server: `file:PATH` or `env:NAME`; without this, the environment variable SCRIBED_TOKEN
    #[arg(long, global = true, value_name = "PLACE", requires = "server")]
    pub token: Option<String>,
    /// Trust this certificate authority (a PEM file) for --server, too
    #[arg(long, global = true, value_name = "FILE", requires = "server")]
    pub server_ca: Option<PathBuf>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// One JSON object per line.
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
    /// Start the daemon: watch all sources and process every job, until it is stopped
    Run(RunArgs),
    /// Run one pass: scan all sources, process every job to its end, print a summary
    Once(OnceArgs),
    /// Show the number of jobs by stage, what they wait for, and the state of the daemon
    Status(StatusArgs),
    /// Show the queue as it changes, on a terminal: throughput, waits, services, budgets and sources
    Top(TopArgs),
    /// List the jobs, one per line
    Jobs(JobsArgs),
    /// Show one job: its stage, why it is there, what happens next, and its history
    Show(ShowArgs),
    /// Find what was said in all transcripts: words, "phrases", by source, date, speaker and language
    Search(SearchArgs),
    /// Explain the state of a file and what happens next; also for files that are ignored
    Explain(ExplainArgs),
    /// Show what `once` would do: files, hours of audio, price, duplicates, ignored files, and the expected end;
    /// nothing is submitted
    Plan(PlanArgs),
    /// Add files of a source's folder, whatever its patterns say, or addresses that the service can fetch
    Add(AddArgs),
    /// Continue jobs that failed, were cancelled, or wait
    Retry(RetryArgs),
    /// Process jobs before all others, also after a restart
    Bump(BumpArgs),
    /// Acknowledge jobs that failed, are incomplete or are suspect: `once` and `status --check` ignore them until they change
    Acknowledge(AcknowledgeArgs),
    /// Cancel jobs; their purchases stay on record
    Cancel(CancelArgs),
    /// Remove ended jobs whose files are gone from the queue; their purchases stay on record
    Forget(ForgetArgs),
    /// Erase what was made of recordings, here and at the service; what prevents a second purchase stays
    Erase(EraseArgs),
    /// Check that the outputs of all written jobs exist and are unchanged; --repair writes missing ones again
    Verify(VerifyArgs),
    /// Render the outputs of written jobs again with the formats, names, places and captions of now; this costs nothing
    Render(RenderArgs),
    /// Accept an edited output, or a transcript that was made otherwise, as the text of its recording
    Accept(AcceptArgs),
    /// Stop new uploads and submissions until `resume`, also after a restart
    Pause(PauseArgs),
    /// End a pause
    Resume(ResumeArgs),
    /// Make the daemon read a changed jobs.toml; one with mistakes changes nothing
    Reload,
    /// Pause, and wait until everything that was submitted has ended and is written
    Drain(DrainArgs),
    /// Download the transcriptions in the service's lists, pre-recorded and live, into a folder; continues a download
    Harvest(HarvestArgs),
    /// Compare the queue with the services' lists, and show what only one of them has
    Reconcile(ReconcileArgs),
    /// Show what was spent, by source, day, month, service, template or job
    Cost(CostArgs),
    /// Check the configuration, keys, services, folders, clocks and tools, and show how to fix what is wrong
    Check,
    /// Write a commented jobs.toml to start from, its folder inbox, and jobs.example.toml with every setting
    Init(Init),
    /// Print the JSON Schema of jobs.toml, for editors: `#:schema ./jobs.schema.json` as its first line
    Schema,
    /// Print the completions for a shell, as `scribed completions bash`
    Completions(CompletionsArgs),
    /// Print the manual page in roff format
    Man(ManArgs),
    /// Print a page of the documentation, or the list of its topics
    Manual(ManualArgs),
    /// Compare caption files with published rules, and repair them
    Captions(CaptionsArgs),
    /// Run the embedded transcription service for other machines
    Serve(ServeArgs),
    /// Serve the HTTP API and the metrics without a daemon; make tokens and hashes of passwords for them
    Web(WebArgs),
    /// Test notifications, show what waits to be sent, and print the digest
    #[command(subcommand)]
    Notify(NotifyCommand),
    /// Back up, check and restore the state; move the queue into another state directory
    State(StateArgs),
    /// Convert request parameters and results of the interface's first version into the second
    Upgrade(UpgradeArgs),
}

/// With which queues a command can work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueReach {
    /// It has nothing to do with a queue.
    None,
    /// That of this machine only.
    ThisMachine,
    /// Also that of a daemon on another machine.
    AnyMachine,
}

impl Command {
    /// Returns with which queues the command can work.
    pub fn reach(&self) -> QueueReach {
        match self {
            Self::Status(_) | Self::Top(_) | Self::Jobs(_) | Self::Show(_) | Self::Explain(_) | Self::Cost(_) => {
                QueueReach::AnyMachine
            }
            Self::Search(_) => QueueReach::AnyMachine,
            Self::Add(_) | Self::Retry(_) | Self::Bump(_) | Self::Acknowledge(_) => QueueReach::AnyMachine,
            Self::Cancel(_) | Self::Erase(_) | Self::Forget(_) => QueueReach::AnyMachine,
            Self::Verify(_) | Self::Render(_) | Self::Accept(_) => QueueReach::AnyMachine,
            Self::Pause(_) | Self::Resume(_) | Self::Reload => QueueReach::AnyMachine,
            Self::Run(_) | Self::Once(_) | Self::Plan(_) | Self::Drain(_) | Self::Harvest(_) => QueueReach::ThisMachine,
            Self::Reconcile(_) | Self::Check | Self::Serve(_) | Self::Web(_) | Self::State(_) | Self::Notify(_) => {
                QueueReach::ThisMachine
            }
            Self::Init(_) | Self::Schema | Self::Completions(_) | Self::Man(_) | Self::Manual(_) => QueueReach::None,
            Self::Captions(_) | Self::Upgrade(_) => QueueReach::None,
        }
    }

    /// Whether the command changes nothing, and its output is all that there is of it.
    pub fn only_lists(&self) -> bool {
        match self {
            Self::Plan(args) => args.save.is_none(),
            Self::Jobs(_) | Self::Show(_) | Self::Cost(_) | Self::Schema => true,
            Self::Search(args) => !args.rebuild,
            Self::Notify(command) => !matches!(command, NotifyCommand::Test(_)),
            Self::Completions(_) | Self::Man(_) | Self::Manual(_) => true,
            _ => false,
        }
    }
}

#[derive(Debug, Args)]
pub struct TopArgs {
    /// How often it is renewed, at least every half second
    #[arg(long, value_name = "SPAN", value_parser = renewal, default_value = "2s")]
    pub interval: Duration,
}

/// Parses how often a screen is renewed.
fn renewal(text: &str) -> Result<Duration, String> {
    let span = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if span < Duration::from_millis(500) { Err("it must be at least 500ms".to_owned()) } else { Ok(span) }
}

#[derive(Debug, Args)]
pub struct PauseArgs {
    /// Only for this source
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// End the pause after this time, as `2h`
    #[arg(long = "for", value_name = "SPAN", value_parser = humantime::parse_duration)]
    pub span: Option<Duration>,
}

#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Only for this source
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
}

#[derive(Debug, Args)]
pub struct DrainArgs {
    /// How long to wait; what has not ended by then continues by itself
    #[arg(long, value_name = "SPAN", value_parser = humantime::parse_duration, default_value = "12h")]
    pub patience: Duration,
}

#[derive(Debug, Args)]
pub struct HarvestArgs {
    /// Folder for the files, created if it does not exist. Files that are in it are not downloaded again
    #[arg(long, value_name = "FOLDER")]
    pub to: PathBuf,
    /// Only from this service; otherwise from all in jobs.toml
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Which lists to read
    #[arg(long, value_enum, default_value_t = ListArg::All)]
    pub kind: ListArg,
    /// Only transcriptions created after this time, as 2026-01-31 or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "DATE", value_parser = moment)]
    pub after: Option<Timestamp>,
    /// Only transcriptions created before this time
    #[arg(long, value_name = "DATE", value_parser = moment)]
    pub before: Option<Timestamp>,
    /// Only transcriptions created on this day (UTC)
    #[arg(long, value_name = "DATE", value_parser = moment)]
    pub date: Option<Timestamp>,
    /// Only transcriptions with this status: queued, processing, done or error; may be repeated
    #[arg(long, value_name = "STATUS", value_parser = status)]
    pub status: Vec<Status>,
    /// Only transcriptions with this in their custom_metadata; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub metadata: Vec<(String, serde_json::Value)>,
    /// Outputs to write: txt, srt, vtt, json. The JSON is the service's whole answer
    #[arg(long, value_name = "FORMATS", value_delimiter = ',', default_value = "txt,srt,vtt,json", value_parser = output)]
    pub outputs: Vec<Format>,
    /// Key of the custom_metadata that names the files; otherwise the name of the recording
    #[arg(long, value_name = "KEY")]
    pub name_by: Option<String>,
    /// How long to wait for a service that does not answer
    #[arg(long, default_value = "15m", value_name = "TIME", value_parser = time)]
    pub patience: Duration,
}

#[derive(Debug, Args)]
pub struct ReconcileArgs {
    /// Only this service; otherwise all in jobs.toml
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Where a job has two transcriptions of one purchase, delete the newer one at the service, unless a job uses it
    #[arg(long)]
    pub delete_doubles: bool,
    /// Confirm that the queue knows every purchase at this service, whose list cannot be read: purchases continue.
    /// Nothing is compared
    #[arg(long, requires = "service", conflicts_with = "delete_doubles")]
    pub trust: bool,
}

/// Lists of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListArg {
    /// Transcriptions of files.
    PreRecorded,
    /// Transcriptions of streams.
    Live,
    /// Both.
    All,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// A command to carry out instead of serving
    #[command(subcommand)]
    pub command: Option<ServeCommand>,
}

#[derive(Debug, Args)]
pub struct WebArgs {
    /// A command to carry out instead of serving
    #[command(subcommand)]
    pub command: Option<WebCommand>,
}

/// What is needed for users of the HTTP API.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum WebCommand {
    /// Make a token, and its hash for jobs.toml
    Token,
    /// Read a password from standard input, and print its hash for jobs.toml
    Password,
}

/// Orders to the service's records; it need not be stopped for them.
#[derive(Debug, Subcommand)]
pub enum ServeCommand {
    /// Import records of live transcriptions, one JSON object per line: all of them or none
    ImportLive(ImportLiveArgs),
    /// Show the model files of whisper.cpp that are found, and where they are looked for; or check files
    Models(ModelsArgs),
    /// Enrol, list and delete the voices of known speakers, whom results then name
    #[command(subcommand)]
    Voices(VoicesCommand),
}

#[derive(Debug, Args)]
pub struct ModelsArgs {
    /// Model files to check; without any, all that are found are checked
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// What is to be done with the voices of known speakers.
#[derive(Debug, Subcommand)]
pub enum VoicesCommand {
    /// Store the voice of a person, in place of an earlier one with this name
    Enrol(EnrolArgs),
    /// List the voices
    List,
    /// Delete a voice: no later result has its name
    Delete(DeleteVoiceArgs),
}

#[derive(Debug, Args)]
pub struct EnrolArgs {
    /// Name of the person
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Recordings in which only this person speaks, together at least 10 s of speech
    #[arg(value_name = "RECORDING", required = true)]
    pub recordings: Vec<PathBuf>,
    /// Number of the channel on which the person speaks, from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub channel: Option<u16>,
    /// Where in the recording the person begins to speak
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub from: Option<Duration>,
    /// Where in the recording the person ends
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub to: Option<Duration>,
}

#[derive(Debug, Args)]
pub struct DeleteVoiceArgs {
    /// Name of the person
    #[arg(value_name = "NAME")]
    pub name: String,
}

#[derive(Debug, Args)]
pub struct ImportLiveArgs {
    /// File with the records, as the service's list of live transcriptions shows them
    #[arg(value_name = "FILE.jsonl")]
    pub file: PathBuf,
    /// Owner of the records: the name of a key, or its position in `keys`, from 1
    #[arg(long, default_value = "1", value_name = "NAME|NUMBER")]
    pub key: String,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Set a damaged queue aside and rebuild it from the folders and the services' lists
    #[arg(long)]
    pub rebuild: bool,
}

#[derive(Debug, Args)]
pub struct OnceArgs {
    /// How long to wait for a service that does not answer, or for a job that only time helps
    #[arg(long, default_value = "15m", value_name = "TIME", value_parser = time)]
    pub patience: Duration,
    /// Set a damaged queue aside and rebuild it from the folders and the services' lists
    #[arg(long)]
    pub rebuild: bool,
    /// Process only the files of this plan (`scribed plan --save`), if they are unchanged; nothing else is bought
    #[arg(long, value_name = "FILE", conflicts_with = "rebuild")]
    pub plan: Option<PathBuf>,
    /// Buy at most this many transcriptions in this pass; the other recordings wait for the next one
    #[arg(long, value_name = "NUMBER")]
    pub limit: Option<usize>,
    /// Process only recordings whose paths, relative to their source's folder, match this pattern, as 2024/**/*.mp4;
    /// may be repeated. Nothing is changed for the others
    #[arg(long, value_name = "GLOB")]
    pub only: Vec<String>,
}

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// One line for monitoring: OK, WARNING or CRITICAL, with reasons, and the exit codes of a Nagios plugin: 0 ok,
    /// 1 warning, 2 critical, 3 unknown (configuration, permissions)
    #[arg(long)]
    pub check: bool,
    /// With --check, where a timer runs `scribed once` instead of a daemon: warn if the last pass ended, or the running
    /// one began, longer ago than this, and neither about waiting jobs nor about a budget that has a next period
    #[arg(long, value_name = "SPAN", value_parser = time, requires = "check")]
    pub max_pass_age: Option<Duration>,
    /// With --check: warn if a job, or a row of a manifest whose file does not exist, has made no progress for longer
    /// than this, also if it waits for a budget or a window
    #[arg(long, value_name = "SPAN", value_parser = time, requires = "check")]
    pub max_wait: Option<Duration>,
}

#[derive(Debug, Args)]
pub struct AcknowledgeArgs {
    /// Job numbers, or paths of recordings
    #[arg(value_name = "JOB|PATH", required_unless_present_any = ["failed", "incomplete", "suspect", "manifest"], conflicts_with_all = ["failed", "incomplete", "suspect", "manifest"])]
    pub jobs: Vec<PathBuf>,
    /// All jobs that failed
    #[arg(long)]
    pub failed: bool,
    /// All jobs that are incomplete: written without something that was requested, or with something unreadable
    #[arg(long)]
    pub incomplete: bool,
    /// All jobs that are suspect: the check of their results warns of something
    #[arg(long)]
    pub suspect: bool,
    /// All ended jobs of the rows of this manifest, which is gone: its path below its source's folder, as
    /// `status --check` prints it
    #[arg(long, value_name = "MANIFEST")]
    pub manifest: Option<PathBuf>,
    /// Of these, only jobs of this source
    #[arg(long, value_name = "NAME", conflicts_with = "jobs")]
    pub source: Option<String>,
    /// Of these, only jobs with a fault of this kind (column `fault` of `scribed jobs --failed --csv`)
    #[arg(long, value_name = "KIND", requires = "failed", value_parser = fault_kind)]
    pub kind: Option<String>,
}

#[derive(Debug, Args)]
pub struct JobsArgs {
    /// Only jobs at this stage (found, settled, probed, uploaded, submitting, submitted, fetched,
    /// following, written, skipped, failed, cancelled); may be repeated
    #[arg(long, value_name = "STAGE", value_parser = stage)]
    pub stage: Vec<crate::domain::stage::StageKind>,
    /// Only jobs that failed: the same as --stage failed
    #[arg(long)]
    pub failed: bool,
    /// Only jobs that are incomplete: written without something that was requested, or with something unreadable
    #[arg(long, conflicts_with_all = ["stage", "failed"])]
    pub incomplete: bool,
    /// Only jobs that are suspect and not acknowledged, each with the warnings of the check of its result
    #[arg(long, conflicts_with_all = ["stage", "failed", "incomplete"])]
    pub suspect: bool,
    /// Only jobs with outputs that somebody edited; reads the outputs of all written jobs
    #[arg(long, conflicts_with_all = ["stage", "failed", "incomplete", "suspect"])]
    pub edited: bool,
    /// Only jobs of this source
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// Only jobs that reached their stage on this day or later; with --stage written, what was done since
    #[arg(long, visible_alias = "since", value_name = "DATE")]
    pub after: Option<String>,
    /// Only jobs that reached their stage before this day
    #[arg(long, value_name = "DATE")]
    pub before: Option<String>,
    /// At most this many, those with the lowest numbers; on a terminal 50, otherwise all
    #[arg(long, value_name = "NUMBER", conflicts_with = "all")]
    pub limit: Option<u64>,
    /// All jobs, also on a terminal
    #[arg(long)]
    pub all: bool,
    /// Print CSV for a spreadsheet, with a header line (RFC 4180)
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Job number, path of the recording, or the name in `scribed jobs`
    #[arg(value_name = "JOB")]
    pub job: PathBuf,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Path of a file, or the name in `scribed jobs`
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Show the request for this file, and where each part of it comes from
    #[arg(long, value_name = "PATH")]
    pub explain: Option<PathBuf>,
    /// Plan only recordings whose paths, relative to their source's folder, match this pattern; may be repeated
    #[arg(long, value_name = "GLOB", conflicts_with = "explain")]
    pub only: Vec<String>,
    /// List every file and what `once` would do with it
    #[arg(long)]
    pub list: bool,
    /// Save the plan to this file: `scribed once --plan FILE` carries out exactly this plan
    #[arg(short = 'o', long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct AddArgs {
    /// Files below a source's folder, or addresses (http, https) that the service can fetch
    #[arg(value_name = "PATH|URL", required = true)]
    pub paths: Vec<PathBuf>,
    /// Source of an address, whose settings apply; required if more than one source has a folder
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// Folder for the outputs of an address; otherwise the source's folder, or its `place`
    #[arg(long, value_name = "FOLDER")]
    pub outputs: Option<PathBuf>,
    /// Length of the audio at an address; required where a budget applies
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    pub duration: Option<u64>,
    /// Channels of it that are billed
    #[arg(long, value_name = "NUMBER", value_parser = channels, requires = "duration", default_value = "1")]
    pub channels: u64,
}

fn length(text: &str) -> Result<u64, String> {
    cells::duration(text)
}

fn channels(text: &str) -> Result<u64, String> {
    cells::channels(text)
}

#[derive(Debug, Args)]
pub struct RetryArgs {
    /// Job numbers, or paths of recordings
    #[arg(value_name = "JOB|PATH", required_unless_present_any = ["failed", "written", "incomplete"], conflicts_with_all = ["failed", "written", "incomplete"])]
    pub jobs: Vec<PathBuf>,
    /// All jobs that failed
    #[arg(long)]
    pub failed: bool,
    /// All jobs that are incomplete and not acknowledged: buys their transcriptions again, as jobs.toml says now.
    /// Shows the cost first, and asks
    #[arg(long, conflicts_with_all = ["failed", "written", "pay_again"])]
    pub incomplete: bool,
    /// With --incomplete, only jobs that lack this enrichment, as diarization or translation; may be repeated
    #[arg(long, value_name = "NAME", requires = "incomplete", value_parser = enrichment)]
    pub enrichment: Vec<Enrichment>,
    /// With --incomplete, do not ask
    #[arg(short = 'y', long, requires = "incomplete")]
    pub yes: bool,
    /// All jobs whose outputs are written; requires --fresh
    #[arg(long, requires = "fresh", conflicts_with = "failed")]
    pub written: bool,
    /// Of these, only jobs of this source
    #[arg(long, value_name = "NAME", conflicts_with = "jobs")]
    pub source: Option<String>,
    /// Of these, only jobs with a fault of this kind (column `fault` of `scribed jobs --failed --csv`)
    #[arg(long, value_name = "KIND", requires = "failed", value_parser = fault_kind)]
    pub kind: Option<String>,
    /// Use what jobs.toml and the sidecars say now, as a new purchase. An unchanged request is not bought again,
    /// unless --pay-again is given
    #[arg(long)]
    pub fresh: bool,
    /// Also continue jobs that may have been bought already: an unknown create, a transcription that is stuck or lost.
    /// They may be paid for twice
    #[arg(long)]
    pub pay_again: bool,
}

#[derive(Debug, Args)]
pub struct BumpArgs {
    /// Job numbers, or paths of recordings; the first one is processed first
    #[arg(value_name = "JOB|PATH", required = true)]
    pub jobs: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Job numbers, or paths of recordings
    #[arg(value_name = "JOB|PATH", required = true)]
    pub jobs: Vec<PathBuf>,
    /// Also delete their transcriptions at the service; also for jobs that were cancelled before
    #[arg(long)]
    pub delete: bool,
}

#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// Job numbers, or paths of recordings
    #[arg(value_name = "JOB|PATH", required_unless_present = "vanished", conflicts_with = "vanished")]
    pub jobs: Vec<PathBuf>,
    /// All ended jobs whose files are gone. A file in a folder that is not mounted does not count as gone
    #[arg(long)]
    pub vanished: bool,
    /// Of these, only jobs of this source
    #[arg(long, value_name = "NAME", requires = "vanished")]
    pub source: Option<String>,
    /// Of these, only jobs that ended at least this long ago, as `30d`
    #[arg(long, value_name = "SPAN", value_parser = humantime::parse_duration, requires = "vanished")]
    pub older_than: Option<Duration>,
    /// Only show what would be removed
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct EraseArgs {
    /// Job numbers, or paths of recordings
    #[arg(value_name = "JOB|PATH", required = true)]
    pub jobs: Vec<PathBuf>,
    /// Erase; without it, the command only shows what it would erase
    #[arg(short, long)]
    pub yes: bool,
    /// Ask no service: its transcriptions stay there
    #[arg(long)]
    pub here_only: bool,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Only these jobs: job numbers, or paths of recordings
    #[arg(value_name = "JOB|PATH", conflicts_with = "source")]
    pub jobs: Vec<PathBuf>,
    /// Write missing outputs again, from the kept result or from the service's; this costs nothing
    #[arg(long)]
    pub repair: bool,
    /// Only jobs of this source
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
}

#[derive(Debug, Args)]
pub struct RenderArgs {
    /// Only these jobs: job numbers, or paths of recordings
    #[arg(value_name = "JOB|PATH", conflicts_with_all = ["source", "only"])]
    pub jobs: Vec<PathBuf>,
    /// Only jobs of this source
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// Only recordings whose paths, relative to their source's folder, match this pattern; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub only: Vec<String>,
    /// Only show what would be changed
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Remove files that are no outputs any more, as of formats that are no longer configured, unless somebody edited them
    #[arg(long)]
    pub prune: bool,
    /// Write missing outputs again
    #[arg(long)]
    pub restore: bool,
}

#[derive(Debug, Args)]
pub struct AcceptArgs {
    /// Files: txt, srt, vtt, ass, ttml or json
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Job of the recording, if the name of the file does not tell it
    #[arg(long, value_name = "JOB|PATH")]
    pub job: Option<PathBuf>,
    /// Take the acceptance of these files back
    #[arg(long)]
    pub undo: bool,
}

#[derive(Debug, Args)]
pub struct CostArgs {
    /// How to group the sums; days and months are in `budget.timezone`
    #[arg(long, value_enum, default_value = "source", value_name = "WHAT")]
    pub by: crate::control::transport::protocol::By,
    /// Only purchases on this day or later
    #[arg(long, visible_alias = "since", value_name = "DATE")]
    pub after: Option<String>,
    /// Only purchases before this day
    #[arg(long, value_name = "DATE")]
    pub before: Option<String>,
    /// Print CSV for a spreadsheet, with a header line (RFC 4180)
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

#[derive(Debug, Args)]
pub struct CaptionsArgs {
    /// What to do with the files
    #[command(subcommand)]
    pub command: CaptionsCommand,
}

/// What is done with caption files. No queue and no service is used.
#[derive(Debug, Subcommand)]
pub enum CaptionsCommand {
    /// Show what in caption files breaks the rules of a profile; exit code 1 if anything does
    Check(CaptionsCheckArgs),
    /// Repair caption files without changing a word: lines, durations, gaps, overlaps, order
    Fix(CaptionsFixArgs),
}

/// Which rules count.
#[derive(Debug, Args)]
pub struct CaptionRuleArgs {
    /// Published rules: default, netflix, bbc, vertical, amazon or arte. Otherwise those of `captions` in jobs.toml if
    /// there are any, else `default`
    #[arg(long, value_name = "NAME", value_parser = caption_profile)]
    pub profile: Option<Profile>,
    /// Language of the captions, as `en`; otherwise that in a file's name, as in talk.en.srt
    #[arg(long, value_name = "CODE")]
    pub language: Option<String>,
}

#[derive(Debug, Args)]
pub struct CaptionsCheckArgs {
    /// SubRip, WebVTT, ASS or TTML files
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Which rules count
    #[command(flatten)]
    pub rules: CaptionRuleArgs,
}

#[derive(Debug, Args)]
pub struct CaptionsFixArgs {
    /// SubRip or WebVTT files; ASS and TTML with --output FILE.srt or FILE.vtt
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Which rules count
    #[command(flatten)]
    pub rules: CaptionRuleArgs,
    /// File for the result, which is replaced; without this and --in-place the result goes to stdout
    #[arg(long, value_name = "FILE", conflicts_with = "in_place")]
    pub output: Option<PathBuf>,
    /// Replace each file that changes; the original stays as FILE.bak, unless that exists
    #[arg(long)]
    pub in_place: bool,
}

#[derive(Debug, Args)]
pub struct Init {
    /// Write every setting with its default and meaning as jobs.toml, and nothing else
    #[arg(long)]
    pub full: bool,
    /// Ask nothing on a terminal: write the file with its defaults
    #[arg(long)]
    pub defaults: bool,
}

#[derive(Debug, Args)]
pub struct ManualArgs {
    /// The page to print; without it, the list of topics
    #[arg(value_name = "TOPIC")]
    pub topic: Option<String>,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write one page for each command into this folder
    #[arg(long, value_name = "FOLDER")]
    pub to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct StateArgs {
    /// What to do
    #[command(subcommand)]
    pub command: StateCommand,
}

/// Commands about the whole queue.
#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// Write jobs, purchases, costs, pauses and accepted texts into a new file, as JSON lines; a name that ends with .gz
    /// compresses it. No daemon may run
    Export(StateFileArgs),
    /// Read such a file into an empty queue. Before anything is bought, the services' lists are read. No daemon may run
    Import(StateFileArgs),
    /// Copy the whole state into a new file: the queue as of one moment, kept results, history, accepted texts. It can be
    /// used while a daemon runs; a name that ends with .gz compresses the file
    Backup(BackupArgs),
    /// Make the state directory of a backup; it must be empty or absent. Before anything is bought, the services' lists
    /// are read
    Restore(StateFileArgs),
    /// Check the state, or a backup: that everything can be read, and that no file is missing
    Check(StateCheckArgs),
    /// Show how much space each part of the state takes
    Size,
}

#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Replace FILE if it is an earlier backup
    #[arg(long)]
    pub replace: bool,
}

#[derive(Debug, Args)]
pub struct StateCheckArgs {
    /// The backup; without it, the state in place
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct StateFileArgs {
    /// The file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct UpgradeArgs {
    /// JSON files, each with parameters or a result; without any, standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

fn caption_profile(text: &str) -> Result<Profile, String> {
    let names = Profile::NAMES.join(", ");
    Profile::parse(text).ok_or_else(|| format!("no profile has this name; the profiles are {names}"))
}

fn fault_kind(text: &str) -> Result<String, String> {
    let names = crate::domain::fault::FaultKind::NAMES;
    let known = names.contains(&text).then(|| text.to_owned());
    known.ok_or_else(|| format!("no fault kind has this name; the kinds are {}", names.join(", ")))
}

fn enrichment(text: &str) -> Result<Enrichment, String> {
    let names = || Enrichment::ALL.map(Enrichment::name).join(", ");
    let named = Enrichment::of_name(text);
    named.ok_or_else(|| format!("no enrichment has this name; the enrichments are {}", names()))
}

fn time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it as 90s, 15m or 2h"))
}

fn moment(text: &str) -> Result<Timestamp, String> {
    timestamps::parse(text).ok_or_else(|| "not a date; write it as 2026-01-31 or 2026-01-31T12:00:00Z".to_owned())
}

fn status(text: &str) -> Result<Status, String> {
    match Status::parse(text) {
        Status::Other(_) => Err("no status has this name; the statuses are queued, processing, done, error".to_owned()),
        known => Ok(known),
    }
}

fn pair(text: &str) -> Result<(String, serde_json::Value), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.into()))
}

fn output(text: &str) -> Result<Format, String> {
    Format::parse(text).ok_or_else(|| format!("no output has this name; the outputs are {}", Format::NAMES.join(", ")))
}

fn stage(text: &str) -> Result<crate::domain::stage::StageKind, String> {
    use crate::domain::stage::StageKind;
    StageKind::parse(text).ok_or_else(|| {
        let names = StageKind::ALL.map(StageKind::name).join(", ");
        format!("no stage has this name; the stages are {names}")
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
