//! Writes to the log in groups: all lines that arrive while the log is written are written next, with one sync, by a
//! dedicated thread. Another thread compacts the log.
//!
//! There is one sync at a time. Each costs the processor as much as a few creates, and several at once would only
//! divide the waiting lines among them.

use crate::server::storage::log::ledger::{LogBatch, LogLine, TranscriptionLog};
use crate::server::storage::log::writer::LogWriter;
use std::collections::VecDeque;
use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// After a failed compaction, this many batches are written before one is attempted again to prepare the next volume:
/// on a full disk each attempt would write a volume in vain.
const REST: usize = 100;

/// How many bytes are written with one sync, about.
const BATCH: usize = 1 << 20;

/// Accepts lines for the log. When dropped, it writes what it has accepted, and then stops.
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
    /// A written batch, whose memory the next one reuses.
    spare: Order,
    /// Whether the writer thread waits to be notified.
    idle: bool,
    /// Whether a compaction is requested.
    untidy: bool,
    /// Whether the last compaction failed, which was then logged.
    failing: bool,
    /// How many batches to write before a compaction is attempted again.
    rest: usize,
    closed: bool,
}

/// A batch of lines that are written with one sync, and the replies that wait for it.
#[derive(Default)]
struct Order {
    batch: LogBatch,
    told: Vec<CommitReply>,
}

/// Called with the result of the write.
pub type CommitReply = Box<dyn FnOnce(io::Result<()>) + Send>;

impl GroupCommit {
    /// Starts the threads that write and compact a log.
    ///
    /// # Errors
    /// The system cannot start more threads.
    pub fn start(ledger: &Arc<TranscriptionLog>) -> io::Result<Self> {
        let mut committer = Self { queue: Arc::default(), threads: Vec::new() };
        for work in [write, tidy] {
            let (queue, log_writer) = (Arc::clone(&committer.queue), LogWriter::new(Arc::clone(ledger)));
            let thread = thread::Builder::new().name("ledger".to_owned()).spawn(move || work(&queue, log_writer))?;
            committer.threads.push(thread);
        }
        Ok(committer)
    }

    /// Writes a line and waits for the sync. Blocks the thread.
    ///
    /// # Errors
    /// Errors of the file system: the line is then not in the log.
    pub fn write_and_wait(&self, line: &LogLine) -> io::Result<()> {
        let (told, answer) = mpsc::sync_channel(1);
        self.enqueue(line, Box::new(move |written| drop(told.send(written))));
        answer.recv().unwrap_or_else(|_| Err(stopped_error()))
    }

    /// Queues a line to be written, whether somebody waits for it or not. `told` is called with the result on a thread
    /// of the log, or dropped if the log is closed.
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

    /// Requests a compaction, which another thread does soon.
    pub fn request_compaction(&self) {
        self.queue.state().untidy = true;
        self.queue.tidying.notify_one();
    }

    /// Writes the accepted lines, accepts no more, and stops the threads.
    pub fn close(&mut self) {
        self.queue.close();
        // The last owner of this value may be dropped on one of these threads, by a reply.
        let others = self.threads.drain(..).filter(|thread| thread.thread().id() != thread::current().id());
        for thread in others {
            // A panic in the thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for GroupCommit {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns the error for a log that is closed.
pub fn stopped_error() -> io::Error {
    io::Error::other("the log of transcriptions is closed")
}

impl State {
    /// Returns the batch that the next line is added to.
    fn open(&mut self) -> &mut Order {
        let is_open = self.waiting.back().is_some_and(|order| order.batch.bytes().len() < BATCH);
        if !is_open {
            let spare = std::mem::take(&mut self.spare);
            self.waiting.push_back(spare);
        }
        let last = self.waiting.len() - 1;
        &mut self.waiting[last]
    }

    /// Counts a written batch. Returns whether a compaction is due, because the next volume is wanted.
    fn wrote(&mut self, wants_room: bool) -> bool {
        self.rest = self.rest.saturating_sub(1);
        let due = wants_room && self.rest == 0;
        self.untidy |= due;
        due
    }

    /// Records the result of a compaction. Returns whether a failure is to be logged: once, until a compaction succeeds
    /// again.
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

    /// Waits for the next batch; returns `None` when there will be none.
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

    /// Waits for a requested compaction; returns `false` when the log is closed and none is requested.
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
        // Called before the queue is locked: it may wait for the disk, and everybody with a line waits for the queue.
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

/// Closes the queue after a panic, so that nobody waits for ever.
struct LastWill<'a>(&'a Queue);

impl Drop for LastWill<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
            // The dropped replies may lock the state again, so the lock is not held here.
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
        // With a closed queue, nothing waits.
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
