//! The start of the program: parses the arguments, runs the command, prints its error, and returns the exit code.

use crate::cli::args::{Arguments, Color, Command, CommonArgs, LogFormat, QueueReach};
use crate::cli::commands::manual;
use crate::cli::commands::{
    accept, acknowledge, add, bump, cancel, captions, check, cost, drain, erase, explain, forget, harvest, init, jobs,
    notify, once, pause, plan, reconcile, reload, render, retry, run, schema, search, serve, show, state, status,
    status_check, upgrade, verify, web,
};
use crate::cli::render::progress::ProgressDisplay;
use crate::cli::render::terminal;
use crate::cli::render::terminal::LogStyle;
use crate::cli::runtime::exit::{BUG, CommandError};
use crate::cli::runtime::queue_access::QueueAccess;
use crate::cli::runtime::remote_queue::RemoteQueue;
use crate::cli::top::screen;
use crate::config::load::read::{load, load_without_secrets};
use crate::config::model::Config;
use crate::control::transport::client::DaemonClient;
use crate::domain::escape;
use crate::domain::local_times::convert_times;
use crate::domain::names::Timestamp;
use crate::domain::zone::Zone;
use crate::pipeline::engine::FINISHED;
use crate::shortage::Shortage;
use clap::Parser;
use serde_json::Value;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::OnceLock;
use tracing_subscriber::filter::LevelFilter;

/// What every command gets.
pub struct Context {
    /// Flags of every command.
    pub common: CommonArgs,
    /// The display of progress.
    pub progress: ProgressDisplay,
    display_zone: OnceLock<Zone>,
    /// The queue of another machine, if the command is for that.
    remote: OnceLock<RemoteQueue>,
    /// Whether the command ends when the reader of stdout has gone.
    only_lists: bool,
}

impl Context {
    /// Reads the configuration, with its secrets.
    ///
    /// # Errors
    /// All problems of the configuration.
    pub fn config(&self) -> Result<Config, CommandError> {
        Ok(self.with_display_zone(load(&self.common.config)?))
    }

    /// Reads the configuration without its secrets, for commands that do not ask a service: their user need not have
    /// the service's key.
    ///
    /// # Errors
    /// All problems of the configuration.
    pub fn config_without_secrets(&self) -> Result<Config, CommandError> {
        Ok(self.with_display_zone(match self.remote.get() {
            Some(remote) => remote.config.clone(),
            None => load_without_secrets(&self.common.config)?,
        }))
    }

    /// Whether the queue is that of another machine. Then no file of this machine tells anything about it.
    pub fn is_remote(&self) -> bool {
        self.remote.get().is_some()
    }

    /// Returns access to the queue: see [`QueueAccess::find`].
    ///
    /// # Errors
    /// As [`QueueAccess::find`].
    pub async fn queue(&self, config: &Config) -> Result<QueueAccess, CommandError> {
        match self.remote.get() {
            Some(remote) => Ok(QueueAccess::Remote(remote.client.clone())),
            None => QueueAccess::find(config).await,
        }
    }

    /// Returns the daemon, if one runs.
    ///
    /// # Errors
    /// A daemon may run, but this user may not ask it.
    pub fn daemon(&self, config: &Config) -> Result<Option<QueueAccess>, CommandError> {
        match self.remote.get() {
            Some(remote) => Ok(Some(QueueAccess::Remote(remote.client.clone()))),
            None => Ok(DaemonClient::find(&config.state)?.map(QueueAccess::Daemon)),
        }
    }

    /// Connects to the queue of another machine, if one is named.
    async fn connect(&self, command: &Command) -> Result<(), CommandError> {
        let Some(server) = &self.common.remote.server else { return Ok(()) };
        match command.reach() {
            QueueReach::None => Ok(()),
            QueueReach::ThisMachine => Err(CommandError::Usage(
                "this command works on the machine of the queue only: run it there, without --server and SCRIBED_SERVER"
                    .to_owned(),
            )),
            QueueReach::AnyMachine => {
                let remote = RemoteQueue::connect(server, &self.common.remote).await?;
                let _ = self.remote.set(remote);
                Ok(())
            }
        }
    }

    /// Reads the configuration as [`Context::config`] does, for a daemon or a pass. Warnings go to the log.
    ///
    /// # Errors
    /// All problems of the configuration.
    pub fn config_to_run(&self) -> Result<Config, CommandError> {
        let config = self.config()?;
        for warning in &config.warnings {
            tracing::warn!(file = %self.common.config.display(), warning = %warning.sentence, "the configuration is valid, but one of its settings has no effect");
        }
        Ok(config)
    }

    fn with_display_zone(&self, config: Config) -> Config {
        // If a command reads the configuration twice, the time zone of the first one stays.
        let _ = self.display_zone.set(config.display_zone);
        config
    }

