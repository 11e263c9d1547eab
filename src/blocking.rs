//! Work that blocks, off the runtime's threads. No other file starts a thread of tokio's for it.
//!
//! Where the work is waited for, a panic in it is passed on to whoever waits ([`joined`]). Who must go on after a panic
//! (a server, a decoder of hostile files) waits for the handle of [`spawn`] and takes its error.

use crate::clock::Clock;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;

/// Runs `work` where it may block. On a runtime of one thread it runs in place, so that a simulation
/// is the same every time.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    started(work).await
}

/// As [`blocking`], but in place where `is_little`: for work on the state directory that takes less than handing
/// it over.
pub async fn in_place_if<T: Send + 'static>(is_little: bool, work: impl FnOnce() -> T + Send + 'static) -> T {
    if is_little { work() } else { blocking(work).await }
}

/// As [`blocking`], but never in place: for a service whose other requests go on, also on a runtime of one thread.
pub async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    joined(spawn(work)).await
}

/// Begins `work` where it may block, for as long as it likes, never in place: for work that another task feeds or
/// listens to, and for what may hang. Its handle says by an error that it panicked. Dropped, it is left to itself.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn_blocking(work)
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
        done = started(work) => Some(done),
        () = clock.sleep(limit) => None,
    }
}

/// As [`blocking`], started at once: it goes on while nobody awaits it.
pub fn started<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = T> + Send + 'static {
    let begun = match Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => Begun::Done(work()),
        _ => Begun::Elsewhere(spawn(work)),
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

    #[tokio::test]
    async fn on_one_thread_work_is_done_in_place_unless_it_must_not_be() {
        let here = std::thread::current().id();
        assert_eq!(blocking(|| std::thread::current().id()).await, here);
        assert_ne!(elsewhere(|| std::thread::current().id()).await, here);
    }

    #[tokio::test]
    async fn a_panic_is_passed_on_to_whoever_waits() {
        let waits = tokio::spawn(elsewhere::<()>(|| std::panic::panic_any("hostile")));
        let passed_on = waits.await.unwrap_err().into_panic();
        assert_eq!(passed_on.downcast_ref::<&str>(), Some(&"hostile"));
        assert!(spawn::<()>(|| std::panic::panic_any("hostile")).await.is_err_and(|error| error.is_panic()));
    }
}
