//! Makes steps durable: one thread syncs for all that wait.

use super::failure::{FirstFailure, Flaw};
use super::open::panic_words;
use crate::store::contract::StoreError;
use crate::store::queue::Barrier;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Most callers that wait for a sync. Further callers wait until there is room.
const WAITING: usize = 1024;

type Waiter = oneshot::Sender<Result<(), StoreError>>;

/// Makes steps durable, many with one sync: callers that come during a sync share the next one.
pub(super) struct Committer {
    waiters: Option<mpsc::Sender<Waiter>>,
    thread: Option<JoinHandle<()>>,
    first_failure: Arc<FirstFailure>,
}

impl Committer {
    pub(super) fn start(db: ::sled::Db, file: File, first_failure: Arc<FirstFailure>) -> io::Result<Self> {
        let (waiters, inbox) = mpsc::channel(WAITING);
        let disk = Disk { db, file, first_failure: Arc::clone(&first_failure) };
        // A separate thread: a sync can take seconds, and no other work may wait behind it.
        let thread = std::thread::Builder::new().name("store-sync".into()).spawn(move || disk.serve(inbox))?;
        Ok(Self { waiters: Some(waiters), thread: Some(thread), first_failure })
    }
}

#[async_trait::async_trait]
impl Barrier for Committer {
    async fn durable(&self) -> Result<(), StoreError> {
        self.first_failure.check()?;
        let gone =
            || self.first_failure.fail(Flaw::Io(io::Error::other("the thread that syncs the queue to disk has ended")));
        let (waiter, answer) = oneshot::channel();
        let waiters = self.waiters.as_ref().ok_or_else(gone)?;
        waiters.send(waiter).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        drop(self.waiters.take());
        if let Some(thread) = self.thread.take() {
            // Its panic was reported to everyone who waited.
            let _ = thread.join();
        }
    }
}

struct Disk {
    db: ::sled::Db,
    file: File,
    first_failure: Arc<FirstFailure>,
}

impl Disk {
    fn serve(self, mut inbox: mpsc::Receiver<Waiter>) {
        let mut waiting = Vec::new();
        while let Some(first) = inbox.blocking_recv() {
            waiting.push(first);
            while let Ok(another) = inbox.try_recv() {
                waiting.push(another);
            }
            let outcome = self.sync();
            tracing::trace!(target: "scribed::store::sync", steps = waiting.len(), ok = outcome.is_ok());
            for waiter in waiting.drain(..) {
                let _ = waiter.send(outcome.clone()); // a caller that no longer waits needs no answer
            }
        }
        if let Err(error) = self.sync() {
            tracing::warn!(%error, "cannot sync the queue before the end; the last changes may be lost");
        }
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.first_failure.check()?;
        let flushed = catch_unwind(AssertUnwindSafe(|| self.db.flush()));
        let flushed =
            flushed.unwrap_or_else(|panic| Err(::sled::Error::ReportableBug(panic_words(panic.as_ref()).into())));
        let synced = flushed.map_err(Flaw::from).and_then(|_| Ok(self.file.sync_data()?));
        synced.map_err(|flaw| self.first_failure.fail(flaw))
    }
}
