//! Runs blocking work outside the runtime's threads. No other file starts a tokio thread for it.
//!
//! A panic in the work is passed on to the task that waits for it ([`joined`]). A caller that must survive a panic (a
//! server, a decoder of hostile files) awaits the handle of [`spawn`] and handles its error.

use crate::clock::Clock;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;

/// Runs `work` where it may block. On a single-threaded runtime it runs in place, which makes simulations
/// deterministic.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    started(work).await
}

/// Like [`blocking`], but runs in place if `is_little`: for work on the state directory that takes less time than
/// handing it to a thread.
pub async fn in_place_if<T: Send + 'static>(is_little: bool, work: impl FnOnce() -> T + Send + 'static) -> T {
    if is_little { work() } else { blocking(work).await }
}

/// Like [`blocking`], but never in place: for a service whose other requests continue even on a single-threaded
/// runtime.
pub async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    joined(spawn(work)).await
}

/// Starts `work` on a thread where it may block for any time, never in place: for work that exchanges data with another
/// task, and for work that may hang. The handle returns an error if the work panicked. If the handle is dropped, the
/// work goes on.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn_blocking(work)
}

/// Like [`blocking`], but returns `None` if the work has not ended within `limit`. The work goes on in its thread: a
/// disk that hangs must not block other work.
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

/// Like [`blocking`], but starts the work at once, so that it proceeds before it is awaited.
pub fn started<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = T> + Send + 'static {
    let work_state = match Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => Started::Done(work()),
        _ => Started::Elsewhere(spawn(work)),
    };
    async {
        match work_state {
            Started::Done(value) => value,
            Started::Elsewhere(handle) => joined(handle).await,
        }
    }
}

enum Started<T> {
    Done(T),
    Elsewhere(JoinHandle<T>),
}

/// Waits for a task, and passes on its panic.
pub async fn joined<T>(handle: JoinHandle<T>) -> T {
    match handle.await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and drops the task that awaits this.
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
