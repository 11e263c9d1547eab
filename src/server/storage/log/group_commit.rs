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
const WRITES_BEFORE_RETRY: usize = 100;

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
    compacting: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<PendingBatch>,
    /// A written batch, whose memory the next one reuses.
    spare: PendingBatch,
    /// Whether the writer thread waits to be notified.
    idle: bool,
    /// Whether a compaction is requested.
    is_compaction_due: bool,
    /// Whether the last compaction failed, which was then logged.
    failing: bool,
    /// How many batches to write before a compaction is attempted again.
    writes_to_skip: usize,
    closed: bool,
}

/// A batch of lines that are written with one sync, and the replies that wait for it.
#[derive(Default)]
struct PendingBatch {
    batch: LogBatch,
    replies: Vec<CommitReply>,
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
        for work in [write, compact] {
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
        let (reply, answer) = mpsc::sync_channel(1);
        self.enqueue(line, Box::new(move |written| drop(reply.send(written))));
        answer.recv().unwrap_or_else(|_| Err(stopped_error()))
    }

    /// Queues a line to be written, whether somebody waits for it or not. `reply` is called with the result on a thread
    /// of the log, or dropped if the log is closed.
    pub fn enqueue(&self, line: &LogLine, reply: CommitReply) {
        let mut state = self.queue.state();
        if state.closed {
            return;
        }
        let pending = state.open();
        pending.batch.push(line);
        pending.replies.push(reply);
        let notifies = std::mem::take(&mut state.idle);
        drop(state);
        if notifies {
            self.queue.writing.notify_one();
        }
    }

    /// Requests a compaction, which another thread does soon.
    pub fn request_compaction(&self) {
        self.queue.state().is_compaction_due = true;
        self.queue.compacting.notify_one();
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
    fn open(&mut self) -> &mut PendingBatch {
        let is_open = self.waiting.back().is_some_and(|pending| pending.batch.bytes().len() < BATCH);
        if !is_open {
            let spare = std::mem::take(&mut self.spare);
            self.waiting.push_back(spare);
        }
        let last = self.waiting.len() - 1;
        &mut self.waiting[last]
    }

    /// Counts a written batch. Returns whether a compaction is due, because the next volume is wanted.
    fn count_write(&mut self, wants_volume: bool) -> bool {
        self.writes_to_skip = self.writes_to_skip.saturating_sub(1);
        let due = wants_volume && self.writes_to_skip == 0;
        self.is_compaction_due |= due;
        due
    }

    /// Records the result of a compaction. Returns whether a failure is to be logged: once, until a compaction succeeds
    /// again.
    fn finish_compaction(&mut self, well: bool) -> bool {
        let is_first_failure = !well && !self.failing;
        (self.failing, self.writes_to_skip) = (!well, if well { 0 } else { WRITES_BEFORE_RETRY });
        is_first_failure
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.state().closed = true;
        self.writing.notify_all();
        self.compacting.notify_all();
    }

    /// Waits for the next batch; returns `None` when there will be none.
    fn next(&self) -> Option<PendingBatch> {
        let mut state = self.state();
        loop {
            match state.waiting.pop_front() {
                None if state.closed => return None,
                None => state.idle = true,
                pending => return pending,
            }
            state = self.writing.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for a requested compaction; returns `false` when the log is closed and none is requested.
    fn wait_for_compaction(&self) -> bool {
        let mut state = self.state();
        while !state.is_compaction_due && !state.closed {
            state = self.compacting.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::take(&mut state.is_compaction_due)
    }
}

fn write(queue: &Queue, mut log_writer: LogWriter) {
    let _close_on_panic = CloseOnPanic(queue);
    while let Some(mut pending) = queue.next() {
        let written = log_writer.write(&pending.batch);
        for reply in pending.replies.drain(..) {
            reply(written.as_ref().copied().map_err(|error| io::Error::new(error.kind(), error.to_string())));
        }
        pending.batch.clear(BATCH);
        // Called before the queue is locked: it may wait for the disk, and everybody with a line waits for the queue.
        let wants_volume = log_writer.needs_compaction();
        let mut state = queue.state();
        state.spare = pending;
        if state.count_write(wants_volume) {
            queue.compacting.notify_one();
        }
    }
}

fn compact(queue: &Queue, mut log_writer: LogWriter) {
    let _close_on_panic = CloseOnPanic(queue);
    while queue.wait_for_compaction() {
        let compacted = log_writer.compact();
        let is_first_failure = queue.state().finish_compaction(compacted.is_ok());
        if let Some(error) = compacted.err().filter(|_| is_first_failure) {
            tracing::warn!(%error, "cannot compact the log of transcriptions; the service tries again from time to time, and logs it again after a success");
        }
    }
}

/// Closes the queue after a panic, so that nobody waits for ever.
struct CloseOnPanic<'a>(&'a Queue);

impl Drop for CloseOnPanic<'_> {
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
        queue.state().count_write(true);
        assert!(queue.wait_for_compaction());
        assert!(queue.state().finish_compaction(false));
        for _ in 1..WRITES_BEFORE_RETRY {
            queue.state().count_write(true);
            assert!(!queue.wait_for_compaction());
        }
        queue.state().count_write(true);
        assert!(queue.wait_for_compaction());
        assert!(!queue.state().finish_compaction(false), "it was told");
        queue.state().is_compaction_due = true;
        assert!(queue.wait_for_compaction(), "what is asked for is tried at once");
        assert!(!queue.state().finish_compaction(true));
        queue.state().count_write(true);
        assert!(queue.wait_for_compaction());
        assert!(queue.state().finish_compaction(false), "it went well between");
    }
}
