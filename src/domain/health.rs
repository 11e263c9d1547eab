//! The health of a queue: one pure function from facts to what is wrong. The exit code of a pass and the result of
//! `scribed status --check` are derived from it.

use crate::domain::count::{agree, count};
use crate::domain::job::JobKey;
use crate::domain::missing_enrichment::NOT_UNDERSTOOD;
use crate::domain::names::{JobId, ServiceName, SourceName, Timestamp};
use crate::domain::wait_reason::WaitReason;
use crate::domain::zone::Zone;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// An outage shorter than this is a warning, because most end by themselves. A longer one is critical.
pub const LONG_OUTAGE: Duration = Duration::from_secs(15 * 60);

/// A message that was not delivered within this time is reported: most receivers answer again sooner.
const LATE_DELIVERY: Duration = Duration::from_secs(3600);

/// What is known about a queue when its health is assessed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueFacts {
    /// Failed jobs that nobody has retried, cancelled or acknowledged.
    pub failed: u64,
    /// Incomplete jobs that nobody has acknowledged.
    pub incomplete: u64,
    /// Those of the incomplete jobs that lack nothing that was requested: speech was not understood.
    pub not_understood: u64,
    /// Jobs that have not ended, by what they wait for.
    pub waiting: BTreeMap<WaitReason, WaitingJobs>,
    /// Sources whose folders are missing, or belong to another installation.
    pub away: Vec<AwaySource>,
    /// Manifests and rows that request nothing until somebody corrects them, as messages.
    pub manifests: Vec<String>,
    /// Manifests that were read before and are gone, and whose jobs nobody has forgotten or acknowledged.
    pub gone_manifests: Vec<JobKey>,
    /// The number of files of a plan that were left out.
    pub left_out: u64,
    /// Services that jobs wait for and that do not accept them.
    pub outages: Vec<Outage>,
    /// Budgets with nothing left, as messages: those that somebody must raise.
    pub exhausted: Vec<String>,
    /// Budgets with nothing left until their next period, as messages, and jobs that do not fit before it.
    #[serde(default)]
    pub used_up_for_now: Vec<String>,
    /// What is paused until `scribed resume`: `None` for everything, or a source.
    pub paused: Vec<Option<SourceName>>,
    /// The process that works on the jobs.
    pub process: Process,
    /// The pass was told to stop before its end.
    pub stopped: bool,
    /// Whether a timer runs passes, so that no daemon is expected.
    pub is_by_passes: bool,
    /// A message if the last pass ended too long ago, if none is known, or if the running one began too long ago.
    pub late_pass: Option<String>,
    /// When the running pass of `scribed once` began; `None` if a daemon runs, or nothing.
    pub running_pass: Option<Timestamp>,
    /// Jobs that have made no progress for longer than a person wants.
    pub long_waits: Option<LongWaits>,
    /// Why the state directory cannot be written; `None` if it can.
    #[serde(default)]
    pub state_fault: Option<String>,
    /// Messages to targets of `[notify]` that were not delivered yet.
    pub undelivered: Vec<UndeliveredMessage>,
}

/// A message that waits for its delivery to a target of `[notify]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndeliveredMessage {
    /// The name of the target.
    pub target: String,
    /// How many events wait for the target.
    pub events: u64,
    /// How long the message has been waiting.
    pub age: Duration,
    /// What the last attempt said, if it failed.
    pub error: Option<String>,
}

/// Jobs that have made no progress for long, and the one of them that has waited longest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongWaits {
    /// How many jobs there are.
    pub jobs: u64,
    /// The job that has waited longest.
    pub job: JobId,
    pub key: JobKey,
    /// When it reached its stage.
    pub since: Timestamp,
    pub why: WaitReason,
    /// What it waits for, for people.
    pub words: String,
}

/// Jobs that wait for the same reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingJobs {
    pub jobs: u64,
    pub one: JobId,
}

/// A source whose folder is missing or belongs to another installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaySource {
    pub source: SourceName,
    pub words: String,
    /// Whether another installation has the folder, and this one will claim it when the other gives no sign of life.
    pub is_passing: bool,
}

