//! The command line.

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
    /// One pass: find everything, see every job to its end, then a summary
    Once(Once),
    /// How many jobs are where, and what they wait for
    Status,
    /// The jobs, one a line
    Jobs(Jobs),
    /// One job: where it is, why, what happens next, and its history
    Show(Show),
    /// Configuration, key, service, folders, clock and tools: each with a verdict and a mend
    Check,
    /// Writes a commented jobs.toml
    Init,
    /// The transcription service itself, for others on the site
    Serve,
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
}

/// `scribed jobs`.
#[derive(Debug, Args)]
pub struct Jobs {
    /// Only jobs at this stage (found, settled, probed, uploaded, submitting, submitted, fetched,
    /// following, written, skipped, failed); may be repeated
    #[arg(long, value_name = "STAGE", value_parser = stage)]
    pub stage: Vec<crate::domain::stage::StageKind>,
}

/// `scribed show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The job's number, or the path of its recording
    #[arg(value_name = "JOB")]
    pub job: PathBuf,
}

fn time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it as 90s, 15m or 2h"))
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
