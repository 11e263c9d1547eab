//! Whoever waits for the ledger: all who wait at once are written with one sync, by threads of its own.

use crate::server::ledger::{Ledger, Line};
use crate::server::pen::Pen;
use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Syncs at once. A disk that is kept busy answers each of them sooner.
const SYNCS: usize = 4;

/// So many at least wait before another sync is begun beside one that is under way: each costs the
/// processor as much as a few creates.
const WORTH_A_SYNC: usize = 8;

/// And this part of those that are being synced: so their number grows with the crowd, not that of the syncs.
const SHARE: usize = 2;

/// After a tidying that failed so many are written before room is wanted again: where a disk is full, each
/// attempt would write a volume in vain.
const REST: usize = 100;

/// Bytes that are written with one sync, about.
const BATCH: usize = 1 << 20;

/// Takes lines for the ledger. Dropped, it writes what it has taken, and then stops.
pub struct Committer {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<Order>,
    /// Lines that are being synced.
    syncing: usize,
    /// Something can be cleared away.
    untidy: bool,
    tidying: bool,
    /// The last tidying failed, and that was told.
    failing: bool,
    /// Writes before room is wanted again.
    rest: usize,
    closed: bool,
}

struct Order {
    line: Line,
    told: Told,
}

/// Who waits for the answer.
pub type Told = Box<dyn FnOnce(io::Result<()>) + Send>;

/// What a thread does next.
enum Task {
    Write(Vec<Order>),
    Tidy,
    Stop,
}

impl Committer {
    /// Begins to write to a ledger.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn start(ledger: &Arc<Ledger>) -> io::Result<Self> {
        let mut committer = Self { queue: Arc::default(), threads: Vec::new() };
        for _ in 0..SYNCS {
            let (queue, pen) = (Arc::clone(&committer.queue), Pen::new(Arc::clone(ledger)));
            let thread = thread::Builder::new().name("ledger".to_owned()).spawn(move || work(&queue, pen))?;
            committer.threads.push(thread);
        }
        Ok(committer)
    }

    /// Has a line written, for a thread that may wait.
    ///
    /// # Errors
    /// Those of the file system: then the line is not there.
    pub fn write_and_wait(&self, line: Line) -> io::Result<()> {
        let (told, answer) = mpsc::sync_channel(1);
        self.order(line, Box::new(move |written| drop(told.send(written))));
        answer.recv().unwrap_or_else(|_| Err(stopped()))
    }

    /// Has a line written, whether somebody waits for it or not. Told how it went, by a thread of the
    /// ledger; dropped without a word, where the ledger is not written any more.
    pub fn order(&self, line: Line, told: Told) {
        let mut state = self.queue.state();
        if state.closed {
            return;
        }
        state.waiting.push(Order { line, told });
        // Who comes next finds somebody who is awake already.
        let rings = state.waiting.len() == state.worth_a_sync();
        drop(state);
        if rings {
            self.queue.rung.notify_one();
        }
    }

    /// Has cleared away what is not needed any more, some time soon.
    pub fn tidy(&self) {
        self.queue.state().untidy = true;
        self.queue.rung.notify_one();
    }

    /// Writes what was taken, takes no more, and stops.
    pub fn close(&mut self) {
        self.queue.state().closed = true;
        self.queue.rung.notify_all();
        // Whoever holds the committer last may be one of those that are told.
        let others = self.threads.drain(..).filter(|thread| thread.thread().id() != thread::current().id());
        for thread in others {
            // A panic in it was told when it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.close();
    }
}

/// Nothing is written any more.
pub fn stopped() -> io::Error {
    io::Error::other("the ledger is not written any more")
}

impl State {
    /// How many must wait before they are synced.
    fn worth_a_sync(&self) -> usize {
        if self.syncing == 0 { 1 } else { WORTH_A_SYNC.max(self.syncing / SHARE) }
    }

    fn next(&mut self) -> Option<Task> {
        if self.waiting.len() >= self.worth_a_sync() {
            let mut bytes = 0;
            let fits = |order: &&Order| {
                let fits = bytes < BATCH;
                bytes += order.line.size();
                fits
            };
            let count = self.waiting.iter().take_while(fits).count();
            self.syncing += count;
            return Some(Task::Write(self.waiting.drain(..count).collect()));
        }
        if self.untidy && !self.tidying {
            (self.untidy, self.tidying) = (false, true);
            return Some(Task::Tidy);
        }
        self.closed.then_some(Task::Stop)
    }

    /// So many lines were written, one way or the other.
    fn wrote(&mut self, count: usize, wants_room: bool) {
        self.syncing -= count;
        self.rest = self.rest.saturating_sub(1);
        self.untidy |= wants_room && self.rest == 0;
    }

    /// A tidying is over; whether it is to be told that it failed: once, until one goes well again.
    fn tidied(&mut self, well: bool) -> bool {
        let is_news = !well && !self.failing;
        (self.tidying, self.failing, self.rest) = (false, !well, if well { 0 } else { REST });
        is_news
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) -> Task {
        let mut state = self.state();
        loop {
            if let Some(task) = state.next() {
                return task;
            }
            state = self.rung.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn work(queue: &Queue, mut pen: Pen) {
    let _last_will = LastWill(queue);
    loop {
        match queue.wait() {
            Task::Write(orders) => {
                let count = orders.len();
                write(&mut pen, orders);
                // Asked first: it may wait for the disk, and whoever has a line to be written waits for the queue.
                let wants_room = pen.wants_room();
                queue.state().wrote(count, wants_room);
            }
            Task::Tidy => {
                let tidied = pen.tidy();
                let is_news = queue.state().tidied(tidied.is_ok());
                if let Some(error) = tidied.err().filter(|_| is_news) {
                    tracing::warn!(%error, "the ledger could not be tidied; it is tried again now and then, and not told again before it went well");
                }
            }
            Task::Stop => return,
        }
    }
}

fn write(pen: &mut Pen, orders: Vec<Order>) {
    let (lines, told): (Vec<Line>, Vec<_>) = orders.into_iter().map(|order| (order.line, order.told)).unzip();
    let written = pen.write(&lines);
    for told in told {
        told(written.as_ref().copied().map_err(|error| io::Error::new(error.kind(), error.to_string())));
    }
}

/// After a panic nobody may wait for ever.
struct LastWill<'a>(&'a Queue);

impl Drop for LastWill<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut state = self.0.state();
            state.closed = true;
            // They may ask for more when they are dropped.
            let waiting = std::mem::take(&mut state.waiting);
            drop(state);
            drop(waiting);
            self.0.rung.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tidying_that_fails_is_told_once_and_not_repeated_at_every_write() {
        let mut state = State::default();
        state.wrote(0, true);
        assert!(matches!(state.next(), Some(Task::Tidy)));
        assert!(state.tidied(false));
        for _ in 1..REST {
            state.wrote(0, true);
            assert!(state.next().is_none());
        }
        state.wrote(0, true);
        assert!(matches!(state.next(), Some(Task::Tidy)));
        assert!(!state.tidied(false), "it was told");
        state.untidy = true;
        assert!(matches!(state.next(), Some(Task::Tidy)), "what is asked for is tried at once");
        assert!(!state.tidied(true));
        state.wrote(0, true);
        assert!(state.next().is_some());
        assert!(state.tidied(false), "it went well between");
    }
}