/// A service that does not accept jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// The service; `None` for all that are needed.
    pub service: Option<ServiceName>,
    pub kind: OutageKind,
    pub words: String,
    pub lasted: Duration,
    /// Whether a pass gave up waiting for the service.
    pub is_given_up: bool,
}

/// Why a service does not accept jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutageKind {
    /// It cannot be reached, its answers are invalid, or it asks for fewer requests.
    Out,
    /// It refuses the key or the account.
    Key,
    /// A person has to decide: it refuses one request after another, or its list cannot be used.
    Question,
    /// A person has to decide what was bought there: the queue may have forgotten it, and the list does not show whose
    /// its transcriptions are. The service itself works.
    Decision,
}

/// The process that works on the jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Process {
    #[default]
    Nobody,
    /// A daemon or a pass runs.
    Runs,
    /// A daemon or a pass answers, but its engine gives no sign of life.
    Hangs,
}

/// The severity for monitoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Ok,
    /// Look at it when there is time.
    Warning,
    /// Somebody has to act.
    Critical,
}

impl Level {
    /// Returns the word that monitoring plugins print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
        }
    }

    /// Returns the exit code of a monitoring plugin.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
        }
    }
}

/// What a reason means for the exit code of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassExit {
    /// 0: everything is done, or will be without a person.
    Done,
    /// 1: somebody has to act.
    Unfinished,
    /// 3: a service refused requests, or could not be reached.
    ServiceOut,
}

impl PassExit {
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Unfinished => 1,
            Self::ServiceOut => 3,
        }
    }
}

/// Something that is wrong or worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The severity for monitoring.
    pub level: Level,
    /// What it means for the exit code of a pass.
    pub exit: PassExit,
    /// A short, stable name for programs.
    pub kind: &'static str,
    pub words: String,
    /// A command that shows more, or that resolves the matter.
    pub suggested_command: Option<String>,
}

/// What is wrong with a queue, the worst first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    pub reasons: Vec<Reason>,
}

impl Health {
    /// Returns the exit code of a pass that ended in this state.
    pub fn exit_code(&self) -> u8 {
        self.reasons.iter().map(|reason| reason.exit).max().unwrap_or(PassExit::Done).code()
    }

    /// Returns the worst severity.
    pub fn level(&self) -> Level {
        self.reasons.iter().map(|reason| reason.level).max().unwrap_or(Level::Ok)
    }

    /// Returns the reasons why the exit code of a pass is not 0.
    pub fn exit_reasons(&self) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().filter(|reason| reason.exit > PassExit::Done)
    }

    /// Returns the reasons that monitoring reports.
    pub fn level_reasons(&self) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().filter(|reason| reason.level > Level::Ok)
    }
}

pub fn assess(facts: &QueueFacts) -> Health {
    let jobs = [failed(facts), incomplete(facts), not_understood(facts), left_out(facts)];
    let mut reasons: Vec<Reason> = (jobs.into_iter().chain([stopped(facts), process(facts)]))
        .flatten()
        .chain(facts.state_fault.iter().map(|words| unwritable_state(words)))
        .chain(facts.outages.iter().map(outage))
        .chain(facts.away.iter().map(away))
        .chain(facts.waiting.iter().filter_map(|(reason, waits)| waiting(facts, *reason, *waits)))
        .chain(facts.manifests.iter().map(|words| manifest(words)))
        .chain(facts.gone_manifests.iter().map(gone_manifest))
        .chain(facts.exhausted.iter().map(|words| exhausted(words)))
        // Where a timer runs passes, it is normal that a backlog uses up the budget of each day.
        .chain(facts.used_up_for_now.iter().filter(|_| !facts.is_by_passes).map(|words| exhausted(words)))
        .chain(facts.paused.iter().map(paused))
        .chain(facts.late_pass.iter().map(|words| late_pass(words)))
        .chain(facts.long_waits.iter().map(long_waits))
        .chain(facts.undelivered.iter().filter(|message| message.age >= LATE_DELIVERY).map(undelivered))
        .collect();
    reasons.sort_by_key(|reason| (std::cmp::Reverse(reason.level), std::cmp::Reverse(reason.exit)));
    Health { reasons }
}

