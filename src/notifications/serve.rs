//! Starts the tasks of all targets, in a daemon and during a pass.

pub use super::observe::PassEnd;
use super::ping;
use super::spool::SpoolFolder;
use super::worker::TargetWorker;
use crate::blocking::{blocking, joined};
use crate::config::model::NotifyConfig;
use crate::control::commands::reload::LatestHandler;
use crate::domain::count::count;
use crate::domain::names::Hash;
use std::path::Path;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Notifies as the current configuration says until `stop`.
pub async fn serve(latest: &LatestHandler, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        let handler = latest.get();
        let tasks = NotificationTasks::start(latest, &handler.notify, &handler.state).await;
        tokio::select! {
            () = stop.cancelled() => {}
            () = latest.replaced_after(&handler) => {}
        }
        drop(handler);
        tasks.stop().await;
    }
}

/// The running tasks of all targets.
struct NotificationTasks {
    stop: CancellationToken,
    running: Vec<JoinHandle<()>>,
}

impl NotificationTasks {
    async fn start(latest: &LatestHandler, config: &Arc<NotifyConfig>, state: &Path) -> Self {
        remove_others(config, state).await;
        let stop = CancellationToken::new();
        let mut running = Vec::new();
        for target in &config.targets {
            let worker = TargetWorker::open(latest.clone(), target).await;
            let stop = stop.clone();
            running.push(tokio::spawn(async move { worker.run(&stop).await }));
        }
        if config.ping.is_some() {
            let (latest, config, stop) = (latest.clone(), Arc::clone(config), stop.clone());
            running.push(tokio::spawn(async move {
                let handler = latest.get();
                if let Some(ping) = config.ping.as_ref().filter(|_| handler.has_daemon()) {
                    let _ = stop.run_until_cancelled_owned(ping::run(&handler, ping)).await;
                }
            }));
        }
        Self { stop, running }
    }

    async fn stop(self) {
        self.stop.cancel();
        for task in self.running {
            joined(task).await;
        }
    }
}

/// Notifies during a pass.
pub struct PassNotifications {
    latest: LatestHandler,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl PassNotifications {
    pub async fn begin(latest: LatestHandler) -> Self {
        let stop = CancellationToken::new();
        let handler = latest.get();
        let tasks = NotificationTasks::start(&latest, &handler.notify, &handler.state).await;
        let token = stop.clone();
        let serving = tokio::spawn(async move {
            token.cancelled().await;
            tasks.stop().await;
        });
        Self { latest, stop, serving }
    }

    /// Stops, and tells of what happened until the end of the pass, with one attempt for each target. What is not
    /// delivered waits for the next pass. `end` is `None` if the pass failed.
    pub async fn end(self, end: Option<PassEnd>) {
        self.stop.cancel();
        joined(self.serving).await;
        let Some(end) = end else { return };
        let handler = self.latest.get();
        let finish = handler.notify.targets.iter().map(|target| async {
            TargetWorker::open(self.latest.clone(), target).await.finish(&end).await;
        });
        let ping = async {
            if end.is_whole {
                ping::after_pass(&*handler.clock, &handler.notify).await;
            }
        };
        tokio::join!(futures_util::future::join_all(finish), ping);
    }
}

/// Removes what waits for targets that the configuration does not have any more.
async fn remove_others(config: &NotifyConfig, state: &Path) {
    let known: Vec<Hash> = config.targets.iter().map(|target| target.identity).collect();
    let spool = SpoolFolder::of(state);
    match blocking(move || spool.remove_others(&known)).await {
        Ok(removed) => {
            for queue in removed.iter().filter(|queue| queue.waiting() > 0) {
                let events = count(queue.waiting(), "event");
                tracing::warn!(
                    target_name = queue.target,
                    "{events} were not delivered to a target that [notify] does not have any more"
                );
            }
        }
        Err(error) => {
            tracing::warn!(%error, "cannot remove what waits for targets that [notify] does not have any more");
        }
    }
}
