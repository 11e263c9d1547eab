//! Work on files, off the runtime's threads.

use crate::clock::Clock;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;

/// Runs `work` where it may block. On a runtime of one thread it runs in place, so that a simulation
/// is the same every time.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    begin(work).await
}

/// As [`blocking`], but in place where `is_little`: for work on the state directory that takes less than handing
/// it over.
pub async fn aside_unless<T: Send + 'static>(is_little: bool, work: impl FnOnce() -> T + Send + 'static) -> T {
    if is_little { work() } else { blocking(work).await }
}

/// As [`blocking`], if it ends within `limit`; else `None`, and its thread is left to itself: a disk that
/// hangs must not hold the place of others.
pub async fn within<T: Send + 'static>(
    clock: &dyn Clock,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    tokio::select! {
        biased;
        done = begin(work) => Some(done),
        () = clock.sleep(limit) => None,
    }
}

/// As [`blocking`], begun at once: it goes on while nobody awaits it.
pub fn begin<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> impl Future<Output = T> + Send + 'static {
    let begun = match Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => Begun::Done(work()),
        _ => Begun::Elsewhere(tokio::task::spawn_blocking(work)),
    };
    async {
        match begun {
            Begun::Done(value) => value,
            Begun::Elsewhere(handle) => joined(handle).await,
        }
    }
}

enum Begun<T> {
    Done(T),
    Elsewhere(JoinHandle<T>),
}

/// What a task came to; its panic is passed on.
pub async fn joined<T>(handle: JoinHandle<T>) -> T {
    match handle.await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going down; whoever awaits this is dropped with it.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use std::sync::mpsc;

    #[tokio::test(flavor = "multi_thread")]
    async fn what_hangs_is_left_to_itself() {
        let (go, wait) = mpsc::channel::<()>();
        let hangs = within(&SystemClock, Duration::from_millis(10), move || wait.recv().is_ok());
        assert_eq!(hangs.await, None);
        assert_eq!(within(&SystemClock, Duration::from_secs(600), || 7).await, Some(7));
        drop(go);
    }
}