fn reason(level: Level, exit: PassExit, kind: &'static str, words: String, command: Option<&str>) -> Reason {
    Reason { level, exit, kind, words, suggested_command: command.map(str::to_owned) }
}

/// Whatever the queue says, it is of the time before: a full disk keeps a pass from recording its end, too.
fn unwritable_state(words: &str) -> Reason {
    let words = format!("scribed cannot work, since it cannot write its state: {words}");
    reason(Level::Critical, PassExit::Unfinished, "state", words, Some("scribed check"))
}

fn failed(facts: &QueueFacts) -> Option<Reason> {
    if facts.failed == 0 {
        return None;
    }
    let words = format!("{} failed, not retried or acknowledged", count(facts.failed, "job"));
    Some(reason(Level::Critical, PassExit::Unfinished, "failed", words, Some("scribed jobs --failed")))
}

fn incomplete(facts: &QueueFacts) -> Option<Reason> {
    let jobs = facts.incomplete.saturating_sub(facts.not_understood);
    if jobs == 0 {
        return None;
    }
    let state = agree(jobs, "is incomplete: its", "are incomplete: their");
    let words = format!("{} {state} outputs lack something that was requested", count(jobs, "job"));
    Some(reason(Level::Warning, PassExit::Unfinished, "incomplete", words, Some("scribed jobs --incomplete")))
}

/// Of the same kind as [`incomplete`], for those who watch for that kind.
fn not_understood(facts: &QueueFacts) -> Option<Reason> {
    if facts.not_understood == 0 {
        return None;
    }
    let words = format!("in {} {NOT_UNDERSTOOD}", count(facts.not_understood, "job"));
    Some(reason(Level::Warning, PassExit::Unfinished, "incomplete", words, Some("scribed jobs --incomplete")))
}

fn left_out(facts: &QueueFacts) -> Option<Reason> {
    if facts.left_out == 0 {
        return None;
    }
    let were = agree(facts.left_out, "was", "were");
    let words = format!("{} of the plan {were} left out", count(facts.left_out, "file"));
    Some(reason(Level::Ok, PassExit::Unfinished, "left_out", words, Some("scribed plan")))
}

fn stopped(facts: &QueueFacts) -> Option<Reason> {
    let words = || "the pass was stopped before it was complete".to_owned();
    facts.stopped.then(|| reason(Level::Ok, PassExit::Unfinished, "stopped", words(), Some("scribed once")))
}

fn process(facts: &QueueFacts) -> Option<Reason> {
    let open: u64 = facts.waiting.values().map(|waits| waits.jobs).sum();
    match facts.process {
        Process::Runs => None,
        Process::Hangs => {
            let words = "the process that holds the queue answers, but its engine has stopped".to_owned();
            let restart = Some("read its log, and restart it");
            Some(reason(Level::Critical, PassExit::Done, "hangs", words, restart))
        }
        // Where a timer runs passes, it is normal that work waits for the next one.
        Process::Nobody if open == 0 || facts.is_by_passes => None,
        Process::Nobody => {
            let words = format!("no daemon runs, and {} {}", count(open, "job"), agree(open, "waits", "wait"));
            Some(reason(Level::Warning, PassExit::Done, "no_daemon", words, Some("scribed run")))
        }
    }
}

fn outage(outage: &Outage) -> Reason {
    let Outage { service, kind, words, lasted, is_given_up } = outage;
    let is_long = *lasted >= LONG_OUTAGE;
    let awaits_decision = *kind == OutageKind::Decision;
    let (level, kind) = match kind {
        OutageKind::Key => (Level::Critical, "key"),
        OutageKind::Question | OutageKind::Decision => (Level::Critical, "question"),
        OutageKind::Out if is_long => (Level::Critical, "outage"),
        OutageKind::Out => (Level::Warning, "outage"),
    };
    let exit = if *is_given_up && !awaits_decision { PassExit::ServiceOut } else { PassExit::Unfinished };
    // The text of a decision names the commands.
    let command = if awaits_decision { "scribed status" } else { "scribed check" };
    let minutes = lasted.as_secs() / 60;
    let since = if minutes > 0 { format!(" (for {minutes} min)") } else { String::new() };
    // Most texts name the service already.
    let prefix = service.as_ref().filter(|service| !words.contains(service.as_str()));
    let prefix = prefix.map(|service| format!("service {service}: ")).unwrap_or_default();
    reason(level, exit, kind, format!("{prefix}{words}{since}"), Some(command))
}

