//! Changes from outside the engine: people's commands, and whatever removes a reason to wait.

use super::StoreError;
use crate::domain::job::Job;
use crate::domain::names::{JobId, SourceName, Timestamp};
use crate::domain::pause::{Pause, PauseScope, Pauses};
use crate::domain::stage::JobEvent;

/// Result of a command. Unless it is [`CommandOutcome::Done`], nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandOutcome {
    /// The command was carried out.
    Done,
    /// The job is no longer as the caller saw it: read it again.
    Changed,
    /// A job at this stage does not take the command.
    NotApplicable,
    /// There is no such job.
    NoSuchJob,
}

impl CommandOutcome {
    /// Whether the command was carried out.
    pub fn is_done(self) -> bool {
        self == Self::Done
    }
}

/// How many jobs of a source were renamed, and how many were not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Renamed {
    pub done: u64,
    pub held: u64,
    /// The new name already belongs to another job.
    pub taken: u64,
}

/// Changes a job whoever holds it. See "Commands" in the head of [`super`].
#[async_trait::async_trait]
pub trait Commands: Send + Sync {
    /// Applies an event (cancel, retry, forget, …) to a job, whoever holds it, and ends its holder's lease. `seen` is
    /// the job by which the command was decided: returns [`CommandOutcome::Changed`] if the job's stage or purchase
    /// number has changed since. Durable when it returns.
    async fn overrule(&self, seen: &Job, event: JobEvent, now: Timestamp) -> Result<CommandOutcome, StoreError>;

    /// Makes a waiting job due now. If the job is held (`hold`), the caller vouches that its file is whole, and the
    /// job goes on with the file as it was seen. If the job does not know where its transcription is
    /// ([`Job::awaits_location`]), it asks for it at the service's current address. Not applicable if the job has
    /// ended.
    async fn wake(&self, job: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError>;

    /// Puts a job before all others, also before those that were bumped earlier. Not applicable if the job has ended.
    /// Durable when it returns.
    async fn bump(&self, job: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError>;

    /// Notes that a person knows how a job ended, failed or written without something: the job counts as handled until
    /// it changes. A job whose answer is in doubt ([`Job::awaits_confirmation`]) goes on with it, and so does every job of
    /// the same purchase. The history gets a line. Not applicable to another job. Durable when it returns.
    async fn acknowledge(&self, job: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError>;

    /// Adds a line to the history of a job: which command a person gave, and who. Nothing if there is no such job.
    async fn note_command(&self, job: JobId, words: String, now: Timestamp) -> Result<(), StoreError>;

    /// Removes the history of a job for good, and returns how many lines it had. Durable when it returns.
    async fn erase_history(&self, job: JobId) -> Result<u64, StoreError>;

    /// Gives the jobs of a source that has another name in `jobs.toml` the new name. A job keeps the old name if the
    /// new one already belongs to another job. A held job keeps it too, unless `held` is set: then its holder's lease
    /// ends, as in [`Commands::overrule`]. Each job is renamed in one step, but not all of them together: after a
    /// crash some have the new name, and the next call continues. Durable when it returns.
    async fn rename_source(
        &self,
        old: &SourceName,
        new: &SourceName,
        held: bool,
        now: Timestamp,
    ) -> Result<Renamed, StoreError>;

    /// Sets a pause, or ends it with `None`. Returns all pauses. Durable when it returns.
    async fn set_pause(&self, scope: &PauseScope, pause: Option<Pause>) -> Result<Pauses, StoreError>;
}
