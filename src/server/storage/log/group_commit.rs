//! Whoever waits for the ledger: all who come while it is written are written next, with one sync, by a
//! thread of its own. Another one clears away what is not needed any more.
//!
//! One sync at a time: each costs the processor as much as a few creates, and several at once only divide
//! those who wait among them.

use crate::server::storage::log::ledger::{LogBatch, LogLine, TranscriptionLog};
use crate::server::storage::log::writer::LogWriter;
use std::collections::VecDeque;
use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// After a tidying that failed so many are written before room is wanted again: where a disk is full, each
/// attempt would write a volume in vain.
const REST: usize = 100;

/// Bytes that are written with one sync, about.
const BATCH: usize = 1 << 20;

/// Takes lines for the ledger. Dropped, it writes what it has taken, and then stops.
pub struct GroupCommit {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    writing: Condvar,
    tidying: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Order>,
    /// Whose memory the next ones take.
    spare: Order,
    /// Nobody writes before somebody rings.
    idle: bool,
    /// Something can be cleared away.
    untidy: bool,
    /// The last tidying failed, and that was told.
    failing: bool,
    /// Writes before room is wanted again.
    rest: usize,
    closed: bool,
}

/// What is written with one sync.
#[derive(Default)]
struct Order {
    batch: LogBatch,
    told: Vec<CommitReply>,
}

/// Who waits for the answer.
pub type CommitReply = Box<dyn FnOnce(io::Result<()>) + Send>;

impl GroupCommit {
    /// Begins to write to a ledger.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn start(ledger: &Arc<TranscriptionLog>) -> io::Result<Self> {
        let mut committer = Self { queue: Arc::default(), threads: Vec::new() };
        for work in [write, tidy] {
            let (queue, log_writer) = (Arc::clone(&committer.queue), LogWriter::new(Arc::clone(ledger)));
            let thread = thread::Builder::new().name("ledger".to_owned()).spawn(move || work(&queue, log_writer))?;
            committer.threads.push(thread);
        }
        Ok(committer)
    }

    /// Has a line written, for a thread that may wait.
    ///
    /// # Errors
    /// Those of the file system: then the line is not there.
    pub fn write_and_wait(&self, line: &LogLine) -> io::Result<()> {
        let (told, answer) = mpsc::sync_channel(1);
        self.enqueue(line, Box::new(move |written| drop(told.send(written))));
        answer.recv().unwrap_or_else(|_| Err(stopped_error()))
    }

    /// Has a line written, whether somebody waits for it or not. Told how it went, by a thread of the
    /// ledger; dropped without a word, where the ledger is not written any more.
    pub fn enqueue(&self, line: &LogLine, told: CommitReply) {
        let mut state = self.queue.state();
        if state.closed {
            return;
        }
        let order = state.open();
        order.batch.push(line);
        order.told.push(told);
        let rings = std::mem::take(&mut state.idle);
        drop(state);
        if rings {
            self.queue.writing.notify_one();
        }
    }

    /// Has cleared away what is not needed any more, some time soon.
    pub fn request_compaction(&self) {
        self.queue.state().untidy = true;
        self.queue.tidying.notify_one();
    }

    /// Writes what was taken, takes no more, and stops.
    pub fn close(&mut self) {
        self.queue.close();
        // Whoever holds the committer last may be one of those that are told.
        let others = self.threads.drain(..).filter(|thread| thread.thread().id() != thread::current().id());
        for thread in others {
            // A panic in it was told when it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for GroupCommit {
    fn drop(&mut self) {
        self.close();
    }
}

/// Nothing is written any more.
pub fn stopped_error() -> io::Error {
    io::Error::other("the log of transcriptions is closed")
}

impl State {
    /// What takes the next line.
    fn open(&mut self) -> &mut Order {
        let is_open = self.waiting.back().is_some_and(|order| order.batch.bytes().len() < BATCH);
        if !is_open {
            let spare = std::mem::take(&mut self.spare);
            self.waiting.push_back(spare);
        }
        let last = self.waiting.len() - 1;
        &mut self.waiting[last]
    }

    /// One more batch was written; whether a tidying is due, for room is wanted.
    fn wrote(&mut self, wants_room: bool) -> bool {
        self.rest = self.rest.saturating_sub(1);
        let due = wants_room && self.rest == 0;
        self.untidy |= due;
        due
    }

    /// A tidying is over; whether it is to be told that it failed: once, until one goes well again.
    fn tidied(&mut self, well: bool) -> bool {
        let is_news = !well && !self.failing;
        (self.failing, self.rest) = (!well, if well { 0 } else { REST });
        is_news
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.state().closed = true;
        self.writing.notify_all();
        self.tidying.notify_all();
    }

    /// What is to be written; `None` when there will be nothing more.
    fn next(&self) -> Option<Order> {
        let mut state = self.state();
        loop {
            match state.waiting.pop_front() {
                None if state.closed => return None,
                None => state.idle = true,
                order => return order,
            }
            state = self.writing.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for something to be tidied; `false` when there is no more of it.
    fn wants_tidying(&self) -> bool {
        let mut state = self.state();
        while !state.untidy && !state.closed {
            state = self.tidying.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::take(&mut state.untidy)
    }
}

fn write(queue: &Queue, mut log_writer: LogWriter) {
    let _last_will = LastWill(queue);
    while let Some(mut order) = queue.next() {
        let written = log_writer.write(&order.batch);
        for told in order.told.drain(..) {
            told(written.as_ref().copied().map_err(|error| io::Error::new(error.kind(), error.to_string())));
        }
        order.batch.clear(BATCH);
        // Asked first: it may wait for the disk, and whoever has a line to be written waits for the queue.
        let wants_room = log_writer.needs_compaction();
        let mut state = queue.state();
        state.spare = order;
        if state.wrote(wants_room) {
            queue.tidying.notify_one();
        }
    }
}

fn tidy(queue: &Queue, mut log_writer: LogWriter) {
    let _last_will = LastWill(queue);
    while queue.wants_tidying() {
        let tidied = log_writer.compact();
        let is_news = queue.state().tidied(tidied.is_ok());
        if let Some(error) = tidied.err().filter(|_| is_news) {
            tracing::warn!(%error, "cannot compact the log of transcriptions; the service tries again from time to time, and logs it again after a success");
        }
    }
}

/// After a panic nobody may wait for ever.
struct LastWill<'a>(&'a Queue);

impl Drop for LastWill<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
            // They may ask for more when they are dropped.
            let waiting = std::mem::take(&mut self.0.state().waiting);
            drop(waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tidying_that_fails_is_told_once_and_not_repeated_at_every_write() {
        let queue = Queue::default();
        // Nothing is waited for.
        queue.state().closed = true;
        queue.state().wrote(true);
        assert!(queue.wants_tidying());
        assert!(queue.state().tidied(false));
        for _ in 1..REST {
            queue.state().wrote(true);
            assert!(!queue.wants_tidying());
        }
        queue.state().wrote(true);
        assert!(queue.wants_tidying());
        assert!(!queue.state().tidied(false), "it was told");
        queue.state().untidy = true;
        assert!(queue.wants_tidying(), "what is asked for is tried at once");
        assert!(!queue.state().tidied(true));
        queue.state().wrote(true);
        assert!(queue.wants_tidying());
        assert!(queue.state().tidied(false), "it went well between");
    }
}
