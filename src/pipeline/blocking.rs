//! Work on files, off the runtime's threads.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs `work` where it may block. On a runtime of one thread it runs in place, so that a simulation
/// is the same every time.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going down; whoever awaits this is dropped with it.
            Err(_) => std::future::pending().await,
        },
    }
}
