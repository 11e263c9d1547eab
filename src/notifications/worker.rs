//! The task of one target: it reads the history from its own position on, collects events, makes messages and sends them.
//! It stores its queue before it sends, so that a process that is killed at any moment loses no event; a message that was
//! being sent then is sent again, with the same id.

use super::conditions::{note_idle, note_line, note_states};
use super::digest;
use super::message::Message;
use super::observe::{MissingFolders, PassEnd, observe};
use super::queue::{AfterFailure, MessageContent, QueueRules, SealedMessage, TargetQueue};
use super::send::{SendError, Sender};
use super::spool::SpoolFolder;
use crate::blocking::blocking;
use crate::clock::{Clock, Uptime};
use crate::config::model::{NotifyConfig, NotifyTarget};
use crate::control::commands::reload::LatestHandler;
use crate::control::transport::handler::CommandHandler;
use crate::domain::names::Timestamp;
use crate::domain::notification::NotificationEvent;
use crate::domain::stage::StageKind;
use crate::store::contract::{HistoryEntry, StoreError};
use crate::store::history_reader::{HistoryPosition, read_after};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

/// How many lines of the history are read at a time.
const LINES: usize = 10_000;

/// How often a target is looked at that is told of states, not of lines of the history.
const LOOK: Duration = Duration::from_secs(5);

/// The longest time in which nothing is looked at.
const LONGEST: Duration = Duration::from_secs(60);

/// Lines of the history that follow each other so closely are read together.
const TOGETHER: Duration = Duration::from_millis(200);

/// How long after the start an outage does not count as over: by then the engines have tried to reach their services.
const STARTING: Duration = Duration::from_secs(60);

/// The work for one target.
pub struct TargetWorker {
    latest: LatestHandler,
    config: Arc<NotifyConfig>,
    target: NotifyTarget,
    spool: SpoolFolder,
    sender: Result<Sender, SendError>,
    queue: TargetQueue,
    missing: MissingFolders,
    started: Uptime,
    is_save_reported: bool,
}

impl TargetWorker {
    /// Opens a target's queue. A new target begins with what happens from now on.
    pub async fn open(latest: LatestHandler, target: &NotifyTarget) -> Self {
        let handler = latest.get();
        let spool = SpoolFolder::of(&handler.state);
        let (folder, identity, history) = (spool.clone(), target.identity, handler.state.join("history"));
        let loaded = blocking(move || {
            folder.load(&identity).unwrap_or_else(|| {
                let position = HistoryPosition::end(&history).unwrap_or_default();
                TargetQueue { position, ..TargetQueue::default() }
            })
        });
        let mut queue = loaded.await;
        queue.target = target.name();
        let opened = target.clone();
        queue.digest.get_or_insert(handler.clock.wall());
        let mut worker = Self {
            config: Arc::clone(&handler.notify),
            target: target.clone(),
            spool,
            // It reads the certificates of this machine.
            sender: blocking(move || Sender::open(&opened)).await,
            queue,
            missing: MissingFolders::default(),
            started: handler.clock.uptime(),
            is_save_reported: false,
            latest,
        };
        worker.save().await;
        worker
    }