    /// Returns the time zone of printed times: with `--json` UTC, otherwise that of the configuration.
    pub fn zone(&self) -> Zone {
        if self.common.json { Zone::default() } else { self.display_zone.get().copied().unwrap_or_default() }
    }

    /// Formats a time with its zone: `2026-11-22 09:01:00 (Europe/Berlin)`.
    pub fn moment(&self, at: Timestamp) -> String {
        self.zone().format_second(at)
    }

    /// Prints a line for people on stdout, with its times in the zone of the configuration; nothing with `--json`.
    pub fn print_line(&self, line: &str) -> io::Result<()> {
        if self.common.json {
            return Ok(());
        }
        self.unless_closed(terminal::print_line(&convert_times(line, self.zone())))
    }

    /// Prints a line for people on stderr, with its times in the zone of [`Context::zone`], also with `--json`.
    pub fn print_error_line(&self, line: &str) {
        terminal::print_error_line(&convert_times(line, self.zone()));
    }

    /// With `--json`, prints an object on one line, with the times in its texts in UTC; otherwise nothing.
    pub fn print_json(&self, object: &Value) -> io::Result<()> {
        if !self.common.json {
            return Ok(());
        }
        self.unless_closed(terminal::print_json(&in_utc(object), false))
    }

    /// A command that acts ends its work, and with its own exit code, also after the reader of stdout has gone, as in
    /// `scribed retry --failed --json | head -1`. A command that only lists ends there.
    pub fn unless_closed(&self, printed: io::Result<()>) -> io::Result<()> {
        match printed {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe && !self.only_lists => Ok(()),
            printed => printed,
        }
    }
}

/// Converts the times in the texts of a value to UTC: an earlier release stored them in other zones.
fn in_utc(value: &Value) -> Cow<'_, Value> {
    if is_in_utc(value) { Cow::Borrowed(value) } else { Cow::Owned(to_utc(value)) }
}

fn is_in_utc(value: &Value) -> bool {
    match value {
        Value::String(text) => matches!(convert_times(text, Zone::UTC), Cow::Borrowed(_)),
        Value::Array(list) => list.iter().all(is_in_utc),
        Value::Object(fields) => fields.values().all(is_in_utc),
        _ => true,
    }
}

fn to_utc(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(convert_times(text, Zone::UTC).into_owned()),
        Value::Array(list) => list.iter().map(to_utc).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), to_utc(value))).collect(),
        other => other.clone(),
    }
}

/// Runs the program.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(terminal::on_panic));
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return print_parse_error(&error),
    };
    let progress = ProgressDisplay::new(&arguments);
    start_log(&arguments, &progress);
    raise_file_limit();
    let only_lists = arguments.command.only_lists();
    let (display_zone, remote) = (OnceLock::new(), OnceLock::new());
    let context = Context { common: arguments.common, progress, display_zone, remote, only_lists };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run_command(&context, &arguments.command)));
    let code = match outcome {
        Ok(Ok(code)) => code,
        Ok(Err(CommandError::Io(error))) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Ok(Err(failure)) => {
            print_failure(&context, &failure);
            failure.exit_code()
        }
        Err(_) => BUG,
    };
    ExitCode::from(code)
}

/// Raises the limit of open files. Many systems start a process with a limit of 1,024 and allow far more on request;
/// the connections of the embedded service, each with a file of its own, could use up 1,024.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const ENOUGH: u64 = 16_384;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if current.is_some_and(|current| current < wanted) {
        let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
        tracing::debug!(wanted, ?raised, "open files");
    }
}

fn run_command(context: &Context, command: &Command) -> Result<u8, CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        context.connect(command).await?;
        match command {
            Command::Run(args) => run::run(context, args).await,
            Command::Once(args) => once::run(context, args).await,
            Command::Status(args) => status::run(context, args).await,
            Command::Top(args) => screen::run(context, args).await,
            Command::Jobs(args) => jobs::run(context, args).await,
            Command::Show(args) => show::run(context, args).await,
            Command::Explain(args) => explain::run(context, args).await,
            Command::Search(args) => search::run(context, args).await,
            Command::Plan(args) => plan::run(context, args).await,
            Command::Add(args) => add::run(context, args).await,
            Command::Retry(args) => retry::run(context, args).await,
            Command::Bump(args) => bump::run(context, args).await,
            Command::Acknowledge(args) => acknowledge::run(context, args).await,
            Command::Cancel(args) => cancel::run(context, args).await,
            Command::Erase(args) => erase::run(context, args).await,
            Command::Forget(args) => forget::run(context, args).await,
            Command::Render(args) => render::run(context, args).await,
            Command::Accept(args) => accept::run(context, args).await,
            Command::Verify(args) => verify::run(context, args).await,
            Command::Pause(args) => pause::pause(context, args).await,
            Command::Resume(args) => pause::resume(context, args).await,
            Command::Reload => reload::run(context).await,
            Command::Drain(args) => drain::run(context, args).await,
            Command::Harvest(args) => harvest::run(context, args).await,
            Command::Reconcile(args) => reconcile::run(context, args).await,
            Command::Cost(args) => cost::run(context, args).await,
            Command::Check => check::run(context).await,
            Command::Init(args) => init::run(context, args).await,
            Command::Schema => schema::config_schema(),
            Command::Completions(args) => schema::completions(args),
            Command::Man(args) => schema::man(args),
            Command::Manual(args) => manual::run(context, args),
            Command::Captions(args) => captions::run(context, args),
            Command::Serve(args) => serve::run(context, args).await,
            Command::Web(args) => web::run(context, args).await,
            Command::Notify(command) => notify::run(context, *command).await,
            Command::State(args) => state::run(context, args).await,
            Command::Upgrade(args) => upgrade::run(context, args),
        }
    });
    // Neither a read that hangs on a dead mount nor the recognition of a segment must keep the process alive.
    runtime.shutdown_timeout(std::time::Duration::from_millis(300));
    outcome
}