fn away(away: &AwaySource) -> Reason {
    let level = if away.is_passing { Level::Warning } else { Level::Critical };
    let words = format!("source {}: {}", away.source, away.words);
    reason(level, PassExit::Unfinished, "folder", words, Some("scribed check"))
}

fn waiting(facts: &QueueFacts, why: WaitReason, waits: WaitingJobs) -> Option<Reason> {
    use WaitReason as W;
    if why.resolves_itself() {
        return None;
    }
    let is_moved = facts.process != Process::Nobody;
    let level = match why {
        // The service, the folder or the pause is reported as a whole already.
        W::Service | W::UnknownCreate | W::File | W::Retry if is_moved => Level::Ok,
        W::ServiceRefuses if is_moved => Level::Ok,
        W::PauseWithoutEnd => Level::Ok,
        W::Service | W::UnknownCreate | W::File | W::Retry => Level::Warning,
        // The missing source is reported already.
        W::Folder if !facts.away.is_empty() => Level::Ok,
        _ => Level::Critical,
    };
    let what = match why {
        W::Person => "for a person's decision",
        W::Sidecar => "for a correction of the settings file beside the recording",
        W::NotAllowed => "for a setting in jobs.toml that allows what a manifest names",
        W::WindowNever => "for a window that never opens again",
        W::BudgetRaise => "for a higher budget, or for the length of a recording",
        W::Stuck => "for a transcription that does not end",
        W::Disk => "for an output folder that scribed can write",
        W::Folder => "for a missing folder",
        W::File => "for a file that scribed can read",
        W::Service => "for the service to answer",
        W::ServiceRefuses => "for the service to accept the key or the account",
        W::UnknownCreate => "for the service's list to show whether a create was accepted",
        W::PauseWithoutEnd => "for `scribed resume`",
        _ => "for another attempt",
    };
    let WaitingJobs { jobs, one } = waits;
    let words = format!("{} {} {what}", count(jobs, "job"), agree(jobs, "waits", "wait"));
    Some(reason(level, PassExit::Unfinished, "waiting", words, Some(&format!("scribed show {one}"))))
}

fn manifest(words: &str) -> Reason {
    reason(Level::Critical, PassExit::Unfinished, "manifest", words.to_owned(), Some("scribed plan"))
}

fn gone_manifest(manifest: &JobKey) -> Reason {
    let command = format!("put it back, or scribed acknowledge --manifest {}", manifest.path);
    reason(Level::Warning, PassExit::Done, "manifest_gone", gone_manifest_message(manifest), Some(&command))
}

/// Says that a manifest is gone, and what that means.
pub fn gone_manifest_message(manifest: &JobKey) -> String {
    let JobKey { source, path } = manifest;
    format!("{source}: the manifest {path}, which scribed has read, is gone; nothing more is bought for its rows")
}

fn exhausted(words: &str) -> Reason {
    reason(Level::Warning, PassExit::Done, "budget", words.to_owned(), Some("scribed cost"))
}

fn paused(source: &Option<SourceName>) -> Reason {
    let (words, command) = match source {
        None => ("the queue is paused until `scribed resume`".to_owned(), "scribed resume".to_owned()),
        Some(source) => (
            format!("the source {source} is paused until `scribed resume`"),
            format!("scribed resume --source {source}"),
        ),
    };
    reason(Level::Warning, PassExit::Done, "paused", words, Some(&command))
}

fn late_pass(words: &str) -> Reason {
    reason(Level::Warning, PassExit::Done, "late_pass", words.to_owned(), Some("scribed status"))
}