    /// Works until `stop`. A message that is being sent then is sent again later; nothing is left half-stored.
    pub async fn run(mut self, stop: &CancellationToken) {
        let mut steps = self.latest.get().store.steps();
        loop {
            let handler = self.latest.get();
            if let Err(error) = self.turn(&handler, None, stop).await {
                tracing::warn!(target_name = self.target.name(), %error, "scribed cannot read the queue for a notification; it tries again");
            }
            let wait = self.wait(&*handler.clock);
            let clock = Arc::clone(&handler.clock);
            drop(handler);
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = clock.sleep(wait) => {}
                () = next_step(&mut steps, &*clock), if self.hears_steps() => {}
            }
        }
    }

    /// Does what there is to do at the end of a pass: tells of everything so far, and makes one attempt.
    pub async fn finish(mut self, end: &PassEnd) {
        let handler = self.latest.get();
        if let Err(error) = self.turn(&handler, Some(end), &CancellationToken::new()).await {
            tracing::warn!(target_name = self.target.name(), %error, "scribed cannot read the queue for a notification; the next pass does");
        }
    }

    fn hears_steps(&self) -> bool {
        matches!(self.target.event, NotificationEvent::Failed | NotificationEvent::Written | NotificationEvent::Idle)
    }

    fn rules(&self) -> QueueRules {
        let NotifyConfig { window, hourly, quiet, .. } = &*self.config;
        QueueRules { window: *window, hourly: *hourly, quiet: quiet.clone() }
    }

    /// Returns how long nothing has to be done, unless something happens.
    fn wait(&self, clock: &dyn Clock) -> Duration {
        let (now, wall) = (clock.now(), clock.wall());
        let next = self.queue.next(&self.rules(), now, wall).map(|at| at.duration_since(now));
        let look = match self.target.event {
            NotificationEvent::Failed | NotificationEvent::Written => LONGEST,
            NotificationEvent::Digest => {
                let at = self.config.digest_at.next(self.queue.digest.unwrap_or(wall));
                at.duration_since(wall).min(LONGEST)
            }
            NotificationEvent::Idle | NotificationEvent::Outage | NotificationEvent::Budget => LOOK,
        };
        // What cannot be stored is tried again, but not at once.
        let least = if self.is_save_reported { LOOK } else { TOGETHER };
        next.map_or(look, |next| next.min(look)).max(least)
    }

    async fn turn(
        &mut self,
        handler: &CommandHandler,
        end: Option<&PassEnd>,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let clock = &*handler.clock;
        let before = self.queue.clone();
        if self.target.event != NotificationEvent::Digest {
            self.read_history(handler).await?;
        }
        self.look(handler, end).await?;
        let (now, wall, id) = (clock.now(), clock.wall(), new_id());
        match self.target.event {
            NotificationEvent::Digest => {
                let from = self.queue.digest.unwrap_or(wall);
                // A clock that was ahead must not keep the digest back.
                let from = from.min(wall);
                if self.config.digest_at.next(from) <= wall {
                    self.queue.seal_digest(from, wall, now, &id);
                }
            }
            _ => drop(self.queue.seal(&self.rules(), now, wall, end.is_some(), &id)),
        }
        // A position behind lines that mean nothing to the target need not be stored.
        let changed = TargetQueue { position: before.position.clone(), ..self.queue.clone() } != before;
        if changed && !self.save().await {
            // What is not stored is not sent: it would be sent again after each restart.
            return Ok(());
        }
        match self.queue.due(now).cloned() {
            Some(message) => self.attempt(handler, &message, stop).await,
            None => Ok(()),
        }
    }

    async fn read_history(&mut self, handler: &CommandHandler) -> Result<(), StoreError> {
        let history = handler.state.join("history");
        loop {
            let (dir, position) = (history.clone(), self.queue.position.clone());
            let read = blocking(move || read_after(&dir, &position, LINES)).await;
            let piece = read.map_err(|error| StoreError::Unwritable(format!("cannot read the history: {error}")))?;
            let now = handler.clock.now();
            piece.lines.iter().for_each(|line| note_line(&mut self.queue, self.target.event, line, now));
            for line in piece.lines.iter().filter(|line| line.stage == StageKind::Skipped) {
                // `scribed erase` has removed it from the file, which this task replaces.
                if handler.store.job(line.job).await?.is_some_and(|job| job.stage.is_erased()) {
                    self.queue.erase_job(line.job);
                }
            }
            self.queue.position = piece.position;
            if !piece.has_more {
                return Ok(());
            }
        }
    }

    async fn look(&mut self, handler: &CommandHandler, end: Option<&PassEnd>) -> Result<(), StoreError> {
        let event = self.target.event;
        let seen = observe(handler, &self.config, event, &mut self.missing, end).await?;
        let (now, uptime) = (handler.clock.now(), handler.clock.uptime());
        match event {
            NotificationEvent::Outage | NotificationEvent::Budget => {
                let may_end = end.is_some() || uptime.since(self.started) >= STARTING;
                note_states(&mut self.queue, event, &seen, may_end, now);
            }
            NotificationEvent::Idle => {
                let window = if end.is_some() { Duration::ZERO } else { self.config.window };
                note_idle(&mut self.queue, &seen, window, now);
            }
            NotificationEvent::Failed | NotificationEvent::Written | NotificationEvent::Digest => {}
        }
        Ok(())
    }

    async fn attempt(
        &mut self,
        handler: &CommandHandler,
        sealed: &SealedMessage,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let message = self.message(handler, sealed).await?;
        let sent = match &self.sender {
            Ok(sender) => tokio::select! {
                biased;
                sent = sender.send(&message, &*handler.clock) => sent,
                () = stop.cancelled() => return Ok(()),
            },
            Err(error) => Err(error.clone()),
        };
        let (now, name) = (handler.clock.now(), self.target.name());
        match sent {
            Ok(()) => {
                tracing::debug!(target_name = name, id = sealed.id, "scribed delivered a notification");
                self.queue.note_delivery(now);
            }
            Err(SendError { words, retry_after }) => {
                let attempt = sealed.failed + 1;
                match self.queue.note_failure(now, words.clone(), retry_after) {
                    AfterFailure::Again(_) => {
                        tracing::warn!(
                            target_name = name,
                            attempt,
                            reason = words,
                            "a notification was not delivered; scribed tries again for a day"
                        );
                    }
                    AfterFailure::GivenUp(events) => {
                        tracing::error!(
                            target_name = name,
                            attempt,
                            events,
                            reason = words,
                            "a notification was not delivered within a day, and scribed gave it up; `scribed jobs` and `scribed status` still show what it was about"
                        );
                    }
                }
            }
        }
        self.save().await;
        Ok(())
    }

    async fn message(&self, handler: &CommandHandler, sealed: &SealedMessage) -> Result<Message, StoreError> {
        match &sealed.content {
            MessageContent::Batch(batch) => {
                Message::of_batch(&*handler.store, self.target.event, (&sealed.id, sealed.sealed), batch).await
            }
            MessageContent::Digest { from, to } => {
                digest::message(handler, (&sealed.id, sealed.sealed), *from, *to).await
            }
        }
    }

    /// Stores the queue. Returns whether it could.
    async fn save(&mut self) -> bool {
        let (spool, identity, queue) = (self.spool.clone(), self.target.identity, self.queue.clone());
        match blocking(move || spool.save(&identity, &queue)).await {
            Ok(()) => {
                self.is_save_reported = false;
                true
            }
            Err(error) => {
                if !self.is_save_reported {
                    tracing::error!(target_name = self.target.name(), %error, "scribed cannot store a notification, and sends none until it can; nothing is lost");
                    self.is_save_reported = true;
                }
                false
            }
        }
    }
}

/// Makes an id that no other message has.
pub fn new_id() -> String {
    format!("msg_{}", uuid::Uuid::new_v4().simple())
}

/// Returns a moment after the next line of the history, or when lines were missed.
async fn next_step(steps: &mut Receiver<HistoryEntry>, clock: &dyn Clock) {
    if matches!(steps.recv().await, Err(RecvError::Closed)) {
        // The store is being closed: nothing more will happen.
        std::future::pending::<()>().await;
    }
    clock.sleep(TOGETHER).await;
    while steps.try_recv().is_ok() {}
}

/// Returns the time from which the next digest of a target would be, for commands.
pub fn digest_begin(spool: &SpoolFolder, config: &NotifyConfig, now: Timestamp) -> Timestamp {
    const A_DAY: Duration = Duration::from_secs(24 * 3600);
    let targets = config.targets.iter().filter(|target| target.event == NotificationEvent::Digest);
    let last = targets.filter_map(|target| spool.load(&target.identity)?.digest).max();
    last.unwrap_or_else(|| now.saturating_sub(A_DAY))
}