/// Prints the error of a command on stderr.
pub fn print_failure(context: &Context, failure: &CommandError) {
    match failure {
        CommandError::Config(problems) => terminal::print_error_text(&problems.report(styled(&context.common))),
        CommandError::Report(report) => terminal::print_error_text(&format!("scribed: {report}")),
        other => {
            let words = other.to_string();
            context.print_error_line(&format!("scribed: {words}"));
            if let Some(shortage) = Shortage::in_words(&words) {
                context.print_error_line(&format!("scribed: {shortage}; then run the command again"));
            }
        }
    }
}

/// Prints the help, the version, or what is wrong with the arguments. An error quotes the arguments, so they are
/// escaped and parsed once more: the error then quotes the escaped ones, which are safe for a terminal.
fn print_parse_error(error: &clap::Error) -> ExitCode {
    let typed = std::env::args_os().map(|argument| OsString::from(escape::line(&argument.to_string_lossy()).as_ref()));
    let harmless = Arguments::try_parse_from(typed).err();
    let shown = harmless.as_ref().unwrap_or(error);
    let is_seen = if shown.use_stderr() { terminal::is_stderr_seen() } else { terminal::is_stdout_seen() };
    let is_styled = is_seen && harmless.is_some() && std::env::var_os("NO_COLOR").is_none();
    let text = if is_styled { shown.render().ansi().to_string() } else { shown.render().to_string() };
    if shown.use_stderr() {
        terminal::print_error_text(&text);
    } else {
        terminal::print_text(&text);
    }
    let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
    let is_plugin = ["status", "--check"].iter().all(|word| typed.iter().any(|typed| typed == word));
    match shown.use_stderr() && is_plugin {
        // For monitoring, exit code 2 would mean critical.
        true => ExitCode::from(status_check::UNKNOWN),
        false => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
    }
}

fn styled(common: &CommonArgs) -> bool {
    match common.color {
        Color::Auto => terminal::is_stderr_seen() && std::env::var_os("NO_COLOR").is_none(),
        Color::Always => true,
        Color::Never => false,
    }
}

fn start_log(arguments: &Arguments, progress: &ProgressDisplay) {
    let common = &arguments.common;
    // A daemon prints nothing but its log.
    let is_daemon = matches!(arguments.command, Command::Run(_));
    let level = match (common.quiet, common.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) if !is_daemon => LevelFilter::WARN,
        (false, 0) => LevelFilter::INFO,
        (false, 1) if is_daemon => LevelFilter::DEBUG,
        (false, 1) => LevelFilter::INFO,
        (false, _) => LevelFilter::DEBUG,
    };
    // The log of a pass has a line for each finished file, though not the other lines of that level.
    let is_pass = matches!(arguments.command, Command::Once(_)) && !common.quiet;
    let finished = if is_pass { level.max(LevelFilter::INFO) } else { level };
    let filter =
        tracing_subscriber::filter::Targets::new().with_target("scribed", level).with_target(FINISHED, finished);
    use tracing_subscriber::field::MakeExt;
    use tracing_subscriber::fmt::format::debug_fn;
    use tracing_subscriber::layer::{Layer, SubscriberExt};
    use tracing_subscriber::util::SubscriberInitExt;
    let style = match common.log_format {
        LogFormat::Json => LogStyle::Json,
        LogFormat::Pretty if styled(common) => LogStyle::Styled,
        LogFormat::Pretty => LogStyle::Plain,
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(progress.writer(style));
    let lines = lines.with_ansi(style == LogStyle::Styled);
    let fields = debug_fn(terminal::write_field).delimited(" ");
    let layer = match common.log_format {
        LogFormat::Pretty => lines.with_target(false).fmt_fields(fields).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(layer.with_filter(filter)).init();
}