fn undelivered(message: &UndeliveredMessage) -> Reason {
    let UndeliveredMessage { target, events, age, error } = message;
    let (hours, events) = (age.as_secs() / 3600, count(*events, "event"));
    let why = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    let words = format!("notifications to {target} are not delivered, for {hours} h ({events}){why}");
    reason(Level::Warning, PassExit::Done, "notifications", words, Some("scribed notify list"))
}

fn long_waits(waits: &LongWaits) -> Reason {
    let LongWaits { jobs, job, key, since, why, words } = waits;
    let since = Zone::UTC.format_minute(*since);
    let name = format!("job {job}, {key}");
    let who = match jobs {
        1 => format!("{name}, has made no progress since {since}"),
        jobs => format!("{jobs} jobs make no progress; the first, {name}, since {since}"),
    };
    let what = match why {
        WaitReason::Budget => "the budget",
        WaitReason::BudgetRaise => "a higher budget",
        WaitReason::Window | WaitReason::WindowNever => "its window",
        WaitReason::MissingFile => "its file, which does not exist",
        WaitReason::Pause | WaitReason::PauseWithoutEnd => "the end of a pause",
        WaitReason::Turn => "its turn",
        _ => words,
    };
    let remedy = match why {
        WaitReason::Budget | WaitReason::BudgetRaise => "raise the budget, or allow a longer --max-wait".to_owned(),
        WaitReason::Window | WaitReason::WindowNever => {
            "start passes while the window is open, or change `submit`".to_owned()
        }
        WaitReason::MissingFile => "supply the file, or correct its row".to_owned(),
        WaitReason::Pause | WaitReason::PauseWithoutEnd => "scribed resume".to_owned(),
        WaitReason::Turn => format!("check that passes run and how much they buy: scribed show {job}"),
        _ => format!("scribed show {job}"),
    };
    reason(Level::Warning, PassExit::Done, "long_wait", format!("{who}; it waits for: {what}"), Some(&remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::{ServiceName, SourceName};
    use crate::domain::path::RelPath;

    fn waiting(each: &[WaitReason]) -> QueueFacts {
        let waits = |why: &WaitReason| (*why, WaitingJobs { jobs: 2, one: JobId(7) });
        QueueFacts { waiting: each.iter().map(waits).collect(), process: Process::Runs, ..QueueFacts::default() }
    }

    fn outage(kind: OutageKind, minutes: u64, is_given_up: bool) -> QueueFacts {
        let (service, words) = (Some(ServiceName::new("s")), "it is out".to_owned());
        let lasted = Duration::from_secs(minutes * 60);
        let outages = vec![Outage { service, kind, words, lasted, is_given_up }];
        QueueFacts { outages, process: Process::Runs, ..QueueFacts::default() }
    }

    fn judged(facts: &QueueFacts) -> (u8, Level) {
        let health = assess(facts);
        (health.exit_code(), health.level())
    }

    #[test]
    fn what_comes_by_itself_is_no_reason() {
        use WaitReason as W;
        let all = [
            W::Settle,
            W::Transcription,
            W::Duplicate,
            W::Turn,
            W::Hold,
            W::MissingFile,
            W::Budget,
            W::Window,
            W::Spool,
            W::Pause,
        ];
        assert!(all.iter().all(|why| why.resolves_itself()));
        assert_eq!(assess(&waiting(&all)), Health::default());
    }

    #[test]
    fn everything_else_that_is_waited_for_ends_a_pass_with_1_and_most_of_it_is_critical() {
        use WaitReason as W;
        for why in [W::Person, W::Sidecar, W::NotAllowed, W::BudgetRaise, W::WindowNever, W::Stuck, W::Disk, W::Folder]
        {
            assert_eq!(judged(&waiting(&[why])), (1, Level::Critical), "{why:?}");
            assert!(
                assess(&waiting(&[why])).reasons[0].suggested_command.as_deref() == Some("scribed show 7"),
                "{why:?}"
            );
        }
        for why in [W::Service, W::ServiceRefuses, W::UnknownCreate, W::File, W::Retry, W::PauseWithoutEnd] {
            assert_eq!(judged(&waiting(&[why])), (1, Level::Ok), "{why:?}: who moves the jobs goes on with it");
            let at_rest = QueueFacts { process: Process::Nobody, ..waiting(&[why]) };
            assert!(assess(&at_rest).level() > Level::Ok, "{why:?}");
        }
        let refused = QueueFacts { process: Process::Nobody, ..waiting(&[W::ServiceRefuses]) };
        assert_eq!(judged(&refused), (1, Level::Critical), "nobody tells more of it");
    }

    #[test]
    fn failed_jobs_are_critical_and_incomplete_ones_a_warning_and_both_end_a_pass_with_1() {
        let failed = QueueFacts { failed: 3, ..QueueFacts::default() };
        assert_eq!(judged(&failed), (1, Level::Critical));
        let incomplete = QueueFacts { incomplete: 1, ..QueueFacts::default() };
        assert_eq!(judged(&incomplete), (1, Level::Warning));
        let unheard = QueueFacts { incomplete: 3, not_understood: 2, ..QueueFacts::default() };
        assert_eq!(judged(&unheard), (1, Level::Warning));
        let words: Vec<String> = assess(&unheard).reasons.into_iter().map(|reason| reason.words).collect();
        let lacks = "1 job is incomplete: its outputs lack something that was requested";
        assert_eq!(words, [lacks, "in 2 jobs speech was not understood"]);
        let only = QueueFacts { incomplete: 1, not_understood: 1, ..QueueFacts::default() };
        assert_eq!(assess(&only).reasons.len(), 1);
        assert_eq!(judged(&QueueFacts::default()), (0, Level::Ok));
    }

    #[test]
    fn an_outage_is_a_warning_until_it_lasts_and_a_refused_key_is_critical_at_once() {
        assert_eq!(judged(&outage(OutageKind::Out, 14, false)), (1, Level::Warning));
        assert_eq!(judged(&outage(OutageKind::Out, 15, false)), (1, Level::Critical));
        assert_eq!(judged(&outage(OutageKind::Key, 0, false)), (1, Level::Critical));
        assert_eq!(judged(&outage(OutageKind::Question, 0, false)), (1, Level::Critical));
    }

    /// The service works: only a person keeps the pass from going on.
    #[test]
    fn a_decision_about_a_list_is_no_outage() {
        let facts = outage(OutageKind::Decision, 0, true);
        assert_eq!(judged(&facts), (1, Level::Critical));
        assert_eq!(assess(&facts).reasons[0].kind, "question");
    }

    #[test]
    fn a_service_that_a_pass_gave_up_comes_before_everything_else() {
        let facts = QueueFacts { failed: 1, ..outage(OutageKind::Out, 15, true) };
        assert_eq!(judged(&facts), (3, Level::Critical));
        assert_eq!(assess(&facts).exit_reasons().count(), 2, "the failed job is told too");
    }

    #[test]
    fn without_a_daemon_waiting_work_is_a_warning_unless_passes_are_run() {
        let nobody = QueueFacts { process: Process::Nobody, ..waiting(&[WaitReason::Window]) };
        assert_eq!(judged(&nobody), (0, Level::Warning));
        assert_eq!(judged(&QueueFacts { process: Process::Nobody, ..QueueFacts::default() }), (0, Level::Ok));
        let by_passes = QueueFacts { is_by_passes: true, ..nobody };
        assert_eq!(judged(&by_passes), (0, Level::Ok));
        assert_eq!(judged(&QueueFacts { late_pass: Some("late".to_owned()), ..by_passes }), (0, Level::Warning));
        assert_eq!(judged(&QueueFacts { process: Process::Hangs, ..QueueFacts::default() }), (0, Level::Critical));
    }

    #[test]
    fn folders_manifests_budgets_and_pauses() {
        let away = |is_passing| {
            let away = AwaySource { source: SourceName::new("s"), words: "it is away".to_owned(), is_passing };
            QueueFacts { away: vec![away], ..QueueFacts::default() }
        };
        assert_eq!(judged(&away(false)), (1, Level::Critical));
        assert_eq!(judged(&away(true)), (1, Level::Warning), "another installation has it");
        let of_manifest = QueueFacts { manifests: vec!["a row is wrong".to_owned()], ..QueueFacts::default() };
        assert_eq!(judged(&of_manifest), (1, Level::Critical));
        let gone = JobKey { source: SourceName::new("s"), path: RelPath::new("may.csv") };
        let is_gone = QueueFacts { gone_manifests: vec![gone], ..QueueFacts::default() };
        assert_eq!(judged(&is_gone), (0, Level::Warning), "somebody may have removed it on purpose");
        let spent = QueueFacts { used_up_for_now: vec!["budget.day is used up".to_owned()], ..QueueFacts::default() };
        let nightly = QueueFacts { is_by_passes: true, ..spent.clone() };
        assert_eq!(assess(&nightly).level(), Level::Ok, "the next pass has the budget of another day");
        let raise = QueueFacts { exhausted: vec!["budget.total is used up".to_owned()], ..nightly };
        assert_eq!(assess(&raise).level(), Level::Warning);
        assert_eq!(judged(&spent), (0, Level::Warning));
        let paused = QueueFacts { paused: vec![None], ..QueueFacts::default() };
        assert_eq!(judged(&paused), (0, Level::Warning));
        assert_eq!(judged(&QueueFacts { left_out: 1, ..QueueFacts::default() }), (1, Level::Ok));
        assert_eq!(judged(&QueueFacts { stopped: true, ..QueueFacts::default() }), (1, Level::Ok));
    }

    #[test]
    fn a_job_that_waits_too_long_is_a_warning_that_says_what_to_do() {
        let waits = |jobs, why| LongWaits {
            jobs,
            job: JobId(3),
            key: JobKey { source: SourceName::new("s"), path: RelPath::new("a.wav") },
            since: Timestamp(0),
            why,
            words: "what the job says".to_owned(),
        };
        let said = |jobs, why| {
            let facts = QueueFacts { long_waits: Some(waits(jobs, why)), is_by_passes: true, ..QueueFacts::default() };
            assert_eq!(judged(&facts), (0, Level::Warning));
            let reason = assess(&facts).reasons.remove(0);
            (reason.words, reason.suggested_command.unwrap())
        };
        let (words, remedy) = said(1, WaitReason::MissingFile);
        assert_eq!(
            words,
            "job 3, s/a.wav, has made no progress since 1970-01-01 00:00 (UTC); it waits for: its file, which does not exist"
        );
        assert_eq!(remedy, "supply the file, or correct its row");
        let (words, _) = said(1, WaitReason::Retry);
        assert!(words.ends_with("it waits for: what the job says"), "{words}");
        let (words, remedy) = said(8, WaitReason::Window);
        assert!(words.starts_with("8 jobs make no progress; the first, job 3, s/a.wav, since "), "{words}");
        assert!(remedy.contains("`submit`"), "{remedy}");
    }

    #[test]
    fn facts_of_another_release_are_read() {
        let facts: QueueFacts = serde_json::from_str(r#"{"failed":2,"news":true}"#).unwrap();
        assert_eq!(judged(&facts), (1, Level::Critical));
        let waiting = waiting(&[WaitReason::MissingFile]);
        assert_eq!(serde_json::from_str::<QueueFacts>(&serde_json::to_string(&waiting).unwrap()).unwrap(), waiting);
    }

    #[test]
    fn a_message_that_is_late_is_a_warning_and_changes_no_exit_code() {
        let of = |minutes: u64| {
            let (target, error) = ("on_failed 1 (post)".to_owned(), Some("refused".to_owned()));
            let age = Duration::from_secs(minutes * 60);
            let undelivered = vec![UndeliveredMessage { target, events: 2, age, error }];
            QueueFacts { undelivered, ..QueueFacts::default() }
        };
        assert_eq!(judged(&of(59)), (0, Level::Ok));
        assert_eq!(judged(&of(60)), (0, Level::Warning));
        let words = assess(&of(150)).reasons.remove(0).words;
        assert_eq!(words, "notifications to on_failed 1 (post) are not delivered, for 2 h (2 events): refused");
    }
}
