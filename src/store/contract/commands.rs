//! Changes from outside the engine: people's commands, and whatever removes a reason to wait.

use super::StoreError;
use crate::domain::job::Job;
use crate::domain::names::{JobId, SourceName, Timestamp};
use crate::domain::pause::{Pause, PauseScope, Pauses};
use crate::domain::stage::JobEvent;

/// What became of a command. Unless it is [`CommandOutcome::Done`], nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandOutcome {
    /// It was carried out.
    Done,
    /// The job is no longer as the caller saw it: read it again.
    Changed,
    /// A job at this stage does not take the command.
    NotApplicable,
    /// There is no such job.
    NoSuchJob,
}

impl CommandOutcome {
    /// Whether it was carried out.
    pub fn is_done(self) -> bool {
        self == Self::Done
    }
}

/// What became of the jobs of a source that has another name now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Renamed {
    pub done: u64,
    pub held: u64,
    /// The name is another job's.
    pub taken: u64,
}

/// Changes a job whoever holds it. See "Commands" in the head of [`super`].
#[async_trait::async_trait]
pub trait Commands: Send + Sync {
    /// The job takes this event (cancel, retry, forget, …), whoever holds it; its holder's lease ends. `seen` is the
    /// job by which the command was decided: [`CommandOutcome::Changed`] if its stage or round is another one by now.
    /// Durable when it returns.
    async fn overrule(&self, seen: &Job, event: JobEvent, now: Timestamp) -> Result<CommandOutcome, StoreError>;

    /// A job that waits is due now. One that is held (`hold`) goes on as its file was seen: somebody vouches that it is
    /// whole. One that does not know where its transcription is ([`Job::awaits_location`]) asks for it where its service is
    /// now. Not applicable if it has ended.
    async fn wake(&self, job: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError>;

    /// A job comes before all others, the later command before the earlier one. Not applicable if it has ended. Durable
    /// when it returns.
    async fn bump(&self, job: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError>;

    /// A person takes note of how a job ended, failed or written without something: it counts as handled until it
    /// changes. The history gets a line. Not applicable if it did not end so. Durable when it returns.
    async fn acknowledge(&self, job: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError>;

    /// A source has another name in `jobs.toml`: its jobs have that from now on. One of which the new name is another
    /// job's keeps the old one. One that somebody holds keeps it, too, unless `held` are renamed: then its holder's
    /// lease ends, as in [`Commands::overrule`]. Each job is renamed in one step, all of them are not: after a crash
    /// some have the new name, and the next call goes on. Durable when it returns.
    async fn rename_source(
        &self,
        old: &SourceName,
        new: &SourceName,
        held: bool,
        now: Timestamp,
    ) -> Result<Renamed, StoreError>;

    /// Pauses, or with `None` resumes. Durable when it returns what holds now.
    async fn set_pause(&self, scope: &PauseScope, pause: Option<Pause>) -> Result<Pauses, StoreError>;
}
